"""Services that share an instance in time: the door from measurements to mixes.

The rules of cycles are exact for evenly spaced arrivals. Burstiness is a stated change of the
input, the head-room, never part of a rule.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from fractions import Fraction

from ...errors import InvalidOption
from ...files.source import StrPath
from ...files.tables import TableRow, read_table
from ...problem.parts import Block
from ...schedule.contents import Content
from ...time_sharing.duty_cycle import DutyCycleRule
from ...time_sharing.model import TimeSharedJob
from ...time_sharing.problem import TimeSharedProblem
from ...values.frozen import FrozenMap
from ...values.names import nearest
from ...values.numbers import Number, exact, whole
from ...values.words import short
from .gpus_used import SPLITS
from .latency_rule import margin_words, require_margin
from .measurements import describe_odd, find_odd_data, list_points
from .operating_point import OperatingPoint
from .queueing import RULES, QueueingRule
from .service import Service
from .serving_problem import PlanRequest, Posed, Served
from .table_guards import read_keyed

DEFAULT_FRAME_RULE = DutyCycleRule.ROUND_ROBIN
#: What is said of the rules in messages and help.
_RULES = {
    DutyCycleRule.ROUND_ROBIN: "a duty cycle and its own batch within the limit",
    DutyCycleRule.COLLECT_THEN_RUN: "two cycles within the limit",
}
_LENGTH_TOLERANCE = Fraction(1, 100)  # measured latencies that differ by more from what follows


#: The kinds of head-room there are, in words.
HEADROOMS: Mapping[str, str] = {
    "gpulet": "rates up to 550/s: the 99 % quantile of a Poisson count of one second, and 1; "
    "higher ones x 1.1; lengths x 1.1"
}
_SHARE = Fraction(99, 100)
_COUNTED_UP_TO = 550
_MORE = Fraction(11, 10)


@dataclass(frozen=True, slots=True, init=False)
class Headroom:
    """How rates and lengths of batches are raised before planning.

    Source: Choi, Lee, Kim, Park, Kwon, Huh, Serving Heterogeneous Machine Learning Models on
    Multi-GPU Servers with Spatio-Temporal Sharing, USENIX ATC '22. InvalidOption names a wrong one.

    Examples
    --------
    >>> [int(Headroom("gpulet").planned_rps(Fraction(rate))) for rate in (0, 50, 500, 600)]
    [0, 68, 554, 660]
    >>> Headroom("gpulet", {8: "2.5"}).length_ms(Fraction(10), batch=8)
    Fraction(27, 2)
    """

    name: str  #: of :data:`HEADROOMS`: ``gpulet``, as the published scheduler inflates its input
    #: ``{batch: milliseconds}``: what making up a batch takes, added to its length. Without it,
    #: nothing is; with it, every batch that was measured must have one.
    overheads_ms: FrozenMap[int, Fraction] | None

    def __init__(self, name: str, overheads_ms: Mapping[int, Number] | None = None) -> None:
        if str(name) not in HEADROOMS:
            known = "; ".join(f"{known} ({what})" for known, what in HEADROOMS.items())
            raise InvalidOption(
                f"there is no head-room {name!r}; expected {known}{nearest(str(name), HEADROOMS)}"
            )
        table: dict[int, Fraction] = {}
        for batch, value in (overheads_ms or {}).items():
            size = whole(batch, "a batch in the overheads", least=1, error=InvalidOption)
            table[size] = exact(value, f"the overhead of a batch of {size}", error=InvalidOption)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "overheads_ms", None if overheads_ms is None else FrozenMap(table))

    def planned_rps(self, rate: Fraction) -> Fraction:
        """Return the rate to plan for instead of this one; 0 for 0."""
        if not rate or rate > _COUNTED_UP_TO:
            return rate * _MORE
        return Fraction(poisson_quantile(rate, _SHARE) + 1)

    def length_ms(self, length: Fraction, batch: int) -> Fraction:
        """Return how long a batch of one process is taken to occupy its instance."""
        if self.overheads_ms is None:
            return length * _MORE
        if batch not in self.overheads_ms:
            known = ", ".join(map(str, self.overheads_ms)) or "none"
            raise InvalidOption(
                f"there is no overhead of a batch of {batch}, which was measured; there are "
                f"overheads of {known}: add it to the table"
            )
        return length * _MORE + self.overheads_ms[batch]

    def __str__(self) -> str:
        more = "" if self.overheads_ms is None else ", and an overhead a batch"
        return f"head-room {self.name!r}: {HEADROOMS[self.name]}{more}"


def read_overheads(path: StrPath) -> dict[int, Fraction]:
    """Read what making up a batch takes from a CSV table: columns ``batch,overhead_ms``."""

    def make(row: TableRow) -> tuple[int, Fraction]:
        return row["batch"].integer(minimum=1), row["overhead_ms"].number()

    table = read_table(path, ["batch", "overhead_ms"])
    return read_keyed(table, make, "batch", lambda batch, _: f"a batch of {batch}")


def poisson_quantile(mean: Fraction, share: Fraction) -> int:
    """Return the least count that a Poisson count exceeds with a probability below 1 - share.

    Exact: the sum of mean^i / i! is compared with share x e^mean, which is irrational, in
    enough digits to tell them apart. The mean is > 0 and at most some thousands.
    """
    digits = 60
    while True:
        with localcontext() as context:
            context.prec = digits
            value = Decimal(mean.numerator) / mean.denominator
            wanted = value.exp() * share.numerator / share.denominator
            term = total = Decimal(1)
            # each step is off by less than 2 units of the last digit of a sum of positive terms,
            # and e^mean by the error of the mean as well
            doubt = wanted * (10 + value).scaleb(6 - digits)
            count = 0
            while abs(total - wanted) > doubt * (1 + count):
                if total > wanted:
                    return count
                count += 1
                term = term * value / count
                total += term
        digits *= 2


@dataclass(frozen=True, slots=True, init=False)
class TimeSharing:
    """On which terms services share instances in time; InvalidOption names a wrong one.

    Examples
    --------
    >>> print(TimeSharing(max_services=3))
    blocks shared in time, round_robin: a duty cycle and its own batch within the limit; at most 3
    services in a block
    """

    #: When a mix keeps its services' limits: ``"round_robin"``, the default, or
    #: ``"collect_then_run"``.
    rule: DutyCycleRule
    max_services: int | None  #: of one instance; None for no cap
    #: How a GPU is shared under MPS: as a whole or in two shares that make it up, as the published
    #: scheduler has it (``"pairs"``, the default), or with ``"any"`` in all ways up to 100 %.
    splits: str
    headroom: Headroom | None  #: what is planned for instead of the stated rates and lengths
    latency_margin: Fraction  #: batches are taken to be slower than measured by this share

    def __init__(
        self,
        rule: str | DutyCycleRule | QueueingRule = DEFAULT_FRAME_RULE,
        max_services: int | None = None,
        splits: str = "pairs",
        headroom: str | Headroom | None = None,
        latency_margin: Number = 0,
    ) -> None:
        put = object.__setattr__
        put(self, "rule", _cycle_rule(rule))
        if max_services is not None:
            what = "max_services, of one instance,"
            max_services = whole(max_services, what, least=1, error=InvalidOption)
        put(self, "max_services", max_services)
        if splits not in SPLITS:
            raise InvalidOption(
                f"splits is {splits!r}; expected 'pairs' (a whole GPU, or two shares that make it "
                f"up) or 'any' (every multiset of shares up to 100 %)"
            )
        put(self, "splits", splits)
        if headroom is not None and not isinstance(headroom, Headroom):
            headroom = Headroom(headroom)
        put(self, "headroom", headroom)
        put(self, "latency_margin", require_margin(latency_margin))

    def planned_rps(self, rate: Fraction) -> Fraction:
        """Return the rate that is planned for instead of this one."""
        return rate if self.headroom is None else self.headroom.planned_rps(rate)

    def length_ms(self, point: OperatingPoint) -> Fraction:
        """Return how long a batch is planned to occupy its instance."""
        length = slot_ms(point)
        if self.headroom is not None:
            length = self.headroom.length_ms(length, point.batch)
        return length * (1 + self.latency_margin)

    def job(
        self, service: Service, points: Mapping[Block, Iterable[OperatingPoint]], margin: Fraction
    ) -> TimeSharedJob:
        """Return a service with points as a job; InvalidProblem if it has no limit."""
        limit = service.latency_limit_ms
        if limit is None:
            raise service.fault(
                f"service {service.name!r} has no latency limit, so that nothing bounds the cycle "
                "it could share; give it one, or plan without sharing"
            )
        lengths = {
            block: [(amount_of(point), self.length_ms(point) / 1000) for point in own]
            for block, own in points.items()
        }
        planned = self.planned_rps(service.rate_rps * (1 + margin))
        return TimeSharedJob(service.name, planned, limit / 1000, lengths)

    def __str__(self) -> str:
        cap = self.max_services
        most = "" if cap is None else f"; at most {cap} services in a block"
        slower = margin_words(self.latency_margin)
        more = f"; batch times{slower}" if slower else ""
        return f"blocks shared in time, {self.rule}: {_RULES[self.rule]}{most}{more}"


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class SharedServing(Posed[TimeSharedProblem]):
    """A problem of blocks that services share in time, and what its jobs and blocks stand for.

    Its unit of time is the second: demands are rates, limits and lengths are seconds, and the
    amount of a point is what all processes of the instance take together. The points of a service
    on a block are one for each amount, by rising amount: of two with the same, the one that takes
    less long.

    Examples
    --------
    >>> from cms import Mix
    >>> from cms.fleet import build_problem
    >>> services = [Service("a", "m", 300, 60), Service("b", "m", 100, 60)]
    >>> points = [OperatingPoint("m", "a100-80gb", "mps:60", 1, 8, 800, 10)]
    >>> serving = build_problem(services, points, sharing="time")
    >>> [str(one.rate_rps) for one in serving.served(Mix({"a": 8, "b": 8}), "mps:60")]
    ['400', '400']
    """

    sharing: TimeSharing = field(default_factory=TimeSharing)

    @property
    def rule_name(self) -> str:
        """The name of the rule of cycles."""
        return self.sharing.rule.value

    def planned_rps(self, service: Service) -> Fraction:
        """Return the service's rate with margin and head-room."""
        return self.sharing.planned_rps(service.rate_rps * (1 + self.rate_margin))

    def supply(self, service: str, block: Block) -> Fraction:
        """Return the most items per second that one such block gives a service, alone on it."""
        points = self.problem.usable_points(block).get(service, ())
        return max((point.amount / point.length for point in points), default=Fraction(0))

    def served(self, content: Content, block: Block) -> tuple[Served, ...]:
        """Return what a mix gives each service; InvalidSchedule if an amount was not measured."""
        if isinstance(content, str):
            return ()
        cycle = self.problem.duty_cycle(block, content)
        found = []
        for name in sorted(content, key=self.problem.job_index):
            point = self.point(name, block, content[name])
            slot = self.problem.job(name).point(block, content[name])
            length = None if slot is None else 1000 * slot.length
            found.append(Served(name, point, cycle.rates[name], 1000 * cycle.slack[name], length))
        return tuple(found)

    def point(self, service: str, block: Block, amount: Fraction) -> OperatingPoint:
        """Return the operating point of an amount; KeyError if none was measured there."""
        for point in self.points.get((service, block), ()):
            if amount_of(point) == amount:
                return point
        raise KeyError((service, block, amount))


