"""Transitions by tools that cut whole GPUs: by both checkers, and against all there is."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.errors import InvalidProblem
from cms.fleet.deployment import (
    WHOLE,
    Deployment,
    DesiredState,
    FleetGpu,
    FleetNode,
    Instance,
    Mode,
)
from cms.fleet.deployment.checking import check_gpu
from cms.fleet.deployment.transition import (
    Impossible,
    Transition,
    What,
    check_transition,
    transition,
    transition_from_json,
    transition_to_json,
)
from cms.fleet.deployment.transition.whole_gpus import PartitioningTool, saved_by_parts
from cms.solving.solution import Proof
from proofs_checks.checker.replay import check_transition as replayed
from tests.property.problems import share
from tests.references.placements import best_placement
from tests.references.transitions import run
from tests.references.whole_gpus import is_reachable
from tests.samples import so_many

from ..deployments import deployments, placed, point, promises, published
from .cases import A30, A100, CHAIN, THINGS, Pair, does, on_node, reached

TOOLS = [each for each in PartitioningTool if each is not PartitioningTool.NVIDIA_SMI]
PARTED = PartitioningTool.MIG_PARTED


def whole(
    start: Deployment,
    to: DesiredState | Deployment,
    tool: PartitioningTool | str = PARTED,
    **how: Any,
) -> Transition | Impossible:
    return transition(start, to, tool=tool, **how)


def _safe(found: Transition, seed: int = 0) -> None:
    assert replayed(transition_to_json(found)) == []
    assert run(found, random.Random(seed)) == []


def _kept_where(found: Transition) -> set[tuple[str, int]]:
    """The GPUs on which some instance with work is never interrupted."""
    gone = Counter((action.gpu, each) for action in found.actions for each in action.removes)
    return {
        (card.node, card.index)
        for card, each in found.start.instances()
        if each.is_managed and each.work is not None and not gone[(card.node, card.index), each]
        and card.mode is Mode.MIG
    }  # fmt: skip


def _is_whole(found: Transition, tool: PartitioningTool) -> None:
    """Whether what the tool cannot do is not asked of it."""
    kept = _kept_where(found)
    before, after = ({(c.node, c.index): c for c in side.gpus()} for side in (
        found.start, found.target
    ))  # fmt: skip
    cut = {action.gpu for action in found.actions if action.what is What.REPARTITION}
    assert all(before[gpu].counts == after[gpu].counts for gpu in kept)
    assert not kept & cut
    for action in found.actions:
        if action.what in (What.CREATE, What.DELETE):
            assert before[action.gpu].mode is not Mode.MIG
    if tool.drains_nodes:
        nodes = {node for node, _ in cut}
        assert not {node for node, _ in kept} & nodes
        for node in nodes:  # one step: all of a node wait for the same, and not for each other
            own = [
                a for a in found.actions
                if a.node == node and a.what is What.REPARTITION and not a.is_temporary
            ]  # fmt: skip
            assert len({action.after for action in own}) <= 1


def safely(
    start: Deployment, to: DesiredState | Deployment, tool: PartitioningTool = PARTED, seed: int = 0
) -> Transition:
    found = whole(start, to, tool)
    assert isinstance(found, Transition), found
    _safe(found, seed)
    _is_whole(found, tool)
    return found


@pytest.mark.parametrize("tools", [[PartitioningTool.NVIDIA_SMI], TOOLS], ids=["parts", "whole"])
@share(4)
@given(st.data())
def test_what_is_found_is_safe_and_asks_the_tool_for_what_it_can_do(
    tools: list[PartitioningTool], data: st.DataObject
) -> None:
    """GPUs with others' instances, idle and incomplete ones, shares, and changes of mode."""
    tool = data.draw(st.sampled_from(tools))
    now = data.draw(deployments(most_nodes=2, most_gpus=2, keys=(A30.key,)))
    spare = tuple(FleetGpu("spare", i, A30) for i in range(data.draw(st.integers(0, 2))))
    now = replace(now, nodes=(*now.nodes, FleetNode("spare", spare)))
    wanted = data.draw(promises(now))
    try:
        found = whole(now, wanted, tool, floor=data.draw(st.sampled_from(("1", "0.5"))))
    except InvalidProblem:  # another's is on a node that is drained, or reset for a mode
        assert tool in TOOLS
        assert any(card.foreign for card in now.gpus())
        return
    if isinstance(found, Transition):
        _safe(found, data.draw(st.integers(0, 9)))
        assert check_transition(transition_from_json(transition_to_json(found))) == ()
        if tool in TOOLS:
            _is_whole(found, tool)


