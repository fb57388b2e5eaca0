"""How many instances can stay at most: prices in a transition's file, planned, forged and drawn."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.errors import FileError
from cms.fleet import get_gpu
from cms.fleet.deployment import Deployment, DesiredState, FleetGpu, FleetNode, Instance, Kind
from cms.fleet.deployment.transition import (
    Transition,
    check_transition,
    transition,
    transition_from_json,
    transition_to_json,
)
from cms.solving.solution import Proof
from proofs_checks import checker
from proofs_checks.checker.replay import examine_transition
from tests.fleet.deployments import SERVICES, point, wanted_for
from tests.fleet.transition.cases import Pair
from tests.proofs_checks.documents import Document, changed
from tests.property.problems import share

from .test_schemas import is_valid

CARD = "a100-80gb"
SMALL, LARGE = "1g.10gb", "4g.40gb"


def kind(service: str, profile: str) -> Kind:
    return Kind(CARD, profile, point(service, CARD, profile))


@cache
def crowded() -> Transition:
    """Two small instances at both ends, and what comes needs the place of one of them."""
    works = [
        Instance(SMALL, start, point(name, CARD, SMALL))
        for name, start in (("chat", 0), ("code", 6))
    ]
    cards = FleetGpu("a", 0, get_gpu(CARD), instances=tuple(works)), FleetGpu("a", 1, get_gpu(CARD))
    counts = {kind("chat", SMALL): 1, kind("code", SMALL): 1, kind("sum", LARGE): 1}
    wanted: DesiredState = wanted_for(counts, {CARD: 1})
    found = transition(Deployment((FleetNode("a", cards),), SERVICES), wanted)
    assert isinstance(found, Transition)
    return found


@cache
def document() -> Document:
    return transition_to_json(crowded())


def in_package(written: Document) -> tuple[object, ...]:
    """What the package has against a document."""
    try:
        return check_transition(transition_from_json(written))
    except FileError as error:
        return (error,)


def test_what_has_to_make_room_is_proved_by_prices() -> None:
    kept = crowded().kept
    assert (kept.count, kept.most, kept.proof) == (1, 1, Proof.CHECKED)
    assert kept.prices is not None
    assert is_valid(document(), "transition")
    faults, words = examine_transition(document())
    assert faults == []
    assert "1 instances are kept; that no more than 1 could be is proved by prices" in words
    assert in_package(document()) == ()


def forged(*path: str | int, to: object) -> Document:
    return changed(document(), "kept", *path, to=to)


PRICES = "prices", "points"


@pytest.mark.parametrize(
    ("path", "to", "says"),
    [
        (("prices",), None, "2 instances are in common, and there are no prices"),
        (("prices", "instances"), [], "not proved, only 2"),
        (("prices", "gpus"), [{"gpu": "a30-24gb", "price": 1}], "the target uses none"),
        ((*PRICES, 0, "price"), -1, "is negative"),
        ((*PRICES, -1, "price"), 50, "not proved, only "),
        ((*PRICES,), [], "not proved, only "),
        ((*PRICES, 0, "point"), "nobody's", "a point of the prices of kept"),
        (("prices", "gpus"), [{"gpu": CARD, "price": 1}] * 2, "twice"),
        (("of",), "both", "of of kept"),
    ],
)
def test_a_forged_bound_is_refused_by_both(
    path: tuple[str | int, ...], to: object, says: str
) -> None:
    faults = checker.check_transition(forged(*path, to=to))
    assert any(says in fault for fault in faults), faults
    assert in_package(forged(*path, to=to)) != ()


@share(7)
@given(st.integers(0, 10**6))
def test_both_checkers_accept_what_is_planned_and_prove_as_much(seed: int) -> None:
    pair = Pair(seed)
    found = transition(pair.start, pair.wanted)
    if isinstance(found, Transition):
        written = transition_to_json(found)
        assert checker.check_transition(written) == []
        assert in_package(written) == ()
