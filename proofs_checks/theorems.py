"""All theorem files, by name, and how to run them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from inspect import signature

from . import (
    assignment,
    bound_chain,
    few_configurations,
    g_alone,
    g_int,
    g_real,
    huge_demands,
    inner_problem,
    launch_gate,
    limits,
    list_hardness,
    monitor,
    monotone,
    parallel_order,
    prices,
    ptas_switch,
    queueing,
    rounding_lemma,
    set_cover,
    structure_theorem,
    t2_tadd,
    theorem_a,
    theorem_b,
    time_sharing,
)
from .finding import Finding
from .promises import Solver

_MODULES = (
    bound_chain, rounding_lemma, t2_tadd, inner_problem, g_int, g_real, g_alone, huge_demands,
    set_cover, theorem_a, few_configurations, theorem_b, ptas_switch, structure_theorem,
    list_hardness, prices, limits, monotone, queueing, parallel_order, time_sharing, assignment,
    monitor, launch_gate,
)  # fmt: skip
#: The check of every file, in the order of the theory.
CHECKS: Mapping[str, Callable[..., Finding]] = {
    module.__name__.rpartition(".")[2]: module.check for module in _MODULES
}


def runs_algorithms(name: str) -> bool:
    """Whether a file also runs algorithms of the package."""
    return "solver" in signature(CHECKS[name]).parameters


def run(
    name: str, *, seed: int = 0, cases: int | None = None, solver: Solver | None = None
) -> Finding:
    """Run one file's check, with another seed, number of cases or solver if one is given."""
    check = partial(CHECKS[name], seed=seed)
    if cases is not None:
        check = partial(check, cases=cases)
    if solver is not None and runs_algorithms(name):
        check = partial(check, solver=solver)
    return check()