def pose_shared(request: PlanRequest, sharing: TimeSharing) -> SharedServing:
    """Pose the problem in which services share blocks in time; see :func:`build_problem`."""
    points: dict[tuple[str, Block], tuple[OperatingPoint, ...]] = {}
    unservable: dict[str, str] = {}
    jobs = []
    candidates, used = request.find_candidates()
    for service, by_block in zip(request.services, candidates, strict=True):
        own = {block: _amounts(listed) for block, listed in by_block.items()}
        points |= {(service.name, block): listed for block, listed in own.items()}
        jobs.append(sharing.job(service, own, request.rate_margin))
        if service.rate_rps and (why := _why_unservable(service, own, sharing)):
            unservable[service.name] = why
    machines = request.build_machines(used, sharing.splits)
    odd = find_odd_data(request.services, request.known, request.gpus, batches=False)
    return SharedServing(
        problem=TimeSharedProblem(
            jobs=jobs, rule=sharing.rule, max_jobs=sharing.max_services, **machines
        ),
        points=FrozenMap(points),
        warnings=(*odd, *_warnings(request)),
        unservable=FrozenMap(unservable),
        sharing=sharing,
        **request.kept,
    )


def amount_of(point: OperatingPoint) -> Fraction:
    """Return what an instance takes at a time: a batch of each of its processes."""
    return Fraction(point.processes * point.batch)


