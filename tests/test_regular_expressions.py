"""No regular expression of ours takes time that grows with the square of the text.

That happens where two repetitions meet that can both take the next character: on a text that does
not match in the end, every place of the border between them is tried. Whatever patterns stand in
the code are taken apart here; possessive repetitions (``*+``), which give nothing back, are fine.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from tests.source_tree import ROOT, SHIPPED

parser: Any = import_module("re._parser")
ALPHABET = [*map(chr, range(128)), "é", "\u00a0", "\u2009", "\u2028", "\U0001f600"]
FUNCTIONS = {"compile", "match", "fullmatch", "search", "sub", "split", "findall", "finditer"}


class Item:
    """A piece of a pattern: what it may begin with, whether it may be empty, what it repeats."""

    def __init__(self, first: set[str], nullable: bool, *, repeats: bool = False) -> None:
        self.first, self.nullable, self.repeats = first, nullable, repeats


def meetings(pattern: str) -> list[str]:
    """Where two repetitions meet that can take the same character."""
    found: list[str] = []
    _sequence(parser.parse(pattern), found)
    return found


def _sequence(pieces: Any, found: list[str], *, wraps: bool = False) -> list[Item]:
    items = [item for piece in pieces for item in _items(piece, found)]
    for at, item in enumerate(items):
        if not item.repeats:
            continue
        for after in [*items[at + 1 :], *(items[: at + 1] if wraps else [])]:
            both = item.first & after.first
            if after.repeats and both:
                found.append(f"two repetitions take {sorted(both)[0]!r}")
            if not after.nullable and not (both and after.first <= item.first):
                break
    return items


def _items(piece: Any, found: list[str]) -> Iterator[Item]:
    kind, what = str(piece[0]), piece[1]
    if kind in ("MAX_REPEAT", "MIN_REPEAT"):
        least, most, body = what
        unbounded = most == parser.MAXREPEAT
        inside = _sequence(body, found, wraps=unbounded)
        yield Item(_first(inside), least == 0 or _empty(inside), repeats=unbounded)
    elif kind == "POSSESSIVE_REPEAT":
        inside = _sequence(what[2], found)
        yield Item(_first(inside), what[0] == 0 or _empty(inside))
    elif kind == "SUBPATTERN":
        yield from _sequence(what[-1], found)
    elif kind == "BRANCH":
        branches = [_sequence(branch, found) for branch in what[1]]
        first = set().union(*map(_first, branches))
        repeats = any(item.repeats for branch in branches for item in branch)
        yield Item(first, any(map(_empty, branches)), repeats=repeats)
    elif kind in ("AT", "ASSERT", "ASSERT_NOT"):
        yield Item(set(), nullable=True)
    elif kind == "GROUPREF":
        yield Item(set(ALPHABET), nullable=False)
    else:
        yield Item({c for c in ALPHABET if _takes(kind, what, c)}, nullable=False)


def _takes(kind: str, what: Any, character: str) -> bool:
    if kind == "LITERAL":
        return chr(what) == character
    if kind == "NOT_LITERAL":
        return chr(what) != character
    if kind == "ANY":
        return True
    if kind == "RANGE":
        return bool(what[0] <= ord(character) <= what[1])
    if kind == "CATEGORY":
        name = str(what).removeprefix("CATEGORY_")
        letter = {"DIGIT": "d", "SPACE": "s", "WORD": "w"}[name.removeprefix("NOT_")]
        escape = "\\" + (letter.upper() if name.startswith("NOT_") else letter)
        return bool(re.fullmatch(escape, character))
    assert kind == "IN", kind
    negated = str(what[0][0]) == "NEGATE"
    return negated != any(_takes(str(k), w, character) for k, w in what[negated:])


def _first(items: list[Item]) -> set[str]:
    first: set[str] = set()
    for item in items:
        first |= item.first
        if not item.nullable:
            break
    return first


def _empty(items: list[Item]) -> bool:
    return all(item.nullable for item in items)


def patterns() -> Iterator[tuple[str, str]]:
    """Every pattern in the package, with where it stands."""
    for path in sorted(path for folder in SHIPPED for path in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id == "re"
                and node.func.attr in FUNCTIONS
            ):
                where, pattern = f"{path.relative_to(ROOT)}:{node.lineno}", node.args[0]
                assert isinstance(pattern, ast.Constant), where
                assert isinstance(pattern.value, str), where
                yield where, pattern.value


def test_no_pattern_of_the_package_lets_two_repetitions_meet() -> None:
    found = {where: meetings(pattern) for where, pattern in patterns()}
    assert len(found) > 20
    assert not {where: words for where, words in found.items() if words}