@share(4)
@given(st.data())
def test_as_much_is_kept_as_can_be(data: st.DataObject) -> None:
    now = data.draw(deployments(most_nodes=1, most_gpus=2, keys=(A30.key,)))
    spare = FleetNode("spare", (FleetGpu("spare", 0, A30),))
    wanted = data.draw(promises(now))
    now = replace(now, nodes=(*now.nodes, spare))
    found = whole(now, wanted, PARTED, floor=0)
    best = best_placement(now, wanted, whole=True)
    assert isinstance(found, Transition) == (best is not None)
    if isinstance(found, Transition) and best is not None:
        assert found.kept.count == best[2]


# --- spare GPUs -----------------------------------------------------------------------------------


def _reachable(pair: Pair, spare: int) -> bool:
    return is_reachable(
        A30,
        [tuple(sorted((p, s) for p, _, s, _ in content)) for content in pair.contents],
        {(p, s): n for (p, s, _), n in pair.counts.items()},
        {(p, s): r for p, s, r in THINGS},
        pair.floors,
        2 + spare,
        2,
    )


def _gap(seed: int) -> bool:
    """Whether more spare GPUs were found than needed; none is proved needed that is not.

    Everything there is may also stop what ours keeps, which comes first.
    """
    pair = Pair(seed)
    found = safely(pair.start, pair.wanted, seed=seed)
    least = found.spare.least
    assert least <= found.spare.count
    assert bool(found.spare.proof) == bool(least)
    can = _reachable(pair, 0)
    assert not (can and least)
    assert can or found.spare.count
    return can != (not found.spare.count)


def test_no_spare_gpu_is_proved_necessary_that_is_not() -> None:
    assert sum(_gap(seed) for seed in range(so_many(3, 12))) == 0


@pytest.mark.long
def test_two_hundred_pairs_of_two_gpus() -> None:
    assert sum(_gap(seed) for seed in range(12, 212)) <= 13


@pytest.mark.parametrize("seed", range(3))
def test_covers_of_a_node_are_on_nodes_that_are_drained_for_nothing(seed: int) -> None:
    """All GPUs of a node change at once, and what covers for them is on nodes that were empty."""
    pair = Pair(seed, spare=6, names="ab")
    cards = tuple(FleetGpu("free", index, A30) for index in range(4))
    more = replace(pair.start, nodes=(*pair.start.nodes, FleetNode("free", cards)))
    found = safely(more, pair.wanted, PartitioningTool.SLURM, seed)
    assert {each.partition("/")[0] for each in found.spare.borrowed} <= {"free"}


def first_of_the_chain(**sizes: int) -> Deployment:
    """The first published scenario, on nodes of so many A100s."""
    nodes = tuple(
        FleetNode(name, tuple(FleetGpu(name, index, A100) for index in range(size)))
        for name, size in sizes.items()
    )
    return placed(published(CHAIN[0]), Deployment(nodes)).deployment


@pytest.mark.parametrize("tool", [PartitioningTool.GPU_OPERATOR, PartitioningTool.SLURM])
def test_what_is_wanted_comes_to_lie_on_whichever_node_is_drained(tool: PartitioningTool) -> None:
    """The larger node works and the smaller one is empty: most of it goes there first."""
    now = first_of_the_chain(a=10, b=8)
    assert {card.node for card in now.used_gpus()} == {"a"}
    for name in CHAIN[1:4]:
        found = safely(now, published(name), tool)
        assert found.spare.count == 0
        now = found.target


def test_nodes_are_drained_that_could_stay_where_there_is_no_other_way() -> None:
    """Three nodes work; the least one is drained for all that is to come."""
    now, spare = first_of_the_chain(a=8, b=8, c=8), []
    for name in CHAIN[1:]:
        found = safely(now, published(name), PartitioningTool.SLURM)
        now = found.target
        spare.append(found.spare.count)
    assert (spare[:3], spare[3] <= 3) == ([0, 0, 0], True)


FULL, HALF, QUARTER = (does("a", profile) for profile in ("4g.24gb", "2g.12gb", "1g.6gb"))


def test_why_no_spare_gpu_helps_where_all_nodes_work() -> None:
    """Empty GPUs of a node that works cannot be cut unless it is drained."""
    now, then = on_node([FULL], [], [], rate=40), on_node([HALF], [], [], rate=22)
    assert isinstance(whole(now, then), Transition)
    refused = whole(now, then, PartitioningTool.SLURM)
    assert isinstance(refused, Impossible)
    assert refused.proof is Proof.NONE
    assert refused.reasons[0] == "none was found with 2 spare GPUs"
    assert "slurm drains a node" in refused.reasons[1]
    free = FleetNode("o", (FleetGpu("o", 0, A30),))
    beside, more = (replace(side, nodes=(*side.nodes, free)) for side in (now, then))
    assert isinstance(whole(beside, more, PartitioningTool.SLURM), Transition)


