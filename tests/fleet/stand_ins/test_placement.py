"""The stand-ins' table against the counts of the documents, by trying everything."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from pathlib import Path

import pytest

from tests.fleet.stand_ins.placement import MODELS, Profile, free, layouts, room, trouble

BASE = "1g.10gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb"
# Profiles; layouts, maximal layouts, multisets, multisets of the maximal ones, maximal multisets.
COUNTS = [
    ("a100-80gb", BASE, (297, 19, 37, 14, 12)),
    ("h100-80gb", f"{BASE} 1g.20gb", (722, 78, 77, 38, 28)),
    ("a100-80gb", f"{BASE} 1g.10gb+me", (1088, 67, 63, 24, 20)),
    ("h100-80gb", f"{BASE} 1g.20gb 1g.10gb+me", (2318, 239, 127, 64, 44)),
    ("a30-24gb", "1g.6gb 2g.12gb 4g.24gb", (25, 5, 9, 4, 4)),
    ("a30-24gb", "1g.6gb 1g.6gb+me 2g.12gb 2g.12gb+me 4g.24gb", (75, 17, 19, 8, 8)),
    ("rtx-pro-6000-96gb", "1g.24gb 2g.48gb 4g.96gb", (25, 5, 9, 4, 4)),
]


def maximal(found: Collection[frozenset[tuple[str, int]]]) -> list[frozenset[tuple[str, int]]]:
    """Those that no other one contains: each of a layout's parts with one less is found too."""
    extended = {layout - {place} for layout in found for place in layout}
    return [layout for layout in found if layout not in extended]


def bag(layout: Collection[tuple[str, int]]) -> frozenset[tuple[str, int]]:
    return frozenset(Counter(name for name, _ in layout).items())


@pytest.mark.parametrize(("key", "names", "counts"), COUNTS)
def test_the_counts_of_the_documents(key: str, names: str, counts: tuple[int, ...]) -> None:
    found = {frozenset(layout) for layout in layouts(MODELS[key], names.split())}
    tops = maximal(found)
    bags = {bag(layout) for layout in found}
    top_bags = {bag(layout) for layout in tops}
    greatest = [
        one
        for one in top_bags
        if not any(one != other and dict(one).items() <= _at_most(one, other) for other in top_bags)
    ]
    assert (len(found), len(tops), len(bags), len(top_bags), len(greatest)) == counts


def _at_most(one: frozenset[tuple[str, int]], other: frozenset[tuple[str, int]]) -> set[object]:
    """The pairs of one bag that another bag has at least as often."""
    there = dict(other)
    return {(name, count) for name, count in one if there.get(name, 0) >= count}


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


def named(key: str, name: str) -> Profile:
    return next(profile for profile in MODELS[key].profiles if profile.name == name)


@pytest.mark.parametrize(
    ("placed", "reason"),
    [
        ("3g.40gb:2", "does not start at 2"),
        ("1g.10gb:7", "does not start at 7"),
        ("3g.40gb:4 1g.10gb:5", "has no room"),
        ("4g.40gb:0 2g.20gb:2", "has no room"),
        ("1g.10gb+me:0 1g.10gb+me:1", "more than 1"),
    ],
)
def test_what_is_not_legal_says_why(placed: str, reason: str) -> None:
    model = MODELS["a100-80gb"]
    places = [place.split(":") for place in placed.split()]
    why = trouble(model, [(named("a100-80gb", name), int(at)) for name, at in places])
    assert reason in why


def test_engines_that_exist_once_are_shared_by_no_two_profiles() -> None:
    model, key = MODELS["a30-24gb"], "a30-24gb"
    placed = [(named(key, "1g.6gb+me"), 0), (named(key, "2g.12gb+me"), 2)]
    assert trouble(model, placed) == "the media engines exist once"


def test_free_is_the_most_that_fit_by_trying() -> None:
    model = MODELS["a30-24gb"]
    whole = [profile.name for profile in model.profiles]
    by_name = {profile.name: profile for profile in model.profiles}
    every = [frozenset(), *map(frozenset, layouts(model, whole))]
    for layout in every:
        placed = [(by_name[name], start) for name, start in layout]
        for profile in model.profiles:
            more = [
                len(other) - len(layout)
                for other in every
                if layout <= other and {name for name, _ in other - layout} <= {profile.name}
            ]
            assert free(model, placed, profile) == max(more)
            assert bool(room(model, placed, profile)) == (max(more) > 0)


def test_nothing_of_the_package_is_used() -> None:
    rooms = re.compile(r"^\s*(?:from|import) (?:cms|algorithms|instances|bench)\b", re.MULTILINE)
    files = sorted(Path(__file__).parent.glob("*.py"))
    assert len(files) > 8
    assert [file.name for file in files if rooms.search(file.read_text("utf-8"))] == []
