"""Figures 10 and 11: mixes of many services, and their proofs rechecked from files."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial

from bench.expected import Line
from bench.runs.solving import recheck
from cms import InvalidCertificate, MixPrices, Solution, TimeSharedProblem, solve
from cms.files import lay_out, problem_to_json
from cms.values.frozen import FrozenMap
from instances.families.time_sharing import larger_mix
from proofs_checks.checker import Fault, certificate_bound, parse_document

from .asked import Asked

#: By the number of services: the gap, the seconds to the bound, and CPU seconds of a recheck.
_GAPS, _BOUNDS = {20: 1, 50: 2}, {20: 5.0, 50: 25.0}
_RECHECKS = {10: 1.0, 50: 5.0}
#: A price or a slope that is one per cent higher, on the mix of ten services.
_MORE = Fraction(101, 100)


def gaps(asked: Asked) -> Iterator[Line]:
    """Figure 10: gaps of mixes of many made-up services, within a time limit."""
    for jobs in asked.sizes:
        most, soon = (table[max(size for size in table if size <= max(20, jobs))]
                      for table in (_GAPS, _BOUNDS))  # fmt: skip
        for seed in range(asked.seed, asked.seed + asked.mixes):
            found = solve(larger_mix(jobs, seed), time_limit=asked.seconds)
            first = bound_after(found)
            gap = found.gap
            yield Line(
                "10", f"{jobs} made-up services, seed {seed}, no cap, {asked.seconds:g} s",
                f"a gap of at most {most}, the bound within {soon:g} s",
                f"{found.cost} GPUs, lower bound {found.lower_bound} in {found.seconds:.1f} s; "
                f"the bound after {first:.1f} s",
                gap is not None and gap <= most and first <= soon,
            )  # fmt: skip


def bound_after(solution: Solution) -> float:
    """Return the seconds after which the final lower bound was certified."""
    return next(
        line.seconds for line in solution.history if line.lower_bound == solution.lower_bound
    )


def rechecked(asked: Asked) -> Iterator[Line]:
    """Figure 11: the second checker takes every proof from its file, and no raised one."""
    for jobs, most in _RECHECKS.items():
        if jobs > max((10, *asked.sizes)):
            continue
        for seed in range(asked.seed, asked.seed + asked.mixes):
            problem = larger_mix(jobs, seed)
            solution = solve(problem, time_limit=asked.seconds)
            begun = time.process_time()
            who, faults = recheck(problem, solution)
            took = time.process_time() - begun
            yield Line(
                "11", f"{jobs} made-up services, seed {seed}, no cap: rechecked from files",
                f"by the second checker, no fault, at most {most:g} CPU s",
                "; ".join([f"{who}, {len(faults)} faults, {took:.2f} CPU s", *faults[:2]]),
                who == "independent" and not faults and took <= most,
            )  # fmt: skip
            if jobs == min(_RECHECKS):
                yield _raised(problem, solution, seed)


def _raised(problem: TimeSharedProblem, solution: Solution, seed: int) -> Line:
    """Raise each price and each slope of a proof, and ask both checkers."""
    document = parse_document(lay_out(problem_to_json(problem)))
    refused = held = 0
    apart = []
    for name, leaf in raised(solution.certificate):
        ours = _says(partial(leaf.bound, problem))
        tree = parse_document(lay_out(leaf.to_json()))
        theirs = _says(partial(certificate_bound, document, tree))
        refused, held = refused + (theirs is None), held + (theirs is not None)
        if ours != theirs:
            apart.append(f"{name}: {ours}, {theirs}")
    return Line(
        "11", f"10 made-up services, seed {seed}: a price or slope 1 % higher, by both checkers",
        "the same bound or refused by both; some refused",
        "; ".join([f"{refused} refused, {held} hold, {len(apart)} otherwise", *apart[:2]]),
        not apart and refused > 0,
    )  # fmt: skip


def raised(certificate: object) -> Iterator[tuple[str, MixPrices]]:
    """Iterate over a leaf with one price, or the slope of one function, one per cent higher."""
    if not isinstance(certificate, MixPrices):
        return
    leaf = certificate
    for block, price in leaf.prices.items():
        prices = FrozenMap({**leaf.prices, block: price * _MORE})
        yield f"price of {block}", replace(leaf, prices=prices)
    for job, function in leaf.functions.items():
        if function.slope:
            more = type(function)(function.slope * _MORE, function.steps)
            functions = FrozenMap({**leaf.functions, job: more})
            yield f"slope of {job}", replace(leaf, functions=functions)


def _says(bound: Callable[[], Fraction | None]) -> Fraction | None:
    """What a checker makes of a certificate; None if it refuses it."""
    try:
        return bound()
    except (InvalidCertificate, Fault):
        return None
