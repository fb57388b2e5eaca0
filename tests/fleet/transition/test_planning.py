"""Planned transitions: against everything there is on two GPUs, and on published scenarios."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import pytest

from cms.errors import InvalidOption, InvalidProblem
from cms.fleet import Gpu, OperatingPoint, Service
from cms.fleet.deployment import Deployment, FleetGpu, FleetNode, Instance, State, Work
from cms.fleet.deployment.transition import (
    Impossible,
    Transition,
    What,
    check_transition,
    reversal,
    transition,
    transition_from_json,
    transition_to_json,
)
from cms.fleet.serving import CapacityRule, LoadCurve
from cms.fleet.serving.capacity import CAPACITY
from cms.fleet.serving.load_curve import key_of
from cms.solving.solution import Proof
from proofs_checks.checker import check_transition as check_again
from proofs_checks.checker.replay import examine_transition
from tests.references.transitions import run
from tests.samples import few, so_many

from .cases import A30, A100, Pair, does, leg, on_node, reached
from .drawn import measure

#: Of the published chain: the fewest kept, the most actions.
FIGURES = ((1, 53), (1, 47), (4, 52), (3, 67))


@pytest.mark.parametrize("step", range(4))
def test_published_chain_without_a_spare_gpu_and_no_worse_than_exchange_and_compact(
    step: int,
) -> None:
    ours, other = leg(step)
    least_kept, most_actions = FIGURES[step]
    assert (ours.spare.count, ours.kept.count >= least_kept) == (0, True)
    assert len(ours.actions) <= most_actions
    assert not any(action.is_temporary for action in ours.actions)
    if step < 3:  # all that both have is kept
        assert (ours.kept.count, ours.kept.proof) == (ours.kept.most, Proof.CHECKED)
    assert check_transition(other) == ()
    assert ours.kept.count >= other.kept.count
    assert len(ours.actions) < len(other.actions)
    back = reversal(ours)
    assert run(back, random.Random(step)) == []
    assert [c.instances for c in back.target.gpus()] == [c.instances for c in ours.start.gpus()]
    assert (back.spare.count, len(back.actions)) == (0, len(ours.actions))
    for found in leg(step)[: so_many(1, 2)]:
        for seed in range(so_many(1, 3)):
            assert run(found, random.Random(seed)) == []


def reread(way: Transition) -> None:
    """Both checkers pass it, also from its file."""
    document = transition_to_json(way)
    assert check_again(document) == []
    assert check_transition(transition_from_json(document)) == ()


@pytest.mark.parametrize(("old", "new"), [((100, 200), (200, 400)), ((200, 400), (100, 200))])
def test_the_way_back_over_other_limits_survives_its_file(
    old: tuple[int, int], new: tuple[int, int]
) -> None:
    """What covers on the way back is within one of two limits alone: the document has it."""

    def side(latency: int, limit: int) -> Deployment:
        point = OperatingPoint("a", A30.key, "4g.24gb", 1, latency, 40, latency)
        held = Instance("4g.24gb", 0, Work("a", point, Fraction(40)))
        return on_node([held], [], rate=40, limit=limit)

    found = reached(side(*old), side(*new))
    reread(found)
    reread(reversal(found))
    back = reversal(found)
    assert any(action.is_temporary for action in back.actions)
    assert [c.instances for c in back.target.gpus()] == [c.instances for c in found.start.gpus()]


@pytest.mark.parametrize(("loose", "has_curve"), [(3000, False), (700, True)])
def test_the_way_back_to_a_looser_limit_counts_what_the_tighter_one_sustains(
    loose: int, has_curve: bool
) -> None:
    """By a rule about load one point supplies less under it, and another nothing.

    What runs may count by a load curve that the target's rule does not have.
    """
    fast, slow = (
        OperatingPoint("a", A30.key, "1g.6gb", 1, batch, speed, latency)
        for batch, speed, latency in ((1, 8, 125), (4, 10, 400))
    )

    table = CAPACITY
    curve = table.with_curves({key_of(slow): LoadCurve([5], [650])}) if has_curve else table

    def side(rule: CapacityRule, limit: int, *points: OperatingPoint) -> Deployment:
        service = Service("a", "a", 1, limit)
        held = [
            Instance("1g.6gb", at, Work("a", point, rule.supply(service, point)))
            for at, point in enumerate(points)
        ]
        return replace(on_node(held, rate=1, limit=limit), rule=rule)

    found = reached(side(curve, loose, slow, fast), side(table, 500, fast, fast), floor=0)
    reread(found)
    reread(reversal(found))


def _on_card(
    at: int, rate: int = 20, count: int = 1, card: Gpu = A30, driver: str = "550.1", uuid: str = "1"
) -> Deployment:
    held = (does("a", "2g.12gb", at),) if card is A30 else ()
    first = FleetGpu("n", 0, card, instances=held, uuid=f"GPU-{uuid}")
    cards = first, *(FleetGpu("n", index, card) for index in range(1, count))
    return replace(on_node(rate=rate), nodes=(FleetNode("n", cards, driver=driver),))


@pytest.mark.parametrize(
    ("target", "says"),
    [
        (_on_card(1), "the target cannot be as it is written: .* start"),
        (_on_card(2, rate=50), "the target gives less than it asks for: .*; expected"),
        (_on_card(2, count=3), "GPU n/1 is missing in the start and a30-24gb in the target"),
        (_on_card(2, rate=0, card=A100), "GPU n/0 is a30-24gb in the start and a100-80gb in the"),
        (_on_card(2, driver="470.1"), "driver of node 'n' is 550 in the start and 470 in the"),
        (_on_card(2, uuid="2"), "GPU n/0 is GPU-1 in the start and GPU-2 in the target"),
    ],
)
def test_a_target_that_cannot_be_reached_as_it_stands(target: Deployment, says: str) -> None:
    with pytest.raises(InvalidProblem, match=says):
        transition(_on_card(0), target)
    if len(tuple(target.gpus())) > 1:
        with pytest.raises(InvalidProblem, match="a30-24gb in the start and missing in the target"):
            transition(target, _on_card(0))


def test_what_is_still_starting_holds_no_floor() -> None:
    """No way may rest on it, nor is it given up to start again."""

    runs, begins, comes = (
        replace(does(service, "2g.12gb", at), state=state)
        for service, at, state in (
            ("a", 0, State.RUNNING), ("a", 2, State.STARTING), ("b", 0, State.RUNNING),
        )
    )  # fmt: skip
    there = replace(begins, state=State.RUNNING)

    def side(*held: Instance) -> Deployment:
        services = tuple(Service(name, name, 20, 1000) for name in "ab")
        return replace(on_node(held), services=services)

    found = transition(side(runs, begins), side(comes, there))
    assert isinstance(found, Impossible)
    assert found.proof is Proof.NONE
    assert "1 instance is still starting" in str(found)
    assert isinstance(transition(side(runs, there), side(comes, there)), Transition)


@pytest.mark.parametrize("seed", few(1, [4, 8, 15]))
def test_more_gpus_never_make_it_impossible(seed: int) -> None:
    spares = []
    for more in range(1, 4):
        pair = Pair(seed, spare=more)
        found = transition(pair.start, pair.wanted)
        spares.append(None if isinstance(found, Impossible) else found.spare.count)
    given = [each for each in spares if each is not None]
    assert spares == [None] * (3 - len(given)) + given
    assert sorted(given, reverse=True) == given


# --- what is asked for ----------------------------------------------------------------------------

WHOLE, HALF = does("a", "4g.24gb"), does("a", "2g.12gb")
ONE, OTHER = on_node([WHOLE], rate=10), on_node([HALF], rate=10)


def test_a_target_is_reached_as_it_stands() -> None:
    then = on_node([does("a", "2g.12gb", 2)], rate=10)
    found = reached(OTHER, then)
    assert [action.what for action in found.actions] == [What.CREATE, What.DELETE]
    assert found.actions[1].after == (0,)
    assert found.target == then


def test_floors_that_nothing_meets_are_proved_impossible_and_say_why() -> None:
    """Nor is there a GPU to borrow."""
    found = transition(ONE, OTHER, floors={"a": 3})
    assert isinstance(found, Impossible)
    assert str(found).startswith("there is no transition: a is to keep 30 requests/s (300 % of")
    assert found.proof is Proof.CHECKED
    found = transition(ONE, OTHER)
    assert isinstance(found, Impossible)
    assert found.proof is Proof.CHECKED
    assert found.reasons == (
        "with 0 spare GPUs: no 2g.12gb of a can ever begin: with the first, "
        "2 memory slices are needed, and 0 can be free",
        "lower floors or more GPUs are needed",
    )
    assert isinstance(transition(ONE, OTHER, floor=0), Transition)


def test_what_is_not_ours_stays_and_spare_gpus_are_counted() -> None:
    now = on_node([Instance("1g.6gb", 0, owner="pod x/y")])
    with pytest.raises(InvalidProblem, match="not ours"):
        transition(now, on_node([does("a", "1g.6gb", 1)]))
    with pytest.raises(InvalidOption, match="spare is -1"):
        transition(now, now, spare=-1)


def test_what_hangs_or_drains_goes_and_what_starts_stays() -> None:
    kept = replace(does("a", "1g.6gb", 3), state=State.STARTING)
    no_compute_instance = Instance("1g.6gb", 0, state=State.NO_COMPUTE_INSTANCE)
    leaves = replace(does("a", "1g.6gb", 1), state=State.DRAINING)
    running = replace(kept, state=State.RUNNING)
    found = reached(
        on_node([no_compute_instance, leaves, kept], rate=10),
        on_node([running, replace(running, start=0)], rate=10),
    )
    assert sorted(map(str, found.actions)) == [
        "create on n/0: 1g.6gb@0 a (1p b4, 10 requests/s)",
        "delete on n/0: 1g.6gb@0 idle, no_compute_instance",
        "delete on n/0: 1g.6gb@1 a (1p b4, 10 requests/s), draining",
    ]


# --- figures --------------------------------------------------------------------------------------


#: Of the changes of a long run but those between published scenarios: what is found, kept, borrowed
#: and done, and how many seconds it takes.
_SUMS = {"found": 415, "kept": 4753, "spare": 38, "actions": 4031, "makespan_s": 114_330}


def test_drawn_changes_by_every_tool_are_no_worse_and_safe_in_any_execution() -> None:
    """In the long run 500 changes, each carried out 20 times."""
    sums = Counter[str]()
    changes, runs = so_many(10, 500), so_many(2, 20)
    for seed in range(changes):
        row, found = measure(seed)
        if seed % 10 != 8:
            sums.update({name: row.get(name) or 0 for name in _SUMS})
        if found is not None:
            assert check_transition(found) == ()
            assert examine_transition(transition_to_json(found))[0] == []
            for again in range(runs if row["tool"] else 0):
                assert run(found, random.Random(again)) == []
    if changes == 500:
        assert sums["found"] >= _SUMS["found"]
        assert sums["kept"] >= _SUMS["kept"]
        assert sums["spare"] <= _SUMS["spare"]
        assert sums["actions"] <= 1.01 * _SUMS["actions"]
        assert sums["makespan_s"] <= 1.01 * _SUMS["makespan_s"]
