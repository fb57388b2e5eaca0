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
from cms.files import Cell, Source, Table, is_missing, number_hint, number_in, read_table
from cms.files.csv_records import csv_text

COLUMNS = ("service", "rate_rps")


def place(cell: Cell) -> tuple[int, int]:
    fault = cell.error("")
    assert fault.line
    assert fault.column
    return fault.line, fault.column


def table(text: str, columns: tuple[str, ...] = COLUMNS, optional: tuple[str, ...] = ()) -> Table:
    return read_table(Source("t.csv", text), columns, optional)


def texts(text: str) -> list[tuple[str, ...]]:
    return [row.texts for row in table(text)]


PLAIN = [("chat", "12.5"), ("search", "1/3")]


@pytest.mark.parametrize(
    "text",
    [
        "service,rate_rps\nchat,12.5\nsearch,1/3\n",
        "service,rate_rps\nchat,12.5\nsearch,1/3",
        "service,rate_rps\r\nchat,12.5\r\nsearch,1/3\r\n",
        "service,rate_rps\rchat,12.5\rsearch,1/3\r",
        " service , rate_rps\n chat ,\t12.5\nsearch,1/3",
        '"service","rate_rps"\n"chat", "12.5"\nsearch,"1/3"',
        '# note, "one\n\nservice,rate_rps\n  # another\nchat,12.5\n\n,\n   \nsearch,1/3\n\n# end',
    ],
    ids=["lf", "no end", "crlf", "cr", "blanks", "quotes", "comments"],
)
def test_the_same_table_in_many_spellings(text: str) -> None:
    assert texts(text) == PLAIN


def test_a_file_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"\xef\xbb\xbfservice,rate_rps\r\nchat,12.5\r\nsearch,1/3\r\n")
    assert [row.texts for row in read_table(path, COLUMNS)] == PLAIN


def test_columns_come_in_any_order_and_others_are_kept() -> None:
    (row,) = table("note,rate_rps,weight,service\nslow,3,7,chat", COLUMNS, ("weight", "limit"))
    assert row["service"].text == "chat"
    assert row["rate_rps"].number() == 3
    assert row["weight"].integer() == 7
    assert row.extra == {"note": "slow"}
    assert list(row) == ["note", "rate_rps", "weight", "service"]
    assert row.value("limit", lambda cell: cell.number(), None) is None
    assert row.value("weight", lambda cell: cell.integer(), 0) == 7


