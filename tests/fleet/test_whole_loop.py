"""From deployments to GPUs and back: placed, written, run on stand-ins, and observed."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from cms.fleet import get_gpu
from cms.fleet.deployment import (
    Deployment,
    FleetGpu,
    FleetNode,
    Instance,
    Mode,
    check_deployment,
    difference,
)
from cms.fleet.deployment.export import ExportOptions, export
from cms.fleet.deployment.verifying import verify
from tests.fleet.bridging import changes, observed, run, stand_ins, write
from tests.fleet.stand_ins.machines import StandInNode
from tests.samples import few

A100 = get_gpu("a100-80gb")
THEIRS = "pod team-x/trainer"


def foreign(
    nodes: Mapping[str, StandInNode], deployment: Deployment
) -> dict[tuple[str, int], tuple[int, str]]:
    """The driver's number and the UUID of what is not ours, by node and start."""
    return {
        (card.node, each.start or 0): (
            nodes[card.node].at(card.index, each.start or 0).gi,
            nodes[card.node].mig_uuids(card.index)[each.start or 0],
        )
        for card, each in deployment.instances()
        if not each.is_managed
    }


def is_there(nodes: Mapping[str, StandInNode], target: Deployment) -> Deployment:
    """Observe the nodes, which must be as the target has them."""
    found = observed(nodes, target)
    told = difference(found, target)
    assert told.is_empty, [str(each) for each in told.touched]
    assert [fault for fault in check_deployment(found) if fault.kind != "capacity"] == []
    return found


@pytest.mark.parametrize("is_told", [False, True])
def test_gpus_with_nothing_on_them_keep_their_mode(tmp_path: Path, is_told: bool) -> None:
    """As from a table of nodes, which does not say whether MIG is on."""
    modes = (Mode.MIG, Mode.WHOLE, Mode.WHOLE, Mode.MIG)
    cards = [FleetGpu("a", index, A100, mode) for index, mode in enumerate(modes)]
    if is_told:
        cards[3] = cards[3].with_instances([Instance("3g.40gb", 4)])
    now = Deployment((FleetNode("a", tuple(cards)),))
    whole = FleetGpu("a", 2, A100, instances=(Instance("7g.80gb", 0),))
    empty = [FleetGpu("a", index, A100) for index in (0, 1, 3)]
    target = Deployment((FleetNode("a", (*empty, whole)),))
    nodes = stand_ins(tmp_path, now)
    written = export(target, "nvidia-smi", ExportOptions(now if is_told else None))
    assert [loss for loss in written.losses if "left as it is, on or off, on a/0, a/1, a/3" in loss]
    write(tmp_path / "out", written)
    script = tmp_path / "out/nodes/a.sh"
    for word, reached in [("", target), ("undo", now)] if is_told else [("", target)]:
        ran = run(nodes["a"], script, word)
        assert (ran.code, ran.error) == (0, ""), ran
        found = is_there(nodes, reached)
        assert verify(found, reached) == ()
        kept = [card.mode for card in found.gpus()]
        assert kept == [Mode.MIG, Mode.WHOLE, reached.node("a").gpus[2].mode, Mode.MIG]
    switched = [line for line in changes(nodes["a"]) if " -mig " in line]
    assert [line for line in switched if "-i 2 " not in line] == []
    assert len(switched) == (2 if is_told else 1)


