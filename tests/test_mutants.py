"""The mutations that are planted in the product, and the tests that meet them."""

from __future__ import annotations

import ast
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from tests.mutants import Copy, Mutation, Result, band, judged, mutations, nearest
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


def test_the_own_tests_of_a_module_are_among_the_nearest() -> None:
    assert nearest("cms.values.arrays")[:2] == [
        "cms/values/arrays.py",
        "tests/test_arrays.py",
    ]
    assert "tests/test_certificate_refusals.py" in nearest("cms.certificate.certificate")
    assert "tests/algorithms/test_conformance.py" in nearest("algorithms.auto")


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
    result = Copy(tmp_path / "copy").judge(mutation, [])
    assert (result.killed, result.by) == (bool(result.functions), by)
    assert (tmp_path / "copy" / own).read_bytes() == source


def test_what_a_test_killed_that_fails_anyway_comes_again_and_results_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Scripted:
        def __init__(self, root: Path) -> None:
            self.asked: list[list[str]] = []

        def judge(self, mutation: Mutation, unfit: list[str]) -> Result:
            self.asked.append(unfit)
            by = [] if unfit else ["t.py::fails[anyway]"]
            return Result(mutation, bool(by), by, 0.1)

        def run(self, tests: list[str], seconds: int) -> tuple[bool, list[str]]:
            return True, ["t.py::fails[anyway]"]

    class Queue(SimpleQueue[Any]):
        def get(self, block: bool = False, timeout: float | None = None) -> Any:
            return super().get(block, timeout)  # a copy that was not put back is not waited for

    monkeypatch.setattr("tests.mutants.OUT", tmp_path)
    monkeypatch.setattr("tests.mutants.SimpleQueue", Queue)
    monkeypatch.setattr("tests.mutants.Copy", Scripted)
    monkeypatch.setattr("tests.mutants._tracked", list)
    wanted = [Mutation("m", line, 1, 2, "a", "b") for line in (1, 2)]
    results = judged(wanted, 1)
    assert [(result.killed, result.by) for result in results] == [(False, [])] * 2
    (kept,) = tmp_path.glob("*.jsonl")
    kept.write_text(kept.read_text() + '[["m", 1')  # a kill cut the line off
    monkeypatch.setattr("tests.mutants.Copy", lambda root: None)
    assert judged(wanted, 1) == results


def test_a_share_has_the_band_of_wilson() -> None:
    assert band(27, 37) == pytest.approx((0.570, 0.846), abs=0.001)
    assert band(5, 5)[1] == pytest.approx(1)
