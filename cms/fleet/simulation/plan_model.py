"""The door from a plan to the simulator: which instances a service has, and how long they take."""

from __future__ import annotations

import math
from fractions import Fraction

from ...errors import InvalidOption
from ...values.numbers import shown
from ..serving.fills import FillTimes
from ..serving.operating_point import OperatingPoint
from ..serving.plan import Plan
from ..serving.queueing import QueueingRule, evidence_of
from ..serving.service import Service
from .model import MILLISECOND, MOST_STATIONS, ModelledInstance, ModelledService

#: Tolerated if a service says nothing else: "p99 is within the limit".
LATE_SHARE = Fraction(1, 100)


def services_of(plan: Plan) -> tuple[tuple[ModelledService, ...], tuple[str, ...]]:
    """Read what a plan promises, as queues; and which of its points contradict themselves.

    GPUs are counted from 0 in the order of the plan's groups, the instances of a service in the
    order of the GPUs. Of services that share instances in time :func:`.frames.replay_frames` is.
    """
    instances: dict[str, list[ModelledInstance]] = {each.name: [] for each in plan.serving.services}
    warnings: dict[str, None] = {}
    serving = plan.unshared("the simulator of queues")
    promise = serving.rule.promise
    share, queue = (promise.late_share, promise.queue) if promise else (LATE_SHARE, "instance")
    queues = {each.name: each.queue or queue for each in plan.serving.services}
    fills: dict[tuple[str, str], tuple[int, ...]] = {}
    reasons: dict[str, str] = {}
    first, total = 0, 0
    for group in plan.groups:
        total += group.count * sum(each.count for each in group.instances)
        if total > MOST_STATIONS:
            raise InvalidOption(
                f"the plan has more than {MOST_STATIONS:,} instances; fewer are simulated at a time"
            )
        for kind in group.instances:
            for served in kind.serves:
                if (pair := (served.service, kind.block)) not in fills:
                    times = serving.fill_times(*pair)
                    if warning := batch_ns(served.point)[1]:
                        warnings[warning] = None
                    fills[pair] = tuple(times.rounded_up(MILLISECOND))
                    service = serving.service(served.service)
                    if why := _not_replayed(serving.rule, service, served.point, times):
                        reasons.setdefault(service.name, why)
                instances[served.service] += [
                    ModelledInstance(
                        served.rate_rps, served.point.processes, fills[pair],
                        queue=queues[served.service], gpu=first + nth, block=kind.block,
                    )
                    for nth in range(group.count)
                    for _ in range(kind.count)
                ]  # fmt: skip
        first += group.count
    services = tuple(
        ModelledService(
            each.name,
            each.rate_rps,
            None if (ms := each.latency_limit_ms) is None else math.floor(ms * MILLISECOND),
            share if each.late_share is None else each.late_share,
            tuple(sorted(instances[each.name], key=lambda one: one.gpu)),
            reasons.get(each.name, ""),
        )
        for each in plan.serving.services
    )
    return services, tuple(warnings)


def _not_replayed(
    rule: QueueingRule, service: Service, point: OperatingPoint, times: FillTimes
) -> str:
    """Say why a replay by batches is of another instance than the one that was promised for.

    A curve tells what an instance sustained, whatever goes on in it; only one that was simulated by
    these very batches is about them.
    """
    found = evidence_of(rule, service, point)
    curve = None if found is None else found.curve
    if curve is None or curve.batches_sha256 == times.digest(point.processes):
        return ""
    if curve.evidence == "measured":
        why = "a measured curve, which says nothing of batches; plan without --load-curves"
    else:
        why = (
            "a curve that does not say it was simulated for the plan's batch times; make it with "
            "'cms capacity' from the plan's operating points"
        )
    return f"{service.name} counts on {why}"


def batch_ns(point: OperatingPoint) -> tuple[int, str]:
    """Return what a full batch takes in nanoseconds, by its throughput, and what is odd about it.

    The latency column is usually rounded to a millisecond. Where it is longer by more than 1 ms and
    5 %, it is taken, and a warning returned.
    """
    warning = ""
    if point.batch_ms == point.latency_ms != point.computed_batch_ms:
        warning = (
            f"{point}: by its throughput a batch takes {shown(round(point.computed_batch_ms, 2))} "
            "ms; the longer latency is taken"
        )
    return math.ceil(point.batch_ms * MILLISECOND), warning
