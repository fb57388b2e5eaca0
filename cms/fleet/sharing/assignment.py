"""A plan for named GPUs: which workload goes on which of them; who runs already stays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ...files.csv_records import csv_text
from ...files.source import StrPath, write_bytes
from ...schedule.faults import Violation
from ...values.numbers import shown
from .classes import OnlineClass
from .plan import SharingPlan
from .problem import SharingProblem

__all__ = ["Assigned", "NamedGpus", "assign", "assignment_faults", "write_assignment"]

_COLUMNS = ("gpu", "workload", "share", "count", "stays")


class NamedGpus(NamedTuple):
    """A row of the online table: GPUs of one name.

    Attributes
    ----------
    gpu : str
    online : OnlineClass
        What they are, and how many.
    """

    gpu: str
    online: OnlineClass


class Assigned(NamedTuple):
    """What some GPUs of one name run offline.

    Attributes
    ----------
    gpu : str
    workload : str or None
        The offline class; None: nothing.
    share : int
        In whole per cent; 0 for nobody.
    count : int
        Of GPUs.
    stays : bool
        Whether it is what runs there already.
    """

    gpu: str
    workload: str | None
    share: int
    count: int  # type: ignore[assignment]
    stays: bool


def assign(
    problem: SharingProblem, plan: SharingPlan, gpus: Iterable[NamedGpus]
) -> tuple[Assigned, ...]:
    """Spread the classes of a plan over the GPUs they stand for.

    Parameters
    ----------
    problem : SharingProblem
        Made of these GPUs.
    plan : SharingPlan
        A valid one.
    gpus : iterable of NamedGpus

    Returns
    -------
    tuple of Assigned
        In the order of the GPUs; those of one name in a few entries.

    Examples
    --------
    >>> from cms.fleet.sharing import OfflineClass
    >>> problem = SharingProblem(
    ...     online=[OnlineClass("a30", count=5, sm_activity=50)],
    ...     offline=[OfflineClass("train", count=3)],
    ...     weights=[[400_000]],
    ... )
    >>> gpus = [
    ...     NamedGpus(name, OnlineClass("a30", count=count, sm_activity=50))
    ...     for name, count in (("n1/0", 1), ("rack-7", 4))
    ... ]
    >>> for each in assign(problem, SharingPlan({("a30 50%", "train"): 3}), gpus):
    ...     print(each.gpu, each.workload, each.share, each.count)
    n1/0 train 40 1
    rack-7 train 40 2
    rack-7 None 0 2
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


def assignment_faults(
    problem: SharingProblem,
    plan: SharingPlan,
    gpus: Sequence[NamedGpus],
    assigned: Iterable[Assigned],
) -> Iterator[Violation]:
    """Say what is wrong with an assignment: counted again, from the table and from the plan.

    Yields
    ------
    Violation
        A GPU that is unknown, or has too much or too little; a pair of classes with another count
        than in the plan; a share or a word about staying that is not so.
    """
    rows = {row.gpu: row.online for row in gpus}
    used = dict.fromkeys(rows, 0)
    pairs: dict[tuple[str, str], int] = {}
    for each in assigned:
        where = f"GPU {each.gpu!r}"
        if each.gpu not in rows:
            yield Violation("gpu", where, "a workload", "a row in the table of GPUs")
            continue
        used[each.gpu] += each.count
        online = rows[each.gpu]
        share = 0
        if each.workload is not None:
            pair = online.name, each.workload
            pairs[pair] = pairs.get(pair, 0) + each.count
            share = problem.shares[problem.online_index[online.name]]
        if each.share != share:
            yield Violation("share", where, f"a share of {each.share} %", f"{share} %")
        if each.stays != (each.workload is not None and each.workload == online.running):
            yield Violation("stays", where, f"stays: {each.stays}", f"{not each.stays}")
    for name, count in used.items():
        if count != rows[name].count:
            needs = f"{shown(rows[name].count)}, its count"
            yield Violation("gpu", f"GPU {name!r}", f"{shown(count)} entries", needs)
    for pair in pairs.keys() | plan.counts.keys():
        here, there = pairs.get(pair, 0), plan.counts.get(pair, 0)
        if here != there:
            where = f"{pair[1]!r} on {pair[0]!r}"
            yield Violation("plan", where, f"{shown(here)} GPUs", f"{shown(there)}, as planned")


def write_assignment(assigned: Iterable[Assigned], path: StrPath) -> None:
    """Write a table ``gpu,workload,share,count,stays`` in CSV; an empty workload is nothing.

    Parameters
    ----------
    assigned : iterable of Assigned
    path : str or path-like
        The file; ``-`` is standard output.

    Raises
    ------
    FileError
        If the file cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "gpus.csv"
    >>> write_assignment([Assigned("n1/0", "train", 40, 1, True)], path)
    >>> path.read_text().splitlines()
    ['gpu,workload,share,count,stays', 'n1/0,train,40,1,yes']
    """
    rows = (
        (each.gpu, each.workload or "", each.share, each.count, "yes" if each.stays else "no")
        for each in assigned
    )
    write_bytes(csv_text([_COLUMNS, *rows]).encode(), path)
