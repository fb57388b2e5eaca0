"""Folders of transitions, run on stand-ins: there, again, back, and on after what fails."""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import count
from pathlib import Path

import pytest

from cms.cli.app import run as run_cms
from cms.fleet.deployment.export import ExportOptions
from cms.fleet.deployment.labels import point_label
from cms.fleet.deployment.transition import Transition, What
from cms.fleet.deployment.transition.folder import (
    state_after,
    states,
    steps_of,
)
from cms.values.frozen import FrozenMap
from tests.samples import few

from .acting import (
    Site,
    a_fault_is_survived,
    arrives,
    goes_well,
    known_by_uuid,
    swapped_gpus_are_left_alone,
    there_again_and_back,
)
from .cases import does, leg, on_node, planned, reached, small, work

#: Of a short transition that creates, deletes and restarts, in two steps.
SEED = 5
#: Of operations of nvidia-smi, and what goes wrong with them.
FAULTS = [
    ("cgi", "insufficient"), ("cgi", "in_use"), ("cgi", "no_effect"), ("cgi", "half"),
    ("cgi", "delayed"), ("cgi", "killed_after"), ("cci", "unknown"), ("dci", "in_use"),
    ("dci", "no_effect"), ("dgi", "in_use"), ("dgi", "no_effect"), ("dgi", "delayed"),
    ("dgi", "killed_before"), ("list", "unknown"),
]  # fmt: skip
long = pytest.mark.long
SLURM = pytest.param("slurm", marks=long)


def placed(folder: Path, found: Transition, tool: str = "nvidia-smi") -> tuple[Site, Path]:
    site = Site(folder, found.start, tool)
    return site, site.write(found)


def there_and_back(folder: Path, found: Transition, tool: str) -> None:
    site = Site(folder, found.start, tool, choice="any" if tool == "nvidia-smi" else "lowest")
    there_again_and_back(site, site.write(found), found)
    assert site.refused == 0
    assert not any(node.drain for node in site.slurm.nodes.values())


@pytest.mark.parametrize("tool", ["nvidia-smi", "mig-parted", SLURM])
def test_the_scripts_arrive_do_nothing_twice_and_go_back(tmp_path: Path, tool: str) -> None:
    found = planned(42) if tool == "nvidia-smi" else small(tool)
    assert any(action.is_temporary for action in found.actions) is (tool == "nvidia-smi")
    there_and_back(tmp_path, found, tool)


@pytest.mark.parametrize(
    ("command", "kind", "tool"),
    [
        ("dgi", "in_use", "nvidia-smi"),
        pytest.param("cgi", "half", "nvidia-smi", marks=long),
        pytest.param("cgi", "in_use", "mig-parted", marks=long),
    ],
)
def test_a_fault_stops_it_and_it_goes_on(
    tmp_path: Path, command: str, kind: str, tool: str
) -> None:
    found = planned(SEED) if tool == "nvidia-smi" else small(tool)
    assert a_fault_is_survived(tmp_path, found, tool, command, kind) or tool == "nvidia-smi"


@cache
def _busy(number: int) -> int:
    """The seed of a transition that creates and deletes two instances or more, by its number."""
    seeds = (seed for seed in count(_busy(number - 1) + 1 if number else 0) if _is_busy(seed))
    return next(seeds)


def _is_busy(seed: int) -> bool:
    done = Counter(action.what for action in planned(seed).actions)
    return min(done[What.CREATE], done[What.DELETE]) >= 2


@long
@pytest.mark.parametrize(
    ("tool", "number"),
    [
        *(("nvidia-smi", number) for number in range(50)),
        *((tool, number) for tool in ("mig-parted", "slurm") for number in range(25)),
    ],
)
def test_random_transitions_arrive_with_faults_too(tmp_path: Path, tool: str, number: int) -> None:
    seed = _busy(number) if tool == "nvidia-smi" else number
    found = planned(seed, tool)
    there_and_back(tmp_path / "well", found, tool)
    if tool == "nvidia-smi" or number < 10:
        met = [
            a_fault_is_survived(tmp_path / str(at), found, tool, command, kind, seed)
            for at, (command, kind) in enumerate(FAULTS)
        ]
        assert sum(met) >= len(FAULTS) // 2 or tool != "nvidia-smi"
        assert any(met) or all(action.what is What.RESTART for action in found.actions)


