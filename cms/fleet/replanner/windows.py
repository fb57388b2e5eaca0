"""Windows of time: the fewest GPUs for the highest rates in one, proved, and asked once."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import ceil, inf
from typing import Any

from ...errors import CmsError, InvalidOption, InvalidProblem
from ...solving.solve import solve
from ...values.fields import CheckedFields
from ...values.numbers import Number, exact, shown
from ..deployment import Deployment
from ..hardware import Gpu
from ..placement.gpu_group import cost_at_work, list_available
from ..serving.capacity import CapacityRule
from ..serving.gpus_used import find_gpus, key_by_gpu
from ..serving.operating_point import OperatingPoint
from ..serving.plan import Plan
from ..serving.posing import build_problem
from ..serving.queueing import DEFAULT_RULE, queueing_rule
from ..serving.service import Service
from ..serving.serving_problem import ServingProblem
from .forecast import Forecast, Known, RateForecast
from .rates import Rates


class Planner:
    """Plans for rates; what was planned once is not planned again.

    The services' own rates count for nothing: plans are for the rates asked for, and `margin` more.
    The `method` makes them (see `cms.solve`), in `time_limit` seconds each; `terms` are further
    arguments of `build_problem`.

    InvalidOption if the margin is negative, or a limit on GPU types together counts one that is
    none of `gpus`, or one twice.

    Examples
    --------
    >>> point = OperatingPoint("bert", "a100-80gb", "3g.40gb", 1, 2, "60.5", 33)
    >>> planner = Planner([Service("chat", "bert", 0, 400)], [point], ["a100-80gb"])
    >>> [str(planner.plan({"chat": Fraction(rate)}).solution.cost) for rate in (100, 300)]
    ['1', '3']
    """

    def __init__(
        self,
        services: Iterable[Service],
        operating_points: Iterable[OperatingPoint],
        gpus: Sequence[str | Gpu],
        *,
        margin: Number = 0,
        method: str = "auto",
        time_limit: float | None = 60.0,
        seed: int = 0,
        threads: int | None = None,
        cancel: threading.Event | None = None,
        **terms: Any,
    ) -> None:
        self.services = tuple(services)
        self.margin = exact(margin, "the margin", error=InvalidOption)
        self._points, self._gpus, self._terms = tuple(operating_points), find_gpus(gpus), terms
        if not terms.get("available"):
            own = self._gpus
            terms["group_limits"] = [
                replace(it, weights=key_by_gpu(f"weight in group {it.name!r}", it.weights, own))
                for it in terms.get("group_limits", ())
            ]
        self._how: dict[str, Any] = {
            "method": method, "time_limit": time_limit, "seed": seed, "threads": threads,
            "cancel": cancel,
        }  # fmt: skip
        self._known: dict[tuple[Fraction, ...], Plan] = {}

    @property
    def asked(self) -> int:
        """How many plans were made."""
        return len(self._known)

    @property
    def shares(self) -> bool:
        """Whether services share instances in time."""
        return self._terms.get("sharing") is not None

    def by(self, method: str) -> Planner:
        """Return one that plans the same by another method."""
        return self._again(method=method)

    def _again(self, **changed: Any) -> Planner:
        how = {"margin": self.margin, **self._how, **self._terms, **changed}
        return Planner(self.services, self._points, self._gpus, **how)

    def on(self, now: Deployment) -> Planner:
        """Return one that plans for the GPUs of a fleet, and knows the load curves of its rule.

        Limits on GPU types together count every GPU of these types, unless the planner's terms say
        which GPUs are `available`. Where services share instances in time GPUs are empty ones.
        """
        if self.shares:
            return self
        terms = dict(self._terms)
        if not terms.get("available"):
            terms["available"] = there = list_available(now, self._gpus)
            terms["group_limits"] = [
                replace(it, weights={e.name: n for e in there if (n := it.weights.get(e.gpu))})
                for it in terms["group_limits"]
            ]
        own, rule = queueing_rule(terms.get("rule") or DEFAULT_RULE), now.rule
        if isinstance(rule, CapacityRule) and isinstance(own, CapacityRule) and not own.certified:
            curves = {**rule.curves, **own.curves, **(terms.get("load_curves") or {})}
            terms["load_curves"] = curves or None
        return self._again(**terms)

    def serving(self, rates_rps: Mapping[str, Fraction]) -> ServingProblem:
        """Build the problem of some rates."""
        services = [replace(each, rate_rps=rates_rps[each.name]) for each in self.services]
        parts = services, self._points, self._gpus
        found: ServingProblem = build_problem(*parts, rate_margin=self.margin, **self._terms)
        return found

    def plan(self, rates_rps: Mapping[str, Fraction]) -> Plan:
        """Plan for rates, at no cost (None) if none serves them; CmsError if time was up."""
        key = tuple(rates_rps[each.name] for each in self.services)
        if key not in self._known:
            serving = self.serving(rates_rps)
            solution = solve(serving.problem, **self._how)
            if solution.status == "no_schedule":
                raise CmsError("no plan was found in time; expected a longer time limit")
            self._known[key] = Plan(serving, solution)
        return self._known[key]

    @property
    def prices(self) -> dict[str, Fraction]:
        """What an empty GPU of each type costs, by key."""
        costs = key_by_gpu("cost", self._terms.get("costs"), self._gpus)
        return {it.key: exact(costs.get(it.key, 1), f"the cost of {it.key}") for it in self._gpus}

    def cost_of(self, fleet: Deployment) -> Fraction:
        """Return what the GPUs with managed work cost together; beside foreign work, nothing."""
        return cost_at_work(fleet, self.prices)

    @cached_property
    def largest_supply(self) -> dict[str, Fraction]:
        """What the best instance of each service counts for; 0 if nothing serves it."""
        serving = self.serving({each.name: Fraction(1) for each in self.services})
        supplies = {
            each.name: [serving.supply(each.name, block) for block in serving.problem.blocks]
            for each in self.services
        }
        return {name: max(own, default=Fraction(0)) for name, own in supplies.items()}


@dataclass
class Windows:
    """Windows between moments at which plans may change, and what they cost as far as asked.

    Window (a, b) is from moment a to moment b, and goes on for the lead: the plan of the window
    before must do until its successor stands. Moments are `every` steps apart, at most `most` after
    the first, and a change may take `lead` steps.

    What was not asked lies between bounds: rates in a window are no lower than in a part of it, so
    it costs no less. A change of plans costs `replan_cost`, and besides `restart_cost` for each
    start of an instance, in the unit of a GPU's cost for an hour.
    """

    courses: RateForecast
    every: int
    lead: Fraction
    most: int
    planner: Planner
    replan_cost: Fraction = Fraction(0)
    restart_cost: Fraction = Fraction(0)
    asked: dict[tuple[int, int], Plan] = field(default_factory=dict, repr=False)  #: plans so far
    _rates: dict[tuple[int, int], dict[str, Fraction]] = field(default_factory=dict, repr=False)
    _least: dict[tuple[int, int], Fraction | float] = field(default_factory=dict, repr=False)

    @property
    def count(self) -> int:
        """How many moments there are after the first."""
        return min(self.most, self.courses.steps // self.every)

    @property
    def hours(self) -> Fraction:
        """Hours from one moment to the next."""
        return self.every * self.courses.step_s / 3600

    @property
    def now(self) -> dict[str, Fraction]:
        """Each service's rate at the first moment."""
        return {name: own[0] for name, own in self.courses.rates_rps.items()}

    def rates(self, a: int, b: int) -> dict[str, Fraction]:
        """Return the rates that a window is planned for: each service's highest."""
        if (a, b) not in self._rates:
            ends = Fraction(a * self.every), b * self.every + self.lead
            highest = self.courses.highest
            self._rates[a, b] = {name: highest(name, *ends) for name in self.courses.rates_rps}
        return self._rates[a, b]

    def ask(self, a: int, b: int) -> Plan:
        """Plan a window."""
        if (a, b) not in self.asked:
            found = self.asked[a, b] = self.planner.plan(self.rates(a, b))
            least = inf if found.solution.cost is None else found.solution.lower_bound
            for longer in product(range(a + 1), range(b, self.count + 1)):
                self._least[longer] = max(self._least.get(longer, 0), least)
        return self.asked[a, b]

    def cost(self, a: int, b: int) -> Fraction | None:
        """Return a window's cost, or a bound from below if not asked; None if it is endless."""
        known = self.asked.get((a, b))
        each = self._least.get((a, b), 0) if known is None else known.solution.cost
        return None if each is None or each == inf else Fraction(each) * (b - a) * self.hours

    def between(self, has_rps: Mapping[str, Fraction], b: int, c: int) -> Fraction:
        """Return what it costs at least to go over to window (b, c) from these rates.

        As many instances start as the largest ones of each service that its growth takes. What a
        window has is with the margin.
        """
        if not self.restart_cost:
            return self.replan_cost
        supply = self.planner.largest_supply
        starts = sum(
            max(0, ceil((rate - has_rps.get(name, 0)) / supply[name]))
            for name, rate in self.needs(b, c).items()
            if supply[name]
        )
        return self.replan_cost + starts * self.restart_cost

    def change(self, a: int, b: int, c: int) -> Fraction:
        """Return what it costs at least to go over from window (a, b) to (b, c)."""
        return self.between(self.needs(a, b), b, c)

    def needs(self, a: int, b: int) -> dict[str, Fraction]:
        """Return what a plan for a window has at least: its rates and the margin."""
        return {name: (1 + self.planner.margin) * r for name, r in self.rates(a, b).items()}


