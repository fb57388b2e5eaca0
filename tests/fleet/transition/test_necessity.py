"""Whether fewer spare GPUs would do, against everything that there is."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.fleet import OperatingPoint, Service
from cms.fleet.deployment import Deployment, FleetGpu, FleetNode, Instance, Mode, State, Work
from cms.fleet.deployment.transition import (
    Floor,
    Frozen,
    Impossible,
    Kept,
    Spare,
    Transition,
    transition,
    transition_to_json,
)
from cms.fleet.deployment.transition.necessity import find_frozen
from cms.fleet.placement.program import Limits
from cms.fleet.serving import RULES
from cms.solving.solution import Proof
from proofs_checks.checker import check_transition as check_again
from tests.property.problems import share
from tests.references.transitions import Content, is_reachable, run
from tests.samples import few, so_many

from .cases import A30, A100, Pair, does, on_node, reached, work


def _planned(seed: int) -> str:
    """Plan between two A30s; what is said of spare GPUs must be right."""
    pair = Pair(seed)
    found = reached(pair.start, pair.wanted)
    can = is_reachable(A30, pair.contents, pair.counts, pair.floors, 2, 2)
    assert (found.spare.count == 0) == can
    assert not (found.spare.least and can)
    assert run(found, random.Random(seed)) == []
    assert bool(found.spare.reason) == (found.spare.proof is not None) == (found.spare.least > 0)
    assert check_again(transition_to_json(found)) == []
    return "" if can else "proved" if found.spare.is_least else "found"


def test_pairs_of_gpus_need_as_many_spare_ones_as_everything_tried() -> None:
    assert Counter(map(_planned, range(so_many(16, 40))))["proved"] >= so_many(2, 3)


@pytest.mark.long
def test_a_thousand_pairs_and_their_proofs() -> None:
    assert Counter(map(_planned, range(1000))) == {"": 863, "proved": 114, "found": 23}


@pytest.mark.parametrize("seed", few(2, [580, 871, 933, 390]))
def test_an_instance_that_could_stay_is_given_up_for_a_spare_gpu(seed: int) -> None:
    pair = Pair(seed)
    found = reached(pair.start, pair.wanted)
    assert (found.spare.count, found.kept.most - found.kept.count) == (0, 1)
    assert run(found, random.Random(seed)) == []


def test_so_few_spare_gpus_that_it_is_impossible() -> None:
    pair = Pair(15)
    assert reached(pair.start, pair.wanted).spare.is_least
    found = transition(pair.start, pair.wanted, spare=0)
    assert isinstance(found, Impossible)
    assert found.proof is Proof.CHECKED
    assert isinstance(found.necessity, Frozen)
    assert found.reasons[0] == (
        "with 0 spare GPUs: no 2g.12gb of a can ever begin: with the first, "
        "9 memory slices are needed, and 8 can be free"
    )
    assert found.reasons[1] == "with 80 % of the floors there is one"
    assert isinstance(transition(pair.start, pair.wanted, spare=0, floor="0.8"), Transition)


# --- other fleets ---------------------------------------------------------------------------------


@st.composite
def _sides(draw: st.DrawFn) -> tuple[Deployment, Deployment]:
    """Two GPUs, cut twice; some instances are others', idle, or just starting."""
    pairs = []
    for _ in range(2):
        held = []
        for profile, start in draw(st.sampled_from(A30.maximal_layouts())):
            kind = draw(st.sampled_from("aaaabbbboi-s"))
            does = work(kind, profile) if kind in "ab" else None
            if kind == "s":
                held.append(Instance(profile, start, work("a", profile), state=State.STARTING))
            elif kind != "-":
                owner = "pod x/y" if kind == "o" else None
                held.append(Instance(profile, start, does, owner))
        others = [each for each in held if not each.is_managed]
        places = [(each.profile, each.start or 0) for each in others]
        layout = draw(st.sampled_from(A30.maximal_layouts_around(places)))
        come = [
            Instance(profile, start, work(draw(st.sampled_from("ab")), profile))
            for profile, start in layout
            if (profile, start) not in places and draw(st.integers(0, 7))
        ]
        pairs.append((held, [*others, *come]))
    now, then = (on_node(*(pair[side] for pair in pairs), rate=22) for side in range(2))
    return now, then


