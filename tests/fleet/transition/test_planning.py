"""Planned transitions: against everything there is on two GPUs, and on published scenarios."""

from __future__ import annotations

import random
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
from cms.fleet.serving import RULES
from cms.solving.solution import Proof
from proofs_checks.checker import check_transition as check_again
from tests.references.transitions import is_reachable, run
from tests.samples import few, so_many

from .cases import A30, A100, Pair, chain, leg, work

#: Of the published chain: the fewest kept, the most actions.
FIGURES = ((1, 53), (1, 47), (4, 52), (3, 67))


@pytest.mark.parametrize("step", range(4))
def test_published_chain_without_a_spare_gpu(step: int) -> None:
    found, _ = leg(step)
    least_kept, most_actions = FIGURES[step]
    assert found.spare.count == 0
    assert found.kept.count >= least_kept
    assert len(found.actions) <= most_actions
    assert not any(action.is_temporary for action in found.actions)


@pytest.mark.parametrize("step", range(4))
def test_exchange_and_compact_is_never_better(step: int) -> None:
    ours, other = leg(step)
    assert check_transition(other) == ()
    assert ours.spare.count <= other.spare.count
    assert ours.kept.count >= other.kept.count
    assert len(ours.actions) < len(other.actions)


def test_the_kept_are_proved_most_where_all_that_both_have_is_kept() -> None:
    for found, _ in chain()[:3]:
        assert (found.kept.count, found.kept.proof) == (found.kept.most, Proof.CHECKED)


@pytest.mark.parametrize("step", few(1, [0, 2, 1, 3]))
def test_random_executions_keep_the_floors(step: int) -> None:
    for found in leg(step):
        for seed in range(3):
            assert run(found, random.Random(seed)) == []


@pytest.mark.parametrize("step", range(4))
def test_the_way_back(step: int) -> None:
    found, _ = leg(step)
    back = reversal(found)
    assert run(back, random.Random(step)) == []
    assert [c.instances for c in back.target.gpus()] == [c.instances for c in found.start.gpus()]
    assert back.spare.count == found.spare.count
    assert len(back.actions) == len(found.actions)


@pytest.mark.parametrize(("old", "new"), [((100, 200), (200, 400)), ((200, 400), (100, 200))])
def test_the_way_back_over_other_limits_survives_its_file(
    old: tuple[int, int], new: tuple[int, int]
) -> None:
    """What covers on the way back is within one of two limits alone: the document has it."""

    def side(latency: int, limit: int) -> Deployment:
        point = OperatingPoint("a", A30.key, "4g.24gb", 1, latency, 40, latency)
        held = (Instance("4g.24gb", 0, Work("a", point, Fraction(40))),)
        cards = (FleetGpu("n", 0, A30, instances=held), FleetGpu("n", 1, A30))
        return Deployment((FleetNode("n", cards),), (Service("a", "a", 40, limit),), RULES["half"])

    found = transition(side(*old), side(*new))
    assert isinstance(found, Transition), found
    for way in (found, reversal(found)):
        document = transition_to_json(way)
        assert check_again(document) == []
        assert check_transition(transition_from_json(document)) == ()
    back = reversal(found)
    assert any(action.is_temporary for action in back.actions)
    assert [c.instances for c in back.target.gpus()] == [c.instances for c in found.start.gpus()]


def test_the_way_back_to_a_looser_limit_counts_what_the_tighter_one_sustains() -> None:
    """By a rule about load one point supplies less under it, and another nothing."""
    rule = RULES["capacity"]
    fast, slow = (
        OperatingPoint("a", A30.key, "1g.6gb", 1, batch, speed, latency)
        for batch, speed, latency in ((1, 8, 125), (4, 10, 400))
    )

    def side(limit: int, *points: OperatingPoint) -> Deployment:
        service = Service("a", "a", 1, limit)
        held = tuple(
            Instance("1g.6gb", at, Work("a", point, rule.supply(service, point)))
            for at, point in enumerate(points)
        )
        card = FleetGpu("n", 0, A30, instances=held)
        return Deployment((FleetNode("n", (card,)),), (service,), rule)

    found = transition(side(3000, slow, fast), side(500, fast, fast), floor=0)
    assert isinstance(found, Transition), found
    for way in (found, reversal(found)):
        document = transition_to_json(way)
        assert check_again(document) == []
        assert check_transition(transition_from_json(document)) == ()


