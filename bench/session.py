"""Runs a suite from its tasks to its tables: over local processes or a cluster."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor as PoolExecutor
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from .environment import code_digest, cores
from .execution import execute, missing
from .plots import draw
from .processes import end_all
from .results import Results, ResultsError
from .row import Outcome, Row
from .suites import Settings, Suite
from .tables import Table, failures
from .task import Task


class Form(StrEnum):
    """How tables are printed."""

    TERMINAL = "terminal"
    JSON = "json"
    LATEX = "latex"


class NothingToRun(Exception):
    """The settings leave no task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """How suites are run, and where what comes of them goes.

    Parameters
    ----------
    out : Path
        Rows go to ``out/SUITE.jsonl``, figures to ``out/figures``.
    resume : bool
        Whether to keep the rows that are there.
    jobs : int
        Runs at a time, in local processes.
    dask : str or None
        The address of a cluster's scheduler, to run there instead.
    form : Form
    figures : bool
    """

    out: Path
    resume: bool
    jobs: int
    dask: str | None
    form: Form
    figures: bool

    def run(self, suite: Suite, settings: Settings) -> bool:
        """Run what is missing of a suite, and show its tables.

        Returns
        -------
        bool
            Whether no run failed.

        Raises
        ------
        NothingToRun
            If the settings leave no task.
        ResultsError
            If the rows cannot be kept, or the cluster cannot be reached.
        """
        tasks = list(suite.tasks(settings))
        if not tasks:
            raise NothingToRun(
                f"--largest {settings.largest} leaves nothing of suite {suite.name!r} to run"
            )
        wanted = {task.key for task in tasks}
        with Results(self.out, suite.name, resume=self.resume) as results:
            left = missing(tasks, results)
            _warn_of_other_code([row for row in results.rows if row.key in wanted])
            self._execute(left, results, total=len(wanted))
            rows = [row for row in results.rows if row.key in wanted]
        self._show(suite, settings, rows, results.path)
        return not any(row.outcome is Outcome.FAILED for row in rows)

    def _execute(self, left: Sequence[Task], results: Results, *, total: int) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        columns = (
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
            TimeElapsedColumn(), TimeRemainingColumn(),
        )  # fmt: skip
        console = Console(stderr=True)
        with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
            bar = progress.add_task("", total=total, completed=total - len(left))

            def note(row: Row) -> None:
                if row.outcome is Outcome.FAILED:
                    console.print(
                        f"{row.instance}: {row.algorithm}: {row.error}", style="red", markup=False
                    )
                progress.update(bar, advance=1, description=f"{row.instance}: {row.algorithm}"[:50])

            if not left:
                return
            with self._executor() as (executor, threads):
                execute(left, results, executor, threads=threads, on_row=note)

    @contextmanager
    def _executor(self) -> Iterator[tuple[PoolExecutor, int]]:
        """Yield an executor, and the threads each run may use."""
        if self.dask is not None:
            with _cluster(self.dask) as executor:
                # A cluster's workers say themselves how many runs they take at a time.
                yield executor, 1
            return
        # Each task starts or borrows a process of its own, so threads will do here.
        pool = ThreadPoolExecutor(max_workers=self.jobs)
        try:
            yield pool, max(1, cores() // self.jobs)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            end_all()

    def _show(self, suite: Suite, settings: Settings, rows: Sequence[Row], path: Path) -> None:
        tables = suite.tables(rows, settings)
        failed = failures(rows)
        tables += [failed] if failed else []
        drawn = draw(suite.plots(rows, settings), self.out / "figures") if self.figures else []
        if self.form is Form.JSON:
            document = {
                "suite": suite.name,
                "runs": len(rows),
                "rows": str(path),
                "tables": [table.to_json() for table in tables],
                "figures": [str(figure) for figure in drawn],
            }
            print(json.dumps(document, indent=2, ensure_ascii=False, default=_as_json))
        elif self.form is Form.LATEX:
            print("\n\n".join(table.latex() for table in tables))
        else:
            _print(tables, len(rows), path, drawn)


def _print(tables: Sequence[Table], runs: int, path: Path, drawn: Sequence[Path]) -> None:
    from rich.console import Console

    console = Console()
    if not console.is_terminal:  # a file or a pipe has no width; cut nothing off
        console = Console(width=200)
    for table in tables:
        console.print(table.rich())
    console.print(f"{runs} runs; their rows are in {path}", markup=False)
    if drawn:
        console.print(f"Figures: {', '.join(map(str, drawn))}", markup=False)


@contextmanager
def _cluster(address: str) -> Iterator[PoolExecutor]:
    """Connect to a cluster of Dask's distributed scheduler."""
    try:
        from distributed import Client
    except ImportError:
        raise ResultsError(
            "--dask needs the extra: `pip install 'configurable-machines[bench]'`"
        ) from None
    try:
        client: Any = Client(  # type: ignore[no-untyped-call]
            address, timeout="10s", set_as_default=False
        )
    except (OSError, ValueError) as fault:
        raise ResultsError(f"--dask {address}: no scheduler answers there ({fault})") from None
    with client:
        # A task whose worker dies runs again elsewhere: the scheduler sees to that.
        yield client.get_executor(pure=False)


def _as_json(value: Any) -> Any:
    raise TypeError(f"a table holds {value!r}, which JSON does not know")


def _warn_of_other_code(rows: Sequence[Row]) -> None:
    others = sum(row.versions.get("code") != code_digest() for row in rows)
    if others:
        print(
            f"bench: {others} of the rows kept are of other code than is here now; for figures of "
            "one version start again with --out another folder",
            file=sys.stderr,
        )
