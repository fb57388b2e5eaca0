"""A thin layer over OR-tools' minimum-cost flow: amounts from sources to sinks of the most value.

The solver cannot be interrupted, and keeps the interpreter's lock: what takes longer than an
instant runs in a process of its own, ``python -m`` this module, which can be killed.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cms.plugin.algorithm import Budget

#: Arcs of a flow that takes at most some 0.3 s.
MOST_ARCS_HERE = 200_000
PROCESS = "algorithms.solvers.transport"
#: What is added up along paths and around nodes stays below this, so that nothing overflows.
_LARGEST = 1 << 61


class Offers(NamedTuple):
    """What may go from whom to whom, and what a unit of it is worth."""

    supplies: NDArray[np.int64]
    demands: NDArray[np.int64]
    giver: NDArray[np.int64]
    taker: NDArray[np.int64]
    worth: NDArray[np.int64]


def fits(supplies: int, demands: int, nodes: int, largest_worth: int) -> bool:
    """Whether a flow's numbers are small enough for the solver."""
    return (nodes + 2) * max(supplies, demands) < _LARGEST and (
        (nodes + 3) ** 2 * largest_worth < _LARGEST
    )


def best_transport(offers: Offers, budget: Budget | None) -> NDArray[np.int64] | None:
    """Return how much goes along each arc so that the most is gained; None if stopped."""
    if budget is not None and budget.stopped:
        return None
    if budget is None or len(offers.giver) <= MOST_ARCS_HERE:
        return solved(offers)
    return _aside(offers, budget)


def solved(offers: Offers) -> NDArray[np.int64]:
    """Solve in this thread, however long it takes."""
    from ortools.graph.python import min_cost_flow

    supplies, demands, giver, taker, worth = offers
    n, m, arcs = len(supplies), len(demands), len(giver)
    if not arcs:
        return np.zeros(0, dtype=np.int64)
    # What no sink takes goes to the end directly, at value 0.
    first_taker, end = n, n + m
    tails = np.concatenate([giver, np.arange(n + m)])
    heads = np.concatenate([first_taker + taker, np.full(n + m, end)])
    room = np.concatenate([np.minimum(supplies[giver], demands[taker]), supplies, demands])
    costs = np.concatenate([-worth, np.zeros(n + m, dtype=np.int64)])
    program = min_cost_flow.SimpleMinCostFlow()
    program.add_arcs_with_capacity_and_unit_cost(tails, heads, room, costs)
    given = np.concatenate([supplies, np.zeros(m, dtype=np.int64), [-int(supplies.sum())]])
    program.set_nodes_supplies(np.arange(n + m + 1), given)
    status = program.solve()
    if status != program.OPTIMAL:
        raise AssertionError(f"a flow that there is always has ended with {status}")
    found: NDArray[np.int64] = program.flows(np.arange(arcs))
    return found


def _aside(offers: Offers, budget: Budget) -> NDArray[np.int64] | None:
    """Solve in another process, which is killed when the run is stopped."""
    message = io.BytesIO()
    np.savez(message, *offers)
    # It finds the same modules; a session of its own keeps the terminal's Ctrl-C from it.
    path = os.pathsep.join(place for place in sys.path if place)
    with subprocess.Popen(
        [sys.executable, "-P", "-m", PROCESS],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path}, start_new_session=True,
    ) as process, budget.on_stop(process.kill):  # fmt: skip
        answer, words = process.communicate(message.getvalue())
    if budget.stopped:
        return None
    if process.returncode:
        raise RuntimeError(f"the process with the flow ended with {words.decode(errors='replace')}")
    return np.frombuffer(answer, dtype=np.int64)


if __name__ == "__main__":
    arrays = np.load(io.BytesIO(sys.stdin.buffer.read())).values()
    sys.stdout.buffer.write(solved(Offers(*arrays)).astype(np.int64).tobytes())