def test_why_a_spare_gpu_is_needed() -> None:
    now, then = on_node([FULL], [], rate=40), on_node([HALF], [], rate=22)
    found = reached(now, then, tool=PARTED)
    assert found.spare.count == 1
    assert (found.spare.least, found.spare.reason) == (
        1,
        "with 0 spare GPUs: no 2g.12gb of a can ever begin: with the first, "
        "2 memory slices are needed, and 0 can be free",
    )
    says = found.spare.reason, "lower floors or more GPUs are needed"
    assert whole(now, then, spare=0) == Impossible(says, Proof.CHECKED, found.spare.proof)


# --- what is known -----------------------------------------------------------------------------


def test_parts_would_keep_what_whole_gpus_do_not() -> None:
    now, wanted = first_of_the_chain(a=24), published(CHAIN[1])
    found = safely(now, wanted)
    cut = {action.gpu for action in found.actions if action.what is What.REPARTITION}
    stay = sum((card.node, card.index) not in cut for card in found.start.used_gpus())
    assert (found.spare.count, stay, found.kept.count) == (0, 1, 1)
    saved = saved_by_parts(found, wanted)
    assert reached(found.start, wanted).kept.count <= found.kept.count + len(saved)


# --- what is asked for ----------------------------------------------------------------------------


def test_work_changes_in_place_and_starts_do_not_matter_where_the_counts_stay() -> None:
    now = on_node([QUARTER, Instance("1g.6gb", 1)], rate=10)
    found = reached(
        now, on_node([does("a", "1g.6gb", 2), does("b", "1g.6gb", 3)], rate=10), tool=PARTED
    )
    assert [str(action) for action in found.actions] == [
        "restart on n/0: 1g.6gb@1 idle as 1g.6gb@1 b (1p b4, 13 requests/s)"
    ]
    assert found.kept.count == 1
    _safe(found)


def test_restarts_in_several_places_of_a_gpu_do_not_wait_for_each_other() -> None:
    now, then = (on_node([does(name, "1g.6gb", at) for at in range(3)]) for name in "ab")
    for found in (whole(now, then, floor=0), transition(now, then, floor=0)):
        assert isinstance(found, Transition)
        assert [(action.what, action.after) for action in found.actions] == [(What.RESTART, ())] * 3
        _safe(found)


@pytest.mark.parametrize("tool", TOOLS)
def test_what_is_not_ours_stays_where_its_gpu_would_be_cut_or_drained(
    tool: PartitioningTool,
) -> None:
    theirs = Instance("1g.6gb", 0, owner="pod x/y")
    with pytest.raises(InvalidProblem, match="pod x/y, which is not ours, and would be cut anew"):
        whole(on_node([theirs]), on_node([theirs, Instance("1g.6gb", 1)]), tool)
    now, then = on_node([theirs], []), on_node([theirs], [Instance("4g.24gb", 0)])
    if tool is PARTED:
        assert isinstance(whole(now, then, tool), Transition)
        return
    with pytest.raises(InvalidProblem, match="n/0 has .* not ours, and is drained as a whole"):
        whole(now, then, tool)


def test_a_drained_node_keeps_nothing() -> None:
    now, then = on_node([FULL], [], rate=40), on_node([FULL], [does("b", "2g.12gb")], rate=40)
    kept = []
    for tool in TOOLS:
        found = reached(now, then, tool=tool, floor=0)
        _safe(found)
        kept.append(found.kept.count)
    assert kept == [1, 0, 0]
    refused = whole(now, then, PartitioningTool.GPU_OPERATOR)
    assert isinstance(refused, Impossible)


def test_work_on_a_gpu_that_is_not_cut_goes_before_other_work_comes() -> None:
    def card(batch: int) -> FleetGpu:
        held = Instance(WHOLE, None, point("a", A30.key, WHOLE, batch=batch))
        return FleetGpu("n", 0, A30, Mode.WHOLE, (held,))

    assert check_gpu(card(4)) == ()
    assert check_gpu(replace(card(4), instances=(*card(4).instances, Instance(WHOLE))))
    now, then = (replace(on_node(), nodes=(FleetNode("n", (card(batch),)),)) for batch in (4, 8))
    for plan in (transition, whole):
        found = plan(now, then, floor=0)
        assert isinstance(found, Transition)
        _safe(found)
