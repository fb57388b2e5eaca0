"""The streaming checker shares no code with the package, and decides nothing by a float."""

from __future__ import annotations

import ast
import sys

from tests.source_tree import ROOT, belongs_to, imports, modules

PARTS = [m for m in modules().values() if belongs_to(m, "proofs_checks.streaming")]


def test_it_imports_numpy_and_the_other_checker_alone() -> None:
    assert PARTS
    strangers = [
        f"{m.path.relative_to(ROOT)}:{i.line} imports {i.target}"
        for m in PARTS
        for i in imports(m)
        if i.target.split(".")[0] not in {*sys.stdlib_module_names, "numpy"}
        if not i.target.startswith(("proofs_checks.checker", "proofs_checks.streaming"))
    ]
    assert not strangers, "\n".join(strangers)


def test_it_holds_no_floating_point_number() -> None:
    floats = [
        f"{m.path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)}"
        for m in PARTS
        for node in ast.walk(m.tree)
        if (isinstance(node, ast.Constant) and isinstance(node.value, float | complex))
        or (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and not _is_path(node))
        or (isinstance(node, ast.Name) and node.id in {"float", "round"})
        or (isinstance(node, ast.Attribute) and node.attr in {"float64", "float32", "isclose"})
    ]
    assert not floats, "\n".join(floats)


def _is_path(node: ast.BinOp) -> bool:
    return isinstance(node.right, ast.Constant | ast.JoinedStr) or ast.unparse(node.right) == "name"
