"""Measured pairs, weights by them, and profiles of workloads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cache, partial
from typing import NamedTuple, TypeAlias

from ...errors import InvalidProblem
from ...files.csv_records import csv_text
from ...files.numerals import number_in
from ...files.source import StrPath, write_bytes
from ...files.tables import Cell, TableRow, read_table
from ...values.names import nearest
from ...values.numbers import format_exact, shown
from ..serving.table_guards import read_keyed
from .problem import FULL_WEIGHT, OfflineClass, OnlineClass, sm_share

#: A number, a word, or None where nothing is known.
Value: TypeAlias = Fraction | str | None


class MeasuredPair(NamedTuple):
    """A measurement of an offline model beside an online one."""

    online_model: str
    offline_model: str
    device: str
    share: int  #: Of the SMs that the offline side had, in whole per cent, 1 to 100
    offline_throughput: Fraction  #: A part of its throughput alone on the device, 0 to 1
    online_slowdown: Fraction  #: How many times longer the online side took, > 0


def by_models(pairs: Iterable[MeasuredPair]) -> dict[tuple[str, str, str], dict[int, MeasuredPair]]:
    """Return measurements by online model, offline model and device, then by share."""
    table: dict[tuple[str, str, str], dict[int, MeasuredPair]] = {}
    for pair in pairs:
        measured = table.setdefault(pair[:3], {})
        if pair.share in measured:
            said = f"{pair.offline_model!r} beside {pair.online_model!r} on {pair.device!r}"
            raise InvalidProblem(f"{said} is there twice at a share of {pair.share}; keep one")
        measured[pair.share] = pair
    return table


class Slowdown(NamedTuple):
    """The slowdown of an online side beside a workload."""

    expected: Fraction
    upper: Fraction  #: At least the expected one; it is compared with the limit.


class TableWeights:
    """Weights of pairs of classes, and the reasons of forbidden ones: :func:`table_weights`."""

    def __init__(self, pairs: Iterable[MeasuredPair], margin: int, lowest_share: int) -> None:
        self._table = by_models(pairs)
        # There may be a million pairs of classes, of few activities; fractions are slow.
        self._left_at = cache(partial(sm_share, margin=margin, lowest=lowest_share))

    def __call__(self, online: OnlineClass, offline: OfflineClass) -> int | None:
        """Return a pair's weight; None if it is forbidden."""
        below, above, _ = self._around(online, offline)
        if below is None:
            return None
        limit = online.slowdown_limit
        if limit is not None and (above is None or above.online_slowdown > limit):
            return None
        part, priority = below.offline_throughput, offline.priority
        return (FULL_WEIGHT * part.numerator * priority.numerator) // (
            part.denominator * priority.denominator
        )

    def why(self, online: OnlineClass, offline: OfflineClass) -> str:
        """Return why the table forbids a pair; empty if it does not."""
        if self(online, offline) is not None:
            return ""
        below, above, _ = self._around(online, offline)
        if below is None:
            return "measured at larger shares only"
        if above is None:
            return "with a limit, measured at smaller shares only"
        return "slowed down beyond the limit"

    def slowdown(self, online: OnlineClass, offline: OfflineClass) -> Slowdown | None:
        """Return the slowdown on a line between measured shares, and at the next, if any is."""
        below, above, left = self._around(online, offline)
        if above is None:
            return None
        below = below or above
        first, last = below.online_slowdown, above.online_slowdown
        part = Fraction(left - below.share, above.share - below.share or 1)
        on_line = first + (last - first) * part
        return Slowdown(on_line, max(on_line, last))

    def _around(
        self, online: OnlineClass, offline: OfflineClass
    ) -> tuple[MeasuredPair | None, MeasuredPair | None, int]:
        """Return the pair as measured at the shares around the one left, and that share."""
        names = online.model, offline.model, online.device
        if (measured := self._table.get(names)) is not None:
            left = self._left_at(online.sm_activity)
            below = max((share for share in measured if share <= left), default=-1)
            above = min((share for share in measured if share >= left), default=-1)
            return measured.get(below), measured.get(above), left
        hint = ""
        if not online.model:
            hint = "; give the online side a model, in the column 'model' of its table"
        whats = ("online model", "offline model", "device")
        for name, what, known in zip(names, whats, zip(*self._table, strict=True), strict=False):
            if not hint and name not in known:
                hint = f"; no {what} {name!r} was measured{nearest(name, sorted({*known}))}"
        raise InvalidProblem(
            f"offline class {offline.name!r} ({offline.model}) was never measured beside online "
            f"class {online.name!r} ({online.model or 'no model'}) on {online.device!r}{hint}"
        )


def table_weights(
    pairs: Iterable[MeasuredPair], *, margin: int = 10, lowest_share: int = 5
) -> TableWeights:
    """Return weights by a table of measured pairs, which forbid pairs that are too slow.

    A workload counts for its throughput at the largest measured share that is not above the one
    left on the GPU, times its priority, rounded down. A pair is forbidden if all measured shares
    are larger, or if the online side has a limit and a larger slowdown at the smallest measured
    share that is not below the one left, or if there is none. Models that were never measured
    beside each other on the device raise InvalidProblem. Margin and lowest share are those of the
    problem.
    """
    return TableWeights(pairs, margin, lowest_share)


