"""A run of a general solver on an integer program; its claims are checked before they count."""

from __future__ import annotations

import time
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING

from bench.peers import PEERS, PeerAnswer, Program
from bench.row import Outcome
from bench.task import Task
from cms.checker.kinds import check
from cms.errors import InvalidSchedule
from cms.solving.solution import Proof, Status

from .stage import Facts, Tell, refused, timed

if TYPE_CHECKING:
    from cms.problem.problem import Problem

#: A bound in floating point this little (relatively) above a whole number means that number.
_NOISE = 1e-6
_STATUS = {
    "optimal": (Status.OPTIMAL, Proof.SOLVER),
    "feasible": (Status.FEASIBLE, Proof.NONE),
    "infeasible": (Status.INFEASIBLE, Proof.SOLVER),
    "unknown": (Status.NO_SCHEDULE, Proof.NONE),
}


def run_peer(task: Task, problem: Problem, threads: int, tell: Tell) -> Facts:
    """Give an instance to a peer, the task's method, whose workers are among its settings.

    Neither building its model nor our check is in its seconds.
    """
    peer = PEERS[task.method]
    peer.load()
    started = time.perf_counter()
    program = peer.program.of(problem)
    model = peer.prepare(program)
    build_seconds = time.perf_counter() - started
    answer = timed(
        lambda: peer.solve(model, task.time_limit, task.seed), tell, build_seconds=build_seconds
    )
    if not peer.integer:
        return _relaxation(program, answer)
    started = time.perf_counter()
    found = judge(problem, program, answer)
    return {**found, "check_seconds": time.perf_counter() - started}


def _relaxation(program: Program, answer: PeerAnswer) -> Facts:
    if answer.status == "infeasible":
        facts = {"status": Status.INFEASIBLE.value, "proof": Proof.SOLVER.value}
        return {"outcome": Outcome.ANSWERED, **facts}
    if answer.status != "optimal" or answer.bound is None:
        return {"outcome": Outcome.OUT_OF_TIME}
    value = answer.bound * float(program.step)
    return {"outcome": Outcome.ANSWERED, "measurements": {"relaxation": value}}


def judge(problem: Problem, program: Program, answer: PeerAnswer) -> Facts:
    """Turn a peer's claims into fields of a row, the schedule checked exactly."""
    status, proof = _STATUS[answer.status]
    found: Facts = {"status": status.value, "proof": proof.value}
    bound = None
    if answer.bound is not None:
        noise = _NOISE * max(1.0, abs(answer.bound))
        bound = program.step * Fraction(ceil(answer.bound - noise))
        found["claimed_bound"] = bound
    if answer.values is None:
        return {**found, "outcome": Outcome.ANSWERED}
    try:
        schedule = program.schedule(answer.values)
    except InvalidSchedule as fault:
        return refused(found, f"its schedule is not valid: {fault}")
    violations = check(problem, schedule)
    if violations:
        return refused(found, f"its schedule is not valid: {violations[0]}")
    cost = schedule.cost(problem)
    found["cost"] = cost
    if answer.objective is not None and round(answer.objective) * program.step != cost:
        claim = round(answer.objective) * program.step
        return refused(found, f"it claims a cost of {claim}, its schedule costs {cost}")
    if status is Status.OPTIMAL:
        bound = found["claimed_bound"] = cost
    if bound is not None:
        found["gap"] = cost - bound
        if bound > cost:
            return refused(found, f"it claims the bound {bound} and a schedule of cost {cost}")
    return {**found, "outcome": Outcome.ANSWERED, "checker": "cms"}
