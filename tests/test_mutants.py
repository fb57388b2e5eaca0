"""The mutations that are planted in the product, and the tests that meet them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.mutants import Copy, Mutation, mutations
from tests.source_tree import modules

SOURCE = b'''"""What 1 + 1 is."""
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    SIDE = 1 + 1


def half(n: int | None, wide: bool) -> list[int]:
    """Half of n, if 1 < n."""
    if n is None or n < 0:
        raise ValueError(f"{n + 1} is not {1 + 1}, " + "it is 3")
    while not wide:
        n += 1
    return [n // 2 for _ in range(3) if n]


def __repr__() -> str:
    return 1 + 1
'''


def test_what_decides_is_mutated_and_what_is_said_or_typed_is_not() -> None:
    found = {(m.line, m.old.split("\\n")[0][:12], m.new) for m in mutations("half", SOURCE)}
    assert found == {
        (10, "n is None or", "(n is None and n < 0)"),
        (10, "n is None or", "(not (n is None or n < 0))"),
        (10, "n is None", "(n is not None)"),
        (10, "n < 0", "(n <= 0)"),
        (10, "n < 0", "(n >= 0)"),
        (10, "0", "(1)"),
        (10, "0", "(-1)"),
        (11, "raise ValueE", "pass"),
        (12, "not wide", "(wide)"),
        (13, "n += 1", "n -= 1"),
        (13, "n += 1", "pass"),
        (13, "1", "(2)"),
        (13, "1", "(0)"),
        (14, "n // 2", "(n * 2)"),
        (14, "2", "(3)"),
        (14, "2", "(1)"),
        (14, "3", "(4)"),
        (14, "3", "(2)"),
        (14, "n", "(not n)"),
    }


def test_every_mutation_of_a_module_is_python_and_changes_it() -> None:
    source = modules()["cms.values.arrays"].path.read_bytes()
    found = mutations("cms.values.arrays", source)
    trees = {ast.dump(ast.parse(each.applied(source))) for each in found}
    assert len(trees) == len(found) > 50
    assert ast.dump(ast.parse(source)) not in trees


@pytest.mark.parametrize(
    ("new", "more", "by"),
    [
        ("(a or b)", "", ["test_both_of_two.py::test_both"]),
        ("(b and a)", "", []),
        # A file that cannot be imported without the mutation either says nothing of it.
        ("(a or b)", "import no_such_module\n", ["test_both_of_two.py"]),
    ],
)
def test_a_mutation_is_killed_where_a_test_fails(
    new: str, more: str, by: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, test = "both_of_two.py", "test_both_of_two.py"
    source = b"def both(a, b):\n    return a and b\n"
    text = "from both_of_two import both\n\ndef test_both():\n    assert not both(0, 1)\n"
    (tmp_path / own).write_bytes(source)
    (tmp_path / test).write_text(more + text)
    monkeypatch.setattr("tests.mutants.ROOT", tmp_path)
    monkeypatch.setattr("tests.mutants._tracked", lambda: [own, test])
    monkeypatch.setattr("tests.mutants.nearest", lambda module: [test])
    monkeypatch.setattr("tests.mutants.Mutation.path", Path(own))
    mutation = Mutation("both_of_two", 2, 27, 34, "a and b", new)
    result = Copy(tmp_path / "copy").judge(mutation)
    assert (result.killed, result.by) == ("::" in "".join(by), by)
    assert (tmp_path / "copy" / own).read_bytes() == source
