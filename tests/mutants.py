"""How much the tests protect: plant random mutations in the product and see which of them fail.

Each is planted in a copy of the tree, where the test files nearest to its module by their imports
run until one fails. A mutation counts as killed where a test fails, or comes to no end, that
succeeds without it. Some mutations change nothing that anybody could see; they are not told apart,
so that a share says something beside another share alone.
"""

from __future__ import annotations

import argparse
import ast
import json
import math
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from copy import copy
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

import pytest

from tests.source_tree import ROOT, belongs_to, imports, modules

PRODUCT = ("cms", "algorithms", "instances", "proofs_checks")
NEAREST = 8  # files of tests that a mutation meets
ENOUGH = 30  # seconds of work after which no further test begins
SECONDS = 60  # after which there is no end
ENDED = {0, 5, 6}  # pytest's codes where no test failed: the last is that of enough
MEMORY = 12 << 30
# What stands for each operator instead.
OPERATORS = """
Lt LtE GtE; LtE Lt Gt; Gt GtE LtE; GtE Gt Lt; Eq NotEq; NotEq Eq; Is IsNot; IsNot Is; In NotIn;
NotIn In; And Or; Or And; Add Sub; Sub Add; Mult FloorDiv; FloorDiv Mult; Div Mult; Mod FloorDiv;
Pow Mult; BitAnd BitOr; BitOr BitAnd; LShift RShift; RShift LShift; BitXor BitOr; MatMult Mult
"""
SWAPS = {old: new for old, *new in (line.split() for line in OPERATORS.split(";"))}


class Mutation(NamedTuple):
    """The bytes of a file from start to end become others."""

    module: str
    line: int
    start: int
    end: int
    old: str
    new: str

    @property
    def path(self) -> Path:
        return modules()[self.module].path.relative_to(ROOT)

    @property
    def room(self) -> str:
        folders = self.path.parts[:-1]
        return ".".join(folders[: 3 if "fleet" in folders else 2])

    def applied(self, source: bytes) -> bytes:
        return source[: self.start] + self.new.encode() + source[self.end :]


class Result(NamedTuple):
    """What became of a mutation, and of which test; of none, where it came to no end."""

    mutation: Mutation
    killed: bool
    by: list[str]


def mutations(module: str, source: bytes) -> list[Mutation]:
    """Every mutation of a file, once, in the order of its lines."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = set()
    for node, instead in _planted(ast.parse(source)):
        new = f"({ast.unparse(instead)})" if isinstance(instead, ast.expr) else ast.unparse(instead)
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        old = " ".join(source[start:end].decode().split())
        found.add(Mutation(module, node.lineno, start, end, old, new))
    return sorted(found)


def _planted(node: Any, runs: bool = False) -> Iterator[tuple[Any, ast.AST]]:
    """Each part of the code with what may stand in its place; not of what is only said or typed."""
    match node:
        case ast.JoinedStr() | ast.Call(func=ast.Name("isinstance")):
            return
        case ast.If(test=ast.Name("TYPE_CHECKING")) | ast.FunctionDef(name="__repr__" | "__str__"):
            return
        case ast.BinOp(op=ast.BitOr() | ast.BitAnd()) if not runs:  # a type, mostly
            return
        case ast.Raise():
            yield node, ast.Pass()
            return
        case ast.BinOp() if _is_text(node.left) or _is_text(node.right):
            return
        case ast.Constant(value=bool()):
            yield node, ast.Constant(not node.value)
        case ast.Constant(value=int() | float() as value):
            yield node, ast.Constant(value + 1)
            yield node, ast.Constant(value - 1)
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield node, node.operand
        case ast.Compare():
            for at, op in enumerate(node.ops):
                for name in SWAPS[type(op).__name__]:
                    other: Any = copy(node)
                    other.ops = [*node.ops[:at], getattr(ast, name)(), *node.ops[at + 1 :]]
                    yield node, other
        case ast.BinOp() | ast.BoolOp() | ast.AugAssign():
            for name in SWAPS[type(node.op).__name__]:
                other = copy(node)
                other.op = getattr(ast, name)()
                yield node, other
    match node:
        case ast.If() | ast.While() | ast.IfExp():
            yield node.test, _negated(node.test)
        case ast.comprehension():
            yield from ((each, _negated(each)) for each in node.ifs)
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Continue() | ast.Break():
            yield node, ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield node, ast.Pass()
    runs = runs or isinstance(node, ast.FunctionDef)
    for part, value in ast.iter_fields(node):
        if part not in {"annotation", "returns", "decorator_list", "type_params", "pattern"}:
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _planted(child, runs)


def _negated(node: ast.expr) -> ast.expr:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return node.operand
    return ast.UnaryOp(ast.Not(), node)


def _is_text(node: ast.expr) -> bool:
    said = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return said or isinstance(node, ast.JoinedStr)


def drawn(count: int, seed: int, rooms: Iterable[str]) -> list[Mutation]:
    """The first of all in a random order, so that of more the first are the same."""
    everything = [
        mutation
        for name, module in sorted(modules().items())
        if any(belongs_to(module, room) for room in rooms)
        for mutation in mutations(name, module.path.read_bytes())
    ]
    random.Random(seed).shuffle(everything)
    return everything[:count]


@cache
def _arrows() -> dict[str, set[str]]:
    """Who imports whom: not a package's face, but the module that the name comes from.

    The registry reaches what ``pyproject.toml`` registers.
    """

    def origin(module: str, name: str) -> str:
        comes = [i.target for i in imports(modules()[module]) if i.name == name]
        return origin(comes[0], name) if comes and comes[0] in modules() else module

    arrows = {
        module: {origin(i.target, i.name) for i in imports(of) if i.target in modules()}
        for module, of in modules().items()
    }
    registered = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    for group in registered.values():
        arrows["cms.plugin.registry"] |= {entry.split(":")[0] for entry in group.values()}
    return arrows


@cache
def nearest(module: str) -> list[str]:
    """The module, if it has examples, and the test files from which a walk most often leads to it.

    The walk goes at random along the imports, and ends anywhere with a chance of a fifth.
    """
    reach: dict[str, float] = {}
    for _ in range(8):
        reach = {
            each: sum(0.8 * reach.get(next_, 0.0) for next_ in sorted(of)) / max(1, len(of))
            for each, of in _arrows().items()
        } | {module: 1.0}
    others = ("tests.bench.", "tests.documentation.")
    files = [m for m in reach if ".test_" in m and reach[m] and not m.startswith(others)]
    files.sort(key=lambda m: (-reach[m], m))
    own = [module] if ">>> " in modules()[module].path.read_text("utf-8") else []
    return [str(modules()[m].path.relative_to(ROOT)) for m in own + files[:NEAREST]]


def _tracked() -> list[str]:
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True, text=True)
    return sorted(name for name in listed.stdout.splitlines() if (ROOT / name).is_file())


def pytest_runtest_teardown() -> None:
    """Where this module is a plugin of pytest's, as it is for each mutation."""
    if sum(os.times()[:4]) > ENOUGH:
        pytest.exit("enough", returncode=6)


