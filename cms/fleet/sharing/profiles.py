"""What is known of a workload before it is measured beside others: its profile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from ...errors import InvalidProblem
from ...files.source import StrPath
from ...files.tables import Cell, read_table
from ...values.names import nearest
from ...values.numbers import shown

if TYPE_CHECKING:
    from typing import TypeAlias

    from .weights import MeasuredPair

    #: A number, a word, or None where nothing is known.
    Value: TypeAlias = Fraction | str | None

#: Models compute in 64 bits.
_LARGEST = 10**300


class Profiles:
    """Counters and other properties of workloads, by model and device.

    Parameters
    ----------
    rows : Mapping[tuple[str, str], Mapping[str, Fraction or str or None]]
        By model and device, ``""`` for any device, what is known of it. A column holds numbers or
        words, in all rows alike.

    Attributes
    ----------
    numbers, words : tuple of str
        The columns.

    Raises
    ------
    InvalidProblem
        If a column holds both numbers and words, or a number of more than 300 digits.

    Examples
    --------
    >>> profiles = Profiles({("bert", ""): {"batch": Fraction(8), "family": "text"}})
    >>> profiles.numbers, profiles.words, profiles.of("bert", "a30")["family"]
    (('batch',), ('family',), 'text')
    """

    __slots__ = ("_rows", "numbers", "words")
    numbers: tuple[str, ...]
    words: tuple[str, ...]

    def __init__(self, rows: Mapping[tuple[str, str], Mapping[str, Value]]) -> None:
        kinds: dict[str, type] = {}
        for (model, _), row in rows.items():
            for column, value in row.items():
                if value is None:
                    continue
                if not isinstance(value, str) and abs(value) >= _LARGEST:
                    raise InvalidProblem(
                        f"column {column!r} of the profile of {model!r} is {shown(value)}; "
                        "expected a number of at most 300 digits: choose a larger unit"
                    )
                kind = kinds.setdefault(column, type(value))
                if kind is not type(value):
                    raise InvalidProblem(
                        f"column {column!r} of the profile of {model!r} is {value!r}; expected a "
                        f"{'word' if kind is str else 'number'}, as in the rows before"
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

    Parameters
    ----------
    path : str or path-like
        A column ``model``, and others as they are: ``device`` (empty, or no such column: any), and
        properties such as ``family``, ``batch``, ``sm_activity``. A column of which some cell is no
        number holds words; cells may be empty.

    Raises
    ------
    FileError
        With file, line and column: a model that is there twice, no property at all.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "profiles.csv"
    >>> _ = path.write_text("model,family,batch\\nbert-8,bert,8\\nppo,ppo,\\n")
    >>> read_profiles(path).of("bert-8", "a30")
    {'family': 'bert', 'batch': Fraction(8, 1)}
    """
    table = read_table(path, ("model",), ("device",))
    rows = list(table)
    columns = table.extra
    if not columns:
        raise rows[0].error(
            "the table says nothing of its models",
            expected="columns beside model and device, such as family, batch, sm_activity",
        )
    numeric = {
        column: all(row[column].is_missing or _is_number(row[column]) for row in rows)
        for column in columns
    }
    found: dict[tuple[str, str], dict[str, Value]] = {}
    lines: dict[tuple[str, str], int] = {}
    for row in rows:
        key = row["model"].word(), row.value("device", lambda cell: cell.text, "")
        if key in found:
            raise row.error(
                f"a second row for {key[0]!r}; the first is line {lines[key]}",
                expected="one row a model and device",
                fix="keep one of them",
            )
        lines[key] = row.line
        found[key] = {column: _value(row[column], numeric[column]) for column in columns}
    return Profiles(found)


def _is_number(cell: Cell) -> bool:
    from ...files.numerals import number_in

    return number_in(cell.text) is not None


def _value(cell: Cell, numeric: bool) -> Value:
    if cell.is_missing:
        return None
    return cell.number(minimum=None) if numeric else cell.text


def probed(
    profiles: Profiles, pairs: Iterable[MeasuredPair], probes: Iterable[str]
) -> tuple[Profiles, tuple[MeasuredPair, ...]]:
    """Add to profiles what happens beside a few workloads, the probes; take these pairs away.

    A workload that nobody has seen is then measured beside the probes alone, and predicted beside
    all others.

    Parameters
    ----------
    profiles : Profiles
    pairs : iterable of MeasuredPair
    probes : iterable of str
        Models of the pairs.

    Returns
    -------
    profiles : Profiles
        With two columns more a probe, ``speed beside P`` and ``speed of P``: the throughput of the
        model beside it at the largest share, and the inverse of the probe's slowdown there.
    pairs : tuple of MeasuredPair
        Those of which no side is a probe.

    Raises
    ------
    InvalidProblem
        If there are no pairs of a probe.

    Examples
    --------
    >>> from cms.fleet.sharing import MeasuredPair
    >>> pairs = [
    ...     MeasuredPair("p", "a", "a30", 50, Fraction(1, 2), Fraction(5, 4)),
    ...     MeasuredPair("b", "a", "a30", 50, Fraction(1, 4), Fraction(5, 4)),
    ... ]
    >>> profiles, rest = probed(Profiles({}), pairs, ["p"])
    >>> dict(profiles.of("a", "a30")), len(rest)
    ({'speed beside p': Fraction(1, 2), 'speed of p': Fraction(4, 5)}, 1)
    """
    measured, chosen = tuple(pairs), tuple(probes)
    known = {pair.online_model for pair in measured}
    for probe in chosen:
        if probe not in known:
            raise InvalidProblem(
                f"nothing was measured beside the probe {probe!r}{nearest(probe, sorted(known))}"
            )
    rest = tuple(
        pair for pair in measured if not {pair.online_model, pair.offline_model} & set(chosen)
    )
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
