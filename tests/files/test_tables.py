"""CSV tables: what is read, where every cell stands, and what is refused with which words."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.errors import FileError
from cms.files import Source
from cms.files.csv_records import csv_text
from cms.files.numerals import number_hint, number_in
from cms.files.tables import Table, read_table

COLUMNS = ("service", "rate_rps")


def table(text: str, columns: tuple[str, ...] = COLUMNS, optional: tuple[str, ...] = ()) -> Table:
    return read_table(Source("t.csv", text), columns, optional)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rate_rps,service\n", "t.csv: the table has no row, expected rows below the header"),
        ("service,rate\nchat,1", "t.csv:1: there is no column 'rate_rps', expected a header wit"),
        ("service|rate_rps\nchat|1", "t.csv:1: there is no column 'service', expected a header w"),
        ("service,rate_rps,service\nchat,1,2", "t.csv:1: two columns are called 'service' and '"),
        ("service,rate_rps\nchat,1\nsearch\n", "t.csv:3: this row has 1 cell, expected 2 as in "),
        ('service,rate_rps\nchat,"12\nsearch,3\n', "t.csv:2: a quote that is opened here is nev"),
        ('service,rate_rps\n"a" b,3\n', "t.csv:2: ',' expected after '\"', expected a row of"),
    ],
)
def test_a_text_that_is_no_such_table_is_refused(text: str, message: str) -> None:
    with pytest.raises(FileError) as caught:
        table(text)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("12,5", '2:6: rate_rps is "12,5", expected a number >= 0; write 12.5 (decimal comma?)'),
        ('N/A', '2:6: rate_rps is "N/A", expected a number >= 0; write the number, or leave the'),
        ("\u0661\u0662", '2:6: rate_rps is "\u0661\u0662", expected a number >= 0'),
    ],
)  # fmt: skip
def test_a_cell_that_is_no_number_says_what_to_write(cell: str, message: str) -> None:
    quote = '"' if "," in cell else ""
    (row,) = table(f"service,rate_rps\nchat,{quote}{cell}{quote}")
    with pytest.raises(FileError) as caught:
        row["rate_rps"].number()
    assert str(caught.value).startswith(f"t.csv:{message}")


def test_limits_of_numbers_are_kept() -> None:
    (row,) = table("service,rate_rps\n,0")
    zero = row["rate_rps"]
    assert zero.number() == zero.integer() == zero.number(minimum=None) == 0
    with pytest.raises(FileError, match=r't.csv:2:2: rate_rps is "0", expected a number > 0$'):
        zero.number(above=0)
    with pytest.raises(FileError, match=r'rate_rps is "0", expected a whole number >= 1$'):
        zero.integer(minimum=1)
    (row,) = table("service,rate_rps\n,1.5")
    with pytest.raises(FileError, match=r'rate_rps is "1.5", expected a whole number >= 0$'):
        row["rate_rps"].integer()
    with pytest.raises(FileError, match=r"t.csv:2:1: service is empty, expected a name$"):
        row["service"].word()


@given(text=st.text("0123456789.,/eE+- x", max_size=12))
def test_a_hint_proposes_only_numbers_that_can_be_read(text: str) -> None:
    hint = number_hint(text)
    if hint is not None and hint.startswith("write ") and "number" not in hint:
        assert number_in(hint.split()[1]) is not None


@pytest.mark.parametrize(
    "name", ["=1+1", "+x", "-x", "@cf/m", "'=1", "''=1", "'n1", "n=1", "=HYPERLINK(\"a\",\"b\")"]
)  # fmt: skip
def test_no_name_is_a_formula_in_a_table_and_ours_are_read_as_written(
    name: str, tmp_path: Path
) -> None:
    written = csv_text([("name", "count"), (name, 3)])
    (tmp_path / "t.csv").write_text(written, "utf-8")
    ((cell, count),) = ((row["name"].text, row["count"].integer()) for row in
                        read_table(tmp_path / "t.csv", ["name", "count"]))  # fmt: skip
    assert (cell, count) == (name, 3)
    first = next(iter(csv.reader(written.splitlines()[1:])))[0]
    assert not first.startswith(("=", "+", "-", "@"))
