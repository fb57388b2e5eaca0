"""``cms plan --interference``: shares that slow one another, plan files, both checkers."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cms import solve
from cms.cli.app import run
from cms.fleet.serving import Interference, NeighbourServing, Plan, read_plan, write_plan
from cms.fleet.serving.neighbours import pose_beside
from proofs_checks.checker import Fault
from proofs_checks.checker.__main__ import main as second
from proofs_checks.checker.interference import examine_beside
from proofs_checks.checker.problem import read_problem
from tests.cli.shared import POINTS, SERVICES, error_of
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


def rows_of(factors: dict[tuple[str, int, str, int], str]) -> str:
    return PAIRS + "".join(
        f"{own},a100-80gb,mps:50,{batch},{other},{taken},{factor}\n"
        for (own, batch, other, taken), factor in factors.items()
    )


@pytest.fixture
def asked(tmp_path: Path) -> list[str]:
    """The arguments of a plan under interference, but for the table of pairs."""
    (tmp_path / "s.csv").write_text(SERVICES + "chat,bert,1000,60\nsee,vgg,300,80\n")
    (tmp_path / "p.csv").write_text(
        POINTS + "bert,a100-80gb,mps:50,1,8,800,10\nvgg,a100-80gb,mps:50,1,8,400,20\n"
    )
    (tmp_path / "pairs.csv").write_text(rows_of(FACTORS))
    files = ["-s", str(tmp_path / "s.csv"), "-p", str(tmp_path / "p.csv")]
    return ["plan", *files, "--sharing", "time", "--interference", str(tmp_path / "pairs.csv")]


def test_a_plan_beside_neighbours_is_proved_drawn_written_and_rechecked_twice(
    asked: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, picture = tmp_path / "plan.json", tmp_path / "plan.svg"
    assert run([*asked, "--classes", "2", "-o", str(path), "--picture", str(picture)]) == 0
    out = capsys.readouterr().out
    assert "batches slow one another, by 4 pairs, in 2 classes" in " ".join(out.split())
    assert "2 GPUs, proved >= 2: optimal, proof checked" in out
    assert "by 4 pairs, in 2 classes" in words_of(picture.read_text("utf-8"))
    plan = read_plan(path)
    assert isinstance(plan.serving, NeighbourServing)
    assert plan.serving.classes == 2
    assert run(["check", str(path)]) == 0
    assert capsys.readouterr().out == "valid: 2 GPUs, proved >= 2: optimal, proof checked\n"
    assert second([str(path)]) == 0
    assert "beside its neighbours as well; of the problem that bounds" in capsys.readouterr().out


def test_pairs_that_were_not_measured_are_predicted_and_said_to_be(
    asked: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    used = {"bert": (60, 30), "vgg": (20, 50), "a": (10, 10), "b": (35, 5), "c": (5, 45)}
    (tmp_path / "used.csv").write_text(
        USED + "".join(f"{m},a100-80gb,mps:50,8,{a},{b}\n" for m, (a, b) in used.items())
    )
    told = {
        (own, 8, other, 8): str(1 + (2 * used[own][0] + 3 * used[other][1]) / 1000)
        for own in used for other in used if (own, other) != ("bert", "vgg")
    }  # fmt: skip
    (tmp_path / "pairs.csv").write_text(rows_of(told))
    assert run([*asked, "--utilisations", str(tmp_path / "used.csv"), "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert any(
        "1 of 25 slowdowns on a100-80gb is a prediction" in each for each in plan["warnings"]
    )
    slowdowns = {
        (pair["model"], pair["beside_model"]): pair["slowdown"]
        for pair in plan["sharing"]["interference"]["pairs"]
    }
    assert float(slowdowns["bert", "vgg"]) == 1.27  # 1 + (120 + 150) / 1000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--sharing", "time", "--classes", "2"], "--classes: it goes with --interference"),
        (["--sharing", "time", "--utilisations", "u"], "--utilisations: it goes with --interf"),
        (["--interference", "i.csv"], "--interference: it goes with --sharing time"),
        (
            ["--sharing", "time", "--interference", "i.csv", "--splits", "any"],
            "--splits: 'any': what slows a batch is measured beside one other share",
        ),
        (["--sharing", "time", "--interference", "i.csv", "--classes", "0"], "--classes"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    asked: list[str], options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*asked[:5], *options]) == 2
    assert message in capsys.readouterr().err


def test_a_pair_that_may_come_about_has_to_be_there(
    asked: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pairs.csv").write_text(rows_of(dict([*FACTORS.items()][:3])))
    assert run([*asked, "-q"]) == 1
    assert "first: vgg on a100-80gb, mps:50, batch 8, beside vgg, batch 8" in error_of(capsys)


# -- files: what was altered is found -------------------------------------------------------------


def _doubled(interference: dict[str, Any]) -> None:
    for pair in interference["pairs"]:
        pair["slowdown"] = 4


def _one_class_higher(interference: dict[str, Any]) -> None:
    interference["kinds"][0]["class"] += 1


def _longer_in_the_outer_problem(interference: dict[str, Any]) -> None:
    for job in interference["outer"]["problem"]["jobs"]:
        job["points"] = {b: [[a, 1] for a, _ in points] for b, points in job["points"].items()}


def _a_lost_configuration(interference: dict[str, Any]) -> None:
    interference["outer"]["problem"]["configurations"].pop()


def _a_higher_bound(interference: dict[str, Any]) -> None:
    interference["outer"]["solution"]["lower_bound"] += 1


def _counts(posed: NeighbourServing) -> bool:
    """Whether slowdowns of 4 are another problem: some batches can stand side by side."""
    table = Interference(dict.fromkeys(posed.interference.pairs, 4))
    other = pose_beside(posed.solo, table, posed.classes)
    ours = posed.problem, posed.outer, posed.ranks
    return (other.problem, other.outer, other.ranks) != ours


ALTERED: list[Callable[[dict[str, Any]], None]] = [
    _doubled, _one_class_higher, _longer_in_the_outer_problem, _a_lost_configuration,
    _a_higher_bound,
]  # fmt: skip


@pytest.mark.parametrize("seed", few(2, range(60)))
def test_both_checkers_find_what_was_altered(
    seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = random.Random(seed)
    posed = toy(rng, services=2).pose(rng.choice([1, 2, 3]))
    found = Plan(posed, solve(posed.problem), solve(posed.outer))
    path = tmp_path / "plan.json"
    write_plan(found, path)
    assert read_plan(path) == found
    assert (run(["check", str(path)]), second([str(path)])) == (0, 0)
    if not found.serving.ranks or found.solution.cost is None:  # type: ignore[union-attr]
        return
    for alter in ALTERED:
        document = json.loads(path.read_text())
        alter(document["sharing"]["interference"])
        (tmp_path / "altered.json").write_text(json.dumps(document))
        codes = (
            run(["check", str(tmp_path / "altered.json")]),
            second([str(tmp_path / "altered.json")]),
        )
        if alter is _doubled and not _counts(posed):
            assert codes == (0, 0)
            continue
        # slowdowns of 4 may leave a schedule valid, and classes that are others may prove as much
        assert codes in ((1, 1), (1, 0)) if alter in ALTERED[:2] else codes == (1, 1), alter
    capsys.readouterr()


def test_a_plan_whose_interference_was_taken_out_is_refused_by_both_checkers(
    asked: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.json"
    assert run([*asked, "-q", "-o", str(path)]) == 0
    document = json.loads(path.read_text())
    sharing = document["sharing"]
    for altered in (
        {**sharing, "interference": None},
        {key: value for key, value in sharing.items() if key != "interference"},
        None,
    ):
        path.write_text(json.dumps({**document, "sharing": altered}))
        capsys.readouterr()
        assert (run(["check", str(path)]), second([str(path)])) == (1, 1)
        assert "the plan tells of no interference" in capsys.readouterr().err


def test_the_second_checker_knows_of_one_other_share_alone(
    asked: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "plan.json"
    assert run([*asked, "-q", "-o", str(path)]) == 0
    document = json.loads(path.read_text())
    document["problem"]["configurations"].append({"blocks": {"mps:50": 3}})
    with pytest.raises(Fault, match="beside more than one other"):
        examine_beside(document, read_problem(document["problem"]))
