"""Run an old commit's tree and this one side by side; exit with 1 where a gate is broken."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from rich.console import Console

from bench.processes import Worker, end_all
from bench.row import Outcome, RunRow
from bench.suites import SUITES
from bench.suites.ratios import VARIANTS as THEORY
from bench.tables import Column, Table
from bench.task import FAMILIES, Kind, Source, Task
from cms.running.code import code_digest
from instances.families import VARIANTS, families

from .comparing import TIMES, TINY, Line, Pair, judge, programs, rank, stages

ROOT = Path(__file__).resolve().parent.parent.parent
IN_TREE = Path(__file__).with_name("in_tree.py")
SIZES, SHORT_SIZES = (12, 40, 150, 400, 1_000, 2_000), (12, 150, 1_000)
#: Kinds that no old family has, and kinds whose numbers of jobs are their own.
NEXT = ("raw-doubles", "mixed-nodes", "racks", "exact-fits", "s6-tera", "many-sizes")
OWN_SIZES = {"few-jobs-many-shares": (4, 10, 30), "s6-tera": (11,), "many-sizes": (200, 400, 1_000)}
SHARES = tuple({"types": types, "step": step} for types, step in ((2, 5), (3, 2), (4, 1)))
#: What sections run of suites: how the suites' settings change in full and in short.
SUITES_OF: dict[str, dict[str, tuple[dict[str, Any], dict[str, Any]]]] = {
    "theory": {
        "overview": ({}, {"instances": 26}),
        "ratios": ({"instances": 600}, {"instances": 26}),
    },
    "scale": {"shards": ({"largest": 10**8}, {"largest": 10**6})},
    "suites": {
        "published": ({}, {"methods": ("auto",)}),
        "stock": ({"seeds": 4}, {"seeds": 1, "largest": 500, "time_limit": 2.0}),
        "gpulet": ({"seeds": 10, "time_limit": 5.0}, {"seeds": 2, "instances": 1, "largest": 1}),
        "colocation": ({"largest": 20_000}, {"seeds": 1, "instances": 2, "largest": 1_000}),
        "transitions": ({"largest": 50}, {"seeds": 1, "largest": 1}),
        "day": ({"seeds": 1, "instances": 6}, {"seeds": 1, "instances": 2, "largest": 4}),
        "promises": ({"requests": 20_000}, {"instances": 0, "largest": 6, "requests": 2_000}),
    },
    "whole": {name: ({}, {}) for name in ("proof", "stock")},
}
#: Programs of ``in_tree``, in full and in short.
FIGURES = "passes -m bench.time_sharing --cases"
WAYS = ("main 0", "cancel 0", "other 0", "main 4")
PROGRAMS: dict[str, Sequence[Sequence[str]]] = {
    "reader": [["reader solve", "reader plan", f"imports {n}"] for n in (15, 3)],
    "trust": (["write 1", "judge", "passes -m pytest -q -n 0 -k planted"], ["write 4", "judge"]),
    "interrupt": [
        [f"interrupt {0.1 + i / 94:.3f} {WAYS[i % 4]}" for i in range(n)] for n in (200, 12)
    ],
    "suites": ([f"{FIGURES} 100"], [f"{FIGURES} 2 --figures 1,4-7"]),
}
METHODS = ("auto", "branch_and_price", "cp_sat", "greedy", "lp_rounding", "ptas", "conic")
#: All but the suites that an issue's end alone runs whole.
SECTIONS = ("quality", "theory", "time", "trust", "scale", "reader", "interrupt", "suites")
#: How often a task on which this tree is worse runs again; of each tree the best answer counts,
#: so that what the clock cuts short on a busy machine is no loss, and what is lost stays lost.
AGAIN = 2


#: What has another name in trees before version 0.2.0, in the order in which it is replaced.
OLD_NAMES = {"branch_and_price": "price_and_branch", "colocation": "sharing"}


def is_old(root: Path) -> bool:
    """Whether a tree has the names and documents of version 0.1.0."""
    return "price_and_branch" in (root / "pyproject.toml").read_text("utf-8")


def in_old_names(text: str) -> str:
    """Replace names by those of version 0.1.0."""
    for new, old in OLD_NAMES.items():
        text = text.replace(new, old)
    return text


class Tree:
    """A tree with its interpreter, and a process there that does one task after another."""

    def __init__(self, root: Path, python: Path, answers: list[Path]) -> None:
        self.root, self._python = root, str(python)
        path = f"{self.root}{os.pathsep}{IN_TREE.parent}"
        places = {"GATES_WRITE": str(answers[0]), "GATES_JUDGE": str(answers[1])}
        self._environment = {**os.environ, "PYTHONPATH": path, **places}
        self._worker: Worker | None = None

    def do(self, task: Task | str) -> Any:
        """Run a task, which gives a row as a line, or a program of ``in_tree``."""
        if isinstance(task, str):
            command = [self._python, "-P", str(IN_TREE), *task.split()]
            done = subprocess.run(
                command, cwd=self.root, env=self._environment, capture_output=True, text=True
            )
            return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else done.stderr
        if is_old(self.root):
            names = {key: in_old_names(getattr(task.source, key)) for key in ("family", "module")}
            source = replace(task.source, **names)
            task = replace(task, method=in_old_names(task.method), source=source)
        worker = None if task.fresh else self._worker
        worker = worker or Worker(self._python, self.root, self._environment)
        row, reusable = worker.run(task, 1)
        if task.fresh or not reusable:
            worker.end()
        if not task.fresh:
            self._worker = worker if reusable else None
        return row.to_line()


def tasks(section: str, *, short: bool) -> Iterator[Task | str]:
    """Yield what a section runs: tasks, and programs of ``in_tree`` with their arguments."""
    for name, changes in SUITES_OF.get(section, {}).items():
        suite = SUITES[name]
        for task in suite.tasks(replace(suite.defaults, **changes[short])):
            arguments = task.source.arguments
            small = section == "scale" and (arguments["n"] < 10**6 or arguments["m"] != 5)
            others = section == "theory" and task.method not in THEORY
            if not (small or others or task.kind in (Kind.PEER, Kind.RULE, Kind.BOUND)):
                yield task
    yield from PROGRAMS.get(section, ((), ()))[short]
    if section == "quality":
        for kind in (*families(), *NEXT):
            variants = SHARES if kind == "few-jobs-many-shares" else VARIANTS.get(kind, ({},))
            sizes = OWN_SIZES.get(kind, SHORT_SIZES if short else SIZES) * (1 if short else 3)
            for number, n in enumerate(sizes):
                arguments = {"n": n, "seed": number, **variants[number % len(variants)]}
                module = IN_TREE.stem if kind in NEXT else FAMILIES
                source = Source(family=kind, module=module, arguments=arguments)
                yield _solve(section, source, "auto", 2.0 if short else 5.0)
    elif section == "time":
        drawn = families()[6::6] if short else families()
        sources = [Source(family=kind, arguments={"n": 1_000, "seed": 0}) for kind in drawn]
        limits = (0.2, 1.0) if short else (0.2, 1.0, 5.0)
        for limit in limits:
            large = Source(family="real-rows", arguments={"n": 10**6, "seed": 0})
            yield _solve(section, large, "auto", limit)
        for number, (source, method) in enumerate(product(sources, METHODS)):
            yield _solve(section, source, method, limits[number % len(limits)])


def _solve(suite: str, source: Source, method: str, limit: float) -> Task:
    return Task(suite=suite, kind=Kind.SOLVE, source=source, method=method, time_limit=limit)


def measured(section: str, trees: tuple[Tree, Tree], given: argparse.Namespace) -> Iterator[Any]:
    """Yield what both trees, at the same time, make of a section, but for the rows that are there.

    Tasks give pairs; programs a list of two mappings, of figures.
    """
    text = given.output.read_text("utf-8")
    whole = text[: text.rfind("\n") + 1]  # a line that a kill cut off is dropped
    given.output.write_text(whole, "utf-8")
    known = dict(map(json.loads, whole.splitlines()))
    chosen = list(tasks(section, short=given.short))
    with ThreadPoolExecutor(2) as pool, given.output.open("a", encoding="utf-8") as file:
        for number, task in enumerate(chosen, 1):
            name = task if isinstance(task, str) else task.key
            key = f"{given.old} {code_digest()} {section} {name}"
            if key not in known:
                print(f"\r{section} {number}/{len(chosen)}", end=" ", file=sys.stderr, flush=True)
                known[key] = both = list(pool.map(Tree.do, trees, (task, task)))
                for _ in range(AGAIN if isinstance(task, Task) and _is_worse(*both) else 0):
                    again = list(pool.map(Tree.do, trees, (task, task)))
                    known[key] = both = [
                        max(*two, key=_kept) for two in zip(both, again, strict=True)
                    ]
                file.write(json.dumps([key, known[key]]) + "\n")
                file.flush()
            is_row = isinstance(task, Task)
            yield Pair(*map(RunRow.from_line, known[key])) if is_row else known[key]


def _rank(line: str) -> tuple[int, float, float]:
    return rank(RunRow.from_line(line))


def _kept(line: str) -> tuple[bool, tuple[int, float, float]]:
    """Rank answers by what they are worth; a failure stays, however seldom it comes."""
    return RunRow.from_line(line).outcome is Outcome.FAILED, _rank(line)


def _is_worse(old: str, new: str) -> bool:
    (*before, cpu), (*after, more) = _rank(old), _rank(new)
    return after < before or -more > max(TINY, -TIMES * cpu)


def interpreter(old: str) -> Path:
    """Lay out an old commit's files under ``out/gates``, with an environment of its own."""
    tree = ROOT / "out" / "gates" / old
    if not (tree / ".venv" / ".installed-for-tests").exists():
        print(f"make install in {tree}: some minutes, once", file=sys.stderr)
        tree.mkdir(parents=True, exist_ok=True)
        archive = subprocess.run(["git", "archive", old], cwd=ROOT, check=True, capture_output=True)
        subprocess.run(["tar", "-x"], cwd=tree, input=archive.stdout, check=True)
        subprocess.run(["make", "install"], cwd=tree, check=True, stdout=sys.stderr)
    return tree / ".venv" / "bin" / "python"


