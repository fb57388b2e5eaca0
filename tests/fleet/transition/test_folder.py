"""Folders of transitions, run against stand-ins: there, again, back, and on after what fails."""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections import Counter
from functools import cache
from itertools import count
from pathlib import Path

import pytest

from cms.errors import InvalidOption, InvalidProblem
from cms.fleet.deployment import Deployment, FleetGpu, FleetNode, Instance, Seen, State, difference
from cms.fleet.deployment.labels import point_label
from cms.fleet.deployment.transition import Transition, What, lowest_capacity, reversal, transition
from cms.fleet.deployment.transition.folder import (
    FolderOptions,
    folder_of,
    on_the_way,
    state_after,
    states,
    steps_of,
    summary,
)
from cms.fleet.deployment.written_folder import write_folder
from tests.fleet.bridging import observed, stand_ins
from tests.fleet.stand_ins.driver import STATE
from tests.references.transitions import run as executed
from tests.samples import few

from .acting import Site, known_by_uuid, swapped_gpus_are_left_alone
from .cases import A30, Pair, leg

#: Of a short transition that creates, deletes and restarts, in two steps.
SEED = 5
#: Of operations of nvidia-smi, and what goes wrong with them.
FAULTS = [
    ("cgi", "insufficient"), ("cgi", "in_use"), ("cgi", "no_effect"), ("cgi", "half"),
    ("cgi", "delayed"), ("cgi", "killed_after"), ("cci", "unknown"), ("dci", "in_use"),
    ("dci", "no_effect"), ("dgi", "in_use"), ("dgi", "no_effect"), ("dgi", "delayed"),
    ("dgi", "killed_before"), ("list", "unknown"),
]  # fmt: skip


def planned(seed: int) -> Transition:
    """A transition between two random A30s' contents."""
    pair = Pair(seed)
    found = transition(pair.start, pair.wanted)
    assert isinstance(found, Transition)
    return found


def floors_held(site: Site, found: Transition) -> bool:
    return all(
        site.lowest.get(name, floor.rps) >= floor.rps
        for name, floor in found.floors.items()
        if floor.rps
    )


def there_again_and_back(folder: Path, found: Transition) -> None:
    site = Site(folder, found.start, choice="any")
    out = site.write(found)
    ran = site.run(out, "--dry-run")
    assert (ran.code, ran.error, site.changes()) == (0, "", 0), ran
    ran = site.run(out)
    assert (ran.code, ran.error) == (0, ""), ran
    assert site.arrived(found.target)
    assert floors_held(site, found)
    done, works = site.changes(), dict(site.works)
    ran = site.run(out)
    assert (ran.code, ran.error) == (0, ""), ran
    assert (site.changes(), site.works) == (done, works), "it did something the second time"
    ran = site.run(out, "--undo", "1")
    assert (ran.code, ran.error) == (0, ""), ran
    assert site.arrived(found.start)
    assert floors_held(site, found)
    assert site.refused == 0


@pytest.mark.parametrize("seed", [42])
def test_the_scripts_arrive_do_nothing_twice_and_go_back(tmp_path: Path, seed: int) -> None:
    found = planned(seed)
    assert any(action.is_temporary for action in found.actions)
    there_again_and_back(tmp_path, found)