#: Models compute in 64 bits.
_LARGEST = 10**300


class Profiles:
    """Counters and other properties of workloads, by model and device.

    Rows are by model and device, ``""`` for any device. A column holds numbers (of at most 300
    digits) or words, in all rows alike; None where nothing is known. The columns are `numbers` and
    `words`.
    """

    __slots__ = ("_rows", "numbers", "words")

    def __init__(self, rows: Mapping[tuple[str, str], Mapping[str, Value]]) -> None:
        kinds: dict[str, type] = {}
        for (model, _), row in rows.items():
            for column, value in row.items():
                if value is None:
                    continue
                of = f"column {column!r} of the profile of {model!r}"
                if not isinstance(value, str) and abs(value) >= _LARGEST:
                    said = f"{of} is {shown(value)}; expected a number of at most 300 digits"
                    raise InvalidProblem(f"{said}: choose a larger unit")
                kind = kinds.setdefault(column, type(value))
                if kind is not type(value):
                    wanted = "word" if kind is str else "number"
                    said = f"{of} is {value!r}; expected a {wanted}, as in the rows before"
                    raise InvalidProblem(said)
        self._rows = {key: dict(row) for key, row in rows.items()}
        self.numbers = tuple(column for column, kind in kinds.items() if kind is not str)
        self.words = tuple(column for column, kind in kinds.items() if kind is str)

    def of(self, model: str, device: str) -> Mapping[str, Value] | None:
        """Return the row of a model on a device; None if there is none."""
        return self._rows.get((model, device), self._rows.get((model, "")))

    def of_all(self) -> Mapping[tuple[str, str], Mapping[str, Value]]:
        """Return all rows, by model and device."""
        return self._rows

    def joined(self, others: Profiles) -> Profiles:
        """Return these profiles, with those of others in place of equal models and devices."""
        return Profiles({**self._rows, **others._rows})

    def __len__(self) -> int:
        return len(self._rows)


def read_profiles(path: StrPath) -> Profiles:
    """Read profiles of workloads, a row for each model, or each model and device.

    There is a column ``model``, and others as they are: ``device`` (empty, or no such column: any),
    and properties such as ``family``, ``batch``, ``sm_activity``. A column of which some cell is no
    number holds words; cells may be empty.
    """
    table = read_table(path, ("model",), ("device",))
    if not table.extra:
        wanted = "columns beside model and device, such as family, batch, sm_activity"
        raise table.rows[0].error("the table says nothing of its models", expected=wanted)
    cells = (row[column] for row in table for column in table.extra)
    filled = [cell for cell in cells if not cell.is_missing]
    words = {cell.name for cell in filled if number_in(cell.text) is None}

    def value(cell: Cell) -> Value:
        if cell.is_missing:
            return None
        return cell.text if cell.name in words else cell.number(minimum=None)

    def make(row: TableRow) -> tuple[tuple[str, str], dict[str, Value]]:
        key = row["model"].word(), row.value("device", lambda cell: cell.text, "")
        return key, {column: value(row[column]) for column in table.extra}

    return Profiles(read_keyed(table, make, "model and device", "{0[0]!r}".format))


def write_profiles(profiles: Profiles, path: StrPath) -> None:
    """Write profiles as a table that :func:`read_profiles` reads."""
    columns = (*profiles.words, *profiles.numbers)
    rows: list[Sequence[object]] = [("model", "device", *columns)]
    for key, row in profiles.of_all().items():
        values = map(row.get, columns)
        texts = (format_exact(v) if isinstance(v, Fraction) else v or "" for v in values)
        rows.append((*key, *texts))
    write_bytes(csv_text(rows).encode(), path)


def probed(
    profiles: Profiles, pairs: Iterable[MeasuredPair], probes: Iterable[str]
) -> tuple[Profiles, tuple[MeasuredPair, ...]]:
    """Add to profiles the measurements beside a few workloads, the probes; remove these pairs.

    A new workload is then measured beside the probes alone, and predicted beside all others.
    Profiles get two columns more a probe, ``speed beside P`` and ``speed of P``: the throughput of
    the model beside it at the largest share, and the inverse of its slowdown there.
    """
    measured, chosen = tuple(pairs), tuple(probes)
    known = {pair.online_model for pair in measured}
    for probe in chosen:
        if probe not in known:
            said = f"nothing was measured beside the probe {probe!r}{nearest(probe, sorted(known))}"
            raise InvalidProblem(said)
    rest = tuple(pair for pair in measured if not {*pair[:2]} & {*chosen})
    keys = {(name, pair.device) for pair in rest for name in pair[:2]}
    rows: dict[tuple[str, str], dict[str, Value]] = {
        key: dict(profiles.of(*key) or {}) for key in sorted(keys)
    }
    for pair in sorted(measured, key=lambda each: each.share):
        key = pair.offline_model, pair.device
        if pair.online_model in chosen and key in rows:
            rows[key][f"speed beside {pair.online_model}"] = pair.offline_throughput
            rows[key][f"speed of {pair.online_model}"] = min(1 / pair.online_slowdown, Fraction(1))
    return Profiles(rows), rest
