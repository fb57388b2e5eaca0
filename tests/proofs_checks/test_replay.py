"""The independent checker of transitions and deployments, by hand and beside the package's own."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.errors import FileError
from cms.fleet.deployment.transition.checking import check_transition as check_in_package
from cms.fleet.deployment.transition.document import transition_from_json, transition_to_json
from proofs_checks import parallel_order
from proofs_checks.checker import check_deployment, check_transition
from proofs_checks.checker.__main__ import main
from proofs_checks.checker.replay import examine_transition
from proofs_checks.checker.waits import moments, worst
from tests.proofs_checks.both import read
from tests.proofs_checks.documents import Document, changed, places
from tests.proofs_checks.moves import (
    LEFT,
    LENT,
    REPARTITIONED,
    RESTARTED,
    SHARED,
    THEIRS,
    action,
    deployment,
    instance,
    side,
    transition,
)

VALID = {"lent": LENT, "restarted": RESTARTED, "repartitioned": REPARTITIONED, "shared": SHARED}


@pytest.mark.parametrize("name", VALID)
def test_transitions_made_by_hand_are_safe(name: str) -> None:
    faults, words = examine_transition(read(VALID[name]))
    assert faults == []
    assert words.startswith(f"{len(VALID[name]['actions'])} actions, in any order")
    assert in_package(VALID[name]) == ()


def in_package(of: Document) -> Any:
    """What the package says of a transition."""
    try:
        return check_in_package(transition_from_json(of))
    except FileError as fault:
        return fault


SMALL = [instance("1g.6gb", at, "chat") for at in range(4)]
HELD = ("start", "nodes", 0, "gpus", 0, "instances")
END = ("target", "nodes", 0, "gpus", 0, "instances")
OTHER = ("target", "nodes", 0, "gpus", 1, "instances")

#: What is changed in which transition, and what must be said of it.
FORGED: list[tuple[Document, tuple[Any, ...], Any, str]] = [
    # waits left out
    (LENT, ("actions", 1, "after"), [], "service 'chat' can fall to 0 requests/s, below its floor"),
    (LENT, ("actions", 2, "after"), [], "on n/0 the instances in memory slice 0 can be 2"),
    (LENT, ("actions", 4, "after"), [0, 2], "can fall to 60 requests/s, below its floor of 110"),
    (LENT, ("actions", 4, "after"), [], "can be removed by 4 before it is there"),
    (REPARTITIONED, ("actions", 1, "after"), [], "service 'chat' can fall to 0 requests/s"),
    (SHARED, ("actions", 1, "after"), [], "on n/0 the shares can be 140 once 1 have begun"),
    # sequences that do not work
    (LENT, ("actions", 0, "adds", 0, "start"), 1, "for 'chat 4g.24gb' cannot start at 1"),
    (LENT, ("actions", 1, "removes", 0), LEFT, "action 1 removes 2g.12gb@0 for 'chat 2g.12gb', w"),
    (LENT, ("actions", 3, "adds", 0), LEFT, "memory slice 0 can be 2"),
    (LENT, ("actions", 2, "what"), "delete", "action 2 is a delete, removes 0 instances and adds"),
    (LENT, ("actions", 2, "mode"), "mig", "changes the mode of a GPU and is no repartition"),
    (LENT, ("actions", 2, "adds", 0, "owner"), "pod a/b", "action 2 adds 2g.12gb@0 of 'pod a/b'"),
    (LENT, ("actions", 2, "adds", 0, "state"), "starting", "which is starting"),
    (LENT, ("actions", 2, "adds", 0, "point"), "chat 4g.24gb", "point was measured on a30-24gb 4g"),
    (LENT, ("actions", 2, "adds", 0, "start"), None, "does not say where"),
    (RESTARTED, ("actions", 0, "adds", 0, "profile"), "4g.24gb", "restarts 2g.12gb@0 for 'chat"),
    (RESTARTED, ("actions", 0, "removes", 0), THEIRS, "of 'pod team-x/a', which is another's"),
    (REPARTITIONED, ("actions", 1, "removes"), [], "action 1 repartitions n/0 over 2g.12gb@0"),
    (REPARTITIONED, ("actions", 1, "mode"), None, "the profile 'mps:60', which a30-24gb does not"),
    (REPARTITIONED, ("actions", 1, "adds", 0, "profile"), "mps:70", "its point was measured on"),
    # the ends
    (REPARTITIONED, (*OTHER, 0, "start"), 1, "in the end n/1 lacks 1g.6gb@1 of 'pod team-x/a'"),
    (LENT, (*END, 1), SMALL[1], "in the target, n/0: the instances in memory slice 1 are 2"),
    (LENT, HELD, [], "action 1 removes 4g.24gb@0 for 'chat 4g.24gb', which is not there"),
    (LENT, ("target", "nodes", 0, "gpus", 1, "uuid"), "GPU-9", "another uuid in the target"),
    (LENT, ("target", "nodes", 0, "driver"), "560", "is not the same on both sides"),
    (LENT, ("target", "nodes", 0, "name"), "m", "GPU m/0 is on one side alone"),
    (LENT, ("target", "services", 0, "rate_rps"), 121, "not those of the target"),
    (SHARED, ("target", "nodes", 0, "gpus", 0, "mode"), "mig", "which a30-24gb does not have"),
    # floors, supplies
    (LENT, ("floors", "chat", "rps"), "120.001", "can fall to 120 requests/s, below its floor"),
    (LENT, ("points", 1, "supply_rps"), 61, "supplies 61 requests/s: the rule grants 60"),
    (LENT, ("points", 1, "latency_ms"), "10.001", "supplies 60 requests/s: the rule grants 0"),
    (LENT, ("points", 1, "model"), "code", "is of another model than its service"),
    (LENT, ("rule", "latency_share"), 1, "the rule is not what 'half' means"),
    # what it says of itself
    (LENT, ("spare", "count"), 0, "2 GPUs can be in use at once, 1 and 0 spare ones may be"),
    (LENT, ("spare", "count"), 2, "2 spare GPUs are said to be used, and 1 are"),
    (LENT, ("spare", "least"), 1, "at least 1 spare GPUs are said to be needed"),
    (LENT, ("spare", "borrowed"), [], "the borrowed GPUs are n/1"),
    (LENT, ("kept", "count"), 1, "1 instances are said to be kept, and 0 are"),
    (RESTARTED, ("kept", "most"), 0, "1 instances are said to be kept, of at most 0"),
    (LENT, ("actions", 0, "is_temporary"), False, "action 0 is not said to be temporary, and is"),
]  # fmt: skip


@pytest.mark.parametrize(("of", "path", "to", "words"), FORGED)
def test_a_forged_transition_is_refused(
    of: Document, path: tuple[Any, ...], to: Any, words: str
) -> None:
    faults = check_transition(read(changed(of, *path, to=to)))
    assert any(words in fault for fault in faults), faults
    assert in_package(changed(of, *path, to=to))


def test_what_is_removed_twice_waits_twice() -> None:
    """It was there from the start, but not for the second time."""
    actions = [
        action("delete", 0, [LEFT], []),
        action("create", 0, [], [LEFT], 0, temporary=True),
        action("delete", 0, [LEFT], [], 1, temporary=True),
    ]
    of = transition(side({}, [{**LEFT, "point": None}]), side({}, []), {}, actions)
    idle = json.loads(json.dumps(of).replace('"chat 2g.12gb"', "null"))
    assert check_transition(idle) == []
    (fault,) = check_transition(changed(idle, "actions", 2, "after", to=[]))
    assert fault == "on n/0 2g.12gb@0 can be removed by 0, 2 before it is there"


def test_nothing_comes_beside_an_instance_whose_start_is_not_known() -> None:
    unknown = instance("2g.12gb")
    of = transition(
        side({"chat": 0}, [unknown]), side({"chat": 0}, [unknown, LEFT]), {},
        [action("create", 0, [], [LEFT])],
    )  # fmt: skip
    assert check_transition(of) == ["action 0 adds to n/0 beside an instance with no known start"]
    assert {each.kind for each in in_package(of)} == {"start"}
    gone = transition(
        side({"chat": 0}, [unknown]), side({"chat": 0}, [LEFT]), {},
        [action("delete", 0, [unknown], []), action("create", 0, [], [LEFT], 0)],
    )  # fmt: skip
    assert check_transition(gone) == []
    crowded = changed(of, *HELD, to=[unknown, unknown, instance("1g.6gb")])
    assert "the compute slices are 5, at most 4 may be" in check_transition(crowded)[0]
    apart = changed(of, *HELD, to=[unknown, instance("1g.6gb", 1), instance("1g.6gb", 2)])
    (fault, *_) = check_transition(changed(apart, "actions", to=[]))
    assert fault == "in the start, n/0: what is there has no starts that go together"


def test_a_whole_gpu_is_for_one_service() -> None:
    whole = instance("whole", None, "chat")
    other = {**whole, "point": None, "owner": "unknown"}
    alone = deployment(transition(side({"chat": 120}, [whole], modes=("whole",)), side({}), {}, []))
    assert check_deployment(alone) == []
    path = ("nodes", 0, "gpus", 0, "instances")
    for two in ([whole, whole], [whole, other]):  # each was measured alone there
        (fault,) = check_deployment(changed(alone, *path, to=two))
        assert fault == "n/0: the instances on the whole GPU are 2, at most 1 may be"


def test_the_command_line_takes_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "file.json"
    for document, status, words in (
        (LENT, 0, "5 actions, in any order"),
        (deployment(LENT), 0, "1 instances on 2 GPUs are where they can be"),
        (changed(LENT, "actions", 1, "after", to=[]), 1, "service 'chat' can fall to 0 requests/s"),
        (changed(LENT, "schema", to=1), 1, "this checker knows version 2"),
    ):
        path.write_text(json.dumps(document), "utf-8")
        assert main([str(path)]) == status
        out, err = capsys.readouterr()
        assert words in (err if status else out)


_FREE = {"reason", "source", "extra", "labels", "pci_device_ids", "sources"}
PLACES = [path for path in places(REPARTITIONED) if not _FREE & set(path)]
KEYS = [path for path in PLACES if isinstance(path[-1], str) and path[0] != "floors"]


def test_a_document_with_a_part_missing_is_refused_in_words() -> None:
    optional = {"since_driver", "aliases", "geometry", "other_names", "named_since"}
    for path in [path for path in KEYS if path[-1] not in optional]:
        (fault, *_) = check_transition(changed(REPARTITIONED, *path, to=...))
        assert "has no" in fault or "is None" in fault or "is not what" in fault, (path, fault)


@pytest.mark.parametrize("value", [None, [], 3, "text", {}, {"format": "cms-plan"}])
def test_what_is_no_transition_is_refused(value: Any) -> None:
    assert len(check_transition(value)) == len(check_deployment(value)) == 1


@given(st.data())
def test_the_flow_is_the_worst_of_all_moments(data: st.DataObject) -> None:
    n = data.draw(st.integers(0, 7))
    before: list[int] = []
    for at in range(n):
        waits = data.draw(st.sets(st.integers(0, at - 1))) if at else set()
        before.append(sum({1 << b for b in waits}) if not waits else 0)
        for b in waits:
            before[at] |= before[b] | 1 << b
    amounts = st.integers(0, 5).map(lambda n: Fraction(n, 3))
    gains, losses = ({at: data.draw(amounts) for at in range(n)} for _ in range(2))
    every = moments(before, 10**6)
    assert every is not None
    most = max(
        sum(gains[at] for at in range(n) if begun >> at & 1)
        - sum(losses[at] for at in range(n) if ended >> at & 1)
        for begun, ended in every
    )
    gains, losses = ({at: each for at, each in p.items() if each} for p in (gains, losses))
    assert worst(gains, losses, dict(enumerate(before)))[0] == most
    assert moments([0] * 9, 100) is None


@given(st.integers(0, 10**9))
def test_both_checkers_say_of_any_sequence_what_every_moment_shows(seed: int) -> None:
    rng = random.Random(seed)
    of = parallel_order.random_transition(rng)
    assert check_in_package(of) == ()
    assert check_transition(transition_to_json(of)) == []
    other = parallel_order.rearranged(of, rng, rng.choice((1, 1, 0.8, 0.5)))
    is_unsafe = any(True for _ in parallel_order.breaches(other))
    assert parallel_order.refused(other) == (is_unsafe, is_unsafe)
    if not is_unsafe:
        parallel_order.require_exact(other)


@pytest.mark.long
def test_thousands_of_parallel_executions_keep_every_floor() -> None:
    finding = parallel_order.check(seed=1, cases=3000)
    assert finding.ok, finding.failures
