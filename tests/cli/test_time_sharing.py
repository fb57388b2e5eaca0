"""Plans whose services share instances in time: headroom, interference, files, both checkers."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cms import solve
from cms.cli.app import run
from cms.fleet.serving import (
    Interference,
    NeighbourServing,
    Plan,
    SharedServing,
    read_plan,
    write_plan,
)
from cms.fleet.serving.neighbours import pose_beside
from proofs_checks.checker import Fault
from proofs_checks.checker.__main__ import main as second
from proofs_checks.checker.interference import examine_beside
from proofs_checks.checker.problem import read_problem
from tests.cli.shared import POINTS, SERVICES, Cms
from tests.fleet import plans as mixes
from tests.fleet.plans import words_of
from tests.references.interference import toy
from tests.samples import few

PAIRS = "model,device,profile,batch,beside_model,beside_batch,slowdown\n"
USED = "model,device,profile,batch,l2_util,dram_util\n"
#: vgg slows bert, so that a GPU shared by both is short of chat.
FACTORS = {
    ("bert", 8, "bert", 8): "1.25",
    ("bert", 8, "vgg", 8): "1.4",
    ("vgg", 8, "bert", 8): "1.2",
    ("vgg", 8, "vgg", 8): "0.99",
}
PLAN = "plan -s s.csv -p p.csv --time-sharing"
FIRST_FIT = f"{PLAN} -m mix_first_fit --option orders=5"


def settings(text: str) -> None:
    Path("fleet.toml").write_text(f"[time_sharing]\n{text}\n", "utf-8")


@pytest.fixture
def two(tmp_path: Path) -> None:
    """Two services that share a GPU."""
    (tmp_path / "s.csv").write_text(
        SERVICES
        + "".join(f"{s.name},{s.model},{s.rate_rps},{s.latency_limit_ms}\n" for s in mixes.SERVICES)
    )
    (tmp_path / "p.csv").write_text(
        POINTS
        + "".join(
            f"{p.model},{p.device},{p.profile},1,{p.batch},{float(p.throughput_rps)},"
            f"{p.latency_ms}\n"
            for p in mixes.POINTS
        )
    )


@pytest.mark.usefixtures("two")
def test_shared_plan_is_printed_drawn_written_and_rechecked(tmp_path: Path, cms: Cms) -> None:
    settings('max_services = 2\nheadroom = "gpulet"')
    out = cms(FIRST_FIT, "--rule collect_then_run -o plan.json --picture plan.svg").out
    assert "blocks shared in time, collect_then_run" in out
    assert "planned/s" in out
    serving = read_plan("plan.json").serving
    assert isinstance(serving, SharedServing)
    assert (serving.sharing.rule.value, serving.sharing.max_services) == ("collect_then_run", 2)
    assert [job.demand for job in serving.problem.jobs] == [342, 289]
    assert (tmp_path / "plan.svg").read_text("utf-8").startswith("<svg")
    assert cms("check plan.json").out.startswith("valid: ")


def test_a_published_scenario_is_planned_by_each_rule_of_time_sharing(cms: Cms) -> None:
    said = cms("plan --published S1 --time-sharing --rule round_robin -m mix_first_fit").flat
    assert "blocks shared in time, round_robin" in said


# --- beside neighbours ----------------------------------------------------------------------------


def rows_of(factors: dict[tuple[str, int, str, int], str]) -> str:
    return PAIRS + "".join(
        f"{own},a100-80gb,mps:50,{batch},{other},{taken},{factor}\n"
        for (own, batch, other, taken), factor in factors.items()
    )


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    (tmp_path / "s.csv").write_text(SERVICES + "chat,bert,1000,60\nsee,vgg,300,80\n")
    (tmp_path / "p.csv").write_text(
        POINTS + "bert,a100-80gb,mps:50,1,8,800,10\nvgg,a100-80gb,mps:50,1,8,400,20\n"
    )
    (tmp_path / "pairs.csv").write_text(rows_of(FACTORS))
    settings('interference = "pairs.csv"')
    return tmp_path / "pairs.csv"


@pytest.mark.usefixtures("pairs")
def test_plan_beside_neighbours_is_rechecked_twice(
    tmp_path: Path, cms: Cms, capsys: pytest.CaptureFixture[str]
) -> None:
    settings('interference = "pairs.csv"\nclasses = 2')
    said = cms(PLAN, "-o plan.json --picture plan.svg")
    assert "batches slow one another, by 4 pairs, in 2 classes" in said.flat
    assert "2 GPUs, lower bound 2: optimal, proof checked" in said.out
    assert "by 4 pairs, in 2 classes" in words_of((tmp_path / "plan.svg").read_text("utf-8"))
    plan = read_plan("plan.json")
    assert isinstance(plan.serving, NeighbourServing)
    assert plan.serving.classes == 2
    assert cms("check plan.json").out == "valid: 2 GPUs, lower bound 2: optimal, proof checked\n"
    assert second(["plan.json"]) == 0
    assert "beside its neighbours as well; of the problem that bounds" in capsys.readouterr().out


def test_pairs_that_were_not_measured_are_predicted_and_said_to_be(pairs: Path, cms: Cms) -> None:
    used = {"bert": (60, 30), "vgg": (20, 50), "a": (10, 10), "b": (35, 5), "c": (5, 45)}
    Path("used.csv").write_text(
        USED + "".join(f"{m},a100-80gb,mps:50,8,{a},{b}\n" for m, (a, b) in used.items())
    )
    told = {
        (own, 8, other, 8): str(1 + (2 * used[own][0] + 3 * used[other][1]) / 1000)
        for own in used for other in used if (own, other) != ("bert", "vgg")
    }  # fmt: skip
    pairs.write_text(rows_of(told))
    settings('interference = "pairs.csv"\nutilisations = "used.csv"')
    plan = cms(PLAN, "--json").json
    words = "1 of 25 slowdowns on a100-80gb is a prediction"
    assert any(words in each for each in plan["warnings"])
    slowdowns = {
        (pair["model"], pair["beside_model"]): pair["slowdown"]
        for pair in plan["sharing"]["interference"]["pairs"]
    }
    assert float(slowdowns["bert", "vgg"]) == 1.27  # 1 + (120 + 150) / 1000


# --- files: what was altered is found -------------------------------------------------------------


def _counts(posed: NeighbourServing) -> bool:
    """Whether slowdowns of 4 are another problem: some batches can stand side by side."""
    table = Interference(dict.fromkeys(posed.interference.pairs, 4))
    other = pose_beside(posed.solo, table, posed.classes)
    ours = posed.problem, posed.outer, posed.ranks
    return (other.problem, other.outer, other.ranks) != ours


def _longer(interference: dict[str, Any]) -> None:
    """Make the batches of the outer problem longer."""
    for job in interference["outer"]["problem"]["jobs"]:
        job["points"] = {b: [[a, 1] for a, _ in points] for b, points in job["points"].items()}


ALTERED: dict[str, Callable[[dict[str, Any]], object]] = {
    "slowdowns": lambda it: [pair.update(slowdown=4) for pair in it["pairs"]],
    "a class": lambda it: it["kinds"][0].update({"class": it["kinds"][0]["class"] + 1}),
    "lengths": _longer,
    "a configuration": lambda it: it["outer"]["problem"]["configurations"].pop(),
    "a bound": lambda it: it["outer"]["solution"].update(
        lower_bound=it["outer"]["solution"]["lower_bound"] + 1
    ),
}


@pytest.mark.parametrize("seed", few(2, range(60)))
def test_both_checkers_find_what_was_altered(seed: int) -> None:
    rng = random.Random(seed)
    posed = toy(rng, services=2).pose(rng.choice([1, 2, 3]))
    found = Plan(posed, solve(posed.problem), solve(posed.outer))
    path = Path("plan.json")
    write_plan(found, path)
    assert read_plan(path) == found
    assert (run(["check", "plan.json"]), second(["plan.json"])) == (0, 0)
    if not posed.ranks or found.solution.cost is None:
        return
    for what, alter in ALTERED.items():
        document = json.loads(path.read_text())
        alter(document["sharing"]["interference"])
        Path("altered.json").write_text(json.dumps(document))
        codes = run(["check", "altered.json"]), second(["altered.json"])
        if what == "slowdowns" and not _counts(posed):
            assert codes == (0, 0)
            continue
        # slowdowns of 4 may leave a schedule valid, and classes that are others may prove as much
        loose = what in ("slowdowns", "a class")
        assert codes in ((1, 1), (1, 0)) if loose else codes == (1, 1), what


@pytest.mark.usefixtures("pairs")
def test_plan_without_its_interference_is_refused(
    cms: Cms, capsys: pytest.CaptureFixture[str]
) -> None:
    cms(PLAN, "-q -o plan.json")
    path = Path("plan.json")
    document = json.loads(path.read_text())
    sharing = document["sharing"]
    for altered in (
        {**sharing, "interference": None},
        {key: value for key, value in sharing.items() if key != "interference"},
        None,
    ):
        path.write_text(json.dumps({**document, "sharing": altered}))
        cms("check plan.json", code=1)
        assert second(["plan.json"]) == 1
        assert "the plan tells of no interference" in capsys.readouterr().err
    document["problem"]["configurations"].append({"blocks": {"mps:50": 3}})
    with pytest.raises(Fault, match="beside more than one other"):
        examine_beside(document, read_problem(document["problem"]))
