"""Wrong and odd documents: each slip with its message, whatever its length or place."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import pytest

from cms import FileError, load_instance, read_problem, solve, write_solution
from cms.files import fields as f
from cms.files import model as m
from cms.files import problem_from_json, problems
from cms.files.documents import lay_out
from cms.files.numerals import number_hint, number_in
from cms.fleet import Plan, plan_to_json, read_plan
from cms.fleet.serving.csv_input import read_services
from tests.files.documents import PROBLEM, parsed
from tests.samples import mig

NUMBER = 'a number such as 12, "12.5" or "1/3"'
BERT = "(job 'bert')"

BLOCKS = '"blocks": ["1g"'


def group(name: str, m: str = "a100") -> str:
    one = f'{{"name": "{name}", "weights": {{"{m}": 1}}, "at_most": 9}}'
    return f'"group_limits": [{one}], {BLOCKS}'


# what is replaced in the example, by what, and the message
SLIPS = [
    # numbers
    ("1200", "-3", f"14:32: jobs[0].demand {BERT} is -3, expected a number >= 0"),
    ("1200", '"12,5"', f'14:32: jobs[0].demand {BERT} is "12,5", expected {NUMBER}; write 12.5 (d'),
    ("1200", "NaN", "14:32: NaN is no number, expected a finite number"),
    ('"1g": 4', '"1g": 4.5', "10:42: configurations[0].blocks.1g is 4.5, expected a whole numbe"),
    # names
    ('"bert"', '"a\\u0007"', "14:14: jobs[0].name (job 'a\\x07'): job name 'a\\x07' contains a c"),
    ('"half"]', '"3g"]', "8:26: blocks[2]: there are two blocks '3g', expected a name of its ow"),
    ('"1g": 90', '"1G": 90', f"14:58: jobs[0].demand_function.1G {BERT} is about a block that is "),
    ('"machine": "a100", ', "", '10:5: configurations[0] has no "machine", expected the key "ma'),
    # keys
    ('"demand":', '"demnad":', f'14:22: jobs[0].demnad {BERT}: unknown key "demnad", expected'),
    # groups
    (BLOCKS, group("a100"), "8:29: group_limits[0].name (group limit 'a100'): there is a machine"),
    (BLOCKS, group("g", m="b200"), "8:46: group_limits[0].weights.b200 (group limit 'g') is about"),
    # the head
    ('"schema": 2', '"schema": 1', "3:13: schema is 1, expected 2; configurable-machines 0.1.0"),
    ('"schema": 2', '"schema": 3', "3:13: schema is 3, expected 2; a newer version of c"),
    ('"format": "cms-problem",', "", "1:1: the document is an object, expected an object w"),
    # syntax
    ("1200,", "1200", '14:37: unexpected "demand_function", expected a comma or the closing bra'),
    ('"bert"', "'bert'", '14:14: unexpected "\'", expected a value'),
    ('"bert"', '"be\nrt"', "14:17: '\\n' inside a text, expected an escape: "),
]


def message_of(path: str | Path) -> str:
    with pytest.raises(FileError) as caught:
        read_problem(path)
    return str(caught.value)


@pytest.mark.parametrize(("old", "new", "message"), SLIPS, ids=[slip[2][:40] for slip in SLIPS])
def test_a_slip_gets_its_message(old: str, new: str, message: str, tmp_path: Path) -> None:
    assert PROBLEM.count(old) >= 1
    path = tmp_path / "p.json"
    path.write_bytes(PROBLEM.replace(old, new, 1).encode())
    assert message_of(path).startswith(f"{path}:{message}")


FILES = [
    (b"", " the file is empty, expected a JSON document"),
    (b"\x1f\x8b\x08\x00", "1:2: byte 0x8b is not UTF-8, expected a JSON doc"),
    (PROBLEM.encode("utf-16"), "1:1: byte 0xff is not UTF-8, expected a JSON doc"),
    (b"[" * 100_000, " the document is nested too deeply to be read"),
]


@pytest.mark.parametrize(("data", "message"), FILES)
def test_a_file_that_is_no_document_is_told_what_it_is(
    data: bytes, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "p.json"
    path.write_bytes(data)
    assert message_of(path).startswith(f"{path}:{message}")


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    lost = tmp_path / "no" / "p.json"
    assert message_of(lost) == f"{lost}: there is no such file"


LONG = 10**5
READABLE = 3_000  # characters of an error, its file's name included
LONG_NUMBERS = [
    "1" * LONG,
    "1." + "1" * LONG,
    "1" * LONG + "/3",
    "1e" + "1" * LONG,
    "1" + " 000" * LONG,
    "1" + ".000" * LONG + ",5",
    "1" * LONG + " ms",
    "1" * 2000 + " " * LONG + "!",
    "1/" * LONG,
    "x" + " " * LONG + "x",
]


def problem_with(**changes: Any) -> str:
    document = {
        "format": "cms-problem",
        "schema": 2,
        "configurations": [{"blocks": {"a": 1}}],
        "jobs": [],
    }
    return json.dumps(document | changes)


def job(name: str = "j", demand: Any = 1, **supply: Any) -> dict[str, Any]:
    return {"name": name, "demand": demand, "demand_function": supply}


def refused(text: str) -> str:
    with pytest.raises(FileError) as caught:
        problem_from_json(parsed(text))
    assert len(str(caught.value)) < READABLE
    return str(caught.value)


@pytest.mark.parametrize("text", LONG_NUMBERS, ids=lambda text: text[:6])
def test_a_long_number_is_refused_wherever_it_stands(text: str, tmp_path: Path) -> None:
    assert number_in(text) is None
    assert len(number_hint(text) or "") < READABLE
    assert "characters)" in refused(problem_with(jobs=[job(demand=text)]))
    path = tmp_path / "s.csv"
    path.write_text(f'service,model,rate_rps,latency_limit_ms\nchat,bert,"{text}",100\n', "utf-8")
    with pytest.raises(FileError, match=r"characters\)|field larger than") as caught:
        read_services(path)
    assert len(str(caught.value)) < READABLE


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


def interrupted(_: Any) -> Any:
    raise KeyboardInterrupt


class Inner(m.Part):
    number: Annotated[int, f.Value(int, interrupted)]


class Outer(m.Part):
    inner: Annotated[Any, m.Built(Inner)]


def test_an_interrupt_while_a_document_is_written_stays_one() -> None:
    outer = Outer.from_fields(inner=Inner.from_fields(number=1))
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            outer.to_json()


@pytest.mark.parametrize(
    "odd",
    [{"seconds": math.nan}, {"seconds": math.inf}, {"lower_bound": Fraction(-(10**5000))}],
    ids=["nan", "inf", "long"],
)
def test_what_no_reader_takes_is_not_written(odd: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(FileError, match="cannot be written"):
        write_solution(replace(solve(mig()), **odd), tmp_path / "solution.json")
    assert not [*tmp_path.iterdir()]


HALF = "\ud800"
DEEP: Any = json.loads("[" * 260 + "]" * 260)


@pytest.mark.parametrize(
    ("path", "to", "place"),
    [
        (("services", 0, "name"), HALF, "services"),
        (("services", 0, "queue"), HALF, "services[0].queue"),
        (("services", 0, "extra"), {"[key]": 1}, "services[0].extra.[key]"),
        (("devices", 0, "schema"), 10**30, "devices[0].schema"),
        (("rule", "x-own"), DEEP, ""),
        (("rule", "x-own"), {HALF: 1}, ""),
    ],
)
def test_odd_values_are_refused_with_their_place_or_are_the_user_s_own(
    path: tuple[Any, ...], to: Any, place: str, tmp_path: Path
) -> None:
    serving = load_instance("S1").build_problem()
    document = json.loads(lay_out(plan_to_json(Plan(serving, solve(serving.problem)))))
    inner = document
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = to
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(document))
    if not place:
        assert read_plan(file).solution.machine_count == 2
        return
    with pytest.raises(FileError) as caught:
        read_plan(file)
    assert caught.value.line
    assert place in str(caught.value).replace('["[key]"]', ".[key]")
    assert "Input should" not in str(caught.value)
    str(caught.value).encode()
