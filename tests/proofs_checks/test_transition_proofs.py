"""Proofs in transitions' files: most kept, fewest spare, and what new limits no longer admit."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.files.documents import lay_out
from cms.fleet import get_gpu
from cms.fleet.deployment import Deployment, DesiredState, FleetGpu, FleetNode, Instance, Kind
from cms.fleet.deployment.recounting import outdated
from cms.fleet.deployment.transition import Transition, transition, transition_to_json
from cms.solving.solution import Proof
from proofs_checks import checker
from proofs_checks.checker.replay import examine_transition
from tests.files.test_schemas import is_valid
from tests.fleet.deployments import SERVICES, point, wanted_for
from tests.fleet.transition.cases import Pair, leg
from tests.proofs_checks.documents import Document, changed
from tests.proofs_checks.moves import LENT, REPARTITIONED
from tests.proofs_checks.test_replay import in_package
from tests.property.problems import share
from tests.samples import few

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


FROZEN: Document = {
    "kind": "frozen", "of": "counts", "stays": ["chat 4g.24gb"], "never": ["chat 2g.12gb"]
}  # fmt: skip
#: Without a GPU to borrow, one service has all of the only GPU and cannot miss it.
CLAIM = {"least": 1, "reason": "it has no room", "proof": FROZEN}
PROVED = changed(LENT, "spare", to=LENT["spare"] | CLAIM)


@pytest.mark.parametrize(
    "proof",
    [
        FROZEN,
        changed(FROZEN, "never", to=[]),
        changed(FROZEN, "stays", to=[]),
        changed(FROZEN, "of", to="target"),
    ],
)
def test_a_proof_made_by_hand_holds(proof: Document) -> None:
    of = changed(PROVED, "spare", "proof", to=proof)
    assert is_valid(of)
    faults, words = examine_transition(checker.parse_document(json.dumps(of)))
    assert faults == []
    assert words.endswith("1 spare GPUs; that fewer than 1 would not do is proved")
    assert in_package(of) == ()


PROOF = ("spare", "proof")


@pytest.mark.parametrize(
    ("path", "to", "words"),
    [
        # what it says of itself
        (("spare", "least"), 2, "at least 2 spare GPUs are said to be needed, of 1"),
        (("spare", "least"), 0, "at least 0 spare GPUs are said to be needed, of 1: no reason"),
        (("spare", "reason"), "", "no reason"),
        (PROOF, None, "no reason"),
        # what never stops, what never begins
        ((*PROOF, "stays", 0), "chat 2g.12gb", "'chat 2g.12gb' does not run at the start"),
        (PROOF, FROZEN | {"stays": [], "never": []}, "the target has all that stays, and nothing"),
        ((*PROOF, "never"), ["chat 2g.12gb", "chat 1g.6gb"], "'chat 1g.6gb' runs at the start"),
        ((*PROOF, "never", 0), "chat 4g.24gb", "'chat 4g.24gb' runs at the start"),
        ((*PROOF, "never", 0), "chat third", "not one of chat 1g.6gb"),
        ((*PROOF, "of"), "all", "not one of counts, target"),
        ((*PROOF, "kind"), "obvious", "not one of frozen"),
        # what it is about
        (("floors", "chat", "rps"), 0, "does not run at the start for a service with a floor"),
    ],
)  # fmt: skip
def test_a_forged_proof_is_refused_twice(path: tuple[Any, ...], to: Any, words: str) -> None:
    of = changed(PROVED, *path, to=to)
    faults = checker.check_transition(checker.parse_document(json.dumps(of)))
    assert any(words in fault for fault in faults), faults
    assert in_package(of)


def test_of_shared_gpus_nothing_is_proved() -> None:
    of = changed(REPARTITIONED, "spare", to=REPARTITIONED["spare"] | {"count": 1} | CLAIM)
    faults = checker.check_transition(of)
    assert any("what is on n/0 has no starts" in fault for fault in faults), faults
    assert in_package(of)


#: Pairs of GPUs that need a spare one, and the tool.
PAIRS = ((15, "nvidia-smi"), (31, "mig-parted"), (26, "nvidia-smi"), (42, "nvidia-smi"))


@cache
def planned(seed: int, tool: str) -> Document:
    pair = Pair(seed)
    found = transition(pair.start, pair.wanted, tool=tool)
    assert isinstance(found, Transition)
    document: Document = json.loads(lay_out(transition_to_json(found)))
    return document


def opinions(of: Document) -> tuple[bool, bool]:
    """Whether the independent checker, and the package, take a document."""
    other = checker.check_transition(checker.parse_document(json.dumps(of))) == []
    return other, in_package(of) == ()


@pytest.mark.parametrize("pair", few(2, PAIRS))
def test_a_planned_proof_holds_and_forgeries_of_it_are_refused_twice(pair: tuple[int, str]) -> None:
    of = planned(*pair)
    assert (of["spare"]["count"], of["spare"]["least"]) == (1, 1)
    assert opinions(of) == (True, True)
    assert is_valid(of)
    proof = of["spare"]["proof"]
    forged = [changed(of, *PROOF, to=proof | {"stays": [], "never": []})]
    forged.append(changed(changed(of, "spare", "count", to=2), "spare", "least", to=2))
    for name in (each["name"] for each in of["points"]):
        if name not in (*proof["stays"], *proof["never"]):
            forged += [
                changed(of, *PROOF, key, to=[*proof[key], name]) for key in ("stays", "never")
            ]
    for each in forged:
        assert opinions(each) == (False, False), each["spare"]
    # it is of its floors
    for name in of["floors"]:
        of = changed(of, "floors", name, "rps", to=1)
    assert opinions(of) == (False, False)
    nothing = {"least": 0, "reason": "", "proof": None}
    assert opinions(changed(of, "spare", to=of["spare"] | nothing)) == (True, True)


@cache
def outgrown() -> Document:
    return transition_to_json(leg(0)[0])


def old() -> tuple[int, str]:
    """The number and the name of a point that only the old limits admit."""
    found = leg(0)[0]
    works = outdated(found.start, found.target)
    points = {(w.service, w.point.profile, w.point.batch, w.point.processes) for w in works}
    return next(
        (at, point["name"])
        for at, point in enumerate(outgrown()["points"])
        if (point["service"], point["profile"], point["batch"], point["processes"]) in points
    )


def test_every_service_that_stays_has_a_floor_above_nothing() -> None:
    found = leg(0)[0]
    rates = [{s.name: s.rate_rps for s in side.services} for side in (found.start, found.target)]
    assert len(outdated(found.start, found.target)) > 5
    for name in rates[0].keys() & rates[1].keys():
        assert found.floors[name].rps == min(rates[0][name], rates[1][name]) > 0
    assert checker.check_transition(outgrown()) == []
    assert in_package(outgrown()) == ()


def test_what_only_the_old_limit_admits_may_not_come() -> None:
    at = next(i for i, action in enumerate(outgrown()["actions"]) if action["adds"])
    forged = changed(outgrown(), "actions", at, "adds", 0, "point", to=old()[1])
    faults = checker.check_transition(forged)
    assert any("comes or is in the target, and only the old limit" in fault for fault in faults)
    assert "does not admit its point" in str(in_package(forged))


@pytest.mark.parametrize("path", ["supply", "limit"])
def test_it_supplies_no_more_than_it_did(path: str) -> None:
    at, _ = old()
    point = outgrown()["points"][at]
    if path == "supply":
        forged = changed(outgrown(), "points", at, "supply_rps", to=10**6)
    else:
        services = outgrown()["start"]["services"]
        number = next(i for i, s in enumerate(services) if s["name"] == point["service"])
        forged = changed(outgrown(), "start", "services", number, "latency_limit_ms", to=1)
    faults = checker.check_transition(forged)
    assert any(f"point '{point['name']}' supplies" in fault for fault in faults), faults
    assert in_package(forged) != ()
