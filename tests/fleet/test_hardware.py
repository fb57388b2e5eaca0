"""What fits on a GPU, empty or in use: against the definition, and against published tables."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.errors import InvalidOption
from cms.fleet.deployment import Deployment, FleetGpu, FleetNode, Instance, check_deployment
from cms.fleet.hardware import (
    Gpu,
    Layout,
    Placement,
    get_gpu,
    list_gpus,
    mps_shares,
)
from tests.fleet.stand_ins.placement import MODELS, layouts
from tests.references.layouts import assert_valid, every_layout, fits, small_cards

SEVEN_SLICES = [device.key for device in list_gpus() if device.compute_slices == 7]

# profile@start, as printed in the specification
THE_19 = """
7@0 | 4@0 3@4 | 4@0 2@4 1@6 | 4@0 1@4 1@5 1@6 | 3@0 3@4 | 3@0 2@4 1@6 | 3@0 1@4 1@5 1@6 |
2@0 2@2 3@4 | 2@0 1@2 1@3 3@4 | 1@0 1@1 2@2 3@4 | 1@0 1@1 1@2 1@3 3@4 | 2@0 2@2 2@4 1@6 |
2@0 1@2 1@3 2@4 1@6 | 1@0 1@1 2@2 2@4 1@6 | 1@0 1@1 1@2 1@3 2@4 1@6 | 2@0 2@2 1@4 1@5 1@6 |
2@0 1@2 1@3 1@4 1@5 1@6 | 1@0 1@1 2@2 1@4 1@5 1@6 | 1@0 1@1 1@2 1@3 1@4 1@5 1@6
"""
THE_12 = """
7 | 4 3 | 4 2 1 | 4 1 1 1 | 3 3 | 3 2 2 | 3 2 1 1 | 3 1 1 1 1 | 2 2 2 1 | 2 2 1 1 1 | 2 1 1 1 1 1 |
1 1 1 1 1 1 1
"""


def at(text: str) -> Layout:
    """Read placements as they are printed: ``3g.40gb@4 1g.10gb@0``."""
    pairs = (entry.split("@") for entry in text.split())
    return tuple(Placement(name, int(start)) for name, start in pairs)


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
    device = get_gpu(key)
    families = ("1g", "2g", "3g", "4g", "7g", *more)
    assert device.layout_counts([p.name for p in device.profiles if p.family in families]) == counts


def test_published_counts_and_layouts() -> None:
    a30 = get_gpu("a30-24gb")
    assert a30.layout_counts([profile.name for profile in a30.profiles]) == (75, 17, 19, 8, 8)
    for key in ("a30-24gb", "rtx-pro-6000-96gb"):
        assert get_gpu(key).layout_counts() == (25, 5, 9, 4, 4)
    a100 = get_gpu("a100-80gb")
    found = {" ".join(f"{p.profile[0]}@{p.start}" for p in each) for each in a100.maximal_layouts()}
    assert found == {entry.strip() for entry in THE_19.split("|")}
    multisets = [
        sorted(name[0] for name, count in each.items() for _ in range(count))
        for each in get_gpu("h100-80gb").maximal_multisets()
    ]
    assert multisets == [sorted(entry.split()) for entry in THE_12.split("|")]  # in this order too


@pytest.mark.parametrize("device", list_gpus(), ids=lambda device: device.key)
def test_a_device_takes_all_that_fits_by_compute_and_memory_slices(device: Gpu) -> None:
    """Whatever the start slots are: the multisets are the integer points of two inequalities."""
    names = device.base_profiles
    base = [device.profile(name) for name in names]
    counts = itertools.product(*(range(device.memory_slices // p.memory + 1) for p in base))
    within = {
        frozenset((name, n) for name, n in zip(names, some, strict=True) if n)
        for some in counts
        if sum(p.compute * n for p, n in zip(base, some, strict=True)) <= device.compute_slices
        and sum(p.memory * n for p, n in zip(base, some, strict=True)) <= device.memory_slices
    }
    layouts = every_layout(device, names)
    assert {frozenset(Counter(name for name, _ in one).items()) for one in layouts} == within
    assert len(within) == {7: 38, 4: 10}[device.compute_slices]


@given(small_cards())
def test_the_enumeration_of_any_card_is_what_the_definition_says(device: Gpu) -> None:
    names = [profile.name for profile in device.profiles]
    every = set(every_layout(device, names)) - {frozenset()}
    maximal = {a for a in every if not any(a < b for b in every)}
    multisets = {frozenset(Counter(name for name, _ in a).items()) for a in every}

    def inside(a: frozenset[tuple[str, int]], b: frozenset[tuple[str, int]]) -> bool:
        return a != b and all(dict(b).get(name, 0) >= count for name, count in a)

    layouts = device.layouts(names)
    ranked = sorted(device.profiles, key=lambda profile: (-profile.memory, -profile.compute))
    place = {profile.name: at for at, profile in enumerate(ranked)}
    assert [*layouts] == sorted(
        layouts, key=lambda each: [(p.start, place[p.profile]) for p in each]
    )
    assert len(layouts) == len(set(layouts))
    assert {frozenset(layout) for layout in layouts} == every
    assert {frozenset(layout) for layout in device.maximal_layouts(names)} == maximal
    assert {frozenset(m.items()) for m in device.multisets(names)} == multisets
    fewer = {frozenset(Counter(name for name, _ in a).items()) for a in maximal}
    assert device.layout_counts(names).maximal_layout_multisets == len(fewer)
    assert {frozenset(m.items()) for m in device.maximal_multisets(names)} == {
        a for a in multisets if not any(inside(a, b) for b in multisets)
    }
    free = tuple(replace(p, max=9, attributes=()) for p in device.profiles)
    unruled = replace(device, compute_slices=99, profiles=free)  # overlaps alone are forbidden
    assert device.sets_without_overlap(names) == len(every_layout(unruled, names)) - 1


def counted(layout: Iterable[Placement]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(Counter(name for name, _ in layout).items()))


class Layouts(dict[tuple[Gpu, tuple[str, ...]], list[frozenset[Placement]]]):
    def __missing__(self, key: tuple[Gpu, tuple[str, ...]]) -> list[frozenset[Placement]]:
        self[key] = every_layout(*key)
        return self[key]


EVERY = Layouts()


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
            if tuple(sorted(more.items())) not in beside:
                assert device.place(more, around=around) is None
                assert device.layouts_of(more, around=around) == ()
                assert device.why_not(more, around=around)


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
    assert_answers_follow(device, names, data.draw(st.sampled_from(EVERY[device, tuple(names)])))


@st.composite
def cards_in_use(draw: st.DrawFn) -> tuple[Gpu, Layout, dict[str, int]]:
    """All profiles of the large cards."""
    device = draw(st.sampled_from(list_gpus()))
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


def test_names_order_and_profiles_of_what_is_asked_for_do_not_matter() -> None:
    a100 = get_gpu("a100-80gb")
    expected = at("4g.40gb@0 2g.20gb@4 1g.10gb@6")
    for names in itertools.permutations(("1g.10gb", "2g.20gb", "4g.40gb")):
        assert a100.place(dict.fromkeys(names, 1)) == expected
    assert a100.place({}) == a100.place({"7g.80gb": 0}) == ()
    gb200 = get_gpu("gb200-186gb")
    assert gb200.place({"3g.95gb": 1}) == at("3g.93gb@0")
    assert gb200.is_layout(at("3g.95gb@4"))
    assert gb200.room(at("3g.95gb@4"), "4g.95gb") == (0,)
    assert gb200.maximal_layouts_around(at("4g.95gb@0 3g.95gb@4")) == (at("4g.93gb@0 3g.93gb@4"),)
    a30 = get_gpu("a30-24gb")
    found = a30.maximal_layouts_around(at("1g.6gb+me@0"), ["2g.12gb"])
    assert found == (at("1g.6gb+me@0 2g.12gb@2"),)


@pytest.mark.parametrize(
    ("key", "around", "wanted", "words"),
    [
        ("a100-40gb", "", {"1g.10gb": 4, "1g.5gb": 3},
         "4 x 1g.10gb + 3 x 1g.5gb take 11 memory slices (4 x 2 + 3 x 1), a100-40gb has 8"),
        ("a100-80gb", "3g.40gb@4 1g.10gb@3", {"4g.40gb": 1},
         "4g.40gb takes 4 compute slices (1 x 4), a100-80gb has 3 beside 1g.10gb@3, 3g.40gb@4; "
         "4g.40gb takes 4 memory slices (1 x 4), a100-80gb has 3 beside 1g.10gb@3, 3g.40gb@4"),
        ("h200-141gb", "1g.18gb@1 1g.18gb@5", {"3g.71gb": 1},
         "the slices would suffice, but no starts work for 3g.71gb beside 1g.18gb@1, 1g.18gb@5: "
         "3g.71gb takes 4 of the 8 memory slices of h200-141gb and starts at 0 or 4"),
        ("a30-24gb", "1g.6gb+me@0", {"2g.12gb+me": 1},
         "2g.12gb+me: at most one instance with media engines (+me) on one a30-24gb, "
         "which has 1g.6gb+me@0"),
        ("b300", "1g.34gb+me@2", {"1g.34gb+me": 1},
         "1g.34gb+me: at most 1 on one b300, which has 1"),
    ],
)  # fmt: skip
def test_the_reason_names_the_rule_and_what_is_there(
    key: str, around: str, wanted: dict[str, int], words: str
) -> None:
    assert get_gpu(key).why_not(wanted, around=at(around)) == words


@pytest.mark.parametrize(
    ("around", "words"),
    [
        ("3g.40gb@2", "3g.40gb starts at 0 or 4, not at 2"),
        ("2g.20gb@2 4g.40gb@0", "2g.20gb@2 and 4g.40gb@0 share memory slices"),
        ("1g.10gb+me@0 1g.10gb+me@1", "2 x 1g.10gb+me: at most 1"),
    ],
)
def test_what_is_no_layout_has_nothing_beside_it(around: str, words: str) -> None:
    a100, there = get_gpu("a100-80gb"), at(around)
    assert not a100.is_layout(there)
    asks: list[Callable[[], object]] = [
        lambda: a100.place({}, around=there),
        lambda: a100.room(there, "1g.10gb"),
        lambda: a100.maximal_layouts_around(there),
    ]
    for ask in asks:
        with pytest.raises(InvalidOption, match="no layout of a100-80gb: ") as error:
            ask()
        assert words in str(error.value)


@pytest.mark.parametrize("number", [-1, 1.5, True, "2", None])
def test_counts_and_starts_are_whole_numbers(number: object) -> None:
    a100 = get_gpu("a100-80gb")
    with pytest.raises(InvalidOption, match=r"count of '3g\.40gb' is .*whole number >= 0"):
        a100.place({"3g.40gb": number})  # type: ignore[dict-item]
    if number != -1:
        with pytest.raises(InvalidOption, match=r"start of '1g\.10gb' is .*whole number"):
            a100.is_layout([("1g.10gb", number)])  # type: ignore[list-item]


@pytest.mark.parametrize("card", list_gpus(), ids=lambda card: card.key)
def test_both_have_the_same_table_of_every_card(card: Gpu) -> None:
    model = MODELS[card.key]
    # The catalogue counts an RTX PRO 6000 in quarters, as its figure does, its driver in twelfths.
    scale, rest = divmod(model.memory_slices, card.memory_slices)
    assert (rest, card.compute_slices) == (0, model.compute_slices)
    known = {profile.name: profile for profile in model.profiles}
    for profile in card.profiles:
        other = known.pop(profile.name)
        assert profile.id in (None, other.number)
        assert (profile.compute, profile.max) == (other.compute, other.most)
        assert [scale * start for start in profile.starts] == list(other.starts)
        assert (scale * profile.memory, profile.has_media_engines) == (other.size, other.media)
    assert scale > 1 or not known


def test_what_cards_have_is_what_was_published() -> None:
    published: dict[str, list[int | None]] = {
        "a100-40gb a100-80gb": [14, 14, 28, 42, 56, 98],
        "h100-80gb": [16, 26, 32, 60, 64, 132],
        "h100-94gb gh200-144gb": [16, 26, 32, None, None, None],
        "h200-141gb": [16, 26, 32, 60, 64, None],
        "b200-180gb": [18, 30, 36, 70, 72, 148],
        "gb200-186gb": [18, 32, 38, None, None, None],
        "a30-24gb": [14, 28, 56],
        "b300 gb300 h100-96gb": [None] * 6,
    }
    for keys, sms in published.items():
        for key in keys.split():
            assert [p.sms for p in get_gpu(key).profiles if "me" not in p.attributes] == sms
    assert {each.key for each in list_gpus()} == {
        key for key, one in MODELS.items() if one.profiles
    }
    for device in list_gpus():
        assert all(entry.source and entry.fields for entry in device.sources)
        assert not any("a user's" in entry.source for entry in device.sources), device.key
        optional = ("sms", "memory_mib", "id", "since_driver")
        known = [f for f in optional if any(getattr(p, f) is not None for p in device.profiles)]
        for field in ("name", "compute", "memory", "starts", "max", *known):
            assert any(field in entry.fields for entry in device.sources), (device.key, field)
    for device in list_gpus():
        assert device.mode_change_needs_reset == (device.architecture == "ampere")
    names = [name.lower() for d in list_gpus() for name in (d.key, *d.aliases, *d.pci_device_ids)]
    assert len(names) == len(set(names))


def test_a_device_is_found_by_key_product_name_or_pci_id() -> None:
    known = {
        "a100-80gb": (" A100-80GB ", "NVIDIA-A100-SXM4-80GB", "nvidia a100 80gb pcie"),
        "a100-40gb": ("A100-PCIE-40GB",),
        "h100-80gb": ("NVIDIA H100 80GB HBM3",),
        "h100-96gb": ("NVIDIA GH200 480GB", "h20"),
        "a30-24gb": ("a30-24gb", "A30", "0x20B710DE"),
        "gh200-144gb": ("0x234810de",),
    }
    assert {key: {get_gpu(name).key for name in names} for key, names in known.items()} == {
        key: {key} for key in known
    }


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a100", "or a100-80gb (A100-SXM4-80GB, A100 80GB PCIe)? Known: "),
        ("h100-80g", "did you mean h100-80gb?"),
        ("v100", "known: a100-40gb, "),
        ("../a100-80gb", "unknown GPU"),
        (100, "GPU name is 100"),
    ],
)
def test_an_unknown_device_is_refused_with_the_likely_ones(name: Any, words: str) -> None:
    with pytest.raises(InvalidOption, match=re.escape(words)):
        get_gpu(name)


def test_an_unknown_profile_is_refused_with_the_known_ones() -> None:
    a100, known = get_gpu("a100-80gb"), r"no profile '3g\.20gb'.*; its profiles: 1g\.10gb, "
    for ask in (
        lambda: a100.profile("3g.20gb"),
        lambda: a100.is_layout([("3g.20gb", 0)]),
        lambda: a100.room((), "3g.20gb"),
    ):
        with pytest.raises(InvalidOption, match=known):
            ask()
    with pytest.raises(InvalidOption, match="expected a list of names"):
        a100.layouts("3g.40gb")


def test_blocks_are_qualified_and_mps_shares_bounded_by_size_and_clients() -> None:
    found = get_gpu("h100-80gb").configurations_of(["7g.80gb", "3g.40gb"], prefix="h100-80gb:")
    assert [dict(configuration.blocks) for configuration in found] == [
        {"h100-80gb:7g.80gb": 1},
        {"h100-80gb:3g.40gb": 2},
    ]
    shares = mps_shares(["12.5", 25, 50], machine="a100-mps", prefix="a100-mps:")
    assert dict(shares.sizes) == {
        "a100-mps:mps:12.5": Fraction(25, 2),
        "a100-mps:mps:25": 25,
        "a100-mps:mps:50": 50,
    }
    assert shares.capacity == 100
    assert (shares.machine, shares.max_blocks) == ("a100-mps", 48)
    assert shares.allows({"a100-mps:mps:25": 2, "a100-mps:mps:50": 1})
    assert [mps_shares([1], machine="m").allows({"mps:1": n}) for n in (48, 49)] == [True, False]


def test_wrong_mps_shares_are_refused() -> None:
    cases: list[tuple[Any, str]] = [
        ([], "no MPS steps"), ([0], "MPS step is 0; expected per cent"), ([101], "MPS step is 101"),
        (["half"], "MPS step: 'half' is not a number"), ([25, "25.0"], "MPS step 25 occurs twice"),
    ]  # fmt: skip
    for steps, words in cases:
        with pytest.raises(InvalidOption, match=words):
            mps_shares(steps, machine="a100")


def test_importing_the_fleet_loads_nothing_and_a_shipped_device_no_yaml() -> None:
    code = (
        "import sys, cms.fleet; assert 'cms.fleet.hardware' not in sys.modules; "
        "assert len(cms.fleet.get_gpu('a100-80gb').configurations) == 12; "
        "assert not [m for m in sys.modules if m.startswith('ruamel')]; "
        "assert 'read_gpu' in dir(cms.fleet)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_both_have_the_same_layouts_of_the_largest_table() -> None:
    largest = get_gpu("a100-40gb")
    names = [profile.name for profile in largest.profiles]
    found = {tuple(sorted(each)) for each in layouts(MODELS[largest.key], names)}
    mine = {tuple(sorted(map(tuple, each))) for each in largest.layouts(names)}
    assert (len(found), mine == found) == (2318, True)
    for layout in found:
        held = tuple(Instance(*place) for place in layout)
        card = FleetGpu("a", 0, largest, instances=held)
        assert check_deployment(Deployment((FleetNode("a", (card,)),))) == ()
