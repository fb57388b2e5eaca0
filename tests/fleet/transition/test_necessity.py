"""Whether fewer spare GPUs would do: against everything there is, and against plain counting."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.fleet import get_gpu
from cms.fleet.deployment import (
    Deployment,
    FleetGpu,
    Instance,
    Mode,
    PlacementResult,
    State,
    place,
)
from cms.fleet.deployment.programs import Limits
from cms.fleet.deployment.transition import (
    Exhausted,
    Floor,
    Frozen,
    Impossible,
    Spare,
    Transition,
    check_transition,
    necessity,
    planning,
    transition,
    transition_to_json,
)
from cms.fleet.deployment.transition.covering import Covering, Give, Room, room_of
from cms.fleet.deployment.transition.exhaustion import reached
from cms.fleet.deployment.transition.floors import floors_of
from cms.fleet.deployment.transition.frozen import find_frozen
from cms.fleet.deployment.transition.ground import Ground, ground_of
from cms.fleet.deployment.transition.necessity import Necessity
from cms.solving.solution import Proof
from proofs_checks.checker import check_transition as check_again
from tests.property.problems import share
from tests.references.transitions import is_reachable, run
from tests.samples import few, so_many

from .cases import A30, Pair, does, on_node, work


def _ground(start: Deployment, target: Deployment, floors: Any) -> Ground | None:
    sides = (*start.instances(), *target.instances())
    works = {each.work for _, each in sides if each.work is not None}
    return ground_of(start, target, floors, works)


@cache
def _of_pair(seed: int) -> tuple[Pair, Ground]:
    pair = Pair(seed)
    placed = place(pair.wanted, pair.start)
    assert isinstance(placed, PlacementResult)
    floors = {name: Floor(rps, "asked for") for name, rps in pair.floors.items()}
    ground = _ground(pair.start, placed.deployment, floors)
    assert ground is not None
    return pair, ground


# --- two GPUs, everything tried -------------------------------------------------------------------


def _proved(seed: int) -> str:
    """Which proof there is that two GPUs will not do; it must be right, and there must be one."""
    pair, ground = _of_pair(seed)
    can = is_reachable(A30, pair.contents, pair.counts, pair.floors, 2, 2)
    frozen = find_frozen(ground, 2, Limits(), places=False)
    found = reached(ground, 2, places=False)
    assert found is not None
    assert can == (found.steps is not None)
    assert frozen is None or not can
    return "" if can else "frozen" if frozen is not None else "exhausted"


def _planned(seed: int) -> bool:
    """Whether the plan has as many spare GPUs as it must; what it says of them must be right."""
    pair = Pair(seed)
    found = transition(pair.start, pair.wanted)
    assert isinstance(found, Transition)
    can = is_reachable(A30, pair.contents, pair.counts, pair.floors, 2, 2)
    assert (found.spare.count == 0) <= can
    assert (found.spare.least == 0) >= can
    assert bool(found.spare.reason) == (found.spare.proof is not None) == (found.spare.least > 0)
    if found.spare.least:
        assert check_again(transition_to_json(found)) == []
    return found.spare.is_least and can == (found.spare.count == 0)


@pytest.mark.long
def test_pairs_of_gpus_and_their_proofs() -> None:
    proofs = Counter(map(_proved, range(so_many(16, 36))))
    assert proofs["frozen"] >= 0.55 * (proofs["frozen"] + proofs["exhausted"]) > so_many(1, 2)
    assert all(_planned(seed) for seed in range(so_many(1, 6)))


@pytest.mark.long
def test_a_thousand_pairs_and_their_proofs() -> None:
    proofs = Counter(map(_proved, range(1000)))
    assert proofs["frozen"] >= 0.55 * (proofs["frozen"] + proofs["exhausted"])
    assert sum(map(_planned, range(1000))) >= 980


@pytest.mark.parametrize("seed", few(2, [0, 1, 2, 3, 5, 8]))
def test_a_way_that_the_rules_miss_is_found_by_trying_everything(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = Pair(seed)
    best = transition(pair.start, pair.wanted)
    monkeypatch.setattr(planning, "sequences", lambda *_, **__: [])
    found = transition(pair.start, pair.wanted)
    assert isinstance(found, Transition)
    assert isinstance(best, Transition)
    assert found.spare.count == best.spare.count == 0
    assert len(found.actions) <= 2 * len(best.actions)  # a restart in place is two
    assert run(found, random.Random(seed)) == []


def test_without_the_search_the_least_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(necessity, "reached", lambda *_, **__: None)
    pair = Pair(7)
    found = transition(pair.start, pair.wanted)
    assert isinstance(found, Transition)
    assert (found.spare.count, found.spare.least, found.spare.proof) == (1, 0, None)
    assert str(found).endswith("1 spare GPU (found, not proved least)")


@pytest.mark.parametrize(
    ("seed", "kind", "words"),
    [
        (7, Exhausted, "none of the 51 states that can be reached within the floors is the target"),
        (15, Frozen, "no 2g.12gb of a can ever begin: with the first, what is needed comes to 9, "
                     "more than the 8 that every slot that could become free can hold, counted as "
                     "1g.6gb = 1, 2g.12gb = 2"),
        (26, Frozen, "a on n/1 4g.24gb@0 can never stop: without it, what is needed comes to 5, "
                     "more than the 4 that every slot that could become free can hold, counted as "
                     "1g.6gb = 1, 2g.12gb = 2, 4g.24gb = 4; beside what stays there is no room for "
                     "the target"),
    ],
)  # fmt: skip
def test_what_is_said_of_the_least(seed: int, kind: type, words: str) -> None:
    pair = Pair(seed)
    found = transition(pair.start, pair.wanted)
    assert isinstance(found, Transition)
    assert isinstance(found.spare.proof, kind)
    assert found.spare.reason == f"with 0 spare GPUs: {words}"
    assert str(found.spare) == "1 spare GPU (the least)"


def test_so_few_spare_gpus_that_it_is_impossible() -> None:
    pair = Pair(15)
    found = transition(pair.start, pair.wanted, spare=0)
    assert isinstance(found, Impossible)
    assert found.proof is Proof.CHECKED
    assert isinstance(found.necessity, Frozen)
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


@share(4)
@given(_sides(), st.sampled_from((Fraction(1), Fraction(9, 10))))
def test_proofs_never_contradict_what_can_be_reached(
    sides: tuple[Deployment, Deployment], colocate: Fraction
) -> None:
    floors = {n: Floor(colocate * min(s.capacity(n) for s in sides), "asked for") for n in "ab"}
    ground = _ground(*sides, floors)
    assert ground is not None
    for places in (False, True):
        frozen = find_frozen(ground, 2, Limits(), places=places)
        found = reached(ground, 2, places=places)
        assert frozen is None or (found is not None and found.steps is None)


def _card(index: int, *instances: Instance, mode: Mode = Mode.MIG) -> FleetGpu:
    return FleetGpu("n", index, A30, mode, instances=instances)


SMALL, LARGE = ("1g.6gb", "2g.12gb")


def test_a_target_as_it_stands() -> None:
    """Its instances are there already; that they are to change places needs a GPU."""
    now = on_node([does("a", SMALL), does("a", SMALL, 1), does("a", LARGE, 2)], [], rate=42)
    then = on_node([does("a", LARGE), does("a", SMALL, 2), does("a", SMALL, 3)], [], rate=42)
    found = transition(now, then)
    assert isinstance(found, Transition)
    assert (found.spare.count, found.spare.least) == (1, 1)
    assert isinstance(found.spare.proof, Frozen)
    assert found.spare.proof.places
    assert check_again(transition_to_json(found)) == []
    proof = Frozen(found.spare.proof.stays, found.spare.proof.never)
    assert check_transition(replace(found, spare=replace(found.spare, proof=proof))) != ()


def test_of_gpus_that_are_not_cut_nothing_is_proved() -> None:
    shared = _card(1, Instance("whole", None, owner="pod a/b"), mode=Mode.WHOLE)
    now, then = (
        on_node([does("a", profile)], [], rate=22).with_gpus({("n", 1): shared})
        for profile in ("4g.24gb", LARGE)
    )
    found = transition(now, then)
    assert isinstance(found, Impossible)
    assert found.proof is Proof.NONE
    assert found.necessity is None
    assert _ground(now, then, {}) is None


def test_idle_instances_are_in_nobodys_way() -> None:
    idle = [Instance(SMALL, 2), Instance(SMALL, 3)]
    now, then = on_node([does("a", LARGE), *idle], rate=22), on_node([does("a", LARGE, 2)], rate=22)
    needed = Necessity(now, then, floors_of(now, then), 1, places=True)
    way = needed.look(0, Limits())
    assert way is not None
    assert [action.what.value for action in way] == ["delete", "delete", "create", "delete"]
    assert needed.spare(0) == Spare(0)


# --- coverings ------------------------------------------------------------------------------------

BLOCKS = ("1g.6gb", "2g.12gb", "4g.24gb")
HELD: tuple[tuple[tuple[str, int], ...], ...] = (
    (), (("1g.6gb", 0),), (("1g.6gb", 1),), (("2g.12gb", 2),), (("4g.24gb", 0),)
)  # fmt: skip


@st.composite
def coverings(draw: st.DrawFn) -> Covering:
    """Two needs, and at most three GPUs."""
    amounts = st.fractions(0, 9, max_denominator=3)
    gives = {
        (A30.key, block): [Give(need, amount) for need in range(2) if (amount := draw(amounts))]
        for block in BLOCKS
    }
    needs = tuple(draw(st.fractions(1, 25, max_denominator=2)) for _ in range(2))
    rooms: Counter[Room] = Counter()
    for held in draw(st.lists(st.sampled_from(HELD), max_size=3)):
        rooms[room_of(A30, held, BLOCKS, None if held else "empty")] += 1
    return Covering(needs, gives, rooms, {"empty": draw(st.integers(0, 2))})


def _can(of: Covering) -> bool:
    """Whether some choice of fillings, and of what each instance gives, is enough."""
    rooms = [room for room, n in of.rooms.items() for _ in range(n)]
    for fills in product(*(((), *room.fills) for room in rooms)):
        used = sum(bool(fill) for fill, room in zip(fills, rooms, strict=True) if room.group)
        if used > of.most["empty"]:
            continue
        things = [p for fill in fills for p, n in fill for _ in range(n)]
        sums = {(Fraction(0), Fraction(0))}
        for profile in things:
            gives = of.gives[A30.key, profile]
            sums |= {
                (a + g.amount * (g.need == 0), b + g.amount * (g.need == 1))
                for a, b in sums
                for g in gives
            }
        if any(a >= of.needs[0] and b >= of.needs[1] for a, b in sums):
            return True
    return False


@given(coverings())
def test_trying_says_what_is_so_and_prices_nothing_else(of: Covering) -> None:
    can = _can(of)
    assert of.is_too_much_by_trying() is not can
    prices = of.prices(Limits())
    if prices is not None:
        assert not can
        assert of.is_too_much(prices)
        assert not prices or not of.is_too_much({b: -price for b, price in prices.items()})
        assert not of.is_too_much({}) or not prices


def test_rooms_are_those_of_the_layouts() -> None:
    a100 = get_gpu("a100-80gb")
    room = room_of(a100, [("3g.40gb", 4)], ["1g.10gb", "2g.20gb"], None)
    assert room.fills == (
        (("1g.10gb", 2), ("2g.20gb", 1)), (("1g.10gb", 4),), (("2g.20gb", 2),)
    )  # fmt: skip
    assert room_of(a100, [("7g.80gb", 0)], ["1g.10gb"], None).fills == ()
    assert room_of(a100, [], [], None).fills == ()


def test_much_room_is_not_tried() -> None:
    room = room_of(A30, [("1g.6gb", 0)], BLOCKS, None)
    gives = {(A30.key, block): [Give(0, Fraction(1))] for block in BLOCKS}
    assert Covering((Fraction(9),), gives, {room: 7}, {}).is_too_much_by_trying() is None
    assert Covering((Fraction(22),), gives, {room: 7}, {}).prices(Limits()) == {
        (A30.key, block): 1 for block in BLOCKS
    }
    nothing: dict[tuple[str, str], list[Give]] = {block: [] for block in gives}
    assert Covering((Fraction(1),), nothing, {room: 7}, {}).prices(Limits()) == {}