class Copy:
    """A copy of the tree, in which one mutation at a time is planted."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.unfit: set[str] = set()  # tests that fail without a mutation as well
        for name in _tracked():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, root / name)

    def judge(self, mutation: Mutation) -> Result:
        source, tests = (ROOT / mutation.path).read_bytes(), nearest(mutation.module)
        while True:
            self._write(mutation.path, mutation.applied(source))
            left_out = [f"--deselect={each}" for each in sorted(self.unfit)]
            failed, by = self.run([*tests, "-x", "-ptests.mutants", *left_out])
            self._write(mutation.path, source)
            # What fails, does not end or crashes says nothing where it does without one as well.
            again, unfit = self.run(by or [*tests, *left_out]) if failed else (False, [])
            tests_of_these = {test.split("[")[0] for test in unfit if "::" in test}
            if not again or tests_of_these <= self.unfit:
                return Result(mutation, failed and not again, by)
            self.unfit |= tests_of_these

    def _write(self, path: Path, source: bytes) -> None:
        (self.root / path).write_bytes(source)
        for kept in (self.root / path.parent).glob("__pycache__/*.nb[ci]"):
            kept.unlink()  # machine code, of which another file's may be a part

    def run(self, tests: Iterable[str]) -> tuple[bool, list[str]]:
        """Whether the tests did not succeed, and which failed: none where there was no end."""
        kept = self.root / ".pytest_cache/v/cache/lastfailed"
        kept.unlink(missing_ok=True)

        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))

        with subprocess.Popen(
            [sys.executable, "-m", "pytest", "-n", "0", "--tb=no", *tests],
            cwd=self.root,
            env={**os.environ, "PYTHONPATH": str(self.root)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            process_group=0,
            preexec_fn=limit,
        ) as process:
            try:
                code = process.wait(8 * SECONDS)  # by the clock, on a machine with other work
            except subprocess.TimeoutExpired:
                code = -signal.SIGKILL
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        by = [*json.loads(kept.read_text())] if kept.exists() else []
        return bool(by) or code not in ENDED, by


def judged(wanted: list[Mutation], jobs: int) -> Iterator[Result]:
    """The results, as they come."""
    with tempfile.TemporaryDirectory() as home, ThreadPoolExecutor(jobs) as pool:
        copies: SimpleQueue[Copy] = SimpleQueue()
        for at in range(jobs):
            copies.put(Copy(Path(home) / str(at)))

        def judge(mutation: Mutation) -> Result:
            free = copies.get()
            try:
                return free.judge(mutation)
            finally:
                copies.put(free)

        yield from pool.map(judge, wanted)


def band(killed: int, tried: int) -> tuple[float, float]:
    """Wilson's 95 % band of a share."""
    z, share = 1.96, killed / tried
    spread = z * math.sqrt(share * (1 - share) / tried + (z / (2 * tried)) ** 2)
    low, high = (share + z * z / (2 * tried) + sign * spread for sign in (-1, 1))
    return low / (1 + z * z / tried), high / (1 + z * z / tried)


def table(results: Iterable[Result]) -> Iterator[str]:
    """Name each mutation that no test notices, then say how many of each room were noticed."""
    rooms: dict[str, list[bool]] = defaultdict(list)
    for mutation, killed, _ in results:
        for room in (mutation.room, "~ all"):
            rooms[room].append(killed)
        if not killed:
            yield f"{mutation.path}:{mutation.line}: {mutation.old[:90]}  ->  {mutation.new[:90]}"
    yield f"\n{'room':32}{'killed':>8}{'tried':>7}{'share':>8}   95 % band"
    for room, of in sorted(rooms.items()):
        low, high = band(sum(of), len(of))
        yield f"{room:32}{sum(of):8}{len(of):7}{sum(of) / len(of):8.1%}   {low:.1%} to {high:.1%}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rooms", nargs="+", default=PRODUCT, help="cms.knapsack, say")
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args()
    for line in table(judged(drawn(asked.count, asked.seed, asked.rooms), asked.jobs)):
        print(line, flush=True)


if __name__ == "__main__":
    main()
