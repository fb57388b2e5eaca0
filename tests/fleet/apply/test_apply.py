"""`cms apply` against stand-ins: it arrives, does nothing twice, goes on and goes back."""

from __future__ import annotations

import random
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import pytest

from cms.cli.app import run as run_cms
from cms.fleet.apply import Head, Journal, begin_undo, list_units, on_the_way
from cms.fleet.deployment import Deployment, Instance, read_deployment
from cms.fleet.deployment.transition import PartitioningTool, Transition, What
from tests.fleet.apply.cluster_site import TOOL, cluster_site
from tests.fleet.apply.site import Site, Watched, arrives
from tests.fleet.apply.test_nodes import on_four_nodes
from tests.fleet.stand_ins.kubernetes.cluster import KUBECTL, needs_kubectl
from tests.fleet.transition.cases import does, leg, on_node, planned, reached, small
from tests.samples import few

#: Of a short transition that creates, deletes and restarts.
SEED = 5
TOOLS = ("nvidia-smi", "mig-parted", "slurm")
EVERY = (*TOOLS, pytest.param(TOOL, marks=needs_kubectl))
#: Of operations of nvidia-smi, and what goes wrong with them.
FAULTS = [
    ("dgi", "in_use"), ("cgi", "insufficient"), ("cgi", "no_effect"), ("cgi", "half"),
    ("cgi", "delayed"), ("cgi", "killed_after"), ("cci", "unknown"), ("dci", "in_use"),
    ("dci", "no_effect"), ("dgi", "no_effect"), ("dgi", "delayed"), ("dgi", "killed_before"),
    ("list", "unknown"),
]  # fmt: skip
long = pytest.mark.long


def of(tool: str, seed: int) -> Transition:
    return planned(seed, tool) if seed else small(tool)


@contextmanager
def site_of(folder: Path, found: Transition, tool: str) -> Iterator[Watched]:
    if tool != TOOL:
        yield Site(folder, found, tool)
        return
    with cluster_site(folder, found) as site:
        yield site


def done_once(site: Watched, found: Transition) -> bool:
    """Whether no instance was created or deleted more often than the transition does it."""
    for node, each in site.nodes.items() if isinstance(site, Site) else ():
        lines = [line for line in each.log if line.endswith("-> 0")]
        for word, side in (("-cgi", "adds"), ("-dgi", "removes")):
            ran = Counter(line.split()[3] for line in lines if word in line)
            meant = Counter[str]()
            for action in found.actions:
                if action.node == node and action.what is not What.RESTART:
                    meant[str(action.index)] += len(getattr(action, side))
            if site.tool == "nvidia-smi" and ran - meant:
                return False
    return True


@pytest.mark.parametrize("tool", EVERY)
def test_it_arrives_does_nothing_twice_and_goes_back(tmp_path: Path, tool: str) -> None:
    found = of(tool, 42 if tool == "nvidia-smi" else 0)
    with site_of(tmp_path, found, tool) as site:
        before = site.trace()
        assert site.apply("--dry-run", "-q") == 0
        assert site.trace() == before
        arrives(site, found)
        assert done_once(site, found)
        done = site.trace()
        assert site.apply("--resume", "-q") == 0
        assert site.trace() == done, "it did something the second time"
        state = tmp_path / ".cms/apply/state.jsonl"
        arrives(site, found, "--undo")
        text = state.read_text("utf-8")
        state.write_text(text[: text.index("\n", text.rindex('{"format"')) + 1], "utf-8")
        assert site.apply("--undo", "-q") == 0, "an undo that has begun nothing yet"
        assert Journal.read(state).head.units, "the way back is lost"
        state.write_text(text, "utf-8")
        assert site.apply("--undo", "-q") == 0, "the way back of the way back is the way"
        assert site.is_as(found, found.target)
        done = site.trace()
        state.write_text(state.read_text("utf-8").splitlines()[0] + "\n", "utf-8")  # not begun
        assert [site.apply(way, "-q") for way in ("--undo", "--resume")] == [0, 0]
        assert site.trace() == done, "it went forward after all"


#: A tool and a draw; in the first an undo is refused that would turn a half-done undo around.
MOMENTS = [("nvidia-smi", 192), ("nvidia-smi", 193), *product((*TOOLS, TOOL), range(68))]


