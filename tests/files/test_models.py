"""What models of documents promise beyond their fields: interrupts, odd numbers, odd texts."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import pytest

from cms import FileError, load_instance, solve, write_solution
from cms.files import fields as f
from cms.files import model as m
from cms.files.documents import lay_out
from cms.fleet import Plan, plan_to_json, read_plan
from tests.samples import mig


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