# --- against everything there is ------------------------------------------------------------------


def _agrees(seed: int) -> bool:
    """Whether no spare GPU is needed exactly where none is; what is found must be safe."""
    pair = Pair(seed)
    found = transition(pair.start, pair.wanted)
    assert isinstance(found, Transition), found
    assert run(found, random.Random(seed)) == []
    can = is_reachable(A30, pair.contents, pair.counts, pair.floors, 2, 2)
    assert can or found.spare.count > 0
    return can == (found.spare.count == 0)


def test_two_gpus_need_a_spare_one_where_no_sequence_does_without() -> None:
    assert all(_agrees(seed) for seed in range(so_many(3, 12)))


@pytest.mark.long
def test_a_thousand_pairs_of_two_gpus() -> None:
    assert sum(_agrees(seed) for seed in range(1000)) >= 980


def _on_card(
    at: int,
    rate: int = 20,
    count: int = 1,
    card: Gpu = A30,
    driver: str = "550.1",
    uuid: str = "GPU-1",
) -> Deployment:
    held = (Instance("2g.12gb", at, work("a", "2g.12gb")),) if card is A30 else ()
    first = FleetGpu("n", 0, card, instances=held, uuid=uuid)
    cards = first, *(FleetGpu("n", index, card) for index in range(1, count))
    node = FleetNode("n", cards, driver=driver)
    return Deployment((node,), (Service("a", "a", rate, 1000),), RULES["half"])


@pytest.mark.parametrize(
    ("target", "says"),
    [
        (_on_card(1), "the target cannot be as it is written: .* start"),
        (_on_card(2, rate=50), "the target gives less than it asks for: .*; expected"),
        (_on_card(2, count=3), r"GPU n/1 is in the target and not in the start \(and 1 more\)"),
        (_on_card(2, rate=0, card=A100), "GPU n/0 is a30-24gb in the start and a100-80gb in the"),
        (_on_card(2, driver="470.1"), "has driver 550.1 in the start and 470.1 in the target"),
        (_on_card(2, uuid="GPU-2"), "GPU n/0 is GPU-1 in the start and GPU-2 in the target"),
    ],
)
def test_a_target_that_cannot_be_reached_as_it_stands(target: Deployment, says: str) -> None:
    with pytest.raises(InvalidProblem, match=says):
        transition(_on_card(0), target)
    if len(tuple(target.gpus())) > 1:
        with pytest.raises(InvalidProblem, match="in the start and not in the target"):
            transition(target, _on_card(0))


def test_what_is_still_starting_holds_no_floor() -> None:
    """All that can be reached is looked for as if it ran; no way may rest on that."""

    def side(*held: Instance) -> Deployment:
        card = FleetGpu("n", 0, A30, instances=held)
        services = tuple(Service(name, name, 20, 1000) for name in "ab"[: len(held)])
        return Deployment((FleetNode("n", (card,)),), services, RULES["half"])

    runs, begins, comes = (
        Instance("2g.12gb", at, work(service, "2g.12gb"), state=state)
        for at, service, state in (
            (0, "a", State.RUNNING), (2, "a", State.STARTING), (0, "b", State.RUNNING),
        )
    )  # fmt: skip
    found = transition(side(runs, begins), side(comes, replace(begins, state=State.RUNNING)))
    assert isinstance(found, Impossible)
    assert found.proof is Proof.NONE
    assert "1 instance is still starting" in str(found)
    once = side(runs, replace(begins, state=State.RUNNING))
    assert isinstance(transition(once, side(comes, once.nodes[0].gpus[0].instances[1])), Transition)


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


