"""What methods guarantee, held against optima and the values of the theory's programs.

Optima come from enumeration (``tests.oracle``). The values that other guarantees are against come
from scipy, in floats (``tests.references.programs``); a millionth is allowed for that, and they
count as at most the optimum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from cms import (
    Algorithm,
    Guarantee,
    Problem,
    Proof,
    Reference,
    SizeBoundedConfigurations,
    Solution,
    Status,
    StopReason,
    UnsupportedProblem,
    Verdict,
    presolve,
    solve,
)
from cms.plugin.registry import algorithm_of, read_options
from proofs_checks import bounds
from proofs_checks.tiny import Tiny
from tests.oracle import given, limit_rows, machines
from tests.property.problems import rebuilt, source
from tests.references.programs import Arrays, compact, contents, lp_dw, lp_star

Options = Mapping[str, Any]

METHODS = ("greedy", "lp_rounding", "ptas", "conic")
#: Those that take machines that cost nothing, and numbers of any size.
ANY_NUMBERS = ("greedy", "lp_rounding")
#: Every option of the four that changes what is proved or how it is found.
VARIANTS: dict[str, Sequence[Options]] = {
    "greedy": (
        *({"variant": variant} for variant in ("best", "units", "inflated", "alone")),
        *(
            {"variant": variant, "inner": inner}
            for variant in ("best", "units", "inflated", "alone")
            for inner in ("greedy", "independent", "dependent", "exact")
        ),
        {"variant": "inflated", "delta": "1/2"},
        {"variant": "alone", "delta": 3},
    ),
    "lp_rounding": (
        *({"variant": v} for v in ("milp", "published", "supports", "enumeration", "doubling")),
        {"variant": "published", "epsilon": "1/10"},
        {"variant": "enumeration", "epsilon": 1},
    ),
    "ptas": (
        *({"epsilon": epsilon} for epsilon in ("1/2", "1/4", "1/10")),
        *({"exact": exact} for exact in ("dynamic", "program")),
    ),
    "conic": tuple({"route": route} for route in ("auto", "points", "cells")),
}
#: Numbers above this are too far apart for the tolerances of programs in floats.
FLOATS_HOLD = 10**9
TOLERANCE = Fraction(1, 10**6)


# --- the values that guarantees are against -------------------------------------------------------


def reference(problem: Problem, against: Reference, best: Fraction) -> Fraction:
    """An upper value of a reference: the optimum ``best``, or a program's value and a millionth.

    Beyond what floats tell apart the linear ones are solved in rationals.
    """
    if against is Reference.OPT:
        return best
    if _in_floats(problem):
        value = Fraction(program(problem, against))
        return min(best, value + TOLERANCE * (1 + value))
    linear = (Reference.LP_AGG, Reference.LP_STAR)
    return min(best, exactly(problem, against)) if against in linear else best


def exactly(problem: Problem, against: Reference) -> Fraction:
    """The value of a linear program in rationals."""
    shapes = list(contents(problem))
    jobs = [job for job in problem.jobs if job.demand]
    tiny = Tiny.of(
        [job.demand for job in jobs],
        [[given(job, block) for block in problem.blocks] for job in jobs],
        [[shape.blocks.get(block, 0) for block in problem.blocks] for shape in shapes],
        [problem.machine_type(shape.machine).cost for shape in shapes],
    )
    return bounds.reference(tiny, against) if jobs else Fraction(0)


@lru_cache(maxsize=256)  # the variants of a method are held to the same ones
def program(problem: Problem, against: Reference) -> float:
    """The value of a linear (or half integer) program that the theory compares with."""
    arrays = normalised(problem)
    if not arrays.n:
        return 0.0
    if against is Reference.LP_STAR:
        return lp_star(arrays)
    if against is Reference.LP_DW:
        found = lp_dw(problem)
    else:
        found = compact(arrays, arrays.truncated, (against is Reference.MILP_C, False))
    assert found is not None, source(problem)
    return found


def normalised(problem: Problem) -> Arrays:
    """The jobs that demand something, in units of their demands, and configurations one by one."""
    arrays = Arrays(rebuilt(problem, [job for job in problem.jobs if job.demand]))
    for table in (arrays.supply, arrays.truncated):
        table /= arrays.demand[:, None]
    arrays.demand = np.ones(arrays.n)
    return arrays


def _in_floats(problem: Problem) -> bool:
    rows = problem.rows
    largest = max(rows.demands.max(initial=0), rows.supplies.max(initial=0))
    return not rows.wide and int(largest) <= FLOATS_HOLD


# --- one run against its guarantee ----------------------------------------------------------------


def must_take(method: str, options: Options, problem: Problem) -> bool:
    """Whether a method has no reason to refuse a tiny problem: its theorem speaks of it."""
    if method not in METHODS:
        return True
    if limit_rows(problem):
        return False
    free = any(not machine.cost for machine in problem.machine_types)
    if method not in ANY_NUMBERS and (free or problem.rows.wide):
        return False
    if method == "conic":
        shapes = problem.configurations
        cells = len(shapes) == 1 and isinstance(shapes[0], SizeBoundedConfigurations)
        by_cells = options.get("route") != "cells" or (cells and len(problem.blocks) <= 2)
        few = len(problem.machine_types) == 1 and len(problem.blocks) <= 8
        return few and by_cells
    if options.get("variant") == "enumeration":
        costs = [machine.cost for machine in problem.machine_types]
        alike = not free and max(costs) <= 10 * min(costs)  # else vectors are too many
        return alike and len(list(contents(presolve(problem).problem))) <= 3
    # What is exponential in the blocks of a machine may have an end.
    most = max((sum(held) for _, held in machines(problem)), default=0)
    return options.get("exact") != "dynamic" and (options.get("inner") != "exact" or most <= 12)


def promise(problem: Problem, method: str | Algorithm, options: Options) -> Guarantee | None:
    """What a method guarantees on a problem."""
    algorithm, _ = algorithm_of(method)
    guarantee: Guarantee | None = algorithm.guarantee(problem, read_options(algorithm, options))
    return guarantee


def contradictions(problem: Problem, best: Fraction | None, solution: Solution) -> list[str]:
    """What a solution says that the optimum refutes."""
    status, cost = solution.status, solution.cost
    infeasible = solution.certificate.proves_infeasible(problem)
    if best is None:
        said = {
            "an infeasible problem has a schedule": cost is not None,
            "an infeasible problem is called optimal": status is Status.OPTIMAL,
        }
    else:
        lines = solution.history
        said = {
            "a feasible problem is called infeasible": status is Status.INFEASIBLE or infeasible,
            "a schedule is below the optimum": cost is not None and cost < best,
            "it is called optimal and is not": status is Status.OPTIMAL and cost != best,
            "its bound is above the optimum": solution.lower_bound > best,
            "its certificate proves too much": solution.certificate.bound(problem) > best,
            "a bound of its history is above the optimum": any(
                line.lower_bound > best or (line.claimed_bound or 0) > best for line in lines
            ),
        }
    return [words for words, holds in said.items() if holds]


def examine(
    problem: Problem, best: Fraction | None, method: str | Algorithm, options: Options
) -> Solution | None:
    """Solve, and hold everything against the optimum; None if the method refused, as it may."""
    name = method if isinstance(method, str) else method.name
    solution, refusal = None, ""
    try:
        solution = solve(problem, method, options=options, threads=1, time_limit=None)
    except UnsupportedProblem as fault:
        refusal = str(fault)
    if solution is None:
        assert not must_take(name, options, problem), refusal
        return None
    assert contradictions(problem, best, solution) == []
    if name in ("auto", "conic") and not options.get("plain"):  # what these take they decide
        assert (solution.cost, solution.proof is not Proof.NONE) == (best, True)
    if best is None:
        return solution
    assert solution.stop_reason in (StopReason.FINISHED, StopReason.PROVED)
    assert solution.cost is not None
    if solution.guarantee is not None:
        assert solution.guarantee.verdict is not Verdict.BREACHED
    promised = promise(problem, method, options)
    if promised is None:
        assert name not in METHODS or not must_take(name, options, problem)
    else:
        if name == "ptas":
            assert solution.cost <= (1 + Fraction(str(options.get("epsilon", "1/2")))) * best
        value = reference(problem, promised.against, best)
        assert solution.cost <= promised.allows(value), (solution.cost, best, value, promised)
    return solution