def a_fault_is_survived(folder: Path, seed: int, command: str, kind: str) -> bool:
    """Whether the fault was met: then it is found, and the way goes on from what is there."""
    found, rest = planned(seed), random.Random(f"{seed}{command}{kind}")
    site = Site(folder, found.start)
    out = site.write(found)
    where = rest.choice(list(site.nodes.values()))
    most = 60 if command == "list" else 2
    if command == "cci":  # of a creation that fails half-way the rest is tried again
        where.fault("cgi", "half")
    where.fault(command, kind, at=rest.randint(1, most), times=1)
    ran = site.run(out)
    met = where.pending_faults() == 0
    for node in site.nodes.values():  # what was not met is not to befall who looks
        node.clear_faults()
    if ran.code:
        assert met
        assert "is not as it should be" in ran.error
        assert "--from" in ran.error
    else:
        assert site.arrived(found.target)
    assert floors_held(site, found)
    if rest.random() < 0.5:
        ran = site.run(out)  # the same again
        assert (ran.code, ran.error) == (0, ""), ran
    else:  # or anew, from what is seen
        now = site.seen(found.target)
        again = transition(now, found.target)
        assert isinstance(again, Transition), again
        ran = site.run(site.write(again, "again"))
        assert (ran.code, ran.error) == (0, ""), ran
    assert site.arrived(found.target)
    assert floors_held(site, found)
    assert site.refused == 0
    return met


@pytest.mark.parametrize(
    ("command", "kind"), [("dgi", "in_use"), pytest.param("cgi", "half", marks=pytest.mark.long)]
)
def test_a_fault_stops_it_and_it_goes_on(tmp_path: Path, command: str, kind: str) -> None:
    a_fault_is_survived(tmp_path, SEED, command, kind)


@cache
def _busy(number: int) -> int:
    """The seed of a transition that creates and deletes two instances or more, by its number."""
    seeds = (seed for seed in count(_busy(number - 1) + 1 if number else 0) if _is_busy(seed))
    return next(seeds)


def _is_busy(seed: int) -> bool:
    done = Counter(action.what for action in planned(seed).actions)
    return min(done[What.CREATE], done[What.DELETE]) >= 2


@pytest.mark.long
@pytest.mark.parametrize("number", range(50))
def test_random_transitions_with_faults_arrive(tmp_path: Path, number: int) -> None:
    seed = _busy(number)
    there_again_and_back(tmp_path / "well", planned(seed))
    met = [
        a_fault_is_survived(tmp_path / str(at), seed, command, kind)
        for at, (command, kind) in enumerate(FAULTS)
    ]
    assert sum(met) >= len(FAULTS) // 2


@pytest.mark.long
@pytest.mark.parametrize("step", range(4))
def test_the_published_chain_arrives(tmp_path: Path, step: int) -> None:
    there_again_and_back(tmp_path, leg(step)[0])


_SIDE_BY_SIDE = """
on_node() {{ PATH="{folder}/$1/bin:$PATH" {state}="{folder}/$1/state.json" sh -s; }}
start_work() {{ echo "$service $point" >"{folder}/instances/$node-$gpu-$start"; }}
stop_work() {{ rm -f "{folder}/instances/$node-$gpu-$start"; }}
is_ready() {{ [ "$(cat "{folder}/instances/$node-$gpu-$start" 2>&1)" = "$service $point" ]; }}
is_drained() {{ ! is_ready; }}
"""