@pytest.mark.parametrize("seed", few(2, range(6)))
def test_names_of_nodes_do_not_matter(seed: int) -> None:
    answers = set()
    for names in ("abcde", "edcba", "cadbe"):
        pair = Pair(seed, names=names)
        found = transition(pair.start, pair.wanted)
        assert isinstance(found, Transition)
        answers.add((found.spare.count, found.kept.count))
    assert len(answers) == 1


# --- what is asked for ----------------------------------------------------------------------------


def _one(*instances: Instance, rate: int = 10) -> Deployment:
    card = FleetGpu("n", 0, A30, instances=instances)
    services = Pair(0).start.services
    same = tuple(
        replace(each, rate_rps=Fraction(rate if each.name == "a" else 0)) for each in services
    )
    return Deployment((FleetNode("n", (card,)),), same, Pair(0).start.rule)


def test_a_target_is_reached_as_it_stands() -> None:
    now = _one(Instance("2g.12gb", 0, work("a", "2g.12gb")))
    then = _one(Instance("2g.12gb", 2, work("a", "2g.12gb")))
    found = transition(now, then)
    assert isinstance(found, Transition)
    assert [action.what for action in found.actions] == [What.CREATE, What.DELETE]
    assert found.actions[1].after == (0,)
    assert found.target == then


def test_a_floor_that_nothing_meets_is_impossible_and_says_why() -> None:
    now = _one(Instance("4g.24gb", 0, work("a", "4g.24gb")))
    then = _one(Instance("2g.12gb", 0, work("a", "2g.12gb")))
    found = transition(now, then, floors={"a": 3})
    assert isinstance(found, Impossible)
    assert str(found).startswith("there is no transition: a is to keep 30 items/s (300 % of")
    assert found.proof is Proof.CHECKED


def test_without_a_gpu_to_borrow_it_is_proved_impossible() -> None:
    now = _one(Instance("4g.24gb", 0, work("a", "4g.24gb")))
    then = _one(Instance("2g.12gb", 0, work("a", "2g.12gb")))
    found = transition(now, then)
    assert isinstance(found, Impossible)
    assert found.proof is Proof.CHECKED
    assert found.reasons == (
        "with 0 spare GPUs: no 2g.12gb of a can ever begin: with the first, 1 x 2g.12gb are "
        "needed, more than the 0 that every slot that could become free can hold",
        "lower floors or more GPUs are needed",
    )
    lower = transition(now, then, floor=0)
    assert isinstance(lower, Transition)


def test_what_is_not_ours_stays() -> None:
    now = _one(Instance("1g.6gb", 0, owner="pod x/y"))
    with pytest.raises(InvalidProblem, match="not ours"):
        transition(now, _one(Instance("1g.6gb", 1, work("a", "1g.6gb"))))


def test_what_hangs_or_drains_goes_and_what_starts_stays() -> None:
    kept = Instance("1g.6gb", 3, work("a", "1g.6gb"), state=State.STARTING)
    hollow = Instance("1g.6gb", 0, state=State.HOLLOW)
    leaves = Instance("1g.6gb", 1, work("a", "1g.6gb"), state=State.DRAINING)
    found = transition(
        _one(hollow, leaves, kept),
        _one(replace(kept, state=State.RUNNING), replace(kept, start=0, state=State.RUNNING)),
    )
    assert isinstance(found, Transition)
    assert sorted(map(str, found.actions)) == [
        "create on n/0: 1g.6gb@0 a (1p b4, 10 items/s)",
        "delete on n/0: 1g.6gb@0 idle, hollow",
        "delete on n/0: 1g.6gb@1 a (1p b4, 10 items/s), draining",
    ]


def test_a_negative_number_of_spare_gpus() -> None:
    with pytest.raises(InvalidOption, match="spare is -1"):
        transition(_one(), _one(), spare=-1)
