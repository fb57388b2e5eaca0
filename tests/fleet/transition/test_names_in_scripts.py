"""Names from documents in the scripts of transitions: whatever they are, they stay names."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cms.cli.app import run
from cms.fleet import OperatingPoint, Service
from cms.fleet.deployment import Deployment, FleetGpu, FleetNode, Instance, Work, write_deployment
from cms.fleet.deployment.transition import read_transition
from cms.fleet.serving import RULES

from .acting import Site
from .cases import A30

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