# Each fault, and the words with which the script stops; none where it goes on by itself.
FAULTS = {
    ("cgi", "insufficient"): "was not created. nvidia-smi says: .*Insufficient Resources",
    ("cgi", "in_use"): "was not created.* In use by another client",
    ("cgi", "no_effect"): "was not created",
    ("cgi", "half"): "",
    ("cgi", "delayed"): "",
    ("cgi", "killed_before"): "was not created",
    ("cgi", "killed_after"): "",
    ("cgi", "cut_before"): "cut",
    ("cgi", "cut_after"): "cut",
    ("cci", "unknown"): "has no compute instance and serves nothing",
    ("cci", "no_effect"): "has no compute instance and serves nothing",
    ("cci", "killed_before"): "has no compute instance and serves nothing",
    ("cci", "delayed"): "",
    ("dci", "in_use"): "keeps its compute instance.* In use by another client.*DCGM",
    ("dci", "no_effect"): "keeps its compute instance",
    ("dci", "delayed"): "",
    ("dci", "killed_before"): "keeps its compute instance",
    ("dci", "killed_after"): "",
    ("dci", "cut_after"): "cut",
    ("dgi", "in_use"): "is still there.* In use by another client.*DCGM",
    ("dgi", "no_effect"): "is still there",
    ("dgi", "delayed"): "",
    ("dgi", "killed_before"): "is still there",
    ("dgi", "killed_after"): "",
    ("dgi", "cut_before"): "cut",
    ("mig", "unknown"): "MIG is still off.*Unknown Error",
    ("mig", "no_effect"): "MIG is still off",
    ("mig", "killed_after"): "",
    ("mig", "delayed"): "",
    ("reset", "delayed"): "",
    ("reset", "in_use"): "MIG is still off",
    ("reset", "no_effect"): "MIG is still off",
    ("list", "unknown"): "cannot be (listed|read)",
    ("list", "killed_before"): "cannot be (listed|read)|there is no GPU",
}


def small(seed: int) -> tuple[Deployment, Deployment]:
    """One node of ours with something of theirs, a GPU without MIG, and another target."""
    rest = random.Random(seed)
    layouts = [each for each in A100.layouts() if len(each) in (2, 3)]
    keep = Instance("1g.10gb", 6, owner=THEIRS)
    ends = {
        each: max(start + A100.profile(name).memory for name, start in each) for each in layouts
    }
    beside_it = [each for each in layouts if ends[each] <= 6]
    cards, then = [], []
    for index in range(2):
        first, second = rest.sample(beside_it if index == 0 else layouts, 2)
        extra = [keep] if index == 0 else []
        one, other = ([Instance(*place) for place in each] + extra for each in (first, second))
        cards.append(FleetGpu("a", index, A100, instances=tuple(one)))
        then.append(cards[-1].with_instances(other))
    cards.append(FleetGpu("a", 2, A100, Mode.WHOLE))
    then.append(FleetGpu("a", 2, A100, instances=(Instance("7g.80gb", 0),)))
    return Deployment((FleetNode("a", tuple(cards)),)), Deployment((FleetNode("a", tuple(then)),))


CASES = [("dgi", "in_use", 1), *((*fault, seed) for fault in FAULTS for seed in range(5))]


@pytest.mark.parametrize("case", few(1, CASES), ids=str)
def test_a_fault_stops_the_script_or_is_mended(tmp_path: Path, case: tuple[str, str, int]) -> None:
    command, kind, seed = case
    now, target = small(seed)
    nodes = stand_ins(tmp_path, now, seed=seed)
    node, there = nodes["a"], foreign(nodes, now)
    write(tmp_path / "out", export(target, "nvidia-smi", ExportOptions(now)))
    rest = random.Random(f"{seed}{command}{kind}")
    most = {"mig": 1, "reset": 1, "list": 20}.get(command, 2)
    at = rest.randint(1, most)
    if command == "cci":  # the second try, after half a creation
        node.fault("cgi", "half")
        at = 2
    node.fault(command, kind, at=at, listings=rest.randint(1, 2))
    says = FAULTS[command, kind]
    ran = run(node, tmp_path / "out/nodes/a.sh", quick=not kind.startswith("cut"))
    met = node.pending_faults() == 0
    if says == "cut" and met:
        assert ran.code == -9
    elif says and met:
        assert (ran.code, bool(re.search(says, ran.error, re.DOTALL))) == (1, True), ran
    else:
        assert (ran.code, ran.error) == (0, ""), ran
        is_there(nodes, target)
    assert foreign(nodes, now) == there
    node.clear_faults()
    # As a user goes on: observe, with what was meant before, and write the rest again.
    seen = observed(nodes, now)
    write(tmp_path / "again", export(target, "nvidia-smi", ExportOptions(seen)))
    ran = run(node, tmp_path / "again/nodes/a.sh")
    assert (ran.code, ran.error) == (0, ""), ran
    is_there(nodes, target)
    assert foreign(nodes, now) == there
