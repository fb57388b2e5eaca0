"""Pictures of plans of sharing: every part is there, few classes or many, whatever their names."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

from cms.fleet.report.sharing_picture import MOST_BARS, MOST_SMALL, sharing_picture
from cms.fleet.sharing import OfflineClass, OnlineClass, SharingProblem, share
from instances.families.sharing import shared_gpus


def titles(picture: str) -> list[str]:
    """What every bar says of itself; the document is well-formed."""
    root = ET.fromstring(picture)
    return [each.text or "" for each in root.iter("{http://www.w3.org/2000/svg}title")][1:]


def test_a_bar_has_all_parts_with_their_widths_and_odd_names_are_escaped() -> None:
    problem = SharingProblem(
        online=[
            OnlineClass("a30", count=7, sm_activity=20, name="<quiet> & loud"),
            OnlineClass("a30", count=2, sm_activity=98, name="busy"),
        ],
        offline=[OfflineClass("</text>", count=5)],
        weights=[[5], [0]],
    )
    picture = sharing_picture(problem, share(problem), "now & <then>")
    assert titles(picture) == [
        "<quiet> & loud: online 20 %, margin 10 %, </text> 70 %",
        "<quiet> & loud: online 20 %, margin 10 %, idle 70 %",
        "busy: online 98 %, margin 2 %",
    ]
    assert "5 of 5 placed" in picture
    widths = [float(each) for each in re.findall(r'width="([0-9.]+)" height="30"', picture)]
    assert sum(widths[:3]) == pytest.approx(848 - 3 * 2)


@pytest.mark.parametrize("classes", [3, 1000])
def test_few_classes_and_many_are_drawn(classes: int) -> None:
    problem = shared_gpus(100 * classes, online=classes, offline=12, seed=4)
    solution = share(problem)
    picture = sharing_picture(problem, solution, "fleet")
    told = titles(picture)
    assert len(told) <= MOST_BARS + MOST_SMALL
    counts = [
        int(each.replace(",", "")) for each in re.findall(r">([0-9,]+) ×", picture)
    ]  # fmt: skip
    assert sum(counts) == 100 * classes
    assert ("as their mean" in picture) == (classes == 1000)


def test_nothing_to_draw_is_a_picture_too() -> None:
    problem = SharingProblem(online=[], offline=[], weights=[])
    assert titles(sharing_picture(problem, share(problem), "none")) == []
