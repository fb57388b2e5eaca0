"""A deployment: whether what is on each GPU can be there, and whether it keeps its plan's promise.

What it must do is supply each service's rate. A plan's problem and solution are checked as in a
plan's own file; then its demands are to be supplied, which may be more. Which instances do so is
not asked: a plan that is near to another deployment may let older points run on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from .available import count_faults
from .cut import cut_faults
from .devices import read_devices
from .fleet import Card, layout_faults, read_cards, supplies, work_fault
from .headroom import examine_headroom
from .problem import Problem, read_problem
from .rates import group_faults, rate_faults
from .reading import check_head, record, sentences, show
from .solution import examine
from .supplies import Point, Service, read_points, read_rule, read_services
from .turns import turn_faults

_DEPLOYMENT = "format schema rule services points devices nodes plan"


def examine_deployment(document: object) -> tuple[list[str], str]:
    """Say what is wrong with a deployment, and what was found."""
    check_head(document, "deployment")
    fields = record(document, "the deployment", _DEPLOYMENT)
    services = read_services(fields["services"])
    rule = read_rule(fields["rule"])
    points, faults, taken = read_points(fields["points"], services, rule, {}, set())
    cards = read_cards(fields["nodes"], read_devices(fields["devices"]), points, "")
    faults += fleet_faults(cards.values(), points, services)
    held, is_equal = [each for card in cards.values() for each in card.held], False
    words, demands = [f"{len(held)} instances on {len(cards)} GPUs are where they can be"], {}
    if fields["plan"] is not None:
        problem, more, about = _plan(fields["plan"])
        faults += more or count_faults(fields["plan"], list(cards.values()))
        words.append(f"its plan: {about}")
        demands = {name: job.demand for name, job in problem.jobs.items()}
        rules = [job.row.rule for job in problem.jobs.values() if problem.sharing is None]
        is_equal = any(rule is not None and rule.routing == "equal" for rule in rules)
    given = supplies(held, points, is_equal=is_equal)
    faults += short(services, given)
    faults += [
        f"service {show(name)} is supplied {show(given[name])} requests/s of the {show(demand)} "
        "that the plan promises"
        for name, demand in demands.items()
        if given[name] < demand
    ]
    words += taken_words(taken)
    return faults, "; ".join(words)


def check_deployment(document: object) -> list[str]:
    """Say what is wrong with a deployment, in sentences; nothing if all holds."""
    return sentences(lambda: examine_deployment(document)[0])


def fleet_faults(
    cards: Iterable[Card], points: Mapping[str, Point], services: Mapping[str, Service]
) -> list[str]:
    """Say what cannot be where it is, or cannot run what it runs."""
    faults = []
    for card in cards:
        if broken := layout_faults(card):
            faults += broken
        elif card.mode == "mps":
            faults += turn_faults(card.name, card.held, points, services)
        for each in card.held:
            point = None if each.point is None else points[each.point]
            own = None if point is None else services.get(point.service)
            if why := work_fault(card, each, points):
                faults.append(why)
            elif point is not None and own is not None and point.model != own.model:
                faults.append(f"{card.name}: {each} runs another model than its service")
    return faults


def short(services: Mapping[str, Service], given: Mapping[str, Fraction]) -> list[str]:
    """Say which services are supplied less than their rate."""
    return [
        f"service {show(name)} is supplied {show(given[name])} of {show(service.rate)} requests/s"
        for name, service in services.items()
        if given[name] < service.rate
    ]


def taken_words(taken: Mapping[str, int]) -> list[str]:
    """Say how many supplies rest on more than what was computed and proved."""
    return [f"the supplies of {count} points {words}" for words, count in taken.items()]


def _plan(plan: Any) -> tuple[Problem, list[str], str]:
    check_head(plan, "plan")
    problem = read_problem(plan.get("problem"))
    faults, about = examine(problem, plan.get("solution"))
    faults = [*cut_faults(plan, problem), *rate_faults(plan, problem), *faults]
    faults = faults or [*group_faults(plan, problem), *examine_headroom(plan, problem)[0]]
    return problem, [f"its plan: {fault}" for fault in faults], about
