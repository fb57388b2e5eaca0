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


def price(profile: str, price: int) -> Document:
    return {"gpu": "card", "profile": profile, "price": price}


FULL, HALF = price("full", 1), price("half", 1)
FROZEN: Document = {
    "kind": "frozen", "of": "counts", "end": None,
    "stays": [{"point": "chat full", "prices": [FULL, HALF, price("small", 1)]}],
    "never": [{"point": "chat half", "prices": [HALF]}],
}  # fmt: skip
#: Without a GPU to borrow, one service has all of the only GPU and cannot miss it.
CLAIM = {"least": 1, "reason": "it has no room", "proof": FROZEN}
PROVED = changed(LENT, "spare", to=LENT["spare"] | CLAIM)
#: What there is more to be said of: one state, and nothing can be done in it.
ALONE: Document = {"kind": "exhausted", "of": "counts", "states": [1]}


@pytest.mark.parametrize(
    "proof",
    [
        FROZEN,
        changed(FROZEN, "never", to=[]),
        changed(FROZEN, "never", 0, "prices", to=None),
        changed(FROZEN, "stays", 0, "prices", to=None),
        changed(FROZEN, "of", to="target"),
        ALONE,
        changed(ALONE, "of", to="target"),
    ],
)  # fmt: skip
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
        ((*PROOF, "stays", 0, "point"), "chat half", "'chat half' does not run at the start"),
        ((*PROOF, "stays", 0, "prices"), [], "'chat full' can never stop does not follow"),
        ((*PROOF, "stays", 0, "prices", 0, "price"), -1, "negative"),
        ((*PROOF, "stays", 0, "prices"), [FULL, FULL], "has 'full' twice"),
        ((*PROOF, "stays"), [FROZEN["stays"][0]] * 2, "a point is there twice"),
        ((*PROOF, "stays"), [], "'chat half' can never begin does not follow"),
        ((*PROOF, "never", 0, "point"), "chat full", "'chat full' runs at the start"),
        ((*PROOF, "never", 0, "prices"), [FULL], "'chat half' can never begin does not follow"),
        ((*PROOF, "never", 0, "point"), "chat third", "not one of chat small"),
        ((*PROOF, "of"), "all", "not one of counts, target"),
        ((*PROOF, "kind"), "obvious", "not one of frozen, exhausted, first_repartition"),
        ((*PROOF,), ALONE | {"states": [2]}, "1 states are reached, not 2"),
        ((*PROOF,), ALONE | {"states": [1, 1]}, "1 states are reached, not 2"),
        ((*PROOF,), ALONE | {"states": []}, "more than 0 states are reached"),
        ((*PROOF,), ALONE | {"states": [1, 0]}, "less than 1"),
        ((*PROOF,), ALONE | {"states": [1, 10**9]}, "more than are walked through"),
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
VALUES: tuple[Any, ...] = (None, True, -1, 0, 2, 1.5, "", "x", "chat half", [], [[]], {}, [FULL])


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


#: Of pairs of GPUs that need a spare one: proved by search, by prices, by trying all uses of rooms.
SEEDS = (7, 12, 15, 26, 31)


@cache
def planned(seed: int) -> Document:
    pair = Pair(seed)
    found = transition(pair.start, pair.wanted)
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


def _more(proof: Document, points: list[str]) -> list[Document]:
    """Say of one point more that it never stops or never begins, or of one that it does not."""
    named = {each["point"] for key in ("stays", "never") for each in proof[key]}
    found = []
    for point in points:
        if point not in named:
            for key in ("stays", "never"):
                entry = {"point": point, "prices": None}
                found.append(changed(proof, key, to=[*proof[key], entry]))
    for key in ("stays", "never"):
        for at, each in enumerate(proof[key]):
            if each["prices"] is not None:
                found.append(changed(proof, key, at, "prices", to=[]))
                for number, one in enumerate(each["prices"]):
                    dear = 1000 * one["price"]
                    found.append(changed(proof, key, at, "prices", number, "price", to=dear))
    found.append(changed(changed(proof, "stays", to=[]), "never", to=[]))
    return found


def _other(states: list[int]) -> list[Document]:
    found = [states[:-1], [*states, 1], [1]]
    for at, count in enumerate(states):
        found += [[*states[:at], more, *states[at + 1 :]] for more in (count - 1, count + 1)]
    return [{"kind": "exhausted", "of": "counts", "states": each} for each in found]


