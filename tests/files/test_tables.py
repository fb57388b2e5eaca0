"""CSV tables in all dialects: what is read, where every cell stands, and what is refused."""

from __future__ import annotations

import csv
import io
import re
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.errors import FileError
from cms.files import Source
from cms.files.csv_records import csv_text
from cms.files.numerals import number_hint, number_in, readings
from cms.files.tables import Cell, Table, read_table
from cms.fleet import read_services

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
    if hint is not None and hint.startswith("write ") and not re.search("number|characters", hint):
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


def place(cell: Cell) -> tuple[int, int]:
    fault = cell.error("")
    assert fault.line
    assert fault.column
    return fault.line, fault.column


def column(*cells: str, delimiter: str = ";") -> list[Fraction]:
    """The numbers of a column, in a table in which nothing else is a number."""
    lines = [f"name{delimiter}rate_rps", *(f"x{delimiter}{cell}" for cell in cells)]
    return [row["rate_rps"].number() for row in read_table(source(*lines), ["rate_rps"])]


def source(*lines: str) -> Source:
    return Source("t.csv", "\n".join(lines) + "\n")


@pytest.mark.parametrize("delimiter", [";", "\t"])
@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["1,5", "2.5"], ["1.5", "2.5"]),
        (["0,250"], ["0.25"]),
        (["1.234,5", "1.234", "7"], ["1234.5", "1234", "7"]),
        (["1,234", "0,25"], ["1.234", "0.25"]),
        (["1,234", "1,234,567"], ["1234", "1234567"]),
        (["1.234", "1.234.567"], ["1234", "1234567"]),
        (["1.234", "310.5"], ["1.234", "310.5"]),
        (["1 234", "1'234", "1_234", "1\u00a0234", "1\u202f234", "1\u2009234", "1\u2019234"],
         ["1234"] * 7),
        (["1'234.567", "1,234"], ["1234.567", "1234"]),
        (["1/3", "1e3", "1,5e3"], ["1/3", "1000", "1500"]),
        (["1.000", "1,5"], ["1000", "1.5"]),
    ],
)  # fmt: skip
def test_a_number_is_read_as_its_column_shows(
    cells: list[str], numbers: list[str], delimiter: str
) -> None:
    expected = [Fraction(number) for number in numbers]
    assert column(*cells, delimiter=delimiter) == expected
    assert column(*cells[::-1], delimiter=delimiter) == expected[::-1]


def test_numbers_of_a_list_show_the_mark_of_each_other() -> None:
    (row,) = read_table(source("name;rates", "x;1,234 0,5"), ["rates"])
    assert row["rates"].numbers() == [Fraction("1.234"), Fraction("0.5")]
    # As one number it would have thousands and a decimal point; as a list it shows neither.
    (row,) = read_table(source("name;rates", "x;1 234.567"), ["rates"])
    with pytest.raises(FileError, match="which is 234567 or 234.567"):
        row["rates"].numbers()


@pytest.mark.parametrize("others", [["7", "1/3"], ["1,5", "2.5"]])
def test_where_nothing_tells_both_readings_are_named(others: list[str]) -> None:
    with pytest.raises(FileError, match="t.csv:2:3: .* which is 1234 or 1.234: its column"):
        column("1,234", *others)


@given(
    value=st.fractions(0, 10**10).map(lambda value: Fraction(round(value * 10**5), 10**5)),
    mark=st.sampled_from(".,"),
    apart=st.sampled_from(["", " ", "'", "_", "\u00a0", "\u202f"]),
)
def test_of_both_readings_one_is_the_number_that_was_written(
    value: Fraction, mark: str, apart: str
) -> None:
    text = written(value, mark, apart or (",." if mark == "." else ".,")[0])
    point, comma = readings(text)
    assert value == (point if mark == "." else comma)
    if value.denominator > 1000:  # more than three places are beyond doubt
        assert (comma if mark == "." else point) is None


