"""Services, points, and what a point counts for: computed again where the rule can be.

A rule about batches says it outright: all that the point works off, if one batch takes no more than
a share of the latency limit. By a rule about load a point supplies what it sustains within the
limit. A load curve beside the point says what that is: the last of its rates before its latencies
are beyond the limit, since between two rates nothing is known. Without a curve the shipped tables
do. What is of each process alone and fed at random is proved here again, by the steps of
:mod:`~proofs_checks.checker.loads`. Several processes on one queue sustain more: that was
simulated. Within a limit rates are rounded down to thousandths, or to four digits where small.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from itertools import pairwise, takewhile
from typing import NamedTuple

from .fleet import boolean, one_of, share_of, text_or_null
from .loads import why_not
from .reading import ZERO, Fault, as_a, integer, new_name, number, optional, record, show
from .tables import Entry, looked_up, ratios

SERVICE = "name model rate_rps latency_limit_ms late_share queue allowed_profiles extra"
POINT = (
    "name service model device profile processes batch throughput_rps latency_ms extra evidence "
    "load_curve supply_rps"
)
_TEXTS = ("model", "device", "profile")
_WHOLES = ("processes", "batch")
_NUMBERS = ("throughput_rps", "latency_ms", "supply_rps")
_QUEUES = ("instance", "process")
_CURVES = ("measured", "simulated")
#: What is said of supplies that are not computed or proved here.
TAKEN, SIMULATED = "are taken from the file", "are by the table of what was simulated"


class Service(NamedTuple):
    """What its users ask for."""

    model: str
    rate: Fraction
    limit: Fraction | None
    late_share: Fraction | None
    queue: str | None
    more: tuple[object, ...] = ()  # no rule speaks of it: the profiles allowed, the user's columns


class Point(NamedTuple):
    """What an instance runs, and what that counts for."""

    service: str
    model: str
    device: str
    profile: str
    processes: int
    batch: int
    throughput: Fraction
    latency: Fraction
    supply: Fraction


class Curve(NamedTuple):
    """Rates, and the latency that all but a share of the requests keep at each."""

    rates: list[Fraction]
    latencies: list[Fraction]
    late_share: Fraction
    evidence: str
    digest: str


class Rule(NamedTuple):
    """How a point becomes a supply: by ``share`` of the limit, or by the load (share None)."""

    name: str
    share: Fraction | None
    strict: bool
    late_share: Fraction
    queue: str
    certified: bool
    margin: Fraction = ZERO  # batches are taken to be slower than measured by this share


#: What the package's names of rules mean.
_NAMED = {
    each.name: each
    for each in (
        Rule("parvagpu", Fraction(9, 20), True, ZERO, "", False),
        Rule("half", Fraction(1, 2), False, ZERO, "", False),
        Rule("plain", Fraction(1), False, ZERO, "", False),
        Rule("capacity", None, False, Fraction(1, 100), "instance", False),
        Rule("capacity_certified", None, False, Fraction(1, 100), "process", True),
    )
}


def read_services(value: object, what: str = "services") -> dict[str, Service]:
    """Read services by name."""
    services: dict[str, Service] = {}
    for at, entry in enumerate(as_a(list, value, what)):
        fields = record(entry, f"{what}[{at}]", SERVICE)
        name = new_name(fields["name"], f"the name of {what}[{at}]")
        if name in services:
            raise Fault(f"{what} has the service {show(name)} twice")
        queue, allowed = fields["queue"], fields["allowed_profiles"]
        service = Service(
            new_name(fields["model"], f"the model of service {show(name)}"),
            number(fields["rate_rps"], "the rate_rps of service", name),
            optional(fields["latency_limit_ms"], "the latency_limit_ms of service", name),
            optional(fields["late_share"], "the late_share of service", name),
            None if queue is None else one_of(_QUEUES, queue, f"the queue of service {name!r}"),
        )
        if service.limit == 0:
            raise Fault(f"the latency_limit_ms of service {show(name)} is 0")
        if service.late_share is not None:
            _tolerated(service.late_share, f"the late_share of service {show(name)}")
            if service.limit is None:
                raise Fault(f"service {show(name)} has a late_share and no limit to be late for")
        if allowed is not None:
            profiles = as_a(list, allowed, "the allowed_profiles of service", name)
            for each in profiles or [""]:
                new_name(each, f"an allowed profile of service {show(name)}")
        own = _own_texts(fields["extra"], "service", name)
        services[name] = service._replace(more=(allowed and tuple(dict.fromkeys(allowed)), own))
    return services


def _tolerated(share: Fraction, what: str) -> Fraction:
    if not 0 < share < 1:
        raise Fault(f"{what} is {show(share)}, not between 0 and 1")
    return share


def _own_texts(value: object, kind: str, name: str) -> dict[str, str]:
    """Read the user's own columns."""
    own = as_a(dict, value, f"extra of {kind}", name)
    return {k: as_a(str, each, f"{show(k)} in extra of {kind}", name) for k, each in own.items()}


