"""Tables in CSV, every cell with its line and column, so that an error says where it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeVar

from ..errors import FileError
from ..values.names import nearest
from ..values.numbers import format_exact
from .csv_records import DELIMITERS, bare, cell_offset, delimiter_of, folded, records
from .numerals import is_missing, number_hint, number_in, readings
from .source import Source, StrPath, plain, quoted, read_source, shortened

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

    def number(
        self, *, minimum: int | None = 0, above: int | None = None, whole: bool = False
    ) -> Fraction:
        """Read the cell as an exact number: at least `minimum`, or larger than `above`."""
        value = self._number(self.text)
        minimum = minimum if above is None else None
        if (
            value is not None
            and (minimum is None or value >= minimum)
            and (above is None or value > above)
            and not (whole and value.denominator > 1)
        ):
            return value
        kind = "a whole number" if whole else "a number"
        kind += "" if minimum is None else f" >= {minimum}"
        kind += "" if above is None else f" > {above}"
        fix = number_hint(self.text) if value is None else None
        raise self.error(self._says(), expected=kind, fix=fix)

    def integer(self, *, minimum: int | None = 0) -> int:
        """Read the cell as a whole number."""
        return int(self.number(minimum=minimum, whole=True))

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

    def error(self, what: str, **told: Any) -> FileError:
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
        """The texts of the columns beyond those of the format."""
        return {name: self.texts[self.table.index[name]] for name in self.table.extra}

    def error(self, what: str, **told: Any) -> FileError:
        """Build an error that points at this row."""
        return self.table.error(what, self.line, **told)


@dataclass(slots=True, eq=False)
class Table:
    """A table that was read; iterate over it for its rows, in the order of the file.

    `line` is the header's; `index` says which cell of a row belongs to a column; `extra` are
    columns beyond those of the format.
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

    def error(self, what: str, line: int | None = None, **told: Any) -> FileError:
        """Build an error that points at a line, of which the header's is the default."""
        return FileError(self.source.name, what, line=line or self.line, **told)

    def length_error(
        self, line: int, cells: Sequence[str], expected: str, fix: str | None = None
    ) -> FileError:
        """Build the error that a row has too many cells, or too few."""
        what = f"this row has {len(cells)} cell{'s' * (len(cells) != 1)}"
        return self.error(what, line, expected=expected, fix=fix)

    def add(self, line: int, cells: Sequence[str]) -> None:
        """Add a row."""
        self.rows.append(TableRow(self, line, tuple([cell.strip() for cell in cells])))

    def decimal_marks(self, name: str, *, listed: bool = False) -> frozenset[str]:
        """Return which of ``.`` and ``,`` are decimal marks in a column, or in its lists."""
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
    called: Mapping[str, str] | None = None,
) -> Table:
    """Read a CSV table with a header line, which has these columns in any order.

    In their names case does not count, nor whether blanks, hyphens, underscores, brackets or
    nothing stand between words; `called` has other names of columns, with what they stand for. All
    others than the `optional` ones are kept as :attr:`TableRow.extra`; `kept` are those of them
    that are looked up under just this name.
    """
    source = path if isinstance(path, Source) else read_source(path, holds="a CSV table")
    delimiter = delimiter_of(source, [*columns, *optional, *kept])
    found = records(source, delimiter)
    line, cells = next(found, (0, []))
    if not line:
        raise FileError(source.name, "the file has nothing but comments", expected="a CSV table")
    table = Table(source, line, {}, delimiter=delimiter)
    _read_header(table, [cell.strip() for cell in cells], columns, optional, kept, called)
    width = len(table.index)
    for line, cells in found:
        if len(cells) != width and (len(cells) < width or any(map(str.strip, cells[width:]))):
            fix = f"quote a cell that has a {DELIMITERS[delimiter]}" if len(cells) > width else None
            raise table.length_error(
                line, cells, f"{width} as in the header on line {table.line}", fix
            )
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
            raise table.length_error(line, cells, f"{len(columns)}: {', '.join(columns)}")
        table.add(line, cells)
    return table.rows


def _read_header(
    table: Table,
    names: list[str],
    required: Collection[str],
    optional: Collection[str],
    kept: Collection[str],
    called: Mapping[str, str] | None,
) -> None:
    while names and not names[-1]:  # what a spreadsheet leaves of columns that were cleared
        names.pop()
    asked = {bare(name): name for name in (*kept, *optional, *required)}
    mapped = {own: name for own, name in (called or {}).items() if name in asked.values()}
    asked |= {bare(own): name for own, name in mapped.items()}
    seen: dict[str, str] = {}
    for at, name in enumerate(names):
        if not name:
            fix = f"name it, or remove the {DELIMITERS[table.delimiter]} that begins it"
            raise table.error(f"column {at + 1} has no name", fix=fix)
        meant = asked.get(bare(name), name)
        if (before := seen.setdefault(folded(meant), name)) != name or meant in table.index:
            both = f"{shortened(repr(before))} and {shortened(repr(name))}"
            raise table.error(f"two columns are called {both}", fix="rename or remove one of them")
        table.index[meant] = at
    table.extra = tuple(n for n in table.index if n in kept or bare(n) not in asked)
    for name in (*required, *mapped.values()):
        if name not in table.index:
            expected, fix = f"a header with {', '.join(required)}", nearest(name, table.extra, "")
            if called is not None:
                fix = fix or f"say which one it is: --map YOURS={name}"
            raise table.error(f"there is no column {name!r}", expected=expected, fix=fix)
