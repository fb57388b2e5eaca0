"""What ``nvidia-smi`` printed on a node: its GPUs, their MIG mode and their instances.

Recognised by content, in any order and in one file or several: ``-L``, ``--query-gpu=... --format=
csv``, ``mig -lgi`` and ``mig -lci``. Lines are split on blanks, never by column, since widths
differ between drivers; a line of a listing that is not understood is refused, not skipped.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime

from ....errors import FileError
from ....files.numerals import is_whole
from ....files.source import Source
from .age import written as in_utc
from .facts import GpuFacts, InstanceFacts, NodeFacts, Stated
from .merging import fault_at

__all__ = ["is_nvidia_smi", "read_nvidia_smi"]

_CARD = re.compile(r"GPU +([0-9]{1,9}): ([^(]+)\(UUID: *(GPU-[^)]+)\)")
_DEVICE = re.compile(r"MIG\s+(\S+)\s+Device\s+(\d+):\s+\(UUID:\s*(MIG-\S+)\)\s*")
_PLACE = re.compile(r"([0-9]{1,9}):([0-9]{1,9})")
_NO_MIG = "No MIG-enabled devices found"
_NO_INSTANCES = "No GPU instances found"
_NO_COMPUTE = "No compute instances found"
_ASK = "nvidia-smi --query-gpu=index,uuid,name,mig.mode.current,driver_version --format=csv"
_FIELDS = ("index", "uuid", "name", "mig.mode.current", "mig.mode.pending", "driver_version")
_MODES = {"enabled": "on", "disabled": "off", "[n/a]": "off", "n/a": "off"}
# Lines of boxes, of blanks and of headings say nothing.
_FRAME = re.compile(r"[\s+\-=|]*")
_WORDS = {
    "gpu", "gpus", "instance", "instances", "instances:", "id", "name", "profile", "placement",
    "placements", "start:size", "compute",
}  # fmt: skip


@dataclass
class _Card:
    """What the lines of a file say of one GPU, gathered."""

    where: str
    uuid: Stated | None = None
    product: Stated | None = None
    mig: Stated | None = None
    pending: Stated | None = None
    instances: list[InstanceFacts] = field(default_factory=list)
    devices: list[tuple[str, str, str]] = field(default_factory=list)  # profile, UUID, where


@dataclass
class _Read:
    """What a file says, gathered line by line."""

    source: Source
    cards: dict[int, _Card] = field(default_factory=dict)
    driver: Stated | None = None
    at: str | None = None
    listing: str | None = None  # where GPU instances are listed, or said to be none
    computes: set[tuple[int, int]] | None = None  # (GPU, GPU instance) with a compute instance
    compute_at: Stated | None = None  # the first of them
    none: dict[str, str] = field(default_factory=dict)  # where it says that there are none, or off
    found: bool = False

    def card(self, index: int, where: str) -> _Card:
        return self.cards.setdefault(index, _Card(where))


def is_nvidia_smi(source: Source) -> bool:
    """Whether a text looks like something that ``nvidia-smi`` printed."""
    text = source.text or ""
    listing = re.search(r"^\|\s+\d+\s+(\d+\s+)?MIG\s", text, re.M) or "GPU instances:" in text
    return bool(
        listing
        or _CARD.search(text)
        or any(said in text for said in (_NO_MIG, _NO_INSTANCES, _NO_COMPUTE))
        or re.search(r"^\s*(index|uuid|name|timestamp),\s", text, re.M)
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
    read = _Read(sources[0])
    for source in sources:
        read.source, read.found = source, False
        _read_all(read)
        if not read.found:
            raise source.error(
                f"{source.name} has nothing that nvidia-smi prints of GPUs",
                expected=f"the output of: nvidia-smi mig -lgi; nvidia-smi mig -lci; {_ASK}",
            )
    _refuse_contradictions(read)
    return NodeFacts(
        ", ".join(source.name for source in sources),
        at=read.at,
        driver=read.driver,
        gpus=tuple(_facts(read, index) for index in sorted(read.cards)),
    )


def _read_all(read: _Read) -> None:
    card: int | None = None
    names: list[str] = []  # the columns of a table that was begun
    for number, line in enumerate((read.source.text or "").splitlines(), 1):
        where = f"{read.source.name}:{number}"
        if match := _CARD.fullmatch(line.strip()):
            card = int(match[1])
            own = read.card(card, where)
            own.uuid = _once(read, number, own.uuid, Stated(match[3], where), f"UUID of GPU {card}")
            product = Stated(match[2].strip(), where)
            own.product = _once(read, number, own.product, product, f"product of GPU {card}")
            read.found = True
        elif match := _DEVICE.fullmatch(line.strip()):
            if card is None:
                raise _fault(read, number, "a MIG device stands before its GPU", "nvidia-smi -L")
            read.card(card, where).devices.append((match[1], match[3], where))
        elif _is_query(line):
            names = [cell.strip().split(" ")[0] for cell in line.split(",")]
        elif not (names and _is_row(read, number, line, names)):
            _line(read, number, line)
    _require_whole(read)


def _refuse_contradictions(read: _Read) -> None:
    """Refuse a listing that says there are none where another line lists one."""
    cards = sorted(read.cards.items())
    computes = [] if read.compute_at is None else [read.compute_at]
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


def _require_whole(read: _Read) -> None:
    """Refuse a table whose frame is not closed: what is missing would be taken for free."""
    text = read.source.text or ""
    lines = text.rstrip().splitlines()
    if lines and lines[-1].startswith("|") and any(line.startswith("+-") for line in lines):
        raise _fault(
            read, len(lines), "the table ends before its frame; was the file cut off?",
            "all that nvidia-smi printed",
        )  # fmt: skip


def _line(read: _Read, number: int, line: str) -> None:
    """Read a line of a listing of instances, or one that says that there are none."""
    for said in (_NO_MIG, _NO_INSTANCES, _NO_COMPUTE):
        if said in line:
            read.found = True
            where = f"{read.source.name}:{number}"
            if said != _NO_COMPUTE:
                read.listing = read.listing or where
            read.none.setdefault(said, where)
            if said == _NO_COMPUTE:
                read.computes = read.computes or set()
            return
    words = line.replace("|", " ").split()
    if "Compute" in words and "instances:" in words:
        read.found, read.computes = True, read.computes or set()
    elif "instances:" in words:
        read.found, read.listing = True, read.listing or f"{read.source.name}:{number}"
    if "MIG" in words and is_whole(words[0]):
        _instance(read, number, words)
    elif not (_FRAME.fullmatch(line) or {word.lower() for word in words} <= _WORDS):
        raise _fault(
            read, number, f"{line.strip()[:60]!r} is not understood", "nvidia-smi mig -lgi"
        )


def _instance(read: _Read, number: int, words: list[str]) -> None:
    where = f"{read.source.name}:{number}"
    at = words.index("MIG")
    numbers, rest = words[:at], words[at + 1 :]
    if len(numbers) == 2:  # a compute instance
        _compute_instance(read, number, words, numbers, rest)
        return
    place = _PLACE.fullmatch(rest[-1]) if rest else None
    if place is None or not all(map(is_whole, (*numbers, *rest[1:-1]))):
        raise _fault(read, number, "this line has no placement Start:Size", "nvidia-smi mig -lgi")
    read.found = True
    if len(numbers) != 1 or len(rest) != 4:  # GPU, name, profile, instance, place
        raise _fault(read, number, f"{' '.join(words)!r} is not understood", "nvidia-smi mig -lgi")
    read.listing = read.listing or where
    card = read.card(int(numbers[0]), where)
    new = InstanceFacts(rest[0], where, int(place[1]), int(place[2]), int(rest[2]))
    for other in card.instances:
        if other.gpu_instance == new.gpu_instance:
            raise _fault(
                read, number,
                f"GPU {numbers[0]} has GPU instance {rest[2]} here and in {other.where}",
                "one listing of a node at one time",
            )  # fmt: skip
    card.instances.append(new)


def _compute_instance(
    read: _Read, number: int, words: list[str], numbers: list[str], rest: list[str]
) -> None:
    """Read GPU, GPU instance, name, profile, instance and, from newer drivers, the placement."""
    if len(rest) == 4 and _PLACE.fullmatch(rest[-1]):
        rest = rest[:-1]
    if len(rest) != 3 or not all(map(is_whole, (*numbers, *rest[1:]))):
        raise _fault(read, number, f"{' '.join(words)!r} is not understood", "nvidia-smi mig -lci")
    read.found = True
    where, gpu = f"{read.source.name}:{number}", f"GPU {numbers[0]}"
    read.compute_at = read.compute_at or Stated(f"{gpu} has a compute instance", where)
    read.computes = read.computes or set()
    read.computes.add((int(numbers[0]), int(numbers[1])))


def _is_query(line: str) -> bool:
    names = [cell.strip().split(" ")[0] for cell in line.split(",")]
    return len(names) > 1 and "index" in names and all(re.fullmatch(r"[a-z_.]+", n) for n in names)


def _is_row(read: _Read, number: int, line: str, names: list[str]) -> bool:
    """Read a row of the table of ``--query-gpu``; return whether the line was one."""
    cells = [cell.strip() for cell in next(csv.reader([line]), [])]
    if len(cells) < 2:
        return False
    if len(cells) != len(names):
        raise _fault(read, number, f"{len(cells)} cells under {len(names)} names", _ASK)
    row = dict(zip(names, cells, strict=True))
    if not is_whole(row["index"]):
        raise _fault(read, number, f"the index is {row['index']!r}, which is no number", _ASK)
    read.found = True
    _row(read, number, row)
    return True


def _row(read: _Read, number: int, row: dict[str, str]) -> None:
    where = f"{read.source.name}:{number}"
    index = int(row["index"])
    card = read.card(index, where)
    said = {name: Stated(row[name], where) for name in _FIELDS if row.get(name)}
    if "uuid" in said:
        card.uuid = _once(read, number, card.uuid, said["uuid"], f"UUID of GPU {index}")
    if "name" in said:
        card.product = _once(read, number, card.product, said["name"], f"product of GPU {index}")
    for name, what in (("mig.mode.current", "mig"), ("mig.mode.pending", "pending")):
        if name in said:
            mode = _MODES.get(said[name].value.lower())
            if mode is None:
                wrong = f"{name} is {said[name].value!r}"
                raise _fault(read, number, wrong, "Enabled, Disabled or [N/A]")
            old = getattr(card, what)
            setattr(card, what, _once(read, number, old, Stated(mode, where), f"{name} of {index}"))
    if "driver_version" in said:
        read.driver = _once(read, number, read.driver, said["driver_version"], "driver")
    if "timestamp" in row:
        read.at = _time(read, number, row["timestamp"])


def _time(read: _Read, number: int, written: str) -> str:
    for form in ("%Y/%m/%d %H:%M:%S.%f", "%Y/%m/%d %H:%M:%S"):
        try:
            # The tool prints the clock of its node, without a zone: taken to be that of this
            # machine. Where it is another one, hours are wrong, and refused as too old or to come.
            return in_utc(datetime.strptime(written, form).astimezone())
        except (ValueError, OverflowError):
            continue
    raise _fault(read, number, f"the timestamp is {written!r}", "2026/11/23 10:15:00.000")


def _once(read: _Read, number: int, old: Stated | None, new: Stated, what: str) -> Stated:
    if old is not None and old.value != new.value:
        raise _fault(
            read, number,
            f"the {what} is {new.value} here and {old.value} in {old.where}",
            "what one node said at one time; give the files of other nodes as NODE=FILE",
        )  # fmt: skip
    return old or new


def _facts(read: _Read, index: int) -> GpuFacts:
    card = read.cards[index]
    instances = None
    if card.instances or (read.listing and (card.mig is None or card.mig.value == "on")):
        instances = tuple(_told(read, index, card))
    mig = card.mig
    if mig is None and _NO_MIG in read.none:
        mig = Stated("off", read.none[_NO_MIG])
    if instances and mig is None:
        mig = Stated("on", instances[0].where)
    return GpuFacts(
        index, card.where, card.uuid, card.product, mig, card.pending, instances,
        listing=read.listing,
    )  # fmt: skip


def _told(read: _Read, index: int, card: _Card) -> Iterator[InstanceFacts]:
    """Yield the instances, with what the other listings of the file say of each."""
    by_name: dict[str, list[str]] = {}
    for profile, uuid, _ in card.devices:
        by_name.setdefault(profile, []).append(uuid)
    for each in card.instances:
        alike = [other for other in card.instances if other.profile == each.profile]
        uuids = by_name.get(each.profile, [])
        # which of several equal devices has which UUID no listing says
        only = uuids[0] if len(alike) == len(uuids) == 1 else None
        hollow = None
        if read.computes is not None:
            hollow = (index, each.gpu_instance) not in read.computes
        yield replace(each, uuid=only, is_hollow=hollow)


def _fault(read: _Read, number: int, what: str, expected: str) -> FileError:
    return FileError(read.source.name, what, line=number, expected=expected)