def read_rule(value: object) -> Rule | None:
    """Read the rule; None: there is none, or one of the user's own, of which nothing is known."""
    if value is None:
        return None
    table = as_a(dict, value, "the rule")
    name = as_a(str, table.get("name"), "the name of the rule")
    rule = None
    if "latency_share" in table:
        fields = record(table, "the rule", "name latency_share strict", "source latency_margin")
        share = number(fields["latency_share"], "the latency_share of the rule")
        if not 0 < share <= 1:
            raise Fault(f"the latency_share of the rule is {show(share)}, not > 0 and <= 1")
        as_a(str, fields.get("source", ""), "the source of the rule")
        rule = Rule(name, share, boolean(fields["strict"], "strict of the rule"), ZERO, "", False)
    elif "late_share" in table:
        fields = record(table, "the rule", "name late_share queue certified", "latency_margin")
        late = _tolerated(number(fields["late_share"], "the late_share"), "the rule's late_share")
        queue = one_of(_QUEUES, fields["queue"], "the queue of the rule")
        certified = boolean(fields["certified"], "certified of the rule")
        rule = Rule(name, None, False, late, queue, certified)
    if _NAMED.get(name, rule) != rule:
        raise Fault(f"the rule is not what {show(name)} means")
    margin = number(table.get("latency_margin", 0), "the latency_margin of the rule")
    return None if rule is None else rule._replace(margin=margin)


def read_points(
    value: object,
    services: Mapping[str, Service],
    rule: Rule | None,
    before: Mapping[str, Service],
    old: set[str],
) -> tuple[dict[str, Point], list[str], Counter[str]]:
    """Read the points by name; say which supplies are wrong, and count those that rest on more.

    What the rule grants a service as it was ``before`` alone is put into ``old``.
    """
    points: dict[str, Point] = {}
    names: dict[tuple[Point, str], str] = {}
    bare: list[tuple[str, Point, Service]] = []
    faults: list[str] = []
    taken: Counter[str] = Counter()
    curves: dict[tuple[object, ...], Curve] = {}
    for at, entry in enumerate(as_a(list, value, "points")):
        fields = record(entry, f"points[{at}]", POINT)
        name = as_a(str, fields["name"], f"the name of points[{at}]")
        if name in points:
            raise Fault(f"the point {show(name)} is there twice")
        service = one_of(services, fields["service"], f"the service of point {show(name)}")
        model, device, profile = (
            new_name(fields[k], f"the {k} of point {show(name)}") for k in _TEXTS
        )
        processes, batch = (integer(fields[k], f"the {k} of point", name, least=1) for k in _WHOLES)
        point = points[name] = Point(
            service, model, device, profile, processes, batch,
            *(number(fields[k], f"the {k} of point", name) for k in _NUMBERS),
        )  # fmt: skip
        _own_texts(fields["extra"], "point", name)
        if (same := (point, str(sorted(fields["extra"].items())))) in names:
            raise Fault(f"there are two names of one point, {show(names[same])} and {show(name)}")
        names[same] = name
        if not (point.throughput and point.latency):
            raise Fault(f"the throughput_rps or the latency_ms of point {show(name)} is 0")
        if profile.startswith("mps:") and (share_of(profile) is None or processes > 1):
            raise Fault(f"point {show(name)} is on {show(profile)} with {processes} processes")
        evidence = text_or_null(fields["evidence"], "the evidence of point", name)
        of = services[service], before.get(service)
        if model not in {each.model for each in of if each is not None}:
            faults.append(f"point {show(name)} is of another model than its service")
        curve = read_curve(fields["load_curve"], f"the load curve of point {show(name)}")
        if curve is not None and curves.setdefault(point[1:6], curve) != curve:
            raise Fault(f"point {show(name)} has another load curve than the same point before")
        if rule is None:
            taken[TAKEN] += 1
            continue
        if curve is not None and rule.certified:
            raise Fault(f"point {show(name)} has a load curve, and the rule takes none")
        granted, rests = _granted(point, of[0], rule, curve)
        if point.supply != granted and point.supply and of[1] is not None:
            earlier, rests_then = _granted(point, of[1], rule, curve)
            if point.supply == earlier and (earlier < granted or not granted):
                old.update([name] if not granted else [])
                granted, rests = earlier, rests_then
        if point.supply != granted:
            faults.append(
                f"point {show(name)} supplies {show(point.supply)} requests/s: the rule grants "
                f"{show(granted)}"
            )
        elif isinstance(rests, str):
            taken[rests] += 1
        elif rests is not None and (why := _cached(*rests[1:])):
            faults.append(f"point {show(name)} supplies {show(point.supply)} requests/s: {why}")
        said = None
        if rule.share is None and of[0].limit is not None:
            said = "certified" if rule.certified else "table"
            if _speaks(curve, point, of[0], rule):
                said = fields["load_curve"]["evidence"]
        if evidence != said:
            faults.append(f"the evidence of point {show(name)} is {show(evidence)}, not {said}")
        if curve is None:
            bare.append((name, point, of[0]))
    if rule is not None and rule.share is None:
        faults += [
            f"point {show(name)} has no load curve, and the same point of another service has one"
            for name, point, service in bare
            if service.limit is not None and _speaks(curves.get(point[1:6]), point, service, rule)
        ]
    return points, faults, taken


