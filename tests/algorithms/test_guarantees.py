"""Every algorithm, in every variant, keeps its guarantee: bound <= optimum <= cost <= guarantee.

The optima come from enumeration (``tests.oracle``). The values that other guarantees are against
come from scipy, in floats; a millionth is allowed for that, and they count as at most the optimum.

``make test`` takes a few problems of every family; ``pytest -m long tests/algorithms`` takes a
thousand shapes of A100 and a thousand others, and prints the ratios seen beside those proved.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

from cms import (
    Algorithm,
    Budget,
    Claim,
    Configuration,
    Guarantee,
    Job,
    MachineType,
    Problem,
    Reference,
    Schedule,
    SizeBoundedConfigurations,
    Solution,
    Status,
    StopReason,
    Support,
    UnsupportedProblem,
    Verdict,
    reduce,
    solve,
)
from cms.plugin.guarantee import judge
from cms.plugin.options import read_options
from cms.plugin.registry import algorithm_of
from proofs_checks import bounds
from proofs_checks.tiny import Tiny
from tests.families import FAMILIES, instance
from tests.instances.test_hard import Arrays, compact, lp_dw, lp_star
from tests.oracle import given, machines, optimum
from tests.plugins import OneByOne
from tests.property.problems import rebuilt, source

Options = Mapping[str, Any]

METHODS = ("greedy", "lp_rounding", "ptas", "conic")
#: Those that take machines that cost nothing, and numbers of any size.
ANY_NUMBERS = ("greedy", "lp_rounding")
#: Every option of the four that changes what is proved or how it is found.
VARIANTS: dict[str, Sequence[Options]] = {
    "greedy": (
        *({"variant": variant} for variant in ("best", "units", "inflated", "lp")),
        *({"variant": "units", "inner": inner} for inner in ("greedy", "independent")),
        *({"variant": "units", "inner": inner} for inner in ("dependent", "exact")),
        {"variant": "inflated", "delta": "1/2"},
    ),
    "lp_rounding": (
        *({"variant": variant} for variant in ("milp", "published", "supports")),
        *({"variant": variant} for variant in ("enumeration", "doubling")),
        {"variant": "published", "epsilon": "1/10"},
        {"variant": "enumeration", "epsilon": 1},
    ),
    "ptas": (
        *({"epsilon": epsilon} for epsilon in ("1/2", "1/4", "1/10")),
        *({"exact": exact} for exact in ("dynamic", "program")),
    ),
    "conic": tuple({"route": route} for route in ("auto", "points", "cells")),
}
EVERY = [
    pytest.param(method, {**options, **plain}, id=" ".join([method, *map(str, values), *plain]))
    for method, several in VARIANTS.items()
    for options in several
    for values in [options.values()]
    for plain in ({}, {"plain": True})
]
A100 = ("a100", "a100_arbitrary")
OTHERS = tuple(
    family
    for family in FAMILIES
    if family not in (*A100, "limits", "infeasible_by_limit", "infeasible_by_block")
)
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


def program(problem: Problem, against: Reference) -> float:
    """The value of a linear (or half integer) program that the theory compares with."""
    arrays = normalised(problem)
    if not arrays.n:
        return 0.0
    if against is Reference.LP_STAR:
        return lp_star(arrays)
    if against is Reference.LP_DW:
        return lp_dw(arrays)
    found = compact(arrays, arrays.truncated, (against is Reference.MILP_C, False))
    assert found is not None, source(problem)
    return found


def normalised(problem: Problem) -> Arrays:
    """The jobs that demand something, in units of their demands, and configurations one by one."""
    arrays = Arrays(
        rebuilt(
            problem,
            jobs=[job for job in problem.jobs if job.demand],
            configurations=list(contents(problem)),
        )
    )
    for table in (arrays.supply, arrays.truncated):
        table /= arrays.demand[:, None]
    arrays.demand = np.ones(arrays.n)
    return arrays


def contents(problem: Problem) -> Iterator[Configuration]:
    """The configurations, and the multisets of size-bounded sets that take no more block."""
    found = set(machines(problem))
    sets = {s.machine for s in problem.configurations if isinstance(s, SizeBoundedConfigurations)}
    for machine, held in sorted(found):
        name = problem.machine_types[machine].name
        more = (tuple(n + (i == at) for i, n in enumerate(held)) for at in range(len(held)))
        if any(held) and not (name in sets and any((machine, one) in found for one in more)):
            yield Configuration(dict(zip(problem.blocks, held, strict=True)), name)


def _in_floats(problem: Problem) -> bool:
    rows = problem.rows
    largest = max(rows.demands.max(initial=0), rows.supplies.max(initial=0))
    return not rows.wide and int(largest) <= FLOATS_HOLD


# --- one run against its guarantee ----------------------------------------------------------------


def must_take(method: str, options: Options, problem: Problem) -> bool:
    """Whether a method has no reason to refuse a tiny problem: its theorem speaks of it."""
    if method not in METHODS:
        return True
    if any(machine.limit is not None for machine in problem.machine_types):
        return False
    free = any(not machine.cost for machine in problem.machine_types)
    if method not in ANY_NUMBERS and (free or problem.rows.wide):
        return False
    if method == "conic":
        shapes = problem.configurations
        only = len(problem.machine_types) == len(shapes) == 1
        return only and isinstance(shapes[0], SizeBoundedConfigurations)
    if options.get("variant") == "enumeration":
        return not free and len(list(contents(reduce(problem).problem))) <= 3
    # What is exponential in the blocks of a machine may have an end.
    most = max((sum(held) for _, held in machines(problem)), default=0)
    return options.get("exact") != "dynamic" and (options.get("inner") != "exact" or most <= 12)


def promise(problem: Problem, method: str | Algorithm, options: Options) -> Guarantee | None:
    """What a method guarantees on a problem."""
    algorithm, _ = algorithm_of(method)
    guarantee: Guarantee | None = algorithm.guarantee(problem, read_options(algorithm, options))
    return guarantee


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
    if best is None:
        assert solution.status in (Status.INFEASIBLE, Status.NO_SCHEDULE)
        return solution
    assert solution.stop_reason in (StopReason.FINISHED, StopReason.PROVED)
    assert solution.cost is not None
    assert solution.lower_bound <= best <= solution.cost
    assert solution.claimed_bound is None or solution.claimed_bound <= best
    promised = promise(problem, method, options)
    if promised is None:
        assert name not in METHODS or not must_take(name, options, problem)
    else:
        value = reference(problem, promised.against, best)
        verdict = judge(
            promised, cost=solution.cost, lower_bound=solution.lower_bound, upper_value=value
        )
        assert verdict.verdict is not Verdict.BREACHED, (solution.cost, best, value, promised)
    return solution


@cache
def known(family: str, number: int) -> tuple[Problem, Fraction | None]:
    """A problem of a family with its optimum."""
    problem = instance(family, number)
    return problem, optimum(problem)


class Ratios(NamedTuple):
    """What was seen of a variant on many problems: cost by optimum, and factors promised."""

    refused: int
    seen: list[Fraction]
    exact: int

    def __str__(self) -> str:
        mean = float(sum(self.seen) / len(self.seen)) if self.seen else 1.0
        worst = float(max(self.seen, default=Fraction(1)))
        return f"{len(self.seen):>6} {self.refused:>8} {self.exact:>8} {mean:>8.4f} {worst:>8.4f}"


def ratios(
    method: str, options: Options, families: Sequence[str], numbers: Iterable[int]
) -> Ratios:
    """Examine a variant on the first problems of some families; a failure names the problem."""
    refused, exact, seen = 0, 0, []
    for number in numbers:
        family = families[number % len(families)]
        problem, best = known(family, number)
        try:
            solution = examine(problem, best, method, options)
        except Exception as fault:
            raise AssertionError(
                f"instance({family!r}, {number}): {fault}\n{source(problem)}"
            ) from fault
        if solution is None:
            refused += 1
        elif best and solution.cost is not None:
            seen.append(solution.cost / best)
            exact += solution.cost == best
    return Ratios(refused, seen, exact)


# --- the tests ------------------------------------------------------------------------------------


def few(options: Options) -> range:
    """As many problems as a short run takes."""
    return range(30 if "plain" in options else 60)


@pytest.mark.parametrize(("method", "options"), EVERY)
def test_a_variant_keeps_its_guarantee_on_shapes_of_an_a100(method: str, options: Options) -> None:
    found = ratios(method, options, A100, few(options))
    if method == "conic":
        assert found == (len(few(options)), [], 0)  # these are listed
    elif options.get("variant") == "enumeration":
        # A dozen configurations have too many machine vectors.
        assert found.refused >= len(few(options)) // 2
    else:
        assert len(found.seen) >= len(few(options)) // 2


@pytest.mark.parametrize(("method", "options"), EVERY)
def test_a_variant_keeps_its_guarantee_on_other_families(method: str, options: Options) -> None:
    families = ("size_bounded", "max_blocks") if method == "conic" else OTHERS
    found = ratios(method, options, families, few(options))
    assert len(found.seen) >= len(few(options)) // 3


@pytest.mark.parametrize("method", ["ptas", "conic"])
def test_an_exact_method_finds_the_optimum_of_every_problem_it_takes(method: str) -> None:
    # Below so small an epsilon the additive regime begins at a thousand machines or so.
    options = {"epsilon": "1/1000"} if method == "ptas" else {}
    found = ratios(method, options, ("size_bounded", "random_configurations"), range(30))
    assert len(found.seen) >= 10
    assert found.exact == len(found.seen)


@pytest.mark.parametrize("method", ["greedy", "lp_rounding", "ptas"])
def test_limits_are_refused_or_leave_no_guarantee(method: str) -> None:
    few = Problem(
        configurations=Configuration({"a": 2}),
        jobs=[Job("x", 3, {"a": 1})],
        machine_types=[MachineType("machine", limit=3)],
    )
    algorithm, _ = algorithm_of(method)
    support = algorithm.support(few, read_options(algorithm, {}))
    assert support or "limit" in support.reason
    for problem, best in [(few, Fraction(2)), *(known("limits", number) for number in range(40))]:
        types = {shape.machine for shape in problem.configurations}
        limited = any(m.limit is not None and m.name in types for m in problem.machine_types)
        if limited and examine(problem, best, method, {}) is not None:
            assert promise(problem, method, {}) is None, source(problem)


def test_conic_counts_machines_against_their_limit() -> None:
    for number in range(20):
        problem, best = known("size_bounded", number)
        if not best:
            continue
        for limit, cost in ((int(best), best), (int(best) - 1, None)):
            name = problem.machine_types[0].name
            few = rebuilt(problem, machine_types=[MachineType(name, limit=limit)])
            solution = solve(few, "conic", threads=1)
            assert solution.cost == cost, (number, limit)
            assert solution.status is (Status.INFEASIBLE if cost is None else Status.OPTIMAL)


def test_a_refusal_says_why() -> None:
    mixed = Problem(
        configurations=[
            SizeBoundedConfigurations({"a": 1}, 2, "m"),
            Configuration({"b": 1}, "n"),
        ],
        jobs=[Job("x", 3, {"a": 1, "b": 1})],
        machine_types=[MachineType("m"), MachineType("n")],
    )
    with pytest.raises(UnsupportedProblem, match="'conic' cannot take this problem: .*list"):
        solve(mixed, "conic")


class OneTooMany(OneByOne):
    """One machine a job and more, which it calls optimal."""

    def support(self, problem: Problem, options: Any) -> Support:
        return Support(True)

    def guarantee(self, problem: Problem, options: Any) -> Guarantee | None:
        return Guarantee(1, 0, Reference.MILP_C, "a false theorem")

    def run(self, problem: Problem, options: Any, budget: Budget) -> Iterator[Claim]:
        (shape,) = problem.listed_configurations
        given = {("a", name): 1 for name in problem.job_names}
        yield Schedule.from_counts(problem, {shape: len(given)}, given)


def test_a_broken_promise_is_noticed() -> None:
    problem = Problem(
        configurations=Configuration({"a": 2}),
        jobs=[Job("x", 1, {"a": 1}), Job("y", 1, {"a": 1})],
    )
    assert program(problem, Reference.MILP_C) == pytest.approx(1)
    with pytest.raises(AssertionError, match="a false theorem"):
        examine(problem, optimum(problem), OneTooMany(), {})


# --- the long run ---------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("families", [A100, OTHERS], ids=["a100", "others"])
def test_every_variant_keeps_its_guarantee_on_a_thousand_problems(
    families: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    lines = []
    for method, several in VARIANTS.items():
        for options in several:
            found = ratios(method, options, families, range(60, 1060))
            name = " ".join([method, *map(str, options.values())])
            lines.append(f"{name:<32} {found}")
            assert found.seen or found.refused == 1000
    with capsys.disabled():
        head = "solved  refused  optimal     mean    worst"
        print(f"\n{'variant':<32} {head}\n" + "\n".join(lines))
