"""What ``nvidia-smi`` printed on a node: its GPUs, their MIG mode and their instances.

Recognised by content, in any order and in one file or several: ``-L``, ``--query-gpu=... --format=
csv``, ``mig -lgi`` and ``mig -lci``. Lines are split on blanks, never by column, since widths
differ between drivers; a line of a listing that is not understood is refused, not skipped. A GPU of
which a value cannot be read (``[GPU requires reset]``, ``ERR!``) is told of as unfit, and the rest
as usual. The overview that ``nvidia-smi`` prints without a word names no profiles: it is passed
over where other listings stand beside it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from ....files.numerals import is_whole
from ....files.source import Source
from .facts import GpuFacts, InstanceFacts, NodeFacts, Stated
from .merging import fault_at
from .nvidia_smi_query import (
    ASK,
    Card,
    Read,
    fault,
    field_of,
    is_query,
    is_row,
    is_unreadable,
    once,
)

__all__ = ["is_nvidia_smi", "read_nvidia_smi"]

_CARD = re.compile(r"GPU +([0-9]{1,9}): ([^(]*)\(UUID:([^()]*)\)")
_DEVICE = re.compile(r"MIG\s+(\S+)\s+Device\s+(\d+):\s+\(UUID:\s*(MIG-\S+)\)\s*")
_PART = re.compile(r"^\d+c\.")
_KINDS = {"uuid": "UUID", "product": "product"}
_PLACE = re.compile(r"([0-9]{1,9}):([0-9]{1,9})")
_NO_MIG = "No MIG-enabled devices found"
_NO_INSTANCES = "No GPU instances found"
_NO_COMPUTE = "No compute instances found"
_HANDLE = re.compile(
    r"Unable to determine the device handle for GPU *(?:(\d{1,3}): *)?([0-9a-f:]+\.[0-9a-f]):(.*)",
    re.I,
)
_WARNING = re.compile(r"warning:(.+)", re.I)
_OVERVIEW = "NVIDIA-SMI "
_CLOCK = re.compile(r"\w{3} \w{3} +\d+ [\d:]{8} \d{4}")
# Lines of boxes, of blanks and of headings say nothing.
_FRAME = re.compile(r"[\s+\-=|]*")
_WORDS = {
    "gpu", "gpus", "instance", "instances", "instances:", "id", "name", "profile", "placement",
    "placements", "start:size", "compute",
}  # fmt: skip


def is_nvidia_smi(source: Source) -> bool:
    """Whether a text looks like something that ``nvidia-smi`` printed."""
    text = source.text or ""
    listing = re.search(r"^\|\s+\d+\s+(\d+\s+)?MIG\s", text, re.M) or "GPU instances:" in text
    return bool(
        listing
        or _CARD.search(text)
        or any(said in text for said in (_NO_MIG, _NO_INSTANCES, _NO_COMPUTE))
        or re.search(r"^\s*(index|uuid|name|timestamp),\s", text, re.M)
        or any(_HANDLE.fullmatch(line.strip()) for line in text.splitlines())
        or "NVIDIA-SMI" in text
    )


def read_nvidia_smi(*sources: Source) -> NodeFacts:
    """Read what ``nvidia-smi`` printed on one node, in one file or several.

    Parameters
    ----------
    *sources : Source
        At least one.

    Returns
    -------
    NodeFacts
        Without a name: no listing has one.

    Raises
    ------
    FileError
        With the line: one that is not understood, an instance that is listed twice, ...

    Examples
    --------
    >>> text = "|   0  MIG 3g.40gb    9    2    4:4     |"
    >>> facts = read_nvidia_smi(Source("lgi.txt", text))
    >>> facts.gpus[0].instances[0].start
    4
    """
    read = Read(sources[0])
    for source in sources:
        read.source, read.found = source, False
        _read_all(read)
        if not read.found:
            raise source.error(
                f"{source.name} has nothing that nvidia-smi prints of GPUs",
                expected=f"the output of: nvidia-smi mig -lgi; nvidia-smi mig -lci; {ASK}",
            )
    _refuse_contradictions(read)
    _number_lost(read)
    return NodeFacts(
        ", ".join(source.name for source in sources),
        at=read.at,
        driver=read.driver,
        gpus=tuple(_facts(read, index) for index in sorted(read.cards)),
        unknown=tuple(read.warnings),
    )


def _read_all(read: Read) -> None:
    card: int | None = None
    names: list[str] = []  # the columns of a table that was begun
    in_overview = False
    for number, line in enumerate((read.source.text or "").splitlines(), 1):
        where, bare = f"{read.source.name}:{number}", line.strip()
        if match := _CARD.fullmatch(bare):
            card = int(match[1])
            _card(read, number, match)
        elif match := _DEVICE.fullmatch(bare):
            if card is None:
                raise fault(read, number, "a MIG device stands before its GPU", "nvidia-smi -L")
            read.card(card, where).devices.append((match[1], match[3], where))
        elif match := _HANDLE.fullmatch(bare):
            said, read.found = Stated(match[3].strip().rstrip("."), where), True
            if match[1] is None:
                read.lost.setdefault(match[2].lower(), said)
            else:
                own = read.card(int(match[1]), where)
                own.unfit = own.unfit or said
        elif match := _WARNING.fullmatch(bare):
            read.warnings[f"nvidia-smi warns: {match[1].strip()} ({where})"] = None
        elif is_query(line):
            names = [field_of(cell) for cell in line.split(",")]
        elif _OVERVIEW in line or (in_overview and not _begins_listing(line)):
            in_overview = True
            continue
        elif not (_CLOCK.fullmatch(bare) or (names and is_row(read, number, line, names))):
            _line(read, number, line)
        in_overview = False
    _require_whole(read)


def _card(read: Read, number: int, match: re.Match[str]) -> None:
    """Read a GPU's line of ``-L``."""
    where, index = f"{read.source.name}:{number}", int(match[1])
    own = read.card(index, where)
    own.is_listed = read.found = True
    for value, what in ((match[3].strip(), "uuid"), (match[2].strip(), "product")):
        if is_unreadable(value) or (what == "uuid" and not value.startswith("GPU-")):
            own.unfit = own.unfit or Stated(f"its {_KINDS[what]} is {value}", where)
            continue
        name = f"{_KINDS[what]} of GPU {index}"
        setattr(own, what, once(read, number, getattr(own, what), Stated(value, where), name))


