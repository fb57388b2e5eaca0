"""Folders of tools that cut whole GPUs, on stand-ins: there, again, back, and on after faults."""

from __future__ import annotations

import json
import random
import subprocess
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from cms.cli.app import run as run_cms
from cms.errors import InvalidProblem
from cms.fleet.deployment import Deployment, FleetGpu, FleetNode, Instance, Mode, Seen
from cms.fleet.deployment.export import ExportOptions
from cms.fleet.deployment.labels import point_label
from cms.fleet.deployment.transition import Transition, What, reversal, transition
from cms.fleet.deployment.transition.folder import (
    ACTUATORS,
    FolderOptions,
    folder_of,
    open_starts,
    state_after,
    states,
    steps_of,
)
from cms.values.frozen import FrozenMap
from tests.samples import few

from .acting import known_by_uuid, swapped_gpus_are_left_alone
from .acting_whole import WholeSite, adopted, lowest_of, released
from .cases import A30, A100, Pair, work

WHOLE = [name for name in ACTUATORS if name != "nvidia-smi"]
#: What goes wrong with what mig-parted does, or with what is listed of it.
FAULTS = [
    ("cgi", "insufficient"), ("cgi", "in_use"), ("cgi", "no_effect"), ("cgi", "half"),
    ("cgi", "delayed"), ("cgi", "killed_after"), ("cci", "unknown"), ("dci", "in_use"),
    ("dci", "no_effect"), ("dgi", "in_use"), ("dgi", "killed_before"), ("list", "unknown"),
]  # fmt: skip


def on_nodes(start: Deployment, size: int) -> Deployment:
    """The same GPUs on nodes of so many each."""
    nodes: dict[str, list[FleetGpu]] = {}
    for number, card in enumerate(start.gpus()):
        own = nodes.setdefault(f"n{number // size}", [])
        own.append(replace(card, node=f"n{number // size}", index=number % size))
    made = tuple(FleetNode(name, tuple(own)) for name, own in nodes.items())
    return replace(start, nodes=made)


def planned(seed: int, tool: str = "mig-parted") -> Transition:
    """A transition between two random A30s' contents, on nodes of two GPUs each."""
    pair = Pair(seed, spare=6)
    found = transition(on_nodes(pair.start, 2), pair.wanted, actuator=tool)
    assert isinstance(found, Transition), found
    return found


def on_two_gpus(*held: tuple[Instance, ...]) -> Deployment:
    """A node of two GPUs with these instances, of services that ask for nothing."""
    cards = tuple(FleetGpu("n", at, A30, instances=each) for at, each in enumerate(held))
    services = tuple(replace(each, rate_rps=Fraction(0)) for each in Pair(0).start.services)
    return Deployment((FleetNode("n", cards),), services, Pair(0).start.rule)


def small(tool: str) -> Transition:
    """One GPU is cut otherwise, and what works on the other has to stop where nodes are drained."""
    beside = (Instance("2g.12gb", 0, work("b", "2g.12gb")),)
    parts = (Instance("2g.12gb", 0, work("b", "2g.12gb")), Instance("1g.6gb", 3))
    now = on_two_gpus((Instance("4g.24gb", 0, work("a", "4g.24gb")),), beside)
    found = transition(now, on_two_gpus(parts, beside), actuator=tool, floor=0)
    assert isinstance(found, Transition), found
    return found


def there_again_and_back(folder: Path, found: Transition, tool: str = "mig-parted") -> None:
    site = WholeSite(folder, found.start, tool)
    out = site.write(found)
    ran = site.run(out)
    assert (ran.code, ran.error) == (0, ""), ran
    assert site.is_as(found, found.target)
    assert lowest_of(site, found)
    done, works, asked = site.changes(), dict(site.works), len(site.slurm.log)
    ran = site.run(out)
    assert (ran.code, ran.error) == (0, ""), ran
    again = site.changes(), site.works, len(site.slurm.log)
    assert again == (done, works, asked), "it did something the second time"
    ran = site.run(out, "--undo", "1")
    assert (ran.code, ran.error) == (0, ""), ran
    assert site.is_as(found, found.start)
    assert lowest_of(site, found)
    assert site.refused == 0
    assert not any(node.drain for node in site.slurm.nodes.values())


def test_mig_parted_arrives_does_nothing_twice_and_goes_back(tmp_path: Path) -> None:
    there_again_and_back(tmp_path, small("mig-parted"))


def test_slurm_drains_shrinks_cuts_grows_and_resumes(tmp_path: Path) -> None:
    found = small("slurm")
    site = WholeSite(tmp_path, found.start, "slurm")
    ran = site.run(site.write(found))
    assert (ran.code, ran.error) == (0, ""), ran
    assert site.is_as(found, found.target)
    assert site.slurm.log == [
        "update nodename=n state=drain reason=cms: cut anew", "reconfigure", "reconfigure",
        "update nodename=n state=resume",
    ]  # fmt: skip
    assert site.slurm.nodes["n"].promised == {"2g.12gb": 2, "1g.6gb": 1}


