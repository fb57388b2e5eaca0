"""``cms problem``: files, folders of jobs in Parquet, what is infeasible, blocks shared in time."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from cms import (
    Configuration,
    Job,
    MachineGroup,
    MachineType,
    Mix,
    MixPrices,
    PriceFunction,
    Problem,
    Proof,
    Schedule,
    Solution,
    Status,
    StopReason,
    TimeSharedJob,
    TimeSharedProblem,
    checker_for,
    open_problem,
    read_solution,
    write_problem,
    write_solution,
)
from cms.fleet.report.bars import draw_machines
from cms.fleet.report.problems import solved_page
from cms.fleet.report.proofs import find_reasons
from proofs_checks.checker import check_problem, check_schedule, check_solution, parse_document
from tests.cli.shared import Cms, flat
from tests.fleet.plans import printed, words_of

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


def test_problem_is_solved_drawn_and_improved_on(here: Path, cms: Cms) -> None:
    out = cms("problem solve problem.json --picture schedule.svg -o made.json").out
    assert out.startswith("problem.json\n2 jobs, 3 blocks, 2 configurations\n")
    said = "2 machines, lower bound 2: optimal, proof checked"
    assert said in out
    assert said in words_of((here / "schedule.svg").read_text("utf-8"))
    found = cms("problem solve problem.json --start made.json --time-limit 0 --json").json
    assert any(line["source"] == "start" and line["cost"] == 2 for line in found["history"])
    cms("problem solve problem.json -m cp_sat --option workers=1")
    assert cms("problem solve --published three-thirds --json").json["status"] == "optimal"


def test_name_of_a_million_letters_does_not_fill_the_terminal(tmp_path: Path, cms: Cms) -> None:
    job = Job("x" * 1_000_000, 1, {"7g": 1})
    problem = Problem(configurations=Configuration({"7g": 1}), jobs=[job])
    write_problem(problem, tmp_path / "long.json")
    assert 2_000 < len(cms("problem solve long.json").out) < 20_000


def test_infeasible_problem_says_why_and_what_would_do(tmp_path: Path, cms: Cms) -> None:
    """Three jobs need a machine each, of which there is one."""
    problem = Problem(
        configurations=Configuration({"b": 1}, "few"), jobs=[Job("x", 3, {"b": 1})],
        machine_types=[MachineType("few", limit=1)],
    )  # fmt: skip
    write_problem(problem, tmp_path / "few.json")
    said = cms("problem solve few.json", code=3)
    assert said.err == ""
    assert (
        "- the machines do not suffice: there are only 1 x few - 2 more few machines would do "
        "(proved fewest), or 33.3 % of every demand (proved most) infeasible, proof checked"
    ) in said.flat
    out = cms("problem solve few.json --json -o solution.json", code=3).out
    assert out == (tmp_path / "solution.json").read_text("utf-8")
    found = json.loads(out)["shortage"]
    assert 0 <= found.pop("seconds") < 10
    assert found == {
        "unservable": {}, "more_machines": {"few": 2}, "machines_at_least": 2,
        "machines_proof": "checked", "less_demand": "0.333", "too_much_demand": "0.334",
        "demand_proof": "checked",
    }  # fmt: skip
    assert cms("check few.json solution.json").out == "valid: infeasible, proof checked\n"
    assert read_solution("solution.json").certificate.proves_infeasible(problem)
    files = ("few.json", "solution.json")
    assert check_solution(*(parse_document(Path(each).read_text("utf-8")) for each in files)) == []


# --- folders --------------------------------------------------------------------------------------

HEAD = (
    '{"format": "cms-problem", "schema": 2, "jobs": [], "configurations": '
    '[{"blocks": {"1g": 7}}, {"blocks": {"3g": 2, "1g": 1}}]}'
)
PACK = "problem pack a.parquet b.parquet --head head.json -o fleet"


def written(path: str, /, **columns: Any) -> None:
    parquet.write_table(pyarrow.table(columns), path)


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    """Two files whose columns are of different kinds, and the head."""
    (tmp_path / "head.json").write_text(HEAD)
    many = {"demand": pyarrow.array(range(1, 401), "int32"), "1g": [0.75] * 400}
    written("a.parquet", **many, **{"3g": pyarrow.array([5] * 400, "int8")})
    exact = {"demand": ["1/3", "7.5"], "1g": [Decimal("0.1"), Decimal("2.25")]}
    written("b.parquet", **exact, **{"3g": pyarrow.array([0.1, 2.5], "float32")})
    return tmp_path


def test_tables_are_packed_solved_and_rechecked(jobs: Path, cms: Cms) -> None:
    said = cms(PACK).out
    assert said == "fleet: 402 jobs in 1 shard; next: cms problem solve fleet -o plan\n"
    last = [open_problem("fleet").row(job) for job in (400, 401)]
    demands = [Fraction(row.demand, row.denominator) for row in last]
    assert demands == [Fraction(1, 3), Fraction(15, 2)]
    # 0.1 of 32 bits is the shortest decimal of its own, not of the float of 64 bits beside it
    assert [Fraction(f, last[0].denominator) for f in last[0].supply] == [Fraction(1, 10)] * 2
    assert "status       optimal (checked proof)" in cms("problem solve fleet -o plan").out
    assert "optimal, proof checked" in cms("check fleet plan").out
    document = json.loads((jobs / "plan" / "solution.json").read_text())
    document["lower_bound"] = document["cost"] = document["cost"] - 1
    document["machine_count"] -= 1
    document["schedule"]["machines"][0]["count"] -= 1
    document["history"] = []
    (jobs / "plan" / "solution.json").write_text(json.dumps(document))
    assert "given to jobs" in cms("check fleet plan", code=1).out


@pytest.mark.usefixtures("jobs")
def test_folders_as_json_and_quiet(cms: Cms) -> None:
    said = cms(PACK, "--json").json
    assert (said["jobs"], said["shards"]) == (402, 1)
    assert said["problem_sha256"] == open_problem("fleet").sha256
    solution = cms("problem solve fleet -o plan --journal run --json").json
    assert solution["status"] == "optimal"
    assert sum(group["count"] for group in solution["schedule"]["machines"]) == solution["cost"]
    assert cms("check fleet plan --json").json["valid"]
    assert cms("problem solve fleet -q") == ("", "")


BAD: dict[str, dict[str, Any]] = {
    "row 1: job 'j1' has no 'demand'": {"demand": [1, None], "1g": [1, 2], "3g": [1, 2]},
    "no column '3g'; nearest: '3G'": {"demand": [1], "1g": [1], "3G": [2]},
    "has a column 'name', which is no block": {
        "demand": [1], "1g": [1], "3g": [2], "name": ["x"],
    },
    "a column '4g', which is no block": {"demand": [1], "1g": [1], "3g": [2], "4g": [2]},
    "bad.parquet: row 0: demand of job 'j0' is -1": {"demand": [-1], "1g": [1], "3g": [2]},
    "row 0: supply of block '1g' to job 'j0' is inf": {
        "demand": [1.0], "1g": [float("inf")], "3g": [2],
    },
    "holds bool": {"demand": [True], "1g": [1], "3g": [2]},
}  # fmt: skip


@pytest.mark.parametrize("words", BAD)
def test_bad_table_is_refused_and_leaves_nothing(tmp_path: Path, cms: Cms, words: str) -> None:
    (tmp_path / "head.json").write_text(HEAD)
    written("bad.parquet", **BAD[words])
    command = "problem pack bad.parquet --head head.json -o fleet"
    assert words in cms(command, code=1).error
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.parquet", "head.json"]


def test_what_is_not_there_or_does_not_fit_is_named(jobs: Path, here: Path, cms: Cms) -> None:
    cms(PACK, "-q")
    (here / "bare").mkdir()
    there = {path.name for path in here.iterdir()}
    for typed, code, words in (
        (PACK, 1, "is there already"),
        (PACK.replace("b.parquet", "nowhere").replace("fleet", "2"), 1, "nowhere: there is no"),
        (PACK.replace("fleet", "-"), 1, "a folder cannot be printed"),
        ("problem pack a.parquet --head problem.json -o 2", 2, "they come from the tables"),
        ("problem solve fleet/problem.json", 1, 'is "cms-problem-folder", expected "cms-problem"'),
        ("problem solve fleet --journal head.json", 1, "head.json: this is a file"),
        ("problem solve bare", 1, "has no problem.json"),
        (
            "problem solve fleet --picture x.svg",
            2,
            "--picture: it does not go with a problem folder",
        ),
        ("problem solve fleet --start problem.json", 2, "--start: it does not go with a problem"),
        ("problem solve fleet -m greedy", 2, "ShardedProblem"),
        ("check fleet fleet", 1, "has no solution.json"),
        ("check fleet", 2, "give its solution folder"),
        ("check fleet problem.json", 2, "give its solution folder"),
    ):
        assert words in cms(typed, code=code).error, typed
    assert {path.name for path in here.iterdir()} == there


# --- blocks that jobs share in time ---------------------------------------------------------------

PAIR = Configuration({"60": 1, "40": 1}, "machine")
SHARED = TimeSharedProblem(
    configurations=PAIR,
    jobs=[
        TimeSharedJob("resnet50", 250, "0.044", {"60": [(8, "0.012"), (16, "0.02")]}),
        TimeSharedJob("vgg16", 125, "0.052", {"60": [(4, "0.02")]}),
    ],
)
MIX = Mix({"resnet50": 8, "vgg16": 4})


def solved(mix: Any = MIX) -> Solution:
    """A solution that is proved optimal: one machine is needed and will do; in files as well."""
    solution = Solution(
        status=Status.OPTIMAL,
        proof=Proof.CHECKED,
        stop_reason=StopReason.PROVED,
        method="by hand",
        seconds=0.0,
        schedule=Schedule([MachineGroup(PAIR, {("60", mix): 1}, 1)]),
        cost=SHARED.cost_step,
        certificate=MixPrices({"60": 1}, functions={"resnet50": PriceFunction("3/10")}),
        lower_bound=SHARED.cost_step,
        claimed_bound=None,
        guarantee=None,
        history=(),
        problem_sha256=SHARED.sha256,
    )
    write_problem(SHARED, "shared.json")
    write_solution(solution, "solution.json")
    return solution


@pytest.mark.parametrize(
    ("mix", "words"),
    [
        (MIX, ""),
        (Mix({"resnet50": 16, "vgg16": 4}), "takes 0.06"),
        (Mix({"resnet50": 9, "vgg16": 4}), "an amount that was measured there: 8, 16"),
        ("vgg16", "a mix: Mix({'vgg16': amount}) for a job alone"),
    ],
)
def test_both_checkers_have_one_opinion_of_a_mix(mix: Any, words: str, cms: Cms) -> None:
    solved(mix)
    said = cms("check shared.json solution.json", code=int(bool(words)))
    expected = words or "valid: 1 machine, lower bound 1: optimal, proof checked"
    assert expected in said.flat
    problem, solution = (
        parse_document(Path(name).read_text("utf-8")) for name in ("shared.json", "solution.json")
    )
    assert check_problem(problem) == []
    assert bool(check_schedule(problem, solution["schedule"])) == bool(words)


def test_method_that_does_not_take_mixes_says_so(cms: Cms) -> None:
    solved()
    said = cms("problem solve shared.json --method greedy", code=2).error
    assert "this problem is of type TimeSharedProblem" in said


def test_report_shows_what_shares_a_block() -> None:
    solution = solved()
    said = flat(printed(solved_page(SHARED, solution, "two jobs")))
    assert "60 -> resnet50 x 8 + vgg16 x 4, 1 idle" in said
    assert "resnet50 250 250 0 % 1 x 60" in said
    (bar,) = draw_machines(solution.schedule, 5, SHARED)
    shown = {(box.profile, box.service, box.width) for box in bar.boxes}
    assert shown == {("40", None, 1), ("60", "resnet50 x 8 + vgg16 x 4", 1)}


def test_job_that_is_too_slow_is_said_to_be() -> None:
    job = TimeSharedJob("x", 1, "0.1", {"60": [(1, "0.06"), (2, "0.055")]})
    lost = SHARED.replace(jobs=[job, TimeSharedJob("y", 1, 1, {})])
    solution = replace(
        solved(),
        status=Status.INFEASIBLE,
        schedule=Schedule(),
        cost=None,
        certificate=checker_for(lost).first().certificate,
        problem_sha256=lost.sha256,
    )
    assert find_reasons(lost, solution) == (
        "job 'x': no batch meets its latency limit 0.1, even alone; the quickest, on 60, needs "
        "0.11",
        "job 'y': no batch of it was measured on any block",
    )
