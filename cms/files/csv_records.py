"""The records of a CSV file, each with the line it starts on, and where its cells stand."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence

from ..errors import FileError
from .source import Source

_SAYS_ITSELF = re.compile(r"sep=[,;\t]\s*", re.IGNORECASE)  # a spreadsheet, to its like
_SEPARATED = {",": "comma-separated", ";": "semicolon-separated", "\t": "tab-separated"}


def physical_lines(source: Source) -> Iterator[str]:
    """Yield the lines with their ends: LF, CRLF or CR.

    ``str.splitlines`` would also split at form feeds and at U+2028 inside a cell.
    """
    return iter(io.StringIO(source.text, newline=""))


def records(source: Source, delimiter: str = ",") -> Iterator[tuple[int, list[str]]]:
    """Yield (line it starts on, cells) of every record that is no comment and not blank.

    Raises
    ------
    FileError
        If the quotes are not those of a CSV file.
    """
    line = 0  # of the last line taken
    start = 0  # of the record being read; 0 between records

    def lines() -> Iterator[str]:
        nonlocal line, start
        for text in physical_lines(source):
            line += 1
            # A record takes more than one line only inside quotes: there a '#' is data.
            if not start:
                if text.lstrip().startswith("#") or (line == 1 and _SAYS_ITSELF.fullmatch(text)):
                    continue
                start = line
            yield text

    reader = csv.reader(lines(), delimiter=delimiter, strict=True, skipinitialspace=True)
    while True:
        start = 0
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as fault:
            raise _fault(source, start or 1, fault, delimiter) from None
        if any(cell.strip() for cell in cells):
            yield start, [cell[_GUARDED.match(cell) is not None :] for cell in cells]


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """Write rows as CSV, in which a spreadsheet takes no name for a formula.

    A text that begins as a formula does (``=``, ``+``, ``-``, ``@``, a tab) gets an apostrophe
    before it, as spreadsheets themselves mark text; :func:`records` takes it away again.

    Examples
    --------
    >>> csv_text([["=1+1", "'=", "n1/0", -4]])
    "'=1+1,''=,n1/0,-4\\n"
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(
        [f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) else cell for cell in row]
        for row in rows
    )
    return text.getvalue()


# Apostrophes before it are such that were added, or were there: one is added to them.
_FORMULA = re.compile("'*[=+\\-@\t\r\n＝＋－＠]")
_GUARDED = re.compile("'(?='*[=+\\-@\t\r\n＝＋－＠])")
# A cell and the delimiter after it; quotes mean something only where a cell starts. What a piece
# has taken it keeps: going back would take time that grows with the square.
_CELLS = {
    ",": re.compile(r' *+(?:"[^"]*+(?:""[^"]*+)*+")?[^,]*+,'),
    ";": re.compile(r' *+(?:"[^"]*+(?:""[^"]*+)*+")?[^;]*+;'),
    "\t": re.compile(r' *+(?:"[^"]*+(?:""[^"]*+)*+")?[^\t]*+\t'),
}


def cell_offset(source: Source, line: int, index: int, delimiter: str = ",") -> int:
    """Find where the index-th cell of the record that starts on a line begins.

    The reader of the standard library does not say, so this looks again, on the way to an error.
    """
    text, at = source.text or "", 0
    for number, physical in enumerate(physical_lines(source), start=1):
        if number == line:
            break
        at += len(physical)
    for _ in range(index):
        match = _CELLS[delimiter].match(text, at)
        at = match.end() if match else at
    while at < len(text) and text[at].isspace() and text[at] not in f"\r\n{delimiter}":
        at += 1
    return at


def _fault(source: Source, line: int, fault: csv.Error, delimiter: str) -> FileError:
    if "unexpected end of data" in str(fault):
        what, fix = "a quote that is opened here is never closed", 'close it with "'
    elif "field larger" in str(fault):
        what, fix = f"a cell is longer than {csv.field_size_limit()} characters", "close its quote"
    else:
        what, fix = "text after a closing quote", 'double a quote inside a quoted cell: ""'
    expected = f"a row of {_SEPARATED[delimiter]} cells"
    return FileError(source.name, what, line=line, expected=expected, fix=fix)
