"""How close every variant comes to the optimum on an A100: the small form of suite ``ratios``."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bench.suites.ratios import ON_A100, VARIANTS
from cms import Status, UnsupportedProblem, solve
from instances.families import generate
from tests.property.problems import PLENTY, share, shown
from tests.references.guarantees import promise

#: These are optimal, and say so.
EXACT = ("conic", "auto")
METHODS = {**VARIANTS, "auto": ({},), "mig_serving_fast": ({},)}


@share(5)
@given(
    st.sampled_from(ON_A100), st.integers(1, 12), st.sampled_from((1, 5, 30)), st.integers(0, 2**32)
)
def test_every_variant_is_within_its_guarantee_of_the_optimum_of_cp_sat(
    family: str, n: int, m: int, seed: int
) -> None:
    problem = shown(generate(family, n=n, seed=seed, m=m))
    reference = solve(problem, "cp_sat", threads=1, time_limit=PLENTY)
    best = reference.cost
    assert reference.status is Status.OPTIMAL
    assert best is not None
    for method, variants in METHODS.items():
        for options in variants:
            try:
                solution = solve(problem, method, options=options, threads=1, time_limit=PLENTY)
            except UnsupportedProblem:
                # Twelve configurations have many machine vectors; a list has no cells.
                assert {*options.values()} & {"enumeration", "cells"}
                continue
            assert solution.cost is not None
            assert best <= solution.cost, (method, options)
            assert method not in EXACT or solution.cost == best, (method, options)
            promised = promise(problem, method, options)
            # No reference of a guarantee is above the optimum.
            assert promised is None or solution.cost <= promised.allows(best), (method, options)