def _contents(side: Deployment) -> list[Content]:
    """What is on each GPU; others' instances count as a service that keeps all it has."""
    return [
        frozenset(
            (e.profile, e.start or 0, "other", Fraction(1))
            if e.work is None
            else (e.profile, e.start or 0, e.work.service, e.work.supply_rps)
            for e in card.instances
            if e.work is not None or not e.is_managed
        )
        for card in side.gpus()
    ]


@share(4)
@given(_sides(), st.sampled_from((Fraction(1), Fraction(9, 10))))
def test_proofs_never_contradict_what_can_be_reached(
    sides: tuple[Deployment, Deployment], colocate: Fraction
) -> None:
    now, then = map(_contents, sides)
    floors = {n: colocate * min(side.capacity(n) for side in sides) for n in "ab"}
    others = sum(each[2] == "other" for content in now for each in content)
    for places in (False, True):
        kept = Kept(0, 0, Proof.NONE, places=places)
        asked = {name: Floor(rps, "asked for") for name, rps in floors.items()}
        found = find_frozen(Transition(*sides, asked, (), Spare(0), kept), 0, Limits())
        if found is not None:
            used = sum(map(bool, sides[1].used_gpus()))
            wanted = Counter((p, s, r) for content in then for p, _, s, r in content)
            assert not is_reachable(
                A30, now, wanted, {**floors, "other": Fraction(others)},
                max(len(sides[0].used_gpus()), used), used, then if places else None,
            )  # fmt: skip


SMALL, LARGE = ("1g.6gb", "2g.12gb")


def test_a_target_as_it_stands() -> None:
    """Its instances are there already; that they are to change places needs a GPU."""
    now = on_node([does("a", SMALL), does("a", SMALL, 1), does("a", LARGE, 2)], [], rate=42)
    then = on_node([does("a", LARGE), does("a", SMALL, 2), does("a", SMALL, 3)], [], rate=42)
    found = reached(now, then)
    assert (found.spare.count, found.spare.least) == (1, 1)
    assert found.spare.proof is not None
    assert found.spare.proof.places
    of = transition_to_json(found)
    assert check_again(of) == []
    of["spare"]["proof"]["of"] = "counts"
    assert check_again(of) != []


def _a100(*held: Sequence[tuple[str, int]]) -> Deployment:
    """A100s on which instances give a service 10 requests/s for each compute slice, 7g 80."""
    cards = []
    for index, layout in enumerate(held):
        own = []
        for profile, start in layout:
            rps = Fraction({1: 10, 3: 30, 4: 40, 7: 80}[int(profile[0])])
            point = OperatingPoint("a", A100.key, profile, 1, 4, rps, 100)
            own.append(Instance(profile, start, Work("a", point, rps)))
        cards.append(FleetGpu("n", index, A100, instances=tuple(own)))
    return Deployment(
        (FleetNode("n", tuple(cards)),), (Service("a", "a", 80, 1000),), RULES["half"]
    )


def test_compute_slices_can_be_too_few_where_memory_slices_are_enough() -> None:
    parts = [("4g.40gb", 0), ("3g.40gb", 4)], [("1g.10gb", at) for at in range(7)]
    found = reached(_a100(*parts, ()), _a100([("7g.80gb", 0)], (), ()))
    assert (found.spare.count, found.spare.least) == (1, 1)
    assert found.spare.reason.endswith("15 compute slices are needed, and 14 can be free")
    assert check_again(transition_to_json(found)) == []


def test_of_gpus_that_are_not_cut_nothing_is_proved() -> None:
    foreign = Instance("whole", None, owner="pod a/b")
    shared = FleetGpu("n", 1, A30, Mode.WHOLE, instances=(foreign,))
    now, then = (
        on_node([does("a", profile)], [], rate=22).with_gpus({("n", 1): shared})
        for profile in ("4g.24gb", LARGE)
    )
    found = transition(now, then)
    assert isinstance(found, Impossible)
    assert found.proof is Proof.NONE
    assert found.necessity is None
    cut = on_node([does("a", "4g.24gb")], rate=22), on_node([does("a", LARGE)], rate=22)
    assert isinstance(refused := transition(*cut), Impossible)
    assert refused.proof is Proof.CHECKED
