"""Price functions of jobs: what a leaf says of them, and that no mix is worth more than its block.

**Why they prove a bound.** A price function φ is a sum of terms in x = min(rate, d): α·x/d and
β·ceil(t·x), with α, β >= 0 and t > 0. None of them ever falls, each is 0 at 0, and at r + s at most
what it is at r and at s together: so is φ. The mixes of a schedule give job s rates that sum to d_s
at least; so they are worth at least φ_s(d_s) to it, and Σ φ_s(d_s) to all jobs. If no mix on a
block of type i is worth more than π_i, the blocks that serve mixes have at least that price. What
``certificate.py`` says of the blocks of machines does the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from .dearest import Function, Offered, Place, dearer_mix
from .mixes import Sharing
from .problem import Problem
from .reading import ZERO, Fault, as_a, number, record, show, table_over

# Steps of one function; docs/reference/files.md says so.
_MOST_STEPS = 1_000


def read_functions(value: object, problem: Problem) -> dict[str, Function]:
    """Read the price functions of a leaf."""
    if problem.sharing is None:
        raise Fault("a leaf has price functions, and every block serves one job")
    table = table_over(problem.jobs, value, "the price functions of a leaf")
    return {job: _read_function(each, job, problem.jobs[job].demand) for job, each in table.items()}


def _read_function(value: object, job: str, demand: Fraction) -> Function:
    fields = record(value, f"the price function of job {show(job)}", "slope", "steps")
    if demand == 0:
        raise Fault(f"there is a price function of job {show(job)}, which has no demand")
    slope = number(fields["slope"], "the slope of the price function of job", job)
    steps = []
    listed = as_a(list, fields.get("steps", []), "the steps of the price function of job", job)
    if len(listed) > _MOST_STEPS:
        raise Fault(f"the price function of job {show(job)} has more than {_MOST_STEPS} steps")
    for step in listed:
        if not isinstance(step, list) or len(step) != 2:
            raise Fault(f"job {show(job)} has the step {show(step)}, not [times, height]")
        times = number(step[0], "the times of a step of the price function of job", job)
        if times == 0:
            raise Fault(f"the times of a step of the price function of job {show(job)} is 0")
        height = number(step[1], "the height of a step of the price function of job", job)
        if height:
            steps.append((times, height))
    return Function(slope, tuple(sorted(steps)))


def paid(
    problem: Problem,
    sharing: Sharing,
    prices: Mapping[str, Fraction],
    functions: Mapping[str, Function],
    charges: Sequence[tuple[str, str, Fraction]],
) -> Fraction:
    """What all jobs pay for their demands; a Fault if a mix is worth more than its block.

    Charges say what a mix on a block is worth more where it has a job.
    """
    for block, price in prices.items():
        jobs = []
        for name, job in sharing.jobs.items():
            function = functions.get(name, Function(ZERO, ()))
            charge = sum((worth for i, j, worth in charges if (i, j) == (block, name)), ZERO)
            places = tuple(
                Place(amount, length, sharing.longest(length, job.limit), charge)
                for amount, length in job.lengths.get(block, {}).items()
            )
            jobs.append(Offered(name, problem.jobs[name].demand, function, places))
        dearer = dearer_mix(jobs, price, sharing.max_jobs)
        if dearer is not None:
            mix = " + ".join(f"{show(job)} x {show(a)}" for job, a in dearer.amounts.items())
            raise Fault(
                f"the mix {mix} is worth {show(dearer.worth)} at a leaf's price functions, more "
                f"than the price {show(price)} of its block {show(block)}"
            )
    demands = {name: problem.jobs[name].demand for name in functions}
    return sum((f.at(demands[name], demands[name]) for name, f in functions.items()), ZERO)
