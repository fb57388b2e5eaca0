"""What a plan is held against: itself at multiples of all rates, each proved, and whole GPUs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

from ...errors import InvalidOption, UnsupportedProblem
from ...infeasibility.variants import PARTS, at_share
from ...problem.machine_problem import MachineProblem
from ...solving.driver import CancelEvent
from ...solving.solution import Proof, Solution, Status
from ...solving.solve import solve
from ...time_sharing.model import TimeSharedJob
from ...values.numbers import Number, exact, shown
from .neighbours import NeighbourServing
from .operating_point import mps_share
from .plan import Plan
from .serving_problem import ServingProblem

#: What rates are multiplied by, unless something else is asked for.
MULTIPLES = tuple(Fraction(quarters, 4) for quarters in (2, 3, 4, 5, 6, 8, 10, 12, 14, 16))


@dataclass(frozen=True, slots=True)
class RatePoint:
    """What was found and proved at one multiple of all rates.

    `cost` is of the schedule that was found and checked, `bound` by a checked certificate of this
    multiple or a lower one: what serves more serves less. So is the status ``INFEASIBLE``; where it
    is ``NO_SCHEDULE``, whether such rates can be served is not known.
    """

    rate: Fraction
    cost: Fraction | None
    bound: Fraction
    status: Status


def rate_curve(
    plan: Plan,
    multiples: Iterable[Number] = MULTIPLES,
    *,
    method: str = "auto",
    time_limit: float | None = 60.0,
    seed: int = 0,
    threads: int | None = None,
    cancel: CancelEvent | None = None,
    on_point: Callable[[int, int], None] | None = None,
) -> tuple[RatePoint, ...]:
    """Plan again at multiples of all rates; rates with margin and head-room, where there are such.

    Each multiple is > 0 and has at most three decimals (else InvalidOption); the plan is the point
    at 1 itself. A point may take an even share of what is left of the time limit, in seconds. Once
    `cancel` is set no further point is begun; `on_point` is called with how many are done, of how
    many. Returned, ascending, are the multiples that there was time for. UnsupportedProblem if
    services slow one another: then plan and bound are of two problems.
    """
    what = "a multiple of the rates"
    wanted = sorted({exact(each, what, error=InvalidOption) for each in multiples})
    for rate in wanted:
        if rate <= 0 or PARTS % rate.denominator:
            raise InvalidOption(
                f"{what} is {shown(rate)}; expected a number > 0 with at most three decimals, such "
                "as 1.5"
            )
    found: list[RatePoint] = []
    until = math.inf if time_limit is None else time.monotonic() + time_limit
    for at, rate in enumerate(wanted):
        if cancel is not None and cancel.is_set():
            break
        before = found[-1] if found else None
        if before is not None and before.status is Status.INFEASIBLE:
            found.append(replace(before, rate=rate))
        elif rate == 1:
            found.append(_point(rate, plan.solution, before))
        elif (left := (until - time.monotonic()) / (len(wanted) - at)) > 0:
            answer = solve(
                _at(plan, rate), method, time_limit=None if time_limit is None else left,
                seed=seed, threads=threads, cancel=cancel,
            )  # fmt: skip
            found.append(_point(rate, answer, before))
        else:
            continue
        if on_point is not None:
            on_point(at + 1, len(wanted))
    return tuple(found)


def _point(rate: Fraction, answer: Solution, before: RatePoint | None) -> RatePoint:
    bound = max(answer.lower_bound, before.bound if before else Fraction(0))
    status = answer.status
    if status is Status.INFEASIBLE and answer.proof is not Proof.CHECKED:
        status = Status.NO_SCHEDULE  # by a solver's word alone
    elif answer.cost == bound:
        status = Status.OPTIMAL
    return RatePoint(rate, answer.cost, bound, status)


def _at(plan: Plan, rate: Fraction) -> MachineProblem:
    """Pose the problem of a plan at a multiple of its rates."""
    serving = plan.serving
    if isinstance(serving, ServingProblem):
        return at_share(serving.problem, int(rate * PARTS))
    if isinstance(serving, NeighbourServing):
        raise UnsupportedProblem(
            "in this plan batches slow one another, and its bound is of another problem than its "
            "schedule; GPUs against rates are for plans without interference"
        )
    services = (replace(each, rate_rps=each.rate_rps * rate) for each in serving.services)
    jobs = [
        TimeSharedJob(job.name, serving.planned_rps(service), job.limit, job.points)
        for job, service in zip(serving.problem.jobs, services, strict=True)
    ]
    return serving.problem.replace(jobs=jobs)


class WholeGpus(NamedTuple):
    """What the services of a plan would take if none shared a GPU with another, and its cost."""

    gpus: int
    cost: Fraction
    unknown: tuple[str, ...]  #: services that were not measured on a whole GPU


def whole_gpus(plan: Plan) -> WholeGpus:
    """Count the whole GPUs that would do, whatever there is of each type.

    A service takes GPUs of the type that is cheapest for its planned rate, at the operating point
    of the instance that is all of a GPU: the profile with all compute slices, or 100 % under MPS.
    One costs what the cheapest do of those that are there, if nothing is held on them.
    """
    serving, whole = plan.serving, dict[str, Fraction]()
    prices = {each.name: each.cost for each in serving.problem.machine_types}
    free = [(not it.count, prices[it.name], it.gpu) for it in serving.available if not it.held]
    prices |= {gpu: price for _, price, gpu in sorted(free, reverse=True)}
    for block in serving.problem.blocks:
        key, profile = serving.instance_of(block)
        gpu, share = serving.gpu_of(key), mps_share(profile)
        is_whole = share == 100 if share else gpu.profile(profile).compute == gpu.compute_slices
        if is_whole and key in prices:
            whole[block] = prices[key]
    total, cost, unknown = 0, Fraction(0), []
    for service in serving.services:
        ways = []
        for block, price in whole.items():
            if supply := serving.supply(service.name, block):
                gpus = math.ceil(serving.planned_rps(service) / supply)
                ways.append((gpus * price, gpus))
        if ways:
            least, gpus = min(ways)
            total, cost = total + gpus, cost + least
        else:
            unknown.append(service.name)
    return WholeGpus(total, cost, tuple(unknown))
