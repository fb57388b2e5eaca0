"""What a task does in its process, one module a kind."""

from __future__ import annotations

import time

from bench.environment import versions
from bench.row import Outcome, RunRow
from bench.task import Kind, Task
from cms.errors import UnsupportedProblem
from cms.solving.driver import available_cores

from .applying_rules import run_bound, run_rule
from .asking_peers import run_peer
from .changing import run_change
from .colocation import run_share, run_shared_day
from .comparing import run_cold, run_warm
from .playing import run_day
from .promising import run_promise
from .replaying import run_replay
from .sharding import run_shards
from .solving import run_algorithm
from .stage import Facts, Run, Stage, Tell, sizes

__all__ = ["Stage", "Tell", "perform"]

_RUNS: dict[Kind, Run] = {
    Kind.SOLVE: run_algorithm,
    Kind.PEER: run_peer,
    Kind.RULE: run_rule,
    Kind.BOUND: run_bound,
    Kind.WARM: run_warm,
    Kind.COLD: run_cold,
    Kind.REPLAY: run_replay,
    Kind.PROMISE: run_promise,
    Kind.DAY: run_day,
    Kind.CHANGE: run_change,
    Kind.SHARE: run_share,
    Kind.SHARED_DAY: run_shared_day,
}


def perform(task: Task, threads: int, tell: Tell) -> RunRow:
    """Run a task in this process and return its row; whatever it raises becomes a failed one."""
    known: Facts = {"versions": versions(), "cores": available_cores()}

    def noted(stage: Stage, facts: Facts) -> None:
        known.update(facts)
        tell(stage, facts)

    try:
        if task.kind is Kind.SHARDS:  # whose instance is in no process as a whole
            known.update(run_shards(task, threads, noted))
            return RunRow.of(task, **known)
        started = time.perf_counter()
        problem = task.source.problem()
        facts = {
            "make_seconds": time.perf_counter() - started,
            "instance_sha256": problem.sha256,
            **sizes(problem),
        }
        noted(Stage.PREPARING, facts)
        known.update(_RUNS[task.kind](task, problem, threads, noted))
    except UnsupportedProblem as reason:
        known.update(outcome=Outcome.UNSUPPORTED, error=str(reason))
    except Exception as fault:  # noqa: BLE001 - whatever it is, it is this run's and goes in its row
        known.update(outcome=Outcome.FAILED, error=f"{type(fault).__name__}: {fault}")
    return RunRow.of(task, **known)