def _begins_listing(line: str) -> bool:
    return (
        "GPU instances:" in line
        or "Compute instances:" in line
        or any(said in line for said in (_NO_MIG, _NO_INSTANCES, _NO_COMPUTE))
    )


def _number_lost(read: Read) -> None:
    """Give the GPUs that the driver has lost the numbers that are left out."""
    left = sorted({*range(max(read.cards, default=-1))} - read.cards.keys())
    if len(left) == len(read.lost):
        for index, said in zip(left, read.lost.values(), strict=True):
            read.card(index, said.where).unfit = said
        return
    for address, said in read.lost.items():
        read.warnings[
            f"the GPU at {address} is not shown, as its number is not told: {said.value} "
            f"({said.where})"
        ] = None


def _refuse_contradictions(read: Read) -> None:
    """Refuse a listing that says there are none where another line lists one."""
    cards = sorted(read.cards.items())
    computes = [
        Stated(f"GPU {gpu} has a compute instance", each.where)
        for (gpu, _), own in (read.computes or {}).items()
        for each in own
    ][:1]
    instances = [
        Stated(f"GPU {index} has a {profile}", where)
        for index, card in cards
        for profile, where in (
            *((each.profile, each.where) for each in card.instances),
            *((profile, where) for profile, _, where in card.devices),
        )
    ]
    on = [
        Stated(f"MIG is on on GPU {index}", card.mig.where)
        for index, card in cards
        if card.mig is not None and card.mig.value == "on"
    ]
    against = {
        _NO_COMPUTE: computes,
        _NO_INSTANCES: [*instances, *computes],
        _NO_MIG: [*instances, *computes, *on],
    }
    for said, where in read.none.items():
        for other in against[said][:1]:
            raise fault_at(
                where, f'it says "{said}" here, and {other.value} in {other.where}',
                "one listing of all GPUs of a node at one time; observe it again",
            )  # fmt: skip
    for beyond in _beyond_listing(read) if read.listing else ():
        raise fault_at(
            beyond.where, f"{beyond.value}, which the listing from {read.listing} on does not have",
            "all that nvidia-smi mig -lgi printed, of the same time; observe the node again",
        )  # fmt: skip


