"""Tables and files that the tests of the command line read."""

from __future__ import annotations

from pathlib import Path

import pytest

from cms.cli.app import run
from cms.files import write_problem
from cms.problem.parts import Configuration, Job
from cms.problem.problem import Problem
from tests.cli.fleets import CUT, LGI, LOG, put
from tests.cli.shared import POINTS, SERVICES


@pytest.fixture(autouse=True)
def _plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports have the same look wherever the tests run."""
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "CMS_TRACEBACK"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def tables(tmp_path: Path) -> list[str]:
    """Two services that fit on one GPU, and their operating points, as a user has them."""
    services, points = tmp_path / "services.csv", tmp_path / "points.csv"
    services.write_text(f"{SERVICES}chat,bert,100,100\n[red]see[/red],vgg16,50,100\n", "utf-8")
    points.write_text(
        f"{POINTS}bert,a100-80gb,3g.40gb,2,4,120,20\nvgg16,a100-80gb,4g.40gb,1,8,75.5,30\n"
        "vgg16,a100-80gb,7g.80gb,1,8,140,30\n",
        "utf-8",
    )
    files = ["--services", str(services), "--rule", "parvagpu", "--operating-points", str(points)]
    return ["plan", *files]


@pytest.fixture
def problem(tmp_path: Path) -> str:
    """A problem file of three jobs on two machines."""
    path = tmp_path / "problem.json"
    made = Problem(
        configurations=[Configuration({"4g": 1, "3g": 1}), Configuration({"7g": 1})],
        jobs=[
            Job("bert", 1200, {"3g": "310.5", "7g": 1300}),
            Job("vgg", 100, {"4g": 150, "7g": 150}),
        ],
    )
    write_problem(made, path)
    return str(path)


@pytest.fixture(scope="session")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two services on one GPU: chat on 3g.40gb, see on 4g.40gb."""
    folder = tmp_path_factory.mktemp("plan")
    (folder / "s.csv").write_text(f"{SERVICES}chat,bert,100,100\nsee,vgg,50,100\n", "utf-8")
    (folder / "p.csv").write_text(
        f"{POINTS}bert,a100-80gb,3g.40gb,2,4,120,20\nvgg,a100-80gb,4g.40gb,1,8,75.5,30\n", "utf-8"
    )
    tables = ["-s", str(folder / "s.csv"), "-p", str(folder / "p.csv"), "--rule", "parvagpu"]
    assert run(["plan", *tables, "-q", "-o", str(folder / "plan.json")]) == 0
    return folder / "plan.json"


@pytest.fixture
def nodes(tmp_path: Path) -> Path:
    path = tmp_path / "nodes.csv"
    path.write_text("node,gpu,count,zone\nnode-a,a100-80gb,2,east\nnode-b,a100-80gb,1,west\n")
    return path


@pytest.fixture
def target(plan: Path, nodes: Path, tmp_path: Path) -> Path:
    """The plan on the first GPU of the nodes."""
    path = tmp_path / "target.json"
    assert run(["place", str(plan), "--nodes", str(nodes), "-q", "-o", str(path)]) == 0
    return path


@pytest.fixture
def listings(tmp_path: Path) -> list[str]:
    """What nvidia-smi printed on node-a."""
    for name, text in (("lgi.txt", LGI), ("gpus.xml", LOG), ("cut.yaml", CUT)):
        put(tmp_path / name, text)
    return [f"node-a={tmp_path / name}" for name in ("lgi.txt", "gpus.xml")]
