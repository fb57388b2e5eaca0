"""``cms colocate``: tables or a trained predictor in, a proved plan out; and a day of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cms.files.documents import parse_document
from cms.fleet.simulation.colocation_loop.day import shared_day_from_json
from proofs_checks import checker
from tests.cli.shared import MATCH, ONLINE, Cms, flat
from tests.files.test_schemas import require_valid
from tests.fleet.plans import words_of

PAIRS = f"{MATCH} --pairs pairs.csv"


def both_checkers_pass(cms: Cms) -> None:
    files = ("problem.json", "share.json")
    cms("check", " ".join(files))
    documents = [checker.parse_document(Path(each).read_text("utf-8")) for each in files]
    assert checker.check_colocation(*documents) == []


def settings(text: str) -> None:
    Path("fleet.toml").write_text(f"[colocation]\n{text}\n", "utf-8")


# --- by measured pairs ----------------------------------------------------------------------------


def test_tables_become_a_report_and_files_that_both_checkers_pass(here: Path, cms: Cms) -> None:
    told = cms(PAIRS, "--problem problem.json -o share.json")
    for line in (
        "590 of 807 offline workloads on 600 GPUs, 277 of at most 277 GPU-equivalents: optimal,",
        "a30 21%, bert, 9000 MiB, limit 1.2   500      21 %   69 %    500         + 0.3",
        "a30 21%, bert, 9000 MiB, limit 1.2  index   500   0.25     1.135     1.15",
        "index                500     500          0              + 0.2",
        "forbidden pairs of classes: 2 for want of memory, 3 for want of a share",
        "price of bucketing: none; with activities as they are no plan is worth more",
    ):
        assert line in told.out
    assert told.err == (
        "warning: 'huge' needs 30,000 MiB, and no GPU has more than 15,576 MiB left: it is not "
        "placed\n"
    )
    both_checkers_pass(cms)
    cms(PAIRS, "-q -o /dev/null --problem /dev/null")


def test_method_is_chosen_and_json_is_the_document(here: Path, cms: Cms) -> None:
    said = cms(PAIRS, "-m colocation_dedicated --json").json
    assert (said["format"], said["method"]) == ("cms-colocation-solution", "colocation_dedicated")
    assert (said["status"], said["value"], said["plan"]) == ("feasible", 0, [])
    assert cms(PAIRS, "--option parts=2 -q").out == ""


def test_limit_that_is_kept_nowhere_is_said(here: Path, cms: Cms) -> None:
    (here / "online.csv").write_text(ONLINE.replace(",1.2,", ",1.04,"), "utf-8")
    words = "the slowdown limit of 'bert' on 'a30' is 1.04, and the least slowdown measured is 1.05"
    assert cms(PAIRS).err.count(words) == 1


def test_named_gpus_get_what_the_plan_has_for_their_classes(here: Path, cms: Cms) -> None:
    head, *rows = ONLINE.splitlines()
    running = [f"{line},{'train' if place == 2 else ''}" for place, line in enumerate(rows)]
    more = "n5,a30,60,9000,24576,bert,1.4,3,index"
    lines = [f"{head},running", *running, more]
    (here / "online.csv").write_text("\n".join(lines) + "\n", "utf-8")
    said = cms(PAIRS, "--assign gpus.csv --picture plan.svg --option stay=400000").out
    assert said.startswith("593 of 807 offline workloads on 603 GPUs")
    assert (here / "gpus.csv").read_text("utf-8") == (
        "gpu,workload,share,count,stays\n"
        "n1,index,69,400,no\nn2,index,69,97,no\nn2,train,69,3,no\n"
        "n3,train,30,90,yes\nn4,,0,10,no\nn5,index,30,3,yes\n"
    )
    drawn = (here / "plan.svg").read_text("utf-8")
    assert drawn.startswith("<svg")
    assert words_of(drawn).count(" × ") == 5, "each use"


# --- by a predictor -------------------------------------------------------------------------------

TRAIN = "colocate train P.csv --profiles=W.csv --model ridge -o model.json"
LEARNT = f"{MATCH} --predictor model.json"
GPUS = (
    "gpu,device,sm_activity,memory_used_mib,model,count,slowdown_limit\n"
    "n1,slow,35,0,m1,40,\nn2,fast,35,0,m6,20,2\nn3,slow,35,0,m5,5,1.01\nn4,fast,99,0,m2,9,\n"
)
JOBS = "workload,memory_mib,count,model\ntrain,0,50,m7\nindex,0,30,m2\n"


@pytest.fixture
def folder(here: Path) -> Path:
    (here / "online.csv").write_text(GPUS, "utf-8")
    (here / "offline.csv").write_text(JOBS, "utf-8")
    return here


def test_predictor_is_trained_matched_with_and_rechecked(folder: Path, cms: Cms) -> None:
    told = cms(TRAIN)
    assert told.err == ""
    assert told.out.startswith("ridge on 13 features of 8 online and 8 offline models, seed 0\n")
    rows = [line.split() for line in told.out.splitlines() if line.startswith("throughput")]
    assert [row[1:3] for row in rows] == [
        ["pair", "256"], ["victim", "256"], ["aggressor", "256"]
    ]  # fmt: skip
    told = cms(LEARNT, "--problem problem.json -o share.json")
    assert told.out.startswith("60 of 80 offline workloads on 74 GPUs, ")
    assert "predicted, with the ends of 95% intervals:\n" in told.out
    assert "the least upper end of a predicted slowdown is 1." in told.err
    assert told.err.count("nothing is placed there") == 1
    both_checkers_pass(cms)
    value = cms(LEARNT, "--json").json["value"]
    settings("lower_end = true")
    assert 0 < cms(LEARNT, "--json").json["value"] < value
    settings("margin = 50")
    words = "warning: the predictor was trained on shares of 30 to 60 %, and GPUs have 15 to 15 % "
    assert words in cms(LEARNT).err
    assert "it is read as 'P.csv', and would be" in cms(f"{TRAIN} -o P.csv", code=2).error


def test_limit_may_be_held_against_what_is_expected(folder: Path, cms: Cms) -> None:
    cms(TRAIN, "--model mean -q")
    (folder / "online.csv").write_text(GPUS.replace(",40,", ",40,1.6").replace(",9,", ",9,1.6"))
    upper = cms(LEARNT).out
    assert "at the upper end of its interval" in upper
    assert "by their weights" not in upper
    settings('limit_by = "expected"')
    told = cms(LEARNT)
    assert "at the upper end of its interval" not in told.out
    assert "expected to be slowed down beyond the limit" in told.out
    assert "the least expected slowdown is 1." in told.err
    assert int(told.out.split(" of ")[0]) > int(upper.split(" of ")[0])


def test_workload_profiled_beside_the_probes_alone_is_matched(folder: Path, cms: Cms) -> None:
    """It takes a profile with the same columns, which the first command writes."""
    cms(TRAIN, "--probe m0 --probe m3 --write-profiles seen.csv")
    head, first = (folder / "seen.csv").read_text("utf-8").splitlines()[:2]
    assert "speed beside m0" in head
    novel = f"{head}\n{first.replace('m1,', 'novel,', 1)}\n"
    (folder / "new.csv").write_text(novel, "utf-8")
    gpus = GPUS.split("\n")[0] + f"\nn1,{first.split(',')[1]},35,0,m1,40,\n"
    (folder / "online.csv").write_text(gpus, "utf-8")
    (folder / "offline.csv").write_text(JOBS.replace(",m7", ",novel"), "utf-8")
    assert "knows nothing of offline model 'novel'" in cms(LEARNT, code=1).err
    said = cms(LEARNT, "--profiles new.csv").out
    assert said.startswith("40 of 80 offline workloads on 40 GPUs, ")


# --- a day of it ----------------------------------------------------------------------------------

DAY = "simulate share.json --problem sharing.json"


@pytest.fixture
def day(here: Path) -> Path:
    Path("fleet.toml").write_text(
        "[colocation.day]\nhours = 1\nsample = 0\njob_hours = 50\n", "utf-8"
    )
    return here


def test_day_is_told_and_written(day: Path, cms: Cms) -> None:
    told = cms(DAY, "--truth pairs.csv -o day.json").flat
    assert told.startswith("share.json policy offline a GPU slowdown p99 shared over limit")
    assert "600 GPUs for 1 h, with the monitor: the limit was met: " in told
    require_valid("colocation-day", json.loads((day / "day.json").read_text("utf-8")))
    found = shared_day_from_json(parse_document("day.json"))
    assert found.policies[0].name == "muxflow"
    assert found["muxflow"].starts >= 590  # what the plan has, and what was matched anew


def test_limit_that_is_broken_in_a_day_is_exit_code_1(day: Path, cms: Cms) -> None:
    slow = (day / "pairs.csv").read_text("utf-8").replace("1.15", "1.6").replace("1.1", "1.55")
    (day / "slow.csv").write_text(slow, "utf-8")
    with (day / "fleet.toml").open("a") as more:
        more.write("protection = false\n")
    document = cms(DAY, "--truth slow.csv --pairs pairs.csv --json", code=1).json
    assert (document["verdict"], document["terms"]["protection"]) == ("violated", False)


def test_trace_and_a_problem_alone_will_do_for_a_day(day: Path, cms: Cms) -> None:
    (day / "trace.csv").write_text("time,bert\n0,20\n600,25\n1200,20\n", "utf-8")
    said = cms("simulate sharing.json --truth pairs.csv --activity trace.csv").out
    assert flat(said).startswith("sharing.json ")
