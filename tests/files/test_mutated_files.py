"""Whatever happens to a file: it is read, or a FileError says what is wrong; nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.errors import FileError
from cms.files import (
    Parsed,
    Source,
    lay_out,
    problem_from_json,
    problem_to_json,
    solution_from_json,
    solution_to_json,
)
from cms.files.tables import read_table
from tests.files.documents import PROBLEM, SOLUTION, parsed
from tests.texts import LETTERS

Reader = tuple[str, Callable[[Parsed], Any], Callable[[Any], dict[str, Any]]]
READERS: list[Reader] = [
    (PROBLEM, problem_from_json, problem_to_json),
    (SOLUTION, solution_from_json, solution_to_json),
]
TABLE = 'service,rate_rps,note\n# a comment\nchat,12.5,"a, ""b"""\r\nsearch,1/3,\n'


def read(text: str, reader: Reader) -> None:
    """Read a text; what is read must survive being written."""
    _, read_json, write_json = reader
    try:
        found = read_json(parsed(text))
    except FileError as fault:
        require_a_line(fault, "p.json")
        return
    assert read_json(parsed(lay_out(write_json(found)))) == found


def require_a_line(fault: FileError, path: str) -> None:
    """An error is one printable line that starts with the file."""
    assert str(fault).startswith(f"{path}:")
    assert str(fault).isprintable()


@st.composite
def edits(draw: st.DrawFn, text: str) -> str:
    """A text with a few pieces removed, doubled, moved or replaced."""
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        stop = min(len(text), start + draw(st.integers(0, 12)))
        piece = draw(
            st.sampled_from(["", text[start:stop] * 2, *'{}[]:,"\\ \n0-eE.N/\x00', "NaN", "null"])
            | st.text(LETTERS, max_size=3)
        )
        text = text[:start] + piece + text[stop:]
    return text


@pytest.mark.parametrize("reader", READERS, ids=["problem", "solution"])
@given(data=st.data())
def test_a_changed_file_is_read_or_refused(reader: Reader, data: st.DataObject) -> None:
    read(data.draw(edits(reader[0])), reader)


@given(text=edits(TABLE))
def test_a_table_with_edits_is_read_or_refused(text: str) -> None:
    try:
        table = read_table(Source("t.csv", text), ["service"], ["rate_rps"])
        for row in table:
            assert len(row.texts) == len(table.index)
            for cell in row.values():
                fault = cell.error("")
                assert (fault.line or 0) >= row.line
                assert (fault.column or 0) >= 1
            row["service"].word()
            row.value("rate_rps", lambda cell: cell.number(), None)
    except FileError as fault:
        require_a_line(fault, "t.csv")
