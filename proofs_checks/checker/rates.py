"""Whether the jobs of a plan's problem ask for what its services do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .problem import Problem
from .reading import as_a, no_duplicates, number, show


def rate_faults(plan: Mapping[str, Any], problem: Problem) -> Iterator[str]:
    """Say which jobs demand something else than the rate of their service with the plan's margin.

    Or another routing, or other replicas. With head-room for random arrivals, of services that
    share instances in time, more is planned.
    """
    if "services" not in plan:  # a problem and its solution in a plan's place
        return
    services = [as_a(dict, each, "a service") for each in as_a(list, plan["services"], "services")]
    names = [as_a(str, each.get("name"), "the name of a service") for each in services]
    no_duplicates(names, "service")
    margin = 1 + number(plan.get("rate_margin", 0), "the rate margin")
    more = as_a(dict, plan.get("sharing") or {}, "sharing").get("headroom") is not None
    told = (number(each.get("rate_rps"), "the rate of a service") for each in services)
    rates = dict(zip(names, told, strict=True))
    if rates.keys() != problem.jobs.keys():
        yield "the services of the plan are not the jobs of its problem"
        return
    for name, job in problem.jobs.items():
        least = rates[name] * margin
        if job.demand < least or (job.demand > least and not more):
            has = f"{show(name)} has the demand {show(job.demand)} in the problem"
            yield f"{has}, and its rate with the margin is {show(least)}"
    routing = plan.get("routing", "weighted")
    if as_a(dict, plan.get("promise") or {}, "promise").get("routing", routing) != routing:
        yield f"the promise is not of the plan's routing, {show(routing)}"
    extras = {each["name"]: as_a(dict, each.get("extra", {}), "extra") for each in services}
    for name, job in problem.jobs.items() if problem.sharing is None else ():
        count, _, own = job.row.rule or (0, 0, "weighted")
        if own != routing:
            yield f"{show(name)} has the routing {own} in the problem, the plan {show(routing)}"
        asked = str(extras[name].get("min_replicas", "")).strip() or "0"
        if asked != str(count):
            yield f"{show(name)} asks for {show(asked)} replicas, and in the problem for {count}"
