"""Services that take turns in a share of a GPU: cycles that come out even, and limits that hold.

Under MPS, instances with one share and one start are processes of several services that take turns.
What each supplies says how long their common cycle is: a batch a cycle. So nothing more need be
known of how they were planned: the cycles must be one, the batches must fit into it, nobody else's
process may be in the share, and a request that has just missed its turn waits for one cycle and
runs for one batch. That is the rule of cycles `round_robin` (:class:`cms.DutyCycleRule`), and what
keeps `collect_then_run` keeps it, too: two cycles are at least a cycle and a batch.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import partial
from typing import TypeAlias

from ...errors import InvalidProblem, UnsupportedProblem
from ...schedule.faults import Violation
from ...values.words import short
from ..serving.operating_point import mps_share
from ..serving.plan import Plan, PlanGroup
from ..serving.service import Service
from ..serving.time_sharing import SharedServing, amount_of, slot_ms
from .instance import Instance, Mode, Work
from .model import FleetGpu


def takes_turns(card: FleetGpu, instance: Instance) -> bool:
    """Whether an instance is one of the processes that take turns in a share."""
    return card.mode is Mode.MPS and instance.start is not None


def shares_of(card: FleetGpu) -> dict[str, list[Instance]]:
    """Return by their place the shares of a GPU in which services can take turns."""
    shares: dict[str, list[Instance]] = {}
    for each in card.instances:
        if takes_turns(card, each):
            shares.setdefault(each.place, []).append(each)
    return shares


def refuse_turns(cards: Iterable[FleetGpu]) -> None:
    """Refuse GPUs on which managed services take turns."""
    for card, each in ((one, held) for one in cards for held in one.instances):
        if takes_turns(card, each) and each.is_managed:
            raise UnsupportedProblem(
                f"{card.name} has {each.place}, in which services take turns; expected instances "
                "that serve one service each, or cms.fleet.deployment.transition.reorganise to a "
                "plan that shares"
            )


def turn_faults(card: FleetGpu, services: Iterable[Service]) -> Iterator[Violation]:
    """Say what is wrong with the turns in the shares of one GPU."""
    limits = {service.name: service.latency_limit_ms for service in services}
    for place, held in shares_of(card).items():
        works = [each.work for each in held if each.work is not None and each.is_managed]
        others = [each for each in held if not each.is_managed]
        if works and others:
            has = f"{others[0]} beside {works[0].service} in one share"
            yield Violation("turn", card.name, has, "a share without others' turns")
        elif works:
            yield from _faults(card, place, works, limits)


def _faults(
    card: FleetGpu, place: str, works: list[Work], limits: dict[str, Fraction | None]
) -> Iterator[Violation]:
    fault = partial(Violation, "turn", card.name)
    if len({work.service for work in works}) < len(works):
        yield fault(f"{place} with a service twice", "a turn for each")
        return
    if any(not work.supply_rps for work in works):
        yield fault(f"a turn that supplies nothing in {place}", "a rate > 0")
        return
    cycles = sorted({1000 * amount_of(work.point) / work.supply_rps for work in works})
    if len(cycles) > 1:
        has = f"cycles of {' and '.join(f'{short(each)} ms' for each in cycles)} in {place}"
        yield fault(has, "one cycle for all that take turns")
        return
    (cycle,) = cycles
    taken = sum((slot_ms(work.point) for work in works), Fraction(0))
    if taken > cycle:
        has = f"batches of {short(taken)} ms in a duty cycle of {short(cycle)} ms of {place}"
        yield fault(has, "batches that fit into the cycle")
    for work in works:
        limit, length = limits.get(work.service), slot_ms(work.point)
        if limit is not None and cycle + length > limit:
            cycle_and_batch = f"duty cycles of {short(cycle)} ms and batches of {short(length)} ms"
            least = f"{short(cycle + length, math.ceil)} ms or more; it is {short(limit)}"
            has = f"{work.service} in {place} with {cycle_and_batch}"
            yield fault(has, f"a limit of {least}")


# --- plans ----------------------------------------------------------------------------------------

#: What is on a GPU: its key, and the instances on it.
Content: TypeAlias = "tuple[str, tuple[Instance, ...]]"


def contents_of(plan: Plan) -> dict[Content, int]:
    """Return what a plan of services that share GPUs in time has on them, and on how many.

    An instance is a service in a share, which begins at a per cent; the largest share at 0. Shares
    that idle are left out. In the order of a `FleetGpu`.
    """
    if not isinstance(plan.serving, SharedServing):
        raise UnsupportedProblem(
            "the instances of this plan serve one service each; take a transition to it"
        )
    if plan.solution.cost is None:
        raise InvalidProblem(
            f"the plan has no schedule ({plan.solution.status}), so that there is nothing to place"
        )
    found: Counter[Content] = Counter()
    for group in plan.groups:
        if held := tuple(sorted(_held(group), key=lambda each: each.order)):
            found[group.gpu, held] += group.count
    return dict(found)


def _held(group: PlanGroup) -> Iterator[Instance]:
    shares = []
    for each in group.instances:
        if not each.serves:
            continue
        share = mps_share(each.profile)
        if share is None:
            raise UnsupportedProblem(
                f"the plan shares {each.profile} in time, an instance of MIG: nothing can be "
                "prepared beside it; plan with shares under MPS (mps:60), or place the plan anew"
            )
        names = tuple((one.service, one.point.batch) for one in each.serves)
        shares += [(-share, names, each)] * each.count
    start = 0
    for minus, _, each in sorted(shares, key=lambda one: one[:2]):
        for one in each.serves:
            yield Instance(each.profile, start, Work(one.service, one.point, one.rate_rps))
        start -= minus
