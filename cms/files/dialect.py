"""Which dialect a table is written in: what stands between its cells, and which headers are equal.

Spreadsheets of half the world separate cells by semicolons, since a comma is their decimal mark,
and what is copied out of one has tabs. The header tells, since it has names and no numbers.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from itertools import islice
from types import MappingProxyType

from ..errors import FileError
from .csv_records import records
from .source import Source

__all__ = ["DELIMITERS", "bare", "delimiter_of", "folded", "is_table"]

#: What may stand between cells, and what one of it is called; of equal ones the first is taken.
DELIMITERS: Mapping[str, str] = MappingProxyType({",": "comma", ";": "semicolon", "\t": "tab"})
_GAPS = re.compile(r"[\s_-]+")
_BETWEEN = re.compile(r"[\s_()\[\]-]+")


def folded(name: str) -> str:
    """Write a header as all headers are written that mean the same.

    Examples
    --------
    >>> folded("Rate RPS"), folded(" rate-rps ")
    ('rate_rps', 'rate_rps')
    """
    return _GAPS.sub("_", name.strip().casefold())


def bare(name: str) -> str:
    """Write a header without what stands between its words, to look for a known one.

    Never to tell unknown ones apart: ``chat-1-11`` and ``chat-11-1`` are two services.

    Examples
    --------
    >>> bare("Latency (ms)"), bare("latencyMs"), bare("latency_ms")
    ('latencyms', 'latencyms', 'latencyms')
    """
    return _BETWEEN.sub("", name.casefold())


def is_table(source: Source) -> bool:
    r"""Whether a text that is no JSON document is a table: its first rows have cells, and as many.

    Examples
    --------
    >>> is_table(Source("s.csv", "# rates\nservice;rate\nchat;12,5\n"))
    True
    >>> is_table(Source("s.json", '{"service": "chat", \n"rate": 12, }'))
    False
    """
    text = source.text or ""
    if text.lstrip().startswith(("{", "[")):
        return False
    needed = 1 if source.name.lower().endswith((".csv", ".tsv")) else 2
    for delimiter in DELIMITERS:
        try:
            rows = [cells for _, cells in islice(records(source, delimiter), 2)]
        except FileError:
            continue
        named = bool(rows) and all(cell.strip() for cell in rows[0])
        if named and len(rows) >= needed and 1 < len(rows[0]) == len(rows[-1]):
            return True
    return False


def delimiter_of(source: Source, known: Collection[str]) -> str:
    r"""Tell by the header of a table what stands between its cells.

    Parameters
    ----------
    source : Source
    known : collection of str
        Columns that are looked for.

    Returns
    -------
    str
        The one that finds most of these columns; of several that do, the one that finds most
        columns at all.

    Examples
    --------
    >>> delimiter_of(Source("s.csv", "service;rate, in items/s\nchat;12,5\n"), ["service"])
    ';'
    """
    wanted = {bare(name) for name in known}
    best, most = ",", (-1, -1)
    for delimiter in DELIMITERS:
        try:
            _, cells = next(records(source, delimiter), (1, []))
        except FileError:  # its quotes fit another one, or none: then the reader says so
            continue
        found = len(wanted.intersection(map(bare, cells))), len(cells)
        if found > most:
            best, most = delimiter, found
    return best
