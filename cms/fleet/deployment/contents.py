"""What a plan whose services share GPUs in time has on them: processes in shares, taking turns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TypeAlias

from ...errors import InvalidProblem, UnsupportedProblem
from ..serving.operating_point import mps_share
from ..serving.plan import Plan, PlanGroup
from ..serving.time_sharing import SharedServing
from .instance import Instance, Work

__all__ = ["Content", "contents_of"]

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