@pytest.mark.long
@pytest.mark.parametrize("seed", [4, 21, 42])
def test_parts_side_by_side_arrive(tmp_path: Path, seed: int) -> None:
    """With the real executable of the stand-in: several run at once."""
    found = planned(seed)
    nodes = stand_ins(tmp_path, found.start)
    (tmp_path / "instances").mkdir()

    def working(side: Deployment) -> dict[str, str]:
        works = [(card, each.start, each.work) for card, each in side.instances() if each.work]
        return {
            f"{card.node}-{card.index}-{start}": f"{work.service} {point_label(work)}"
            for card, start, work in works
        }

    for name, doing in working(found.start).items():
        (tmp_path / "instances" / name).write_text(f"{doing}\n", encoding="utf-8")
    hooks = tmp_path / "work.sh"
    hooks.write_text(_SIDE_BY_SIDE.format(folder=tmp_path, state=STATE), encoding="utf-8")
    write_folder(folder_of(found, FolderOptions(max_parallel=4)).files, tmp_path / "out")
    env = {**os.environ, "CMS_WORK": str(hooks), "CMS_PAUSE": "0", "CMS_PATIENCE": "3"}
    ran = subprocess.run(
        [str(tmp_path / "out/run.sh")], env=env, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert difference(observed(nodes, found.target), found.target).is_empty
    there = {
        each.name: each.read_text("utf-8").strip() for each in (tmp_path / "instances").iterdir()
    }
    assert there == working(found.target)


def test_another_gpu_in_the_place_of_one_is_left_alone(tmp_path: Path) -> None:
    """Also where the target alone says which GPU is meant."""
    found = planned(SEED)
    site = Site(tmp_path, found.start)
    again = transition(found.start, known_by_uuid(site, found.target))
    assert isinstance(again, Transition)
    swapped_gpus_are_left_alone(site, again)


# --- what is written ------------------------------------------------------------------------------


def test_hooks_that_nobody_filled_in_refuse_before_anything_is_done(tmp_path: Path) -> None:
    found = planned(SEED)
    site = Site(tmp_path, found.start)
    out = site.write(found)
    (tmp_path / "work.sh").write_text((out / "work.sh").read_text("utf-8"), encoding="utf-8")
    ran = site.run(out)
    assert ran.code == 1
    assert "work.sh does not say yet on_node: how a script is run on n" in ran.error
    assert site.changes() == 0


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--from", "99"], 2, "99 is no step; expected 1 to"),
        (["--only", "0"], 2, "0 is no step"),
        (["--from"], 2, "usage: run.sh"),
        (["--force"], 2, "usage: run.sh"),
        (["--from", "2"], 1, "begin there: "),
    ],
)
def test_what_run_cannot_do(tmp_path: Path, words: list[str], code: int, said: str) -> None:
    found = planned(SEED)
    site = Site(tmp_path, found.start)
    ran = site.run(site.write(found), *words)
    assert (ran.code, said in ran.error) == (code, True), ran
    assert site.changes() == 0


@pytest.mark.long
def test_step_by_step_and_verified_on_the_way(tmp_path: Path) -> None:
    found = planned(SEED)
    site, every = Site(tmp_path, found.start), states(found)
    out = site.write(found)
    for step in steps_of(found):
        ran = site.run(out, "--only", str(step.number))
        assert (ran.code, ran.error) == (0, ""), ran
        assert site.arrived(every[step.number])
        assert state_after(found, str(step.number)) == every[step.number]
    assert state_after(found, "99") is None
    ran = site.run(out, "--undo", str(len(every) - 1))
    assert ran.code == 0, ran
    assert site.arrived(every[-2])


def test_every_script_is_a_script_and_every_step_has_its_document() -> None:
    found = leg(0)[0]
    files = folder_of(found, FolderOptions(max_parallel=3)).files
    for path, text in files.items():
        if path.endswith(".sh"):
            done = subprocess.run(["sh", "-n"], input=text, text=True, check=False)
            assert done.returncode == 0, path
    steps = steps_of(found)
    assert sorted(at for step in steps for at in step.positions) == list(range(len(found.actions)))
    order = [part.name for step in steps for part in step.parts]
    for step in steps:
        told = json.loads(files[f"steps/{step.number:02}.json"])
        assert [each["name"] for each in told["parts"]] == [part.name for part in step.parts]
        assert set(told["capacity_rps"]) == {
            service for at in step.positions for service in found.actions[at].services
        }
        for part in step.parts:
            assert all(order.index(name) < order.index(part.name) for name in part.after)
    assert "mode=run first=1 last=" in files["run.sh"]
    assert "parallel=3" in files["run.sh"]
    assert "It is proved as well" in files["README.md"]


@pytest.mark.parametrize("seed", few(2, range(6)))
def test_no_execution_goes_below_the_lowest_capacity(seed: int) -> None:
    found = planned(seed)
    for name, floor in found.floors.items():
        assert floor.rps <= lowest_capacity(found, name) <= found.start.capacity(name)
    assert executed(found, random.Random(seed)) == []


