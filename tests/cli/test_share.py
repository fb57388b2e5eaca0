"""``cms share``: tables in, a proved plan out; and what is said of odd tables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cms.cli.app import run
from proofs_checks import checker
from tests.fleet.plans import words_of

ONLINE = (
    "gpu,device,sm_activity,memory_used_mib,memory_total_mib,model,slowdown_limit,count\n"
    "n1,a30,20.2,9000,24576,bert,1.2,400\nn2,a30,20.9,9000,24576,bert,1.2,100\n"
    "n3,a30,60,9000,24576,bert,,90\nn4,a30,97,9000,24576,bert,,10\n"
)
OFFLINE = (
    "workload,memory_mib,count,model,priority\n"
    "train,12000,300,resnet50,1\nindex,4000,500,,2\nhuge,30000,7,resnet50,1\n"
)
PAIRS = (
    "online_model,offline_model,device,share,offline_throughput,online_slowdown\n"
    "bert,resnet50,a30,20,0.3,1.05\nbert,resnet50,a30,70,0.7,1.15\n"
    "bert,index,a30,20,0.25,1.1\nbert,index,a30,90,0.5,1.15\n"
)


def typed(folder: Path, *more: str, **tables: str) -> list[str]:
    """The command, on tables in a folder."""
    texts = {"online": ONLINE, "offline": OFFLINE, "pairs": PAIRS, **tables}
    for name, text in texts.items():
        (folder / f"{name}.csv").write_text(text, "utf-8")
    named = [f"--{name}={folder / name}.csv" for name in texts]
    return ["share", *named, "--slowdown-limit", "1.4", *more]


def test_tables_become_a_report_and_files_that_both_checkers_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [str(tmp_path / name) for name in ("problem.json", "share.json")]
    assert run(typed(tmp_path, "--problem", files[0], "-o", files[1])) == 0
    told = capsys.readouterr()
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
    assert run(["check", *files]) == 0
    documents = [checker.parse_document(Path(name).read_text("utf-8")) for name in files]
    assert checker.check_sharing(*documents) == []


def test_options_reach_the_method_and_json_is_the_document(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(typed(tmp_path, "-m", "sharing_dedicated", "--json")) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["format"], said["method"]) == ("cms-sharing-solution", "sharing_dedicated")
    assert (said["status"], said["value"], said["plan"]) == ("feasible", 0, [])
    assert run(typed(tmp_path, "--option", "parts=2", "--margin", "20", "-q")) == 0
    assert capsys.readouterr().out == ""
    assert run(typed(tmp_path, "--option", "stay=-1")) == 2
    assert "stay is -1; expected a whole number from 0" in capsys.readouterr().err


def test_a_limit_that_is_odd_or_kept_nowhere_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*typed(tmp_path)[:4], "--slowdown-limit", "0.9"]) == 2
    assert "--slowdown-limit: it is 0.9" in capsys.readouterr().err
    assert run([*typed(tmp_path)[:4], "--slowdown-limit", "1.04"]) == 0
    words = "the slowdown limit of 'bert' on 'a30' is 1.04, and the least slowdown measured is 1.05"
    assert capsys.readouterr().err.count(words) == 1


def test_named_gpus_get_what_the_plan_has_for_their_classes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    online = ONLINE.replace(",count", ",count,running")
    online = "".join(
        line + ("\n" if place == 0 else f",{'train' if place == 3 else ''}\n")
        for place, line in enumerate(online.splitlines())
    )
    online += "n5,a30,60,9000,24576,bert,,3,index\n"
    table, picture = tmp_path / "gpus.csv", tmp_path / "plan.svg"
    more = "--assign", str(table), "--picture", str(picture), "--option", "stay=400000"
    assert run(typed(tmp_path, *more, online=online)) == 0
    assert capsys.readouterr().out.startswith("593 of 807 offline workloads on 603 GPUs")
    assert table.read_text("utf-8") == (
        "gpu,workload,share,count,stays\n"
        "n1,index,69,400,no\nn2,index,69,97,no\nn2,train,69,3,no\n"
        "n3,train,30,90,yes\nn4,,0,10,no\nn5,index,30,3,yes\n"
    )
    drawn = picture.read_text("utf-8")
    assert drawn.startswith("<svg")
    assert words_of(drawn).count(" × ") == 5, "each use"


def test_waiting_counts_where_a_scale_is_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    offline = "workload,memory_mib,count,model,waiting_s\ntrain,0,600,resnet50,0\nindex,0,600,,{}\n"
    for waited, placed in ((0, {"train": 590}), (7200, {"index": 590})):
        table = offline.format(waited)
        assert run(typed(tmp_path, "--waiting-scale", "1800", "--json", offline=table)) == 0
        counts: dict[str, int] = {}
        for pair in json.loads(capsys.readouterr().out)["plan"]:
            counts[pair["offline"]] = counts.get(pair["offline"], 0) + pair["count"]
        assert counts == placed
    assert run(typed(tmp_path, "--waiting-scale", "0")) == 2
    assert "--waiting-scale: it is 0; expected seconds > 0" in capsys.readouterr().err
    assert run(typed(tmp_path, "--waiting-scale", "1800")) == 1
    assert "waiting_s" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--assign", "online.csv"], "--assign: 'online.csv': it is read"),
        (["-o", "./pairs.csv"], "--output: 'pairs.csv': it is read"),
        (["-o", "x.json", "--problem", "x.json"], "--problem: 'x.json': --output writes it, too"),
    ],
)
def test_no_file_is_lost(
    more: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    command = typed(tmp_path, *more)
    assert run(command) == 2
    assert words in " ".join(capsys.readouterr().err.split())
    assert (tmp_path / "online.csv").read_text("utf-8") == ONLINE
    assert not (tmp_path / "x.json").exists()
    assert run([*typed(tmp_path), "-q", "-o", "/dev/null", "--problem", "/dev/null"]) == 0