@pytest.mark.parametrize("moment", few(2, MOMENTS), ids=str)
def test_a_kill_at_any_moment_is_survived(tmp_path: Path, moment: tuple[str, int]) -> None:
    """Killed before a change or after it, forwards and on ways back, it still arrives."""
    tool, rest, state = moment[0], random.Random(str(moment)), tmp_path / ".cms/apply/state.jsonl"
    if tool == TOOL and KUBECTL is None:
        pytest.skip("there is no kubectl on the path")
    found, undone, is_loose = of(tool, rest.choice((SEED, 4, 42))), 0, False
    with site_of(tmp_path, found, tool) as site:
        for way in ((), *rest.choices((("--undo",), ("--resume",)), k=rest.randint(0, 4))):
            is_refused = is_loose and way == ("--undo",)
            code = site.killed(rest.randint(1, 9), rest.choice(("before", "after")), *way)
            assert code in ((1,) if is_refused else (0, -signal.SIGKILL))
            undone += way == ("--undo",) and not is_refused
            is_loose = bool(Journal.read(state).loose)
        assert site.apply("--resume", "-q") == 0
        aim = Journal.read(state).head.transition.target
        assert site.is_as(found, aim), "an undo goes back what was begun, and no further"
        assert site.floors_held(found)
        assert site.is_clean()
        assert undone or done_once(site, found)
        if undone == 1:
            arrives(site, found)  # nothing is half done: it is begun anew


def test_an_undo_from_any_moment_is_proved_and_mends_a_gpu_whole(tmp_path: Path) -> None:
    for found in (planned(22), *leg(0)):  # several units on a GPU; limits that become tighter
        head = Head(found, PartitioningTool.NVIDIA_SMI, False)
        for at, unit in enumerate(head.units):
            phases = {each.number: "done" for each in head.units[:at]} | {unit.number: "begun"}
            back = begin_undo(Journal(tmp_path, head, phases))
            mends = [each for each in back.units if each.gpus & back.loose]
            for n in range(len(mends)):
                told = Journal(tmp_path, back, {each.number: "done" for each in mends[:n]})
                assert told.loose == unit.gpus


def a_fault_is_survived(folder: Path, tool: str, seed: int, command: str, kind: str) -> None:
    """The fault is found or mended; then the way goes on from what is there."""
    rest = random.Random(f"{seed}{command}{kind}{tool}")
    found = of(tool, seed)
    site = Site(folder, found, tool)
    where = site.nodes[rest.choice(sorted({action.node for action in found.actions}))]
    if command == "cci" and tool == "nvidia-smi":
        where.fault("cgi", "half")
    at = rest.randint(1, 20 if command == "list" else 2)
    where.fault(command, kind, at=at, times=99 if command != "list" else 1)
    code = site.apply("-q")
    for node in site.nodes.values():  # what was not met is not to befall who looks
        node.clear_faults()
    assert code == 1 or site.is_as(found, found.target)
    assert site.floors_held(found)
    arrives(site, found, rest.choice(("--resume", "--undo")))


@pytest.mark.parametrize("fault", few(1, FAULTS), ids=str)
@pytest.mark.parametrize("tool", ["nvidia-smi", pytest.param("mig-parted", marks=long)])
def test_a_fault_stops_it_and_it_goes_on(tmp_path: Path, tool: str, fault: tuple[str, str]) -> None:
    a_fault_is_survived(tmp_path, tool, SEED if tool == "nvidia-smi" else 0, *fault)


