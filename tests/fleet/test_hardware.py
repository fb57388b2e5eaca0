"""The GPU catalogue: its counts, its layouts, what fits on a card, and why not."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.errors import InvalidOption
from cms.fleet.hardware import Gpu, Layout, Placement, Profile, gpu, gpus
from tests.references.layouts import assert_valid, every_layout, fits, small_cards

SEVEN_SLICES = (
    "a100-40gb",
    "a100-80gb",
    "h100-80gb",
    "h100-94gb",
    "h100-96gb",
    "h200-141gb",
    "gh200-144gb",
    "b200-180gb",
    "gb200-186gb",
    "b300",
    "gb300",
)
FOUR_SLICES = ("a30-24gb", "rtx-pro-6000-96gb")

# profile@start, as printed in the specification
THE_19 = """
7@0
4@0 3@4
4@0 2@4 1@6
4@0 1@4 1@5 1@6
3@0 3@4
3@0 2@4 1@6
3@0 1@4 1@5 1@6
2@0 2@2 3@4
2@0 1@2 1@3 3@4
1@0 1@1 2@2 3@4
1@0 1@1 1@2 1@3 3@4
2@0 2@2 2@4 1@6
2@0 1@2 1@3 2@4 1@6
1@0 1@1 2@2 2@4 1@6
1@0 1@1 1@2 1@3 2@4 1@6
2@0 2@2 1@4 1@5 1@6
2@0 1@2 1@3 1@4 1@5 1@6
1@0 1@1 2@2 1@4 1@5 1@6
1@0 1@1 1@2 1@3 1@4 1@5 1@6
"""
THE_12 = """
7 | 4 3 | 4 2 1 | 4 1 1 1 | 3 3 | 3 2 2 | 3 2 1 1 | 3 1 1 1 1 | 2 2 2 1 | 2 2 1 1 1 | 2 1 1 1 1 1 |
1 1 1 1 1 1 1
"""
THE_28 = """
7 | 4 3 | 4 2 1 | 4 2 d | 4 1 1 1 | 4 d 1 1 | 4 d d | 3 3 | 3 2 2 | 3 2 1 1 | 3 2 d | 3 1 1 1 1 |
3 d 1 1 | 3 d d | 2 2 2 1 | 2 2 2 d | 2 2 1 1 1 | 2 2 d 1 1 | 2 2 d d | 2 1 1 1 1 1 | 2 d 1 1 1 1 |
2 d d 1 1 | 2 d d d | 1 1 1 1 1 1 1 | d 1 1 1 1 1 1 | d d 1 1 1 1 | d d d 1 1 | d d d d
"""


def names_of(device: Gpu, families: Iterable[str]) -> list[str]:
    return [profile.name for profile in device.profiles if profile.family in set(families)]


def letters(device: Gpu, names: Iterable[str]) -> tuple[str, ...]:
    """Each name by its family: its compute slices, or d for double memory; sorted."""
    family = {profile.name: profile.family for profile in device.profiles}
    short = ("d" if family[name].endswith("double") else family[name][0] for name in names)
    return tuple(sorted(short))


def written(text: str) -> set[tuple[str, ...]]:
    return {tuple(sorted(entry.split())) for entry in text.split("|")}


def contents(multiset: Iterable[tuple[str, int]]) -> list[str]:
    return [name for name, count in multiset for _ in range(count)]


# -- the counts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", SEVEN_SLICES)
@pytest.mark.parametrize(
    ("more", "counts"),
    [
        ((), (297, 19, 37, 14, 12)),
        (("1g.double",), (722, 78, 77, 38, 28)),
        (("1g+me",), (1088, 67, 63, 24, 20)),
        (("1g.double", "1g+me"), (2318, 239, 127, 64, 44)),
    ],
)
def test_a_seven_slice_card_has_the_published_counts(
    key: str, more: tuple[str, ...], counts: tuple[int, ...]
) -> None:
    device = gpu(key)
    profiles = names_of(device, ("1g", "2g", "3g", "4g", "7g", *more))
    assert device.layout_counts(profiles) == counts
    assert len(device.layouts(profiles)) == counts[0]
    assert len(device.maximal_layouts(profiles)) == counts[1]
    assert len(device.multisets(profiles)) == counts[2]
    assert len(device.maximal_layout_multisets(profiles)) == counts[3]
    assert len(device.maximal_multisets(profiles)) == counts[4]


@pytest.mark.parametrize("key", FOUR_SLICES)
def test_a_four_slice_card_has_the_published_counts(key: str) -> None:
    assert gpu(key).layout_counts() == (25, 5, 9, 4, 4)


def test_an_a30_with_media_engines_has_the_published_counts() -> None:
    a30 = gpu("a30-24gb")
    assert a30.layout_counts([profile.name for profile in a30.profiles]) == (75, 17, 19, 8, 8)


def test_the_19_maximal_layouts_are_the_published_ones() -> None:
    a100 = gpu("a100-80gb")
    found = {
        " ".join(f"{place.profile[0]}@{place.start}" for place in layout)
        for layout in a100.maximal_layouts()
    }
    assert found == set(THE_19.split("\n")) - {""}


def test_the_five_maximal_layouts_of_an_a30_are_the_published_ones() -> None:
    found = {" ".join(map(str, layout)) for layout in gpu("a30-24gb").maximal_layouts()}
    assert found == {
        "4g.24gb@0",
        "2g.12gb@0 2g.12gb@2",
        "2g.12gb@0 1g.6gb@2 1g.6gb@3",
        "1g.6gb@0 1g.6gb@1 2g.12gb@2",
        "1g.6gb@0 1g.6gb@1 1g.6gb@2 1g.6gb@3",
    }


def test_the_12_maximal_multisets_are_the_published_ones_in_their_order() -> None:
    h100 = gpu("h100-80gb")
    found = [letters(h100, contents(m.items())) for m in h100.maximal_multisets()]
    assert found == [tuple(sorted(entry.split())) for entry in THE_12.split("|")]


def test_the_28_maximal_multisets_with_double_memory_are_the_published_ones() -> None:
    h200 = gpu("h200-141gb")
    profiles = names_of(h200, ("1g", "1g.double", "2g", "3g", "4g", "7g"))
    found = [letters(h200, contents(m.items())) for m in h200.maximal_multisets(profiles)]
    assert len(found) == 28
    assert set(found) == written(THE_28)


def test_a_seven_slice_card_has_25_placements_and_no_small_instance_at_slot_7() -> None:
    b200 = gpu("b200-180gb")
    places = b200.placements([profile.name for profile in b200.profiles])
    assert len(places) == 25
    assert Placement("1g.23gb", 7) not in places
    assert len(b200.placements()) == 14


def test_forbidding_4g_beside_3g_leaves_the_18_layouts_of_older_papers() -> None:
    a100 = gpu("a100-40gb")
    both = {"4g.20gb", "3g.20gb"}

    def allowed(layouts: Iterable[Layout]) -> list[Layout]:
        return [layout for layout in layouts if not both <= {place.profile for place in layout}]

    assert len(allowed(a100.maximal_layouts())) == 18
    assert len(allowed(a100.layouts())) == 296


@pytest.mark.parametrize("key", SEVEN_SLICES)
def test_the_compute_rule_follows_from_the_other_rules_on_seven_slice_cards(key: str) -> None:
    device = gpu(key)
    profiles = [profile.name for profile in device.profiles]
    roomy = Gpu(**{**vars(device), "compute_slices": 99})
    assert roomy.layouts(profiles) == device.layouts(profiles)


# -- placing and not placing -----------------------------------------------------------------------


@st.composite
def cards_and_counts(draw: st.DrawFn) -> tuple[Gpu, dict[str, int]]:
    device = draw(st.sampled_from(gpus()))
    counts = {
        p.name: draw(st.integers(0, p.max + 1 if p.memory == 1 else min(p.max + 1, 2)))
        for p in draw(st.lists(st.sampled_from(device.profiles), max_size=4, unique=True))
    }
    return device, counts


@given(cards_and_counts())
def test_place_agrees_with_backtracking_and_why_not_with_place(
    case: tuple[Gpu, dict[str, int]],
) -> None:
    device, counts = case
    layout = device.place(counts)
    assert (layout is not None) == fits(device, counts)
    assert (device.why_not(counts) == "") == (layout is not None)
    if layout is not None:
        assert_valid(device, layout)
        wanted = {name: count for name, count in counts.items() if count}
        assert Counter(place.profile for place in layout) == wanted


@given(small_cards())
def test_the_enumeration_of_any_card_is_what_the_definition_says(device: Gpu) -> None:
    names = [profile.name for profile in device.profiles]
    every = set(every_layout(device, names)) - {frozenset()}
    maximal = {a for a in every if not any(a < b for b in every)}
    multisets = {frozenset(Counter(name for name, _ in a).items()) for a in every}

    def inside(a: frozenset[tuple[str, int]], b: frozenset[tuple[str, int]]) -> bool:
        return a != b and all(dict(b).get(name, 0) >= count for name, count in a)

    layouts = device.layouts(names)
    assert len(layouts) == len(set(layouts))
    assert {frozenset(layout) for layout in layouts} == every
    assert {frozenset(layout) for layout in device.maximal_layouts(names)} == maximal
    assert {frozenset(m.items()) for m in device.multisets(names)} == multisets
    assert {frozenset(m.items()) for m in device.maximal_layout_multisets(names)} == {
        frozenset(Counter(name for name, _ in a).items()) for a in maximal
    }
    assert {frozenset(m.items()) for m in device.maximal_multisets(names)} == {
        a for a in multisets if not any(inside(a, b) for b in multisets)
    }


@pytest.mark.parametrize("key", [*SEVEN_SLICES[:2], *FOUR_SLICES])
def test_every_enumerated_multiset_is_placeable_and_the_maximal_ones_are_full(key: str) -> None:
    device = gpu(key)
    names = [profile.name for profile in device.profiles]
    for multiset in device.multisets(names):
        layout = device.place(multiset)
        assert layout is not None
        assert_valid(device, layout)
    for multiset in device.maximal_multisets(names):
        for name in names:
            assert device.place({**multiset, name: multiset.get(name, 0) + 1}) is None


@pytest.mark.parametrize("device", gpus(), ids=lambda device: device.key)
def test_a_device_takes_all_that_fits_by_compute_and_memory_slices(device: Gpu) -> None:
    """Whatever the start slots are: the multisets are the integer points of two inequalities."""
    names = device.base_profiles
    base = [device.profile(name) for name in names]
    assert (len(base), device.compute_slices, device.memory_slices) in ((5, 7, 8), (3, 4, 4))
    counts = itertools.product(*(range(device.memory_slices // p.memory + 1) for p in base))
    within = {
        frozenset((name, n) for name, n in zip(names, some, strict=True) if n)
        for some in counts
        if sum(p.compute * n for p, n in zip(base, some, strict=True)) <= device.compute_slices
        and sum(p.memory * n for p, n in zip(base, some, strict=True)) <= device.memory_slices
    }
    layouts = every_layout(device, names)
    assert {frozenset(Counter(name for name, _ in one).items()) for one in layouts} == within
    assert len(within) == (38 if len(base) == 5 else 10)


def test_larger_instances_are_placed_before_smaller_ones_whatever_the_order() -> None:
    a100 = gpu("a100-80gb")
    expected = (Placement("4g.40gb", 0), Placement("2g.20gb", 4), Placement("1g.10gb", 6))
    assert a100.place({"1g.10gb": 1, "2g.20gb": 1, "4g.40gb": 1}) == expected
    assert a100.place({"4g.40gb": 1, "2g.20gb": 1, "1g.10gb": 1}) == expected
    assert a100.place({}) == a100.place({"7g.80gb": 0}) == ()


def test_the_layout_that_respects_every_maximum_and_still_does_not_exist() -> None:
    a100 = gpu("a100-40gb")
    counts = {"1g.10gb": 4, "1g.5gb": 3}
    assert a100.place(counts) is None
    assert a100.why_not(counts) == (
        "4 x 1g.10gb + 3 x 1g.5gb take 11 memory slices (4 x 2 + 3 x 1), a100-40gb has 8"
    )


@pytest.mark.parametrize(
    ("key", "counts", "words"),
    [
        ("a100-80gb", {"4g.40gb": 2}, "2 x 4g.40gb: at most 1 on one a100-80gb; 2 x 4g.40gb take"),
        (
            "a100-80gb",
            {"7g.80gb": 1, "1g.10gb": 1},
            "7g.80gb + 1g.10gb take 8 compute slices (1 x 7 + 1 x 1), a100-80gb has 7; "
            "7g.80gb + 1g.10gb take 9 memory slices (1 x 8 + 1 x 1), a100-80gb has 8",
        ),
        (
            "a30-24gb",
            {"1g.6gb+me": 1, "2g.12gb+me": 1},
            "2g.12gb+me + 1g.6gb+me: at most one instance with media engines (+me) on one a30-24gb",
        ),
        ("b300", {"1g.34gb+me": 2}, "2 x 1g.34gb+me: at most 1 on one b300"),
    ],
)
def test_the_reason_names_the_rule(key: str, counts: dict[str, int], words: str) -> None:
    assert gpu(key).why_not(counts).startswith(words)


def test_the_reason_names_the_starts_where_the_slices_would_suffice() -> None:
    awkward = Profile("2g.2gb", "2g", None, 1, 2, (1,), 1)
    left = Profile("1g.1gb", "1g", None, 1, 1, (0, 3), 2)
    wide = Profile("3g.3gb", "3g", None, 1, 2, (0, 2), 2)
    device = Gpu("odd", (), (), "none", 9, 4, None, (awkward, left, wide), (), 1)
    assert device.why_not({"2g.2gb": 1, "3g.3gb": 1}) == (
        "the slices would suffice, but no starts work for 2g.2gb + 3g.3gb: 2g.2gb takes 2 of the 4 "
        "memory slices of odd and starts at 1 only; 3g.3gb takes 2 of the 4 memory slices of odd "
        "and starts at 0 or 2"
    )


@pytest.mark.parametrize("count", [-1, 1.5, True, "2", None])
def test_a_count_that_is_no_whole_number_is_refused(count: object) -> None:
    with pytest.raises(InvalidOption, match=r"count of '3g\.40gb' is .*whole number >= 0"):
        gpu("a100-80gb").place({"3g.40gb": count})  # type: ignore[dict-item]
