"""What the conformance suite looks for, one function a check."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from itertools import pairwise, takewhile
from typing import Any, TypeAlias

from ..errors import GuaranteeBreached, InvalidCertificate, InvalidOption
from ..plugin.algorithm import Algorithm, SolverBound, Support, kinds_taken
from ..plugin.guarantee import Guarantee, Verdict, judge
from ..plugin.options import option_fields, read_options
from ..plugin.registry import NamedProblem, algorithm_of
from ..problem.problem import Problem
from ..referee.check import check, referee_of
from ..referee.kinds import AnyProblem, is_one_of
from ..solving.solution import StopReason
from ..values.frozen import FrozenMap
from ..values.numbers import shown
from .edge_problems import CROWDS, EDGE_PROBLEMS
from .observation import Observation, observe
from .time_shared_edges import TIME_SHARED_CROWDS, TIME_SHARED_EDGE_PROBLEMS

Faults: TypeAlias = Iterator[str]


class Laboratory:
    """An algorithm on the bench: the problems to try it on, and the runs already watched.

    Parameters
    ----------
    algorithm : str or Algorithm
        A name is looked up in the registry, which also says whether it is trusted.
    problems : sequence of NamedProblem, optional
        By default those of :data:`cms.testing.edge_problems.EDGE_PROBLEMS` and
        :data:`cms.testing.time_shared_edges.TIME_SHARED_EDGE_PROBLEMS` of the kinds it takes, and
        what the referees of other kinds bring.
    seeds : sequence of int
    time_limit : float
        Seconds for each run that is not about time.
    options : Mapping[str, object]
        For every run.
    """

    def __init__(
        self,
        algorithm: str | Algorithm,
        problems: Sequence[NamedProblem] | None = None,
        *,
        seeds: Sequence[int] = (0, 1),
        time_limit: float = 10.0,
        options: Mapping[str, object] = FrozenMap(),
    ) -> None:
        self.algorithm, self.trusted = algorithm_of(algorithm)
        self.kinds = kinds_taken(self.algorithm)
        if problems is None:
            brought = [named for small, _ in self.brought() for named in small]
            every = (*EDGE_PROBLEMS, *TIME_SHARED_EDGE_PROBLEMS, *brought)
            problems = [named for named in every if isinstance(named.make(), self.kinds)]
        self.problems = tuple(problems)
        self.seeds, self.time_limit, self.options = tuple(seeds), time_limit, options
        self._runs: dict[tuple[str, int], Observation] = {}

    def brought(self) -> Iterator[tuple[Sequence[NamedProblem], Sequence[NamedProblem]]]:
        """Iterate over small problems, and large ones, that referees of its kinds bring.

        A referee's class does by a static method ``edge_problems``, with their optima.
        """
        for kind in self.kinds:
            bring = getattr(referee_of.dispatch(kind), "edge_problems", None)
            if bring is not None:
                yield bring()

    def crowds(self) -> tuple[NamedProblem, ...]:
        """Return large problems to stop in the middle of."""
        brought = (named for _, large in self.brought() for named in large)
        return (*CROWDS, *TIME_SHARED_CROWDS, *brought)

    def supports(self, problem: AnyProblem) -> bool:
        """Whether the algorithm says that it can take a problem."""
        options = self.chosen()
        if not isinstance(problem, self.kinds):
            return False
        with suppress(Exception):  # what it raises is the matter of the check "support"
            return self.algorithm.support(problem, options).ok is True
        return False

    def chosen(self) -> Any:
        """Return the options of every run, as the algorithm's own object."""
        return read_options(self.algorithm, self.options)

    def supported(self) -> Iterator[tuple[NamedProblem, Problem]]:
        """Iterate over the problems the algorithm can take."""
        for named in self.problems:
            problem = named.make()
            if self.supports(problem):
                yield named, problem

    def runs(self) -> Iterator[tuple[NamedProblem, int, Observation]]:
        """Iterate over one plain run for each problem and seed; they are kept."""
        for named, problem in self.supported():
            for seed in self.seeds:
                key = named.name, seed
                if key not in self._runs:
                    self._runs[key] = self.watch(problem, seed=seed)
                yield named, seed, self._runs[key]

    def watch(self, problem: AnyProblem, **arguments: Any) -> Observation:
        """Watch a run of its own."""
        arguments = {"time_limit": self.time_limit, **arguments}
        return observe(self.algorithm, self.trusted, problem, options=self.options, **arguments)


def faults_in_takes(laboratory: Laboratory) -> Faults:
    """The classes of problems it takes have referees."""
    for kind in laboratory.kinds:
        if referee_of.dispatch(kind) is referee_of.dispatch(object):
            yield f"it takes {kind.__name__}, for which no referee is registered"


