"""The exported scripts, run against small fakes: what they do, and what they do not do twice."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from cms.fleet import get_gpu
from cms.fleet.deployment import Deployment, FleetGpu, FleetNode, Instance, Mode
from cms.fleet.deployment.export import ExportOptions, export
from tests.fleet.bridging import changes, stand_ins
from tests.fleet.bridging import run as run_on
from tests.fleet.stand_ins.machines import Ran, StandInNode

pytestmark = pytest.mark.skipif(shutil.which("sh") is None, reason="there is no sh here")
A100 = get_gpu("a100-80gb")
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


# --- nvidia-smi -----------------------------------------------------------------------------------


def ran(one: StandInNode, target: Deployment, now: Deployment | None, word: str = "") -> Ran:
    path = one.folder.parent / "node-a.sh"
    files = export(target, "nvidia-smi", ExportOptions(now)).files
    path.write_text(files["nodes/node-a.sh"], encoding="utf-8")
    return run_on(one, path, word)


def stand_in(folder: Path, now: Deployment, texts: str = "new") -> StandInNode:
    """A node that has these, and their UUIDs."""
    made = stand_ins(folder, now, texts=texts)["node-a"]
    for card in now.gpus():
        made.swap(card.index, card.uuid or "")
    return made


@pytest.mark.parametrize("texts", ["new", "old"])
def test_the_script_goes_there_and_back_and_does_nothing_twice(tmp_path: Path, texts: str) -> None:
    one = stand_in(tmp_path, NOW, texts)
    kept = [one.at(*place) for place in ((0, 4), (0, 6), (1, 0))]
    told = ran(one, NEXT, NOW, "check")
    assert (told.code, told.text.splitlines()) == (0, [
        "node-a: GPU 0: would destroy 4g.40gb@0",
        "node-a: GPU 0: would create 2g.20gb@0",
        "node-a: GPU 1: would create 3g.40gb@4",
    ])  # fmt: skip
    assert changes(one) == []
    assert ran(one, NEXT, NOW, "verify").code == 1
    for word, reached in (("", NEXT), ("", NEXT), ("verify", NEXT), ("undo", NOW), ("undo", NOW)):
        told = ran(one, NEXT, NOW, word)
        assert (told.code, told.error) == (0, ""), told
        assert [*map(sorted, one.layouts())] == [sorted(c.layout) for c in reached.gpus()]
    assert kept == [one.at(*place) for place in ((0, 4), (0, 6), (1, 0))]


def test_what_stands_in_the_way_and_may_not_go_stops_it_before_it_begins(tmp_path: Path) -> None:
    one = stand_in(tmp_path, NOW)
    for target, now, word, code, has in (
        (NEXT, None, "", 1, "2g.20gb@0 cannot be created over 4g.40gb@0"),
        (NEXT, None, "undo", 1, "what stood before was not known"),
        (NEXT, None, "undoo", 2, "usage"),
        (node((), (), mode=Mode.WHOLE), None, "", 1, "beside what is not ours: 1g.10gb@6"),
        (NEXT, node((Instance("2g.20gb", 4), THEIRS), ()), "check", 1, "4g.40gb@0, which may not"),
    ):
        told = ran(one, target, now, word)
        assert (told.code, has in told.error) == (code, True), told
    one.swap(0, "GPU-9")
    told = ran(one, NEXT, NOW)
    assert (told.code, "GPU 0 is GPU-9, not GPU-0" in told.error) == (1, True)
    assert changes(one) == []


def test_a_stranger_is_left_alone_and_what_becomes_ours_outlives_the_way_back(
    tmp_path: Path,
) -> None:
    beside = node((Instance("1g.10gb", 6), Instance("2g.20gb", 0)))
    one = stand_in(tmp_path / "a", beside)
    now, target = node((Instance("2g.20gb", 0),)), node((Instance("4g.40gb", 0),))
    assert "1g.10gb@6 is not in the tables" in ran(one, target, now, "check").text
    assert ran(one, target, now).code == 0
    assert {*one.layout(0)} == {("4g.40gb", 0), ("1g.10gb", 6)}
    one = stand_in(tmp_path / "b", now := node((THEIRS,)))
    target = node((Instance("1g.10gb", 6), Instance("4g.40gb", 0)))
    assert [ran(one, target, now, word).code for word in ("", "undo")] == [0, 0]
    assert one.layout(0) == (("1g.10gb", 6),)


def test_mig_goes_on_and_off_with_a_reset(tmp_path: Path) -> None:
    whole, cut = node((), mode=Mode.WHOLE), node((Instance("3g.40gb", 4),))
    one = stand_in(tmp_path, whole)
    assert "MIG would be switched on, with a reset" in ran(one, cut, whole, "check").text
    for word, mode, layout in (("", "Enabled", (("3g.40gb", 4),)), ("undo", "Disabled", ())):
        assert ran(one, cut, whole, word).code == 0
        assert (one.mode(0), one.layout(0)) == (mode, layout)


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
    told = run_fake(fake, path)
    assert told.returncode == 0, told
    assert [line.split()[0] for line in fake.done()] == [
        "label", "cordon", "drain", "label", "uncordon", "label"
    ]  # fmt: skip
    assert fake.says("config") == wanted
    assert (fake.says("closed"), fake.says("cordoned")) == ("", "")
    assert run_fake(fake, path).returncode == 0
    assert fake.done() == []
    assert run_fake(fake, path, "undo").returncode == 0
    assert fake.says("config") == former


def test_a_node_stays_closed_where_something_fails_and_opens_when_it_is_mended(
    tmp_path: Path,
) -> None:
    path, wanted, _ = operator_script(tmp_path)
    fake = FakeCluster(tmp_path, answer="failed")
    fake.put(drain="1")
    assert "could not be drained and stays cordoned" in run_fake(fake, path).stderr
    assert (fake.says("config"), fake.says("closed")) == ("all-disabled", "true")
    fake.put(drain="0")
    assert "mig-manager has failed" in run_fake(fake, path).stderr
    assert "does not try again by itself" in run_fake(fake, path).stderr
    fake.put(answer="pending\n", state="pending\n")
    assert "has not said success after 3 looks" in run_fake(fake, path).stderr
    fake.put(state="success\n")
    assert run_fake(fake, path).returncode == 0
    assert (fake.says("config"), fake.says("closed")) == (wanted, "")


DRAINS = {
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
    told = run_fake(fake, path)
    advice = told.stderr.replace(complaint, "")
    assert (told.returncode, complaint in told.stderr) == (1, True), told
    every = ("--delete-emptydir-data'", "--force'", "PodDisruptionBudget", "--timeout allows")
    assert [each for each in every if each in advice] == helps, told
    assert "kubectl uncordon" in advice


def test_a_node_that_somebody_else_cordoned_stays_so(tmp_path: Path) -> None:
    path, _, _ = operator_script(tmp_path)
    fake = FakeCluster(tmp_path)
    fake.put(closed="true\n")
    told = run_fake(fake, path)
    assert told.returncode == 0
    assert "somebody else has cordoned it" in told.stdout
    assert fake.says("closed") == "true"


_KUBECTL = r"""#!/bin/sh
cd "$FAKE" || exit 9
case $1 in
get)
    case $5 in
    *state*) cat state ;;
    *config*) cat config ;;
    *cordoned*) cat cordoned ;;
    *) cat closed ;;
    esac
    exit ;;
