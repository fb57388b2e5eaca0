"""What is written into the folder of a transition, for each tool, and what is refused."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cms.cli.app import run
from cms.errors import InvalidProblem
from cms.fleet import OperatingPoint, Service
from cms.fleet.deployment import (
    Deployment,
    FleetGpu,
    FleetNode,
    Instance,
    Mode,
    StartSource,
    State,
    Work,
    write_deployment,
)
from cms.fleet.deployment.export import ExportOptions
from cms.fleet.deployment.transition import (
    Kept,
    Spare,
    Transition,
    What,
    read_transition,
    reversal,
    transition,
)
from cms.fleet.deployment.transition.folder import (
    TOOLS,
    FolderOptions,
    folder_of,
    on_the_way,
    open_starts,
    state_after,
    states,
    steps_of,
    summary,
)
from cms.fleet.serving import RULES
from cms.solving.solution import Proof
from tests.samples import few

from .acting import Site
from .cases import A30, A100, does, leg, on_node, planned, reached

WHOLE = [name for name in TOOLS if name != "nvidia-smi"]


@pytest.mark.parametrize("tool", TOOLS)
def test_every_script_is_a_script_and_every_step_has_its_document(tool: str) -> None:
    found = leg(0)[0] if tool == "nvidia-smi" else planned(5, tool)
    files = folder_of(found, FolderOptions(tool, max_parallel=3)).files
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
        assert set(told["capacity_rps"]) == {
            service for at in step.positions for service in found.actions[at].services
        }
        for part in step.parts:
            assert set(part.after) <= before
            assert state_after(found, part.name) is not None
            before.add(part.name)
    assert "mode=run first=1 last=" in files["run.sh"]
    assert "parallel=3" in files["run.sh"]
    assert "It is proved as well" in files["README.md"]
    assert (f"--tool {tool}" in files["README.md"]) is (tool != "nvidia-smi")
    opened = {"gpu-operator": "kubectl uncordon NODE", "slurm": "nodename=NODE state=resume"}
    for drains, command in opened.items():
        assert (command in files["README.md"]) == (drains == tool)


@pytest.mark.parametrize("tool", ["gpu-operator", "slurm"])
@pytest.mark.parametrize("seed", few(2, range(6)))
def test_a_node_that_is_drained_does_nothing_else_meanwhile(tool: str, seed: int) -> None:
    parts = [part for step in steps_of(planned(seed, tool), tool) for part in step.parts]
    ended: dict[str, set[str]] = {}
    for number, part in enumerate(parts):
        ended[part.name] = set(part.after).union(*(ended[name] for name in part.after))
        for other in parts[:number]:
            if part.node == other.node and (part.is_of_a_node or other.is_of_a_node):
                assert other.name in ended[part.name]
        assert part.is_of_a_node == part.repartitions


def test_the_configuration_of_a_part_names_what_the_part_stops_and_nothing_else() -> None:
    for tool, indices in (("mig-parted", 1), ("slurm", 2)):
        for part in (part for step in steps_of(planned(5, tool), tool) for part in step.parts):
            told = TOOLS[tool].tables(part, FolderOptions().export)
            if part.repartitions:
                listed = "".join(told["wanted_config"]).count("devices: [") and len(part.afters)
                assert listed == len(told["gpus"]) == indices


def test_where_a_mode_changes_with_a_reset_the_whole_node_is_one_part() -> None:
    other = FleetGpu("n", 1, A100, instances=(Instance("3g.40gb", 0),))
    now, then = (
        Deployment((FleetNode("n", (FleetGpu("n", 0, A100, mode, held), other)),))
        for mode, held in ((Mode.WHOLE, ()), (Mode.MIG, (Instance("7g.80gb", 0),)))
    )
    found = reached(now, then, tool="mig-parted")
    (part,) = (part for step in steps_of(found, "mig-parted") for part in step.parts)
    assert (part.name, len(part.cards)) == ("01-n-all", 2)


def test_a_node_whose_start_is_hidden_is_told_by_its_counts() -> None:
    found = planned(5, "mig-parted")
    target = open_starts(found, found.target)
    cut = {a.gpu for a in found.actions if a.what is What.REPARTITION}
    for card in target.gpus():
        is_open = (card.node, card.index) in cut and len(card.gpu.layouts_of(card.counts)) > 1
        assert (card.start_source is StartSource.UNKNOWN) == is_open
    last = len(states(found)) - 1
    assert state_after(found, str(last)) == open_starts(found, states(found)[-1])


def test_the_summary_counts_what_the_actions_do() -> None:
    found = leg(0)[0]
    words = summary(found, floor="90 %", max_parallel=2)
    assert words.headline.startswith("3 -> 12 GPUs, floor 90 %: ")
    assert sum(each.kept for each in words.services) == found.kept.count
    started = sum(len(action.adds) for action in found.actions)
    assert sum(each.started for each in words.services) == started
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
    found = reached(on_node([Instance("1g.6gb", 0, state=State.NO_COMPUTE_INSTANCE)]), on_node([]))
    assert len(found.actions) == 1
    back = reversal(found)
    assert (back.actions, back.spare.count) == ((), 0)
    assert "It is proved as well: 0 actions" in folder_of(found).files["README.md"]


def test_what_the_scripts_cannot_do_is_refused() -> None:
    now, then = on_node((), ()), on_node([does("a", "1g.6gb")], ())
    parts, whole = (
        transition(now, then, floor=0, tool=tool) for tool in ("nvidia-smi", "mig-parted")
    )
    assert isinstance(parts, Transition)
    assert isinstance(whole, Transition)
    for tool in WHOLE:
        with pytest.raises(InvalidProblem, match="cuts part of a GPU, which this tool cannot"):
            folder_of(parts, FolderOptions(tool))
    with pytest.raises(InvalidProblem, match="nvidia-smi cuts instance by instance"):
        folder_of(whole)
    assert [*reversal(whole).target.instances()] == []
    held = (Instance("1g.6gb"), does("a", "1g.6gb", None))
    blind = FleetGpu("n", 0, A30, instances=held, start_source=StartSource.UNKNOWN)
    now = replace(now, nodes=(FleetNode("n", (blind,)),))
    observe = "observe node 'n' with: nvidia-smi mig -lgi"
    for tool in ("mig-parted", "slurm"):
        with pytest.raises(InvalidProblem, match=observe):
            TOOLS[tool].refuse(now, ExportOptions())
    with pytest.raises(InvalidProblem, match=observe):
        folder_of(Transition(now, now, {}, (), Spare(0), Kept(0, 0, Proof.CHECKED)))


#: What a shell, its echo, printf, awk, sed or a list of files would make something of.
_HOSTILE = "$`'\"\\;&|<>*?[]{}()!#%~=@/.,:+-^ xn0\u00e9\u00a0"


def moved_services(names: Sequence[str]) -> tuple[Deployment, Deployment]:
    """Each service moves from one GPU to another, beside something that is not ours."""
    points = {
        name: OperatingPoint(f"of {name}", A30.key, "1g.6gb", 1, 4, 10, 100) for name in names
    }
    theirs = Instance("1g.6gb", 0, owner="pod team-x/a")

    def side(at: int) -> Deployment:
        held = tuple(
            Instance("1g.6gb", start, Work(name, points[name], Fraction(10)))
            for start, name in enumerate(names)
        )
        cards = (
            FleetGpu("n", 0, A30, instances=held if at == 0 else ()),
            FleetGpu("n", 1, A30, instances=held if at == 1 else ()),
            FleetGpu("n", 2, A30, instances=(theirs,)),
        )
        services = tuple(Service(name, points[name].model, 10, 1000) for name in names)
        return Deployment((FleetNode("n", cards),), services, RULES["half"])

    return side(0), side(1)


def names_stay_names(folder: Path, names: Sequence[str], tool: str = "nvidia-smi") -> None:
    """By the command, its scripts, and what a shell makes of what `--serving` prints."""
    folder.mkdir(parents=True, exist_ok=True)
    now, then = moved_services(names)
    files = [str(folder / name) for name in ("now.json", "then.json")]
    for side, file in zip((now, then), files, strict=True):
        write_deployment(side, file)
    out = folder / "a 'folder' of $HOME"
    way = ["apply", files[1], "--current", files[0], "-o", str(out), "--tool", tool, "-q"]
    assert run(way) == 0
    found = read_transition(out / "transition.json")
    site = Site(folder / "site", found.start, tool)
    site.write(found)  # so that it knows the work
    told = out / "ask.sh"
    told.write_text('set -- $(sh "${0%/*}/run.sh" --serving)\nprintf \'%s\\n\' "$@"\n', "utf-8")
    words = site.run(out, script="ask.sh").text.splitlines()
    if words != ["--what-serves-is-not-known"]:
        kinds, places = words[::2], words[1::2]
        assert kinds == ["--adopt"] * len(names)
        assert sorted(places) == sorted(f"n/0:{at}={name}@1x4" for at, name in enumerate(names))
        taken = run(["observe", files[0], *words, "--plan", str(out / "transition.json"), "-q"])
        assert taken == 0 or any(name != name.strip() for name in names)  # blanks of no shell
    ran = site.run(out)
    assert (ran.code, ran.error) == (0, ""), ran
    for name in names:
        assert f" stop {name} (1g.6gb-1x4) on GPU 0" in ran.text
    for gpu in (1, 0):
        there = [(at[1], work.service) for at, (work, _) in site.works.items()]
        assert sorted(there) == sorted((gpu, name) for name in names)
        assert site.nodes["n"].layout(2) == (("1g.6gb", 0),)
        assert site.run(out, "--undo", "1").code == 0


def test_no_name_is_more_than_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x").touch()
    names_stay_names(tmp_path / "1", ["a=b@c`touch${IFS}y`", "-n$(touch${IFS}y)\u00e9'"])
    names_stay_names(
        tmp_path / "2", ["x@1x4 --reclaim n/2:0", "\\033[1mred%s\\c'; touch y; ' & \" *"]
    )
    assert not [*tmp_path.rglob("y")]


@pytest.mark.long
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.text(_HOSTILE, min_size=1, max_size=8).filter(lambda name: name.strip("; ")),
        min_size=2, max_size=2, unique=True,
    ),
    st.sampled_from(["nvidia-smi", "mig-parted"]),
)  # fmt: skip
def test_no_name_at_all_is_more_than_a_name(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], tool: str
) -> None:
    names_stay_names(tmp_path_factory.mktemp("names"), names, tool)
