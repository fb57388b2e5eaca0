"""What a plan is held against: whole GPUs, each for one service."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

from ...problem.parts import Block
from ...time_sharing.problem import TimeSharedProblem
from .operating_point import mps_share
from .plan import Plan

_PER_CENT = 100


class WholeGpus(NamedTuple):
    """What the services of a plan would take if none shared a GPU with another, and its cost.

    About `unknown` services, which were not measured on a whole GPU, nothing can be said.
    """

    gpus: int
    cost: Fraction
    unknown: tuple[str, ...]


def whole_gpus(plan: Plan) -> WholeGpus:
    """Count the whole GPUs that would do, whatever there is of each type.

    A service takes GPUs of the type that is cheapest for its planned rate, at the operating point
    of the instance that is all of a GPU: the profile with all compute slices, or 100 % under MPS.
    """
    serving = plan.serving
    problem = serving.problem
    alone = problem.unshared() if isinstance(problem, TimeSharedProblem) else problem
    whole = {
        block: problem.machine_type(machine).cost
        for block in alone.blocks
        for machine in [_whole_of(plan, block)]
        if machine is not None
    }
    total, cost, unknown = 0, Fraction(0), []
    for j, service in enumerate(serving.services):
        wanted = serving.planned_rps(service)
        ways = []
        for block, price in whole.items():
            if supply := alone.rows.supply(j, alone.block_index[block]):
                gpus = math.ceil(wanted / supply)
                ways.append((gpus * price, gpus))
        if ways:
            least, gpus = min(ways)
            total, cost = total + gpus, cost + least
        else:
            unknown.append(service.name)
    return WholeGpus(total, cost, tuple(unknown))


def _whole_of(plan: Plan, block: Block) -> str | None:
    """The GPU's key, if this block is all of one."""
    key, profile = plan.serving.instance_of(block)
    share, gpu = mps_share(profile), plan.serving.gpu_of(key)
    if share is not None:
        return key if share == _PER_CENT else None
    found = gpu.profile(profile)
    whole = (found.compute, found.memory) == (gpu.compute_slices, gpu.memory_slices)
    return key if whole else None
