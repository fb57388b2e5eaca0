"""GPUs, what is on them, and by which rules: read from a document, judged by the numbers in it.

A rule of placement is a sum: every instance that is there has a weight, and the weights may be at
most so much. That one memory slice belongs to one instance is such a rule, and so are the largest
number of a profile, the compute slices, the media engines and the shares of MPS.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from .reading import (
    ZERO,
    Fault,
    as_a,
    integer,
    new_name,
    no_duplicates,
    rational,
    record,
    show,
)

MODES = ("mig", "whole", "mps", "fixed")
_STATES = ("starting", "running", "draining", "hollow", "split")
_SEEN = ("seen", "only_one", "unknown")
_INSTANCE = "profile start point owner state gpu_instance uuid is_guessed"
_DEVICE = (
    "schema version key aliases pci_device_ids architecture compute_slices memory_slices "
    "mode_change_needs_reset geometry profiles sources"
)
_PROFILE = "id name family compute memory starts max sms memory_mib attributes"
#: A GPU has one set of JPEG and OFA engines.
_MEDIA = {"me", "me.all"}
#: As many clients as MPS serves on one GPU.
CLIENTS = 48


class Profile(NamedTuple):
    """Where an instance of it can start, and what it takes."""

    name: str
    compute: int
    memory: int
    starts: frozenset[int]
    most: int
    media: bool
    since: int | None


class Device(NamedTuple):
    """A kind of GPU, by its names as `spelt`; other names of a profile lead to it, too."""

    key: str
    names: frozenset[str]
    compute: int
    memory: int
    profiles: dict[str, Profile]

    def name_of(self, profile: str) -> str:
        """Return a profile's own name; what is no profile has the name it has."""
        found = self.profiles.get(profile)
        return profile if found is None else found.name


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
    """A GPU of a node."""

    name: str
    device: Device
    driver: int | None
    mode: str
    held: tuple[Instance, ...]
    uuid: str | None


class Rule(NamedTuple):
    """The weights of what is there sum to at most ``most``."""

    words: str
    weight: Callable[[Instance], Fraction]
    most: Fraction


# --- the rules ------------------------------------------------------------------------------------


def rules(device: Device, mode: str, tasks: int, there: Sequence[Instance] = ()) -> Iterator[Rule]:
    """List the rules of a GPU that is shared in this way, and by so many tasks over time.

    Of what is there, those with one start take turns in one share, which counts once. Nothing is
    known of a GPU that is fixed, but that all on it is another's.
    """
    if mode == "fixed":
        return
    if mode == "whole":
        if tasks > 1:
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

        for slot in range(device.memory):
            yield Rule(f"the instances in memory slice {slot}", taking(slot), Fraction(1))
        for name in sorted({profile.name for profile in of.values()}):
            yield Rule(f"the instances of {name}", being(name), Fraction(of[name].most))
        yield Rule(
            "the compute slices",
            lambda each: Fraction(of[each.profile].compute),
            Fraction(device.compute),
        )
        yield Rule(
            "the instances with media engines",
            lambda each: Fraction(of[each.profile].media),
            Fraction(1),
        )
        yield Rule(
            "the memory slices", lambda e: Fraction(of[e.profile].memory), Fraction(device.memory)
        )


def tasks(held: Iterable[Instance], points: Mapping[str, Any]) -> int:
    """Count the services and other owners: a GPU that is not shared is for one of them."""
    return len(
        {
            (each.owner, points[each.point].service if each.point is not None else None)
            for each in held
            if each.owner is not None or each.point is not None
        }
    )


def _share(instance: Instance) -> Fraction:
    return rational(instance.profile.removeprefix("mps:"))


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
        try:
            share = _share(instance) if profile.startswith("mps:") else ZERO
        except Fault:
            share = ZERO
        if not 0 < share <= 100:
            return f"has {show(profile)}, which is no share of MPS"
        return "" if share + (start or 0) <= 100 else f"starts at {start} % and ends beyond 100 %"
    known = card.device.profiles.get(profile)
    if known is None:
        return f"has the profile {show(profile)}, which {card.device.key} does not have"
    if known.since is not None and card.driver is not None and card.driver < known.since:
        return f"needs the driver R{known.since}, and the node has R{card.driver}"
    if start is not None and (
        start not in known.starts or start + known.memory > card.device.memory
    ):
        return f"cannot start at {start}"
    return ""


