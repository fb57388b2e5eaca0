"""Proofs that fewer spare GPUs will not do: by hand, planned and forged, each checked twice."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.errors import FileError
from cms.files.documents import lay_out
from cms.fleet.deployment.transition import (
    Transition,
    check_transition,
    transition,
    transition_from_json,
    transition_to_json,
)
from proofs_checks import checker
from proofs_checks.checker.replay import examine_transition
from tests.fleet.transition.cases import Pair
from tests.proofs_checks.documents import Document, changed, places
from tests.proofs_checks.moves import LENT, REPARTITIONED
from tests.proofs_checks.test_replay import in_package
from tests.samples import few

from .test_schemas import is_valid

FROZEN: Document = {
    "kind": "frozen", "of": "counts", "stays": ["chat full"], "never": ["chat half"]
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
        ((*PROOF, "stays", 0), "chat half", "'chat half' does not run at the start"),
        (PROOF, FROZEN | {"stays": [], "never": []}, "the target has all that stays, and nothing"),
        ((*PROOF, "never"), ["chat half", "chat small"], "'chat small' runs at the start"),
        ((*PROOF, "never", 0), "chat full", "'chat full' runs at the start"),
        ((*PROOF, "never", 0), "chat third", "not one of chat small"),
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


PLACES = [path for path in places(PROVED) if path[0] == "spare"]
VALUES: tuple[Any, ...] = (None, True, -1, 0, 2, 1.5, "", "x", "chat half", [], [[]], {}, ["x"])


@given(st.sampled_from(PLACES), st.sampled_from(VALUES))
def test_a_proof_with_a_wrong_part_never_breaks_a_checker(path: Any, to: Any) -> None:
    of = changed(PROVED, *path, to=to)
    taken = checker.check_transition(checker.parse_document(json.dumps(of))) == []
    assert taken == (in_package(of) == ())


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
    try:
        return other, check_transition(transition_from_json(of)) == ()
    except FileError:
        return other, False


@pytest.mark.parametrize("pair", few(2, PAIRS))
def test_a_planned_proof_holds_and_forgeries_of_it_are_refused_twice(pair: tuple[int, str]) -> None:
    of = planned(*pair)
    assert (of["spare"]["count"], of["spare"]["least"]) == (1, 1)
    assert opinions(of) == (True, True)
    assert is_valid(of)
    proof = of["spare"]["proof"]
    forged = [changed(of, *PROOF, to=proof | {"stays": [], "never": []})]
    forged.append(changed(changed(of, "spare", "count", to=2), "spare", "least", to=2))
    for point in (each["name"] for each in of["points"]):
        if point not in (*proof["stays"], *proof["never"]):
            forged += [
                changed(of, *PROOF, key, to=[*proof[key], point]) for key in ("stays", "never")
            ]
    for each in forged:
        assert opinions(each) == (False, False), each["spare"]
    # it is of its floors
    for name in of["floors"]:
        of = changed(of, "floors", name, "rps", to=1)
    assert opinions(of) == (False, False)
    nothing = {"least": 0, "reason": "", "proof": None}
    assert opinions(changed(of, "spare", to=of["spare"] | nothing)) == (True, True)
