"""What counts of a device plug-in tell of a node's GPUs, and what they leave open."""

from __future__ import annotations

from collections import Counter
from itertools import combinations_with_replacement
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.errors import FileError
from cms.fleet import Gpu, gpu
from cms.fleet.deployment import Deployment, FleetGpu, FleetNode, Instance, Mode, Seen
from cms.fleet.deployment.observation.facts import NodeFacts, Stated
from cms.fleet.deployment.observation.merge import merge

from .cluster import A100, ELSEWHERE, HALVES, MIXED, Object, cut, node, told


def counting(number: int, capacity: Any = None, /, **allocatable: int) -> Object:
    """A node whose device plug-in counts, and tells nothing of its GPUs one by one."""
    counts = {name.replace("mig_", "mig-").replace("_", "."): n for name, n in allocatable.items()}
    told_of = node("a", {"nvidia.com/gpu.count": str(number), **MIXED}, **counts)
    for name, count in (capacity or {}).items():
        told_of["status"]["capacity"][f"nvidia.com/{name}"] = str(count)
    return told_of


def meant(*held: Any, card: Gpu = A100) -> Deployment:
    """What a node was meant to hold, by GPU; None of one that is not cut."""
    cards = []
    for at, each in enumerate(held):
        parts = tuple(Instance(name) for name in Counter(each).elements())
        mode = Mode.WHOLE if each is None else Mode.MIG
        cards.append(FleetGpu("a", at, card, mode, parts, seen=Seen.UNKNOWN))
    return Deployment((FleetNode("a", tuple(cards)),))


HALF, WHOLE_CARD = {"3g.40gb": 2}, None
COUNTED: dict[str, tuple[Object, list[Any]]] = {
    "full": (counting(4, gpu=0, mig_3g_40gb=8), [HALF] * 4),
    "none is cut": (counting(2, gpu=2), [WHOLE_CARD] * 2),
    "in several places": (counting(1, gpu=0, mig_1g_10gb=2), [{"1g.10gb": 2}]),
    "out of order": (counting(1, {"mig-3g.40gb": 2}, mig_3g_40gb=1), [HALF]),
    "stale GPUs": (counting(4, gpu=4, mig_3g_40gb=8), [HALF] * 4),
    "stale parts": (counting(1, {"mig-1g.10gb": 7}, mig_1g_10gb=0, mig_3g_40gb=2), [HALF]),
}


@pytest.mark.parametrize(("counted", "held"), COUNTED.values(), ids=COUNTED)
def test_counts_tell_the_gpus_where_they_can_be_so_in_one_way(
    counted: Object, held: list[Any]
) -> None:
    found = merge(told(counted, ELSEWHERE))
    cards = found.deployment.gpus()
    assert [card.counts if card.mode is Mode.MIG else None for card in cards] == held
    said = [each for each in found.warnings if "stale" in each or "given away" in each]
    assert len(said) <= 1, "each once, and under one name"


@given(st.lists(st.sampled_from([None, {}, *gpu("a30-24gb").multisets()]), min_size=1, max_size=3))
def test_counts_are_enough_just_where_no_other_gpus_have_them(held: list[Any]) -> None:
    kinds = [{}, {"whole": 1}, *(dict(each) for each in gpu("a30-24gb").multisets())]
    mine = sum((Counter(each if each is not None else {"whole": 1}) for each in held), Counter())
    ways = {
        tuple(sorted(map(str, way)))
        for way in combinations_with_replacement(kinds, len(held))
        if sum(map(Counter, way), Counter()) == mine
    }
    counts = {"gpu": mine["whole"]} | {f"mig-{p}": n for p, n in mine.items() if p != "whole"}
    labels = {"nvidia.com/gpu.count": str(len(held)), **MIXED, "nvidia.com/gpu.product": "A30"}
    facts = told(node("a", labels, **counts))
    if not mine or len(ways) > 1:
        with pytest.raises(FileError, match="no GPU of node 'a' is told of") as fault:
            merge(facts)
        assert "nvidia-smi mig -lgi" in str(fault.value)
    else:
        cards = merge(facts, meant(*held, card=gpu("a30-24gb"))).deployment.gpus()
        assert [c.counts if c.mode is Mode.MIG else None for c in cards] == held


def test_what_counts_leave_open_is_said_with_two_ways_and_never_guessed() -> None:
    for counted in (counting(4, gpu=0, mig_3g_40gb=4), counting(2, gpu=1, mig_3g_40gb=9)):
        with pytest.raises(FileError, match="no GPU of node 'a' is told of") as fault:
            merge(told(counted, ELSEWHERE))
        assert "nvidia-smi mig -lgi" in str(fault.value)
        assert "observe" not in str(fault.value)
    rest = merge([HALVES, *told(counting(2, gpu=1, mig_3g_40gb=2), ELSEWHERE)]).deployment
    assert [card.mode for card in rest.gpus()] == [Mode.MIG, Mode.WHOLE]
    found = merge([HALVES, *told(counting(4, gpu=0, mig_3g_40gb=2), ELSEWHERE)])
    assert any("of its 4 GPUs, 1 are told of" in said for said in found.warnings)


def test_which_gpu_is_which_is_as_meant_where_counts_do_not_tell() -> None:
    """Nothing is cut anew by a guess: where it was not meant, or others were, it is refused."""
    facts = told(counting(2, gpu=1, mig_7g_80gb=1), ELSEWHERE)
    for held in ((None, {"7g.80gb": 1}), ({"7g.80gb": 1}, None)):
        found = merge(facts, meant(*held))
        cards = [*found.deployment.gpus()]
        assert [c.counts if c.mode is Mode.MIG else None for c in cards] == [*held]
        assert all(card.seen is Seen.UNKNOWN for card in cards)
        assert any("which of its GPUs holds which of" in said for said in found.warnings)
    for other in (None, meant(None, HALF), meant(None)):
        with pytest.raises(FileError, match="in any order.* nvidia-smi mig -lgi"):
            merge(facts, other)


def test_gpus_of_which_counts_alone_tell_are_not_lost_beside_a_listing() -> None:
    lists = merge([HALVES, *told(counting(3, gpu=1, mig_3g_40gb=2), ELSEWHERE)])
    assert any("of its 3 GPUs, 1 are told of" in said for said in lists.warnings)
    large = NodeFacts("lgi.txt", Stated("a", "--node"), gpus=(cut(("7g.80gb", 0)),))
    for name in ("mig_7g_80gb", "mig_7g_79gb"):  # older drivers round down
        both = merge([large, *told(counting(2, **{name: 2}), ELSEWHERE)]).deployment
        assert [card.counts for card in both.gpus()] == [{"7g.80gb": 1}] * 2
    old = merge([HALVES, *told(node("a", **{"mig-3g.40gb": 2, "gpu": 3}), ELSEWHERE)])
    assert any("unless it has GPUs that no source tells of" in said for said in old.warnings)


def test_a_stale_count_may_be_of_gpus_that_are_not_cut() -> None:
    with pytest.raises(FileError, match=r"2 GPUs with nothing, or .* 2 GPUs with MIG off"):
        merge(told(counting(4, gpu=4, mig_7g_80gb=2), ELSEWHERE))
