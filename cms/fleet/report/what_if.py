"""Choices for a service and their costs, and relaxations that save a GPU."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from ...values.words import brief, count, decimal, fraction, money, percent, printable
from ..serving import Plan
from ..what_if import Alternative, Explanation, Relaxation, Rightsizing
from ..what_if.least import Outcome, What
from .page import Page, Part, Section, Words
from .plans import find_cost_unit, format_use
from .proofs import list_verdict
from .tables import Cell, Grid, table


def explained_page(found: Explanation, plan: Plan, title: str) -> Page:
    """Describe the least cost of each other choice for a service."""
    given, service = found.given, found.given.service
    lead, parts = printable(str(service)), list[Part]()
    if given.planned_rps != service.rate_rps:
        lead += f", planned for {decimal(given.planned_rps)}"
    if given.uses:
        uses = ", ".join(format_use(plan, use) for use in given.uses)
        rate = decimal(given.provided_rps, rounding=math.floor)
        parts.append(f"Gets {rate} requests/s from {uses}.")
    if not given.planned_rps:
        parts.append("It wants nothing, so that there is nothing to choose.")
    if found.blocks:
        parts.append(_choices(found))
        if found.useless:
            names = ", ".join(map(printable, found.useless))
            said = f"of no use to it (too slow, not allowed or not measured): {names}"
            parts.append(Words(said, "soft"))
        parts += ["", *_meaning(found, find_cost_unit(plan), plan.serving.currency)]
    head = f"{title}: why {service.name} is served so"
    end = list_verdict(plan.answer, "GPU", plan.serving.currency)
    return Page(head, lead, (), [Section("choices", "Choices", parts)], end=end)


def _choices(found: Explanation) -> Grid:
    worth = any(each.worth is not None for each in found.blocks)
    alone = any(each.alone is not None for each in found.blocks)
    heads = (
        f"instance|>gives/s|>in use|{'>worth|' * worth}>one or more|{'>one alone|' * alone}"
        ">only these|>none"
    )
    cost = found.cost
    rows = [
        [each.block, brief(each.supply_rps), brief(each.count) if each.count else "-",
         *(["-" if each.worth is None else fraction(each.worth)] if worth else []),
         _choice(each.one, cost), *([_choice(each.alone, cost)] if alone else []),
         _choice(each.only, cost, f"{brief(each.needed)}: "), _choice(each.without, cost)]
        for each in sorted(found.blocks, key=lambda each: (each.gpu, each.supply_rps))
    ]  # fmt: skip
    return table("Choices", heads, rows, most=10**6)


def _choice(choice: Alternative | None, cost: Fraction | None, before: str = "") -> Cell:
    """Write the least cost of a plan, and its excess over the bound: ``>= 13 (+0.31)``."""
    if choice is None:
        return Cell(f"{before}-")
    if choice.bound is None or choice.more is None or choice.at_least is None:
        return Cell(f"{before}impossible", tone="open")
    dearer = cost is not None and choice.at_least > cost
    words = f"{before}>= {brief(choice.at_least)} (+{brief(choice.more, 2)})"
    return Cell(words, tone="open" if dearer else "")


def _meaning(found: Explanation, unit: str, currency: str) -> Iterator[str]:
    bound = money(found.bound, currency, math.floor)
    yield (
        f"A plan that serves {printable(found.given.service.name)} so "
        f"{'takes at least that many GPUs' if unit == 'GPU' else 'costs at least that much'}, by "
        f"the proof of this plan: its bound {bound} plus what the choice adds (in brackets), "
        "rounded up. It is a bound, no promise: such a plan may cost more, and there may be none."
    )
    if found.cases > 1:
        cases = count(found.cases, "case")
        yield f"The proof has {cases}; each number is the least of all of them."
    elif found.pays is not None and found.bound > 0:
        what = {"cost": " in cost", "GPU": " GPU" if bound == "1" else " GPUs"}.get(unit, "")
        yield (
            f"At the prices of the proof the service pays {decimal(found.pays)} of the bound, "
            f"which is {bound}{what}."
        )
    if found.bound <= 0:
        yield "The plan has no proof that says anything: plan with more time for better numbers."


_DIGITS = 7
#: Services that are named where no GPU can be saved, or that is not known.
_NAMED = 20
_WORDS = {what: what.replace("_", " ") for what in What}


def rightsized_page(found: Rightsizing, plan: Plan, title: str) -> Page:
    """Describe the least relaxation of each rate and limit that would save a GPU."""
    one, currency = find_cost_unit(plan) == "GPU", plan.serving.currency
    saves = "save a GPU" if one and found.cost - found.target == 1 else "save that much"
    cost, target = money(found.cost, currency), money(found.target, currency, round)
    head = f"{title}: what would {saves}, {'' if one or currency else 'cost '}{cost} -> {target}"
    parts: list[Part] = []
    if found.better is not None:
        there = f"with {cost} GPUs" if one else f"at a cost of {cost}"
        said = f"There is a plan {there} without any relaxation: plan again."
        parts.append(Words(said, "open"))
    if found.cost > found.target and not found.proved:
        parts.append(f"It is not proved that {target} does not suffice without any relaxation.")
    if one and found.target.denominator == 1:
        target = count(int(found.target), "GPU")
    less = f"a plan {'of' if one else 'that costs'} at most {target}"
    enough = [each for each in found.relaxations if each.plan is not None]
    if found.cost > found.target:
        heads, rest = "service|relaxed|>now|>enough|>change|", "more relaxation| (all with --json)"
        parts += [table("Relaxations", heads, map(_relaxation, enough), rest)] if enough else []
        parts += _named(found, Outcome.NONE, "alone is not enough, proved")
        parts += _named(found, Outcome.OPEN, "not known")
        parts += [f"not looked at: {printable(each)}" for each in found.unasked]
        parts += [""] if enough else []
        if any(each.outcome is Outcome.LEAST for each in found.relaxations):
            parts.append(
                f"The least, proved: with that number {less} was found and checked, and a checked "
                "certificate proves that anything short of it needs more."
            )
        if (first := found.least) and found.is_least_of_all and len(found.relaxations) > 1:
            parts.append(
                f"No smaller change of any one of these numbers is enough, proved: "
                f"{_change(first)} of the {_WORDS[first.what]} of {printable(first.service)} is "
                "least."
            )
    return Page(head, "", (), [Section("relaxations", "Relaxations", parts)])


def _relaxation(each: Relaxation) -> list[Cell | str]:
    found = Cell("the least, proved", tone="good")
    if each.outcome is not Outcome.LEAST:
        said = "found, not proved"
        if each.what is What.ALLOWED_PROFILES:
            said = "found together; fewer not proved"
        elif each.short is not None:
            short = _number(each.what, each.short, up=each.what is What.RATE)
            said = f"found; {short} is proved too little"
        found = Cell(said, tone="fair")
    now = "-" if each.now is None else _number(each.what, each.now, up=False)
    return [each.service, _WORDS[each.what], now, _enough(each), _change(each), found]


def _enough(each: Relaxation) -> str:
    if each.enough is None:
        joint = " or " if each.outcome is Outcome.LEAST else " and "
        return joint.join(map(printable, each.profiles))
    if each.what is What.RATE and not each.enough:
        return "0: without it"
    above = "above " if each.above else ""
    # the rounded number must be enough as well
    return above + _number(each.what, each.enough, up=each.what is not What.RATE)


def _number(what: What, value: Fraction, *, up: bool) -> str:
    rounding = math.ceil if up else math.floor
    if what is What.LATE_SHARE:
        return f"{decimal(100 * value, _DIGITS, rounding)} %"
    unit = "/s" if what is What.RATE else " ms"
    return decimal(value, _DIGITS, rounding) + unit


def _change(each: Relaxation) -> str:
    if each.change is None:
        return "-"
    return ("-" if each.what is What.RATE else "+") + percent(each.change, up=True)


def _named(found: Rightsizing, outcome: Outcome, words: str) -> Iterator[str]:
    """Name services by the relaxation with an outcome; of open ones the least change proved."""
    for what, name in _WORDS.items():
        own = [
            f"{printable(each.service)} (at least {percent(each.ruled_out)})"
            if outcome is Outcome.OPEN and each.ruled_out else printable(each.service)
            for each in found.relaxations
            if each.plan is None and each.outcome is outcome and each.what is what
        ]  # fmt: skip
        if own:
            more = f" and {decimal(len(own) - _NAMED)} more" if len(own) > _NAMED else ""
            yield f"{name}: {words}: {', '.join(own[:_NAMED])}{more}"
