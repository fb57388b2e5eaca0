"""Why a decision keeps or changes the plan, in words; and the same as a JSON document."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from fractions import Fraction
from typing import Any

from ...files.documents import number_to_json
from ...values.numbers import shown
from ...values.words import count
from ..deployment.observation.age import format_time
from ..deployment.transition import transition_to_json
from .forecast import numbers_to_json
from .replan import Path, ReplanDecision, count_gpus


def headline(answer: ReplanDecision) -> str:
    """Say what is done now in a line."""
    gpus = count(count_gpus(answer.now), "GPU")
    if answer.keeps:
        return f"keep: what runs on {gpus} goes on"
    return f"change: {gpus} -> {count(count_gpus(answer.way.transition.target), 'GPU')}"


def reasons(answer: ReplanDecision) -> Iterator[str]:
    """Say why, a sentence each: rates, what is short, what either way costs, how it changes."""
    yield f"rates: {answer.history}; ahead: {answer.forecast}"
    found, windows, terms = answer.decision, answer.windows, answer.terms
    has = {each.service: each.has_rps for each in answer.services}
    for name in found.short:
        yield (
            f"{name} is short: {_number(windows.now[name])} requests/s are asked for, "
            f"{_number(has[name])} are there; what is short is replaced whatever that costs"
        )
    if found.keep is None and not found.short:
        for name, rate in windows.needs(0, 1).items():
            if (1 + terms.hysteresis) * has[name] < rate:
                yield (
                    f"{name} is not enough until {answer.said(1)}: {_number(rate)} requests/s are "
                    f"needed, with the margin, and {_number(has[name])} are there"
                )
    if found.change is None:
        yield "no plan that begins now serves the rates ahead"
    else:
        over, costs = windows.count * windows.hours, f"{_number(terms.replan_cost)} for each change"
        if terms.restart_cost:
            costs += f" and {_number(terms.restart_cost)} for each start it takes at least"
        yield (
            f"to change now costs {_number(found.change.cost)} GPU hours over {shown(over)} h, "
            f"{costs}: {_ways(answer, found.change)}"
        )
    if found.keep is not None:
        until = f"until {answer.said(found.keep.begin)}"
        rest = f", then {_ways(answer, found.keep)}" if found.keep.windows else ""
        yield f"to go on costs {_number(found.keep.cost)}: what runs {until}{rest}"
        if found.change is not None:
            yield (
                f"going on may cost {shown(100 * terms.hysteresis)} % more than changing, "
                f"{_number((1 + terms.hysteresis) * found.change.cost)}: it "
                f"{'does not' if found.keeps else 'would'} cost more than that"
            )
    if answer.keeps and not found.keeps:
        yield "the plan to change to is what runs already"
    if not answer.keeps:
        way = answer.way
        temporary = f", {way.temporary} more for a while" if way.temporary else ""
        starts = f"{count(way.starts, 'instance')} started{temporary}"
        takes = f"{format_time(way.seconds)}, of assumed durations"
        yield f"the change: {way.transition}; {starts}; {takes}"


def _ways(answer: ReplanDecision, path: Path) -> str:
    parts = []
    for window in _windows(answer, path):
        gpus = count(window["gpus"] or 0, "GPU")
        if beside := window["gpus_beside_foreign"]:
            costs = f"cost{'s' * (beside == 1)} nothing more"
            gpus += f" ({beside} beside foreign instances, which {costs})"
        proof = "" if window["is_proved"] else " (not proved least)"
        parts.append(f"{gpus} until {window['until']}{proof}")
    return ", then ".join(parts)


def _windows(answer: ReplanDecision, path: Path) -> Iterator[dict[str, Any]]:
    """Describe a path's windows; what GPUs beside foreign instances cost is nothing."""
    for a, b in path.windows:
        plan = answer.windows.ask(a, b)
        there = ((group.available, group.count) for group in plan.groups)
        yield {
            "from": answer.said(a),
            "until": answer.said(b),
            "gpus": plan.solution.machine_count,
            "gpus_beside_foreign": sum(n for each, n in there if each is not None and each.held),
            "is_proved": plan.solution.status == "optimal",
        }


def _number(value: Fraction) -> str:
    """To hundredths; what is exact is in the document."""
    return shown(Fraction(round(100 * value), 100))


def replan_decision_to_json(answer: ReplanDecision) -> dict[str, Any]:
    """Turn a decision into a JSON document: what is done, the reasons, and the transition.

    `gpus` of a window are all that its plan uses; `gpus_beside_foreign` of them cost nothing more.
    """
    found = answer.decision
    paths = {
        key: path
        and {
            "gpu_hours": number_to_json(path.cost),
            "begins": answer.said(path.begin),
            "windows": [*_windows(answer, path)],
        }
        for key, path in {"keep": found.keep, "change": found.change}.items()
    }
    return {
        "decision": "keep" if answer.keeps else "change",
        "headline": headline(answer),
        "reasons": list(reasons(answer)),
        "now": answer.said(0),
        "forecast": answer.forecast.to_json(),
        "terms": numbers_to_json(asdict(answer.terms)),
        "short": list(found.short),
        **paths,
        "services": [numbers_to_json(each._asdict()) for each in answer.services],
        "transition": transition_to_json(answer.way.transition),
    }
