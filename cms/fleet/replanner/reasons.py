"""Why a decision keeps or changes the plan, in words; and the same as a JSON document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from fractions import Fraction
from typing import Any, NamedTuple

from ...files.documents import number_to_json
from ...values.numbers import shown
from ...values.words import count
from ..deployment.observation.age import format_time
from ..deployment.transition import transition_to_json
from ..serving.plan import Plan
from .changing import count_gpus
from .replan import Path, ReplanDecision


class Supplied(NamedTuple):
    """A service's last rate, what runs for it now, and what will run after the change."""

    service: str
    rate_rps: Fraction
    has_rps: Fraction
    will_have_rps: Fraction


def services_of(answer: ReplanDecision) -> tuple[Supplied, ...]:
    """Return what each service is asked for, has and will have."""
    has, then = answer.has_rps, answer.will_have_rps
    return tuple(Supplied(name, r, has[name], then[name]) for name, r in answer.windows.now.items())


def headline(answer: ReplanDecision) -> str:
    """Say what is done now in a line."""
    gpus = count(count_gpus(answer.now), "GPU")
    if answer.keeps:
        return f"keep: what runs on {gpus} goes on"
    target = answer.way.transition.target
    return f"change: {gpus} -> {count(count_gpus(target), 'GPU')}"


def reasons(answer: ReplanDecision) -> Iterator[str]:
    """Say why, a sentence each: rates, what is short, what either way costs, how it changes."""
    yield f"rates: {answer.history}; ahead: {answer.forecast}"
    found, has, windows = answer.decision, answer.has_rps, answer.windows
    for name in found.short:
        yield (
            f"{name} is short: {_number(windows.now[name])} requests/s are asked for, "
            f"{_number(has[name])} are there; what is short is replaced whatever that costs"
        )
    if found.keep is None and not found.short:
        for name, rate in windows.needs(0, 1).items():
            if (1 + answer.terms.hysteresis) * has[name] < rate:
                yield (
                    f"{name} is not enough until {answer.said(1)}: {_number(rate)} requests/s are "
                    f"needed, with the margin, and {_number(has[name])} are there"
                )
    costs = f"{_number(answer.terms.replan_cost)} for each change"
    if answer.terms.restart_cost:
        costs += f" and {_number(answer.terms.restart_cost)} for each start it takes at least"
    if found.change is None:
        yield "no plan that begins now serves the rates ahead"
    else:
        over = f"{shown(windows.count * windows.hours)} h"
        yield (
            f"to change now costs {_number(found.change.cost)} GPU hours over {over}, {costs}: "
            f"{_ways(answer, found.change)}"
        )
    if found.keep is not None:
        until = f"until {answer.said(found.keep.begin)}"
        rest = f", then {_ways(answer, found.keep)}" if found.keep.windows else ""
        yield f"to go on costs {_number(found.keep.cost)}: what runs {until}{rest}"
        if found.change is not None:
            most = (1 + answer.terms.hysteresis) * found.change.cost
            yield (
                f"going on may cost {shown(100 * answer.terms.hysteresis)} % more than changing, "
                f"{_number(most)}: it {'does not' if found.keeps else 'would'} cost more than that"
            )
    if answer.keeps and not found.keeps:
        yield "the plan to change to is what runs already"
    if not answer.keeps:
        way = answer.way
        temporary = f", {way.temporary} more for a while" if way.temporary else ""
        starts = f"{way.starts} instance{'s' * (way.starts != 1)} started{temporary}"
        takes = f"{format_time(way.seconds)}, of assumed durations"
        yield f"the change: {way.transition}; {starts}; {takes}"


def _ways(answer: ReplanDecision, path: Path) -> str:
    parts = []
    for a, b in path.windows:
        plan = answer.windows.ask(a, b)
        proof = "" if plan.solution.status == "optimal" else " (not proved least)"
        gpus = count(plan.solution.machine_count or 0, "GPU")
        if beside := _count_beside(plan):
            costs = f"cost{'s' * (beside == 1)} nothing more"
            gpus += f" ({beside} beside foreign instances, which {costs})"
        parts.append(f"{gpus} until {answer.said(b)}{proof}")
    return ", then ".join(parts)


def _count_beside(plan: Plan) -> int:
    """Count the GPUs of a plan on which something foreign stays: they cost nothing."""
    there = ((group.available, group.count) for group in plan.groups)
    return sum(n for available, n in there if available is not None and available.held)


def _number(value: Fraction) -> str:
    """To hundredths; what is exact is in the document."""
    return shown(Fraction(round(100 * value), 100))


def replan_decision_to_json(answer: ReplanDecision) -> dict[str, Any]:
    """Turn a decision into a JSON document: what is done, the reasons, and the transition.

    `gpus` of a window are all that its plan uses; `gpus_beside_foreign` of them cost nothing more.
    """
    found = answer.decision
    paths = {"keep": found.keep, "change": found.change}
    return {
        "decision": "keep" if answer.keeps else "change",
        "headline": headline(answer),
        "reasons": list(reasons(answer)),
        "now": answer.said(0),
        "forecast": answer.forecast.to_json(),
        "terms": _numbers(asdict(answer.terms)),
        "short": list(found.short),
        **{key: path and _path_to_json(answer, path) for key, path in paths.items()},
        "services": [_numbers(each._asdict()) for each in services_of(answer)],
        "transition": transition_to_json(answer.way.transition),
    }


def _numbers(told: Mapping[str, Any]) -> dict[str, Any]:
    exact = ((key, isinstance(value, Fraction), value) for key, value in told.items())
    return {key: number_to_json(value) if is_number else value for key, is_number, value in exact}


def _path_to_json(answer: ReplanDecision, path: Path) -> dict[str, Any]:
    found = [(a, b, answer.windows.ask(a, b)) for a, b in path.windows]
    return {
        "gpu_hours": number_to_json(path.cost),
        "begins": answer.said(path.begin),
        "windows": [
            {
                "from": answer.said(a),
                "until": answer.said(b),
                "gpus": plan.solution.machine_count,
                "gpus_beside_foreign": _count_beside(plan),
                "is_proved": plan.solution.status == "optimal",
            }
            for a, b, plan in found
        ],
    }
