"""Our own source files, and what each of them imports, read from their syntax trees."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("cms", "algorithms", "instances", "proofs_checks", "tests", "bench")
SHIPPED = tuple(f for f in FOLDERS if f != "tests" and (ROOT / f / "__init__.py").exists())


class Module(NamedTuple):
    """A source file of ours and its dotted name."""

    name: str
    path: Path

    @property
    def tree(self) -> ast.Module:
        return _parsed(self.path)

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"


class Import(NamedTuple):
    """One imported module, in full, and what of it."""

    target: str
    line: int
    lazy: bool
    name: str = ""


@cache
def _parsed(path: Path) -> ast.Module:
    # All nodes stay: going through them while they are made, and ever after, is in vain.
    gc.disable()
    try:
        return ast.parse(path.read_text("utf-8"), str(path))
    finally:
        gc.freeze()
        gc.enable()


@cache
def modules() -> dict[str, Module]:
    """All by name; what stands in them is read where a test asks, not while they are collected."""
    return dict(_modules())


def _modules() -> Iterator[tuple[str, Module]]:
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            yield name, Module(name, path)


def shipped() -> list[Module]:
    return [m for m in modules().values() if m.name.split(".")[0] in SHIPPED]


def belongs_to(module: Module, name: str) -> bool:
    """Whether the module is the one of this name, or within that package."""
    return module.name == name or module.name.startswith(name + ".")


@cache
def imports(module: Module) -> tuple[Import, ...]:
    """Every import of a module: relative ones resolved, ``from package import module`` in full."""
    return tuple(_imports(module))


def _imports(module: Module) -> Iterator[Import]:
    at_top = set(map(id, top_level_statements(module.tree)))
    for node in statements(module.tree):
        lazy = id(node) not in at_top
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno, lazy)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = module.name.split(".")
                kept = len(parents) - node.level + module.is_package
                base = ".".join([*parents[:kept], *filter(None, [base])])
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                yield Import(inner if inner in modules() else base, node.lineno, lazy, alias.name)


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """All statements below a node; what is inside of expressions holds no import."""
    for part in ("body", "orelse", "finalbody", "handlers", "cases"):
        for node in getattr(tree, part, ()):
            yield node
            yield from statements(node)


def top_level_statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """The statements that run when a module is imported (so nothing under TYPE_CHECKING)."""
    for node in tree.body:
        yield node
        if isinstance(node, ast.Try):
            yield from node.body
