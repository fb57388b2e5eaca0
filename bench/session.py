"""Runs a suite from its tasks to its tables: over local processes or a cluster."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from cms.errors import ClusterError
from cms.running.code import code_digest
from cms.running.interrupt import CtrlC
from cms.shards.cluster import connected
from cms.solving.driver import available_cores

from .environment import provider
from .execution import execute, missing
from .plots import draw
from .processes import end_all
from .results import Results, ResultsError
from .row import Outcome, RunRow
from .suites import Settings, Suite
from .tables import Table, failures
from .task import Task


class NothingToRun(Exception):
    """The settings leave no task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """How suites are run, and where what comes of them goes."""

    out: Path
    resume: bool
    jobs: int
    dask: str | None
    form: Literal["terminal", "json", "latex"]
    figures: bool

    def run(self, chosen: Sequence[tuple[Suite, Settings]]) -> bool:
        """Run what is missing of suites, one after another, and show their tables.

        Of several, those with nothing to run are left out, which is told. As JSON one suite is an
        object, several are an array.
        """
        # What is wrong with any of them is found before the first run.
        plans = self._plans(chosen)
        fine, documents = True, []
        for plan in plans:
            rows, lost = self._rows(plan)
            fine &= not lost and all(row.outcome is not Outcome.FAILED for row in rows)
            if self.form == "json":
                documents.append(self._document(plan, rows))
            else:
                self._show(plan, rows)
        if self.form == "json":
            document = documents if len(chosen) > 1 else documents[0]
            print(json.dumps(document, indent=2, ensure_ascii=False))
        return fine

    def _plans(self, chosen: Sequence[tuple[Suite, Settings]]) -> list[_Plan]:
        plans: list[_Plan] = []
        for suite, settings in chosen:
            tasks = {task.key: task for task in suite.tasks(settings)}
            nothing = f"--largest {settings.largest} leaves nothing of suite {suite.name!r} to run"
            if tasks:
                results = Results(self.out, suite.name, resume=self.resume)
                plans.append(_Plan(suite, settings, tasks, results))
            elif len(chosen) == 1:
                raise NothingToRun(nothing)
            else:
                _say(f"{nothing}; it is left out")
        if not plans:
            raise NothingToRun("nothing is left to run")
        return plans

    def _rows(self, plan: _Plan) -> tuple[list[RunRow], int]:
        """Run what is missing of a suite; return its rows, and how many tasks have none."""
        tasks = plan.tasks
        with plan.results as results:
            left = missing(tasks.values(), results)
            _warn_of_other_code([row for row in results.rows if row.key in tasks])
            lost = self._execute(left, results, total=len(tasks))
        if lost:
            why = f"{type(lost[0]).__name__}: {_one_line(lost[0])}"
            _say(
                f"{len(lost)} runs of suite {plan.suite.name!r} have no row, for they could not be "
                f"started or were lost ({why}); --resume runs them"
            )
        by_key = {row.key: row for row in results.rows}
        # In the order of the tasks, not in that in which they ended.
        return [by_key[key] for key in tasks if key in by_key], len(lost)

    def _execute(
        self, left: Sequence[Task], results: Results, *, total: int
    ) -> list[BaseException]:
        from rich.console import Console
        from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn

        columns = *Progress.get_default_columns(), MofNCompleteColumn(), TimeElapsedColumn()
        console = Console(stderr=True)
        quiet = not console.is_terminal
        with (
            CtrlC(take_over=True) as interrupt,
            interrupt.abortable(),
            Progress(*columns, console=console, disable=quiet) as progress,
        ):
            bar = progress.add_task("", total=total, completed=total - len(left))

            def note(row: RunRow) -> None:
                interrupt.look()
                if row.outcome is Outcome.FAILED:
                    console.print(
                        f"{row.instance}: {row.algorithm}: {row.error}", style="red", markup=False
                    )
                progress.update(bar, advance=1, description=f"{row.instance}: {row.algorithm}"[:50])

            if not left:
                return []
            with self._executor() as (executor, threads, lives):
                return execute(left, results, executor, threads=threads, on_row=note, lives=lives)

    @contextmanager
    def _executor(self) -> Iterator[tuple[Executor, int, Callable[[], bool]]]:
        """Yield an executor, the threads each run may use, and whether it still answers."""
        if self.dask is not None:
            with ExitStack() as stack:
                parts = self.dask, "bench", "bench.environment", "bench"
                try:
                    client = stack.enter_context(connected(*parts))
                except ClusterError as fault:
                    raise ResultsError(f"--dask: {fault}") from None
                # A cluster's workers say themselves how many runs they take at a time; a task whose
                # worker dies runs again elsewhere: the scheduler sees to that.
                gone = ("closing", "closed")
                yield client.get_executor(pure=False), 1, lambda: client.status not in gone
            return
        # Each task starts or borrows a process of its own, so threads will do here.
        pool = ThreadPoolExecutor(max_workers=self.jobs)
        try:
            yield pool, max(1, available_cores() // self.jobs), lambda: True
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            end_all()

    def _document(self, plan: _Plan, rows: Sequence[RunRow]) -> dict[str, Any]:
        tables = _tables(plan, rows)
        return {
            "suite": plan.suite.name,
            "runs": len(rows),
            "rows": str(plan.results.path),
            "tables": [table.to_json() for table in tables],
            "figures": [str(figure) for figure in self._draw(plan, rows)],
        }

    def _show(self, plan: _Plan, rows: Sequence[RunRow]) -> None:
        tables = _tables(plan, rows)
        if self.form == "latex":
            print("\n\n".join(table.latex() for table in tables), flush=True)
            self._draw(plan, rows)
            return
        from rich.console import Console

        console = Console()
        if not console.is_terminal:  # a file or a pipe has no width; cut nothing off
            console = Console(width=200)
        for table in tables:
            console.print(table.rich())
        console.print(f"{len(rows)} runs; their rows are in {plan.results.path}", markup=False)
        # Last, so that no figure can keep the tables back.
        drawn = self._draw(plan, rows)
        if drawn:
            console.print(f"Figures: {', '.join(map(str, drawn))}", markup=False)

    def _draw(self, plan: _Plan, rows: Sequence[RunRow]) -> list[Path]:
        """Draw a suite's figures; what cannot be drawn is told, and the runs count as they are."""
        if not self.figures:
            return []
        try:
            return draw(plan.suite.plots(rows, plan.settings), self.out / "figures")
        except (OSError, ImportError, ValueError, OverflowError) as fault:
            _say(f"figures: {type(fault).__name__}: {_one_line(fault)}")
            return []


class _Plan(NamedTuple):
    """What a suite is to run, and where its rows go."""

    suite: Suite
    settings: Settings
    tasks: dict[str, Task]
    results: Results


def _tables(plan: _Plan, rows: Sequence[RunRow]) -> list[Table]:
    failed = failures(rows)
    return plan.suite.tables(rows, plan.settings) + ([failed] if failed else [])


def _say(text: str) -> None:
    print(f"bench: {text}", file=sys.stderr)


def _one_line(fault: BaseException) -> str:
    return " ".join(str(fault).split())


def _warn_of_other_code(rows: Sequence[RunRow]) -> None:
    others = 0
    for row in rows:
        here = {"code": code_digest(), **provider(row.kind, row.algorithm)}
        others += any(row.versions.get(name) != what for name, what in here.items())
    if others:
        _say(
            f"{others} of the rows kept are of other code than is here now; for figures of one "
            "version start again with --out another folder"
        )
