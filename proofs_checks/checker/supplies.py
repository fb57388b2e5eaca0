"""Services, points, and what a point counts for: computed again where the rule can be.

A rule about batches says it outright: all that the point works off, if one batch takes no more than
a share of the latency limit. By a rule about load a point supplies what it sustains within the
limit. A load curve beside the point says what that is: the last of its rates before its latencies
are beyond the limit, since between two rates nothing is known; of one that was simulated by batches
a point of the line to the next rate, where lines get steeper. Without a curve it is proved here,
for each process alone and fed at random, by the steps of :mod:`~proofs_checks.checker.loads`.
Several processes on one queue sustain more, which was simulated: such a figure is taken from the
file.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from .fleet import boolean, one_of, text_or_null
from .loads import why_not
from .reading import ZERO, Fault, as_a, integer, new_name, number, record, show

_SERVICE = "name model rate_rps latency_limit_ms late_share queue allowed_profiles extra"
_POINT = (
    "name service model device profile processes batch throughput_rps latency_ms extra evidence "
    "load_curve supply_rps"
)
_TEXTS = ("model", "device", "profile")
_WHOLES = ("processes", "batch")
_NUMBERS = ("throughput_rps", "latency_ms", "supply_rps")
_QUEUES = ("instance", "process")
_CURVES = ("measured", "simulated")
#: Limits are rounded down to so many batch times: whoever is in time within less is within more.
_LARGEST_RATIO = 16


class Service(NamedTuple):
    """What its users ask for."""

    model: str
    rate: Fraction
    limit: Fraction | None
    late_share: Fraction | None
    queue: str | None


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


class _Curve(NamedTuple):
    """Rates, and the latency that all but a share of the requests keep at each."""

    rates: list[Fraction]
    latencies: list[Fraction]
    late_share: Fraction
    by_batches: bool


class Rule(NamedTuple):
    """How a point becomes a supply: by ``share`` of the limit, or by the load (share None)."""

    name: str
    share: Fraction | None
    strict: bool
    late_share: Fraction
    queue: str
    certified: bool


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
        fields = record(entry, f"{what}[{at}]", _SERVICE)
        name = new_name(fields["name"], f"the name of {what}[{at}]")
        if name in services:
            raise Fault(f"{what} has the service {show(name)} twice")
        queue = fields["queue"]
        services[name] = Service(
            as_a(str, fields["model"], "the model of service", name),
            number(fields["rate_rps"], "the rate_rps of service", name),
            _or_null(fields["latency_limit_ms"], "the latency_limit_ms of service", name),
            _or_null(fields["late_share"], "the late_share of service", name),
            None if queue is None else one_of(_QUEUES, queue, f"the queue of service {name!r}"),
        )
    return services


def _or_null(value: object, *what: object) -> Fraction | None:
    return None if value is None else number(value, *what)


def read_rule(value: object) -> Rule | None:
    """Read the rule; None: there is none, or one of the user's own, of which nothing is known."""
    if value is None:
        return None
    table = as_a(dict, value, "the rule")
    name = as_a(str, table.get("name"), "the name of the rule")
    rule = None
    if "latency_share" in table:
        fields = record(table, "the rule", "name latency_share strict", "source")
        share = number(fields["latency_share"], "the latency_share of the rule")
        rule = Rule(name, share, boolean(fields["strict"], "strict of the rule"), ZERO, "", False)
    elif "late_share" in table:
        fields = record(table, "the rule", "name late_share queue certified")
        rule = Rule(
            name,
            None,
            False,
            number(fields["late_share"], "the late_share of the rule"),
            one_of(_QUEUES, fields["queue"], "the queue of the rule"),
            boolean(fields["certified"], "certified of the rule"),
        )
    if _NAMED.get(name, rule) != rule:
        raise Fault(f"the rule is not what {show(name)} means")
    return rule


def read_points(
    value: object,
    services: Mapping[str, Service],
    rule: Rule | None,
    before: Mapping[str, Service],
    old: set[str],
) -> tuple[dict[str, Point], list[str], int]:
    """Read the points by name; say which supplies are wrong, and how many are taken as they are.

    What the rule grants a service as it was ``before`` alone is put into ``old``.
    """
    points: dict[str, Point] = {}
    faults: list[str] = []
    taken = 0
    for at, entry in enumerate(as_a(list, value, "points")):
        fields = record(entry, f"points[{at}]", _POINT)
        name = new_name(fields["name"], f"the name of points[{at}]")
        if name in points:
            raise Fault(f"the point {show(name)} is there twice")
        service = one_of(services, fields["service"], f"the service of point {show(name)}")
        model, device, profile = (as_a(str, fields[k], f"the {k} of point", name) for k in _TEXTS)
        processes, batch = (integer(fields[k], f"the {k} of point", name, least=1) for k in _WHOLES)
        point = points[name] = Point(
            service, model, device, profile, processes, batch,
            *(number(fields[k], f"the {k} of point", name) for k in _NUMBERS),
        )  # fmt: skip
        text_or_null(fields["evidence"], "the evidence of point", name)
        if point.model != services[service].model:
            faults.append(f"point {show(name)} is of another model than its service")
        curve = _curve(fields["load_curve"], f"the load curve of point {show(name)}")
        why = _too_much(point, services[service], rule, curve)
        if why and service in before and not _too_much(point, before[service], rule, curve):
            old.add(name)
            continue
        if why is None:
            taken += 1
        elif why:
            faults.append(f"point {show(name)} supplies {show(point.supply)} items/s: {why}")
    return points, faults, taken