def test_every_cell_knows_its_line_and_column() -> None:
    rows = list(
        table('# first\nservice,rate_rps,note\n"a ""b"", c", 12,"two\n# lines"\n\nd"e,3,\n')
    )
    assert [row.texts for row in rows] == [('a "b", c', "12", "two\n# lines"), ('d"e', "3", "")]
    assert [[place(cell) for cell in row.values()] for row in rows] == [
        [(3, 1), (3, 15), (3, 18)],
        [(6, 1), (6, 5), (6, 7)],
    ]


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
        (
            "service,rate\nchat,1",
            "t.csv:1: there is no column 'rate_rps', expected a header with service, rate_rps; "
            "nearest: 'rate'",
        ),
        (
            "# note\nchat,1\nsearch,2",
            "t.csv:2: there is no column 'service', expected a header with service, rate_rps",
        ),
        (
            "service|rate_rps\nchat|1",
            "t.csv:1: the columns are separated by '|', expected commas, semicolons or tabs; save "
            "it as comma-separated text",
        ),
        (
            "service,rate_rps,service\nchat,1,2",
            "t.csv:1: two columns are called 'service'; rename or remove one of them",
        ),
        (
            "service,,rate_rps\nchat,,1",
            "t.csv:1: column 2 has no name; name it, or remove the comma that begins it",
        ),
        (
            "service,rate_rps\nchat,1\nsearch\n",
            "t.csv:3: this row has 1 cell, expected 2 as in the header on line 1",
        ),
        (
            "service,rate_rps\nchat,12,5\n",
            "t.csv:2: this row has 3 cells, expected 2 as in the header on line 1; if a cell has a "
            'comma, quote it ("a, b"); a decimal comma is a point: 12.5',
        ),
        (
            'service,rate_rps\nchat,"12\nsearch,3\n',
            "t.csv:2: a quote that is opened here is never closed, expected a row of "
            'comma-separated cells; close it with "',
        ),
        (
            'service,rate_rps\n"a" b,3\n',
            "t.csv:2: text after a closing quote, expected a row of comma-separated cells; double "
            'a quote inside a quoted cell: ""',
        ),
        (
            f"service,rate_rps\n{'a' * 200_000},3\n",
            "t.csv:2: a cell is longer than 131072 characters, expected a row of comma-separated "
            "cells; close its quote",
        ),
    ],
)
def test_a_text_that_is_no_such_table_is_refused(text: str, message: str) -> None:
    with pytest.raises(FileError) as caught:
        table(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("12,5", '2:6: rate_rps is "12,5", expected a number >= 0; write 12.5 (decimal comma?)'),
        (
            "1,200",
            '2:6: rate_rps is "1,200", expected a number >= 0; write 1200 (thousands separator?) '
            "or 1.200 (decimal comma?)",
        ),
        (
            "1.200,5",
            '2:6: rate_rps is "1.200,5", expected a number >= 0; write 1200.5 (decimal comma and '
            "thousands separator?)",
        ),
        ("1 20", '2:6: rate_rps is "1 20", expected a number >= 0'),
        (
            "12 ms",
            '2:6: rate_rps is "12 ms", expected a number >= 0; write 12 without the unit \'ms\'',
        ),
        ("5%", '2:6: rate_rps is "5%", expected a number >= 0; write 5 without the unit \'%\''),
        (
            "N/A",
            '2:6: rate_rps is "N/A", expected a number >= 0; write the number, or leave the whole '
            "entry out",
        ),
        (
            "",
            "2:6: rate_rps is empty, expected a number >= 0; write the number, or leave the whole "
            "entry out",
        ),
        ("-3", '2:6: rate_rps is "-3", expected a number >= 0'),
        ("\u22123", '2:6: rate_rps is "\u22123", expected a number >= 0; write the minus sign as '
         "'-': -3"),
        ("inf", '2:6: rate_rps is "inf", expected a number >= 0; write a finite number'),
        ("1e999", '2:6: rate_rps is "1e999", expected a number >= 0; the exponent may be '
         "at most 400"),
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
    assert str(caught.value) == f"t.csv:{message}"


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


def test_a_whole_number_may_be_written_as_a_decimal_but_must_be_whole() -> None:
    first, second = table("service,rate_rps\na,2.0\nb,2.5")
    assert first["rate_rps"].integer() == 2
    with pytest.raises(FileError, match=r'rate_rps is "2.5", expected a whole number >= 0$'):
        second["rate_rps"].integer()


def test_a_row_can_be_blamed_as_a_whole() -> None:
    (row,) = table("service,rate_rps\nchat,1")
    assert str(row.error("a second row", expected="one")) == "t.csv:2: a second row, expected one"


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


@pytest.mark.parametrize(("text", "number"), [("0x10", "16"), ("0XfF", "255"), ("-0x1", "-1")])
def test_a_hexadecimal_number_is_not_taken_for_one_with_a_unit(text: str, number: str) -> None:
    assert number_hint(text) == f"write {number} (in decimal digits)"


@pytest.mark.parametrize("text", ["", " ", "N/A", "n/a", "NaN", "null", "-", "#N/A", "None"])
def test_a_value_that_is_not_there_is_told_from_a_number(text: str) -> None:
    assert is_missing(text)
    assert number_in(text) is None


@pytest.mark.parametrize(
    "text", ["1_000", "0x10", "12.5.1", "1/2/3", "1e", "--1", ".", "1 / 3", "9" * 5000]
)
def test_what_only_looks_like_a_number_is_none(text: str) -> None:
    assert number_in(text) is None


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
