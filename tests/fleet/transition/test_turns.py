"""Turns in a share: checked to the last digit, nobody else's, and lost by every tool."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import pytest

from cms.errors import UnsupportedProblem
from cms.fleet import Service
from cms.fleet.deployment import (
    Deployment,
    FleetGpu,
    FleetNode,
    Instance,
    check_deployment,
    deployment_to_json,
    desired_state,
)
from cms.fleet.deployment.export import TARGETS, export
from cms.fleet.deployment.instance import Mode, Work
from cms.fleet.deployment.turns import shares_of
from proofs_checks.checker.deployment import check_deployment as check_again
from tests.fleet.mixes import colocate
from tests.fleet.transition.test_reorganising import CARD, fleet, plan, to_plan


def work(name: str, percent: int, batch: int, ms: int, supply: Fraction | int) -> Work:
    return Work(name, colocate("bert", percent, batch, ms), Fraction(supply))


Turn = tuple[int, str, int, int, int, int]  # start, service, percent, batch, ms and supply


@pytest.mark.parametrize(
    ("turns", "limit", "words"),
    [
        ([(0, "a", 60, 8, 10, 400)], 30, ""),
        ([(0, "a", 60, 8, 10, 400)], Fraction(299999, 10000), "a limit of 30 ms"),
        ([(0, "a", 60, 8, 10, 400), (0, "b", 60, 4, 10, 200)], 30, ""),
        ([(0, "a", 60, 8, 10, 400), (0, "b", 60, 4, 10, 201)], 60, "one cycle for all"),
        ([(0, "a", 60, 8, 11, 400), (0, "b", 60, 4, 10, 200)], 60, "batches that fit"),
        ([(0, "a", 60, 8, 5, 800), (0, "a", 60, 8, 5, 800)], 60, "a turn for each"),
        ([(0, "a", 60, 8, 5, 800), (41, "b", 60, 8, 5, 800)], 60, "ends at 100 %"),
        ([(0, "a", 40, 8, 5, 800), (39, "b", 60, 8, 5, 800)], 60, "per cents of their own"),
    ],
)
def test_turns_in_a_share_are_checked_exactly(
    turns: list[Turn], limit: Fraction | int, words: str
) -> None:
    held = tuple(Instance(f"mps:{each[2]}", each[0], work(*each[1:])) for each in turns)
    card = FleetGpu("n", 0, CARD, Mode.MPS, held)
    services = tuple(Service(name, "bert", 0, limit) for name in "ab")
    faults = check_deployment(Deployment((FleetNode("n", (card,)),), services))
    assert bool(faults) == bool(words), faults
    assert words in " ".join(map(str, faults))


def test_anothers_process_in_a_share_of_ours_is_refused_and_beside_it_is_not() -> None:
    ours = Instance("mps:60", 0, work("a", 60, 8, 10, 400))
    for start, is_valid in ((0, False), (60, True)):
        theirs = Instance("mps:40" if start else "mps:60", start, owner="pod team-x/trainer")
        card = FleetGpu("n", 0, CARD, Mode.MPS, (ours, theirs))
        deployment = Deployment((FleetNode("n", (card,)),), (Service("a", "bert", 0, 30),))
        faults = check_deployment(deployment)
        assert (faults == ()) is is_valid
        second = check_again(json.loads(json.dumps(deployment_to_json(deployment))))
        assert (second == []) is is_valid, second
        if not is_valid:
            assert "others' turns" in str(faults[0])
            assert "another's process" in second[0]


def test_placing_a_plan_that_shares_says_what_brings_it_onto_gpus() -> None:
    with pytest.raises(UnsupportedProblem, match=r"^placing takes .*transition\.reorganise brings"):
        desired_state(plan(150, 50))


def test_every_export_of_turns_says_that_no_tool_makes_them() -> None:
    shared = to_plan(fleet(2), plan(800, 60)).target
    turns = {
        f"{card.name} {place}"
        for card in shared.gpus()
        for place, held in shares_of(card).items()
        if len(held) > 1
    }
    alone = [card for card in shared.gpus() if not shares_of(card)]
    assert turns
    for target in TARGETS:
        (said,) = (loss for loss in export(shared, target).losses if loss.startswith("Turns: "))
        assert all(each in said for each in turns)
        without = replace(shared, nodes=(FleetNode("n", tuple(alone)),), services=())
        assert "Turns:" not in " ".join(export(without, target).losses)
