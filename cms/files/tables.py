"""Tables in CSV, every cell with its line and column, so that an error says where it is.

What is read: cells with commas, semicolons or tabs between them, quoted as RFC 4180 has it; LF,
CRLF or CR line ends, with or without one at the end; a byte order mark; blank lines; comment lines
that start with ``#``; empty columns at the end. The first other line is the header, whose names may
be written ``Rate RPS``, ``rate-rps`` or ``Rate (rps)``. Columns nobody asked for are kept.

Decimal commas are read where semicolons or tabs stand between cells, thousands separators
everywhere. Where ``1,234`` could be either, the rest of its column tells, or nobody does: an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeVar, Unpack

from ..errors import FileError
from ..values.names import nearest
from ..values.numbers import format_exact
from .csv_records import DELIMITERS, bare, cell_offset, delimiter_of, folded, records
from .numerals import is_missing, number_hint, number_in, readings
from .source import Source, StrPath, Told, plain, quoted, read_source, shortened

T = TypeVar("T")

_LIST = re.compile(r"[;\s]+")


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table: its column, its text without blanks around it, and its row."""

    name: str
    text: str
    row: TableRow

    @property
    def is_missing(self) -> bool:
        """Whether the cell says that there is no value: empty, ``N/A``, ``NaN``, ``-``."""
        return is_missing(self.text)

    def number(self, *, minimum: int | None = 0, above: int | None = None) -> Fraction:
        """Read the cell as an exact number: at least `minimum`, or larger than `above`."""
        return self._read("a number", minimum if above is None else None, above)

    def integer(self, *, minimum: int | None = 0) -> int:
        """Read the cell as a whole number."""
        return int(self._read("a whole number", minimum, None, whole=True))

    def _read(
        self, kind: str, minimum: int | None, above: int | None, *, whole: bool = False
    ) -> Fraction:
        value = self._number(self.text)
        if (
            value is not None
            and (minimum is None or value >= minimum)
            and (above is None or value > above)
            and not (whole and value.denominator > 1)
        ):
            return value
        kind += "" if minimum is None else f" >= {minimum}"
        kind += "" if above is None else f" > {above}"
        fix = number_hint(self.text) if value is None else None
        raise self.error(self._says(), expected=kind, fix=fix)

    def numbers(self) -> list[Fraction]:
        """Read the cell as numbers with blanks or semicolons between them."""
        found = []
        for text in _LIST.split(self.text):
            if text:
                if (value := self._number(text, listed=True)) is None:
                    what = f"{plain(self.name)} has {quoted(text)}"
                    raise self.error(what, expected="numbers", fix=number_hint(text))
                found.append(value)
        return found

    def word(self) -> str:
        """Read the cell as a text that must not be empty."""
        if not self.text:
            raise self.error(self._says(), expected="a name")
        return self.text

    def error(self, what: str, **told: Unpack[Told]) -> FileError:
        """Build an error that points at this cell."""
        table = self.row.table
        at = cell_offset(table.source, self.row.line, table.index[self.name], table.delimiter)
        return table.source.error(what, at, **told)

    def _number(self, text: str, *, listed: bool = False) -> Fraction | None:
        """Read a number of this cell; of two readings take the one that its column shows."""
        table = self.row.table
        by_commas = table.delimiter == ","
        value = number_in(text)
        if value is not None and (by_commas or "." not in text):
            return value
        point, comma = readings(text)
        if comma is None or point == comma:
            return point
        if point is None:
            return None if by_commas else comma
        marks = table.decimal_marks(self.name, listed=listed)
        if len(marks) == 1:
            return point if "." in marks else None if by_commas else comma
        if by_commas:
            return None
        small, large = map(format_exact, sorted((point, comma), key=abs))
        tells = "its column has decimal commas and points" if marks else "its column does not tell"
        raise self.error(
            f"{plain(self.name)} has {quoted(text)}, which is {large} or {small}: {tells}",
            expected="a number that can be read in one way",
            fix=f"write {large}, or {shortened(text.replace(',', '.'))}0 (four places)",
        )

    def _says(self) -> str:
        return f"{plain(self.name)} is {quoted(self.text) if self.text else 'empty'}"


