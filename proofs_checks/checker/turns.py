"""Services that take turns in a share of a GPU: whether what each supplies can be.

Instances of one profile and one start on a GPU under MPS are processes that take turns. In every
cycle each runs one batch, so its cycle is its batch over what it supplies; the cycles of all must
be one, and their batches must fit into it. Requests come evenly: in no window as long as a cycle
are there more than a batch. So a turn that begins finds at most a batch waiting, of which none had
waited for the turn before; each has waited for less than a cycle and runs for one batch, and that
much the limit must allow. A batch takes what its throughput says, or its measured latency, where
that is longer by more than one part in a hundred. Of a process that is another's nobody knows how
long its turns are, so that it cannot be in a share of ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import pairwise

from .fleet import Instance, share_of
from .reading import ZERO, show
from .supplies import Point, Service

_APART = Fraction(1, 100)


def turn_faults(
    name: str, held: Iterable[Instance], points: Mapping[str, Point],
    services: Mapping[str, Service],
) -> list[str]:  # fmt: skip
    """Say what is wrong with the turns on a GPU under MPS."""
    shares: dict[tuple[int, int], list[Point]] = {}
    foreign = set()
    for each in held:
        if each.start is not None:
            share = each.start, share_of(each.profile) or 0
            own = shares.setdefault(share, [])
            if each.owner is not None:
                foreign.add(share)
            elif each.point is not None:
                own.append(points[each.point])
    faults = [
        f"{name}: the shares from {first} % and from {second} % overlap"
        for (first, size), (second, _) in pairwise(sorted(shares))
        if first + size > second
    ]
    for (start, size), taking in shares.items():
        wrong = _wrong(taking, services)
        if taking and (start, size) in foreign:
            wrong = ["another's process is in it, whose turns nobody knows"]
        faults += [f"{name}, the share from {start} %: {why}" for why in wrong]
    return faults


def prepared(
    removes: Iterable[Instance], adds: Iterable[Instance], points: Mapping[str, Point]
) -> int:
    """Count the processes of one share and service that come and do not go on from before."""
    left = [_process(each, points) for each in removes]
    new = 0
    for each in adds:
        process = _process(each, points)
        if process in left:
            left.remove(process)
        else:
            new += 1
    return new


def _process(instance: Instance, points: Mapping[str, Point]) -> tuple[str, str | None]:
    point = instance.point
    return instance.profile, None if point is None else points[point].service


def _length(point: Point) -> Fraction:
    computed = 1000 * point.processes * point.batch / point.throughput
    apart = abs(point.latency - computed) > _APART * computed
    return max(computed, point.latency) if apart else computed


def _wrong(taking: list[Point], services: Mapping[str, Service]) -> list[str]:
    if len({each.service for each in taking}) < len(taking):
        return ["a service takes two turns in one cycle"]
    if any(not each.supply for each in taking):
        return ["a turn supplies nothing"]
    cycles = {1000 * each.processes * each.batch / each.supply for each in taking}
    if len(cycles) > 1:
        return [f"the cycles are {' and '.join(show(each) for each in sorted(cycles))} ms long"]
    faults = []
    for cycle in cycles:
        if (total := sum(map(_length, taking), ZERO)) > cycle:
            faults.append(f"batches of {show(total)} ms are to fit into {show(cycle)} ms")
        for each in taking:
            limit = services[each.service].limit
            if limit is not None and cycle + _length(each) > limit:
                faults.append(
                    f"{show(each.service)} waits for {show(cycle)} ms and runs for "
                    f"{show(_length(each))} ms, with a limit of {show(limit)} ms"
                )
    return faults