def _beyond_listing(read: Read) -> Iterator[Stated]:
    """Yield what -lci and -L list in GPU instances that -lgi, cut off or older, does not list."""
    for (index, number), computes in (read.computes or {}).items():
        known = read.cards[index].instances if index in read.cards else []
        if number not in {each.gpu_instance for each in known}:
            yield replace(
                computes[0], value=f"GPU {index} has a compute instance in GPU instance {number}"
            )
    for index, card in read.cards.items():
        room = Counter(each.profile for each in card.instances)
        # Whole instances first: parts are of those that are left.
        for name, _, where in sorted(card.devices, key=lambda each: bool(_PART.match(each[0]))):
            whole = _whole_name(name)
            room[whole] -= name == whole
            if room[whole] < (name != whole):
                yield Stated(f"GPU {index} has a MIG device {name}", where)


def _require_whole(read: Read) -> None:
    """Refuse a table whose frame is not closed: what is missing would be taken for free."""
    text = read.source.text or ""
    lines = text.rstrip().splitlines()
    if lines and lines[-1].startswith("|") and any(line.startswith("+-") for line in lines):
        raise fault(
            read, len(lines), "the table ends before its frame; was the file cut off?",
            "all that nvidia-smi printed",
        )  # fmt: skip


def _line(read: Read, number: int, line: str) -> None:
    """Read a line of a listing of instances, or one that says that there are none."""
    for said in (_NO_MIG, _NO_INSTANCES, _NO_COMPUTE):
        if said in line:
            read.found = True
            where = f"{read.source.name}:{number}"
            if said != _NO_COMPUTE:
                read.listing = read.listing or where
            read.none.setdefault(said, where)
            if said == _NO_COMPUTE:
                read.computes = read.computes or {}
            return
    words = line.replace("|", " ").split()
    if "Compute" in words and "instances:" in words:
        read.found, read.computes = True, read.computes or {}
    elif "instances:" in words:
        read.found, read.listing = True, read.listing or f"{read.source.name}:{number}"
    if "MIG" in words and is_whole(words[0]):
        _instance(read, number, words)
    elif not (_FRAME.fullmatch(line) or {word.lower() for word in words} <= _WORDS):
        raise fault(read, number, f"{line.strip()[:60]!r} is not understood", "nvidia-smi mig -lgi")


def _instance(read: Read, number: int, words: list[str]) -> None:
    where = f"{read.source.name}:{number}"
    at = words.index("MIG")
    numbers, rest = words[:at], words[at + 1 :]
    if len(numbers) == 2:  # a compute instance
        _compute_instance(read, number, words, numbers, rest)
        return
    place = _PLACE.fullmatch(rest[-1]) if rest else None
    if place is None or not all(map(is_whole, (*numbers, *rest[1:-1]))):
        raise fault(read, number, "this line has no placement Start:Size", "nvidia-smi mig -lgi")
    read.found = True
    if len(numbers) != 1 or len(rest) != 4:  # GPU, name, profile, instance, place
        raise fault(read, number, f"{' '.join(words)!r} is not understood", "nvidia-smi mig -lgi")
    read.listing = read.listing or where
    card = read.card(int(numbers[0]), where)
    new = InstanceFacts(rest[0], where, int(place[1]), int(place[2]), int(rest[2]))
    for other in card.instances:
        if other.gpu_instance == new.gpu_instance:
            raise fault(
                read, number,
                f"GPU {numbers[0]} has GPU instance {rest[2]} here and in {other.where}",
                "one listing of a node at one time",
            )  # fmt: skip
    card.instances.append(new)


