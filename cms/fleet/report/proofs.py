"""Proofs of bounds and how to recheck them, promises of plans, and why there is no plan."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from ...certificate.certificate import BlockPrices
from ...certificate.price_conditions import most_worth
from ...infeasibility.shortage import Shortage, unservable_lines
from ...infeasibility.variants import machines_used, without_unservable_jobs
from ...problem.machine_problem import MachineProblem
from ...problem.parts import Block
from ...problem.problem import Problem
from ...solving.solution import Solution
from ...solving.words import circumstances, verdict
from ...time_sharing.model import TimeSharedJob
from ...time_sharing.problem import TimeSharedProblem
from ...values.words import count, decimal, fraction, money, printable, short
from ..serving import NeighbourServing, Plan, SharedServing
from ..serving.gpus_used import name_caps
from ..serving.posing import AnyServing
from ..serving.queueing import evidence_of
from .page import Bullets, Page, Part, Section, Words


def list_verdict(solution: Solution, machine: str = "machine", currency: str = "") -> list[Words]:
    """Return the last lines of a report: verdict and circumstances."""
    tone = "best" if solution.proof == "checked" else "open"
    said = verdict(solution, machine, currency)
    return [Words(said, tone), Words(f"({circumstances(solution)})", "soft")]


class Worths(NamedTuple):
    """The worth of each block in the proof of the bound, the least first.

    `absolute`: 1 is what any machine costs; otherwise it is the most valuable configuration.
    `cases`: leaves of the certificate, 1 if the proof does not branch.
    """

    shares: Mapping[Block, Fraction]
    absolute: bool = True
    cases: int = 1


def find_worths(solution: Solution, problem: MachineProblem) -> Worths | None:
    """Turn a certificate's prices into shares of a machine; None if there is nothing to say.

    Where machines differ in cost, and in a proof that branches, a price alone says little: there
    the shares are of the most valuable configuration, at the leaf that prices most blocks.
    """
    if solution.status == "infeasible":
        return None
    leaves = list(solution.certificate.leaves())
    leaf = max(leaves, key=lambda leaf: sum(price > 0 for price in leaf.prices.values()))
    costs = {machine.cost for machine in problem.machine_types}
    absolute = len(costs) == len(leaves) == 1
    prices = {block: leaf.prices.get(block, Fraction(0)) for block in problem.blocks}
    shapes = problem.configurations
    whole = min(costs) if absolute else max((most_worth(s, prices) for s in shapes), default=0)
    if not (whole and any(leaf.prices.values())):
        return None
    ranked = sorted(prices, key=lambda block: (prices[block], block))
    return Worths({block: prices[block] / whole for block in ranked}, absolute, len(leaves))


def format_worths(found: Worths, machine: str = "machine") -> str:
    """List the worths of the blocks."""
    shares = found.shares.items()
    listed = ", ".join(f"{printable(block)} {fraction(share)}" for block, share in shares)
    source = "the proof" if found.cases == 1 else f"one of the proof's {found.cases} cases"
    if found.absolute:
        return f"Worth in {machine}s, by the prices of {source}: {listed}"
    return f"Worth by the prices of {source}, a best-used {machine} being 1: {listed}"


def format_scarcest(found: Worths, slices: Mapping[Block, tuple[int, int]]) -> str:
    """Name the instance that is worth most beyond its compute slices, given with its GPU."""
    over = {block: found.shares[block] / Fraction(*own) for block, own in slices.items()}
    block = max(over, key=lambda block: over[block], default=None)
    if block is None or over[block] <= 1 or not found.absolute:  # unlike machines do not compare
        return ""
    own, all_ = slices[block]
    return (
        f"Scarcest: {printable(block)}, worth {fraction(found.shares[block])} of a GPU "
        f"for {own} of its {all_} compute slices"
    )


RECHECK_HEAD = (
    "Everything was rechecked from the file, in exact arithmetic, before this page was made. To "
    "recheck it (the independent checker shares no code with the package):"
)


def proof_section(plan: Plan, problem: MachineProblem, source: str) -> Section:
    """Say what the certificate of a plan proves of a problem, and how it is rechecked."""
    solution, leaves = plan.answer, list(plan.answer.certificate.leaves())
    parts: list[Part] = [f"{verdict(solution, 'GPU', plan.serving.currency)}."]
    if solution.status == "infeasible" and solution.proof == "checked":
        parts.append("The proof: prices at which the services need more than all GPUs are worth.")
    elif solution.lower_bound > 0:
        shared = not isinstance(leaves[0], BlockPrices)
        what = "each use of an instance" if shared else "every instance"
        least = money(solution.lower_bound, plan.serving.currency, math.floor)
        parts.append(
            f"The proof prices {what}, so that no GPU holds more than it costs. At these prices "
            f"the services together pay at least {least}, rounded up to what GPUs can cost."
        )
        if len(leaves) > 1:
            cases = count(len(leaves), "case")
            parts.append(f"It has {cases}, each with its own prices; every plan is one of them.")
    parts += [
        *write_sentences(explain_gap(plan)),
        RECHECK_HEAD,
        list_rechecks(source or "plan.json", proved="proved" in plan.checkers),
        f"SHA-256 of the problem: {problem.sha256}",
    ]
    return Section("proof", "The proof", parts, only="web")


def write_sentences(*said: str) -> list[str]:
    """Make sentences of clauses; of empty ones none."""
    return [f"{each[:1].upper()}{each[1:]}." for each in said if each]


def list_rechecks(*sources: str, proved: bool = False) -> Bullets:
    """Return the commands that recheck files; `proved`: also by the checker proved in Coq."""
    names = shlex.join(sources)
    every = [
        (f"cms check {names}", "everything the file says, exactly"),
        (f"cms-check {names}", "the same by an independent checker"),
        (f"cms-check --proved {names}", "schedule and bound by a checker proved in Coq"),
    ]
    return Bullets(every if proved else every[:2])


MOST_REASONS = 20


def why_section(reasons: Sequence[str]) -> Iterator[Section]:
    """Yield the reasons as a section, if there are any."""
    if reasons:
        yield Section("why", "Why it is impossible", [list_reasons(reasons)], drawn=True)


def list_reasons(reasons: Iterable[str]) -> Bullets:
    """List sentences."""
    return Bullets([("-", reason) for reason in reasons])


def find_reasons(
    problem: MachineProblem,
    solution: Solution,
    shortage: Shortage | None = None,
    serving: AnyServing | None = None,
) -> tuple[str, ...]:
    """Say why a problem is infeasible, and which changes would suffice; empty if it is feasible.

    One sentence for each job, or service of `serving`, that nothing serves within its limit; if
    there is none, the machines are too few, and one sentence says which.
    """
    if solution.status != "infeasible":
        return ()
    machine, demand = ("machine", "demand") if serving is None else ("GPU", "rate")
    reasons: list[str] = []
    if serving is not None:
        reasons += serving.unservable.values()
        if (more := len(reasons) - MOST_REASONS) > 0:
            reasons[MOST_REASONS:] = [f"... and {count(more, 'more service')}"]
    elif isinstance(problem, TimeSharedProblem):
        _, lost = without_unservable_jobs(problem.unshared())
        reasons += unservable_lines({name: blocks for name, blocks in lost.items() if blocks})
        reasons += [_too_slow(problem.job(name)) for name, blocks in lost.items() if not blocks]
    elif isinstance(problem, Problem):
        reasons += unservable_lines(without_unservable_jobs(problem)[1])
    reasons = reasons or [_too_few(problem, solution, machine, serving)]
    if shortage is not None and isinstance(problem, Problem):
        caps = () if serving is None else name_caps(serving.available)
        used = machines_used(problem, shortage.machines_schedule) if shortage.more_machines else {}
        raised = [  # the limits of groups, but for those of types, that it goes beyond
            f"group {it.name} at {decimal(needed, rounding=math.ceil)}"
            for it in problem.group_limits
            if (needed := sum(n * used.get(name, 0) for name, n in it.weights.items())) > it.at_most
            and it.name not in caps
        ]
        reasons.append(shortage.remedy(machine, demand, " and ".join(raised)))
    return tuple(map(printable, reasons))


def _too_slow(job: TimeSharedJob) -> str:
    """Name the point of a job that comes nearest to its limit, where none meets it."""
    points = [(2 * point.length, block) for block, own in job.points.items() for point in own]
    if not points:
        return f"job {job.name!r}: no batch of it was measured on any block"
    needed, block = min(points)
    return (
        f"job {job.name!r}: no batch meets its latency limit {short(job.limit, math.floor)}, "
        f"even alone; the quickest, on {block}, needs {short(needed, math.ceil)}"
    )


def _too_few(
    problem: MachineProblem, solution: Solution, machine: str, serving: AnyServing | None
) -> str:
    """Name the limits that the proof blames, and those that it shows to be without blame.

    A proof that puts no price on a limit holds whatever that limit is. `serving`: Of GPUs, of which
    it is said where more can be allowed; those on which something is held cannot be bought.
    """
    available = () if serving is None else serving.available
    caps, held = name_caps(available), {each.name for each in available if each.held}
    blamed = problem.limits
    if solution.proof == "checked":
        leaves = list(solution.certificate.leaves())
        blamed = tuple(
            it for it in blamed if any(leaf.limit_prices.get(it.name) for leaf in leaves)
        )
    types = [it for it in blamed if it.name in problem.machine_index]
    groups = [it for it in blamed if it not in types]
    there = [it for it in types if it.at_most or not available]
    listed = " and ".join(f"{decimal(it.at_most)} x {printable(it.name)}" for it in there)
    said = [f"there are only {listed}"] * bool(there)
    said += [f"no {printable(it.name)} is empty" for it in types if it not in there]
    said += [
        f"at most {decimal(it.at_most)} x {caps[it.name]} may be used"
        if it.name in caps
        else f"group {printable(it.name)} has a limit of {decimal(it.at_most)}"
        for it in groups
    ]
    sentence = f"the {machine}s do not suffice: {', and '.join(said)}"
    known = held | {caps.get(it.name, it.name) for it in blamed}
    names = dict.fromkeys(caps.get(it.name, it.name) for it in problem.limits)
    if others := [printable(name) for name in names if name not in known]:
        sentence += f" (more {' or '.join(others)} alone would not help)"
    if serving is None:
        return sentence
    where = {"--nodes" if available else "--max-gpus": None for _ in types}
    where |= {"--max-gpus" if it.name in caps else "[[group]] in fleet.toml": None for it in groups}
    return (
        f"{sentence}; allow more ({', '.join(where)}), lower the rates or relax the latency limits"
    )


def refusal_page(head: str, reasons: Sequence[str]) -> Page:
    """Say what cannot be, and why."""
    return Page("", sections=[Section("why", "", [Words(head, "head"), list_reasons(reasons)])])


#: The evidence of promises, the best first.
_EVIDENCE = {
    "measured": "measured load curves",
    "simulated": "simulated load curves",
    "table": "the shipped table, for batches that take as long as full ones",
    "certified": "proof, for batches that take as long as full ones",
}


def describe_promise(serving: AnyServing) -> str:
    """Say which latency limits are met under a plan, under which arrivals and which routing."""
    if isinstance(serving, SharedServing):
        return _promised_by_cycles(serving)
    rule, promise = serving.rule, serving.promise
    name = printable(rule.name)
    free = sum(each.latency_limit_ms is None for each in serving.services)
    if promise is None and rule.promise is not None:
        return (
            f"the rule {name} promises no latency here: no service has a limit; 'cms simulate' "
            "says how long requests take"
        )
    if promise is None:
        return (
            f"the rule {name} promises nothing about waiting: under load any number of requests "
            "may be late; 'cms simulate' tries that, '--rule capacity' plans for it"
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
    others = "unequal shares" if serving.routing == "equal" else "equal shares"
    without = "the service" if free == 1 else f"the {free:,} services"
    return (
        f"promised by the rule {name}: {promise}"
        f"{'; services with a late share or queue of their own keep to that' if own else ''}"
        f"{f' (by {rests})' if rests else ''}. Not promised: "
        f"{f'any latency of {without} without a limit, ' if free else ''}"
        f"other arrivals, higher rates, {others}; {tried}"
    )


def explain_gap(plan: Plan) -> str:
    """Explain the gap between a plan under interference and its bound; empty without one."""
    if not isinstance(plan.serving, NeighbourServing) or plan.answer.status == "infeasible":
        return ""
    more = f"more than {plan.serving.classes} of them (classes in [time_sharing]) may"
    if plan.solution.status == "infeasible":
        return f"no plan meets its limits beside the worst of each class; {more} find one"
    worst = "planned beside the worst of each class, proved beside the best"
    return f"{worst}: {more} bring the two nearer" if plan.answer.gap else ""


def _promised_by_cycles(serving: SharedServing) -> str:
    headroom, rule = serving.sharing.headroom, serving.sharing.rule
    rates = "rates given" if headroom is None else "planned rates"
    slowed = isinstance(serving, NeighbourServing)
    beside = ", beside the worst that a block's name lets be there" if slowed else ""
    slower = "slowdowns that were not in the table, " if slowed else ""
    more = "the setting headroom plans for more" if headroom is None else "the headroom is for them"
    return (
        f"met under the rule {rule}: every limit, for evenly spaced requests at up to the {rates}"
        f"{beside}. Not promised: {slower}random arrivals; {more}"
    )