def written(value: Fraction, mark: str, apart: str) -> str:
    whole, places = divmod(value, 1)
    rest = f"{int(places * 10**5):05d}".rstrip("0")
    return f"{int(whole):,}".replace(",", apart) + (f"{mark}{rest}" if rest else "")


NAMES = ("service", "model", "rate_rps", "latency_limit_ms", "late_share", "allowed_profiles")
SPELT = {
    "lower": lambda name: name,
    "upper": lambda name: name.upper(),
    "title": lambda name: name.replace("_", " ").title(),
    "hyphens": lambda name: f" {name.replace('_', '-')} ",
}
rows = st.lists(
    st.tuples(
        st.text(st.sampled_from('abc,;" #'), max_size=5).map(lambda text: f"n{text}"),
        st.integers(0, 10**9).map(lambda value: Fraction(value, 10**5)),
        st.integers(1, 10**9).map(lambda value: Fraction(value, 10**3)),
    ),
    min_size=1,
    max_size=5,
    unique_by=lambda row: row[0].strip(),
)


@given(
    rows=rows,
    delimiter=st.sampled_from(",;\t"),
    mark=st.sampled_from(".,"),
    apart=st.sampled_from(["", " ", "'", "\u00a0"]),
    spelt=st.sampled_from(sorted(SPELT)),
    bom=st.booleans(),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    spare=st.integers(0, 2),
    quoting=st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
)
def test_a_table_of_services_in_any_dialect_reads_equal(
    rows: list[tuple[str, Fraction, Fraction]],
    delimiter: str,
    mark: str,
    apart: str,
    spelt: str,
    bom: bool,
    end: str,
    spare: int,
    quoting: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    if delimiter == ",":
        mark = "."
    rows = [*rows, ("last", Fraction(1, 10**5), Fraction(10**4 + 1, 10**4))]  # shows the mark
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter=delimiter, quoting=quoting, lineterminator=end)  # type: ignore[arg-type]
    writer.writerow([*map(SPELT[spelt], NAMES), *[""] * spare])
    for name, rate, limit in rows:
        numbers = [written(each, mark, apart) for each in (rate, limit)]
        writer.writerow([name, "bert", *numbers, "", "3g.40gb 4g.40gb", *[""] * spare])
    text = f"# a comment, with; all\tof them{end}{buffer.getvalue()}{delimiter * 5}{end}"
    path = tmp_path_factory.mktemp("dialect") / "services.csv"
    path.write_bytes((b"\xef\xbb\xbf" if bom else b"") + text.encode())
    found = read_services(path)
    assert [(each.name, each.rate_rps, each.latency_limit_ms) for each in found] == [
        (name.strip(), rate, limit) for name, rate, limit in rows
    ]
    assert {each.allowed_profiles for each in found} == {("3g.40gb", "4g.40gb")}


@given(
    cells=st.lists(
        st.tuples(*[st.text(st.sampled_from("ab ,;'\t\"\n.#1"), max_size=4)] * 3),
        min_size=1,
        max_size=5,
    ),
    delimiter=st.sampled_from(";\t"),
)
def test_cells_are_those_of_the_standard_library(
    cells: list[tuple[str, str, str]], delimiter: str
) -> None:
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=delimiter, quoting=csv.QUOTE_ALL).writerows(
        [("one", "two", "three"), *cells]
    )
    reader = csv.reader(io.StringIO(buffer.getvalue(), newline=""), delimiter=delimiter)
    expected = [tuple(cell.strip() for cell in row) for row in reader][1:]
    expected = [row for row in expected if any(row)]
    if not expected:
        return
    table = read_table(Source("t.csv", buffer.getvalue()), ["one", "two"])
    assert [row.texts for row in table] == expected
    lines = io.StringIO(buffer.getvalue(), newline="").readlines()
    for row in table:
        for cell in row.values():
            rest = (
                "".join(lines[place(cell)[0] - 1 :])[place(cell)[1] - 1 :].replace('"', "").lstrip()
            )
            assert rest.startswith(cell.text.replace('"', "").lstrip())
