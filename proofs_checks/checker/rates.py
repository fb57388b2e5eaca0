"""Whether the jobs of a plan's problem ask for what its services do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from .problem import Problem
from .reading import as_a, integer, no_duplicates, number, show
from .schedule import read_schedule


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


def group_faults(plan: Mapping[str, Any], problem: Problem) -> Iterator[str]:
    """Say whether the GPUs of a plan, and what serves a service, are not those of its schedule."""
    schedule = as_a(dict, plan.get("solution"), "the solution").get("schedule")
    if "groups" not in plan:
        return
    meant, instances = Counter[Any](), Counter[str]()
    for group in [] if schedule is None else read_schedule(schedule, problem):
        held = Counter[Any]({(block, ()): n for block, n in group.configuration.items()})
        for block, content, n in group.assignment:
            names = (content,) if isinstance(content, str) else tuple(name for name, _ in content)
            held[block, ()] -= n
            held[block, tuple(sorted(names))] += n
            instances.update(dict.fromkeys(names, n * group.count))
        meant[group.machine, frozenset((+held).items())] += group.count
    told = Counter[Any]()
    gpus = {}
    for each in as_a(list, plan.get("available", []), "available"):
        each = as_a(dict, each, "one of available")
        gpus[as_a(str, each.get("machine"), "a machine")] = each.get("gpu")
    for at, each in enumerate(as_a(list, plan["groups"], "groups")):
        fields, held = as_a(dict, each, f"groups[{at}]"), Counter()
        for entry in as_a(list, fields.get("instances"), f"the instances of groups[{at}]"):
            one = as_a(dict, entry, f"an instance of groups[{at}]")
            serves = [as_a(dict, row, "serves") for row in as_a(list, one.get("serves"), "serves")]
            names = tuple(sorted(as_a(str, row.get("service"), "a service") for row in serves))
            block = as_a(str, one.get("block"), "a block")
            held[block, names] += integer(one.get("count"), "a count of instances")
        machine = as_a(str, fields.get("machine", fields.get("gpu")), f"the GPU of groups[{at}]")
        if gpus.get(machine, machine) != fields.get("gpu"):
            yield f"groups[{at}] is of another GPU than its machines"
        told[machine, frozenset(held.items())] += integer(fields.get("count"), "a count")
    if told != meant:
        yield "the groups of the plan are not the machines of its schedule"
    for each in plan["services"]:
        name, given = each["name"], each.get("instances")
        if given != instances[name]:
            yield f"{show(name)} is said to have {show(given)} instances, and has {instances[name]}"
