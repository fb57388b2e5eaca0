"""Links lead somewhere, in the repository's viewers and on the site, and all pages are on it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.documentation.pages import DOCS, DOCUMENTS, PAGES, shown
from tests.source_tree import ROOT


@cache
def parsed(document: Path) -> tuple[Token, ...]:
    """All tokens of a document, those within lines among them."""
    tokens = MarkdownIt("commonmark").enable("table").parse(document.read_text("utf-8"))
    return tuple(inner for token in tokens for inner in (token, *(token.children or ())))


def links(document: Path) -> Iterator[str]:
    """What a document links to or shows, but for other sites."""
    for token in parsed(document):
        link = token.attrGet("href") or token.attrGet("src")
        found = [str(link)] if link else re.findall(r'<img src="([^"]+)"', token.content)
        yield from (each for each in found if "://" not in each)


@cache
def anchors(document: Path) -> frozenset[str]:
    """The names of a document's headings, as viewers of repositories make them."""
    tokens = parsed(document)
    heads = [after for at, after in pairwise(tokens) if at.type == "heading_open"]
    words = ["".join(part.content for part in head.children or ()) for head in heads]
    return frozenset(re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in words)


def broken(document: Path) -> Iterator[str]:
    """The links of a document that lead nowhere."""
    for link in links(document):
        path, _, anchor = link.partition("#")
        target = (document.parent / path).resolve() if path else document
        if not target.exists():
            yield f"{link}: there is no such file"
        elif anchor and anchor not in anchors(target):
            yield f"{link}: no heading is called so"
        elif document in PAGES and target.suffix == ".md" and target not in PAGES:
            yield f"{link}: a page of the site links to a document that is not on it"
        elif document in PAGES and target.is_dir():
            yield f"{link}: a page of the site links to a folder"


#: A file of the repository, named with its folder.
_FILE = re.compile(
    r"(?:algorithms|bench|cms|docs|examples|instances|proofs_checks|tests)/[\w./-]+\.\w+"
)


@pytest.mark.parametrize("document", DOCUMENTS, ids=shown)
def test_a_file_that_a_document_names_is_there(document: Path) -> None:
    named = (
        token.content.split("::")[0] for token in parsed(document) if token.type == "code_inline"
    )
    files = [each for each in named if _FILE.fullmatch(each)]
    assert not [each for each in files if not (ROOT / each).exists()]


@pytest.mark.parametrize("document", DOCUMENTS, ids=shown)
def test_a_link_in_a_document_leads_somewhere(document: Path) -> None:
    assert not list(broken(document))


def below(page: Path) -> Iterator[Path]:
    """The pages that the tables of contents in a page name."""
    text = page.read_text("utf-8")
    for block in re.findall(r"^```\{toctree\}\n(.*?)^```$", text, re.M | re.S):
        for name in block.splitlines():
            if name and not name.startswith(":"):
                yield page.parent / f"{name}.md"


def test_every_page_is_in_one_table_of_contents() -> None:
    found = [DOCS / "index.md"]
    for page in found:
        found.extend(below(page))
    assert sorted(map(shown, found)) == sorted(map(shown, PAGES)), "put it into docs/index.md"


def test_a_page_begins_with_its_only_title() -> None:
    for page in PAGES:
        titles = sum(token.type == "heading_open" and token.tag == "h1" for token in parsed(page))
        assert titles + ("{include}" in page.read_text("utf-8")) == 1, shown(page)


def test_documents_that_code_names_are_there() -> None:
    named = {
        (path, name)
        for folder in ("cms", "algorithms", "instances", "proofs_checks", "bench", "examples")
        for path in (ROOT / folder).rglob("*.py")
        for name in re.findall(r"\bdocs/[\w/.-]*\w", path.read_text("utf-8"))
    }
    assert named
    theirs = "docs/schema.md"  # of a trace
    assert not [each for each in named if each[1] != theirs and not (ROOT / each[1]).exists()]
