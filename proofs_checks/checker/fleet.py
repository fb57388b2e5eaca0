"""GPUs, what is on them, and by which rules: read from a document, judged by the numbers in it.

A rule of placement is a sum: every instance that is there has a weight, and the weights may be at
most so much. That one memory slice belongs to one instance is such a rule, and so are the largest
number of a profile, the compute slices, the media engines and the shares of MPS.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple, TypeAlias

from .devices import Device, branch_of
from .reading import ZERO, Fault, as_a, integer, new_name, no_duplicates, number, record, show

MODES = ("mig", "whole", "mps", "fixed")
_STATES = ("starting", "running", "draining", "no_compute_instance", "split")
_SOURCES = ("observed", "inferred", "unknown")
_INSTANCE = "profile start point owner state gpu_instance uuid is_guessed"
_UUID = re.compile("(GPU|MIG)-[0-9A-Za-z][0-9A-Za-z/-]*")
#: How the driver calls an instance (UUID, number), and whether its start is guessed.
Marks: TypeAlias = "tuple[str | None, int | None, bool]"
#: As many clients as MPS serves on one GPU.
CLIENTS = 48


class Instance(NamedTuple):
    """What is on a GPU. Two are the same if all this is."""

    profile: str
    start: int | None
    point: str | None
    owner: str | None
    state: str

    def __str__(self) -> str:
        at = "" if self.start is None else f"@{self.start}"
        doing = f" of {show(self.owner)}" if self.owner is not None else f" for {show(self.point)}"
        return self.profile + at + (doing if self.owner or self.point else "")


class Card(NamedTuple):
    """A GPU of a node; ``is_known``: where its instances start; ``marks``: one of each of them."""

    name: str
    device: Device
    driver: int | None
    mode: str
    held: tuple[Instance, ...]
    uuid: str | None
    is_known: bool
    marks: tuple[Marks, ...] = ()
    price: Fraction | None = None  # of an hour


class Rule(NamedTuple):
    """The weights of what is there sum to at most ``most``."""

    words: str
    weight: Callable[[Instance], Fraction]
    most: Fraction


# --- the rules ------------------------------------------------------------------------------------


def rules(device: Device, mode: str, there: Sequence[Instance] = ()) -> Iterator[Rule]:
    """List the rules of a GPU that is shared in this way.

    Of what is there, those with one start take turns in one share, which counts once. Nothing is
    known of a GPU that is fixed, but that all on it is another's.
    """
    if mode == "fixed":
        return
    if mode == "whole":
        yield Rule("the instances on the whole GPU", lambda _: Fraction(1), Fraction(1))
    elif mode == "mps":
        turns = Counter(each[:2] for each in there if each.start is not None)
        yield Rule("the shares", lambda e: _share(e) / (turns[e[:2]] or 1), Fraction(100))
        yield Rule("the clients of MPS", lambda _: Fraction(1), Fraction(CLIENTS))
    else:
        of = device.profiles

        def taking(slot: int) -> Callable[[Instance], Fraction]:
            return lambda each: Fraction(
                each.start is not None and 0 <= slot - each.start < of[each.profile].memory
            )

        def being(name: str) -> Callable[[Instance], Fraction]:
            return lambda each: Fraction(of[each.profile].name == name)

        def summing(key: str) -> Callable[[Instance], Fraction]:
            return lambda each: Fraction(getattr(of[each.profile], key))

        for slot in range(device.memory):
            yield Rule(f"the instances in memory slice {slot}", taking(slot), Fraction(1))
        for name in sorted({profile.name for profile in of.values()}):
            yield Rule(f"the instances of {name}", being(name), Fraction(of[name].most))
        yield Rule("the compute slices", summing("compute"), Fraction(device.compute))
        yield Rule("the instances with media engines", summing("media"), Fraction(1))
        yield Rule("the memory slices", summing("memory"), Fraction(device.memory))


def share_of(profile: str) -> int | None:
    """The per cents of a share of MPS; None if it is no share."""
    written = profile.removeprefix("mps:")
    is_share = written != profile and re.fullmatch("[1-9][0-9]?|100", written)
    return int(written) if is_share else None


def _share(instance: Instance) -> Fraction:
    return Fraction(share_of(instance.profile) or 0)


def misplaced(card: Card, mode: str, instance: Instance) -> str:
    """Say why an instance cannot be on a GPU even alone; nothing if it can."""
    profile, start = instance.profile, instance.start
    if mode == "fixed":
        return "" if instance.owner is not None else "is nobody else's on a GPU that is fixed"
    if mode != "mig":
        if start is not None and mode == "whole":
            return f"starts at {start} on a GPU that is not cut"
        if mode == "whole":
            return "" if profile == "whole" else f"has the profile {show(profile)} of a whole GPU"
        share = share_of(profile)
        if share is None:
            return f"has {show(profile)}, which is no share of MPS"
        return "" if share + (start or 0) <= 100 else f"starts at {start} % and ends beyond 100 %"
    known = card.device.profiles.get(profile)
    if known is None:
        return f"has the profile {show(profile)}, which {card.device.key} does not have"
    if known.since is not None and card.driver is not None and card.driver < known.since:
        return f"needs the driver R{known.since}, and the node has R{card.driver}"
    if start is None and card.is_known:
        return "has no start, and the starts on its GPU are said to be known"
    if start is not None and (
        start not in known.starts or start + known.memory > card.device.memory
    ):
        return f"cannot start at {start}"
    return ""


def layout_faults(card: Card) -> list[str]:
    """Say what of the rules is broken by what is on a GPU."""
    mode, held = card.mode, card.held
    if mode == "fixed" and not held:
        return [f"{card.name}: nothing is on a GPU that is fixed"]
    alone = [f"{card.name}: {each} {why}" for each in held if (why := misplaced(card, mode, each))]
    if alone:
        return alone
    broken = [
        f"{card.name}: {rule.words} are {show(total)}, at most {show(rule.most)} may be"
        for rule in rules(card.device, mode, held)
        if (total := sum((rule.weight(each) for each in held), ZERO)) > rule.most
    ]
    if not broken and mode == "mig" and not _has_room(card.device, held):
        broken.append(f"{card.name}: what is there has no starts that go together")
    return broken


def _has_room(device: Device, held: Sequence[Instance]) -> bool:
    """Whether those whose start is not known have one, beside the others."""
    unknown = [device.profiles[each.profile] for each in held if each.start is None]
    unknown.sort(key=lambda profile: -profile.memory)
    taken = {
        slot
        for each in held
        if each.start is not None
        for slot in range(each.start, each.start + device.profiles[each.profile].memory)
    }

    @cache  # of few slices few sets are taken, in however many orders
    def fits(at: int, taken: frozenset[int]) -> bool:
        if at == len(unknown):
            return True
        profile = unknown[at]
        for start in profile.starts:
            own = frozenset(range(start, start + profile.memory))
            if own <= every and not own & taken and fits(at + 1, taken | own):
                return True
        return False

    every = frozenset(range(device.memory))
    return fits(0, frozenset(taken))


# --- the documents --------------------------------------------------------------------------------


def one_of(words: Iterable[str], value: object, what: str) -> str:
    """Return the value if it is one of these words."""
    choice = tuple(words)
    if not isinstance(value, str) or value not in choice:
        raise Fault(f"{what} is {show(value)}, not one of {', '.join(choice[:8])}")
    return value


def text_or_null(value: object, *what: object) -> str | None:
    """Return a text, or None."""
    return None if value is None else as_a(str, value, *what)


def name_or_null(value: object, what: str) -> str | None:
    """Return a text that can be a name, or None."""
    return None if value is None else new_name(value, what)


def _uuid_or_null(value: object, what: str) -> str | None:
    if value is not None and not _UUID.fullmatch(as_a(str, value, what)):
        raise Fault(f"{what} is {show(value)}, not GPU-... or MIG-... as drivers print it")
    return None if value is None else str(value)


def boolean(value: object, what: str) -> bool:
    """Return true or false."""
    if not isinstance(value, bool):
        raise Fault(f"{what} is {show(value)}, not true or false")
    return value


def read_instance(value: object, points: Mapping[str, Any], what: str) -> tuple[Instance, Marks]:
    """Read an instance, and its marks, of which no rule speaks."""
    fields = record(value, what, _INSTANCE)
    start, point, held = fields["start"], fields["point"], fields["gpu_instance"]
    if held is not None:
        held = integer(held, f"the gpu_instance of {what}")
    instance = Instance(
        as_a(str, fields["profile"], f"the profile of {what}"),
        None if start is None else integer(start, f"the start of {what}"),
        None if point is None else as_a(str, point, f"the point of {what}"),
        name_or_null(fields["owner"], f"the owner of {what}"),
        one_of(_STATES, fields["state"], f"the state of {what}"),
    )
    if point is not None and point not in points:
        raise Fault(f"the point of {what} is {show(point)}, which the document does not have")
    uuid = _uuid_or_null(fields["uuid"], f"the uuid of {what}")
    return instance, (uuid, held, boolean(fields["is_guessed"], f"is_guessed of {what}"))


def read_cards(
    value: object, devices: Mapping[str, Device], points: Mapping[str, Any], side: str
) -> dict[str, Card]:
    """Read the GPUs of all nodes, by node and index."""
    cards: dict[str, Card] = {}
    uuids: list[str] = []
    names: list[str] = []
    for at, entry in enumerate(as_a(list, value, f"{side}nodes")):
        fields = record(
            entry, f"{side}nodes[{at}]", "name driver labels observed gpus", "is_numbered"
        )
        node = new_name(fields["name"], f"the name of {side}nodes[{at}]")
        names.append(node)
        driver = fields["driver"]
        branch = None if driver is None else branch_of(driver, f"the driver of {side}node {node}")
        boolean(fields.get("is_numbered", True), f"is_numbered of {side}node {node}")
        for key, label in as_a(dict, fields["labels"], f"the labels of {side}node", node).items():
            as_a(str, label, f"the label {show(key)} of {side}node", node)
        text = fields["labels"].get("price_per_hour")
        price = None if text is None else number(text, f"the price of {side}node {node!r}")
        if fields["observed"] is not None:
            seen = record(fields["observed"], f"observed of {side}node {node!r}", "at from")
            as_a(str, seen["at"], f"at of observed of {side}node", node)
            for source in as_a(list, seen["from"], f"from of observed of {side}node", node):
                as_a(str, source, f"a source of {side}node", node)
        for one in as_a(list, fields["gpus"], f"the GPUs of {side}node", node):
            card, own = _card(one, node, branch, devices, points, side)
            if card.name in cards:
                raise Fault(f"{side}GPU {card.name} is there twice")
            cards[card.name] = card._replace(price=price)
            uuids += own
    no_duplicates(names, f"{side}node")
    no_duplicates(uuids, f"{side}uuid")
    return cards


def _card(
    value: object,
    node: str,
    driver: int | None,
    devices: Mapping[str, Device],
    points: Mapping[str, Any],
    side: str,
) -> tuple[Card, list[str]]:
    fields = record(
        value, f"a GPU of {side}node {node!r}", "index gpu uuid mode start_source instances"
    )
    name = f"{node}/{integer(fields['index'], f'the index of a GPU of {side}node', node)}"
    key = one_of(devices, fields["gpu"], f"the device of {side}GPU {name}")
    one_of(_SOURCES, fields["start_source"], f"start_source of {side}GPU {name}")
    pairs = [
        read_instance(each, points, f"instance {at} of {side}GPU {name}")
        for at, each in enumerate(as_a(list, fields["instances"], f"instances of {side}GPU", name))
    ]
    uuid = _uuid_or_null(fields["uuid"], f"the uuid of {side}GPU {name}")
    mode = one_of(MODES, fields["mode"], f"the mode of {side}GPU {name}")
    held, is_known = tuple(instance for instance, _ in pairs), fields["start_source"] != "unknown"
    marks = tuple(own for _, own in pairs)
    card = Card(name, devices[key], driver, mode, held, uuid, is_known, marks)
    return card, [each for each in (uuid, *(own for own, *_ in card.marks)) if each is not None]


def work_fault(card: Card, instance: Instance, points: Mapping[str, Any]) -> str:
    """Say why an instance cannot run its point; nothing if it can."""
    if instance.point is None:
        return ""
    point, name = points[instance.point], card.device.name_of
    where = (card.device.key, name(instance.profile))
    measured = name(point.profile)
    # a GPU that is not cut runs what was measured on the profile that is all of it
    known = card.device.profiles.get(measured) if instance.profile == "whole" else None
    is_all = known is not None and known.memory == card.device.memory
    if card.device.is_called(point.device) and (is_all or measured == where[1]):
        return ""
    return (
        f"{card.name}: {instance} is on {' '.join(where)}, and its point was measured on "
        f"{point.device} {point.profile}"
    )


def supplies(
    held: Iterable[Instance], points: Mapping[str, Any], *, is_equal: bool = False
) -> defaultdict[str, Fraction]:
    """Sum what is supplied to each service by what runs; one that is not there gets 0.

    In equal shares all that run for a service are as slow as the slowest of them.
    """
    total, least = defaultdict[str, Fraction](Fraction), dict[str, Fraction]()
    running = [points[e.point] for e in held if e.point is not None and e.state == "running"]
    for point in running if is_equal else ():
        least[point.service] = min(point.supply, least.get(point.service, point.supply))
    for point in running:
        total[point.service] += least.get(point.service, point.supply)
    return total