@long
@pytest.mark.parametrize("step", range(4))
def test_the_published_chain_arrives(tmp_path: Path, step: int) -> None:
    there_and_back(tmp_path, leg(step)[0], "nvidia-smi")


@pytest.mark.parametrize("seed", few(1, [21, 4, 42]))
def test_parts_side_by_side_arrive(tmp_path: Path, seed: int) -> None:
    found = planned(seed)
    site = Site(tmp_path, found.start)
    arrives(site, site.write(found, max_parallel=4), found)


@pytest.mark.parametrize("tool", ["nvidia-smi", "mig-parted", SLURM])
def test_another_gpu_in_the_place_of_one_is_left_alone(tmp_path: Path, tool: str) -> None:
    """Also where the target alone, or the start alone, says which GPU is meant."""
    found = planned(SEED) if tool == "nvidia-smi" else small(tool)
    site = Site(tmp_path, found.start, tool)
    sides = [found.start, found.target]
    at = int(tool == "nvidia-smi")
    sides[at] = known_by_uuid(site, sides[at])
    again = reached(*sides, tool=tool, floor=0)
    swapped_gpus_are_left_alone(site, again)


def test_what_nobody_knows_of_is_not_cut_and_nothing_stops_for_it(tmp_path: Path) -> None:
    site, out = placed(tmp_path, small("slurm"), "slurm")
    site.nodes["n"].put(1, [("1g.6gb", 3)])
    before = site.trace()
    ran = site.run(out)
    assert ran.code == 1
    assert "GPU 1 holds what is neither to stay nor to come, and would lose it:" in ran.error
    assert site.trace() == before


# --- steps and hooks ------------------------------------------------------------------------------


def test_hooks_that_nobody_filled_in_refuse_before_anything_is_done(tmp_path: Path) -> None:
    site, out = placed(tmp_path, planned(SEED))
    (tmp_path / "work.sh").write_text((out / "work.sh").read_text("utf-8"), encoding="utf-8")
    before, ran = site.trace(), site.run(out)
    assert (ran.code, site.trace()) == (1, before)
    assert "work.sh does not say yet on_node: how a script is run on n" in ran.error


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
    site, out = placed(tmp_path, planned(SEED))
    before, ran = site.trace(), site.run(out, *words)
    assert (ran.code, said in ran.error, site.trace()) == (code, True, before), ran


@long
def test_step_by_step_and_verified_on_the_way(tmp_path: Path) -> None:
    found = planned(SEED)
    (site, out), every = placed(tmp_path, found), states(found)
    for step in steps_of(found):
        goes_well(site, out, "--only", str(step.number))
        assert site.is_as(found, every[step.number])
        assert state_after(found, str(step.number)) == every[step.number]
    assert state_after(found, "99") is None
    goes_well(site, out, "--undo", str(len(every) - 1))
    assert site.is_as(found, every[-2])


def test_no_work_stops_that_measured_capacity_cannot_miss(tmp_path: Path) -> None:
    found = planned(SEED)
    (site, out), hooks = placed(tmp_path, found), tmp_path / "work.sh"
    text = hooks.read_text("utf-8")
    hooks.write_text(f"{text}capacity() {{ echo 3.5; }}\n", encoding="utf-8")
    ran = site.run(out)
    assert ran.code == 1
    assert "has 3.5 requests/s now; before " in ran.error
    assert site.lowest == site.capacities, "nothing was stopped"
    hooks.write_text(f"{text}capacity() {{ echo 1e6; }}\n", encoding="utf-8")
    assert site.run(out, "--only", "1").code == 0
    assert site.is_as(found, states(found)[1])


def test_a_step_by_hand_spares_what_serves_something_else(tmp_path: Path) -> None:
    """A place serves one service, then another: the first step is not done over the second's."""
    site, out = placed(tmp_path, planned(4))
    for step in ("1", "2"):
        assert site.run(out, "--only", step).code == 0
    before = site.trace()
    ran = site.run(out, script="steps/01-n-gpu0.sh")
    assert (ran.code, site.trace()) == (1, before)
    assert "serves there, which does not belong to this step" in ran.error


