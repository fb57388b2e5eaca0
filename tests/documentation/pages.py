"""The documents of the repository, and the blocks of code in them."""

from __future__ import annotations

import re
from pathlib import Path

from tests.source_tree import ROOT

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
"""What the site shows."""
DOCUMENTS = sorted(ROOT.glob("*.md")) + PAGES
README = ROOT / "README.md"


def shown(document: Path) -> str:
    """Its path from the root, to name it by."""
    return document.relative_to(ROOT).as_posix()


def blocks(document: Path, language: str) -> list[str]:
    """The blocks of a language in a document, without their options."""
    text = document.read_text("utf-8")
    found = re.findall(rf"^```{re.escape(language)}\n(.*?)^```$", text, re.M | re.S)
    return [re.sub(r"\A(:[\w-]+:.*\n)+\n?", "", block) for block in found]
