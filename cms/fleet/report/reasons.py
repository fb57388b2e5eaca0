"""What a plan promises, or why there is none and what would do, in plain words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...problem.problem import Problem
from ...shortages.shortage import unservable_lines
from ...shortages.variants import without_unservable_jobs
from ...time_sharing.problem import TimeSharedProblem
from ...values.words import count, decimal, printable, short
from ..serving.latency_rule import LatencyRule
from ..serving.neighbours import NeighbourServing
from ..serving.queueing import evidence_of
from ..serving.time_sharing import SharedServing
from .page import Bullets, Page, Section, Words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...problem.machine_problem import MachineProblem
    from ...shortages.shortage import Shortage
    from ...solving.solution import Solution
    from ...time_sharing.model import TimeSharedJob
    from ..serving import Plan
    from ..serving.posing import AnyServing

MOST_REASONS = 20


def why_section(reasons: Sequence[str]) -> Iterator[Section]:
    """Yield the reasons as a section, if there are any."""
    if reasons:
        told = Bullets([("-", reason) for reason in reasons])
        yield Section("why", "Why it is impossible", [told], drawn=True)


def plan_reasons(plan: Plan, shortage: Shortage | None = None) -> tuple[str, ...]:
    """Say why an infeasible plan is infeasible, and what would do if that was looked for.

    One sentence for each service that nothing can serve within its limit; if there is none, the
    GPUs are too few, and one sentence says which. Empty if the plan is not infeasible.
    """
    if plan.answer.status != "infeasible":
        return ()
    reasons = [*plan.serving.unservable.values()]
    if (more := len(reasons) - MOST_REASONS) > 0:
        reasons[MOST_REASONS:] = [f"... and {count(more, 'more service')}"]
    if not reasons:
        too_few = _too_few(plan.serving.problem, plan.answer, "GPU")
        ways = "allow more (--max-gpus), lower the rates or relax the latency limits"
        reasons = [f"{too_few}; {ways}"]
    return (*reasons, *_remedy(shortage, "GPU", "rate"))


def solution_reasons(
    problem: MachineProblem, solution: Solution, shortage: Shortage | None = None
) -> tuple[str, ...]:
    """Say likewise why an abstract problem is infeasible."""
    if solution.status != "infeasible":
        return ()
    reasons: list[str] = []
    if isinstance(problem, TimeSharedProblem):
        _, lost = without_unservable_jobs(problem.unshared())
        reasons += unservable_lines({name: blocks for name, blocks in lost.items() if blocks})
        reasons += [_too_slow(problem.job(name)) for name, blocks in lost.items() if not blocks]
    elif isinstance(problem, Problem):
        reasons += unservable_lines(without_unservable_jobs(problem)[1])
    reasons = reasons or [_too_few(problem, solution, "machine")]
    return (*map(printable, reasons), *_remedy(shortage, "machine", "demand"))


def _too_slow(job: TimeSharedJob) -> str:
    """Say which point of a job without an admissible one comes nearest, and what it needs."""
    points = [(2 * point.length, block) for block, own in job.points.items() for point in own]
    if not points:
        return f"job {job.name!r}: no batch of it was measured on any block"
    needed, block = min(points)
    return (
        f"job {job.name!r}: no batch keeps its latency limit {short(job.limit, math.floor)}, "
        f"even alone; the quickest, on {block}, needs {short(needed, math.ceil)}"
    )


def _remedy(shortage: Shortage | None, machine: str, demand: str) -> tuple[str, ...]:
    return () if shortage is None else (printable(shortage.remedy(machine, demand)),)


def _too_few(problem: MachineProblem, solution: Solution, machine: str) -> str:
    """Name the limits that the proof blames, and those that it shows to be without blame.

    A proof that puts no price on a limit holds whatever that limit is.
    """
    limited = [machine for machine in problem.machine_types if machine.limit is not None]
    blamed = limited
    if solution.proof == "checked":
        leaves = list(solution.certificate.leaves())
        blamed = [m for m in limited if any(leaf.limit_prices.get(m.name) for leaf in leaves)]
    there = " and ".join(f"{decimal(m.limit or 0)} x {printable(m.name)}" for m in blamed)
    sentence = f"the {machine}s do not suffice: there are only {there}"
    if others := [printable(m.name) for m in limited if m not in blamed]:
        sentence += f" (more {' or '.join(others)} alone would not help)"
    return sentence


def refusal_page(head: str, reasons: Sequence[str]) -> Page:
    """Say what cannot be, and why."""
    told = Bullets([("-", why) for why in reasons])
    return Page("", sections=[Section("why", "", [Words(head, "head"), told])])


#: What a promise rests on, best first.
_EVIDENCE = {
    "measured": "measured load curves",
    "simulated": "simulated load curves",
    "table": "the shipped table, for batches that take as long as full ones",
    "certified": "proof, for batches that take as long as full ones",
}


def promised(serving: AnyServing) -> str:
    """Say what holds of the latencies under a plan, under which arrivals and which routing."""
    if isinstance(serving, SharedServing):
        return _kept(serving)
    rule, promise = serving.rule, serving.promise
    name = printable(rule.name)
    free = sum(each.latency_limit_ms is None for each in serving.services)
    if promise is None and rule.promise is not None:
        return (
            f"the rule {name} promises nothing of latencies here: no service has a limit, so that "
            "an instance counts for all that it works off; 'cms simulate' says how long requests "
            "take"
        )
    if promise is None:
        left_open = "how many requests are late under load is open"
        if isinstance(rule, LatencyRule):
            left_open = (
                "it looks at the latency of a batch, not at how many requests are late under load"
            )
        return (
            f"the rule {name} promises nothing about waiting: {left_open}; 'cms simulate' tries "
            "that, '--rule capacity' plans for it"
        )
    own = any(each.late_share is not None or each.queue for each in serving.services)
    found = {
        each.kind
        for (service, _), points in serving.points.items()
        for point in points
        if (each := evidence_of(rule, serving.service(service), point)) is not None
    }
    rests = ", ".join(words for kind, words in _EVIDENCE.items() if kind in found)
    tried = "'cms simulate' tries them"
    if "measured" in found:
        tried = "'cms simulate' replays batches, so no service that counts on a measured curve"
    without = "the service" if free == 1 else f"the {free:,} services"
    return (
        f"promised by the rule {name}: {promise}"
        f"{'; services with a late share or queue of their own keep to that' if own else ''}"
        f"{f' (by {rests})' if rests else ''}. Not promised: "
        f"{f'any latency of {without} without a limit, ' if free else ''}"
        f"other arrivals, higher rates, equal shares; {tried}"
    )


def beside_one_another(serving: NeighbourServing) -> str:
    """Say what a plan under interference knows of it."""
    pairs = count(len(serving.interference), "pair")
    return f"batches slow one another, by {pairs}, in {count(serving.classes, 'class')}"


def between_classes(plan: Plan) -> str:
    """Say what lies between a plan under interference and its bound; empty if nothing does."""
    if not isinstance(plan.serving, NeighbourServing) or plan.answer.status == "infeasible":
        return ""
    more = f"more than {plan.serving.classes} of them (classes in [time_sharing]) may"
    if plan.solution.status == "infeasible":
        return (
            "no plan keeps its limits beside the worst of each class, which does not say that "
            f"there is none: {more} find one"
        )
    if plan.answer.gap:
        return (
            "planned beside the worst of each class and proved beside the best: "
            f"{more} bring the two nearer"
        )
    return ""


def _kept(serving: SharedServing) -> str:
    """Say what a rule of frames keeps: everything, of arrivals that are as even as can be."""
    headroom, rule = serving.sharing.headroom, serving.sharing.rule
    rates = "rates given" if headroom is None else "planned rates"
    slowed = isinstance(serving, NeighbourServing)
    beside = ", beside the worst that a block's name lets be there" if slowed else ""
    slower = "slowdowns that were not in the table, " if slowed else ""
    more = (
        "the setting headroom plans for more" if headroom is None else "the head-room is for them"
    )
    return (
        f"kept under the rule {rule}: every limit, if the requests of an instance come evenly "
        f"spaced, at up to the {rates}{beside}: never more than a batch in a frame. Not promised: "
        f"{slower}random arrivals; {more}"
    )
