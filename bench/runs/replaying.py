"""A service's requests through one of the simulator's loops, or through SimPy."""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from bench.queues import BATCH, BATCH_NS
from bench.row import Outcome
from bench.task import Task
from cms.fleet.simulation import Poisson
from cms.fleet.simulation.kernel import advance_lists, new_state, with_room
from cms.fleet.simulation.model import ModelledInstance, stations_of
from cms.fleet.simulation.replay import Alias, Loop, routing_of

from .stage import Facts, Stage, Tell

if TYPE_CHECKING:
    from cms.problem.problem import Problem

_NONE = np.zeros(0, dtype=np.int64)
_NOBODY = np.zeros(0, dtype=np.int32)
_FOR_EVER = 2**62


def run_replay(task: Task, problem: Problem, threads: int, tell: Tell) -> Facts:
    """Work off ``options["requests"]`` requests under ``options["routing"]``, in one thread.

    An event is an arrival or a batch's end. Arrivals and draws are made before the clock runs, and
    code is compiled: what is compared is the loops.
    """
    n, processes = task.source.arguments["instances"], task.source.arguments["processes"]
    requests, routing = task.options["requests"], routing_of(task.options["routing"])
    each = ModelledInstance(Fraction(1), processes, (BATCH_NS,) * BATCH)
    stations = stations_of([each] * n)
    weights = np.ones(n, dtype=np.int64)
    chance = np.random.default_rng(task.seed)
    times = next(Poisson().pieces("", problem.jobs[0].demand, chance, requests))
    raw = chance.bit_generator.random_raw(2 * requests)
    first, second = Alias(weights).pick(raw).reshape(2, -1)
    drawn = (first if routing.draws else _NOBODY, second if routing.draws == 2 else _NOBODY)

    def loop(advance: Loop) -> int:
        log_size = requests + n * processes * BATCH
        state = with_room(new_state(stations, weights, log_size), requests)
        advance(state, routing.policy_for(n), times, _NONE, *drawn, _FOR_EVER)
        return int(state.batches.sum())

    def plain() -> int:
        return loop(advance_lists)

    def compiled() -> int:
        from cms.fleet.simulation.compiled import advance

        return loop(advance)

    def simpy() -> int:
        from bench.peers.simpy_queues import ends_in_simpy

        places = first.tolist() if routing.draws else None
        return ends_in_simpy(stations, weights.tolist(), times.tolist(), places)[1]

    run: Callable[[], int] = {"compiled": compiled, "plain": plain, "simpy": simpy}[task.method]
    if task.method == "compiled":
        run()  # loads the code
    tell(Stage.RUNNING, {"threads": 1})
    started, worked = time.perf_counter(), time.thread_time()
    events = requests + run()
    cpu = time.thread_time() - worked
    return {
        "outcome": Outcome.ANSWERED,
        "seconds": time.perf_counter() - started,
        "measurements": {"cpu_seconds": cpu, "events": float(events)},
    }
