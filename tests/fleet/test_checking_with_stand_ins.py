"""What can be on a GPU: asked of the package and of the stand-ins, which know nothing of it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.fleet import Gpu, gpu
from cms.fleet.deployment import Deployment, FleetGpu, FleetNode, Instance, check_deployment
from cms.fleet.hardware.catalogue import gpus
from tests.fleet.stand_ins.placement import MODELS, layouts, trouble

LARGEST = gpu("a100-40gb")
THEIRS = {profile.name: profile for profile in MODELS[LARGEST.key].profiles}
PLACES = [(name, start) for name in THEIRS for start in range(-1, LARGEST.memory_slices + 1)]
Layout = tuple[tuple[str, int], ...]


def ours(layout: Layout) -> bool:
    held = tuple(Instance(*place) for place in layout)
    card = FleetGpu("a", 0, LARGEST, instances=held)
    legal = not check_deployment(Deployment((FleetNode("a", (card,)),)))
    assert legal == LARGEST.is_layout(layout)
    return legal


def theirs(layout: Layout) -> bool:
    return not trouble(MODELS[LARGEST.key], [(THEIRS[name], start) for name, start in layout])


@cache
def every() -> list[Layout]:
    found = {tuple(sorted(each)) for each in layouts(MODELS[LARGEST.key], THEIRS)}
    return sorted(found)


def near(layout: Layout) -> Iterator[Layout]:
    """One instance more, at any start, and one at another start."""
    for place in PLACES:
        yield (*layout, place)
        for at in range(len(layout)):
            if layout[at][0] == place[0] and layout[at] != place:
                yield (*layout[:at], place, *layout[at + 1 :])


def test_both_have_the_same_layouts_of_the_largest_table() -> None:
    found = every()
    assert max(len(card.layouts([p.name for p in card.profiles])) for card in gpus()) == len(found)
    mine = {tuple(sorted(map(tuple, each))) for each in LARGEST.layouts(list(THEIRS))}
    assert (len(found), mine == set(found)) == (2318, True)
    assert all(ours(layout) and theirs(layout) for layout in found)


@given(st.deferred(lambda: st.sampled_from(every())), st.randoms(use_true_random=False))
def test_both_refuse_the_same_sets_near_a_layout(layout: Layout, random: object) -> None:
    found = list(near(layout))
    chosen = found[:: max(1, len(found) // 25)]
    assert any(not theirs(each) for each in chosen)
    assert [each for each in chosen if ours(each) != theirs(each)] == []


@pytest.mark.long
def test_both_refuse_the_same_sets_near_every_layout() -> None:
    wrong = [each for layout in every() for each in near(layout) if ours(each) != theirs(each)]
    assert wrong == []


@pytest.mark.parametrize("card", gpus(), ids=lambda card: card.key)
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