def layout_faults(card: Card, points: Mapping[str, Any]) -> list[str]:
    """Say what of the rules is broken by what is on a GPU."""
    mode, held = card.mode, card.held
    alone = [f"{card.name}: {each} {why}" for each in held if (why := misplaced(card, mode, each))]
    if alone:
        return alone
    broken = [
        f"{card.name}: {rule.words} are {show(total)}, at most {show(rule.most)} may be"
        for rule in rules(card.device, mode, tasks(held, points), held)
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


def boolean(value: object, what: str) -> bool:
    """Return true or false."""
    if not isinstance(value, bool):
        raise Fault(f"{what} is {show(value)}, not true or false")
    return value


def read_devices(value: object) -> dict[str, Device]:
    """Read the devices by key."""
    devices: dict[str, Device] = {}
    for at, entry in enumerate(as_a(list, value, "devices")):
        fields = record(entry, f"devices[{at}]", _DEVICE)
        key = new_name(fields["key"], f"the key of devices[{at}]")
        if key in devices:
            raise Fault(f"the device {show(key)} is there twice")
        profiles: dict[str, Profile] = {}
        for one in as_a(list, fields["profiles"], "the profiles of", key):
            profile, names = _profile(one, key)
            for name in names:
                if profiles.setdefault(name, profile) is not profile:
                    raise Fault(f"device {show(key)} has the profile {show(name)} twice")
        compute, memory = (
            integer(fields[f"{kind}_slices"], f"the {kind} slices of", key, least=1)
            for kind in ("compute", "memory")
        )
        aliases = as_a(list, fields["aliases"], "the aliases of", key)
        ids = as_a(list, fields["pci_device_ids"], "the PCI device ids of", key)
        names_of = {
            spelt(name)
            for name in (key, *(as_a(str, each, "a name of", key) for each in (*aliases, *ids)))
        }
        devices[key] = Device(key, frozenset(names_of), compute, memory, profiles)
    return devices


def spelt(name: str) -> str:
    """Return a GPU's name in one of the ways in which drivers, labels and tables spell it."""
    words = name.lower().replace("_", " ").replace("-", " ").split()
    return " ".join(words[1:] if words[:1] == ["nvidia"] else words)


def _profile(value: object, key: str) -> tuple[Profile, list[str]]:
    what = f"a profile of {show(key)}"
    fields = record(value, what, _PROFILE, "since_driver other_names named_since")
    name = new_name(fields["name"], f"the name of {what}")
    what = f"profile {show(name)} of {show(key)}"
    starts = [integer(each, f"a start of {what}") for each in _list(fields, "starts", what)]
    attributes = [
        as_a(str, e, f"an attribute of {what}") for e in _list(fields, "attributes", what)
    ]
    others = [as_a(str, e, f"a name of {what}") for e in as_a(list, fields.get("other_names", []))]
    since = text_or_null(fields.get("since_driver"), f"the first driver of {what}")
    profile = Profile(
        name,
        integer(fields["compute"], f"the compute slices of {what}"),
        integer(fields["memory"], f"the memory slices of {what}", least=1),
        frozenset(starts),
        integer(fields["max"], f"the largest number of {what}"),
        not _MEDIA.isdisjoint(attributes),
        None if since is None else _branch(since, f"the first driver of {what}"),
    )
    return profile, [name, *others]


def _list(fields: Mapping[str, Any], name: str, what: str) -> list[Any]:
    return as_a(list, fields[name], f"{name} of {what}")


def _branch(driver: str, what: str) -> int:
    branch = driver.removeprefix("R").partition(".")[0]
    if not (branch.isascii() and branch.isdigit() and len(branch) < 9):
        raise Fault(f"{what} is {show(driver)}, which is no version of a driver")
    return int(branch)


def read_instance(
    value: object, points: Mapping[str, Any], what: str
) -> tuple[Instance, str | None]:
    """Read an instance, and its uuid, of which no rule speaks."""
    fields = record(value, what, _INSTANCE)
    start, point, held = fields["start"], fields["point"], fields["gpu_instance"]
    if held is not None:
        integer(held, f"the gpu_instance of {what}")
    boolean(fields["is_guessed"], f"is_guessed of {what}")
    instance = Instance(
        as_a(str, fields["profile"], f"the profile of {what}"),
        None if start is None else integer(start, f"the start of {what}"),
        None if point is None else as_a(str, point, f"the point of {what}"),
        text_or_null(fields["owner"], f"the owner of {what}"),
        one_of(_STATES, fields["state"], f"the state of {what}"),
    )
    if point is not None and point not in points:
        raise Fault(f"the point of {what} is {show(point)}, which the document does not have")
    return instance, text_or_null(fields["uuid"], f"the uuid of {what}")


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
        driver = text_or_null(fields["driver"], f"the driver of {side}node", node)
        branch = None if driver is None else _branch(driver, f"the driver of {side}node {node!r}")
        boolean(fields.get("is_numbered", True), f"is_numbered of {side}node {node!r}")
        for key, label in as_a(dict, fields["labels"], f"the labels of {side}node", node).items():
            as_a(str, label, f"the label {show(key)} of {side}node", node)
        if fields["observed"] is not None:
            record(fields["observed"], f"observed of {side}node {node!r}", "at from")
        for one in as_a(list, fields["gpus"], f"the GPUs of {side}node", node):
            card, own = _card(one, node, branch, devices, points, side)
            if card.name in cards:
                raise Fault(f"{side}GPU {card.name} is there twice")
            cards[card.name] = card
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
    fields = record(value, f"a GPU of {side}node {node!r}", "index gpu uuid mode seen instances")
    name = f"{node}/{integer(fields['index'], f'the index of a GPU of {side}node', node)}"
    key = one_of(devices, fields["gpu"], f"the device of {side}GPU {name}")
    one_of(_SEEN, fields["seen"], f"seen of {side}GPU {name}")
    pairs = [
        read_instance(each, points, f"instance {at} of {side}GPU {name}")
        for at, each in enumerate(as_a(list, fields["instances"], f"instances of {side}GPU", name))
    ]
    uuid = text_or_null(fields["uuid"], f"the uuid of {side}GPU", name)
    card = Card(
        name,
        devices[key],
        driver,
        one_of(MODES, fields["mode"], f"the mode of {side}GPU {name}"),
        tuple(instance for instance, _ in pairs),
        uuid,
    )
    return card, [each for each in (uuid, *(uuid for _, uuid in pairs)) if each is not None]


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
    if spelt(point.device) in card.device.names and (is_all or measured == where[1]):
        return ""
    return (
        f"{card.name}: {instance} is on {' '.join(where)}, and its point was measured on "
        f"{point.device} {point.profile}"
    )


def supplies(held: Iterable[Instance], points: Mapping[str, Any]) -> defaultdict[str, Fraction]:
    """Sum what is supplied to each service by what runs; one that is not there gets 0."""
    total: defaultdict[str, Fraction] = defaultdict(Fraction)
    for each in held:
        if each.point is not None and each.state == "running":
            point = points[each.point]
            total[point.service] += point.supply
    return total
