"""Whatever happens to a file: it is read, or a FileError says what is wrong; nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.errors import FileError
from cms.files import (
    Node,
    Source,
    lay_out,
    problem_from_json,
    problem_to_json,
    solution_from_json,
    solution_to_json,
)
from cms.files.tables import read_table
from proofs_checks.checker import check_problem, parse_document, problem_sha256
from tests.files.documents import PROBLEM, SOLUTION, parsed
from tests.files.test_time_shared import TEXT
from tests.texts import LETTERS

Reader = tuple[str, Callable[[Node], Any], Callable[[Any], dict[str, Any]]]
READERS: list[Reader] = [
    (PROBLEM, problem_from_json, problem_to_json),
    (SOLUTION, solution_from_json, solution_to_json),
]
JUNK: list[Any] = [
    *(None, True, -1, 0, 1.5, 10**30, "", "x", "1/0", "1e9", "-1/2", "N/A", "12,5", "\ud800", "\0"),
    *([], [[]], [1], {}, {"": 1}, {"x": {}}, {"branch": 0}, {"prices": {"a": -1}}, {"groups": []}),
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


@st.composite
def replaced(draw: st.DrawFn, text: str) -> str:
    """A document with one value or key exchanged for something that does not belong there."""
    document = json.loads(text)
    node = document
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        key = draw(st.sampled_from(keys))
        if not (isinstance(node[key], dict | list) and node[key]) or draw(st.integers(0, 3)) == 0:
            break
        node = node[key]
    match draw(st.sampled_from(["value", "key", "remove", "double"])):
        case "value":
            node[key] = draw(st.sampled_from(JUNK))
        case "key" if isinstance(node, dict):
            node[draw(st.sampled_from(["", "x-", "sizes", "name", "a\nb", "1G"]))] = node[key]
        case "double" if isinstance(node, list):
            node.append(node[key])
        case _:
            del node[key]
    return json.dumps(document)


@pytest.mark.parametrize("reader", READERS, ids=["problem", "solution"])
@pytest.mark.parametrize("change", [edits, replaced])
@given(data=st.data())
def test_a_changed_file_is_read_or_refused(
    reader: Reader, change: Callable[[str], st.SearchStrategy[str]], data: st.DataObject
) -> None:
    read(data.draw(change(reader[0])), reader)


@pytest.mark.parametrize("original", [PROBLEM, TEXT], ids=["listed", "time-shared"])
@given(data=st.data())
def test_the_independent_checker_takes_the_same_files_for_problems(
    original: str, data: st.DataObject
) -> None:
    text = data.draw(edits(original) | replaced(original))
    try:
        sha256 = problem_from_json(parsed(text)).sha256
    except FileError:
        with pytest.raises(ValueError, match=r"\w"):
            require_no_faults(text)
        return
    require_no_faults(text)
    assert problem_sha256(parse_document(text)) == sha256


def require_no_faults(text: str) -> None:
    faults = check_problem(parse_document(text))
    if faults:
        raise ValueError(str(faults))


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