@pytest.mark.parametrize("tool", ["mig-parted", SLURM])
def test_what_serves_is_told_of_the_places_of_the_steps_alone(tmp_path: Path, tool: str) -> None:
    """What is kept beside them serves as well, and is neither known to the steps nor to go.

    Where a listing fails nothing is told, so that nobody plans from less than there is.
    """
    kept = does("b", "2g.12gb")
    sides = [on_node((kept, does(service, "1g.6gb", 2)), ()) for service in "ab"]
    found = reached(*sides, floor=0, tool=tool)
    site, out = placed(tmp_path, found, tool)
    assert site.run(out, "--serving").text.split() == ["--adopt", "n/0:2=a@1x4"]
    point = point_label(work("a", "1g.6gb"))
    site.asked("stop", ("n", 0, 2), "1g.6gb", ("a", point))
    assert site.run(out, "--serving").text.split() == ["--reclaim", "n/0:2"]
    site.nodes["n"].fault("list", "unknown", at=2)
    ran = site.run(out, "--serving")
    assert (ran.code, ran.text) == (1, "--what-serves-is-not-known\n")
    assert "what serves cannot be told" in ran.error
    assert run_cms(["observe", *ran.text.split()]) == 2


# --- Slurm ----------------------------------------------------------------------------------------


def test_slurm_drains_shrinks_cuts_grows_and_resumes(tmp_path: Path) -> None:
    site, out = placed(tmp_path, small("slurm"), "slurm")
    arrives(site, out, small("slurm"))
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
    site = Site(tmp_path, found.target, "slurm")
    out = site.write(found)
    site.slurm.again()
    site.slurm.version, site.slurm.lag = version, 2
    site.nodes["n"].reboot()
    site.works.clear()
    site.slurm.reboot("n")
    assert site.slurm.nodes["n"].state.endswith("+drain+invalid_reg")
    if version.startswith("22"):
        before, ran = site.trace(), site.run(out)
        assert (ran.code, site.trace()) == (1, before), ran
        assert "Slurm 22.05.8, where slurmctld has to start again" in ran.error
        monkeypatch.setenv("CMS_SLURM_RESTART", "slurmctld-again")
    ran = site.run(out)
    assert ran.code == 0, ran
    assert site.is_as(found, found.target)
    assert site.slurm.nodes["n"].is_open


def test_slurm_is_not_said_to_be_done_where_it_finds_less_or_says_nothing(tmp_path: Path) -> None:
    site, out = placed(tmp_path, small("slurm"), "slurm")
    site.slurm.deaf = True
    before, ran = site.trace(), site.run(out)
    assert (ran.code, site.trace()) == (1, before), ran
    site.slurm.deaf, site.slurm.lag = False, 1
    site.slurm.nodes["n"].devices = Counter
    ran = site.run(out)
    assert ran.code == 1
    assert "Slurm finds fewer devices there than its line offers" in ran.error
    assert not site.slurm.nodes["n"].is_open


def test_what_a_nodes_line_says_beside_its_gpus_is_not_lost(tmp_path: Path) -> None:
    found = small("slurm")
    site, out = placed(tmp_path, found, "slurm")
    line = tmp_path / "conf/cms/n.conf"
    line.write_text("# by hand\n" + line.read_text("utf-8").rstrip() + " CPUs=64\n", "utf-8")
    before = line.read_text("utf-8")
    ran = site.run(out)
    assert ran.code == 1
    assert "has: CPUs=64 NodeName=n and would have: NodeName=n ([export] slurm" in ran.error
    assert (site.slurm.log, line.read_text("utf-8")) == ([], before)
    told = ExportOptions(slurm_nodes=FrozenMap({"n": "CPUs=64"}))
    goes_well(site, site.write(found, "told", export=told))
    assert line.read_text("utf-8").endswith(" CPUs=64\n")


@long
def test_a_controller_that_refuses_stops_it_and_it_goes_on(tmp_path: Path) -> None:
    found = planned(5, "slurm")
    site, out = placed(tmp_path, found, "slurm")
    for _ in range(4):
        site.slurm.refuse = 1
        assert site.run(out).code == 1
    assert site.run(out).code == 0
    assert site.is_as(found, found.target)
