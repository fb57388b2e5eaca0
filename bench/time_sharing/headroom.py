"""Which head-room makes limits of evenly spaced arrivals 99th percentiles of Poisson ones."""

from __future__ import annotations

from fractions import Fraction

from bench.tables import Table, columns
from cms import DutyCycleRule, TimeSharedProblem, solve
from cms.fleet.serving import OperatingPoint, Plan, Service, build_problem
from cms.fleet.simulation import replay_duty_cycles
from instances.families.time_sharing import random_mix

from .asked import GPU

#: Where arrivals are evenly spaced no request may be late, without any head-room.
EVEN = ("nothing; evenly spaced arrivals", None, "0")
#: What is planned for, as options of a plan, and the GPUs and kept services by either rule.
HEADROOMS: tuple[tuple[str, str | None, str], ...] = (
    ("nothing", None, "0"),
    ("10 % more", None, "0.1"),
    ("30 % more", None, "0.3"),
    ("50 % more", None, "0.5"),
    ("100 % more", None, "1"),
    ("200 % more", None, "2"),
    ("gpulet", "gpulet", "0"),
    ("gpulet, 20 % more", "gpulet", "0.2"),
    ("gpulet, 50 % more", "gpulet", "0.5"),
)


def headroom_table(plans: int, requests: int) -> Table:
    """Plan ten mixes with each head-room, and replay them at the stated rates."""
    headings = [f"{rule}: kept | GPUs" for rule in DutyCycleRule]
    table = Table(
        "Head-room and the 99th percentile",
        f"{plans} plans of 3 to 6 made-up services (mix_first_fit, one order, no cap); kept: at "
        f"most 1 % of {requests:,} Poisson arrivals at the stated rates are late, in one run; of "
        "evenly spaced ones none.",
        columns("planned with:text", *headings),
    )
    for said, name, margin in (EVEN, *HEADROOMS):
        arrivals, tolerated = ("even", 0) if said == EVEN[0] else ("poisson", Fraction(1, 100))
        cells: list[object] = []
        for rule in DutyCycleRule:
            kept = services = gpus = 0
            for seed in range(1, plans + 1):
                plan = _planned(random_mix(seed, most=6), rule, name, margin)
                found = replay_duty_cycles(plan, arrivals=arrivals, requests=requests).services
                kept += sum(each.late <= tolerated * each.requests for each in found)
                services += len(found)
                gpus += plan.solution.machine_count or 0
            cells += [f"{kept} of {services}", gpus]
        table.add(said, *cells)
    return table


def _planned(
    problem: TimeSharedProblem, rule: DutyCycleRule, name: str | None, margin: str
) -> Plan:
    """The plan of a made-up problem, whose jobs become services of models of their own."""
    services = [Service(job.name, job.name, job.demand, 1000 * job.limit) for job in problem.jobs]
    points = [
        OperatingPoint(
            job.name, GPU, block, 1, int(point.amount), point.amount / point.length,
            1000 * point.length,
        )
        for job in problem.jobs
        for block, own in job.points.items()
        for point in own
    ]  # fmt: skip
    posed = build_problem(
        services, points, GPU, sharing="time", rule=rule, headroom=name, rate_margin=margin
    )
    return Plan(posed, solve(posed.problem, "mix_first_fit", options={"orders": 1}))
