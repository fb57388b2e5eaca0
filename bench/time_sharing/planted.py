"""Figure 12: planted faults, each of which both checkers find."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from bench.expected import Line
from bench.runs.solving import recheck
from cms import (
    Configuration,
    FileError,
    MachineGroup,
    Mix,
    Schedule,
    TimeSharedJob,
    TimeSharedProblem,
    check,
    solve,
)
from cms.files import (
    lay_out,
    problem_from_json,
    problem_to_json,
    schedule_from_json,
    schedule_to_json,
)
from cms.files.json_text import parse_json
from cms.files.source import Source
from cms.fleet.serving import Interference, OperatingPoint, Pair, Service, build_problem
from proofs_checks.checker import Fault, check_schedule, parse_document

from .asked import GPU, Asked

_PAIR = Configuration({"60": 1, "40": 1}, "machine")
_BOTH = Mix({"a": 8, "b": 4})


class _Planted(NamedTuple):
    """A schedule that is as it should be, and the documents with a fault in them."""

    fault: str
    problem: TimeSharedProblem
    schedule: Schedule
    wrong: tuple[str, str]


def _problem(**more: Any) -> TimeSharedProblem:
    """Two jobs that meet their limits, and are served, to the last digit.

    The cycle is 0.032: 0.032 + 0.012 = 0.044 and 0.032 + 0.02 = 0.052; 8 and 4 / 0.032.
    """
    of_a = {"demand": 250, "limit": "0.044", **more.get("a", {})}
    of_b = {"demand": 125, "limit": "0.052", **more.get("b", {})}
    return TimeSharedProblem(
        configurations=_PAIR,
        jobs=[
            TimeSharedJob("a", points={"60": [(8, "0.012"), (16, "0.02")]}, **of_a),
            TimeSharedJob("b", points={"60": [(4, "0.02")], "40": [(4, "0.026")]}, **of_b),
        ],
    )


def _given(mix: Mapping[str, Fraction | int], block: str = "60") -> Schedule:
    return Schedule([MachineGroup(_PAIR, {(block, Mix(mix)): 1}, 1)])


def _texts(problem: TimeSharedProblem, schedule: Schedule) -> tuple[str, str]:
    return lay_out(problem_to_json(problem)), lay_out(schedule_to_json(schedule))


def _planted() -> Iterator[_Planted]:
    problem, schedule = _problem(), _given(_BOTH)
    late = _problem(a={"limit": "0.0439999"})
    short = _problem(b={"demand": 125 + Fraction(1, 10**9)})
    of_problem, of_schedule = _texts(problem, schedule)
    yield _Planted(
        "a cycle 0.1 us over a limit", problem, schedule, (_texts(late, schedule)[0], of_schedule)
    )
    yield _Planted(
        "a rate short by 10^-9", problem, schedule, (_texts(short, schedule)[0], of_schedule)
    )
    never = _texts(problem, _given({"a": 9, "b": 4}))[1]
    yield _Planted("a batch never measured", problem, schedule, (of_problem, never))
    twice = of_schedule.replace('"b": 4', '"b": 4, "a": 8')
    assert twice != of_schedule, f"no mix to plant a job in: {of_schedule}"
    yield _Planted("a job twice in a mix of a file", problem, schedule, (of_problem, twice))
    shape = Configuration({"b": 1}, "machine")
    jobs = [TimeSharedJob(f"j{at}", "1/5", 9, {"b": [(1, 1)]}) for at in range(5)]
    five = Schedule([MachineGroup(shape, {("b", Mix({j.name: 1 for j in jobs})): 1}, 1)])
    free, capped = (
        TimeSharedProblem(configurations=shape, jobs=jobs, max_jobs=most) for most in (5, 4)
    )
    yield _Planted("a fifth job under a cap of four", free, five, _texts(capped, five))
    yield _of_a_higher_class()


def _of_a_higher_class() -> _Planted:
    """A mix on the block of its class, and on one of a lower class."""
    points = [
        OperatingPoint("m", GPU, "mps:50", 1, batch, 1000 * Fraction(batch, ms), ms)
        for batch, ms in ((4, 10), (8, 15))
    ]
    table = Interference(
        {
            Pair("m", GPU, "mps:50", own, "m", other): "1.1" if other == 4 else "1.3"
            for own in (4, 8)
            for other in (4, 8)
        }
    )
    posed = build_problem(
        [Service("s", "m", 300, 100)], points, GPU, sharing="time", interference=table, classes=2
    )
    mix = Mix({"s": 8})

    def on(own: int) -> Schedule:
        here, there = f"mps:50 ({own} beside 1)", f"mps:50 (1 beside {own})"
        shape = Configuration({here: 1, there: 1} if own > 1 else {here: 2}, GPU)
        return Schedule([MachineGroup(shape, {(here, mix): 1}, 1)])

    problem = posed.problem
    return _Planted(
        "a mix of a higher class than its block's", problem, on(2), _texts(problem, on(1))
    )


def faults(_: Asked) -> Iterator[Line]:
    """Figure 12: both checkers take what is right and refuse what is planted."""
    for planted in _planted():
        right = _texts(planted.problem, planted.schedule)
        said = [*_verdicts(*right), *_verdicts(*planted.wrong)]
        yield Line(
            "12", planted.fault, "valid, valid without it; refused, refused with it",
            ", ".join("refused" if each else "valid" for each in said),
            said == [False, False, True, True],
        )  # fmt: skip
    jobs = [
        TimeSharedJob("a", 1, 9, {"b": [(1, 1)]}),
        TimeSharedJob("never", 1, 9, {"b": [(9, 5)]}),
    ]
    problem = TimeSharedProblem(configurations=Configuration({"b": 1}), jobs=jobs)
    found = solve(problem)
    who, why = recheck(problem, found)
    at_once = len(found.history) <= 1
    yield Line(
        "12", "a job without an admissible point", "infeasible at once, proved, by both checkers",
        f"{found.status}, {found.proof}, {'at once' if at_once else 'after a while'}; {who}: "
        f"{len(why)} faults",
        found.status == "infeasible" and found.proof == "checked" and at_once and not why,
    )  # fmt: skip


def _verdicts(problem: str, schedule: str) -> Iterator[bool]:
    """Whether the package and the second checker refuse documents."""
    try:
        read = [parse_json(Source("a file", text)) for text in (problem, schedule)]
        yield bool(check(problem_from_json(read[0]), schedule_from_json(read[1])))
    except FileError:
        yield True
    try:
        yield bool(check_schedule(parse_document(problem), parse_document(schedule)))
    except Fault:
        yield True
