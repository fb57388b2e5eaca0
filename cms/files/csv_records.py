"""The records of a CSV file, where its cells stand, and in which dialect it is written."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice

from ..errors import FileError
from .source import Source

#: What may stand between cells, and what one of it is called; of equal ones the first is taken.
DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab"}
_SAYS_ITSELF = re.compile(r"sep=[,;\t]\s*", re.IGNORECASE)  # a spreadsheet, to its like
_GAPS, _BETWEEN = re.compile(r"[\s_-]+"), re.compile(r"[\s_()\[\]-]+")
# Apostrophes before what begins as a formula are such that were added, or were there: one more is.
_FORMULA = re.compile("'*[=+\\-@\t\r\n＝＋－＠]")
_GUARDED = re.compile("'(?='*[=+\\-@\t\r\n＝＋－＠])")
_QUOTED = re.compile(r' *+(?:"[^"]*+(?:""[^"]*+)*+")?')  # where a cell starts; empty without one


def folded(name: str) -> str:
    """Write a header as all headers are written that mean the same: ``rate_rps``."""
    return _GAPS.sub("_", name.strip().casefold())


def bare(name: str) -> str:
    """Write a header without what stands between its words, to look for a known one.

    Never to tell unknown ones apart: ``chat-1-11`` and ``chat-11-1`` are two services.
    """
    return _BETWEEN.sub("", name.casefold())


def delimiter_of(source: Source, known: Collection[str]) -> str:
    """Tell by the header what stands between cells: what finds most of the known columns."""
    wanted = {bare(name) for name in known}
    found = {}
    for delimiter in DELIMITERS:
        with suppress(FileError):  # if quotes fit none of them, the reader says so
            _, header = next(records(source, delimiter), (0, []))
            found[delimiter] = len(wanted.intersection(map(bare, header))), len(header)
    return max(found, key=lambda delimiter: found[delimiter], default=",")


def records(source: Source, delimiter: str = ",") -> Iterator[tuple[int, list[str]]]:
    """Yield (line it starts on, cells) of every record that is no comment and not blank."""
    # ``str.splitlines`` would also split at form feeds and at U+2028 inside a cell
    line = 0  # of the last line taken
    start = 0  # of the record being read; 0 between records

    def lines() -> Iterator[str]:
        nonlocal line, start
        for text in io.StringIO(source.text, newline=""):
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
            open_quote = "a quote that is opened here is never closed"
            what = open_quote if "end of data" in str(fault) else str(fault)
            expected = f"a row of {DELIMITERS[delimiter]}-separated cells"
            raise FileError(source.name, what, line=start or 1, expected=expected) from None
        if any(cell.strip() for cell in cells):
            yield start, [cell[_GUARDED.match(cell) is not None :] for cell in cells]


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """Write rows as CSV, in which a spreadsheet takes no name for a formula.

    A text that begins as a formula does (``=``, ``+``, ``-``, ``@``, a tab) gets an apostrophe
    before it, as spreadsheets themselves mark text; :func:`records` takes it away again.
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(
        [f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) else cell for cell in row]
        for row in rows
    )
    return text.getvalue()


def cell_offset(source: Source, line: int, index: int, delimiter: str = ",") -> int:
    """Find where the index-th cell of the record that starts on a line begins."""
    text = source.text
    at = sum(map(len, islice(io.StringIO(text, newline=""), line - 1)))
    for _ in range(index):
        quoted = _QUOTED.match(text, at)
        at = text.find(delimiter, quoted.end() if quoted else at) + 1 or at
    while at < len(text) and text[at].isspace() and text[at] not in f"\r\n{delimiter}":
        at += 1
    return at