@pytest.mark.parametrize("version", ["22.05.8", "24.11.5"])
def test_a_node_of_slurm_that_has_rebooted_comes_back(
    tmp_path: Path, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is inval and drained, its instances are gone, and slurmd answers late."""
    found = small("slurm")
    site = WholeSite(tmp_path, found.target, "slurm")
    out = site.write(found)
    site.slurm.restart()
    site.slurm.version, site.slurm.lag = version, 2
    site.nodes["n"].reboot()
    site.works.clear()
    site.slurm.reboot("n")
    assert site.slurm.nodes["n"].state.endswith("+drain+invalid_reg")
    if version.startswith("22"):
        ran = site.run(out)
        assert (ran.code, site.slurm.log, site.changes()) == (1, [], 0), ran
        assert "Slurm 22.05.8, where slurmctld has to start again" in ran.error
        monkeypatch.setenv("CMS_SLURM_RESTART", "slurmctld-again")
    ran = site.run(out)
    assert ran.code == 0, ran
    assert site.is_as(found, found.target)
    assert site.slurm.nodes["n"].is_open


def test_slurm_is_not_said_to_be_done_where_it_finds_less_or_says_nothing(tmp_path: Path) -> None:
    found = small("slurm")
    site = WholeSite(tmp_path, found.start, "slurm")
    out = site.write(found)
    site.slurm.deaf = True
    ran = site.run(out)
    assert (ran.code, site.slurm.log, site.changes()) == (1, [], 0), ran
    site.slurm.deaf, site.slurm.lag = False, 1
    site.slurm.nodes["n"].devices = Counter
    ran = site.run(out)
    assert ran.code == 1
    assert "Slurm finds fewer devices there than its line offers" in ran.error
    assert not site.slurm.nodes["n"].is_open


def test_what_a_nodes_line_says_beside_its_gpus_is_not_lost(tmp_path: Path) -> None:
    found = small("slurm")
    site = WholeSite(tmp_path, found.start, "slurm")
    line = tmp_path / "conf/cms/n.conf"
    line.write_text("# by hand\n" + line.read_text("utf-8").rstrip() + " CPUs=64\n", "utf-8")
    before = line.read_text("utf-8")
    ran = site.run(site.write(found))
    assert ran.code == 1
    assert "has: CPUs=64 NodeName=n and would have: NodeName=n ([export] slurm" in ran.error
    assert (site.slurm.log, line.read_text("utf-8")) == ([], before)
    told = ExportOptions(slurm_nodes=FrozenMap({"n": "CPUs=64"}))
    ran = site.run(site.write(found, "told", export=told))
    assert (ran.code, ran.error) == (0, ""), ran
    assert line.read_text("utf-8").endswith(" CPUs=64\n")


@pytest.mark.parametrize("tool", ["mig-parted", pytest.param("slurm", marks=pytest.mark.long)])
def test_another_gpu_in_the_place_of_one_is_left_alone(tmp_path: Path, tool: str) -> None:
    found = small(tool)
    site = WholeSite(tmp_path, found.start, tool)
    now = known_by_uuid(site, found.start)
    again = transition(now, found.target, actuator=tool, floor=0)
    assert isinstance(again, Transition)
    swapped_gpus_are_left_alone(site, again)


@pytest.mark.long
@pytest.mark.parametrize("tool", ["mig-parted", "slurm"])
def test_a_small_one_arrives_and_goes_back(tmp_path: Path, tool: str) -> None:
    there_again_and_back(tmp_path, small(tool), tool)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("tool", ["mig-parted", "slurm"])
def test_random_transitions_arrive(tmp_path: Path, tool: str, seed: int) -> None:
    there_again_and_back(tmp_path, planned(seed, tool), tool)


# --- what goes wrong ------------------------------------------------------------------------------


def a_fault_is_survived(
    folder: Path, found: Transition, command: str, kind: str, tool: str, seed: int = 0
) -> bool:
    """Whether the fault was met: then it is found, and the way goes on from what is there."""
    rest = random.Random(f"{seed}{command}{kind}{tool}")
    site = WholeSite(folder, found.start, tool)
    out = site.write(found)
    nodes = sorted({action.node for action in found.actions if action.what is What.REWRITE})
    where = site.nodes[rest.choice(nodes or sorted(site.nodes))]
    at = rest.randint(1, 40 if command == "list" else 2)
    where.fault(command, kind, at=at, times=1 if command == "list" else 99)
    ran = site.run(out)
    met = where.pending_faults() == 0
    for node in site.nodes.values():  # what was not met is not to befall who looks
        node.clear_faults()
    if ran.code:
        assert met, ran
        assert "is not as it should be" in ran.error
        assert "--from" in ran.error
    else:
        assert site.is_as(found, found.target)
    assert lowest_of(site, found)
    if rest.random() < 0.5:
        ran = site.run(out)  # the same again
        assert (ran.code, ran.error) == (0, ""), ran
    else:  # or anew, from what is seen
        now = site.seen(found.target)
        ran = site.run(out, "--serving")
        assert (ran.code, ran.error) == (0, ""), ran
        told, may_go = adopted(ran.text), released(ran.text)
        for card, each in now.instances():
            place = f"{card.name}:{each.start}"
            if place in told:
                assert each.work is not None
                assert told[place].startswith(f"{each.work.service}@")
            assert each.work is None or place not in may_go
        again = transition(now, open_starts(found, found.target), actuator=tool)
        assert isinstance(again, Transition), again
        ran = site.run(site.write(again, "again"))
        assert (ran.code, ran.error) == (0, ""), ran
    assert site.is_as(found, found.target)
    assert lowest_of(site, found)
    assert site.refused == 0
    return met


@pytest.mark.long
def test_a_fault_stops_it_and_it_goes_on(tmp_path: Path) -> None:
    assert a_fault_is_survived(tmp_path, small("mig-parted"), "cgi", "in_use", "mig-parted")


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("tool", ["mig-parted", "slurm"])
def test_random_transitions_with_faults_arrive(tmp_path: Path, tool: str, seed: int) -> None:
    found = planned(seed, tool)
    met = [
        a_fault_is_survived(tmp_path / str(number), found, command, kind, tool, seed)
        for number, (command, kind) in enumerate(FAULTS)
    ]
    assert any(met) or all(action.what is What.RESTART for action in found.actions)


@pytest.mark.parametrize("tool", ["mig-parted", pytest.param("slurm", marks=pytest.mark.long)])
def test_what_serves_is_told_of_the_places_of_the_steps_alone(tmp_path: Path, tool: str) -> None:
    """What is kept beside them serves as well, and is neither known to the steps nor to go."""

    def fleet(service: str) -> Deployment:
        kept = Instance("2g.12gb", 0, work("b", "2g.12gb"))
        return on_two_gpus((kept, Instance("1g.6gb", 2, work(service, "1g.6gb"))), ())

    found = transition(fleet("a"), fleet("b"), floor=0, actuator=tool)
    assert isinstance(found, Transition), found
    site = WholeSite(tmp_path, found.start, tool)
    out = site.write(found)
    assert site.run(out, "--serving").text.split() == ["--adopt", "n/0:2=a@1x4"]
    point = point_label(work("a", "1g.6gb"))
    site.by_start(["stop", "n", "0", "1g.6gb", "2", "a", point])
    assert site.run(out, "--serving").text.split() == ["--reclaim", "n/0:2"]


def test_what_serves_is_not_told_in_part_where_a_listing_fails(tmp_path: Path) -> None:
    found = small("mig-parted")
    site = WholeSite(tmp_path, found.start)
    out = site.write(found)
    site.nodes["n"].fault("list", "unknown", at=2)
    ran = site.run(out, "--serving")
    assert (ran.code, ran.text) == (1, "--what-serves-is-not-known\n")
    assert "what serves cannot be told" in ran.error
    assert run_cms(["observe", *ran.text.split()]) == 2  # so nobody plans from less than there is


def test_what_nobody_knows_of_is_not_cut_and_nothing_stops_for_it(tmp_path: Path) -> None:
    found = small("slurm")
    site = WholeSite(tmp_path, found.start, "slurm")
    out = site.write(found)
    site.nodes["n"].put(1, [("1g.6gb", 3)])
    done, works = site.changes(), dict(site.works)
    ran = site.run(out)
    assert ran.code == 1
    assert "GPU 1 holds what is neither to stay nor to come, and would lose it:" in ran.error
    assert (site.changes(), site.works, site.slurm.log) == (done, works, [])


@pytest.mark.long
def test_a_controller_that_refuses_stops_it_and_it_goes_on(tmp_path: Path) -> None:
    found = planned(5, "slurm")
    site = WholeSite(tmp_path, found.start, "slurm")
    out = site.write(found)
    for _ in range(4):
        site.slurm.refuse = 1
        assert site.run(out).code == 1
    assert site.run(out).code == 0
    assert site.is_as(found, found.target)


# --- what is written ------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", WHOLE)
def test_every_script_is_a_script_and_every_step_has_its_document(tool: str) -> None:
    found = planned(5, tool)
    files = folder_of(found, FolderOptions(tool)).files
    for path, text in files.items():
        if path.endswith(".sh"):
            done = subprocess.run(["sh", "-n"], input=text, text=True, check=False)
            assert done.returncode == 0, path
    steps = steps_of(found, tool)
    assert sorted(at for step in steps for at in step.positions) == list(range(len(found.actions)))
    before: set[str] = set()
    for step in steps:
        told = json.loads(files[f"steps/{step.number:02}.json"])
        assert [each["name"] for each in told["parts"]] == [part.name for part in step.parts]
        for part in step.parts:
            assert set(part.after) <= before
            assert state_after(found, part.name) is not None
        before |= {part.name for part in step.parts}
    assert f"--tool {tool}" in files["README.md"]
    assert "It is proved as well" in files["README.md"]
    opened = {"gpu-operator": "kubectl uncordon NODE", "slurm": "nodename=NODE state=resume"}
    for drains, command in opened.items():
        assert (command in files["README.md"]) == (drains == tool)


@pytest.mark.parametrize("tool", ["gpu-operator", "slurm"])
@pytest.mark.parametrize("seed", few(2, range(6)))
def test_a_node_that_is_drained_does_nothing_else_meanwhile(tool: str, seed: int) -> None:
    found = planned(seed, tool)
    steps = steps_of(found, tool)
    ended: dict[str, set[str]] = {}
    for part in (part for step in steps for part in step.parts):
        ended[part.name] = set(part.after).union(*(ended[name] for name in part.after))
    parts = [part for step in steps for part in step.parts]
    for number, part in enumerate(parts):
        for other in parts[:number]:
            if part.node == other.node and (part.is_of_a_node or other.is_of_a_node):
                assert other.name in ended[part.name]
    for part in parts:
        assert part.is_of_a_node == part.rewrites


def test_the_configuration_of_a_part_names_what_the_part_stops_and_nothing_else() -> None:
    for tool, indices in (("mig-parted", 1), ("slurm", 2)):
        found = planned(5, tool)
        for part in (part for step in steps_of(found, tool) for part in step.parts):
            told = ACTUATORS[tool].tables(part, FolderOptions().export)
            if part.rewrites:
                listed = "".join(told["wanted_config"]).count("devices: [") and len(part.afters)
                assert listed == len(told["gpus"]) == indices


def test_where_a_mode_changes_with_a_reset_the_whole_node_is_one_part() -> None:
    def fleet(mode: Mode, *instances: Instance) -> Deployment:
        cards = (
            FleetGpu("n", 0, A100, mode),
            FleetGpu("n", 1, A100, instances=(Instance("3g.40gb", 0),)),
        )
        held = cards[0].with_instances(instances, mode)
        return Deployment((FleetNode("n", (held, cards[1])),))

    now, then = fleet(Mode.WHOLE), fleet(Mode.MIG, Instance("7g.80gb", 0))
    found = transition(now, then, actuator="mig-parted")
    assert isinstance(found, Transition), found
    (part,) = (part for step in steps_of(found, "mig-parted") for part in step.parts)
    assert (part.name, len(part.cards)) == ("01-n-all", 2)


def test_a_node_whose_start_is_hidden_is_told_by_its_counts() -> None:
    found = planned(5)
    target = open_starts(found, found.target)
    cut = {a.gpu for a in found.actions if a.what is What.REWRITE}
    for card in target.gpus():
        is_open = (card.node, card.index) in cut and len(card.gpu.layouts_of(card.counts)) > 1
        assert (card.seen is Seen.UNKNOWN) == is_open
    last = len(states(found)) - 1
    assert state_after(found, str(last)) == open_starts(found, states(found)[-1])


def test_what_the_scripts_cannot_do_is_refused() -> None:
    held = Instance("1g.6gb", 0, work("a", "1g.6gb"))
    now = on_two_gpus((), ())
    then = now.with_gpus({("n", 0): next(now.gpus()).with_instances([held])})
    parts = transition(now, then, floor=0)
    whole = transition(now, then, floor=0, actuator="mig-parted")
    assert isinstance(parts, Transition)
    assert isinstance(whole, Transition)
    for tool in WHOLE:
        with pytest.raises(InvalidProblem, match="cuts part of a GPU, which this actuator cannot"):
            folder_of(parts, FolderOptions(tool))
    with pytest.raises(InvalidProblem, match="nvidia-smi cuts instance by instance"):
        folder_of(whole)
    assert [*reversal(whole).target.instances()] == []
    blind = replace(
        next(now.gpus()), instances=(Instance("1g.6gb"), replace(held, start=None)),
        seen=Seen.UNKNOWN,
    )  # fmt: skip
    for tool in ("mig-parted", "slurm"):
        with pytest.raises(InvalidProblem, match="observe node 'n' with: nvidia-smi mig -lgi"):
            ACTUATORS[tool].refuse(now.with_gpus({("n", 0): blind}), ExportOptions())