def read_curve(value: object, what: str) -> Curve | None:
    """Read a load curve; None if there is none."""
    if value is None:
        return None
    fields = record(value, what, "late_share evidence rates_rps latencies_ms", "batches_sha256")
    evidence = one_of(_CURVES, fields["evidence"], f"the evidence of {what}")
    digest = as_a(str, fields.get("batches_sha256", ""), f"batches_sha256 of {what}")
    if digest and (evidence == "measured" or not re.fullmatch("[0-9a-f]{64}", digest)):
        raise Fault(f"batches_sha256 of {what} is {show(digest)}, which no simulated batches have")
    rates, latencies = (
        [number(each, f"a figure of {what}") for each in as_a(list, fields[k], f"{k} of {what}")]
        for k in ("rates_rps", "latencies_ms")
    )
    if (
        not rates
        or len(rates) != len(latencies)
        or any(a >= b for a, b in pairwise([ZERO, *rates]))
    ):
        raise Fault(f"{what} does not have one latency at each of ascending rates")
    what = f"the late_share of {what}"
    share = _tolerated(number(fields["late_share"], what), what)
    return Curve(rates, latencies, share, evidence, digest)


def _asked(service: Service, rule: Rule) -> tuple[Fraction, str]:
    """The late share and the queue that hold for a service."""
    share = rule.late_share if service.late_share is None else service.late_share
    return share, service.queue or rule.queue


def _speaks(curve: Curve | None, point: Point, service: Service, rule: Rule) -> bool:
    """Whether a load curve says enough: it is of one queue, and not of a larger late share."""
    share, queue = _asked(service, rule)
    if curve is None or curve.late_share > share:
        return False
    return queue == "instance" or point.processes == 1


def _granted(
    point: Point, service: Service, rule: Rule, curve: Curve | None
) -> tuple[Fraction, str | Entry | None]:
    """What the rule makes of a point, and what has to be proved of that, or what it rests on."""
    slower = 1 + rule.margin
    if rule.share is not None:
        allowed = None if service.limit is None else rule.share * service.limit
        admitted = allowed is None or point.latency * slower < allowed
        admitted = admitted or (point.latency * slower == allowed and not rule.strict)
        return (point.throughput / slower if admitted else ZERO), None
    if service.limit is None:
        return 1000 * point.processes * point.batch / _batch_ms(point) / slower, None
    rate, rests = _sustained(point, service, rule, curve, service.limit / slower)
    return _rounded_down(rate / slower), rests


def _sustained(
    point: Point, service: Service, rule: Rule, curve: Curve | None, limit: Fraction
) -> tuple[Fraction, str | Entry | None]:
    """The rate within a limit by the batch times measured, and what that rests on."""
    if curve is not None and _speaks(curve, point, service, rule):
        within = takewhile(lambda pair: pair[1] <= limit, zip(*curve[:2], strict=True))
        return max((rate for rate, _ in within), default=ZERO), None
    share, queue = _asked(service, rule)
    if rule.certified and queue != "process":
        return ZERO, None
    asked = point.processes, point.batch, limit / _batch_ms(point), share
    alone, together = looked_up("certified", *asked), None
    if queue == "instance":
        together = looked_up("simulated", *asked)
    proved, seen = (ZERO if e is None else e.per_batch_time for e in (alone, together))
    rate = 1000 * max(proved, seen) / _batch_ms(point)
    return rate, SIMULATED if seen > proved else alone


def slowest(
    point: Point, service: Service, rule: Rule, curve: Curve | None, load: Fraction
) -> Fraction:
    """By which factor batches may take longer than measured until a load > 0 is too much.

    What is sustained within a limit changes at steps: at a step s, up to the factor limit / s, as
    long as the rate there is enough for the load that many times.
    """
    assert service.limit is not None
    if rule.share is not None:
        return min(rule.share * service.limit / point.latency, point.throughput / load)
    parts = 1000
    while load * parts < 1000:
        parts *= 10
    least = Fraction(-(-load * parts // 1), parts)  # what is granted is rounded down
    steps = [ratio * _batch_ms(point) for ratio in ratios()]
    if curve is not None and _speaks(curve, point, service, rule):
        steps = curve.latencies
    rates = ((s, _sustained(point, service, rule, curve, s)[0]) for s in steps)
    return max(min(service.limit / s, rate / least) for s, rate in rates)


def _rounded_down(rate: Fraction) -> Fraction:
    parts = 1000
    while 0 < rate * parts < 1000:
        parts *= 10
    return rate * parts // 1 / Fraction(parts)


def _batch_ms(point: Point) -> Fraction:
    """How long a full batch takes: by the throughput, or longer if it was seen to take longer."""
    steady = 1000 * point.processes * point.batch / point.throughput
    longer = point.latency > steady + 1 and point.latency > steady * Fraction(105, 100)
    return point.latency if longer else steady


_cached = cache(why_not)
