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

#: The check of every file, in the order of the theory.
CHECKS: Mapping[str, Callable[..., Finding]] = {
    "bound_chain": bound_chain.check,
    "rounding_lemma": rounding_lemma.check,
    "t2_tadd": t2_tadd.check,
    "inner_problem": inner_problem.check,
    "g_int": g_int.check,
    "g_real": g_real.check,
    "g_alone": g_alone.check,
    "huge_demands": huge_demands.check,
    "set_cover": set_cover.check,
    "theorem_a": theorem_a.check,
    "few_configurations": few_configurations.check,
    "theorem_b": theorem_b.check,
    "ptas_switch": ptas_switch.check,
    "structure_theorem": structure_theorem.check,
    "list_hardness": list_hardness.check,
    "prices": prices.check,
    "limits": limits.check,
    "monotone": monotone.check,
    "queueing": queueing.check,
    "parallel_order": parallel_order.check,
    "time_sharing": time_sharing.check,
    "assignment": assignment.check,
    "monitor": monitor.check,
    "launch_gate": launch_gate.check,
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
