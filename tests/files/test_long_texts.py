"""Texts of any length are read in time that grows with it, or refused; errors stay readable."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cms.errors import FileError
from cms.files import problem_from_json, problems
from cms.files.numerals import number_hint, number_in
from cms.fleet.serving.csv_input import read_services
from tests.files.documents import parsed

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
