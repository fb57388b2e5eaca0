"""A plan for named GPUs: which workload goes on which of them; who runs already stays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ...files.csv_records import csv_text
from ...files.source import StrPath, write_bytes
from .classes import OnlineClass
from .plan import SharingPlan
from .problem import SharingProblem


class NamedGpus(NamedTuple):
    """A row of the online table: GPUs of one name, what they are, and how many."""

    gpu: str
    online: OnlineClass


class Assigned(NamedTuple):
    """What some GPUs of one name run offline."""

    gpu: str
    workload: str | None  #: The offline class; None: nothing.
    share: int  #: In whole per cent; 0 for nobody.
    #: Of GPUs
    count: int  # type: ignore[assignment]
    stays: bool  #: Whether it is what runs there already


def assign(
    problem: SharingProblem, plan: SharingPlan, gpus: Iterable[NamedGpus]
) -> tuple[Assigned, ...]:
    """Spread the classes of a valid plan over the GPUs that the problem was made of.

    Entries are in the order of the GPUs; those of one name are a few entries.
    """
    left: dict[str, dict[str, int]] = {}
    for pair in plan:
        left.setdefault(pair.online, {})[pair.offline] = pair.count
    for gpus_of in problem.online:
        own, runs = left.get(gpus_of.name, {}), gpus_of.running
        if runs in own:  # who runs there already comes first
            left[gpus_of.name] = {runs: own.pop(runs), **own}
    return tuple(entry for row in gpus for entry in _spread(problem, row, left))


def _spread(
    problem: SharingProblem, row: NamedGpus, left: dict[str, dict[str, int]]
) -> Iterator[Assigned]:
    own = left.get(row.online.name, {})
    share = problem.shares[problem.online_index[row.online.name]]
    free = row.online.count
    for workload in list(own):
        count = min(own[workload], free)
        if count:
            yield Assigned(row.gpu, workload, share, count, workload == row.online.running)
            free -= count
            own[workload] -= count
    if free:
        yield Assigned(row.gpu, None, 0, free, False)


def write_assignment(assigned: Iterable[Assigned], path: StrPath) -> None:
    """Write a table ``gpu,workload,share,count,stays`` in CSV; an empty workload is nothing."""
    rows = (
        (each.gpu, each.workload or "", each.share, each.count, "yes" if each.stays else "no")
        for each in assigned
    )
    write_bytes(csv_text([Assigned._fields, *rows]).encode(), path)