#: The most moments at which plans may change: the search takes the cube of their number.
_MAX_MOMENTS = 200


@dataclass(frozen=True)
class Terms(CheckedFields):
    """How often plans may change, how far is looked ahead, and what changes cost.

    InvalidOption if the horizon is shorter than `every_s` or 200 times as long, or a number is < 0.
    """

    refusal = InvalidOption
    every_s: Fraction = Fraction(3600)  #: from one moment at which plans may change to the next
    lead_s: Fraction = Fraction(1800)  #: what a change may take: plans are made for so much longer
    horizon_s: Fraction = Fraction(4 * 3600)  #: how far is looked ahead
    replan_cost: Fraction = Fraction(4)  #: GPU hours of a change
    restart_cost: Fraction = Fraction(1, 20)  #: GPU hours of each start of an instance
    hysteresis: Fraction = Fraction(1, 50)  #: see `decide`
    regrouped: bool = False  #: see `change_to`

    def __post_init__(self) -> None:
        self._number("every_s", above=0)
        for name in ("lead_s", "replan_cost", "restart_cost", "hysteresis"):
            self._number(name)
        if self.horizon_s < self.every_s:
            raise InvalidOption(
                f"the horizon is {shown(self.horizon_s)} s, shorter than the "
                f"{shown(self.every_s)} s from one plan to the next; expected at least as long"
            )
        _require_few(int(self.horizon_s / self.every_s), "the horizon", self.every_s)

    def steps(self, step_s: Fraction) -> int:
        """How many steps of rates there are from one moment to the next: a whole number."""
        steps = self.every_s / step_s
        if steps.denominator != 1:
            raise InvalidOption(
                f"plans may change every {shown(self.every_s)} s, and rates are there every "
                f"{shown(step_s)} s; expected a multiple of that"
            )
        return int(steps)

    def windows(self, forecast: Forecast, history: Rates, planner: Planner) -> Windows:
        """Return the windows ahead of the last moment of a history."""
        every, lead = self.steps(history.step_s), self.lead_s / history.step_s
        most, costs = int(self.horizon_s / self.every_s), (self.replan_cost, self.restart_cost)
        courses = forecast.courses(history, most * every + ceil(lead))
        return Windows(courses, every, lead, most, planner, *costs)