def faults_in_support(laboratory: Laboratory) -> Faults:
    """Refusals have reasons, answers do not change, and nothing is raised."""
    algorithm = laboratory.algorithm
    given = ((named.name, named.make()) for named in (*laboratory.problems, *laboratory.crowds()))
    problems: dict[str, Any] = {
        name: made for name, made in given if isinstance(made, laboratory.kinds)
    }
    if not any(laboratory.supports(problem) for problem in problems.values()):
        yield f"it takes none of the {len(problems)} problems, so nothing can be said of it"
    for name, problem in problems.items():
        try:
            answers = [algorithm.support(problem, laboratory.chosen()) for _ in range(2)]
        except Exception as fault:  # noqa: BLE001 (reported)
            yield f"{name}: support() raised {_said(fault)}"
            continue
        if not all(isinstance(answer, Support) for answer in answers):
            yield f"{name}: support() returned {answers[0]!r}; expected a cms.Support"
        elif answers[0] != answers[1]:
            yield f"{name}: support() answered {answers[0]}, then {answers[1]}"


def faults_in_options(laboratory: Laboratory) -> Faults:
    """Every option has a default and a word of documentation; nonsense is refused."""
    algorithm = laboratory.algorithm
    fields = option_fields(algorithm)
    text = algorithm.options_type.__doc__ or ""
    for name in fields:
        if name not in text:
            yield f"the docstring of {algorithm.options_type.__name__} does not mention {name!r}"
    # a value no option can mean, and a name none can have
    for name, value in ((name, _Nonsense()) for name in [*fields, "no such option"]):
        try:
            read_options(algorithm, {name: value})
        except InvalidOption:
            continue
        except Exception as fault:  # noqa: BLE001 (reported)
            yield f"option {name!r} given nonsense raised {_said(fault)}; expected a ValueError"
        else:
            yield f"option {name!r} took {value!r}; refuse it with a ValueError in __post_init__"


class _Nonsense:
    def __repr__(self) -> str:
        return "<nonsense>"


def faults_in_claims(laboratory: Laboratory) -> Faults:
    """Only the types of claims there are, and a solver's word from the trusted only."""
    for named, seed, seen in laboratory.runs():
        known = _known_types(seen)
        for claim in seen.claims:
            if not is_one_of(type(claim), known):
                yield f"{named.name}, seed {seed}: an object of type {type(claim).__name__!r}"
            elif isinstance(claim, SolverBound) and not laboratory.trusted:
                yield f"{named.name}, seed {seed}: {claim!r}, a solver's word of a third party"


def faults_in_schedules(laboratory: Laboratory) -> Faults:
    """Every schedule, even one that would not improve anything, is valid."""
    for named, seed, seen in laboratory.runs():
        schedules = referee_of(seen.problem).schedules
        for claim in seen.claims:
            if type(claim) is schedules:
                for violation in check(seen.problem, claim)[:1]:
                    yield f"{named.name}, seed {seed}: {claim!r}: {violation}"


def faults_in_bounds(laboratory: Laboratory) -> Faults:
    """Every certificate holds, and no solver's word is above a known optimum."""
    for named, seed, seen in laboratory.runs():
        where = f"{named.name}, seed {seed}"
        certificates = referee_of(seen.problem).certificates
        for claim in seen.claims:
            if is_one_of(type(claim), certificates):
                try:
                    claim.judged(seen.problem)
                except InvalidCertificate as fault:
                    yield f"{where}: {fault}"
            elif isinstance(claim, SolverBound) and not named.infeasible:
                if claim.value is None:
                    yield f"{where}: {claim.solver} claims that there is no schedule"
                elif named.optimum is not None and claim.value > named.optimum:
                    yield (
                        f"{where}: {claim.solver} claims a bound of {shown(claim.value)}, "
                        f"above the optimum {shown(named.optimum)}"
                    )


def faults_in_inputs(laboratory: Laboratory) -> Faults:
    """Problem, start schedule and options are the same after the run."""
    for named, seed, seen in laboratory.runs():
        for changed in seen.changed:
            yield f"{named.name}, seed {seed}: the {changed} has changed"
        if seen.solution is not None and seen.solution.cost is not None:
            start = seen.solution.schedule
            seen = laboratory.watch(seen.problem, seed=seed, start=start)
            for changed in seen.changed:
                yield f"{named.name}, with a start: the {changed} has changed"


def faults_in_clock(laboratory: Laboratory) -> Faults:
    """The algorithm has ended half a second after its time limit or the caller's cancel.

    Half a second of work, where the machine is busy with something else. Late means late twice: the
    first time code may have been compiled. Not under a tracer, such as that of a measurement of
    coverage: there all work is many times as much.
    """
    for named in () if _traced() else laboratory.crowds():
        problem = named.make()
        if not laboratory.supports(problem):
            continue
        for seconds in (0.02, 0.2):
            if all(laboratory.watch(problem, time_limit=seconds).late for _ in range(2)):
                yield f"{named.name}: still at work half a second after its {seconds} s were over"
        if all(_cancelled(laboratory, problem).late for _ in range(2)):
            yield f"{named.name}: still at work half a second after the caller's cancel"