def _curve(value: object, what: str) -> _Curve | None:
    if value is None:
        return None
    fields = record(value, what, "late_share evidence rates_rps latencies_ms", "batches_sha256")
    evidence = one_of(_CURVES, fields["evidence"], f"the evidence of {what}")
    if evidence == "measured" and "batches_sha256" in fields:
        raise Fault(f"{what} is measured, and says which batches were simulated")
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
    share = number(fields["late_share"], f"the late_share of {what}")
    return _Curve(rates, latencies, share, "batches_sha256" in fields)


def _too_much(
    point: Point,
    service: Service,
    rule: Rule | None,
    curve: _Curve | None,
) -> str | None:
    """Why the rule does not grant a supply; nothing if it does, None if nobody can tell."""
    if rule is None:
        return None
    all_of_it = point.throughput
    if rule.share is not None:
        if service.limit is not None:
            allowed = rule.share * service.limit
            if point.latency > allowed or (rule.strict and point.latency == allowed):
                all_of_it = ZERO
        return "" if point.supply == all_of_it else f"the rule grants {show(all_of_it)}"
    batch_ms = _batch_ms(point)
    if service.limit is None:
        most = 1000 * point.processes * point.batch / batch_ms if batch_ms else ZERO
        return "" if point.supply <= most else f"it works off {show(most)}"
    share = rule.late_share if service.late_share is None else service.late_share
    queue = service.queue or rule.queue
    if (
        curve is not None
        and curve.late_share <= share
        and (queue == "instance" or point.processes == 1)
    ):
        if rule.certified:
            return "the rule takes no load curves"
        most = _sustained(curve, service.limit)
        return "" if point.supply <= most else f"its load curve has {show(most)} within the limit"
    if rule.certified and queue != "process":
        return "" if point.supply == 0 else "nothing is proved of several processes on one queue"
    why = _unproved(point, batch_ms, service.limit, share)
    if why and queue == "instance" and point.processes > 1:
        return None
    return why


def _batch_ms(point: Point) -> Fraction:
    """How long a full batch takes: by the throughput, or longer if it was seen to take longer."""
    if point.throughput == 0:
        return point.latency
    steady = 1000 * point.processes * point.batch / point.throughput
    longer = point.latency > steady + 1 and point.latency > steady * Fraction(105, 100)
    return point.latency if longer else steady


def _sustained(curve: _Curve, limit: Fraction) -> Fraction:
    """The last rate before latencies are first beyond a limit, or a point of the line from there.

    Of three lines that get steeper the middle one lies above latencies that bend at most once from
    one way to the other; whoever simulated batches tried rates enough to see that.
    """
    within = 0
    while within < len(curve.rates) and curve.latencies[within] <= limit:
        within += 1
    if not within:
        return ZERO
    rate = curve.rates[within - 1]
    if not curve.by_batches or within < 2 or within + 2 > len(curve.rates):
        return rate
    corners = [
        (r, max(curve.latencies[: nth + 1])) for nth, r in enumerate(curve.rates[: within + 2])
    ][-4:]
    steps = [(high - low, above - below) for (low, below), (high, above) in pairwise(corners)]
    if any(rise * further > more * run for (run, rise), (further, more) in pairwise(steps)):
        return rate
    run, rise = steps[1]
    return rate + (limit - corners[1][1]) * run / rise


def _unproved(point: Point, batch_ms: Fraction, limit: Fraction, share: Fraction) -> str:
    """Why it is not proved that each process, fed at random, is in time at its part of the rate."""
    if point.supply == 0:
        return ""
    if batch_ms == 0 or share == 0:
        return "nothing is proved of batches that take no time, or without a late request"
    ratio = Fraction(min(16 * limit // batch_ms, 16 * _LARGEST_RATIO), 16)
    load = point.supply * batch_ms / (1000 * point.processes * point.batch)
    # a little more is proved instead, in numbers that are short
    load = Fraction(-(-load * 100_000 // 1), 100_000)
    return _cached(point.batch, ratio, share, load)


_cached = cache(why_not)