@dataclass(frozen=True, slots=True, eq=False)
class TableRow(Mapping[str, Cell]):
    """One row: a mapping from the column's name to its :class:`Cell`; `line` counts from 1."""

    table: Table
    line: int
    texts: tuple[str, ...]

    def __getitem__(self, name: str) -> Cell:
        return Cell(name, self.texts[self.table.index[name]], self)

    def __iter__(self) -> Iterator[str]:
        return iter(self.table.index)

    def __len__(self) -> int:
        return len(self.texts)

    def value(self, name: str, read: Callable[[Cell], T], default: T) -> T:
        """Read an optional cell: the default if its column or its value is missing."""
        if name not in self.table.index or self[name].is_missing:
            return default
        return read(self[name])

    @property
    def extra(self) -> dict[str, str]:
        """The texts of the columns nobody asked for."""
        return {name: self.texts[self.table.index[name]] for name in self.table.extra}

    def error(self, what: str, **told: Unpack[Told]) -> FileError:
        """Build an error that points at this row."""
        return self.table.error(what, self.line, **told)


@dataclass(slots=True, eq=False)
class Table:
    """A table that was read; iterate over it for its rows, in the order of the file.

    `line` is the header's; `index` says which cell of a row belongs to a column; `extra` are
    columns nobody asked for.
    """

    source: Source
    line: int
    index: dict[str, int]
    extra: tuple[str, ...] = ()
    delimiter: str = ","
    rows: list[TableRow] = field(default_factory=list, repr=False)
    _marks: dict[tuple[str, bool], frozenset[str]] = field(default_factory=dict, repr=False)

    def __iter__(self) -> Iterator[TableRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def error(self, what: str, line: int | None = None, **told: Unpack[Told]) -> FileError:
        """Build an error that points at a line, of which the header's is the default."""
        return FileError(self.source.name, what, line=line or self.line, **told)

    def add(self, line: int, cells: Sequence[str]) -> None:
        """Add a row."""
        self.rows.append(TableRow(self, line, tuple([cell.strip() for cell in cells])))

    def decimal_marks(self, name: str, *, listed: bool = False) -> frozenset[str]:
        """Return which of ``.`` and ``,`` are decimal marks in a column beyond doubt.

        `listed` says that its cells are lists of numbers.
        """
        if (name, listed) not in self._marks:
            at, found = self.index[name], set()
            for text in {row.texts[at] for row in self.rows}:
                for one in _LIST.split(text) if listed else (text,):
                    point, comma = readings(one)
                    if self.delimiter == "," and "." in one and number_in(one) is not None:
                        found.add(".")
                    elif (point is None) != (comma is None):
                        found.add("," if point is None else ".")
            self._marks[name, listed] = frozenset(found)
        return self._marks[name, listed]


def read_table(
    path: StrPath | Source,
    columns: Collection[str],
    optional: Collection[str] = (),
    kept: Collection[str] = (),
) -> Table:
    """Read a CSV table with a header line, which has these columns in any order.

    In their names case does not count, nor whether blanks, hyphens, underscores, brackets or
    nothing stand between words. All others than the `optional` ones are kept as
    :attr:`TableRow.extra`; `kept` are those of them that somebody looks for under just this name.

    Examples
    --------
    >>> text = "Service;Rate RPS\\nchat;1.234,5\\nmail;1.200\\n"
    >>> for row in read_table(Source("services.csv", text), columns=["service", "rate_rps"]):
    ...     print(row["service"].text, row["rate_rps"].number(), row.line)
    chat 2469/2 2
    mail 1200 3
    """
    source = path if isinstance(path, Source) else read_source(path, holds="a CSV table")
    delimiter = delimiter_of(source, [*columns, *optional, *kept])
    found = records(source, delimiter)
    line, cells = next(found, (0, []))
    if not line:
        raise FileError(source.name, "the file has nothing but comments", expected="a CSV table")
    table = Table(source, line, {}, delimiter=delimiter)
    _read_header(table, [cell.strip() for cell in cells], columns, optional, kept)
    width = len(table.index)
    for line, cells in found:
        if len(cells) != width and (len(cells) < width or any(map(str.strip, cells[width:]))):
            raise _wrong_width(table, line, cells)
        table.add(line, cells[:width])
    if not table.rows:
        raise FileError(source.name, "the table has no row", expected="rows below the header")
    return table


def read_headerless(path: StrPath, columns: Sequence[str]) -> list[TableRow]:
    """Read a CSV table without a header, of just these columns."""
    source = read_source(path, holds="a CSV table without a header")
    table = Table(source, 0, {name: index for index, name in enumerate(columns)})
    for line, cells in records(source):
        if len(cells) != len(columns):
            expected = f"{len(columns)}, one for each of {', '.join(columns)}"
            raise table.error(f"this row has {len(cells)} cells", line, expected=expected)
        table.add(line, cells)
    return table.rows


def _read_header(
    table: Table,
    names: list[str],
    required: Collection[str],
    optional: Collection[str],
    kept: Collection[str],
) -> None:
    if len(names) == 1 and len(required) > 1 and "|" in names[0]:
        raise table.error(
            "the columns are separated by '|'",
            expected="commas, semicolons or tabs",
            fix="save it as comma-separated text",
        )
    while names and not names[-1]:  # what a spreadsheet leaves of columns that were cleared
        names.pop()
    asked = {bare(name): name for name in (*kept, *optional, *required)}
    seen: dict[str, str] = {}
    for at, name in enumerate(names):
        if not name:
            fix = f"name it, or remove the {DELIMITERS[table.delimiter]} that begins it"
            raise table.error(f"column {at + 1} has no name", fix=fix)
        meant = asked.get(bare(name), name)
        if (before := seen.setdefault(folded(meant), name)) != name or meant in table.index:
            one, other = shortened(repr(before)), shortened(repr(name))
            both = one if one == other else f"alike: {one} and {other}"
            raise table.error(f"two columns are called {both}", fix="rename or remove one of them")
        table.index[meant] = at
    table.extra = tuple(n for n in table.index if n in kept or bare(n) not in asked)
    for name in required:
        if name not in table.index:
            expected, fix = f"a header with {', '.join(required)}", nearest(name, table.extra, "")
            raise table.error(f"there is no column {name!r}", expected=expected, fix=fix)


def _wrong_width(table: Table, line: int, cells: list[str]) -> FileError:
    width, fix = len(table.index), None
    if len(cells) > width:
        fix = f"if a cell has a {DELIMITERS[table.delimiter]}, quote it"
        if table.delimiter == ",":
            fix += ' ("a, b"); a decimal comma is a point: 12.5'
    what = f"this row has {len(cells)} cell{'' if len(cells) == 1 else 's'}"
    expected = f"{width} as in the header on line {table.line}"
    return table.error(what, line, expected=expected, fix=fix)


#: What a column of each kind says in its name, as a word of it; ``$``: as the last one.
_WORDS = {
    "limit": (
        "latency latencies limit limits slo sla slos deadline timeout ttft tpot itl tbt e2e e2el "
        "percentile quantile response$ turnaround qos delay$ target$ goal$ objective$ rt$ wait$ "
        "waiting$ "
        "ms msec msecs milliseconds millis us usec usecs microseconds micros µs μs ns nanoseconds "
        "sec secs seconds second$ s$ mins$ minute$ minutes$ h$ hour$ hours$"
    ),
    "rate": (
        "rate rates rps qps tps rpm qpm rph rpd ips throughput requests$ queries$ reqs$ req$ load$ "
        "traffic$ demand$ peak$ users$ arrivals calls$ hits$"
    ),
    # What else than a limit can have in a table of measurements, which are latencies and rates.
    "order": "limit limits slo sla slos deadline",
    "wish": ("replica replicas copies priority affinity weight$ weights$ instances spread"),
}
#: The same within a word: ``MAXLATENCYMS``, ``p99ttft``.
_WITHIN = {
    "limit": re.compile(
        r"latenc|deadline|timeout|ttft|tpot|percentile|e2e|(^|\W|_)(p\d\d+|\d\dth)(_|\W|$)"
        r"|response[\W_]?time|time[\W_]?(to|per|between)"
    ),
    "rate": re.compile(
        r"throughput|concurren|qps|rps(_|\W|$)"
        r"|(/|(^|[\W_])per[\W_]?)(s|secs?|seconds?|m|mins?|minutes?|h|hours?|d|days?)$"
    ),
    "wish": re.compile(
        r"replica|priorit|affinit|(min|max)(imum)?[\W_]?(instance|gpu|per|copies|batch|process|cost)"
    ),
}
#: Names that are of no such kind: limits of devices, prices, shares of requests.
_EXCLUDED = {
    "limit": re.compile(r"power|memory|cpu|clock|temp|usd|eur|cost|price"),
    "order": re.compile(r"power|memory|cpu|clock|temp"),
    "rate": re.compile(r"usd|eur|cost|price|error|hit_?rate|sampl|discount"),
}
#: Last words that describe a known column and do not mean it: ``queue_name``.
_DESCRIPTIVE_WORDS = frozenset(("name", "id", "type", "depth", "length", "label", "note", "url"))
_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[^\W\d_A-Z]+\d*|[A-Z]+\d*")


def refuse_unknown_columns(
    table: Table,
    known: Collection[str] = (),
    nearest_of: Mapping[str, str] | None = None,
    kinds: Collection[str] = ("rate", "limit", "wish"),
) -> None:
    """Refuse columns nobody asked for whose names look as if they should count.

    Any other column is a note. Limits and rates are numbers: a column without one is a note too.

    A column nearly called as a `known` one that is absent is refused whatever it holds. By
    `nearest_of` an error says which known column has limits, rates or wishes. Of `kinds`, tables of
    measurements have more rates and latencies than anybody asks for: only an "order" is wrong.
    """
    absent = [name for name in known if name not in table.index]
    for name in (name for name in table.extra if name not in known):
        kind = next((kind for kind in kinds if _looks_like(name, kind)), "")
        if kind in ("limit", "rate") and not any(re.search(r"\d", row[name].text) for row in table):
            kind = ""
        meant = (nearest_of or {}).get(kind)
        hint = f"nearest: {meant!r}" if meant else _near(name, absent, bool(kind))
        if kind or hint:
            looks = f" and looks like a {'limit' if kind == 'order' else kind}" if kind else ""
            raise table.error(
                f"the column {shortened(repr(name))} is not known{looks}",
                expected="a known column, or a name that is unlike one",
                fix=hint or "rename or remove it",
            )


def _near(name: str, absent: Collection[str], is_asking: bool) -> str:
    """Word the known name that may have been meant; chance alone makes ``last_seen`` a share."""

    def stems(text: str) -> set[str]:
        return {word.rstrip("s") for word in _words(text)}

    is_note = _words(name)[-1:] and _words(name)[-1] in _DESCRIPTIVE_WORDS
    akin = [n for n in absent if is_asking or (not is_note and stems(name) & stems(n))]
    return nearest(name, akin, lead="") or nearest(name, absent, lead="", alike=0.75)


def _words(name: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(name.replace("'", ""))]


def _looks_like(name: str, kind: str) -> bool:
    low, words, wanted = name.casefold(), _words(name), _WORDS[kind].split()
    if kind in _EXCLUDED and _EXCLUDED[kind].search(low):
        return False
    if kind in _WITHIN and _WITHIN[kind].search(low):
        return True
    return any(word in wanted for word in words) or f"{words[-1] if words else ''}$" in wanted
