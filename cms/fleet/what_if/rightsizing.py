"""Which rate or limit, relaxed least, saves a GPU: exactly, and proved from both sides."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from itertools import chain
from typing import Any

from ...errors import InvalidOption, UnsupportedProblem
from ...files.documents import number_to_json
from ...infeasibility.search import Asking
from ...problem.problem import Problem
from ...running.interrupt import CtrlC
from ...solving.driver import Arguments, CancelEvent
from ...solving.solution import Solution
from ...values.numbers import Number, exact, shown
from ..serving import CapacityRule, OperatingPoint, Plan, Service
from ..serving.latency_rule import Breakpoint
from ..serving.load_curve import LoadCurve, PointKey
from .explaining import Alternative, BlockChoices, Explanation
from .least import (
    PARTS_OF_THE_TIME,
    Base,
    Climb,
    Outcome,
    Question,
    Relaxation,
    What,
    limit_ladder,
    rate_ladder,
)  # fmt: skip
from .services import Posing, named_service

WANTED = "looking for what would save a GPU"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rightsizing:
    """What each service would have to give up so that a plan costs less."""

    cost: Fraction  #: of the plan, or of a cheaper one that was found on the way
    target: Fraction  #: what is wanted
    proved: bool  #: whether the wanted cost is proved impossible without any relaxation
    better: Plan | None  #: a cheaper plan than the given one, without any relaxation
    #: The least change first; then those that are not enough, or open.
    relaxations: tuple[Relaxation, ...]
    unasked: tuple[str, ...]  #: what was not looked at, and why, a sentence each
    seconds: float

    @property
    def least(self) -> Relaxation | None:
        """The relaxation that changes least; None if none was found to be enough."""
        found = self.relaxations[0] if self.relaxations else None
        return found if found is not None and found.plan is not None else None

    @property
    def is_least_of_all(self) -> bool:
        """Whether no smaller change of any number (profiles are none) is enough: proved."""
        first = self.least
        if first is None or first.change is None or first.outcome is not Outcome.LEAST:
            return False
        numbers = (each for each in self.relaxations if each.what is not What.ALLOWED_PROFILES)
        ruled_out = (each.ruled_out for each in numbers if each is not first)
        return all(change is None or change >= first.change for change in ruled_out)


def rightsize(
    plan: Plan,
    points: Iterable[OperatingPoint] | None = None,
    *,
    load_curves: Mapping[PointKey, LoadCurve] | None = None,
    services: Iterable[str] | None = None,
    to: Number | None = None,
    time_limit: float | None = 60.0,
    seed: int = 0,
    threads: int | None = None,
    cancel: CancelEvent | None = None,
    on_step: Callable[[int, int], None] | None = None,
) -> Rightsizing:
    """Find for each service how little of its rate or a limit would save a GPU, if given up.

    A plan keeps only the points in use, and a looser limit may admit others: `points` are all that
    were measured, with `load_curves` if it was made with any. Without them only rates are looked
    at. `services` leaves others out; `to` is the cost that is wanted, by default the next one below
    the plan's. The time limit is in seconds for all together; `cancel` and Ctrl-C end with what is
    known. `on_step` is called after each number with how many are done, of how many. InvalidOption
    for an unknown service, a bad cost, or points that are not the plan's; UnsupportedProblem if
    there is no schedule, or services share instances in time.

    Plans are asked for at breakpoints alone: sums that blocks can add up to, limits at which a
    point counts for more. So an answer ``least`` is exact: a checked plan at the breakpoint, and a
    checked certificate just short of it. Without a time limit the same arguments give the same
    answer.

    Examples
    --------
    >>> from cms import solve
    >>> from cms.fleet.serving import OperatingPoint, Plan, Service, build_problem
    >>> service = Service("chat", "bert", rate_rps=130, latency_limit_ms=100)
    >>> points = [
    ...     OperatingPoint("bert", "a100-80gb", "3g.40gb", 1, 2, 60, 33),
    ...     OperatingPoint("bert", "a100-80gb", "3g.40gb", 1, 8, 90, 120),
    ... ]
    >>> serving = build_problem([service], points, rule="plain")
    >>> found = rightsize(Plan(serving, solve(serving.problem)), points)
    >>> for each in found.relaxations:
    ...     print(each.what, str(each.now), str(each.enough), str(each.short), each.outcome)
    rate 130 120 130 least
    latency_limit 100 120 100 least
    """
    started = time.monotonic()
    serving = plan.unshared(WANTED)
    how = Arguments(time_limit=time_limit, seed=seed, threads=threads, cancel=cancel)
    if plan.solution.cost is None:
        raise UnsupportedProblem(
            f"{WANTED} takes plans with a schedule, and this one has none; 'cms plan' says what "
            "would do"
        )
    if serving.problem.rows.ruled:
        raise UnsupportedProblem(f"{WANTED} takes plans of weighted routing without replicas")
    if not plan.solution.cost:
        raise UnsupportedProblem("the plan costs nothing, so that there is nothing to save")
    known = {service.name: service for service in serving.services}
    names = known if services is None else dict.fromkeys(services)
    chosen = [named_service(known, name) for name in names]
    wanted = None if to is None else exact(to, "the wanted cost", error=InvalidOption)
    if wanted is not None and wanted >= plan.solution.cost:
        raise InvalidOption(
            f"the wanted cost is {shown(wanted)}, and the plan costs {shown(plan.solution.cost)}; "
            "expected less"
        )
    posing = Posing(serving, points, load_curves)
    with CtrlC() as interrupt:
        asking = Asking("auto", seed, threads, started + how.seconds, interrupt, cancel)
        base, better = Base(posing, plan.solution, wanted, asking), None
        if base.proof is None:  # what is not proved is solved anew
            anew = asking.answer(posing.problem, part=2, start=plan.solution.schedule)
            if anew.lower_bound < plan.solution.lower_bound:
                certificate, bound = plan.solution.certificate, plan.solution.lower_bound
                anew = replace(anew, certificate=certificate, lower_bound=bound)
            better = None if anew.cost == plan.solution.cost else Plan(serving, anew)
            base = Base(posing, anew, wanted, asking)
        found, unasked = list[Relaxation](), dict[str, None]()
        asked = [] if base.cost <= base.target else [*_questions(base, chosen, unasked)]
        # What may be enough first: the smallest change, then what is unknown.
        asked.sort(key=lambda each: _none_last(each.least_change()))
        for at, question in enumerate(asked):
            found.append(question.answer())
            if on_step is not None:
                on_step(at + 1, len(asked))
    places = [*known]
    found.sort(key=lambda each: (
        each.plan is None, *_none_last(each.change), each.outcome is Outcome.NONE,
        places.index(each.service),
    ))  # fmt: skip
    return Rightsizing(
        cost=base.cost, target=base.target, proved=base.proof is not None, better=better,
        relaxations=tuple(found), unasked=tuple(unasked), seconds=time.monotonic() - started,
    )  # fmt: skip


def _none_last(change: Fraction | None) -> tuple[bool, Fraction]:
    return change is None, change or Fraction(0)


class _LateShare(Question):
    """How many requests may be late."""

    def __init__(self, base: Base, service: Service, rule: CapacityRule) -> None:
        super().__init__(base, service, What.LATE_SHARE, rule.tolerated(service))
        points = [*chain.from_iterable(base.posing.candidates(service).values())]
        self._shares = rule.looser_late_shares(service, points)

    def least_change(self) -> Fraction | None:
        now = self.now or Fraction(1)
        return (self._shares[0] - now) / now if self._shares else None

    def answer(self) -> Relaxation:
        """Try the late shares one by one.

        A load curve that a larger share lets count may say less than the table that counted before.
        """
        base, posing = self.base, self.base.posing
        certificate, short, unsettled = base.proof, None, base.proof is None
        for share in self._shares:
            if base.asking.over:
                unsettled = True
                break
            other = replace(self.service, late_share=share)
            problem = posing.with_row(other.name, posing.row(other))
            if base.proof is not None and base.is_too_dear(problem, base.proof):
                short = short if unsettled else share
                continue
            answer = base.asking.answer(problem, part=PARTS_OF_THE_TIME[0])
            if base.is_reached(answer):
                outcome, reached = Outcome.FOUND if unsettled else Outcome.LEAST, Breakpoint(share)
                return self.relaxation(
                    outcome, reached, answer, other, short=short, certificate=certificate
                )
            if not base.is_too_dear(problem, answer.certificate):
                unsettled = True
            elif not unsettled:
                short, certificate = share, answer.certificate
        outcome = Outcome.OPEN if unsettled else Outcome.NONE
        return self.relaxation(outcome, short=short, certificate=certificate)


class _Profiles(Question):
    """Which instances it allows: `more` are those that its model was measured on besides."""

    def __init__(self, base: Base, service: Service, more: Sequence[str]) -> None:
        super().__init__(base, service, What.ALLOWED_PROFILES, None)
        self._more = more

    def least_change(self) -> Fraction | None:
        """There is no telling how much one profile is."""
        return None

    def answer(self) -> Relaxation:
        """Allow all, then each alone; where none is known to be enough, all are together."""
        base, more = self.base, self._more
        if base.asking.over:
            return self.relaxation(Outcome.OPEN)
        other, problem, answer = self._allow(more)
        if not base.is_reached(answer):
            if not base.is_too_dear(problem, answer.certificate):
                return self.relaxation(Outcome.OPEN)
            return self.relaxation(Outcome.NONE, certificate=answer.certificate)
        enough: dict[str, tuple[Solution, Service]] = {}
        for name in more:
            if self.base.asking.over:
                break
            one, _, found = (other, problem, answer) if len(more) == 1 else self._allow((name,))
            if base.is_reached(found):
                enough[name] = found, one
        if not enough:
            return self.relaxation(Outcome.FOUND, None, answer, other, profiles=more)
        # nothing is less than one, if none at all is proved not to do
        outcome = Outcome.FOUND if base.proof is None else Outcome.LEAST
        first = next(iter(enough.values()))
        return self.relaxation(
            outcome, None, *first, profiles=tuple(enough), certificate=base.proof
        )

    def _allow(self, more: Sequence[str]) -> tuple[Service, Problem, Solution]:
        allowed = (*(self.service.allowed_profiles or ()), *more)
        other = replace(self.service, allowed_profiles=allowed)
        problem = self.base.posing.anew(other).problem
        return other, problem, self.base.asking.answer(problem, part=PARTS_OF_THE_TIME[0])


def _questions(
    base: Base, services: Iterable[Service], unasked: dict[str, None]
) -> Iterator[Question]:
    """Iterate over what can be asked of services; note why other numbers cannot be relaxed."""
    posing, limited = base.posing, False
    rule: Any = posing.rule
    for service in services:
        if service.rate_rps:
            yield Climb(base, service, What.RATE, rate_ladder(posing, service))
        limited |= service.latency_limit_ms is not None or service.allowed_profiles is not None
        if posing.points is None:
            continue
        if service.latency_limit_ms is not None:
            if hasattr(rule, "next_limit"):
                ladder = limit_ladder(posing, service, rule.next_limit)
                yield Climb(base, service, What.LATENCY_LIMIT, ladder)
            else:
                said = f"the rule {rule.name!r} does not say where its supplies change"
                unasked[f"latency limits: {said}"] = None
            if isinstance(rule, CapacityRule):
                yield _LateShare(base, service, rule)
        if service.allowed_profiles is not None:
            everything = posing.candidates(replace(service, allowed_profiles=None))
            allowed = posing.candidates(service)
            if more := tuple(block for block in everything if block not in allowed):
                yield _Profiles(base, service, more)
    if limited and posing.points is None:
        unasked[
            "limits: a looser one may admit operating points that the plan does not keep; give all "
            "that were measured"
        ] = None


def explanation_to_json(found: Explanation) -> dict[str, Any]:
    """Write an explanation; costs are those of any plan with the choice, at least."""
    return {
        "service": found.given.service.name,
        **_attributes(found.given.service, "model", "rate_rps"),
        **_attributes(found.given, "planned_rps", "provided_rps"),
        **_attributes(found, "cost", "bound", "lower_bound", "cases", "pays"),
        "choices": _plain(found.blocks),
        "useless": list(found.useless),
    }


def rightsizing_to_json(found: Rightsizing) -> dict[str, Any]:
    """Write what would save a GPU, the least change first."""
    return {
        **_attributes(found, "cost", "target", "proved"),
        "better": None if found.better is None else _plain(found.better.solution.cost),
        "least_of_all": found.is_least_of_all,
        **_attributes(found, "relaxations", "unasked"),
        "seconds": round(found.seconds, 3),
    }


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if isinstance(value, BlockChoices):
        return _attributes(value, *(each.name for each in fields(value)))
    if isinstance(value, Alternative):
        possible = {"possible": value.bound is not None}
        return possible | _attributes(value, "bound", "more", "at_least")
    if isinstance(value, Relaxation):
        numbers = _attributes(value, "profiles")
        if value.what is not What.ALLOWED_PROFILES:
            # between the two numbers nothing changes, where the first is the least
            short = None if value.outcome is Outcome.LEAST else _plain(value.short)
            numbers = _attributes(value, "now", "enough", "above", "change")
            numbers["too_little"] = short
        cost = None if value.plan is None else _plain(value.plan.solution.cost)
        said = {"what": value.what.value, "outcome": value.outcome.value}
        return {"service": value.service, **said, **numbers, "cost": cost}
    return number_to_json(value) if isinstance(value, Fraction) else value


def _attributes(of: object, *names: str) -> dict[str, Any]:
    return {name: _plain(getattr(of, name)) for name in names}
