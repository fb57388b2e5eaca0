"""Rules of thumb: whole GPUs, the smallest instances only, one fixed mix, first fit."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from cms.errors import UnsupportedProblem
from cms.problem.parts import Configuration
from cms.schedule.schedule import Schedule

from .rule import MOST_INSTANCES, Instance, Placement, Services, refuse_limits

if TYPE_CHECKING:
    from cms.problem.problem import Problem


def whole_machines(problem: Problem) -> Schedule:
    """Every job gets whole machines of its own: GPUs as they come.

    Where several machines are one block each, a job takes the ones that cost it least.
    """
    whole = [s for s in problem.listed_configurations if sum(s.blocks.values()) == 1]
    return _uniform(problem, whole, "is a single block")


def smallest(problem: Problem) -> Schedule:
    """Every machine is cut into as many equal blocks as possible, and the jobs share them."""
    alike = [s for s in problem.listed_configurations if len(s.blocks) == 1]
    most = max((sum(s.blocks.values()) for s in alike), default=0)
    densest = [s for s in alike if sum(s.blocks.values()) == most]
    return _uniform(problem, densest, "has blocks of one type alone")


def _uniform(problem: Problem, shapes: Sequence[Configuration], what: str) -> Schedule:
    """Serve every job by one type of block, on configurations of nothing but these."""
    refuse_limits(problem)
    if not shapes:
        raise UnsupportedProblem(f"no listed configuration {what}")
    given: dict[tuple[str, str], int] = {}
    held: dict[Configuration, int] = {}
    for j, name in enumerate(problem.job_names):
        row = problem.rows.row(j)
        if not row.demand:
            continue
        ways = []
        for number, shape in enumerate(shapes):
            ((block, count),) = shape.blocks.items()
            supply = row.supply[problem.blocks.index(block)]
            if supply:
                blocks = -(-row.demand // supply)
                cost = blocks * problem.machine_type(shape.machine).cost / count
                ways.append((cost, number, blocks))
        if not ways:
            raise UnsupportedProblem(f"none of its blocks serves job {name!r}")
        _, number, blocks = min(ways)
        (block,) = shapes[number].blocks
        given[block, name] = blocks
        held[shapes[number]] = held.get(shapes[number], 0) + blocks
    machines = {s: -(-blocks // sum(s.blocks.values())) for s, blocks in held.items()}
    return Schedule.from_counts(problem, machines, given)


def static_mix(problem: Problem) -> Schedule:
    """Every GPU is cut into 4g, 2g and 1g; each instance goes to the job that needs most of it.

    What is missing of a job is counted in instances of the size at hand; the job with most missing
    gets the next one, of equals the first. The mix is one of the baselines of MIG-serving
    (arXiv:2109.11067); who gets which instance is not told there.
    """
    services = Services(problem)
    mix = [services.slices.index(size) for size in (4, 2, 1) if size in services.slices]
    shape = tuple(int(i in mix) for i in range(len(services.slices)))
    if len(mix) < 3 or shape not in services.shapes:
        raise UnsupportedProblem("the GPU has no layout of 4, 2 and 1 slices")
    most = [max((supply.get(i, 0) for i in mix), default=0) for supply in services.supply]
    # Three instances a GPU, and a job needs at least as many as of those that suit it best.
    least = sum(-(-d // f) for d, f in zip(services.demands, most, strict=True) if f)
    if least > len(mix) * MOST_INSTANCES:
        raise _too_many()
    left = dict(enumerate(services.demands))
    gpus: list[list[Instance]] = []
    while any(left.values()):
        taken = []
        for block in mix:
            missing = [
                (Fraction(-left[job], supply[block]), job)
                for job, supply in enumerate(services.supply)
                if left[job] and block in supply
            ]
            if missing:
                _, job = min(missing)
                rate = min(left[job], services.supply[job][block])
                taken.append(Instance(block, job, rate))
                left[job] -= rate
        if not taken:
            raise UnsupportedProblem("an instance of 4, 2 or 1 slices serves not every job")
        gpus.append(taken)
        if len(gpus) > MOST_INSTANCES:
            raise _too_many()
    return services.schedule(gpus)


def _too_many() -> UnsupportedProblem:
    return UnsupportedProblem(f"it would fill more than {MOST_INSTANCES} GPUs one by one")


def first_fit(problem: Problem) -> Schedule:
    """Each job gets the smallest instance that meets its demand; GPUs are filled by first fit.

    A job that no instance meets gets as many of the fastest as it fills, and the smallest that will
    do for the rest. Instances are placed in the order of their slices, large ones first.
    """
    services = Services(problem)
    placement = Placement(services, services.shapes)
    wanted = []
    for job, supply in enumerate(services.supply):
        if services.demands[job]:
            fastest = max(supply, key=lambda i: (supply[i], -services.slices[i]))
            wanted += services.instances(job, fastest)
    placement.add(wanted, tightest=False)
    return services.schedule(placement.gpus)
