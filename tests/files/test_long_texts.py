"""Texts of any length are read in time that grows with it, or refused; errors stay readable."""

from __future__ import annotations

import difflib
import json
import re
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cms.errors import CmsError, FileError, InvalidProblem, cut
from cms.files import Node, Source, parse_json, problem_from_json, problems, solution_from_json
from cms.files.layout import document_text
from cms.files.numerals import _UNIT, number_hint, number_in
from cms.files.tables import read_table
from cms.fleet.serving.csv_input import read_operating_points, read_services
from cms.problem.rows import Rows
from cms.values.names import nearest
from cms.values.numbers import LARGEST_DIGITS, parse_exact
from tests.files.documents import SOLUTION

LONG = 10**5
READABLE = 3_000  # characters of an error, its file's name included
LONG_NUMBERS = [
    "1" * LONG,
    "1" * LONG + ".",
    "-" + "1" * LONG,
    "1." + "1" * LONG,
    "1" * LONG + "/3",
    "1/" + "3" * LONG,
    "1/0" + "0" * LONG,
    "1e" + "1" * LONG,
    "1" * LONG + ",5",
    "1" + " 000" * LONG,
    "1" + ".000" * LONG + ",5",
    "1" * LONG + " ms",
    "1" * 2000 + " " * LONG + "!",
    "1/" * LONG,
    "0x" + "f" * LONG,
    "\u2212" + "1" * LONG,
    "." * LONG,
    "x" + " " * LONG + "x",
]
# as it was, with two repetitions that take the same digits
SLOW_UNIT = re.compile(r"([+-]?(?:\d+/\d+|\d+\.?\d*(?:[eE][+-]?\d+)?))\s*([^\W\d_][\w/]*|%)")


def problem_with(**changes: Any) -> str:
    document = {
        "format": "cms-problem",
        "schema": 1,
        "configurations": [{"blocks": {"a": 1}}],
        "jobs": [],
    }
    return json.dumps(document | changes)


def job(name: str = "j", demand: Any = 1, **supply: Any) -> dict[str, Any]:
    return {"name": name, "demand": demand, "demand_function": supply}


def refused(text: str) -> str:
    source = Source("p.json", text)
    with pytest.raises(FileError) as caught:
        problem_from_json(Node(parse_json(source), source))
    assert len(str(caught.value)) < READABLE
    return str(caught.value)


@pytest.mark.parametrize("text", LONG_NUMBERS, ids=lambda text: text[:6])
def test_a_long_number_is_refused_wherever_it_stands(text: str, tmp_path: Path) -> None:
    assert number_in(text) is None
    assert len(number_hint(text) or "") < READABLE
    assert "characters)" in refused(problem_with(jobs=[job(demand=text)]))
    path = tmp_path / "s.csv"
    path.write_text(f'service,model,rate_rps,latency_limit_ms\nchat,bert,"{text}",100\n', "utf-8")
    with pytest.raises(FileError, match=r"characters\)|longer than 131072") as caught:
        read_services(path)
    assert len(str(caught.value)) < READABLE


def test_the_limit_of_digits_does_not_hang_on_pythons_own() -> None:
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        assert "out of range" in refused(
            problem_with(jobs=[job()]).replace(": 1,", ": " + "7" * LONG + ",")
        )
    finally:
        sys.set_int_max_str_digits(before)


@pytest.mark.parametrize("text", ["{}", "-{}", "+{}", "{}.", "1/{}", "{}/7", "-1/{}"])
def test_signs_and_points_are_no_digits(text: str) -> None:
    most = "9" * LARGEST_DIGITS
    assert parse_exact(text.format(most)) == Fraction(text.format(most).rstrip("."))
    with pytest.raises(ValueError, match="too long for a number"):
        parse_exact(text.format(most + "9"))


@given(st.text("0123456789.,/eE+- xm%_µ", max_size=14))
@example("1.5 ms")
@example("12e")
@example("1.e5 x")
@example("1/2 %")
def test_units_are_told_from_numbers_as_before(text: str) -> None:
    before, after = SLOW_UNIT.fullmatch(text), _UNIT.fullmatch(text)
    assert (before and before.groups()) == (after and after.groups())


@pytest.mark.parametrize(
    "text",
    [
        problem_with(jobs=[job("x" * LONG, demand=-1)]),
        problem_with(jobs=[job("x" * LONG), job("x" * LONG)]),
        problem_with(jobs=[job("x" * LONG + "\n")]),
        problem_with(jobs=[job("j", 1, **{"x" * LONG: 1})]),
        problem_with(configurations=[{"blocks": {"x" * LONG: -1}}]),
        problem_with(configurations=[{"blocks": {"x" * LONG: 1}, "machine": "y" * LONG}]),
        problem_with(**{"x" * LONG: 1}),
        problem_with()[:-1] + f',"{"x" * LONG}": 1, "{"x" * LONG}": 1}}',
    ],
)  # fmt: skip
def test_an_error_about_a_long_name_can_be_read(text: str) -> None:
    assert re.search(r"\(\d{6,} characters", refused(text))