def _compute_instance(
    read: Read, number: int, words: list[str], numbers: list[str], rest: list[str]
) -> None:
    """Read GPU, GPU instance, name, profile, instance and, from newer drivers, the placement."""
    if len(rest) == 4 and _PLACE.fullmatch(rest[-1]):
        rest = rest[:-1]
    if len(rest) != 3 or not all(map(is_whole, (*numbers, *rest[1:]))):
        raise fault(read, number, f"{' '.join(words)!r} is not understood", "nvidia-smi mig -lci")
    read.found = True
    where = f"{read.source.name}:{number}"
    read.computes = read.computes or {}
    own = read.computes.setdefault((int(numbers[0]), int(numbers[1])), [])
    own.append(Stated(rest[0], where))


def _facts(read: Read, index: int) -> GpuFacts:
    card = read.cards[index]
    instances = None
    if card.instances or (read.listing and (card.mig is None or card.mig.value == "on")):
        instances = tuple(_told(read, index, card))
    mig = card.mig
    if mig is None and _NO_MIG in read.none:
        mig = Stated("off", read.none[_NO_MIG])
    if mig is None and (instances or card.devices):
        mig = Stated("on", instances[0].where if instances else card.devices[0][2])
    unfit = card.unfit or _unclear(read, index, card)
    return GpuFacts(
        index, card.where, card.uuid, card.product, mig, card.pending, instances,
        listing=read.listing, unfit=unfit,
    )  # fmt: skip


def _whole_name(name: str) -> str:
    """Return the GPU instance's profile of a compute instance's: ``3g.40gb`` of ``1c.3g.40gb``."""
    return _PART.sub("", name)


def _unclear(read: Read, index: int, card: Card) -> Stated | None:
    """Say which instances may lack their compute instance or have others, where only -L tells."""
    if read.computes is not None or not card.is_listed:
        return None
    for profile in sorted({each.profile for each in card.instances}):
        alike = [each for each in card.instances if each.profile == profile]
        own = [name for name, *_ in card.devices if _whole_name(name) == profile]
        if 0 < own.count(profile) < len(alike):
            return Stated(
                f"of its {len(alike)} {profile}, -L lists {own.count(profile)} as whole, and which "
                "these are says nvidia-smi mig -lci alone", card.where,
            )  # fmt: skip
    return None


def _told(read: Read, index: int, card: Card) -> Iterator[InstanceFacts]:
    """Yield the instances, with what the other listings of the file say of each."""
    for each in card.instances:
        alike = [other for other in card.instances if other.profile == each.profile]
        own = [device for device in card.devices if _whole_name(device[0]) == each.profile]
        names = [name for name, *_ in own]
        # which of several equal devices has which UUID no listing says
        only = own[0][1] if len(alike) == 1 and names == [each.profile] else None
        if read.computes is not None:
            computes = read.computes.get((index, each.gpu_instance or 0), [])
            for said in computes:
                if _whole_name(said.value) != each.profile:
                    raise fault_at(
                        said.where,
                        f"GPU instance {each.gpu_instance} of GPU {index} has a {said.value} here, "
                        f"and is a {each.profile} in {each.where}",
                        "listings of one time; observe the node again",
                    )
            names = [said.value for said in computes]
            split = names not in ([], [each.profile])
            yield replace(each, uuid=only, is_hollow=not names, is_split=split)
        else:  # a device that -L does not list may be younger than its text
            yield replace(each, uuid=only, is_split=bool(names) and each.profile not in names)
