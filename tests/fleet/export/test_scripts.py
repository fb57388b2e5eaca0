"""The exported scripts, run against small fakes: what they do, and what they do not do twice."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cms.errors import InvalidProblem
from cms.fleet import gpu
from cms.fleet.deployment import Deployment, FleetGpu, FleetNode, Instance, Mode
from cms.fleet.deployment.export import ExportOptions, export
from tests.fleet.deployments import layouts
from tests.fleet.export.fakes import FakeCluster, FakeNode, FakeSlurm, run
from tests.samples import so_many

pytestmark = pytest.mark.skipif(shutil.which("sh") is None, reason="there is no sh here")
A100 = gpu("a100-80gb")
THEIRS = Instance("1g.10gb", 6, owner="pod team-x/a")


def node(*cards: tuple[Instance, ...], mode: Mode = Mode.MIG) -> Deployment:
    held = tuple(
        FleetGpu("node-a", index, A100, mode, each, f"GPU-{index}")
        for index, each in enumerate(cards)
    )
    return Deployment((FleetNode("node-a", held),))


NOW = node((Instance("4g.40gb", 0), Instance("2g.20gb", 4), THEIRS), (Instance("3g.40gb", 0),))
NEXT = node(
    (Instance("2g.20gb", 0), Instance("2g.20gb", 4), THEIRS),
    (Instance("3g.40gb", 4), Instance("3g.40gb", 0)),
)


def script(folder: Path, target: Deployment, now: Deployment | None) -> Path:
    path = folder / "node-a.sh"
    files = export(target, "nvidia-smi", ExportOptions(now)).files
    path.write_text(files["nodes/node-a.sh"], encoding="utf-8")
    return path


def held(deployment: Deployment) -> set[tuple[str, ...]]:
    return {
        (str(card.index), each.profile, str(each.start), "1")
        for card, each in deployment.instances()
    }


# --- nvidia-smi -----------------------------------------------------------------------------------


def test_the_script_goes_there_and_back_and_does_nothing_twice(tmp_path: Path) -> None:
    fake, path = FakeNode(tmp_path, NOW, "node-a"), script(tmp_path, NEXT, NOW)
    kept = (
        fake.ids["0", "2g.20gb", "4"],
        fake.ids["0", "1g.10gb", "6"],
        fake.ids["1", "3g.40gb", "0"],
    )
    told = run(fake, path, "check")
    assert told.returncode == 0, told
    assert told.stdout.splitlines() == [
        "node-a: GPU 0: would destroy 4g.40gb@0",
        "node-a: GPU 0: would create 2g.20gb@0",
        "node-a: GPU 1: would create 3g.40gb@4",
    ]
    assert fake.done() == []
    assert run(fake, path, "verify").returncode == 1
    told = run(fake, path)
    assert (told.returncode, told.stderr) == (0, ""), told
    assert fake.done() == [
        "dci 0 4g.40gb@0",
        "dgi 0 4g.40gb@0",
        "create 0 2g.20gb:0",
        "create 1 3g.40gb:4",
    ]
    assert fake.held == held(NEXT)
    assert kept == (
        fake.ids["0", "2g.20gb", "4"], fake.ids["0", "1g.10gb", "6"], fake.ids["1", "3g.40gb", "0"]
    )  # fmt: skip
    assert run(fake, path).returncode == 0
    assert run(fake, path, "verify").stdout == "node-a: every instance is where it should be\n"
    assert fake.done() == []
    assert run(fake, path, "undo").returncode == 0
    assert fake.held == held(NOW)
    fake.done()
    assert run(fake, path, "undo").returncode == 0
    assert fake.done() == []


@settings(max_examples=so_many(2, 4), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=st.sampled_from(layouts("a100-80gb")), after=st.sampled_from(layouts("a100-80gb")))
def test_any_layout_becomes_any_other_and_what_both_have_stays(
    tmp_path: Path, before: tuple[tuple[str, int], ...], after: tuple[tuple[str, int], ...]
) -> None:
    now = node(tuple(Instance(*each) for each in before))
    target = node(tuple(Instance(*each) for each in after))
    fake, path = FakeNode(tmp_path, now, "node-a"), script(tmp_path, target, now)
    ids = fake.ids
    assert run(fake, path).returncode == 0
    assert fake.held == held(target)
    for place, number in fake.ids.items():
        assert number == ids.get(place, number)


def test_what_stands_in_the_way_and_may_not_go_stops_it_before_it_begins(tmp_path: Path) -> None:
    fake, path = FakeNode(tmp_path, NOW, "node-a"), script(tmp_path, NEXT, None)
    told = run(fake, path)
    assert told.returncode == 1
    assert "2g.20gb@0 cannot be created over 4g.40gb@0, which may not go" in told.stderr
    assert fake.done() == []
    assert "what stood before was not known" in run(fake, path, "undo").stderr
    assert run(fake, path, "undoo").returncode == 2


def test_a_stranger_beside_is_left_alone(tmp_path: Path) -> None:
    stranger = node((Instance("1g.10gb", 6), Instance("2g.20gb", 0)))
    fake = FakeNode(tmp_path, stranger, "node-a")
    now, target = node((Instance("2g.20gb", 0),)), node((Instance("4g.40gb", 0),))
    path = script(tmp_path, target, now)
    assert "1g.10gb@6 is not in the tables" in run(fake, path, "check").stdout
    assert run(fake, path).returncode == 0
    assert fake.held == {("0", "4g.40gb", "0", "1"), ("0", "1g.10gb", "6", "1")}


def test_what_becomes_ours_where_it_stands_outlives_the_way_back(tmp_path: Path) -> None:
    fake = FakeNode(tmp_path, now := node((THEIRS,)), "node-a")
    path = script(tmp_path, node((Instance("1g.10gb", 6), Instance("4g.40gb", 0))), now)
    assert run(fake, path).returncode == 0
    assert run(fake, path, "undo").returncode == 0
    assert fake.done() == ["create 0 4g.40gb:0", "dci 0 4g.40gb@0", "dgi 0 4g.40gb@0"]


def test_an_instance_of_another_size_is_another_instance(tmp_path: Path) -> None:
    fake, path = FakeNode(tmp_path, NOW, "node-a"), script(tmp_path, NEXT, NOW)
    fake.put(gi="0 2g.20gb 0 4 60 1\n")
    assert "created over 2g.20gb@0, which may not go" in run(fake, path, "check").stderr


def test_other_numbers_of_gpus_stop_it(tmp_path: Path) -> None:
    fake, path = FakeNode(tmp_path, NOW, "node-a"), script(tmp_path, NEXT, NOW)
    fake.put(gpu="0 GPU-1 on\n1 GPU-0 on\n")
    told = run(fake, path)
    assert (told.returncode, fake.done()) == (1, [])
    assert "GPU 0 is GPU-1, not GPU-0: the numbers have changed" in told.stderr


def test_what_a_telemetry_agent_holds_is_not_forced(tmp_path: Path) -> None:
    fake, path = FakeNode(tmp_path, NOW, "node-a", "busy"), script(tmp_path, NEXT, NOW)
    told = run(fake, path)
    assert told.returncode == 1
    assert fake.done() == ["dci 0 4g.40gb@0"]
    assert "In use by another client" in told.stderr
    assert "DCGM" in told.stderr
    assert fake.held == held(NOW)
    fake.put(fault="none")
    assert run(fake, path).returncode == 0
    assert fake.held == held(NEXT)


def test_success_without_effect_is_not_believed(tmp_path: Path) -> None:
    fake, path = FakeNode(tmp_path, NOW, "node-a", "noop"), script(tmp_path, NEXT, NOW)
    told = run(fake, path)
    assert told.returncode == 1
    assert "GPU 0: 2g.20gb@0 was not created" in told.stderr


def test_a_listing_that_lags_behind_is_awaited(tmp_path: Path) -> None:
    fake, path = FakeNode(tmp_path, NOW, "node-a", "late"), script(tmp_path, NEXT, NOW)
    told = run(fake, path)
    assert (told.returncode, told.stderr) == (0, ""), told
    assert fake.done()[2:] == ["create 0 2g.20gb:0", "create 1 3g.40gb:4"]
    assert fake.held == held(NEXT)


def test_half_an_instance_is_made_whole(tmp_path: Path) -> None:
    fake, path = FakeNode(tmp_path, NOW, "node-a", "hollow"), script(tmp_path, NEXT, NOW)
    told = run(fake, path)
    assert told.returncode == 0, told
    assert "give 2g.20gb@0 its compute instance" in told.stdout
    assert fake.held == held(NEXT)


def test_a_listing_that_it_does_not_know_stops_it(tmp_path: Path) -> None:
    fake, path = FakeNode(tmp_path, NOW, "node-a"), script(tmp_path, NEXT, NOW)
    fake.put(gi="0 4g.40gb 0 4 (60) 1\n")
    told = run(fake, path, "check")
    assert told.returncode == 1
    assert "in a way that this script does not know" in told.stderr


@pytest.mark.parametrize("fault", ["none", "reset"])
def test_mig_goes_on_and_off_with_a_reset_where_it_takes_one(tmp_path: Path, fault: str) -> None:
    whole, cut = node((), mode=Mode.WHOLE), node((Instance("3g.40gb", 4),))
    fake, path = FakeNode(tmp_path, whole, "node-a", fault), script(tmp_path, cut, whole)
    reset = ["reset 0"] if fault == "reset" else []
    assert "MIG would be switched on, with a reset" in run(fake, path, "check").stdout
    assert run(fake, path).returncode == 0
    assert fake.done() == ["mig 0 1", *reset, "create 0 3g.40gb:4"]
    assert run(fake, path, "undo").returncode == 0
    assert fake.done() == ["dci 0 3g.40gb@4", "dgi 0 3g.40gb@4", "mig 0 0", *reset]


def test_mig_is_not_switched_off_beside_what_is_not_ours(tmp_path: Path) -> None:
    fake = FakeNode(tmp_path, NOW, "node-a")
    path = script(tmp_path, node((), (), mode=Mode.WHOLE), None)
    told = run(fake, path)
    assert (told.returncode, fake.done()) == (1, [])
    assert "MIG cannot be switched off beside what is not ours: 4g.40gb@0" in told.stderr


# --- the GPU Operator -----------------------------------------------------------------------------


def operator_script(folder: Path) -> tuple[Path, str, str]:
    one, two = node((Instance("3g.40gb", 0),)), node((Instance("4g.40gb", 0),))
    text = export(two, "gpu-operator", ExportOptions(one)).files["nodes/node-a.sh"]
    path = folder / "node-a.sh"
    path.write_text(text, encoding="utf-8")
    names = {
        line.partition("=")[0]: line.partition("=")[2].strip("'")
        for line in text.splitlines()
        if line.startswith(("wanted=", "former="))
    }
    return path, names["wanted"], names["former"]


def test_a_node_is_cordoned_drained_labelled_awaited_and_opened_again(tmp_path: Path) -> None:
    path, wanted, former = operator_script(tmp_path)
    fake = FakeCluster(tmp_path)
    told = run(fake, path)
    assert told.returncode == 0, told
    assert [line.split()[0] for line in fake.done()] == [
        "label", "cordon", "drain", "label", "uncordon", "label"
    ]  # fmt: skip
    assert fake.says("config") == wanted
    assert (fake.says("closed"), fake.says("cordoned")) == ("", "")
    assert run(fake, path).returncode == 0
    assert fake.done() == []
    assert run(fake, path, "undo").returncode == 0
    assert fake.says("config") == former


def test_a_node_stays_closed_where_something_fails_and_opens_when_it_is_mended(
    tmp_path: Path,
) -> None:
    path, wanted, _ = operator_script(tmp_path)
    fake = FakeCluster(tmp_path, answer="failed")
    fake.put(drain="1")
    assert "could not be drained and stays cordoned" in run(fake, path).stderr
    assert (fake.says("config"), fake.says("closed")) == ("all-disabled", "true")
    fake.put(drain="0")
    assert "mig-manager has failed" in run(fake, path).stderr
    assert "does not try again by itself" in run(fake, path).stderr
    fake.put(answer="pending\n", state="pending\n")
    assert "has not said success after 3 looks" in run(fake, path).stderr
    fake.put(state="success\n")
    assert run(fake, path).returncode == 0
    assert (fake.says("config"), fake.says("closed")) == (wanted, "")


DRAINS = {
    "cannot delete Pods with local storage (use --delete-emptydir-data to override): team/a": [
        "--delete-emptydir-data'"
    ],
    "cannot delete Pods that declare no controller (use --force to override): team/b": ["--force'"],
    "cannot delete Pods with local storage (use --delete-emptydir-data to override): team/a, "
    "cannot delete Pods that declare no controller (use --force to override): team/b": [
        "--delete-emptydir-data'", "--force'"
    ],
    "Warning: deleting Pods that declare no controller: team/b; deleting Pods with local storage: "
    """team/a; ignoring DaemonSet-managed Pods: kube-system/d; error when evicting pods/"c": """
    "Cannot evict pod as it would violate the pod's disruption budget.": ["PodDisruptionBudget"],
    'error when evicting pods/"c" -n "team" (will retry after 5s): Cannot evict pod as it would '
    "violate the pod's disruption budget.": ["PodDisruptionBudget"],
    'error when waiting for pod "d" in namespace "team" to terminate: global timeout reached: 8s': [
        "--timeout allows"
    ],
    "Unable to connect to the server: dial tcp: i/o timeout": [],
}  # fmt: skip


@pytest.mark.parametrize(("complaint", "helps"), DRAINS.items(), ids=range(len(DRAINS)))
def test_a_drain_that_fails_is_told_what_helps_against_its_reason_alone(
    tmp_path: Path, complaint: str, helps: list[str]
) -> None:
    path, _, _ = operator_script(tmp_path)
    fake = FakeCluster(tmp_path)
    fake.put(drain="1", drain_says=f"error: {complaint}\n")
    told = run(fake, path)
    advice = told.stderr.replace(complaint, "")
    assert (told.returncode, complaint in told.stderr) == (1, True), told
    every = ("--delete-emptydir-data'", "--force'", "PodDisruptionBudget", "--timeout allows")
    assert [each for each in every if each in advice] == helps, told
    assert "kubectl uncordon" in advice


def test_a_node_that_somebody_else_cordoned_stays_so(tmp_path: Path) -> None:
    path, _, _ = operator_script(tmp_path)
    fake = FakeCluster(tmp_path)
    fake.put(closed="true\n")
    told = run(fake, path)
    assert told.returncode == 0
    assert "somebody else has cordoned it" in told.stdout
    assert fake.says("closed") == "true"


# --- Slurm and mig-parted -------------------------------------------------------------------------


def slurm_folder(folder: Path) -> FakeSlurm:
    now, target = node((Instance("3g.40gb", 0),)), node((Instance("4g.40gb", 0),))
    for path, text in export(target, "slurm", ExportOptions(now)).files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return FakeSlurm(folder / "fake")


def test_slurm_drains_shrinks_cuts_grows_and_resumes(tmp_path: Path) -> None:
    fake = slurm_folder(tmp_path)
    told = run(fake, tmp_path / "slurm.sh", "node-a")
    assert (told.returncode, told.stderr) == (0, ""), told
    assert fake.done() == ["drain", "offer none", "apply", "offer gpu:a100_4g.40gb:1", "resume"]
    assert run(fake, tmp_path / "slurm.sh", "node-a").returncode == 0
    assert fake.done() == []
    assert "there is no nodes/node-b.conf" in run(fake, tmp_path / "slurm.sh", "node-b").stderr


def test_slurm_does_not_resume_what_somebody_else_drains_nor_what_is_not_cut(
    tmp_path: Path,
) -> None:
    fake = slurm_folder(tmp_path)
    fake.put(state="idle+drain broken fan\n", fault="noop")
    told = run(fake, tmp_path / "slurm.sh", "node-a")
    assert told.returncode == 1
    assert "it stays drained" in told.stderr
    assert fake.done() == ["offer none", "apply"]
    fake.put(fault="none")
    assert run(fake, tmp_path / "slurm.sh", "node-a").returncode == 0
    assert fake.done() == ["offer none", "apply", "offer gpu:a100_4g.40gb:1"]


def test_mig_parted_is_asked_before_and_after(tmp_path: Path) -> None:
    for path, text in export(NEXT, "mig-parted").files.items():
        (tmp_path / path).write_text(text, encoding="utf-8")
    fake = FakeSlurm(tmp_path / "fake")
    fake.put(fault="noop")
    assert "the GPUs are not as cms-" in run(fake, tmp_path / "apply.sh", "node-a").stderr
    fake.put(fault="none")
    assert run(fake, tmp_path / "apply.sh", "node-a").returncode == 0
    assert fake.done() == ["apply", "apply"]
    assert run(fake, tmp_path / "apply.sh", "node-a").returncode == 0
    assert fake.done() == []
    assert "not in nodes.csv" in run(fake, tmp_path / "apply.sh", "node-b").stderr


@pytest.mark.parametrize("name", ["apply.sh", "slurm.sh"])
def test_a_node_with_another_gpu_is_not_cut(tmp_path: Path, name: str) -> None:
    """Nor drained for it; what is known today alone says which GPUs are meant, too."""
    fake = slurm_folder(tmp_path)
    bare = replace(next(NOW.gpus()), uuid=None)
    written = export(Deployment((FleetNode("node-a", (bare,)),)), "mig-parted", ExportOptions(NOW))
    (tmp_path / "apply.sh").write_text(written.files["apply.sh"], encoding="utf-8")
    for others in ("0 GPU-9\n", ""):
        fake.put(gpu=others)
        told = run(fake, tmp_path / name, "node-a")
        assert (told.returncode, fake.done()) == (1, [])
        assert "GPU 0 is not GPU-0" in told.stderr


def test_two_deployments_of_other_gpus_are_not_written_over_each_other() -> None:
    card = replace(next(NEXT.gpus()), uuid="GPU-9")
    with pytest.raises(InvalidProblem, match="GPU-0 in the deployment of today and GPU-9 here"):
        export(NEXT.with_gpus({("node-a", 0): card}), "nvidia-smi", ExportOptions(NOW))


# --- all of them ----------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["mig-parted", "gpu-operator", "nvidia-smi", "slurm"])
def test_scripts_are_what_a_shell_can_read(tmp_path: Path, target: str) -> None:
    shells = [shell for shell in ("sh", "dash") if shutil.which(shell)]
    written = export(NOW, target)
    for number, path in enumerate(written.executables):
        file = tmp_path / f"{number}.sh"
        file.write_text(written.files[path], encoding="utf-8")
        for shell in shells:
            told = subprocess.run([shell, "-n", file], capture_output=True, text=True, check=False)
            assert (told.returncode, told.stderr) == (0, ""), path
