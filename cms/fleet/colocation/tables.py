"""Tables of GPUs, workloads and measured pairs, and problems with rounded activities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import starmap
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from ...errors import InvalidProblem
from ...files.csv_records import csv_text
from ...files.source import StrPath, write_bytes
from ...files.tables import Cell, Table, TableRow, read_table
from ...problem.checking import each_of
from ...values.numbers import Number, exact, shown, whole
from ..serving.table_guards import read_keyed, refuse_unknown_columns
from .problem import (
    FORBIDDEN,
    HIGHEST_PRIORITY,
    ColocationPlan,
    ColocationProblem,
    OfflineClass,
    OnlineClass,
    WeightFunction,
    waited_priority,
)
from .weights import MeasuredPair


class Buckets(NamedTuple):
    """Two problems with fewer classes, below and above the one with the true activities."""

    up: ColocationProblem  #: Activities rounded up: values of its plans are attained.
    down: ColocationProblem  #: Activities rounded down: its bounds hold.


def buckets(
    *,
    online: Iterable[OnlineClass],
    offline: Iterable[OfflineClass],
    weights: WeightFunction,
    step: int = 1,
    margin: int = 10,
    lowest_share: int = 5,
) -> Buckets:
    """Round activities to whole steps, both ways; classes that are then alike become one.

    A plan of ``up`` is one for the true activities, and such a plan is one of ``down``, each time
    with no smaller value, if no weight rises with activity: one that does is refused. Online
    classes lose their own names. A step is in whole per cent, 1 to 100; all else is as for
    :class:`ColocationProblem`.
    """
    width = whole(step, "step", least=1)
    work = each_of(offline, OfflineClass, "offline")
    true, _ = merge(each_of(online, OnlineClass, "online"))

    def posed(classes: Sequence[OnlineClass]) -> ColocationProblem:
        return ColocationProblem(
            online=classes, offline=work, weights=weights, margin=margin, lowest_share=lowest_share
        )

    given = posed(true).weights
    found = []
    for end, sign in (("up", -1), ("down", 1)):
        classes, places = merge([round_to(each, width, sign) for each in true])
        problem = posed(classes)
        rows = problem.weights[places]
        for row, column in np.argwhere(sign * given > sign * rows)[:1]:
            said = f"{work[column].name!r} beside {true[row].name!r} is worth {given[row, column]}"
            less = f"{rows[row, column]} with its activity rounded {end} ({FORBIDDEN}: forbidden)"
            why = "roundings prove nothing where weights rise with activity"
            raise InvalidProblem(f"{said}, and {less}; {why}")
        found.append(problem)
    return Buckets(*found)


def round_to(gpus: OnlineClass, width: int, sign: int) -> OnlineClass:
    """Return a class with its activity on a whole step: below it, or above if the sign is -1."""
    steps = sign * (sign * gpus.sm_activity // width)
    return gpus.again(count=gpus.count, sm_activity=min(Fraction(100), steps * Fraction(width)))


def merge(classes: Sequence[OnlineClass]) -> tuple[list[OnlineClass], list[int]]:
    """Return one class for all that are alike, and the place of each among these."""
    counts = Counter[OnlineClass]()
    keys = [each.again(count=0) for each in classes]
    for key, each in zip(keys, classes, strict=True):
        counts[key] += each.count
    at = {key: place for place, key in enumerate(counts)}
    return [key.again(count=count) for key, count in counts.items()], [at[key] for key in keys]


PAIR_COLUMNS = MeasuredPair._fields
_text = attrgetter("text")  # of a cell


class NamedGpus(NamedTuple):
    """A row of the online table: GPUs of one name, what they are, and how many."""

    gpu: str
    online: OnlineClass


class Assigned(NamedTuple):
    """The offline workload of some GPUs of one name."""

    gpu: str
    workload: str | None  #: The offline class; None: nothing.
    share: int  #: In whole per cent; 0 without a workload.
    #: Of GPUs
    count: int  # type: ignore[assignment]
    stays: bool  #: Whether it runs there already


def read_online(path: StrPath, *, slowdown_limit: Number | None = None) -> tuple[OnlineClass, ...]:
    """Read GPUs with their online services, and make classes of those that are alike.

    The columns are ``gpu,device,sm_activity,memory_used_mib``: a GPU's name, or that of several
    that are alike; per cent of the SMs; MiB. There may be ``count`` (1), ``memory_total_mib``,
    ``model``, ``slowdown_limit`` (by default the one given) and ``running``, the offline class that
    is there now. Other columns are left aside, unless they look like a limit, a rate or a wish.
    Classes are in the order in which they first appear, with activities rounded up to whole per
    cent.
    """
    found = read_named_gpus(path, slowdown_limit=slowdown_limit)
    return tuple(merge([round_to(each.online, 1, -1) for each in found])[0])


def read_named_gpus(
    path: StrPath, *, slowdown_limit: Number | None = None
) -> tuple[NamedGpus, ...]:
    """Read GPUs as :func:`read_online` does, a row each, with activities as they are."""
    limit = None if slowdown_limit is None else exact(slowdown_limit, "slowdown_limit")

    def make(row: TableRow) -> tuple[str, OnlineClass]:
        return row["gpu"].word(), OnlineClass(
            row["device"].word(), count=row.value("count", Cell.integer, 1),
            sm_activity=row["sm_activity"].number(), memory_mib=row["memory_used_mib"].number(),
            memory_total_mib=row.value("memory_total_mib", Cell.number, None),
            model=row.value("model", _text, ""), running=row.value("running", _text, None),
            slowdown_limit=row.value("slowdown_limit", Cell.number, limit),
        )  # fmt: skip

    columns = ("gpu", "device", "sm_activity", "memory_used_mib")
    table = _table(path, columns, "count", "memory_total_mib", "model", "slowdown_limit", "running")
    return tuple(starmap(NamedGpus, read_keyed(table, make, "gpu", "gpu {!r}".format).items()))


def read_offline(path: StrPath, *, waiting_scale: Number | None = None) -> tuple[OfflineClass, ...]:
    """Read offline workloads, a class a row.

    The columns are ``workload,memory_mib``; there may be ``count`` (1), ``model`` (the workload's
    name), ``priority`` (1) and ``waiting_s`` (0). Other columns are left aside, unless they look
    like a limit, a rate or a wish. With a scale of waiting, in seconds, priorities are raised for
    waiting, :func:`waited_priority`; without one ``waiting_s`` counts for nothing.
    """
    scale = None if waiting_scale is None else exact(waiting_scale, "waiting_scale")
    if scale == 0:
        raise InvalidProblem("waiting_scale is 0; expected seconds > 0")

    def make(row: TableRow) -> tuple[str, OfflineClass]:
        priority = row.value("priority", Cell.number, Fraction(1))
        waited = row.value("waiting_s", Cell.number, Fraction(0))
        if scale is not None:
            priority = waited_priority(priority, waited, scale)
            if priority > HIGHEST_PRIORITY:
                said = f"with its waiting the priority is {shown(priority)}"
                most, fix = f"at most {HIGHEST_PRIORITY}", "give a larger scale of waiting"
                raise row["waiting_s"].error(said, expected=most, fix=fix)
        return row["workload"].word(), OfflineClass(
            row["workload"].word(), count=row.value("count", Cell.integer, 1), priority=priority,
            memory_mib=row["memory_mib"].number(), model=row.value("model", _text, None),
        )  # fmt: skip

    columns = ("workload", "memory_mib", *([] if scale is None else ["waiting_s"]))
    table = _table(path, columns, "count", "model", "priority", "waiting_s")
    said = "workload {!r}".format
    return tuple(read_keyed(table, make, "workload", said).values())


def read_measured_pairs(path: StrPath) -> tuple[MeasuredPair, ...]:
    """Read measurements of offline models beside online ones, one a row.

    The columns are ``online_model,offline_model,device,share,offline_throughput,online_slowdown``:
    the share in whole per cent of the SMs, the throughput as a part of the model's throughput alone
    on the device, the slowdown as a factor. Other columns are left aside.
    """

    def make(row: TableRow) -> tuple[tuple[object, ...], MeasuredPair]:
        share, part = row["share"].integer(minimum=1), row["offline_throughput"].number()
        if share > 100:
            raise row["share"].error(f"share is {share}", expected="whole per cent, 1 to 100")
        if part > 1:
            wanted, cell = "at most 1: a part of its throughput alone", row["offline_throughput"]
            raise cell.error(f"offline_throughput is {cell.text}", expected=wanted)
        online, offline, device = (row[name].word() for name in PAIR_COLUMNS[:3])
        slowdown = row["online_slowdown"].number(above=0)
        pair = MeasuredPair(online, offline, device, share, part, slowdown)
        return pair[:4], pair

    said = "{0[1]} beside {0[0]} on {0[2]} at a share of {0[3]}".format
    return tuple(read_keyed(_table(path, PAIR_COLUMNS), make, "pair", said).values())


def _table(path: StrPath, columns: Sequence[str], *optional: str) -> Table:
    table = read_table(path, columns, optional)
    refuse_unknown_columns(table, optional, "limits")
    return table


def assign(
    problem: ColocationProblem, plan: ColocationPlan, gpus: Iterable[NamedGpus]
) -> tuple[Assigned, ...]:
    """Spread the classes of a valid plan over its GPUs, in their order; a name may come again."""
    left: dict[str, dict[str, int]] = {each.name: {} for each in problem.online}
    for pair in plan:
        left[pair.online][pair.offline] = pair.count
    found = []
    for gpu, online in gpus:
        own, free = left[online.name], online.count
        share = problem.shares[problem.online_index[online.name]]
        for workload in sorted(own, key=lambda name: name != online.running):  # it stays first
            if count := min(own[workload], free):
                found.append(Assigned(gpu, workload, share, count, workload == online.running))
                free -= count
                own[workload] -= count
        if free:
            found.append(Assigned(gpu, None, 0, free, False))
    return tuple(found)


def write_assignment(assigned: Iterable[Assigned], path: StrPath) -> None:
    """Write a table ``gpu,workload,share,count,stays`` in CSV; without a workload it is empty."""
    rows = (
        (each.gpu, each.workload or "", each.share, each.count, "yes" if each.stays else "no")
        for each in assigned
    )
    write_bytes(csv_text([Assigned._fields, *rows]).encode(), path)
