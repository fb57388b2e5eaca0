"""A GPU in use: what is a layout, what still fits beside one, and why something does not."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.errors import InvalidOption
from cms.fleet.hardware import Gpu, Layout, Placement, Profile, enumeration, explain, gpu, gpus
from tests.references.layouts import assert_valid, every_layout, fits, small_cards
from tests.samples import so_many


def at(text: str) -> Layout:
    """Read placements as they are printed: ``3g.40gb@4 1g.10gb@0``."""
    pairs = (entry.split("@") for entry in text.split())
    return tuple(Placement(name, int(start)) for name, start in pairs)


def counted(layout: frozenset[Placement]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(Counter(name for name, _ in layout).items()))


def assert_answers_follow(device: Gpu, names: list[str], around: frozenset[Placement]) -> None:
    """Ask everything about a GPU with these instances; the definition knows the answers."""
    layouts = EVERY[device, tuple(names)]
    whole = set(layouts)
    for name in names:
        fitting = (around | {Placement(name, start)} for start in device.profile(name).starts)
        starts = [
            s
            for s, more in zip(device.profile(name).starts, fitting, strict=True)
            if more != around and more in whole
        ]
        assert device.room(around, name) == tuple(starts)
    assert device.maximal_layouts_around(around, names) == tuple(
        layout for layout in device.maximal_layouts(names) if around <= set(layout)
    )
    beside: defaultdict[tuple[tuple[str, int], ...], set[frozenset[Placement]]] = defaultdict(set)
    for layout in layouts:
        if around <= layout:
            beside[counted(layout - around)].add(layout - around)
    for counts, added in beside.items():
        found = device.layouts_of(dict(counts), around=around)
        assert len(found) == len(added)
        assert {frozenset(layout) for layout in found} == added
        assert device.place(dict(counts), around=around) == found[0]
        assert device.why_not(dict(counts), around=around) == ""
        for name in names:
            more = Counter(dict(counts))
            more[name] += 1
            if counted_of(more) not in beside:
                assert device.place(more, around=around) is None
                assert device.layouts_of(more, around=around) == ()
                assert device.why_not(more, around=around)


def counted_of(counts: Counter[str]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(counts.items()))


class Layouts(dict[tuple[Gpu, tuple[str, ...]], list[frozenset[Placement]]]):
    def __missing__(self, key: tuple[Gpu, tuple[str, ...]]) -> list[frozenset[Placement]]:
        self[key] = every_layout(*key)
        return self[key]


EVERY = Layouts()


# -- against all subsets of all places -------------------------------------------------------------


@pytest.mark.parametrize("key", [device.key for device in gpus()])
def test_what_fits_beside_any_layout_of_a_card_is_what_the_definition_says(key: str) -> None:
    """Of the plain profiles: some of the layouts of a large card, all of a small one."""
    device = gpu(key)
    names = list(device.base_profiles)
    layouts = EVERY[device, tuple(names)]
    assert len(layouts) == len(device.layouts()) + 1
    offset = [one.key for one in gpus()].index(key)
    step = so_many(97, 11)
    for around in layouts if len(layouts) < 100 else layouts[offset % step :: step]:
        assert_answers_follow(device, names, around)


def test_what_fits_beside_any_layout_of_an_a30_with_media_engines() -> None:
    device = gpu("a30-24gb")
    names = [profile.name for profile in device.profiles]
    for around in EVERY[device, tuple(names)]:
        assert_answers_follow(device, names, around)


@pytest.mark.parametrize("key", ["a100-80gb", "a30-24gb"])
def test_sets_of_up_to_three_places_are_layouts_as_the_definition_says(key: str) -> None:
    device = gpu(key)
    layouts = set(EVERY[device, tuple(device.base_profiles)])
    for size in range(4):
        for chosen in itertools.combinations(device.placements(), size):
            assert device.is_layout(chosen) == (frozenset(chosen) in layouts)


@given(small_cards(), st.data())
def test_what_fits_beside_a_layout_of_any_card_is_what_the_definition_says(
    device: Gpu, data: st.DataObject
) -> None:
    names = [profile.name for profile in device.profiles]
    places = [Placement(p.name, start) for p in device.profiles for start in p.starts]
    layouts = set(EVERY[device, tuple(names)])
    for chosen in itertools.chain.from_iterable(
        itertools.combinations(places, size) for size in range(4)
    ):
        assert device.is_layout(reversed(chosen)) == (frozenset(chosen) in layouts)
        assert (fault_of(device, chosen) == "") == (frozenset(chosen) in layouts)
    assert_answers_follow(device, names, data.draw(st.sampled_from(EVERY[device, tuple(names)])))


def fault_of(device: Gpu, layout: Layout) -> str:
    table = enumeration.Table((), device.compute_slices, device.memory_slices)
    placed = [(device.profile(name), start) for name, start in layout]
    return explain.fault(device.key, table, placed)


# -- all profiles of the large cards ---------------------------------------------------------------


@st.composite
def cards_in_use(draw: st.DrawFn) -> tuple[Gpu, Layout, dict[str, int]]:
    device = draw(st.sampled_from(gpus()))
    names = [profile.name for profile in device.profiles]
    around: Layout = ()
    for name in draw(st.lists(st.sampled_from(names), max_size=5)):
        if starts := device.room(around, name):
            around = (*around, Placement(name, draw(st.sampled_from(starts))))
    counts = draw(st.dictionaries(st.sampled_from(names), st.integers(0, 3), max_size=3))
    return device, around, counts


@given(cards_in_use())
def test_place_beside_a_layout_agrees_with_backtracking(
    case: tuple[Gpu, Layout, dict[str, int]],
) -> None:
    device, around, counts = case
    assert device.is_layout(around)
    layouts = device.layouts_of(counts, around=around)
    assert device.place(counts, around=around) == (layouts[0] if layouts else None)
    assert bool(layouts) == fits(device, counts, around)
    assert (device.why_not(counts, around=around) == "") == bool(layouts)
    assert len(set(layouts)) == len(layouts)
    for layout in layouts:
        assert_valid(device, (*around, *layout))
        assert Counter(name for name, _ in layout) == Counter(counts) + Counter()
    # nothing is left out: with the others, the choices are those of everything at once
    both = Counter(counts) + Counter(name for name, _ in around)
    assert {frozenset((*around, *layout)) for layout in layouts} == {
        frozenset(layout) for layout in device.layouts_of(both) if set(around) <= set(layout)
    }


@given(cards_in_use())
def test_a_layout_grows_into_the_maximal_ones_around_it(
    case: tuple[Gpu, Layout, dict[str, int]],
) -> None:
    device, around, _ = case
    names = [profile.name for profile in device.profiles]
    found = device.maximal_layouts_around(around, names)
    assert found
    for layout in found[:: 1 + len(found) // 20]:
        assert set(around) <= set(layout)
        assert list(layout) == sorted(layout, key=lambda place: place.start)
        assert_valid(device, layout)
        assert not any(device.room(layout, name) for name in names)


# -- words and errors ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "around", "counts", "words"),
    [
        (
            "a100-80gb",
            "3g.40gb@4 1g.10gb@3",
            {"4g.40gb": 1},
            "4g.40gb takes 4 compute slices (1 x 4), a100-80gb has 3 beside 1g.10gb@3, 3g.40gb@4; "
            "4g.40gb takes 4 memory slices (1 x 4), a100-80gb has 3 beside 1g.10gb@3, 3g.40gb@4",
        ),
        (
            "h200-141gb",
            "1g.18gb@1 1g.18gb@5",
            {"3g.71gb": 1},
            "the slices would suffice, but no starts work for 3g.71gb beside 1g.18gb@1, 1g.18gb@5: "
            "3g.71gb takes 4 of the 8 memory slices of h200-141gb and starts at 0 or 4",
        ),
        (
            "a30-24gb",
            "1g.6gb+me@0",
            {"2g.12gb+me": 1},
            "2g.12gb+me: at most one instance with media engines (+me) on one a30-24gb, "
            "which has 1g.6gb+me@0",
        ),
        (
            "b300",
            "1g.34gb+me@2",
            {"1g.34gb+me": 1},
            "1g.34gb+me: at most 1 on one b300, which has 1",
        ),
    ],
)
def test_the_reason_names_what_is_there(
    key: str, around: str, counts: dict[str, int], words: str
) -> None:
    assert gpu(key).why_not(counts, around=at(around)) == words


def test_names_of_other_drivers_are_understood_and_answered_in_ours() -> None:
    gb200 = gpu("gb200-186gb")
    assert gb200.is_layout(at("3g.95gb@4"))
    assert gb200.room(at("3g.95gb@4"), "4g.95gb") == (0,)
    assert gb200.maximal_layouts_around(at("4g.95gb@0 3g.95gb@4")) == (at("4g.93gb@0 3g.93gb@4"),)


def test_profiles_beyond_those_that_may_be_added_stay() -> None:
    a30 = gpu("a30-24gb")
    found = a30.maximal_layouts_around(at("1g.6gb+me@0"), ["2g.12gb"])
    assert found == (at("1g.6gb+me@0 2g.12gb@2"),)
    assert a30.maximal_layouts_around((), ["2g.12gb"]) == a30.maximal_layouts(["2g.12gb"])


@pytest.mark.parametrize(
    ("around", "words"),
    [
        ("3g.40gb@2", "3g.40gb starts at 0 or 4, not at 2"),
        ("2g.20gb@2 4g.40gb@0", "2g.20gb@2 and 4g.40gb@0 share memory slices"),
        ("1g.10gb+me@0 1g.10gb+me@1", "2 x 1g.10gb+me: at most 1"),
    ],
)
def test_what_is_no_layout_has_nothing_beside_it(around: str, words: str) -> None:
    a100 = gpu("a100-80gb")
    assert not a100.is_layout(at(around))
    for ask in (
        lambda: a100.place({}, around=at(around)),
        lambda: a100.layouts_of({"1g.10gb": 1}, around=at(around)),
        lambda: a100.why_not({"1g.10gb": 1}, around=at(around)),
        lambda: a100.room(at(around), "1g.10gb"),
        lambda: a100.maximal_layouts_around(at(around)),
    ):
        with pytest.raises(InvalidOption) as error:
            ask()
        assert str(error.value) == f"no layout of a100-80gb: {words}"


def test_the_other_rules_have_their_words_too() -> None:
    wide = Profile("2g.2gb", "2g", None, 2, 2, (0, 3), 2)
    media = Profile("1g.1gb+me", "1g+me", None, 1, 1, (0,), 1, attributes=("me",))
    more = Profile("1g.2gb+me", "1g.double+me", None, 1, 1, (1,), 1, attributes=("me",))
    odd = Gpu("odd", (), (), "none", 1, 4, None, (wide, media, more), (), 1)
    assert fault_of(odd, at("2g.2gb@3")) == "2g.2gb@3 ends beyond the 4 memory slices"
    assert fault_of(odd, at("2g.2gb@0")) == "its instances take 2 compute slices, odd has 1"
    assert fault_of(odd, at("1g.1gb+me@0 1g.2gb+me@1")).startswith("at most one instance with")
    assert not any(map(odd.is_layout, map(at, ("2g.2gb@3", "2g.2gb@0", "1g.1gb+me@0 1g.2gb+me@1"))))
    assert odd.room((), "2g.2gb") == ()


@pytest.mark.parametrize("start", [1.0, True, "0", None])
def test_a_start_that_is_no_whole_number_is_refused(start: object) -> None:
    with pytest.raises(InvalidOption, match=r"start of '1g\.10gb' is .*whole number"):
        gpu("a100-80gb").is_layout([("1g.10gb", start)])  # type: ignore[list-item]


def test_unknown_profiles_are_refused_with_the_known_ones() -> None:
    for ask in (
        lambda: gpu("a30-24gb").is_layout(at("3g.20gb@0")),
        lambda: gpu("a30-24gb").room((), "3g.20gb"),
    ):
        with pytest.raises(InvalidOption, match="a30-24gb has no profile '3g.20gb'"):
            ask()
