"""How much slower batches may be until a limit of a plan breaks, from what its points measured.

The supplies of the points in use are computed as well: the load is shared by them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from .problem import Problem
from .reading import ZERO, as_a, optional, record, show
from .schedule import read_schedule
from .supplies import POINT, SERVICE, read_curve, read_points, read_rule, read_services, slowest


def examine_headroom(plan: Mapping[str, Any], problem: Problem) -> tuple[list[str], str]:
    """Say what of a plan's points in use and latency_headroom is wrong, and what was computed.

    Of a schedule that holds. Not of services that share instances, or by a rule of the user's own.
    """
    if "operating_points" not in plan:  # a problem and its solution in a plan's place
        return [], ""
    what, rule = "latency_headroom", read_rule(plan.get("rule"))
    if rule is None or problem.sharing is not None:
        return [], f"its {what} is taken from the file"
    given = [as_a(dict, each, "a service") for each in as_a(list, plan.get("services"), "services")]
    services = read_services([{k: each.get(k) for k in SERVICE.split()} for each in given])
    uses: defaultdict[str, Counter[str]] = defaultdict(Counter)
    schedule = as_a(dict, plan.get("solution"), "the solution").get("schedule")
    for group in [] if schedule is None else read_schedule(schedule, problem):
        for block, job, n in group.assignment:
            uses[str(job)][block] += n * group.count
    entries: dict[tuple[str, str], dict[str, Any]] = {}
    for at, each in enumerate(as_a(list, plan["operating_points"], "operating_points")):
        name = f"operating_points[{at}]"
        pair = tuple(as_a(str, as_a(dict, each, name).get(k), name) for k in ("service", "block"))
        if pair[1] in uses[pair[0]]:
            entries[pair[0], pair[1]] = {k: each.get(k) for k in POINT.split()} | {"name": name}
    points, faults, _ = read_points([*entries.values()], services, rule, {}, set())
    is_equal = "equal" in (plan.get("routing"), (plan.get("promise") or {}).get("routing"))
    least: tuple[Fraction, str] | None = None
    for fields in given:
        name, found = fields["name"], []
        demand, row = problem.jobs[name].demand, problem.jobs[name].row
        supply = {i: Fraction(row.supply[problem.blocks.index(i)], row.scale) for i in uses[name]}
        counts = Counter({i: n for i, n in uses[name].items() if supply[i]})  # others are wasted
        lowest = min((supply[i] for i in counts), default=ZERO)
        counted = dict.fromkeys(counts, lowest) if is_equal else supply
        provided = sum((counted[i] * n for i, n in counts.items()), ZERO)
        if optional(fields.get("provided_rps"), f"what {show(name)} is provided with") != provided:
            faults.append(f"{show(name)} is provided with {show(provided)} requests/s, not as said")
        for block in counts:
            entry = entries.get((name, block))
            if entry is None or points[entry["name"]].supply != supply[block]:
                faults.append(f"no point of {show(name)} on {show(block)} supplies as the problem")
            elif services[name].limit is not None and demand:
                load = demand / counts.total() if is_equal else demand / provided * supply[block]
                curve = read_curve(entry["load_curve"], "a load curve")
                point = points[entry["name"]]
                found.append(slowest(point, services[name], rule, curve, load) - 1)
        share = min(found, default=None)
        if optional(fields.get(what), f"the {what} of", name) != share:
            faults.append(
                f"the {what} of {show(name)} is {show(fields.get(what))}, not {show(share)}"
            )
        if share is not None and (least is None or share < least[0]):
            least = share, name
    if (told := plan.get(what)) is not None:
        told = record(told, f"the {what}", "share service")
        told = optional(told["share"], f"the share of the {what}"), told["service"]
    if told != least:
        faults.append(f"the {what} of the plan is {show(told)}, not {show(least)}")
    tenths = 0 if least is None else least[0] * 1000 // 1
    said = f"it holds up to {tenths // 10}.{tenths % 10} % slower batches"
    return faults, "" if least is None else said