@pytest.mark.parametrize("seed", few(2, SEEDS))
def test_a_planned_proof_holds_and_forgeries_of_it_are_refused_twice(seed: int) -> None:
    of = planned(seed)
    assert (of["spare"]["count"], of["spare"]["least"]) == (1, 1)
    assert opinions(of) == (True, True)
    assert is_valid(of)
    proof, points = of["spare"]["proof"], [each["name"] for each in of["points"]]
    forged = _other(proof["states"]) if "states" in proof else _more(proof, points)
    assert len(forged) > 3
    for each in forged:
        assert opinions(changed(of, "spare", "proof", to=each)) == (False, False), each
    # it is of its floors
    for name in of["floors"]:
        of = changed(of, "floors", name, "rps", to=1)
    assert opinions(of) == (False, False)
    assert opinions(changed(of, "spare", to=of["spare"] | NOTHING)) == (True, True)


NOTHING: Document = {"least": 0, "reason": "", "proof": None}


#: Pairs that need a spare GPU, and the tool.
WHOLE = ((4, "mig-parted"), (9, "mig-parted"), (31, "slurm"))
#: One for which a spare GPU is found, and nothing proved.
FOUND = 18


@cache
def cut(seed: int, tool: str) -> Document:
    pair = Pair(seed, names="n" if tool == "mig-parted" else "abcde")
    found = transition(pair.start, pair.wanted, tool=tool)
    assert isinstance(found, Transition)
    document: Document = json.loads(lay_out(transition_to_json(found)))
    return document


def with_idle(of: Document, side: str, *, owner: str | None = None) -> Document:
    """Add a GPU of a node of its own that is in use, and on which nothing works."""
    card = {
        "index": 0, "gpu": of["devices"][0]["key"], "uuid": None, "mode": "mig",
        "start_source": "observed",
        "instances": [{
            "profile": "4g.24gb", "start": 0, "point": None, "owner": owner, "state": "running",
            "gpu_instance": None, "uuid": None, "is_guessed": False,
        }],
    }  # fmt: skip
    node = changed(of[side]["nodes"][0], "name", to="z") | {"gpus": [card]}
    return changed(of, side, "nodes", to=[*of[side]["nodes"], node])


@pytest.mark.parametrize(("seed", "tool"), WHOLE)
def test_a_proof_about_whole_gpus_holds_and_forgeries_are_refused_twice(
    seed: int, tool: str
) -> None:
    of = cut(seed, tool)
    assert (of["spare"]["count"], of["spare"]["least"]) == (1, 1)
    assert of["spare"]["proof"]["kind"] == "first_repartition"
    assert opinions(of) == (True, True)
    assert is_valid(of)
    # another's GPU can cover for nothing; an idle one of ours can
    pinned = with_idle(with_idle(of, "start", owner="pod x/y"), "target", owner="pod x/y")
    assert opinions(pinned) == (True, True)
    assert opinions(with_idle(with_idle(of, "start"), "target")) == (False, False)
    prices = of["spare"]["proof"]["prices"]
    forged = [
        changed(of, *PROOF, "prices", to=[]),
        changed(of, *PROOF, "prices", to=[*prices, prices[0]]),
        changed(of, *PROOF, "prices", 0, "service", to="c"),
        changed(of, *PROOF, "prices", 0, "price", to=-1),
        changed(of, "spare", "count", to=2),
        changed(of, "spare", "least", to=2),
        changed(changed(of, "spare", "count", to=2), "spare", "least", to=2),
    ]
    for each in (*of["floors"], None):
        low = of
        for name in of["floors"] if each is None else (each,):
            low = changed(low, "floors", name, "rps", to=1)
        forged.append(low)
    said = [opinions(each) for each in forged]
    assert all(one == other for one, other in said)
    assert not any(one for one, _ in (*said[:7], said[-1]))


def test_a_spare_gpu_that_one_could_do_without_is_not_proved_necessary() -> None:
    """It is found that one does, none does too, and the file says that it is needed."""
    of = cut(FOUND, "mig-parted")
    assert (of["spare"]["count"], of["spare"]["least"]) == (1, 0)
    for prices in ({"a": 1}, {"b": 1}, {"a": 1, "b": 1}, {"a": "1/2", "b": 1}):
        entries = [{"service": name, "price": price} for name, price in prices.items()]
        proof = {"kind": "first_repartition", "by_node": False, "prices": entries}
        claim = of["spare"] | {"least": 1, "reason": "whichever is first", "proof": proof}
        assert opinions(changed(of, "spare", to=claim)) == (False, False)


def test_a_proof_is_of_the_tools_that_can_do_what_is_done() -> None:
    """Not of parts of a GPU, nor of drained nodes where something works on."""
    whole = cut(4, "mig-parted")["spare"]
    assert opinions(changed(planned(7), "spare", to=whole)) == (False, False)
    drained = changed(cut(4, "mig-parted"), *PROOF, "by_node", to=True)
    assert opinions(drained) == (False, False)
    alone = changed(cut(31, "slurm"), *PROOF, "by_node", to=False)
    assert opinions(alone) == (True, True)  # each node has one GPU
