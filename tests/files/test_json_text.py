"""JSON with exact numbers, and the positions of its values."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.errors import FileError
from cms.files import Source, parse_json
from cms.files.json_text import locate
from tests.texts import LETTERS

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(LETTERS, max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(LETTERS, max_size=3), inner)
    ),
    max_leaves=12,
)
blanks = st.sampled_from(["", " ", "\n", "\r\n ", "\t"])


@st.composite
def texts(draw: st.DrawFn) -> tuple[str, Any]:
    """A value, and a text of it with blanks wherever JSON allows them."""
    value = draw(values)

    def write(item: Any) -> str:
        before, after = draw(blanks), draw(blanks)
        if isinstance(item, dict):
            pairs = [
                f"{draw(blanks)}{json.dumps(k)}{draw(blanks)}:{write(v)}" for k, v in item.items()
            ]
            return f"{before}{{{','.join(pairs) or draw(blanks)}}}{after}"
        if isinstance(item, list):
            return f"{before}[{','.join(map(write, item)) or draw(blanks)}]{after}"
        return f"{before}{json.dumps(item)}{after}"

    return write(value), value


def paths(value: Any) -> list[tuple[tuple[str | int, ...], Any]]:
    found: list[tuple[tuple[str | int, ...], Any]] = [((), value)]
    children: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        children += value.items()
    if isinstance(value, list):
        children += enumerate(value)
    for key, child in children:
        found += [((key, *path), inner) for path, inner in paths(child)]
    return found


@given(written=texts())
def test_every_value_and_key_is_found_where_it_stands(written: tuple[str, Any]) -> None:
    text, value = written
    source = Source("a.json", text)
    assert parse_json(source) == value
    for path, inner in paths(value):
        at, key_at = locate(source, path)
        assert at is not None
        assert json.JSONDecoder().raw_decode(text, at)[0] == inner
        if path and isinstance(path[-1], str):
            assert key_at is not None
            assert json.JSONDecoder().raw_decode(text, key_at)[0] == path[-1]
        else:
            assert key_at is None


@given(text=st.text("{}[]:,\"\\ \n0123456789.eE+-truefalsnNIity'/#", max_size=30))
def test_whatever_is_parsed_is_what_the_standard_library_parses(text: str) -> None:
    try:
        expected = json.loads(text, parse_float=Fraction, parse_constant=refuse)
    except (ValueError, ZeroDivisionError):
        with pytest.raises(FileError):
            parse_json(Source("a.json", text))
        return
    if "e" in text or text.count('"') > 3:  # may be out of range, or have a key twice
        return
    assert parse_json(Source("a.json", text)) == expected


def refuse(name: str) -> None:
    raise ValueError(name)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[1, {"a": 1, "b": [{"c": 1, "c": 2}]}]', '1:29: the key "c" is there twice'),
        (r'{"a\u0062": 1, "ab": 2}', '1:16: the key "ab" is there twice'),
        (r'{"a": "NaN, \" {", "b": NaN}', "1:25: NaN is no number"),
        ('[true, {"a": 1e400, "b": 1e-401}]', "1:26: the number 1e-401 is out of range"),
        ("{", '1:2: the document ends too early, expected a key in double quotes, or "}"'),
        ('{"a" 1}', '1:6: unexpected "1", expected ":"'),
        ("[1,,2]", '1:4: unexpected ",", expected a value'),
        ("[1 ,\n ]", '1:4: a comma before "]"'),
        ("[None]", '1:2: unexpected "None", expected a value'),
    ],
)
def test_a_fault_is_found_where_it_stands(text: str, message: str) -> None:
    with pytest.raises(FileError) as caught:
        parse_json(Source("p.json", text))
    assert str(caught.value).startswith(f"p.json:{message}")
