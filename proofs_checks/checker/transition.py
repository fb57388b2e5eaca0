"""A transition as its document has it: two deployments, floors, and actions with their waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from .devices import read_devices
from .fleet import MODES, Card, Instance, Marks, boolean, one_of, read_cards, read_instance
from .reading import Fault, as_a, check_head, integer, number, record, show
from .supplies import Point, Service, read_points, read_rule, read_services
from .waits import ended_before

_TRANSITION = "format schema rule services points devices start target floors actions kept spare"
_ACTION = "what node index removes adds after mode is_temporary"
_WHATS = ("create", "delete", "restart", "repartition", "switch")
_PROOFS = ("checked", "solver", "none")


class Action(NamedTuple):
    """What is done on one GPU."""

    what: str
    card: str
    removes: tuple[Instance, ...]
    adds: tuple[Instance, ...]
    mode: str | None
    is_temporary: bool


Prices = dict[tuple[str, str], Fraction]


class Frozen(NamedTuple):
    """The points said never to stop, and never to begin."""

    of_target: bool
    stays: list[str]
    never: list[str]


class Kept(NamedTuple):
    """How many instances are said to be kept, of at most how many, and why not more.

    ``prices``: of instances that go on by point, of instances by device and profile, of devices.
    """

    number: int
    most: int
    proof: str
    of_target: bool
    prices: tuple[dict[str, Fraction], Prices, dict[str, Fraction]] | None


class Side(NamedTuple):
    """A deployment: its services and its GPUs."""

    services: dict[str, Service]
    cards: dict[str, Card]

    @property
    def in_use(self) -> int:
        """How many GPUs are not empty."""
        return sum(bool(card.held) for card in self.cards.values())


@dataclass(frozen=True)
class Transition:
    """All that a document says; ``before`` has, as bits, what has ended when an action begins."""

    points: dict[str, Point]
    start: Side
    target: Side
    floors: dict[str, Fraction]
    actions: list[Action]
    after: list[list[int]]
    before: list[int]
    kept: Kept
    spare: tuple[int, int, str]
    borrowed: list[str]
    proof: Frozen | None


def read_transition(document: object) -> tuple[Transition, list[str], Counter[str]]:
    """Read a transition; say what is wrong with its points, and how many supplies rest on more."""
    check_head(document, "transition")
    fields = record(document, "the transition", _TRANSITION)
    services = read_services(fields["services"])
    start_parts = record(fields["start"], "the start", "services nodes")
    before, old = read_services(start_parts["services"], "services of the start"), set[str]()
    rule = read_rule(fields["rule"])
    points, faults, taken = read_points(fields["points"], services, rule, before, old)
    devices = read_devices(fields["devices"])
    sides = []
    for name in ("start", "target"):
        parts = record(fields[name], f"the {name}", "services nodes")
        own = read_services(parts["services"], f"services of the {name}")
        sides.append(Side(own, read_cards(parts["nodes"], devices, points, f"{name} ")))
    start, target = sides
    if services != {**start.services, **target.services}:
        faults.append("the services are not those of the target and of the start")
    for name, side in zip(("start", "target"), sides, strict=True):
        faults += [
            f"the {name} runs {show(service)}, which is no service of it"
            for service in sorted({points[p].service for p in _points(side)} - side.services.keys())
        ]
    floors = {}
    for name, value in as_a(dict, fields["floors"], "floors").items():
        floor = record(value, f"the floor of {show(name)}", "rps reason")
        as_a(str, floor["reason"], "the reason for the floor of", name)
        service = one_of(services, name, "the service of a floor")
        floors[service] = number(floor["rps"], "the floor of", name)
    actions, after = [], []
    there = {name: Counter(zip(c.held, c.marks, strict=True)) for name, c in start.cards.items()}
    for at, value in enumerate(as_a(list, fields["actions"], "actions")):
        action, waits, marked = _action(value, at, points, start.cards)
        faults += _marked(action, f"action {at}", there[action.card], *marked)
        actions.append(action)
        after.append(waits)
    comes = {each.point for action in actions for each in action.adds} | _points(target)
    faults += [
        f"the point {show(name)} comes or is in the target, and only the old limit admits it"
        for name in sorted(old & comes)
    ]
    spare = record(fields["spare"], "spare", "count least reason borrowed proof")
    count, least = (integer(spare[key], f"{key} of spare") for key in ("count", "least"))
    found = Transition(
        points, start, target, floors, actions, after, ended_before(after),
        _kept(fields["kept"], points),
        (count, least, as_a(str, spare["reason"], "the reason of spare")),
        [as_a(str, each, "a borrowed GPU") for each in as_a(list, spare["borrowed"], "borrowed")],
        None if spare["proof"] is None else _proof(spare["proof"], points),
    )  # fmt: skip
    return found, faults, taken


def _kept(value: object, points: Mapping[str, Point]) -> Kept:
    fields = record(value, "kept", "count most proof of prices")
    prices = None
    if fields["prices"] is not None:
        own = record(fields["prices"], "the prices of kept", "points instances gpus")
        prices = (
            _named(own["points"], "point", points, "the prices of kept"),
            _prices(own["instances"], "the instances' prices of kept"),
            _named(own["gpus"], "gpu", None, "the prices of kept"),
        )
    return Kept(
        integer(fields["count"], "count of kept"),
        integer(fields["most"], "most of kept"),
        one_of(_PROOFS, fields["proof"], "the proof of kept"),
        one_of(("counts", "target"), fields["of"], "of of kept") == "target",
        prices,
    )


def _named(
    value: object, key: str, known: Collection[str] | None, what: str
) -> dict[str, Fraction]:
    prices: dict[str, Fraction] = {}
    for each in as_a(list, value, f"{what} by {key}"):
        own = record(each, f"one of {what} by {key}", f"{key} price")
        name = as_a(str, own[key], f"a {key} of {what}")
        if known is not None:
            one_of(known, name, f"a {key} of {what}")
        if name in prices:
            raise Fault(f"{what} have {show(name)} twice")
        prices[name] = number(own["price"], "the price of", name)
    return prices


def _proof(value: object, points: Mapping[str, Point]) -> Frozen:
    fields = record(value, "the proof", "kind of stays never")
    one_of(("frozen",), fields["kind"], "the kind of the proof")
    of = one_of(("counts", "target"), fields["of"], "of of the proof") == "target"
    stays, never = (
        [one_of(points, each, f"a point that {key} of the proof has") for each in own]
        for key in ("stays", "never")
        for own in [as_a(list, fields[key], f"{key} of the proof")]
    )
    return Frozen(of, stays, never)


def _prices(value: object, what: str) -> Prices:
    prices: Prices = {}
    for each in as_a(list, value, what):
        own = record(each, f"one of {what}", "gpu profile price")
        gpu, profile = (as_a(str, own[key], f"a {key} of {what}") for key in ("gpu", "profile"))
        if (gpu, profile) in prices:
            raise Fault(f"{what} has {show(profile)} twice")
        prices[gpu, profile] = number(own["price"], "the price of", profile)
    return prices


def _points(side: Side) -> set[str]:
    return {e.point for card in side.cards.values() for e in card.held if e.point is not None}


def _action(
    value: object, at: int, points: Mapping[str, Point], cards: Mapping[str, Card]
) -> tuple[Action, list[int], list[list[tuple[Instance, Marks]]]]:
    what = f"action {at}"
    fields = record(value, what, _ACTION)
    node, index = as_a(str, fields["node"], f"the node of {what}"), fields["index"]
    card = f"{node}/{integer(index, f'the index of {what}')}"
    if card not in cards:
        raise Fault(f"{what} is on GPU {show(card)}, which the start does not have")
    marked = []
    for key in ("removes", "adds"):
        own, each = as_a(list, fields[key], f"{key} of {what}"), f"an instance that {what} {key}"
        marked.append([read_instance(value, points, each) for value in own])
    removes, adds = (tuple(each for each, _ in part) for part in marked)
    after = f"after of {what}"
    waits = [integer(each, after) for each in as_a(list, fields["after"], after)]
    if any(low >= high for low, high in pairwise([*waits, at])):
        raise Fault(f"after of {what} is not ascending, all before {at}")
    mode = fields["mode"]
    action = Action(
        one_of(_WHATS, fields["what"], f"what of {what}"), card, removes, adds,
        None if mode is None else one_of(MODES, mode, f"the mode of {what}"),
        boolean(fields["is_temporary"], f"is_temporary of {what}"),
    )  # fmt: skip
    return action, waits, marked


def _marked(
    action: Action, what: str, there: Counter[tuple[Instance, Marks]],
    removes: list[tuple[Instance, Marks]], adds: list[tuple[Instance, Marks]],
) -> Iterator[str]:  # fmt: skip
    """Say which instances an action calls otherwise than they are called there; then do it."""
    for each in removes:
        if not there[each] and any(n > 0 and one[0] == each[0] for one, n in there.items()):
            yield f"{what} removes {each[0]} of {action.card} by marks that it does not have there"
    there.subtract(removes)
    there.update(adds)
