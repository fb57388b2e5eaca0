"""``cms predictor train`` and ``cms share --predictor``: tables in, a proved plan out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.importers import write_measured_pairs
from cms.cli.app import run
from cms.fleet.sharing import write_profiles
from proofs_checks import checker
from tests.fleet.sharing.pairs import by_rule

ONLINE = (
    "gpu,device,sm_activity,memory_used_mib,model,count,slowdown_limit\n"
    "n1,slow,35,0,m1,40,\nn2,fast,35,0,m6,20,2\nn3,slow,35,0,m5,5,1.01\nn4,fast,99,0,m2,9,\n"
)
OFFLINE = "workload,memory_mib,count,model\ntrain,0,50,m7\nindex,0,30,m2\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pairs, profiles = by_rule()
    write_measured_pairs(pairs, tmp_path / "P.csv")
    write_profiles(profiles, tmp_path / "W.csv")
    (tmp_path / "O.csv").write_text(ONLINE, "utf-8")
    (tmp_path / "F.csv").write_text(OFFLINE, "utf-8")
    return tmp_path


def trained(folder: Path, *more: str) -> list[str]:
    profiles = f"--profiles={folder / 'W.csv'}"
    return ["predictor", "train", str(folder / "P.csv"), profiles, "--model", "ridge", *more]


def shared(folder: Path, *more: str) -> list[str]:
    tables = [f"--online={folder / 'O.csv'}", f"--offline={folder / 'F.csv'}"]
    return ["share", *tables, f"--predictor={folder / 'model.json'}", *more]


def test_a_predictor_is_trained_and_what_it_weighs_is_matched_and_rechecked(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, files = folder / "model.json", [str(folder / name) for name in ("p.json", "s.json")]
    assert run(trained(folder, "-o", str(model))) == 0
    told = capsys.readouterr()
    assert told.err == ""
    assert told.out.startswith("ridge on 13 features of 8 online and 8 offline models, seed 0\n")
    rows = [line.split() for line in told.out.splitlines() if line.startswith("throughput")]
    assert [row[1:3] for row in rows] == [
        ["pair", "256"], ["victim", "256"], ["aggressor", "256"]
    ]  # fmt: skip

    assert run(shared(folder, "--problem", files[0], "-o", files[1])) == 0
    told = capsys.readouterr()
    assert told.out.startswith("60 of 80 offline workloads on 74 GPUs, ")
    assert "predicted, with the ends of 95% intervals:\n" in told.out
    assert "the least upper end of a predicted slowdown is 1." in told.err
    assert told.err.count("nothing is placed there") == 1
    assert run(["check", *files]) == 0
    documents = [checker.parse_document(Path(name).read_text("utf-8")) for name in files]
    assert checker.check_sharing(*documents) == []
    capsys.readouterr()

    assert run(shared(folder, "--json")) == 0
    value = json.loads(capsys.readouterr().out)["value"]
    assert run(shared(folder, "--json", "--lower-end")) == 0
    assert 0 < json.loads(capsys.readouterr().out)["value"] < value


def test_forbidden_pairs_have_a_reason_and_the_limit_may_be_held_against_what_is_expected(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(trained(folder, "--model", "mean", "-o", str(folder / "model.json"), "-q")) == 0
    assert run(shared(folder, "--slowdown-limit", "1.6")) == 0
    upper = capsys.readouterr().out
    assert "at the upper end of what is predicted" in upper
    assert "by their weights" not in upper
    assert run(shared(folder, "--slowdown-limit", "1.6", "--limit-by", "expected")) == 0
    told = capsys.readouterr()
    assert "at the upper end of what is predicted" not in told.out
    assert "expected to be slowed down beyond the limit" in told.out
    assert "the least expected slowdown is 1." in told.err
    assert int(told.out.split(" of ")[0]) > int(upper.split(" of ")[0])


def test_a_workload_that_was_profiled_beside_the_probes_alone_is_matched(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It takes a profile with the same columns, which the first command writes."""
    model, seen = folder / "model.json", folder / "seen.csv"
    probes = ["--probe", "m0", "--probe", "m3", "--write-profiles", str(seen)]
    assert run(trained(folder, *probes, "-o", str(model))) == 0
    head, first = seen.read_text("utf-8").splitlines()[:2]
    assert "speed beside m0" in head
    new = folder / "new.csv"
    new.write_text(f"{head}\n{first.replace('m1,', 'novel,', 1)}\n", "utf-8")
    device = first.split(",")[1]
    (folder / "O.csv").write_text(ONLINE.split("\n")[0] + f"\nn1,{device},35,0,m1,40,\n", "utf-8")
    (folder / "F.csv").write_text(OFFLINE.replace(",m7", ",novel"), "utf-8")
    capsys.readouterr()
    assert run(shared(folder)) == 1
    assert "knows nothing of offline model 'novel'" in capsys.readouterr().err
    assert run(shared(folder, "--profiles", str(new))) == 0
    assert capsys.readouterr().out.startswith("40 of 80 offline workloads on 40 GPUs, ")


SHARE = "share --online O.csv --offline F.csv"
MISTAKES = {
    "predictor train P.csv -o P.csv": (2, "it is read as 'P.csv', and would be"),
    "predictor train P.csv --model rigde": (2, "nearest: 'ridge'"),
    "predictor train P.csv --write-profiles x": (2, "it goes with --probe"),
    "predictor train P.csv --probe m12": (1, "nothing was measured beside"),
    SHARE: (2, "none is given; expected one of"),
    f"{SHARE} --pairs P.csv --predictor x": (2, "--pairs and --predictor are both given"),
    f"{SHARE} --pairs P.csv --limit-by upper": (2, "--limit-by: it goes with --predictor"),
    f"{SHARE} --predictor P.csv": (1, "P.csv"),
}


@pytest.mark.parametrize("typed", MISTAKES)
def test_mistakes_are_named(
    typed: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    code, words = MISTAKES[typed]
    assert run(typed.split()) == code
    assert words in capsys.readouterr().err


def test_shares_that_it_was_not_trained_on_are_said(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(trained(folder, "-o", str(folder / "model.json"))) == 0
    assert run(shared(folder, "--margin", "50")) == 0
    words = "warning: the predictor was trained on shares of 30 to 60 %, and GPUs have 15 to 15 % "
    assert words in capsys.readouterr().err