def test_errors_about_tables_with_long_names_can_be_read(tmp_path: Path) -> None:
    head, points = "service,model,rate_rps,latency_limit_ms", tmp_path / "p.csv"
    for text in (
        f"{head},{'c' * LONG},{'c' * LONG}\n",
        f"{head}\n{'s' * LONG},bert,1,1\n{'s' * LONG},bert,1,1\n",
        f"{head},allowed_profile\nchat,bert,1,1,{'p' * LONG}\n",
    ):
        points.write_text(text, "utf-8")
        with pytest.raises(FileError) as caught:
            read_services(points)
        assert len(str(caught.value)) < READABLE
    columns = "model,device,profile,processes,batch,throughput_rps,latency_ms"
    points.write_text(f"{columns}\n" + f"{'m' * LONG},d,p,1,1,1,1\n" * 2, "utf-8")
    with pytest.raises(FileError) as caught:
        read_operating_points(points)
    assert len(str(caught.value)) < READABLE


def test_the_middle_of_a_long_message_is_left_out_and_its_length_said() -> None:
    fault = CmsError("begins " + "x" * LONG + " ends")
    assert str(fault).startswith("begins xxx")
    assert f"... ({LONG + 12} characters in all) ..." in str(fault)
    assert str(fault).endswith("xxx ends")
    assert cut("x" * 2000) == "x" * 2000


@pytest.mark.parametrize("length", [1, 20, 200])
def test_only_so_many_characters_are_compared_for_the_nearest_name(
    length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = 0

    def compared(name: str, names: dict[str, str], **how: float) -> list[str]:
        nonlocal pairs
        pairs += sum(len(name) * len(other) for other in names)
        return list(names)[: int(how["n"])]

    monkeypatch.setattr(difflib, "get_close_matches", compared)
    name = "x" * length
    assert nearest(name, (f"{at:x<{length}}" for at in range(LONG)))
    assert nearest(name, [name + "x"] * LONG) or length == 200
    assert nearest(name + "x" * 200, [name]) == ""
    assert 0 < pairs < 1_100_000


class Counted(list[Fraction]):
    """A list that knows how much of it was looked at."""

    taken = 0

    def __iter__(self) -> Iterator[Fraction]:
        for value in list.__iter__(self):
            self.taken += 1
            yield value


def test_a_common_denominator_is_given_up_where_it_gets_too_long() -> None:
    supply = Counted(Fraction(1, 10**4000 + i) for i in range(1, 400))
    with pytest.raises(InvalidProblem, match="more than 4300 digits over their common denominator"):
        Rows.from_fractions([(Fraction(1), supply)], len(supply))
    assert supply.taken < 5


def test_a_small_file_cannot_fill_the_memory_with_zeros(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(problems, "MOST_ZEROS", 100)
    monkeypatch.setattr(problems, "ZEROS_A_SUPPLY", 3)
    names = [f"b{i}" for i in range(11)]
    shape = [{"blocks": dict.fromkeys(names, 1)}]
    sparse = problem_with(configurations=shape, jobs=[job(f"j{j}", b1=1) for j in range(10)])
    message = refused(sparse)
    assert "10 jobs and 11 blocks make a table of 110 supplies, and only 10" in message
    dense = [job(f"j{j}", **dict.fromkeys(names[:4], 1)) for j in range(10)]
    for jobs in (dense, dense[:9]):
        assert problem_from_json(json.loads(problem_with(configurations=shape, jobs=jobs))).n_jobs
    assert "array" in refused(problem_with(configurations=shape, jobs={}))


def test_a_cell_after_many_blanks_is_found() -> None:
    text = "a,b,c\n" + " " * LONG + 'x, "' + '""' * 500 + '",y\n'
    (row,) = read_table(Source("t.csv", text), ["a", "b", "c"])
    assert [cell.error("").column for cell in row.values()] == [LONG + 1, LONG + 4, LONG + 1007]


def test_a_number_worked_out_from_long_ones_is_shown_in_round_figures() -> None:
    numbers = {"cost": f"2/{10**4299}", "lower_bound": f"1/{10**4299 + 1}", "history": []}
    text = json.dumps(json.loads(SOLUTION) | numbers)
    source = Source("s.json", text)
    with pytest.raises(
        FileError, match=r'gap is "1\.5", expected about 1\.000e-4299, the cost less'
    ):
        solution_from_json(Node(parse_json(source), source))


def test_a_document_with_a_count_of_too_many_digits_is_not_written() -> None:
    with pytest.raises(FileError, match="<stdout>: the document cannot be written"):
        document_text(lambda: {"machine_count": 10**4300}, "<stdout>")
