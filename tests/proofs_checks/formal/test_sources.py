"""The Coq files, without Coq: nothing in them is assumed, and what the documents name is there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from proofs_checks.formal.program import ROOT

COQ = ROOT / "proofs_checks" / "formal" / "coq"
PAGE = ROOT / "docs" / "methods" / "proofs.md"
SOURCES = sorted(COQ.glob("*.v"))
# What makes a statement true without a proof, or switches the kernel's checks off.
ASSUMED = re.compile(
    r"\b(Axioms?|Parameters?|Conjectures?|Admitted|[Aa]dmit|give_up|Abort|bypass_check|Unset|"
    r"Primitive|Load|Extract\s+(Constant|Inlined|Inductive)|Extraction\s+Implicit|"
    r"Declare\s+(Module|ML)|Type\s+In\s+Type)\b"
)
# Of these a section makes premises; outside of one they are axioms.
PREMISES = re.compile(
    r"\s*(#\[[^]]*\]\s*|(Local|Global|Time)\s+)*(Variables?|Hypothes[ie]s|Context|Let)\b"
)
# Libraries without axioms, and what extraction is told of OCaml's own types.
REQUIRED = re.compile(r"\bRequire\s+(?:Import\s+|Export\s+)?([^.]*)")
LIBRARIES = {"QArith", "ZArith", "List", "Lia", "Bool", "Permutation", "Mergesort", "Orders"} | {
    f"ExtrOcaml{name}" for name in ("Basic", "ZBigInt", "NatInt")
}
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


def assumptions(text: str) -> Iterator[str]:
    """What a file assumes."""
    code = without_comments(text)
    yield from (match[0] for match in ASSUMED.finditer(code))
    known = LIBRARIES | {path.stem for path in SOURCES}
    yield from (
        name for names in REQUIRED.findall(code) for name in names.split() if name not in known
    )
    within: list[str] = []
    for sentence in re.split(r"\.\s", code):
        opened = re.match(r"\s*(Section|Module)\b", sentence)
        if opened and ":=" not in sentence:
            within.append(opened[1])
        elif re.match(r"\s*End\b", sentence):
            within.pop()
        elif PREMISES.match(sentence) and "Section" not in within:
            yield sentence.strip()


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_nothing_is_assumed(path: Path) -> None:
    assert list(assumptions(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    "text",
    [
        "Lemma l : False. Proof. admit. Admitted. ",
        "Section A. Variable n : nat. End A. Variable m : nat. ",
        "Module M. Variable n : nat. End M. ",
        'Extract Constant recheck => "fun _ -> Optimal". ',
        '(* " *) " *) Lemma l : True. Axiom a : False. (* " (* " *) ',
        "#[local] Hypothesis h : False. ",
        "From Coq Require Import Classical. ",
    ],
)
def test_what_is_assumed_is_found(text: str) -> None:
    assert list(assumptions(text))


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


def test_the_theorems_that_the_documents_name_are_there() -> None:
    rows = documented()
    assert len(rows) >= 16
    for path, named in rows:
        code = without_comments(path.read_text(encoding="utf-8"))
        found = set(re.findall(r"\b(?:Theorem|Lemma|Corollary)\s+(\w+)", code))
        assert named, path.name
        assert set(named) <= found, (path.name, named)
