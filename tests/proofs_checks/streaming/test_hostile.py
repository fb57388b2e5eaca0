"""Whatever stands in a folder, the verdict is a sentence: no bytes end in a traceback."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from cms.files import problem_to_json
from proofs_checks.streaming.__main__ import main
from tests.proofs_checks.formal.random_plans import random_problem
from tests.proofs_checks.streaming.folders import sha256_of, write_plan, write_problem
from tests.proofs_checks.streaming.test_agreement import a_solution
from tests.property.mutation import mutant

JUNK: list[Any] = [
    None, True, 0, -1, 10**30, 2**30, 65_536, "", "x", "j0", "1/3", "0" * 64, [], [1], {}, {"a": 1},
]  # fmt: skip


def spoil_document(path: Path, draw: random.Random) -> None:
    document = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps(mutant(draw, document, {}, junk=JUNK)), "utf-8")


def spoil_bytes(path: Path, documents: list[Path], draw: random.Random) -> None:
    """Change bytes, and the SHA-256 with them."""
    before, data = sha256_of(path), bytearray(path.read_bytes())
    if draw.random() < 0.3:
        del data[draw.randrange(len(data)) :]
    else:
        data[draw.randrange(len(data))] = draw.choice([0, 48, 57, 58, 255])
    path.write_bytes(data)
    for document in documents:
        text = document.read_text("utf-8").replace(before, sha256_of(path))
        document.write_text(text, "utf-8")


@pytest.mark.parametrize("seed", range(30))
def test_every_verdict_is_a_sentence(
    seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    draw = random.Random(seed)
    problem = random_problem(draw)
    of = problem_to_json(problem)
    write_problem(tmp_path / "fleet", of)
    write_plan(tmp_path / "plan", a_solution(problem, draw), of)
    for way in range(8):
        fleet, plan = tmp_path / f"fleet-{way}", tmp_path / f"plan-{way}"
        shutil.copytree(tmp_path / "fleet", fleet)
        shutil.copytree(tmp_path / "plan", plan)
        documents = [fleet / "problem.json", plan / "solution.json"]
        files = sorted([*(fleet / "jobs").iterdir(), *(plan / "counts").iterdir()])
        if files and draw.random() < 0.4:
            spoil_bytes(draw.choice(files), documents, draw)
        else:
            spoil_document(draw.choice(documents), draw)
        status = main([str(fleet), str(plan)])
        told = capsys.readouterr()
        assert (status == 0) is (told.err == "")
        assert (told.out or told.err).startswith(str(plan))
