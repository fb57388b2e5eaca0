"""Plans: GPUs, services, what is scarce, more rates, both bounds, the proof."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial

from ...errors import cut
from ...infeasibility.shortage import Growth, Shortage
from ...problem.machine_problem import MachineProblem
from ...solving.words import circumstances, verdict
from ...values.words import count, decimal, money, percent, printable
from ..serving import (
    CapacityRule,
    LatencyRule,
    NeighbourServing,
    Plan,
    ServicePlan,
    ServingProblem,
    SharedServing,
    Use,
)
from ..serving.operating_point import mps_share
from ..serving.rate_curve import MULTIPLES, RatePoint, whole_gpus
from . import proofs
from .bars import draw_plan, format_setting
from .charts import history_table, rates_parts
from .page import Fact, Page, Part, Section, Words
from .tables import Cell, format_ms, key_cell, limit_cell, number, table

#: With less headroom a plan says how near a limit is: repeated measurements differ by as much.
_TIGHT = Fraction(1, 20)


def plan_page(
    plan: Plan,
    title: str,
    source: str = "",
    curve: Sequence[RatePoint] | str = (),
    shortage: Shortage | None = None,
    growth: Growth | None = None,
) -> Page:
    """Describe a plan.

    `source`: its file. `curve`: GPUs at multiples of all rates, or why there are none. `shortage`:
    sufficient changes. `growth`: of all rates.
    """
    problem: MachineProblem = plan.serving.problem
    reasons = proofs.find_reasons(problem, plan.answer, shortage, plan.serving)
    sections = [*proofs.why_section(reasons)]
    if bars := list(draw_plan(plan)):
        alike = "A bar is a GPU; GPUs that are used alike are drawn once, with their number."
        note = Words(alike, "soft", "web")
        sections.append(Section("fleet", "The GPUs", [note, *bars], drawn=True))
    sections.append(_services(plan, growth))
    sections += plan_sections(plan, source, curve)
    end = proofs.list_verdict(plan.answer, "GPU", plan.serving.currency)
    if plan.answer.proof == "checked":
        both = "cms-check and cms-check --proved (Coq) recheck"
        others = both if "proved" in plan.checkers else "cms-check rechecks"
        said = Words(f"checked by the package; {others} the file", "soft")
        sections.append(Section("checked", "", [said], only="terminal"))
    if left_open := proofs.explain_gap(plan):
        end.append(Words(left_open))
    return Page(title, _subject(plan), list(_facts(plan)), sections, source, end)


def plan_sections(
    plan: Plan, source: str = "", curve: Sequence[RatePoint] | str = ()
) -> Iterator[Section]:
    """Yield the sections of a plan after GPUs and services."""
    if isinstance(curve, str):
        yield Section("rates", "If the rates change", [curve], only="web")
    elif curve:
        missing = len(set(MULTIPLES) - {each.rate for each in curve})
        rates = rates_parts(curve, find_cost_unit(plan, "GPUs"), missing)
        yield Section("rates", "If the rates change", rates, only="web")
    problem: MachineProblem = plan.serving.problem
    if isinstance(plan.serving, NeighbourServing):  # schedule and bound are of two problems
        problem = plan.serving.outer
    elif history := plan.solution.history:
        known = ((at.seconds, at.cost, at.lower_bound, at.source) for at in history)
        grid = history_table(known, find_cost_unit(plan, "GPUs"), up=True)
        run = f"The run: {circumstances(plan.solution)}."
        yield Section("bounds", "Both bounds over time", [run, grid], only="web")
    yield proofs.proof_section(plan, problem, source)


def find_cost_unit(plan: Plan, gpus: str = "GPU") -> str:
    """Return the unit of costs: money by the hour, else GPUs, unless some do not cost 1."""
    costs = {machine.cost for machine in plan.serving.problem.machine_types}
    if plan.serving.currency:
        return f"{plan.serving.currency}/h"
    return gpus if costs == {1} else "cost"


def _subject(plan: Plan) -> str:
    """Say how many services a plan serves, on which GPUs, by which rule."""
    serving = plan.serving
    rule = f"rule {serving.rule_name}"
    if isinstance(serving, SharedServing):
        rule = f"{serving.sharing}"
        if isinstance(serving, NeighbourServing):
            pairs, classes = len(serving.interference), count(serving.classes, "class")
            rule += f"; batches slow one another, by {count(pairs, 'pair')}, in {classes}"
    elif isinstance(serving.rule, LatencyRule | CapacityRule):
        rule = f"{serving.rule}"
    free = sum(service.latency_limit_ms is None for service in serving.services)
    if free == len(serving.services):
        rule = "no service has a latency limit"
    elif free:
        rule += f" ({free:,} without a limit)"
    rule += ", equal routing" if serving.routing == "equal" else ""
    keys = ", ".join(gpu.key for gpu in serving.gpus)
    return f"{count(len(serving.services), 'service')} on {keys}, {rule}"


def _facts(plan: Plan) -> Iterator[Fact]:
    answer, checked = plan.answer, plan.answer.proof == "checked"
    currency = plan.serving.currency
    if answer.cost is None:
        yield Fact("GPUs", "none", verdict(answer, "GPU", currency), "good" if checked else "bad")
        return
    gpus = Counter[str]()
    for group in plan.groups:
        gpus[group.gpu] += group.count
    needed = ", ".join(f"{decimal(n)} × {key}" for key, n in gpus.items()) or "no GPU"
    yield Fact("GPUs", decimal(answer.machine_count or 0), needed)
    priced = find_cost_unit(plan) != "GPU"
    least = money(answer.lower_bound, currency, math.floor)
    note = f"every plan needs at least {least} GPUs"
    if priced:
        yield Fact("Cost", money(answer.cost, currency), "of these GPUs together")
        note = f"no plan costs less than {least}"
    if answer.gap:
        gap = percent(answer.relative_gap or Fraction(0), up=True)
        note += f"; at most {gap} above the optimum"
    yield Fact("Lower bound", f"≥ {least}", note)
    proof = ("of the bound", "whether less does is open; the bound is checked", "fair")
    if answer.status == "optimal":
        claimed = ("claimed", "claimed by the solver: the checked bound is lower", "fair")
        proof = ("optimal", "the proof was checked exactly", "good") if checked else claimed
    yield Fact("Proof", *proof)
    if (found := plan.latency_headroom) is not None:
        note, tone = f"first to break: {cut(found.service)}", "fair" if found.share < _TIGHT else ""
        yield Fact("Slower batches", f"+ {percent(found.share)}", note, tone)
    whole = whole_gpus(plan)
    if whole.unknown:
        first = f", {whole.unknown[0]} for one" if len(whole.unknown) < len(plan.services) else ""
        lost = f"{count(len(whole.unknown), 'service')}{first}"
        yield Fact("Saving", "not known", f"not measured on a whole GPU, or too slow: {lost}")
    elif whole.cost:
        before = money(whole.cost, currency, math.floor)
        note = f"of {count(whole.gpus, 'whole GPU')}, each for one service alone"
        note = f"of the cost of whole GPUs for each service alone, {before}" if priced else note
        saved = 1 - answer.cost / whole.cost
        yield Fact("Saving", percent(saved), note, "good" if saved > 0 else "")


def _services(plan: Plan, growth: Growth | None) -> Section:
    shared = isinstance(plan.serving, SharedServing)
    more = shared and any(each.planned_rps != each.wanted_rps for each in plan.services)
    models = any(each.service.name != each.service.model for each in plan.services)
    grid = table(
        "Services",
        f">#|service|{'model:3|' * models}>limit:2|>wanted/s|{'>planned/s|' * more}>served/s|"
        ">headroom|>needs:9|>of the limit:9|>slower batches:9|instances*",
        (_row(plan, place, each, models, more) for place, each in enumerate(plan.services)),
        "more service| (all with --json)",
    )  # fmt: skip
    note = (
        "Headroom: how much this service's rate alone may rise. Needs: the latency of its slowest "
        "instance by the rule. Slower batches: how much longer than measured all may take."
    )
    parts: list[Part] = [Words(note, "soft", "web"), grid]
    warnings = [Words(f"Warning: {each}", "fair", "web") for each in plan.serving.warnings]
    if plan.solution.cost is None:
        return Section("services", "Services", [*parts, *warnings], only="web")
    said = [
        format_tightest(plan), format_replicas(plan), proofs.describe_promise(plan.serving),
        format_headroom(plan),
    ]  # fmt: skip
    said += [] if growth is None else [growth.sentence("GPU", "rate")]
    parts += proofs.write_sentences(*said)
    found = proofs.find_worths(plan.solution, plan.serving.problem)
    if found and not isinstance(plan.serving, NeighbourServing):  # prices are of several problems
        slices, in_use = {}, {group.gpu for group in plan.groups}
        for block in found.shares:
            key, profile = plan.serving.instance_of(block)
            gpu = plan.serving.gpu_of(key)
            if key in in_use and mps_share(profile) is None:
                slices[block] = gpu.profile(profile).compute, gpu.compute_slices
        lines = proofs.format_worths(found, "GPU"), proofs.format_scarcest(found, slices)
        parts += [f"{line}." for line in lines if line]
    return Section("services", "Services", [*parts, *warnings], drawn=True)


def _row(plan: Plan, place: int, each: ServicePlan, models: bool, more: bool) -> Iterator[Cell]:
    asked, least = each.service, each.planned_rps if more else each.wanted_rps
    yield from (key_cell(place), Cell(cut(asked.name)), *[Cell(cut(asked.model))] * models)
    limit = asked.latency_limit_ms
    yield limit_cell(limit)
    yield from map(number, (each.wanted_rps, *([each.planned_rps] if more else [])))
    yield number(each.provided_rps, tone="bad" if each.provided_rps < least else "")
    yield number(each.provided_rps / least - 1 if least else None, percent)
    longest = max((
        use.point.latency_ms if limit is None or use.slack_ms is None else limit - use.slack_ms
        for use in each.uses
    ), default=None)  # fmt: skip
    yield number(longest, format_ms)
    part = None if longest is None or not limit else longest / limit
    yield number(part, partial(percent, up=True))
    yield number(each.latency_headroom, percent)
    yield Cell("\n".join(format_use(plan, use) for use in each.uses) or "-")


def format_use(plan: Plan, use: Use) -> str:
    """Say how many instances run what: ``3 x 2g.20gb (p=2 b=8, 812/s, 41 ms)``."""
    where = f" on {use.gpu}" if len(plan.serving.gpus) > 1 else ""
    what, rate = f"{decimal(use.count)} x {use.profile}{where}", f"{decimal(use.supply_rps)}/s"
    if use.duty_cycle_ms is None:
        return f"{what} ({format_setting(use.point)}, {rate}, {decimal(use.point.latency_ms)} ms)"
    point, cycle = format_setting(use.point, brief=True), f"{decimal(use.duty_cycle_ms)} ms"
    slack = decimal(use.slack_ms or Fraction(0), rounding=math.floor)
    of = f" of a {cycle} duty cycle" if use.length_ms != use.duty_cycle_ms else f" alone, {cycle}"
    return f"{what} ({point}{of}, {rate}, {slack} ms to spare)"


def format_replicas(plan: Plan) -> str:
    """Say which services have replicas; empty if none have."""
    jobs = plan.serving.problem.jobs if isinstance(plan.serving, ServingProblem) else ()
    said = ", ".join(
        f"{printable(cut(job.name))} {count(job.replicas.count, 'instance')}"
        f"{f' of {percent(job.replicas.share)} of its rate' if job.replicas.share else ''}"
        for job in jobs
        if job.replicas is not None
    )
    return said and f"replicas at least: {said}"


def format_headroom(plan: Plan) -> str:
    """Say how much slower batches may be than measured, and whose limit breaks then."""
    if (found := plan.latency_headroom) is None:
        return ""
    said = (
        f"holds up to {percent(found.share)} slower batches; first to break: "
        f"{printable(cut(found.service))}"
    )
    if found.share >= _TIGHT:
        return said
    used = percent(1 / (1 + found.share), up=True)
    return f"{said}, at {used} of what its limit allows; --latency-margin 5% plans for more"


def format_tightest(plan: Plan) -> str:
    """Say which cycle is nearest to a limit; empty where nothing is shared in time."""
    uses = [
        (use.slack_ms, use.duty_cycle_ms, use.profile, each.service)
        for each in plan.services
        for use in each.uses
        if use.duty_cycle_ms is not None and use.slack_ms is not None
    ]
    if not uses:
        return ""
    slack, cycle, profile, service = min(uses, key=lambda each: each[0])
    return (
        f"tightest duty cycle: {decimal(cycle)} ms on {profile}, "
        f"{decimal(slack, rounding=math.floor)} ms to spare within the "
        f"{decimal(service.latency_limit_ms or Fraction(0))} ms of {printable(cut(service.name))}"
    )
