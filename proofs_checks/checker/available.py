"""The GPUs that are there, for which a plan may be: its machine types, and what stays on each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from .devices import Device
from .fleet import CLIENTS, Card, Instance, boolean, share_of
from .problem import Problem
from .reading import Fault, as_a, integer, number, record, show

Held = tuple[str, int | None]  # a profile, and its start where that is known


class Available(NamedTuple):
    """A machine type: how many GPUs of a device, and what stays on each."""

    device: Device
    number: int
    others: tuple[Held, ...]  # of others
    usable: tuple[Held, ...]  # what may serve as it is
    lacks: frozenset[str]  # profiles that the driver does not offer

    @property
    def is_held(self) -> bool:
        """Whether something stays."""
        return bool(self.others or self.usable)

    @property
    def is_shared(self) -> bool:
        """Whether what stays has shares of MPS."""
        return any(share_of(name) is not None for name, _ in (*self.others, *self.usable))

    @property
    def room(self) -> tuple[int, int]:
        """The per cents and clients that MPS has left."""
        taken = [share_of(name) or 0 for name, _ in self.others]
        return 100 - sum(taken), CLIENTS - len(taken)

    def extend(self, counts: Mapping[str, int]) -> list[Instance] | None:
        """Return what is on a GPU that has this many of its own; None if that is never cut."""
        more = Counter(counts) - Counter(name for name, _ in self.usable)
        is_cut = any(start is None for _, start in (*self.others, *self.usable))
        if self.lacks & counts.keys() or (is_cut and not self.is_shared and more):
            return None
        held = [*self.others, *self.usable, *((name, None) for name in more.elements())]
        return [Instance(name, start, None, None, "running") for name, start in held]


def read_available(
    plan: Mapping[str, Any], devices: Mapping[str, Device], problem: Problem
) -> dict[str, Available]:
    """Read what each machine type is, by name; of a plan for any empty GPUs, its device."""
    if "available" not in plan:
        if list(devices) != list(problem.machine_types):
            raise Fault("the devices of the plan are not the machine types of its problem")
        return {key: Available(device, 0, (), (), frozenset()) for key, device in devices.items()}
    found: dict[str, Available] = {}
    seen: list[object] = []
    for at, entry in enumerate(as_a(list, plan["available"], "available")):
        what = f"available[{at}]"
        fields = record(entry, what, "machine gpu count", "held lacks price")
        name = as_a(str, fields["machine"], f"the machine of {what}")
        if fields["gpu"] not in devices or name in found or name not in problem.machine_types:
            raise Fault(f"{what} is of no device and machine type of the plan, or is there twice")
        device = devices[fields["gpu"]]
        sides: tuple[list[Held], list[Held]] = [], []
        for one in as_a(list, fields.get("held", []), f"held of {what}"):
            own = record(one, f"held of {what}", "profile start", "serves")
            start = own["start"]
            place = None if start is None else integer(start, f"a start of {what}")
            serves = boolean(own.get("serves", False), f"serves of {what}")
            sides[serves].append((as_a(str, own["profile"], f"a profile of {what}"), place))
        lacks = [as_a(str, e, f"lacks of {what}") for e in as_a(list, fields.get("lacks", []))]
        for each in lacks:
            if each not in device.profiles or device.profiles[each].since is None:
                raise Fault(f"{what} lacks {show(each)}, which every driver offers, or none")
        count = integer(fields["count"], f"the count of {what}")
        it = Available(device, count, tuple(sides[0]), tuple(sides[1]), frozenset(lacks))
        _refuse_other_type(problem, name, it, fields.get("price"), what)
        found[name] = it
        alike = device.key, it.others, it.usable, it.lacks, fields.get("price")
        if alike in seen:
            raise Fault(f"{what} are like others before them")
        seen.append(alike)
    if list(found) != list(problem.machine_types):
        raise Fault("the GPUs that are there are not the machine types of the problem")
    if list(devices) != list(dict.fromkeys(each.device.key for each in found.values())):
        raise Fault("the devices of the plan are not those of the GPUs that are there")
    return found


def _refuse_other_type(problem: Problem, name: str, it: Available, price: Any, what: str) -> None:
    cost, limit = problem.machine_types[name].cost, problem.machine_types[name].limit
    if limit != it.number:
        raise Fault(f"there are {it.number} of {what}, and the limit in the problem is {limit}")
    if it.is_held and cost:
        raise Fault(f"{what} cost something, and something stays on them")
    if not it.is_held and price is not None and number(price, f"the price of {what}") != cost:
        raise Fault(f"{what} cost {show(cost)} in the problem, and their price is {show(price)}")


def count_faults(plan: Mapping[str, Any], cards: Sequence[Card]) -> Iterator[str]:
    """Say of which GPUs a plan counts more than a fleet has, or than cost so much by its nodes."""
    there, planned = Counter[tuple[str, Any]](), Counter[tuple[str, Any]]()
    for card in cards:
        known = card.mode == "mig" and card.is_known
        foreign = ((e.profile, e.start if known else None) for e in card.held if e.owner)
        there[card.device.key, tuple(sorted(foreign, key=str))] += card.mode != "fixed"
        there[card.device.key, card.price] += card.mode != "fixed"
    is_priced = any(card.price is not None for card in cards)
    for entry in plan.get("available", []):
        others = ((e["profile"], e["start"]) for e in entry.get("held", []) if not e.get("serves"))
        planned[entry["gpu"], tuple(sorted(others, key=str))] += entry["count"]
        if is_priced and entry.get("price") is not None:
            planned[entry["gpu"], number(entry["price"], "a price")] += entry["count"]
    for (key, rest), n in planned.items():
        if n > there[key, rest]:
            if isinstance(rest, tuple):
                kind = f"{show(key)} beside {', '.join(name for name, _ in rest) or 'nothing'}"
            else:
                kind = f"{show(key)} at {show(rest)}"
            yield f"the plan counts {n} {kind}, and there are {there[key, rest]}"
