"""A plan as a page: its GPUs, services, what is scarce, more rates, both bounds, the proof."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from ....solving.words import circumstances, verdict
from ....values.words import at_least, count, decimal, percent
from ...serving.neighbours import NeighbourServing
from ...serving.rate_curve import MULTIPLES
from ...serving.whole_gpus import whole_gpus
from ..bars import bars, widths_of
from ..canvas import Canvas
from ..promised import between_classes, promised
from ..reasons import plan_reasons
from ..services import instance_words, plans_for_more, spare, tightest_line
from ..svg import draw_gpus
from ..terminal import scarcest, subject_line
from .charts import bounds_chart, known_of, rates_chart, words_of
from .parts import Cell, Column, Fact, Grid, Page, Part, Picture, Section
from .proofs import proof_section
from .worths import worth_parts

if TYPE_CHECKING:
    from ....problem.machine_problem import MachineProblem
    from ...serving import Plan, ServicePlan
    from ...serving.rate_curve import RatePoint

__all__ = ["plan_page", "plan_sections"]

_NOT_KNOWN = math.nan


def plan_page(
    plan: Plan, title: str, source: str = "", curve: Sequence[RatePoint] | str = ()
) -> Page:
    """Put a plan on a page.

    Parameters
    ----------
    plan : Plan
        Rechecked.
    title : str
    source : str
        Its file.
    curve : sequence of RatePoint, or str
        GPUs at multiples of all rates; or why there are none.
    """
    sections: list[Section] = []
    if why := plan_reasons(plan):
        sections.append(Section("why", "Why it is impossible", list(why)))
    drawn = bars(plan)
    if drawn:
        canvas = Canvas()
        draw_gpus(canvas, plan, drawn)
        note = (
            f"A bar is a GPU; width: {widths_of(drawn)}. An instance is at a start where it fits. "
            "GPUs that are cut and used alike are drawn once, with their number before them. p: "
            "processes, b: batch size; hatched: idle or free."
        )
        said = f"GPUs of {title}: {verdict(plan.answer, 'GPU')}"
        sections.append(Section("fleet", "The GPUs", [note, Picture(canvas, said)]))
    sections.append(_services(plan))
    sections += plan_sections(plan, source, curve)
    return Page(title, subject_line(plan), list(_facts(plan)), sections, source)


def plan_sections(
    plan: Plan, source: str = "", curve: Sequence[RatePoint] | str = ()
) -> Iterator[Section]:
    """What a plan says beyond its GPUs and services: scarcity, more rates, bounds and proof."""
    if plan.solution.cost is not None and not isinstance(plan.serving, NeighbourServing):
        parts = worth_parts(plan.solution, plan.serving.problem, "GPU", scarcest(plan))
        if parts:
            yield Section("scarce", "What is scarce", parts)
    if curve:
        yield Section("rates", "If the rates change", list(_rates(plan, curve)))
    problem: MachineProblem = plan.serving.problem
    if isinstance(plan.serving, NeighbourServing):  # schedule and bound are of two problems
        problem = plan.serving.outer
    elif plan.solution.history:
        yield _bounds(plan)
    yield proof_section(plan.answer, problem, "GPU", source, more=between_classes(plan))


def _facts(plan: Plan) -> Iterator[Fact]:
    answer = plan.answer
    if answer.cost is None:
        proof = answer.proof == "checked"
        yield Fact("GPUs", "none", verdict(answer, "GPU"), "good" if proof else "bad")
        return
    gpus: dict[str, int] = {}
    for group in plan.groups:
        gpus[group.gpu] = gpus.get(group.gpu, 0) + group.count
    number = answer.machine_count or 0
    needed = ", ".join(f"{decimal(n)} × {key}" for key, n in gpus.items()) or "no GPU"
    priced = answer.cost != number
    cost = f" at a cost of {decimal(answer.cost, rounding=math.ceil)}" if priced else ""
    yield Fact("GPUs", decimal(number), f"{needed}{cost}")
    least = "any plan costs" if priced else "any plan needs"
    note = f"{least} at least so {'much' if priced else 'many'}"
    if answer.gap:
        note += f"; at most {percent(answer.relative_gap or Fraction(0), up=True)} above the best"
    yield Fact("Bound", f"≥ {at_least(answer.lower_bound)}", note)
    yield _proof_fact(plan)
    yield _saving(plan, number, answer.cost)


def _proof_fact(plan: Plan) -> Fact:
    answer = plan.answer
    if answer.status == "optimal" and answer.proof == "checked":
        return Fact("Proof", "optimal", "the proof was checked exactly", "good")
    if answer.status == "optimal":
        return Fact("Proof", "a solver's word", "nobody checked that fewer do not do", "fair")
    return Fact("Proof", "of the bound", "whether fewer do is open; the bound is checked", "fair")


def _saving(plan: Plan, gpus: int, cost: Fraction) -> Fact:
    """What is saved against whole GPUs, each for one service."""
    whole = whole_gpus(plan)
    if whole.unknown:
        names = count(len(whole.unknown), "service")
        first = f", {whole.unknown[0]} for one" if len(whole.unknown) < len(plan.services) else ""
        return Fact(
            "Saving", "not known", f"{names} was not measured on a whole GPU, or is too slow{first}"
        )
    if not whole.cost:
        return Fact("Saving", "none", "there is nothing to serve")
    saved = 1 - cost / whole.cost
    beside = count(whole.gpus, "whole GPU")
    note = f"against {beside}, each for one service alone"
    if cost != gpus or whole.cost != whole.gpus:  # not of GPUs, where these differ in cost
        costs = f"{decimal(cost, rounding=math.ceil)} of {decimal(whole.cost, rounding=math.floor)}"
        note = f"of the cost, {costs} {note}"
    return Fact("Saving", percent(saved), note, "good" if saved > 0 else "")


# --- services -------------------------------------------------------------------------------------


def _services(plan: Plan) -> Section:
    more = plans_for_more(plan)
    models = any(each.service.name != each.service.model for each in plan.services)
    columns = [
        Column("#", number=True), Column("service, model" if models else "service"),
        Column("wanted/s", number=True), *([Column("planned/s", number=True)] if more else []),
        Column("served/s", number=True), Column("may grow", number=True),
        Column("needs", number=True), Column("limit", number=True),
        Column("of the limit", number=True), Column("instances", number=True),
        Column("which", long=True),
    ]  # fmt: skip
    rows = [list(_row(plan, place, each, models, more)) for place, each in enumerate(plan.services)]
    parts: list[Part] = [
        "May grow: by how much this service's rate alone may rise on what it has. Of the limit: "
        "what the slowest of its instances needs by the rule, over its latency limit.",
        Grid("Services", columns, rows),
    ]
    if plan.solution.cost is not None:
        parts.append(_sentence(promised(plan.serving)))
    if tightest := tightest_line(plan):
        parts.append(_sentence(tightest))
    parts += [f"Warning: {warning}" for warning in plan.serving.warnings]
    return Section("services", "Services", parts)


def _row(plan: Plan, place: int, each: ServicePlan, models: bool, more: bool) -> Iterator[Cell]:
    asked, least = each.service, each.planned_rps if more else each.wanted_rps
    yield Cell("", place + 1, place)
    yield Cell(f"{asked.name}\n{asked.model}" if models else asked.name)
    yield Cell(decimal(each.wanted_rps), each.wanted_rps)
    if more:
        yield Cell(decimal(each.planned_rps), each.planned_rps)
    short = each.provided_rps < least
    yield Cell(decimal(each.provided_rps), each.provided_rps, tone="bad" if short else "")
    grows = each.provided_rps / least - 1 if least else _NOT_KNOWN
    yield Cell(spare(each, more), grows)
    yield from _latency(each)
    yield Cell(decimal(each.instances), each.instances)
    yield Cell("\n".join(instance_words(plan, use) for use in each.uses) or "-")


def _latency(each: ServicePlan) -> Iterator[Cell]:
    """What the slowest instance needs, the limit, and the one over the other."""
    limit = each.service.latency_limit_ms
    needs = [
        use.point.latency_ms if limit is None or use.slack_ms is None else limit - use.slack_ms
        for use in each.uses
    ]
    longest = max(needs, default=None)
    yield _milliseconds(longest)
    yield _milliseconds(limit)
    if longest is None or not limit:
        yield Cell("-", _NOT_KNOWN)
    else:
        yield Cell(percent(longest / limit, up=True), longest / limit)


def _milliseconds(value: Fraction | None) -> Cell:
    return Cell("-", _NOT_KNOWN) if value is None else Cell(f"{decimal(value)} ms", value)


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


# --- bounds and rates -----------------------------------------------------------------------------


def _bounds(plan: Plan) -> Section:
    solution = plan.solution
    known = known_of(solution.history)
    unit = "GPUs" if solution.cost == solution.machine_count else "cost"
    canvas = bounds_chart(known, solution.seconds, f"{unit} found", "bound")
    columns = Column("time", number=True), Column(unit, number=True), Column("bound", number=True)
    rows = [
        [
            Cell(f"{line.seconds:.3f} s", line.seconds),
            Cell("-", _NOT_KNOWN)
            if line.best is None
            else Cell(decimal(line.best, rounding=math.ceil), line.best),
            Cell(at_least(line.bound), line.bound),
            Cell(line.source),
        ]
        for line in known
    ]
    grid = Grid("Each improvement", [*columns, Column("by")], rows, folded=True)
    said = f"What was found and what was proved over time: {verdict(solution, 'GPU')}"
    run = f"The run: {circumstances(solution)}."
    return Section("bounds", "Both bounds over time", [run, Picture(canvas, said), grid])


def _found(point: RatePoint) -> Cell:
    if point.cost is not None:
        return Cell(decimal(point.cost), point.cost)
    if point.status == "infeasible":
        return Cell("cannot be served", math.inf)
    return Cell("not known", _NOT_KNOWN)


def _rates(plan: Plan, curve: Sequence[RatePoint] | str) -> Iterator[Part]:
    if isinstance(curve, str):
        yield curve
        return
    unit = "GPUs" if plan.solution.cost == plan.solution.machine_count else "cost"
    open_ = sum(each.cost is not None and each.cost != each.bound for each in curve)
    lost = sum(each.cost is None for each in curve)
    never = sum(each.status == "infeasible" for each in curve)
    said = "planned again at each multiple of all rates, every point rechecked: "
    if open_ or lost:
        said += f"{count(len(curve) - open_ - lost, 'point')} proved fewest, {open_:,} open "
        said += f"(hollow, with the bound below), {lost:,} without a plan"
        said += f" ({never:,} cannot be served, proved)" if never else ""
    else:
        said += "all proved fewest"
    if missing := len(set(MULTIPLES) - {each.rate for each in curve}):
        said += f"; there was no time for {count(missing, 'further one')}"
    yield _sentence(said)
    if any(each.cost is not None for each in curve):
        yield Picture(rates_chart(curve, unit), words_of(curve, unit))
    columns = (
        Column("all rates", number=True), Column(unit, number=True),
        Column("proved >=", number=True), Column("status"),
    )  # fmt: skip
    rows = [
        [
            Cell(f"{decimal(each.rate)} ×", each.rate),
            _found(each),
            Cell("-", math.inf)
            if each.status == "infeasible"
            else Cell(at_least(each.bound), each.bound),
            Cell(each.status.replace("_", " ")),
        ]
        for each in curve
    ]
    yield Grid("GPUs at each multiple of the rates", columns, rows, folded=True)