esac
echo "$*" >>log
case $1 in
cordon) echo true >closed ;;
uncordon) : >closed ;;
drain) cat drain_says >&2; exit "$(cat drain)" ;;
label)
    for word; do
        case $word in
        cms.cordoned=*) echo "${word#*=}" >cordoned ;;
        cms.cordoned-) : >cordoned ;;
        nvidia.com/mig.config=*) echo "${word#*=}" >config; cp answer state ;;
        esac
    done ;;
esac
"""


class FakeCluster:
    """A cluster of one node, whose mig-manager answers at once."""

    def __init__(self, folder: Path, answer: str = "success") -> None:
        self.folder = folder
        tool = folder / "kubectl"
        tool.write_text(_KUBECTL, encoding="utf-8")
        tool.chmod(0o755)
        self.put(log="", state="success\n", config="all-disabled\n", closed="", cordoned="")
        self.put(answer=f"{answer}\n", drain="0", drain_says="")

    def put(self, **tables: str) -> None:
        for name, text in tables.items():
            (self.folder / name).write_text(text, encoding="utf-8")

    def done(self) -> list[str]:
        """What has been changed since this was last asked."""
        log = (self.folder / "log").read_text(encoding="utf-8").splitlines()
        self.put(log="")
        return log

    def says(self, name: str) -> str:
        return (self.folder / name).read_text(encoding="utf-8").strip()


def run_fake(node: FakeCluster, script: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a script with the fake's tools first on the path, and without waiting."""
    path = f"{node.folder}{os.pathsep}{os.environ['PATH']}"
    env = {"PATH": path, "FAKE": str(node.folder), "CMS_PAUSE": "0", "CMS_TRIES": "3"}
    return subprocess.run(
        ["sh", str(script), *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=env,
        timeout=300,
        check=False,
    )