def test_the_summary_counts_what_the_actions_do() -> None:
    found = leg(0)[0]
    words = summary(found, floor="90 %", max_parallel=2)
    assert words.headline.startswith("3 -> 12 GPUs, floor 90 %: ")
    assert sum(each.kept for each in words.services) == found.kept.count
    assert sum(each.started for each in words.services) == sum(
        len(action.adds) for action in found.actions
    )
    assert "assumed" in words.headline
    assert "at most 2 side by side" in words.assumed


def test_what_is_known_on_the_way_leaves_out_places_of_two_services() -> None:
    found = leg(0)[0]
    known, kinds = on_the_way(found)
    places = {
        (card.name, each.profile, each.start, each.work)
        for side in (found.start, found.target)
        for card, each in side.instances()
    }
    for card, each in known.instances():
        assert (card.name, each.profile, each.start, each.work) in places
    restarted = {(a.name, a.adds[0].start) for a in found.actions if a.removes and a.adds}
    assert restarted
    assert not restarted & {(card.name, each.start) for card, each in known.instances()}
    assert {kind.work for kind in kinds} >= {each.work for _, each in found.target.instances()}


def test_the_way_back_borrows_no_gpu_for_what_does_not_come_back() -> None:
    hollow = FleetGpu("n", 0, A30, instances=(Instance("1g.6gb", 0, state=State.HOLLOW),))
    now = Deployment((FleetNode("n", (hollow,)),))
    found = transition(now, now.with_gpus({("n", 0): hollow.with_instances(())}))
    assert isinstance(found, Transition)
    assert len(found.actions) == 1
    back = reversal(found)
    assert (back.actions, back.spare.count) == ((), 0)
    assert "It is proved as well: 0 actions" in folder_of(found).files["README.md"]


def test_what_the_scripts_cannot_do_is_refused() -> None:
    blind = FleetGpu("n", 0, A30, instances=(Instance("1g.6gb"),), seen=Seen.UNKNOWN)
    now = Deployment((FleetNode("n", (blind,)),))
    done = Transition(now, now, {}, (), *(getattr(planned(2), name) for name in ("spare", "kept")))
    with pytest.raises(InvalidProblem, match="observe node 'n' with: nvidia-smi mig -lgi"):
        folder_of(done)
    with pytest.raises(InvalidOption, match="no actuator 'nvidia-sm'; nearest: 'nvidia-smi'"):
        folder_of(planned(2), FolderOptions("nvidia-sm"))


def test_no_work_stops_that_measured_capacity_cannot_miss(tmp_path: Path) -> None:
    found = planned(SEED)
    site = Site(tmp_path, found.start)
    out, hooks = site.write(found), tmp_path / "work.sh"
    text = hooks.read_text("utf-8")
    hooks.write_text(f"{text}capacity() {{ echo 3.5; }}\n", encoding="utf-8")
    ran = site.run(out)
    assert ran.code == 1
    assert "has 3.5 items/s now; before " in ran.error
    assert site.lowest == site.capacities, "nothing was stopped"
    hooks.write_text(f"{text}capacity() {{ echo 1e6; }}\n", encoding="utf-8")
    assert site.run(out, "--only", "1").code == 0
    assert site.arrived(states(found)[1])


def test_a_step_by_hand_spares_what_serves_something_else(tmp_path: Path) -> None:
    """A place serves one service, then another: the first step is not done over the second's."""
    found = planned(4)
    site = Site(tmp_path, found.start)
    out = site.write(found)
    for step in ("1", "2"):
        assert site.run(out, "--only", step).code == 0
    works, done = dict(site.works), site.changes()
    ran = site.run(out, script="steps/01-n-gpu0.sh")
    assert ran.code == 1
    assert "serves there, which does not belong to this step" in ran.error
    assert (site.works, site.changes()) == (works, done)
