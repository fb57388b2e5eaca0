"""The documents tell the truth: their code runs, their links lead somewhere, their tests exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = sorted(ROOT.glob("*.md")) + sorted((ROOT / "docs").rglob("*.md"))
CODE = [
    pytest.param(block.group(1), id=f"{document.name}-{number}")
    for document in DOCUMENTS
    for number, block in enumerate(
        re.finditer(
            r"^```python\n(.*?)^```$", document.read_text("utf-8"), re.MULTILINE | re.DOTALL
        )
    )
]


@pytest.mark.parametrize("code", CODE)
def test_the_python_in_a_document_runs(code: str) -> None:
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_a_relative_link_in_a_document_leads_to_a_file(document: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", document.read_text("utf-8"))
    relative = [link for link in links if "://" not in link]
    missing = [link for link in relative if not (document.parent / link).exists()]
    assert not missing


def test_every_test_the_readme_names_exists() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / "README.md").read_text("utf-8"))
    assert named, "the README names the test behind each promise"
    missing = [
        f"{path}::{test}"
        for path, test in named
        if not (ROOT / path).exists() or f"def {test}(" not in (ROOT / path).read_text("utf-8")
    ]
    assert not missing


def test_every_command_the_readme_names_exists() -> None:
    command_line = Path(sys.executable).with_name("cms")
    run = subprocess.run([command_line, "--help"], capture_output=True, text=True, check=True)
    named = set(re.findall(r"`cms ([a-z]+)", (ROOT / "README.md").read_text("utf-8")))
    assert named
    assert not {command for command in named if not re.search(rf"\b{command}\b", run.stdout)}
