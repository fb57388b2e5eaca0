"""``python -m proofs_checks.formal``, plans as theorems of Coq, and the files of the proofs."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cms.cli.app import run
from proofs_checks.checker.__main__ import main as second_checker
from proofs_checks.formal import program
from proofs_checks.formal.__main__ import main
from proofs_checks.formal.program import ROOT
from tests.families import FAMILIES
from tests.proofs_checks.documents import (
    INFEASIBLE,
    ONE_IS_TOO_FEW,
    SERVICES,
    SLICES,
    SOLUTION,
    Document,
    branch,
    changed,
    group,
    leaf,
    problem,
    solution,
)
from tests.property.test_mutants import solutions
from tests.samples import spread

SCENARIOS = ("S1", "S2", "S3", "S4", "S5", "S6")


def files(folder: Path, *documents: object) -> list[str]:
    paths = [folder / f"{at}.json" for at in range(len(documents))]
    for path, document in zip(paths, documents, strict=True):
        path.write_text(json.dumps(document), encoding="utf-8")
    return list(map(str, paths))


def planned(scenario: str, folder: Path) -> str:
    path = folder / f"{scenario}.json"
    assert run(["plan", "--published", scenario, "-q", "-o", str(path)]) == 0
    return str(path)


@pytest.mark.parametrize("scenario", spread(3, SCENARIOS))
def test_published_plans_and_their_theorems(
    scenario: str, built: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = planned(scenario, tmp_path)
    cost = json.loads(Path(plan).read_text(encoding="utf-8"))["solution"]["cost"]
    capsys.readouterr()
    for kind in program.KINDS:
        assert main([plan, "--integers", kind]) == 0
        assert f": optimal: the schedule is valid and costs {cost};" in capsys.readouterr().out
    assert main([plan, "--theorem"]) == 0
    proved_by_coq(capsys.readouterr().out, tmp_path, f"attained the_problem (Qmake ({cost}) 1)")


def proved_by_coq(text: str, folder: Path, claim: str) -> None:
    """Let Coq check a file: without axioms, and with this claim in its theorem."""
    assert f"Theorem plan_holds : {claim}" in text
    (folder / "Plan.v").write_text(text, encoding="utf-8")
    command = ["coqc", "-q", "-Q", str(program.BUILD), "CMS", "Plan.v"]
    found = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert found.stdout.strip() == "Closed under the global context"


def test_infeasibility_is_a_theorem_and_a_false_one_is_none(
    built: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = files(tmp_path, ONE_IS_TOO_FEW, INFEASIBLE)
    assert main(paths) == 0
    assert capsys.readouterr().out == f"{paths[-1]}: infeasible: there is no schedule\n"
    assert main([*paths, "--theorem"]) == 0
    text = capsys.readouterr().out
    proved_by_coq(text, tmp_path, "forall s, ~ valid the_problem s")
    # With a machine more there is a schedule, and Coq does not believe the opposite.
    false = re.sub(r"limit_of := \(Some \(1\)\)", "limit_of := (Some (2))", text)
    assert false != text
    with pytest.raises(AssertionError, match="while it is expected to have type"):
        proved_by_coq(false, tmp_path, "forall s, ~ valid the_problem s")


# A large machine counts 3/2, a small one 1/2, and all together 2. Two large ones would serve the
# job for 2, but count 3. At the prices 5/2 of both blocks and 1 of the limit no machine is worth
# more than it may be (1 + 3/2 and 2 + 1/2); the job pays for two blocks at least: 5 - 2 are proved.
# Each of these must cover 1 of the demand 4, and does.
LIMITED: Document = {
    **problem(
        [{"machine": "large", "blocks": {"l": 1}}, {"machine": "small", "blocks": {"s": 1}}],
        {"j": (4, {"l": 3, "s": 1})},
        [{"name": "large", "cost": 1}, {"name": "small", "cost": 2}],
    ),
    "group_limits": [{"name": "room", "weights": {"large": "3/2", "small": "1/2"}, "at_most": 2}],
}
LIMITED["jobs"][0]["replicas"] = {"count": 2, "share": "1/4"}
PAIR = [group({i[0]: 1}, [[i[0], "j", 1]], machine=i) for i in ("large", "small")]
ROOM: Document = {"prices": {"l": "5/2", "s": "5/2"}, "limit_prices": {"room": 1}}
GROUP, JOB = ("group_limits", 0), ("jobs", 0)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ((*GROUP, "weights", "large"), "3/2", None),
        ((*GROUP, "weights", "large"), 1, "rejected"),  # worth more than cost and limit
        ((*GROUP, "weights", "small"), 1, "rejected"),  # the schedule counts 5/2
        ((*GROUP, "at_most"), "9/4", None),  # no machines count more than 2
        ((*GROUP, "at_most"), "7/4", "rejected"),
        ((*GROUP, "at_most"), 3, "the certificate proves 2"),
        (("limit_prices", "room"), "3/2", "the certificate proves 2"),
        (("limit_prices", "room"), "1/2", "rejected"),
        (("limit_prices", "large"), 1, "which has no limit"),
        ((*JOB, "replicas", "count"), 1, None),
        ((*JOB, "replicas", "count"), 3, "rejected"),
        ((*JOB, "replicas", "share"), "1/3", "rejected"),
        ((*JOB, "routing"), "equal", "equal routing; the proved checker knows weighted"),
    ],
)
def test_limits_of_groups_and_replicas_and_forged_ones(
    path: tuple[Any, ...],
    value: Any,
    message: str | None,
    built: None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    of, tree = LIMITED, ROOM
    if path[0] == "limit_prices":
        tree = changed(ROOM, *path, to=value)
    else:
        of = changed(LIMITED, *path, to=value)
    paths = files(tmp_path, of, solution(of, PAIR, tree, cost=3, lower_bound=3))
    assert main(paths) == second_checker(paths) == (message is not None)
    captured = capsys.readouterr()
    assert (message or "costs 3; no schedule costs less") in captured.out + captured.err


def branched() -> Document:
    """A tree with every kind of branch, which proves as much as its leaves without."""
    tree = leaf(SLICES, *[0] * 5)
    for depth, on in enumerate(
        [
            {"machines_of_type": {"machine": 2}},
            {"machines_of": {"blocks": {"7g": 1}}},
            {"machines_with": {"blocks": {"4g": 1}}},
            {"blocks_of": "3g"},
            {"blocks_of_job": {"block": "7g", "job": "bert"}},
        ]
    ):
        above = leaf(SLICES, *[0] * (5 - depth))
        tree = branch(on, 1, tree, above)
    return tree


@pytest.mark.parametrize(
    ("of", "told"),
    [
        (LIMITED, solution(LIMITED, PAIR, ROOM, cost=3, lower_bound=3)),
        (SERVICES, changed(SOLUTION, "certificate", "tree", to=branched())),
    ],
)
def test_limits_replicas_and_branches_are_theorems(
    of: Document, told: Document, built: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*files(tmp_path, of, told), "--theorem"]) == 0
    proved_by_coq(capsys.readouterr().out, tmp_path, "attained the_problem (Qmake (3) 1)")


def test_what_the_command_says(
    built: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = files(tmp_path, SERVICES, SOLUTION)
    assert main(good) == 0
    assert "optimal: the schedule is valid and costs 3" in capsys.readouterr().out
    vague = changed(SOLUTION, "cost", to="three")
    assert main(files(tmp_path, SERVICES, vague)) == 1
    assert ": cost: 'three' is not a number" in capsys.readouterr().err
    other = changed(SOLUTION, "problem_sha256", to="0" * 64)
    assert main(files(tmp_path, SERVICES, other)) == 1
    assert "the problem_sha256 is not this problem's" in capsys.readouterr().err


@pytest.mark.parametrize("family", spread(3, FAMILIES))
def test_false_claims_are_refused_as_by_the_second_checker(
    family: str, built: None, tmp_path: Path
) -> None:
    passed = 0
    for documents in solutions(family, range(2)):
        paths = files(tmp_path, *documents)
        code = main(paths)
        assert code == second_checker(paths), documents
        passed += not code
    assert passed


def test_what_is_refused_before_anything_is_proved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = dict.fromkeys(("1g", "2g", "3g", "4g", "7g"), 1)
    tree: Document = {"prices": {}, "multipliers": ["1"] * 3}
    for above in (2, 1, 0):
        leaf = {"prices": {}, "multipliers": ["1"] * (above + 1)}
        content = {"machines_with": {"blocks": named}}
        tree = {"branch": content, "at_most": 9, "below": tree, "above": leaf}
    for told, message in [
        (changed(SOLUTION, "certificate", "tree", to=tree), "name 15 blocks above a leaf"),
        ({**SOLUTION, "status": "best"}, "the status is 'best'"),
        ({**SOLUTION, "status": "no_schedule"}, "there is a schedule"),
        ({**SOLUTION, "best": True}, "the unknown key 'best'"),
    ]:
        assert main(files(tmp_path, SERVICES, told)) == 1
        found = capsys.readouterr()
        assert (found.out, found.err.count("\n")) == ("", 1)
        assert message in found.err


def test_a_plan_whose_blocks_are_beside_others_needs_its_interference(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = {"a (1 beside 2)": 1}
    of = problem([{"blocks": one}], {"j": (1, one)})
    told = solution(of, [group(one, [[*one, "j", 1]])], {"prices": one})
    plan = {"format": "cms-plan", "schema": 2, "problem": of, "solution": told}
    assert main(files(tmp_path, plan)) == second_checker(files(tmp_path, plan)) == 1
    assert capsys.readouterr().err.count("tells of no interference") == 2


def test_files_that_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "none.json")]) == 2
    assert "No such file" in capsys.readouterr().err
    path = tmp_path / "text.json"
    path.write_text("{", encoding="utf-8")
    good = files(tmp_path, SERVICES)[0]
    for paths in ([str(path)], [str(path), good], [good, str(path)]):
        assert main(paths) == 2
        assert capsys.readouterr().err.startswith(f"{path}: the document cannot be read")
    assert main(files(tmp_path, SERVICES)) == 1
    assert "not 'cms-plan'" in capsys.readouterr().err


def test_without_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(program, "BUILD", program.ROOT / "out" / "nowhere")
    assert main(files(tmp_path, SERVICES, SOLUTION)) == 2
    assert "'make formal' builds it, which takes Coq" in capsys.readouterr().err


def test_proofs_are_closed(make: Callable[[str], str]) -> None:
    """What Coq says of all theorems that the page names; 'make formal-axioms' asks the kernel."""
    make("proofs")
    rows = documented()
    files = " ".join(sorted({path.stem for path, _ in rows}))
    theorems = ", ".join(f"@{path.stem}.{name}" for path, named in rows for name in named)
    text = f"From CMS Require {files}.\nDefinition all := ({theorems}).\nPrint Assumptions all.\n"
    folder = program.BUILD / "assumptions"
    folder.mkdir(exist_ok=True)
    (folder / "Asked.v").write_text(text, encoding="utf-8")
    command = ["coqc", "-q", "-Q", "..", "CMS", "Asked.v"]
    found = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert found.stdout.strip() == "Closed under the global context", found.stderr


COQ = ROOT / "proofs_checks" / "formal" / "coq"
PAGE = ROOT / "docs" / "methods" / "proofs.md"
SOURCES = sorted(COQ.glob("*.v"))
ROW = re.compile(r"^\|[^|]*\| \[(\w+\.v)\]\(([^)]*)\) \| (.*) \| proved \|$", re.MULTILINE)


def without_comments(text: str) -> str:
    """Drop the comments, which may lie within one another, and texts, within which none begins."""
    kept, depth = [], 0
    for part in re.split(r'(\(\*|\*\)|"[^"]*")', text):
        if part == "(*":
            depth += 1
        elif part == "*)":
            depth -= 1
        elif not depth and not part.startswith('"'):
            kept.append(part)
    assert depth == 0
    return " ".join(kept)


def test_every_file_is_compiled() -> None:
    makefile = (COQ / "Makefile").read_text(encoding="utf-8")
    files = re.search(r"FILES := (.*?[^\\])\n", makefile, re.DOTALL)
    assert files is not None
    named = files[1].replace("\\\n", " ").split()
    assert sorted(named) == [p.stem for p in SOURCES if not p.stem.startswith("Extract")]


def documented() -> list[tuple[Path, list[str]]]:
    """The files that the page's table of what is proved names, and the theorems of each."""
    rows = ROW.findall(PAGE.read_text(encoding="utf-8"))
    return [
        ((PAGE.parent / link).resolve(), re.findall(r"`(\w+)`", theorems))
        for _, link, theorems in rows
    ]


@pytest.mark.parametrize("path", SOURCES, ids=[path.stem for path in SOURCES])
def test_no_file_assumes_anything(path: Path) -> None:
    code = without_comments(path.read_text(encoding="utf-8"))
    assumed = r"\b(Axioms?|Parameters?|Conjectures?|Admitted|admit|give_up|Abort)\b"
    assert re.findall(assumed, code) == []


def test_the_theorems_that_the_documents_name_are_there() -> None:
    rows = documented()
    assert len(rows) >= 16
    for path, named in rows:
        code = without_comments(path.read_text(encoding="utf-8"))
        found = set(re.findall(r"\b(?:Theorem|Lemma|Corollary)\s+(\w+)", code))
        assert named, path.name
        assert set(named) <= found, (path.name, named)