def _traced() -> bool:
    if sys.gettrace() is not None:
        return True
    monitoring = getattr(sys, "monitoring", None)
    return monitoring is not None and monitoring.get_tool(monitoring.COVERAGE_ID) is not None


def _cancelled(laboratory: Laboratory, problem: Problem) -> Observation:
    cancel = threading.Event()
    timer = threading.Timer(0.1, cancel.set)
    # From the beginning of the run: on a busy machine that may take a while to come.
    seen = laboratory.watch(problem, time_limit=None, cancel=cancel, on_start=timer.start)
    timer.cancel()
    return seen


def faults_in_reproducible(laboratory: Laboratory) -> Faults:
    """Further runs with the same seed make the same claims."""
    for named, seed, seen in laboratory.runs():
        # two in a row, so that what alternates between runs is found out
        others = [laboratory.watch(seen.problem, seed=seed) for _ in range(2)]
        known = _known_types(seen)
        runs = [
            [claim if is_one_of(type(claim), known) else repr(claim) for claim in run.claims]
            for run in (seen, *others)
            if run.solution is None or run.solution.stop_reason is not StopReason.TIME_LIMIT
        ]
        for first, second in pairwise(runs):
            if first != second:
                same = takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False))
                yield (
                    f"{named.name}, seed {seed}: two runs differ from claim "
                    f"{len(list(same)) + 1} on ({len(first)} and {len(second)} claims)"
                )
                break


def faults_in_cancels(laboratory: Laboratory) -> Faults:
    """Closing or cancelling it at a claim raises nothing and leaves no cancel registered."""
    for named, seed, plain in laboratory.runs():
        if plain.raised is not None:
            continue  # it raises without being disturbed
        cancel = threading.Event()
        ways: dict[str, dict[str, Any]] = {
            "closed at its first schedule": {"gap": 10**30},
            "cancelled at its first claim": {"cancel": cancel, "on_claim": cancel.set},
        }
        for way, arguments in ways.items():
            seen = laboratory.watch(plain.problem, seed=seed, **arguments)
            if seen.raised is not None:
                yield f"{named.name}, {way}: raised {_said(seen.raised)}"
            if seen.cancel_raised is not None:
                yield f"{named.name}, {way}: a cancel raised {_said(seen.cancel_raised)}"
            if seen.ended and seen.cancels:
                yield f"{named.name}, {way}: left {seen.cancels} cancels registered"


def faults_in_edge_problems(laboratory: Laboratory) -> Faults:
    """It raises nothing on any problem it says it can take."""
    for named, seed, seen in laboratory.runs():
        if seen.raised is not None:
            yield f"{named.name}, seed {seed}: raised {_said(seen.raised)}"


def faults_in_guarantee(laboratory: Laboratory) -> Faults:
    """Finished runs keep the guarantee against the known optimum."""
    for named, seed, seen in laboratory.runs():
        try:
            promised: Any = laboratory.algorithm.guarantee(seen.problem, laboratory.chosen())
        except Exception as fault:  # noqa: BLE001 (reported)
            yield f"{named.name}: guarantee() raised {_said(fault)}"
            continue
        if promised is None:
            continue
        if not isinstance(promised, Guarantee):
            yield f"{named.name}: guarantee() returned {promised!r}; expected a cms.Guarantee"
        elif isinstance(seen.refusal, GuaranteeBreached):
            yield f"{named.name}, seed {seed}: {seen.refusal}"
        elif named.optimum is not None:
            yield from _kept(f"{named.name}, seed {seed}", promised, named.optimum, seen)


def _kept(where: str, promised: Guarantee, optimum: Fraction, seen: Observation) -> Faults:
    solution = seen.solution
    if solution is None or solution.stop_reason not in (StopReason.FINISHED, StopReason.PROVED):
        return
    if solution.cost is None:
        yield f"{where}: finished without a schedule; {promised} promises one"
        return
    verdict = judge(promised, cost=solution.cost, lower_bound=optimum, upper_value=optimum)
    if verdict.verdict is Verdict.BREACHED:
        yield (
            f"{where}: cost {shown(solution.cost)} at an optimum of "
            f"{shown(optimum)} breaches {promised}"
        )


def _known_types(seen: Observation) -> tuple[type, ...]:
    referee = referee_of(seen.problem)
    return (referee.schedules, *referee.certificates, SolverBound)


def _said(fault: BaseException) -> str:
    return f"{type(fault).__name__}: {fault}"