def slot_ms(point: OperatingPoint) -> Fraction:
    """Return how long such a batch occupies its instance, in milliseconds.

    It follows from the throughput; where the latency differs from that by more than 1 %, it is the
    longer of the two.
    """
    computed, measured = point.computed_batch_ms, point.latency_ms
    return max(computed, measured) if _differs(point) else computed


def _differs(point: OperatingPoint) -> bool:
    computed = point.computed_batch_ms
    return abs(point.latency_ms - computed) > _LENGTH_TOLERANCE * computed


def _amounts(points: Sequence[OperatingPoint]) -> tuple[OperatingPoint, ...]:
    """Keep one point an amount: the one that takes least long, then with fewest processes."""
    found: dict[Fraction, OperatingPoint] = {}
    for point in sorted(points, key=lambda point: (slot_ms(point), point.processes)):
        found.setdefault(amount_of(point), point)
    return tuple(found[amount] for amount in sorted(found))


def _cycle_rule(rule: str | DutyCycleRule | QueueingRule) -> DutyCycleRule:
    if isinstance(rule, str) and rule in _RULES:
        return DutyCycleRule(rule)
    known = ", ".join(f"{name} ({what})" for name, what in _RULES.items())
    if isinstance(rule, str) and rule not in RULES:
        said = f"there is no rule of cycles {rule!r}"
        raise InvalidOption(f"{said}; expected {known}{nearest(rule, _RULES)}")
    name = rule if isinstance(rule, str) else getattr(rule, "name", rule)
    raise InvalidOption(
        f"the queueing rule {name!r} knows no duty cycles, so it cannot say what a block shared "
        f"in time counts for; expected {known}, or plan without sharing"
    )


