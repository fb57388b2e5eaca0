"""What is known of a workload before it is measured beside others: its profile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from ...errors import InvalidProblem
from ...files.csv_records import csv_text
from ...files.numerals import number_in
from ...files.source import StrPath, write_bytes
from ...files.tables import Cell, read_table
from ...values.names import nearest
from ...values.numbers import format_exact, shown
from .weights import MeasuredPair

if TYPE_CHECKING:
    from typing import TypeAlias

    #: A number, a word, or None where nothing is known.
    Value: TypeAlias = Fraction | str | None

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
                    raise InvalidProblem(
                        f"{of} is {shown(value)}; expected a number of at most 300 digits: choose "
                        "a larger unit"
                    )
                kind = kinds.setdefault(column, type(value))
                if kind is not type(value):
                    wanted = "word" if kind is str else "number"
                    raise InvalidProblem(
                        f"{of} is {value!r}; expected a {wanted}, as in the rows before"
                    )
        self._rows = {key: dict(row) for key, row in rows.items()}
        self.numbers = tuple(column for column, kind in kinds.items() if kind is not str)
        self.words = tuple(column for column, kind in kinds.items() if kind is str)

    def of(self, model: str, device: str) -> Mapping[str, Value] | None:
        """Return what is known of a model on a device; None if that is nothing."""
        return self._rows.get((model, device), self._rows.get((model, "")))

    def of_all(self) -> Mapping[tuple[str, str], Mapping[str, Value]]:
        """Return what is known, by model and device."""
        return self._rows

    def joined(self, others: Profiles) -> Profiles:
        """Return these profiles, with those of others in place of the same model's and device's."""
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
        raise table.rows[0].error(
            "the table says nothing of its models",
            expected="columns beside model and device, such as family, batch, sm_activity",
        )
    numeric = {
        column: all(
            row[column].is_missing or number_in(row[column].text) is not None for row in table
        )
        for column in table.extra
    }

    def value(cell: Cell) -> Value:
        if cell.is_missing:
            return None
        return cell.number(minimum=None) if numeric[cell.name] else cell.text

    found: dict[tuple[str, str], dict[str, Value]] = {}
    lines: dict[tuple[str, str], int] = {}
    for row in table:
        key = row["model"].word(), row.value("device", lambda cell: cell.text, "")
        if key in found:
            raise row.error(
                f"a second row for {key[0]!r}; the first is line {lines[key]}",
                expected="one row a model and device",
                fix="keep one of them",
            )
        lines[key] = row.line
        found[key] = {column: value(row[column]) for column in table.extra}
    return Profiles(found)


def write_profiles(profiles: Profiles, path: StrPath) -> None:
    """Write profiles as a table that :func:`read_profiles` reads."""
    columns = (*profiles.words, *profiles.numbers)
    rows: list[Sequence[object]] = [("model", "device", *columns)]
    for key, row in profiles.of_all().items():
        values = [row.get(column) for column in columns]
        rows.append(
            (*key, *(format_exact(v) if isinstance(v, Fraction) else v or "" for v in values))
        )
    write_bytes(csv_text(rows).encode(), path)


def probed(
    profiles: Profiles, pairs: Iterable[MeasuredPair], probes: Iterable[str]
) -> tuple[Profiles, tuple[MeasuredPair, ...]]:
    """Add to profiles what happens beside a few workloads, the probes; take these pairs away.

    A workload that nobody has seen is then measured beside the probes alone, and predicted beside
    all others. Profiles get two columns more a probe, ``speed beside P`` and ``speed of P``: the
    throughput of the model beside it at the largest share, and the inverse of its slowdown there.
    """
    measured, chosen = tuple(pairs), tuple(probes)
    known = {pair.online_model for pair in measured}
    for probe in chosen:
        if probe not in known:
            raise InvalidProblem(
                f"nothing was measured beside the probe {probe!r}{nearest(probe, sorted(known))}"
            )
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
