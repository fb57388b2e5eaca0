"""The stand-ins' table against the counts of the documents, by trying everything."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.fleet.stand_ins.placement import MODELS, layouts, place, trouble

BASE = "1g.10gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb"
# Profiles; layouts, and maximal layouts.
COUNTS = [
    ("a100-80gb", BASE, (297, 19)),
    ("h100-80gb", f"{BASE} 1g.20gb", (722, 78)),
    ("a100-80gb", f"{BASE} 1g.10gb+me", (1088, 67)),
    ("h100-80gb", f"{BASE} 1g.20gb 1g.10gb+me", (2318, 239)),
    ("a30-24gb", "1g.6gb 2g.12gb 4g.24gb", (25, 5)),
    ("a30-24gb", "1g.6gb 1g.6gb+me 2g.12gb 2g.12gb+me 4g.24gb", (75, 17)),
    ("rtx-pro-6000-96gb", "1g.24gb 2g.48gb 4g.96gb", (25, 5)),
]


@pytest.mark.parametrize(("key", "names", "counts"), COUNTS)
def test_the_counts_of_the_documents(key: str, names: str, counts: tuple[int, int]) -> None:
    found = {frozenset(layout) for layout in layouts(MODELS[key], names.split())}
    # each of a layout's parts with one less is found too
    extended = {layout - {placed} for layout in found for placed in layout}
    assert (len(found), len(found - extended)) == counts


def test_every_seven_slice_part_has_one_geometry() -> None:
    seven = [model for model in MODELS.values() if model.memory_slices == 8]
    assert len(seven) == 11
    shapes = {
        tuple((one.number, one.compute, one.size, one.starts, one.most) for one in model.profiles)
        for model in seven
    }
    assert len(shapes) == 1
    # As many placements as the driver publishes.
    assert sum(len(profile.starts) for profile in seven[0].profiles) == 25


@pytest.mark.parametrize(
    ("key", "placed", "reason"),
    [
        ("a100-80gb", "3g.40gb:2", "does not start at 2"),
        ("a100-80gb", "1g.10gb:7", "does not start at 7"),
        ("a100-80gb", "3g.40gb:4 1g.10gb:5", "has no room"),
        ("a100-80gb", "4g.40gb:0 2g.20gb:2", "has no room"),
        ("a100-80gb", "1g.10gb+me:0 1g.10gb+me:1", "more than 1"),
        ("a30-24gb", "1g.6gb+me:0 2g.12gb+me:2", "the media engines exist once"),
    ],
)
def test_what_is_not_legal_says_why(key: str, placed: str, reason: str) -> None:
    known = MODELS[key].by_name
    places = [part.split(":") for part in placed.split()]
    assert reason in trouble(MODELS[key], [(known[name], int(at)) for name, at in places])


def test_counts_are_placed_or_refused() -> None:
    assert place("a100-80gb", {"4g.40gb": 1, "3g.40gb": 1}) == (("3g.40gb", 4), ("4g.40gb", 0))
    assert place("a100-40gb", {"1g.10gb": 4, "1g.5gb": 3}) is None
    assert place("a100-80gb", {"1g.18gb": 1}) is None
    assert place("a100-80gb", {"1g.10gb": 10**9}) is None
    assert place("a100-80gb", {}) == ()


def test_nothing_of_the_package_is_used() -> None:
    rooms = re.compile(r"^\s*(?:from|import) (?:cms|algorithms|instances|bench)\b", re.MULTILINE)
    files = sorted(Path(__file__).parent.rglob("*.py"))
    assert len(files) > 20
    assert [file.name for file in files if rooms.search(file.read_text("utf-8"))] == []