def _why_unservable(
    service: Service, points: Mapping[Block, Iterable[OperatingPoint]], sharing: TimeSharing
) -> str:
    """Name the point that comes nearest to the limit and the limit it needs; empty if one fits."""
    nearest_one = min(
        (point for own in points.values() for point in own),
        key=lambda point: (sharing.length_ms(point), -point.throughput_rps),
    )
    length, limit = sharing.length_ms(nearest_one), service.latency_limit_ms
    needed = sharing.rule.needed(length, length)
    if limit is None or needed <= limit:
        return ""
    return (
        f"{service.name}: no batch fits into {short(limit, math.floor)} ms even alone, under the "
        f"rule '{sharing.rule}'; best: {nearest_one.setting}: {short(length, math.ceil)} ms a "
        f"batch, which needs a limit of {short(needed, math.ceil)} ms"
    )


def _warnings(request: PlanRequest) -> Iterator[str]:
    points = list_points(request.services, request.known)
    if apart := [point for point in points if _differs(point)]:
        yield describe_odd(
            apart, len(points), "operating points",
            "the latency and processes x batch / throughput differ by more than 1 %; the longer of "
            "the two counts as the batch's length",
        )  # fmt: skip
    own = [each.name for each in request.services if each.late_share or each.queue]
    if own:
        yield (
            "late_share and queue have no effect where blocks are shared in time (given for "
            f"{own[0]}{' and others' if len(own) > 1 else ''}): the rules of cycles are for evenly "
            "spaced arrivals"
        )