def main(arguments: list[str] | None = None) -> int:
    """Print the table; 1 if a gate is broken."""
    parser = argparse.ArgumentParser(prog="python -m bench.gates", description=__doc__)
    parser.add_argument("old", metavar="OLD_COMMIT")
    parser.add_argument("--short", action="store_true", help="ten minutes on two cores")
    parser.add_argument(
        "--section", action="append", choices=(*SECTIONS, "whole"), help="repeatable"
    )
    parser.add_argument("--output", type=Path, metavar="FILE.jsonl", help="rows; those there stay")
    parser.add_argument("--old-python", type=Path, metavar="PATH", help="TREE/.venv/bin/python")
    given = parser.parse_args(arguments)
    command = ["git", "rev-parse", "--short=12", given.old]
    commit = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    if commit.returncode:
        parser.error(commit.stderr.strip())
    given.old = commit.stdout.strip()
    given.output = given.output or ROOT / "out" / "gates" / f"{given.old}.jsonl"
    given.output.parent.mkdir(parents=True, exist_ok=True)
    given.output.touch()
    python = (given.old_python or interpreter(given.old)).absolute()
    answers = [given.output.with_suffix(f".{side}") for side in ("old", "new")]
    trees = (
        Tree(python.parents[2], python, answers),
        Tree(ROOT, Path(sys.executable), answers[::-1]),
    )
    lines: list[Line] = []
    solved: list[Pair] = []
    try:
        for section in given.section or SECTIONS:
            started = time.monotonic()
            found = list(measured(section, trees, given))
            mine = [each for each in found if isinstance(each, Pair)]
            lines += judge(section, mine) if mine else []
            lines += programs(section, [each for each in found if isinstance(each, list)])
            solved += [pair for pair in mine if pair.new.algorithm == "auto"]
            print(f"\r{section}: {time.monotonic() - started:.0f} s", file=sys.stderr)
    finally:
        end_all()
    lines += stages(solved)
    broken = frozenset(number for number, line in enumerate(lines) if line.broken)
    columns = tuple(Column(name, left=name != "pairs") for name in Line._fields)
    table = Table(
        f"{given.old} | this tree", f"{len(broken)} broken", columns, tuple(lines), broken
    )
    Console(width=200).print(table.rich())
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main())