@dataclass(frozen=True)
class Scene:
    """The part of a trace that is played, what is known before it, and the terms.

    It is played from the moment `first` on, and all before is history. InvalidProblem if a rate of
    that part is not known, or it is shorter than one change.
    """

    trace: Rates
    first: int
    planner: Planner
    terms: Terms

    def __post_init__(self) -> None:
        part = self.trace.between(self.first, self.trace.count - 1)
        if part.gaps:
            more = f", and {len(part.gaps) - 1} more" if part.gaps[1:] else ""
            raise InvalidProblem(
                f"the trace has a gap: {part.gaps[0]}{more}; expected every rate of the part that "
                "is played"
            )
        if self.count < 1:
            raise InvalidProblem(
                f"the trace is {shown(part.end_s - part.start_s)} s long, shorter than the "
                f"{shown(self.terms.every_s)} s from one plan to the next"
            )
        _require_few(self.count, "the part that is played", self.terms.every_s)

    @property
    def every(self) -> int:
        """Steps of the trace from one moment at which plans may change to the next."""
        return self.terms.steps(self.trace.step_s)

    @property
    def count(self) -> int:
        """How many times `every` the part that is played lasts."""
        return (self.trace.count - 1 - self.first) // self.every

    @cached_property
    def courses(self) -> RateForecast:
        """The rates of the part that is played."""
        return Known(self.trace).courses(self.history(0), self.count * self.every)

    def history(self, moment: int) -> Rates:
        """Return what is known at a moment of the part that is played."""
        return self.trace.between(0, self.first + moment * self.every)

    def windows(self, replan_cost: Fraction = Fraction(0)) -> Windows:
        """Return the windows of the part that is played, its rates known."""
        lead = self.terms.lead_s / self.trace.step_s
        return Windows(self.courses, self.every, lead, self.count, self.planner, replan_cost)


def _require_few(count: int, what: str, every_s: Fraction) -> None:
    if count > _MAX_MOMENTS:
        raise InvalidOption(
            f"{what} has {count} moments at which plans may change, one every {shown(every_s)} s; "
            f"expected at most {_MAX_MOMENTS}: change plans less often, or make it shorter"
        )
