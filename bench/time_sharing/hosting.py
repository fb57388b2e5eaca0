"""What a block can carry, by the package and by every mix there is; of figure 6."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from random import Random

from algorithms.time_sharing.hosting import Hosting
from cms import Configuration, DutyCycleRule, Mix, TimeSharedJob, TimeSharedProblem
from cms.time_sharing.duty_cycle import DutyCycle
from proofs_checks.finding import require

RULES = tuple(DutyCycleRule)


def drawn(random: Random) -> TimeSharedProblem:
    """Up to three jobs with up to four points each, in any order of length; often many ties."""
    spread = random.choice([4, 12, 60])
    denominator = random.choice([1, 1, 3, 7])
    jobs = []
    for j in range(random.randint(1, 3)):
        amounts = random.sample(range(1, 9), random.randint(1, 4))
        points = [(amount, Fraction(random.randint(1, spread), denominator)) for amount in amounts]
        limit = Fraction(random.randint(1, 6 * spread), random.choice([1, denominator]))
        jobs.append(TimeSharedJob(f"j{j}", 1, limit, {"b": points}))
    return TimeSharedProblem(
        configurations=Configuration({"b": 1}),
        jobs=jobs,
        rule=random.choice(RULES),
        max_jobs=random.choice([None, None, None, 2]),
    )


def all_mixes(problem: TimeSharedProblem, jobs: tuple[str, ...]) -> Iterator[tuple[Mix, DutyCycle]]:
    """Every admitted mix of just these jobs."""
    if problem.max_jobs is not None and len(jobs) > problem.max_jobs:
        return
    points = [problem.job(job).points["b"] for job in jobs]
    for chosen in product(*points):
        mix = Mix({job: point.amount for job, point in zip(jobs, chosen, strict=True)})
        cycle = problem.duty_cycle("b", mix)
        if cycle.admitted:
            yield mix, cycle


def rates(random: Random, problem: TimeSharedProblem, jobs: tuple[str, ...]) -> dict[str, Fraction]:
    """Rates near what some mix gives: exactly that, a little more, or any."""
    cycles = [cycle for _, cycle in all_mixes(problem, jobs)]
    if cycles and random.random() < 0.7:
        cycle = random.choice(cycles)
        hair = random.choice([Fraction(1), Fraction(1), Fraction(10**9 + 1, 10**9), Fraction(3, 4)])
        return {job: cycle.rates[job] * hair for job in jobs}
    return {job: Fraction(random.randint(1, 9), random.randint(1, 30)) for job in jobs}


def require_hosting(seed: int) -> None:
    """What `host` and `most` say of drawn rates is what all mixes say."""
    random = Random(seed)
    problem = drawn(random)
    names = tuple(problem.job_names)
    jobs = tuple(random.sample(names, random.randint(1, len(names))))
    asked = rates(random, problem, jobs)
    able = [
        cycle.length
        for _, cycle in all_mixes(problem, jobs)
        if all(cycle.rates[job] >= asked[job] for job in jobs)
    ]
    hosted = Hosting(problem).host("b", asked)
    require((hosted is None) == (not able), f"hosted: {hosted}, by {len(able)} mixes")
    if hosted is not None:
        cycle = problem.duty_cycle("b", Mix(hosted.amounts))
        require(cycle.admitted, f"{hosted} is not admitted")
        require(
            cycle.length == min(able), f"a duty cycle of {cycle.length}, the least is {min(able)}"
        )
        require(all(cycle.rates[job] >= asked[job] for job in jobs), f"{hosted} is too little")
        require(hosted.rates == asked, f"{hosted.rates} for {asked}")
    _require_most(problem, asked, jobs)


def _require_most(
    problem: TimeSharedProblem, asked: dict[str, Fraction], jobs: tuple[str, ...]
) -> None:
    *others, job = jobs
    able = [
        cycle.rates[job]
        for _, cycle in all_mixes(problem, jobs)
        if all(cycle.rates[other] >= asked[other] for other in others)
    ]
    most = Hosting(problem).most("b", asked, job)
    require((most is None) == (not able), f"most: {most}, by {len(able)} mixes")
    if most is not None:
        wanted = {**asked, job: max(able)}
        require(most.rates == wanted, f"{most.rates}, the most is {wanted}")
        cycle = problem.duty_cycle("b", Mix(most.amounts))
        enough = all(cycle.rates[name] >= rate for name, rate in most.rates.items())
        require(cycle.admitted and enough, f"{most} is not what it says")
