"""The same services at other rates, or without some; a plan's problem with one of them changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, partial

from ...errors import InvalidOption
from ...problem.parts import Block
from ...problem.problem import Problem
from ...problem.row import Row, reduced
from ...values.names import nearest
from ...values.numbers import Number, exact, shown
from ..serving import OperatingPoint, Service, ServingProblem, build_problem
from ..serving.gpus_used import block_prefixes
from ..serving.load_curve import LoadCurve, PointKey
from ..serving.measurements import Measurements, find_points, sort_measurements
from ..serving.queueing import with_curves

#: Services that an error names.
_NAMED = 12


def changed_services(
    services: Iterable[Service],
    *,
    scale: Number | Mapping[str, Number] = 1,
    drop: Iterable[str] = (),
) -> tuple[Service, ...]:
    """Return services at multiples of their rates, some of them left out.

    `scale` is what all rates are multiplied by, >= 0, or those of single services, by name: the
    others stay as they are. `drop` names services that are left out. InvalidOption, with the
    nearest name, if there is no such service; or for a bad number.

    Examples
    --------
    >>> services = [Service("chat", "bert", 100, 60), Service("photos", "resnet50", 40, 30)]
    >>> print(*changed_services(services, scale={"chat": "1.5"}, drop=["photos"]))
    chat (bert): 150 requests/s within 60 ms
    """
    given = tuple(services)
    gone = set(drop)
    own = scale if isinstance(scale, Mapping) else {}
    known = {service.name: service for service in given}
    for name in (*gone, *own):
        named_service(known, name)
    if both := sorted(gone & own.keys()):
        raise InvalidOption(
            f"service {both[0]!r} is left out, and its rate is to be multiplied; give one of them"
        )
    said = "the factor of the rate of"
    factors = {n: exact(number, f"{said} {n!r}", error=InvalidOption) for n, number in own.items()}
    every = Fraction(1)
    if not isinstance(scale, Mapping):
        every = exact(scale, "the factor of all rates", error=InvalidOption)
    return tuple(
        replace(service, rate_rps=service.rate_rps * factors.get(service.name, every))
        for service in given
        if service.name not in gone
    )


def named_service(known: Mapping[str, Service], name: str) -> Service:
    """Return a service by its name; InvalidOption, with the nearest name, if there is none."""
    if name not in known:
        names = [*known]
        listed = ", ".join(names[:_NAMED]) or "none"
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        raise InvalidOption(
            f"there is no service {name!r}{nearest(name, names)}; expected one of: {listed}{more}"
        )
    return known[name]


class Posing:
    """What a plan was made from, with a service exchanged for another of its name.

    Without all points that were measured only rates may change; InvalidOption is raised if they do
    not make the plan's problem.
    """

    def __init__(
        self,
        serving: ServingProblem,
        points: Iterable[OperatingPoint] | None = None,
        load_curves: Mapping[PointKey, LoadCurve] | None = None,
    ) -> None:
        self.serving = serving
        self.points = None if points is None else tuple(points)
        self.rule = with_curves(serving.rule, load_curves)
        self._prefix = block_prefixes(serving.gpus)
        if self.points is None:
            return
        posed = self._posed(serving.services).problem
        if posed.sha256 != self.problem.sha256:
            raise InvalidOption(
                "the operating points are not those of the plan: "
                f"{_difference(self.problem, posed)}; "
                "give the table that it was made from, and its load curves if it had any"
            )

    @property
    def problem(self) -> Problem:
        """The plan's problem."""
        return self.serving.problem

    @cached_property
    def _known(self) -> Measurements:
        assert self.points is not None
        return sort_measurements(
            self.points, self.serving.gpus, max_processes=self.serving.max_processes
        )

    def candidates(self, service: Service) -> dict[Block, list[OperatingPoint]]:
        """Return the points of a service's model on the blocks that it allows."""
        found = find_points(service, self._known, self.serving.gpus)
        return {self._prefix[key] + profile: own for (key, profile), own in found.items()}

    def row(self, service: Service) -> Row:
        """Return what such a service demands, and what blocks give it."""
        problem = self.problem
        if self.points is None:
            j = problem.job_index(service.name)
            supply = [problem.rows.supply(j, at) for at in range(len(problem.blocks))]
        else:
            own = self.candidates(service)
            worth = partial(self.rule.supply, service)
            supply = [max(map(worth, own.get(b, ())), default=Fraction(0)) for b in problem.blocks]
        return reduced(self.serving.planned_rps(service), supply, f"service {service.name!r}")

    def with_row(self, service: str, row: Row) -> Problem:
        """Return the problem with one service's row exchanged."""
        rows = self.problem.rows.with_rows({self.problem.job_index(service): row})
        return self.problem.replace(rows=rows)

    def anew(self, service: Service) -> ServingProblem:
        """Pose the problem anew with a service exchanged: for a plan of its own."""
        serving = self.serving
        services = [service if one.name == service.name else one for one in serving.services]
        if self.points is None:
            problem = self.with_row(service.name, self.row(service))
            return replace(serving, problem=problem, services=tuple(services))
        return self._posed(services)

    def _posed(self, services: Iterable[Service]) -> ServingProblem:
        serving, problem = self.serving, self.serving.problem
        posed = build_problem(
            services,
            self.points or (),
            serving.gpus,
            rule=self.rule,
            rate_margin=serving.rate_margin,
            max_processes=serving.max_processes,
            routing=serving.routing,
            replica_share=serving.replica_share,
            available=serving.available,
            currency=serving.currency,
        )
        machines = problem.machine_types, problem.group_limits
        own = posed.problem.replace(machine_types=machines[0], group_limits=machines[1])
        return replace(posed, problem=own)


def _difference(mine: Problem, posed: Problem) -> str:
    """Word the first thing in which two problems of the same services differ."""
    if mine.blocks != posed.blocks:
        gone = [block for block in mine.blocks if block not in posed.blocks]
        new = [block for block in posed.blocks if block not in mine.blocks]
        said = [f"nothing was measured on {gone[0]}" if gone else ""]
        said.append(f"the plan knows nothing of {new[0]}" if new else "")
        return ", and ".join(filter(None, said)) or "instances are in another order"
    for j, name in enumerate(mine.job_names):
        for at, block in enumerate(mine.blocks):
            own, other = mine.rows.supply(j, at), posed.rows.supply(j, at)
            if own != other:
                return (
                    f"service {name!r} counts {shown(own)} requests/s for {block} in the plan, "
                    f"{shown(other)} by the table"
                )
    return "its configurations differ"