def test_an_old_slurmctld_starts_anew_to_take_more_devices(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = small("slurm")
    site = Site(tmp_path, found, "slurm")
    site.slurm.version, site.slurm.lag = "22.05.3", 2
    site.slurm.again()
    assert site.apply() == 1
    assert "slurm_restart of fleet.toml" in " ".join(capsys.readouterr().out.split())
    site.settle(more='slurm_restart = "slurmctld-again"')
    arrives(site, found, "--resume")
    arrives(site, found, "--undo")


@long
@pytest.mark.parametrize("tool", EVERY)
@pytest.mark.parametrize("seed", range(1, 30))
def test_random_transitions_arrive_and_go_back(tmp_path: Path, tool: str, seed: int) -> None:
    found = planned(seed, tool)
    with site_of(tmp_path, found, tool) as site:
        arrives(site, found, "--parallel", str(1 + seed % 4))
        arrives(site, found, "--undo")


@long
@pytest.mark.parametrize("step", range(4))
def test_the_published_chain_arrives(tmp_path: Path, step: int) -> None:
    found = leg(step)[0]
    site = Site(tmp_path, found)
    arrives(site, found)
    arrives(site, found, "--undo")


# --- what is refused ------------------------------------------------------------------------------


def one_two() -> tuple[Deployment, Deployment]:
    """One instance of a GPU becomes two."""
    two = (does("a", "1g.6gb"), does("a", "1g.6gb", 1))
    return on_node((does("a", "2g.12gb"),)), on_node(two)


@pytest.mark.parametrize("tool", TOOLS)
def test_a_foreign_instance_that_appeared_is_not_touched(
    tmp_path: Path, tool: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the way of what comes, on a GPU that is cut anew, or in the very place of what comes."""
    gpu, start, found = {
        "nvidia-smi": (0, 0, on_four_nodes()),
        "mig-parted": (0, 3, reached(*one_two(), floor=0, tool=tool)),
        "slurm": (1, 3, small("slurm")),
    }[tool]
    site = Site(tmp_path, found, tool)
    node = site.nodes[found.actions[0].node]
    node.put(gpu, [("1g.6gb", start)])
    before = site.trace(), node.instances(gpu)
    assert site.apply() == 1
    assert (site.trace(), node.instances(gpu)) == before
    said = " ".join(capsys.readouterr().out.split())
    assert ("which cms has not made" in said) or ("expected" in said), said


def test_a_foreign_instance_that_took_the_place_of_one_is_not_deleted(tmp_path: Path) -> None:
    now = on_node((does("a", "1g.6gb"), does("a", "1g.6gb", 1)))
    found = reached(now, on_node((does("a", "1g.6gb"),)), floor=0)
    site = Site(tmp_path, found)
    seen = site.seen(found.start)
    found = reached(seen, on_node((does("a", "1g.6gb"),)), floor=0)
    site = Site(tmp_path / "again", found)
    (action,) = found.actions
    (start,) = (each.start for each in action.removes)
    assert start is not None
    node = site.nodes["n"]
    node.leave(site.works.pop(("n", 0, start))[1])
    node.remove(0, start)
    node.put(0, [("1g.6gb", start)])
    assert site.apply("-q") == 1
    assert not node.at(0, start).hollow


def test_another_gpu_a_lost_gpu_and_nonsense_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = planned(SEED)
    site = Site(tmp_path, found)
    known = site.seen(found.start)
    found = reached(known, found.target, floor=0)
    site = Site(tmp_path / "known", found)
    reach = tmp_path / "known/reach.sh"
    good, index = reach.read_text("utf-8"), found.actions[0].index
    former = site.nodes["n"].swap(index, "GPU-another")
    assert site.apply() == 1
    assert f"is GPU-another, not {former}" in capsys.readouterr().out
    site.nodes["n"].swap(index, former)
    for listing, words in (
        ("GPU 7: NVIDIA A30 (UUID: GPU-0)\\n| 7 MIG 1g.6gb 14 1 0:1 |\\n", "is not there"),
        ("|  what  MIG  1g.6gb |\\n", "cannot be observed"),
        (
            "Unable to determine the device handle for GPU0000:01:00.0: GPU is lost.\\n",
            "be observed",
        ),
    ):
        reach.write_text(f"#!/bin/sh\nprintf '{listing}'\n", "utf-8")
        assert site.apply() == 1
        assert words in " ".join(capsys.readouterr().out.split()), listing
    reach.write_text(good, "utf-8")
    arrives(site, found, "--resume")


def test_work_that_floors_need_and_nothing_starts_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = planned(SEED)
    site = Site(tmp_path, found)
    settings = tmp_path / "fleet.toml"
    settings.write_text(settings.read_text("utf-8").partition("[work]")[0], "utf-8")
    before = site.trace()
    assert site.apply("-q") == 1
    assert "expected start, stop, ready and drained in [work]" in capsys.readouterr().err
    assert site.trace() == before
    empty = reached(on_node(()), on_node((does("a", "1g.6gb"),)), floor=0)
    site = Site(tmp_path / "empty", empty)
    (tmp_path / "empty/fleet.toml").write_text(settings.read_text("utf-8").replace(
        str(tmp_path), str(tmp_path / "empty")), "utf-8")  # fmt: skip
    assert site.apply("-q") == 0
    assert site.nodes["n"].layout(0) == (("1g.6gb", 0),)
    assert site.works == {}


def test_no_work_stops_that_measured_capacity_cannot_miss(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = planned(SEED)
    site = Site(tmp_path, found)
    site.settle(hooks=['capacity = "echo 3.5"'])
    assert site.apply() == 1
    assert "has 3.5 requests/s now; before" in " ".join(capsys.readouterr().out.split())
    assert site.lowest == site.capacities, "nothing was stopped"
    site.settle(hooks=['capacity = "echo 1e6"'])
    arrives(site, found, "--resume")


def test_hooks_are_told_of_which_instance(tmp_path: Path) -> None:
    found = reached(on_node(()), on_node((does("a", "1g.6gb"),)), floor=0)
    site = Site(tmp_path, found)
    text = (tmp_path / "fleet.toml").read_text("utf-8").partition("start =")[0]
    text += f"start = 'env | grep ^CMS_ | sort >{tmp_path}/told'\nstop = 'false'\n"
    text += f"ready = 'test -s {tmp_path}/told'\ndrained = 'true'\n"
    (tmp_path / "fleet.toml").write_text(text, "utf-8")
    assert site.apply("-q") == 0
    told = dict(line.split("=", 1) for line in (tmp_path / "told").read_text().splitlines())
    uuid = site.nodes["n"].mig_uuids(0)[0]
    assert told == {
        "CMS_SERVICE": "a", "CMS_MODEL": "a", "CMS_POINT": "1g.6gb-1x4", "CMS_PROCESSES": "1",
        "CMS_BATCH": "4", "CMS_SUPPLY": "10", "CMS_NODE": "n", "CMS_GPU": "0", "CMS_GPU_UUID": "",
        "CMS_PROFILE": "1g.6gb", "CMS_START": "0", "CMS_NUMBER": "1", "CMS_UUID": uuid,
    }  # fmt: skip


def test_state_cut_off_in_a_line_is_gone_on_from_and_none_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = on_four_nodes()
    site = Site(tmp_path, found)
    assert site.apply("--resume", "-q") == 1
    assert "nothing was begun here" in capsys.readouterr().err
    assert site.killed(2, "after") == -signal.SIGKILL
    with (tmp_path / ".cms/apply/state.jsonl").open("a") as file:
        file.write('{"at": "20')
    arrives(site, found, "--resume")


# --- scripts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", ["nvidia-smi", "mig-parted", "slurm"])
def test_printed_scripts_do_the_same_and_check_before_and_after(tmp_path: Path, tool: str) -> None:
    now = on_node((Instance("2g.12gb", 0), Instance("1g.6gb", 2)), ())
    then = on_node((Instance("1g.6gb", 0), Instance("1g.6gb", 2)), (Instance("4g.24gb", 0),))
    found = reached(now, then, tool=tool)
    site = Site(tmp_path, found, tool)
    if tool == "slurm":
        assert site.apply("--print", str(tmp_path / "out"), "-q") == 2
        return
    assert site.apply("--print", str(tmp_path / "out"), "-q") == 0
    scripts = sorted((tmp_path / "out").glob("*.sh"))
    node = site.nodes["n"]
    node.put(1, [("1g.6gb", 0)])
    before = node.layouts()
    assert node.sh(f"sh {scripts[0]}").code == 1
    assert node.layouts() == before
    node.remove(1, 0)
    for script in scripts:
        ran = node.sh(f"sh {script}")
        assert ran.code == 0, ran
    assert site.is_as(found, found.target)


# --- what is known on the way ---------------------------------------------------------------------


def test_state_file_says_what_is_there_to_observe_and_plan_anew(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = planned(SEED)
    site = Site(tmp_path, found)
    assert site.killed(5, "after") == -signal.SIGKILL
    listed = []
    for name in ("mig -lgi", "-q -x", "-L"):
        (tmp_path / name.strip("-")[:3]).write_text(site.nodes["n"].smi(name).text, "utf-8")
        listed.append(f"n={tmp_path / name.strip('-')[:3]}")
    state = str(tmp_path / ".cms/apply/state.jsonl")
    assert run_cms(["observe", *listed, "--plan", state, "-o", str(tmp_path / "now"), "-q"]) == 0
    now = read_deployment(tmp_path / "now")
    works = {at: work for at, (work, _) in site.works.items()}
    told = {
        (card.node, card.index, each.start): each.work
        for card, each in now.instances()
        if each.work is not None
    }
    assert told
    assert told.items() <= works.items()


def test_what_is_known_on_the_way_leaves_out_places_of_two_services() -> None:
    found = leg(0)[0]
    known, kinds = on_the_way(found)
    places = {
        (card.name, each.place, each.work)
        for side in (found.start, found.target)
        for card, each in side.instances()
    }
    told = {(card.name, each.place, each.work) for card, each in known.instances()}
    assert told <= places
    restarted = {(a.name, a.adds[0].place) for a in found.actions if a.removes and a.adds}
    assert restarted
    assert not restarted & {(name, place) for name, place, _ in told}
    assert {kind.work for kind in kinds} >= {each.work for _, each in found.target.instances()}


@pytest.mark.parametrize("tool", ["gpu-operator", "slurm", "mig-parted"])
@pytest.mark.parametrize("seed", few(2, range(1, 7)))
def test_unit_of_a_drained_node_has_the_node_for_itself(tool: str, seed: int) -> None:
    units = list_units(planned(seed, tool), PartitioningTool(tool))
    ended: dict[int, set[int]] = {}
    for unit in units:
        ended[unit.number] = set(unit.after).union(*(ended[at] for at in unit.after))
        for other in units[: unit.number]:
            drains = tool != "mig-parted" and (unit.partitions or other.partitions)
            if unit.node == other.node and drains:
                assert other.number in ended[unit.number]
        if tool != "mig-parted":
            assert len(unit.befores) == (2 if unit.partitions else 1)
