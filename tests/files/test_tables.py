"""CSV tables: what is read, where every cell stands, and what is refused with which words."""

from __future__ import annotations

import csv
import io
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.errors import FileError
from cms.files import Cell, Source, Table, number_hint, number_in, read_table
from cms.files.csv_records import csv_text

COLUMNS = ("service", "rate_rps")


def place(cell: Cell) -> tuple[int, int]:
    fault = cell.error("")
    assert fault.line
    assert fault.column
    return fault.line, fault.column


def table(text: str, columns: tuple[str, ...] = COLUMNS, optional: tuple[str, ...] = ()) -> Table:
    return read_table(Source("t.csv", text), columns, optional)


cells = st.text(
    st.characters(blacklist_categories=("Cs", "Cc")) | st.sampled_from(',"#\n;'), max_size=5
)


@given(rows=st.lists(st.tuples(cells, cells, cells), min_size=1, max_size=4), quoting=st.booleans())
def test_what_the_standard_library_writes_is_read_with_positions(
    rows: list[tuple[str, str, str]], quoting: bool
) -> None:
    rows = [row for row in rows if any(cell.strip() for cell in row)]
    rows = [row for row in rows if not row[0].lstrip().startswith("#")] or [("x", "y", "z")]
    buffer = io.StringIO()
    writer = csv.writer(buffer, quoting=csv.QUOTE_ALL if quoting else csv.QUOTE_MINIMAL)
    writer.writerows([("one", "two", "three"), *rows])
    text = buffer.getvalue()
    found = table(text, ("one",))
    assert [row.texts for row in found] == [tuple(cell.strip() for cell in row) for row in rows]
    lines = io.StringIO(text, newline="").readlines()
    for row in found:
        for cell in row.values():
            rest = "".join(lines[place(cell)[0] - 1 :])[place(cell)[1] - 1 :]
            # quotes around a cell and those doubled inside it are not compared
            assert rest.replace('"', "").lstrip().startswith(first_letters(cell.text))


def first_letters(text: str) -> str:
    return text.replace('"', "").lstrip()[:2].rstrip()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rate_rps,service\n", "t.csv: the table has no row, expected rows below the header"),
        ("service,rate\nchat,1", "t.csv:1: there is no column 'rate_rps', expected a header wit"),
        ("# note\nchat,1\nsearch,2", "t.csv:2: there is no column 'service', expected a header "),
        ("service|rate_rps\nchat|1", "t.csv:1: the columns are separated by '|', expected comma"),
        ("service,rate_rps,service\nchat,1,2", "t.csv:1: two columns are called 'service'; rena"),
        ("service,,rate_rps\nchat,,1", "t.csv:1: column 2 has no name; name it, or remove the c"),
        ("service,rate_rps\nchat,1\nsearch\n", "t.csv:3: this row has 1 cell, expected 2 as in "),
        ("service,rate_rps\nchat,12,5\n", "t.csv:2: this row has 3 cells, expected 2 as in the "),
        ('service,rate_rps\nchat,"12\nsearch,3\n', "t.csv:2: a quote that is opened here is nev"),
        ('service,rate_rps\n"a" b,3\n', "t.csv:2: text after a closing quote, expected a row of"),
        (f"service,rate_rps\n{'a' * 200_000},3\n", "t.csv:2: a cell is longer than 131072 chara"),
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
        ('1,200', '2:6: rate_rps is "1,200", expected a number >= 0; write 1200 (thousands sepa'),
        ('1.200,5', '2:6: rate_rps is "1.200,5", expected a number >= 0; write 1200.5 (decimal '),
        ("1 20", '2:6: rate_rps is "1 20", expected a number >= 0'),
        ('12 ms', '2:6: rate_rps is "12 ms", expected a number >= 0; write 12 without the unit '),
        ("5%", '2:6: rate_rps is "5%", expected a number >= 0; write 5 without the unit \'%\''),
        ('N/A', '2:6: rate_rps is "N/A", expected a number >= 0; write the number, or leave the'),
        ('', '2:6: rate_rps is empty, expected a number >= 0; write the number, or leave the wh'),
        ("-3", '2:6: rate_rps is "-3", expected a number >= 0'),
        ('−3', '2:6: rate_rps is "−3", expected a number >= 0; write the minus sign as \'-\': -'),
        ("inf", '2:6: rate_rps is "inf", expected a number >= 0; write a finite number'),
        ('1e999', '2:6: rate_rps is "1e999", expected a number >= 0; the exponent may be at mos'),
        ("1/0", '2:6: rate_rps is "1/0", expected a number >= 0; a division by zero is no number'),
        ("fast", '2:6: rate_rps is "fast", expected a number >= 0'),
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
    with pytest.raises(FileError, match=r"t.csv:2:1: service is empty, expected a name$"):
        row["service"].word()


@given(
    value=st.fractions(max_denominator=10**6)
    | st.decimals(allow_nan=False, allow_infinity=False, places=4)
)
def test_a_number_is_read_as_the_exact_number_it_says(value: Fraction) -> None:
    assert number_in(f" {value} ") == Fraction(value)


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
