"""What ``nvidia-smi`` printed on a node: its GPUs, their MIG mode and their instances.

Read from its XML (``-q -x``), and from text what the XML lacks: ``mig -lgi`` alone tells profiles
and starts, ``-L`` the UUIDs of MIG devices and the names of compute instances. Recognised by
content, in any order and in one file or several. Lines are split on blanks, never by column, since
widths differ between drivers; a line of a listing that is not understood is refused, not skipped.
A GPU of which a value cannot be read (``GPU requires reset``, ``ERR!``) is told of as unfit, and
the rest as usual. The overview that ``nvidia-smi`` prints without a word names no profiles: it is
passed over where other listings stand beside it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple
from xml.etree import ElementTree

from ....errors import FileError
from ....files.numerals import is_whole
from ....files.source import Source
from ....values.words import count
from ..instance import State
from .age import format_moment
from .facts import GpuFacts, InstanceFacts, NodeFacts, Statement, fault_at

__all__ = ["ASK", "is_nvidia_smi", "read_nvidia_smi"]

ASK, _LGI = "nvidia-smi -q -x", "nvidia-smi mig -lgi"
_ONE_TIME = "listings of one time; observe the node again"
_LOG, _LOG_END = "<nvidia_smi_log", "</nvidia_smi_log>"
#: What is read of a GPU in the XML, by the names of `GpuFacts`.
_FIELDS = {
    "uuid": "uuid", "product": "product_name", "mig": "mig_mode/current_mig",
    "pending": "mig_mode/pending_mig",
}  # fmt: skip
_MODES = {"enabled": "on", "disabled": "off"}
#: What stands for a value that there is none of, as MIG mode is of most GPUs.
_NOTHING = ("n/a", "not supported", "not available")
#: What stands for a value that could not be read, in brackets or not.
_UNREADABLE = re.compile(
    r"err!?|(gpu )?requires reset|gpu is lost|unknown error|insufficient permissions?"
    r"|no permission|function not found|not found|timeout|reset required|in use",
    re.I,
)
#: In any field these say that a GPU is not well.
_LOST = re.compile(r"requires reset|is lost|unknown error|reset required", re.I)
_CARD = re.compile(r"GPU +([0-9]{1,9}): ([^(]*)\(UUID:([^()]*)\)")
_DEVICE = re.compile(r"MIG\s+(\S+)\s+Device\s+([0-9]{1,9}):\s+\(UUID:\s*(MIG-\S+)\)\s*")
_HANDLE = re.compile(
    r"Unable to determine the device handle for GPU *(?:(\d{1,3}): *)?([0-9a-f:]+\.[0-9a-f]):(.*)",
    re.I,
)
_PART = re.compile(r"^\d+c\.")
_PLACE = re.compile(r"([0-9]{1,9}):([0-9]{1,9})")
_NO_MIG, _NO_INSTANCES = "No MIG-enabled devices found", "No GPU instances found"
#: What is said of GPUs.
_TELLS = re.compile(
    rf"GPU instances:|{_LOG}|{_NO_MIG}|{_NO_INSTANCES}|^[ \t]*\|?[ \t]*\d+[ \t]+MIG\s"
    rf"|^[ \t]*{_CARD.pattern}|(?i:{_HANDLE.pattern})", re.M,
)  # fmt: skip
_CLOCK = re.compile(r"\w{3} \w{3} +\d+ [\d:]{8} \d{4}")
# Lines of boxes, of blanks and of headings say nothing.
_FRAME = re.compile(r"[\s+\-=|]*")
_WORDS = {
    "gpu", "gpus", "instance", "instances", "instances:", "id", "name", "profile", "placement",
    "placements", "start:size",
}  # fmt: skip


class _Listed(NamedTuple):
    """A MIG device that -L lists."""

    name: str
    uuid: str
    where: str


class _Device(NamedTuple):
    """A MIG device of the XML: a compute instance of a GPU instance."""

    gpu_instance: int
    multiprocessors: int | None
    where: str


@dataclass
class _Card:
    """What is said of one GPU."""

    where: str
    said: dict[str, Statement] = field(default_factory=dict)  # by the names of `GpuFacts`
    instances: list[InstanceFacts] = field(default_factory=list)
    listed: dict[int, _Listed] = field(default_factory=dict)  # MIG devices by number, of -L
    devices: dict[int, _Device] | None = None  # of the XML
    unfit: Statement | None = None


@dataclass
class _Reader:
    """What the files say, gathered line by line."""

    source: Source
    line: int = 0
    cards: dict[int, _Card] = field(default_factory=dict)
    driver: Statement | None = None
    latest: str | None = None
    listing: str | None = None  # where GPU instances are listed, or said to be none
    none: dict[str, str] = field(default_factory=dict)  # where it says that there are none, or off
    lost: dict[str, Statement] = field(default_factory=dict)  # GPUs without a number, by address
    warnings: dict[str, None] = field(default_factory=dict)

    @property
    def where(self) -> str:
        return f"{self.source.name}:{self.line}"

    def card(self, index: int) -> _Card:
        return self.cards.setdefault(index, _Card(self.where))

    def fault(self, what: str, expected: str) -> FileError:
        return FileError(self.source.name, what, line=self.line, expected=expected)

    def once(self, old: Statement | None, value: str, what: str) -> Statement:
        """Return what is said, the first time it is; refuse another value."""
        if old is not None and old.value != value:
            expected = "what one node said at one time; give the files of other nodes as NODE=FILE"
            raise self.fault(f"the {what} is {value} here and {old.value} in {old.where}", expected)
        return old or Statement(value, self.where)

    def tell(self, index: int, name: str, value: str) -> None:
        """Take what is said of a GPU."""
        card, plain = self.card(index), value.strip("[] ").lower()
        is_needed = name in ("uuid", "product")
        is_nothing = plain in _NOTHING or (name == "uuid" and not value.startswith("GPU-"))
        if name == "pending" and plain in _NOTHING:
            return
        if _UNREADABLE.fullmatch(plain) or (is_needed and is_nothing):
            card.unfit = card.unfit or Statement(f"its {name} is {value}", self.where)
            return
        if not is_needed:
            mode = "off" if plain in _NOTHING else _MODES.get(plain)
            if mode is None:
                raise self.fault(f"its {name} MIG mode is {value!r}", "Enabled, Disabled or N/A")
            value = mode
        card.said[name] = self.once(card.said.get(name), value, f"{name} of GPU {index}")


def is_nvidia_smi(source: Source) -> bool:
    """Whether a text looks like something that ``nvidia-smi`` printed."""
    return "NVIDIA-SMI" in source.text or _TELLS.search(source.text) is not None


def read_nvidia_smi(*sources: Source) -> NodeFacts:
    """Read what ``nvidia-smi`` printed on one node, in one file or several.

    No listing names its node. `NodeFacts.at` is the last moment that it can be of: the XML has the
    clock of its node without a zone. What is not understood is refused with its line.
    """
    read = _Reader(sources[0])
    logs: list[tuple[Source, str]] = []
    for source in sources:
        read.source = source
        before, is_log, after = source.text.partition(_LOG)
        log, end, rest = f"{is_log}{after}".partition(_LOG_END)
        if is_log:  # its lines keep their numbers, and so do those below it
            logs.append((source, "\n" * before.count("\n") + log + end))
            before += "\n" * log.count("\n")
        _read_lines(read, (before + rest).splitlines())
        if not _TELLS.search(source.text):
            what = f"{source.name} has nothing that nvidia-smi prints of GPUs"
            raise source.error(what, expected=f"the output of: {_LGI}; {ASK}")
    for each in logs:  # last, since its GPUs may be known by number from the rest
        _read_log(read, *each)
    _refuse_contradictions(read)
    _number_lost(read)
    return NodeFacts(
        ", ".join(source.name for source in sources),
        at=read.latest,
        driver=read.driver,
        gpus=tuple(_facts(read, index) for index in sorted(read.cards)),
        unknown=tuple(read.warnings),
    )


# --- XML ------------------------------------------------------------------------------------------


def _read_log(read: _Reader, source: Source, text: str) -> None:
    lines: dict[ElementTree.Element, int] = {}
    parser: Any = ElementTree.XMLPullParser(["start"])
    try:
        for number, each in enumerate(text.splitlines(keepends=True), 1):
            parser.feed(each)
            lines |= {element: number for _, element in parser.read_events()}
        parser.close()
    except ElementTree.ParseError as fault:
        raise FileError(
            source.name, f"its XML cannot be read: {fault.msg}", line=fault.position[0],
            expected=f"all that {ASK} printed",
        ) from None  # fmt: skip
    root = next(iter(lines))
    read.source, read.line = source, lines[root]
    driver = root.findtext("driver_version", "N/A").strip()
    if driver.lower() not in _NOTHING:
        read.driver = read.once(read.driver, driver, "driver")
    if (time := root.findtext("timestamp")) is not None:
        try:
            moment = datetime.strptime(time.strip(), "%a %b %d %H:%M:%S %Y")
            # it was then at the latest: nowhere is the clock further behind
            read.latest = format_moment(moment.replace(tzinfo=timezone(timedelta(hours=-12))))
        except (ValueError, OverflowError):
            what = f"the timestamp is {time!r}"
            raise read.fault(what, "Mon Nov 23 10:15:00 2026") from None
    cards = root.findall("gpu")
    known = {c.said["uuid"].value: index for index, c in read.cards.items() if "uuid" in c.said}
    attached = root.findtext("attached_gpus", str(len(cards))).strip()
    for position, gpu in enumerate(cards):
        read.line = lines[gpu]
        # they stand in the order of their numbers, those that are lost left out
        own = position if attached == str(len(cards)) else None
        index = known.get(gpu.findtext("uuid", "").strip(), own)
        if index is None:
            raise read.fault(
                f"which number this GPU has is not known: of {attached} GPUs {len(cards)} are told",
                "the output of nvidia-smi -L beside it",
            )
        for name, path in _FIELDS.items():
            if value := gpu.findtext(path, "").strip():
                read.tell(index, name, value)
        card = read.card(index)
        texts = (e.text or "" for part in gpu if part.tag != "processes" for e in part.iter())
        if (lost := next(filter(_LOST.search, texts), None)) is not None:
            card.unfit = card.unfit or Statement(lost.strip(), read.where)
        if gpu.find("mig_devices") is not None:
            card.devices = dict(_devices(read, gpu, lines))


def _devices(
    read: _Reader, gpu: ElementTree.Element, lines: Mapping[ElementTree.Element, int]
) -> Iterator[tuple[int, _Device]]:
    for device in gpu.iterfind("mig_devices/mig_device"):
        read.line = lines[device]
        number, instance = (device.findtext(t, "").strip() for t in ("index", "gpu_instance_id"))
        if not (is_whole(number) and is_whole(instance)):
            raise read.fault("a MIG device has no numbers", "its index and gpu_instance_id")
        size = device.findtext("device_attributes/shared/multiprocessor_count", "").strip()
        yield int(number), _Device(int(instance), int(size) if is_whole(size) else None, read.where)


# --- lines ----------------------------------------------------------------------------------------


def _read_lines(read: _Reader, lines: list[str]) -> None:
    last: int | None = None  # the GPU of -L whose devices follow
    in_overview = False
    for read.line, line in enumerate(lines, 1):
        bare = line.strip()
        begins = any(said in line for said in ("GPU instances:", _NO_INSTANCES, _NO_MIG))
        if in_overview and not begins:
            continue
        in_overview = "NVIDIA-SMI " in line
        if in_overview or bare.startswith(("<?xml", "<!DOCTYPE")) or _CLOCK.fullmatch(bare):
            continue
        if match := _CARD.fullmatch(bare):
            last = int(match[1])
            read.tell(last, "uuid", match[3].strip())
            read.tell(last, "product", match[2].strip())
        elif match := _DEVICE.fullmatch(bare):
            if last is None:
                raise read.fault("a MIG device stands before its GPU", "nvidia-smi -L")
            read.card(last).listed[int(match[2])] = _Listed(match[1], match[3], read.where)
        elif match := _HANDLE.fullmatch(bare):
            said = Statement(match[3].strip().rstrip("."), read.where)
            if match[1] is None:
                read.lost.setdefault(match[2].lower(), said)
            else:
                card = read.card(int(match[1]))
                card.unfit = card.unfit or said
        elif bare.lower().startswith("warning:"):
            read.warnings[f"nvidia-smi warns: {bare[8:].strip()} ({read.where})"] = None
        else:
            _read_listing(read, line)
    told = [line for line in lines if line.strip()]
    if told and told[-1].startswith("|") and any(line.startswith("+-") for line in told):
        what = "the table ends before its frame; was the file cut off?"
        raise read.fault(what, "all that nvidia-smi printed")  # what is missing would seem free


def _read_listing(read: _Reader, line: str) -> None:
    """Read a line of a listing of instances, or one that says that there are none."""
    for said in (_NO_MIG, _NO_INSTANCES):
        if said in line:
            read.listing = read.listing or read.where
            read.none.setdefault(said, read.where)
            return
    words = line.replace("|", " ").split()
    if "instances:" in words:
        read.listing = read.listing or read.where
    if "MIG" not in words or not is_whole(words[0]):
        if not (_FRAME.fullmatch(line) or {word.lower() for word in words} <= _WORDS):
            raise read.fault(f"{line.strip()[:60]!r} is not understood", _LGI)
        return
    place = _PLACE.fullmatch(words[-1])  # of GPU, MIG, name, profile, instance, placement
    if place is None or len(words) != 6 or not all(map(is_whole, words[3:5])) or words[1] != "MIG":
        raise read.fault(
            f"{' '.join(words)[:60]!r} is no GPU instance with its placement Start:Size", _LGI
        )
    read.listing = read.listing or read.where
    card, number = read.card(int(words[0])), int(words[4])
    for other in card.instances:
        if other.gpu_instance == number:
            what = f"GPU {words[0]} has GPU instance {number} here and in {other.where}"
            raise read.fault(what, "one listing of a node at one time")
    places = int(place[1]), int(place[2])
    card.instances.append(InstanceFacts(words[2], read.where, *places, number))


# --- what the listings say together ---------------------------------------------------------------


def _number_lost(read: _Reader) -> None:
    """Give the GPUs that the driver has lost the numbers that are left out."""
    left = sorted({*range(max(read.cards, default=-1))} - read.cards.keys())
    if len(left) != len(read.lost):
        left = []
    for address, said in read.lost.items():
        if left:
            read.cards[left.pop(0)] = _Card(said.where, unfit=said)
        else:
            hidden = f"the GPU at {address} is not shown, as its number is not told"
            read.warnings[f"{hidden}: {said.value} ({said.where})"] = None


def _refuse_contradictions(read: _Reader) -> None:
    """Refuse listings that say there are none, or fewer, where another line lists one."""
    there, on = [], []
    for index, card in sorted(read.cards.items()):
        told = [(f"a {each.profile}", each.where) for each in card.instances]
        told += [(f"a {each.name}", each.where) for each in card.listed.values()]
        parts = card.devices or {}
        told += [(f"GPU instance {each.gpu_instance}", each.where) for each in parts.values()]
        there += [Statement(f"GPU {index} has {what}", where) for what, where in told]
        mig, listed = card.said.get("mig"), next(iter(card.listed.values()), None)
        if mig is not None and mig.value == "off" and listed is not None:
            has = f"a MIG device here, and MIG is off in {mig.where}"
            raise fault_at(listed.where, f"GPU {index} has {has}", _ONE_TIME)
        if listed is not None and card.devices is not None and card.listed.keys() != parts.keys():
            has = f"{count(len(card.listed), 'MIG device')} here, and {len(parts)} by {ASK}"
            asked = "both of one time, asked by root on the node"
            raise fault_at(listed.where, f"GPU {index} has {has}", asked)
        if mig is not None and mig.value == "on":
            on.append(Statement(f"MIG is on on GPU {index}", mig.where))
    for said, where in read.none.items():
        for other in [*there, *(on if said == _NO_MIG else ())][:1]:
            raise fault_at(
                where, f'it says "{said}" here, and {other.value} in {other.where}',
                "one listing of all GPUs of a node at one time; observe it again",
            )  # fmt: skip
    for beyond in _beyond_listing(read) if read.listing else ():
        raise fault_at(
            beyond.where, f"{beyond.value}, which the listing from {read.listing} on does not have",
            f"all that {_LGI} printed, of the same time; observe the node again",
        )  # fmt: skip


def _beyond_listing(read: _Reader) -> Iterator[Statement]:
    """Yield what is in GPU instances that -lgi, cut off or older, does not list."""
    for index, card in read.cards.items():
        numbers = {each.gpu_instance for each in card.instances}
        for device in (card.devices or {}).values():
            if device.gpu_instance not in numbers:
                said = f"GPU {index} has GPU instance {device.gpu_instance}"
                yield Statement(said, device.where)
        room = Counter(each.profile for each in card.instances)
        # Whole instances first: parts are of those that are left.
        for each in sorted(card.listed.values(), key=lambda one: bool(_PART.match(one.name))):
            whole = _PART.sub("", each.name)
            room[whole] -= each.name == whole
            if room[whole] < (each.name != whole):
                yield Statement(f"GPU {index} has a MIG device {each.name}", each.where)


def _facts(read: _Reader, index: int) -> GpuFacts:
    card = read.cards[index]
    mig, unfit, instances = card.said.get("mig"), card.unfit, None
    if card.instances or (read.listing and (mig is None or mig.value == "on")):
        instances = tuple(_instance(card, each) for each in card.instances)
    found = [*(each.where for each in card.instances), *(d.where for d in card.listed.values())]
    if mig is None and _NO_MIG in read.none:
        mig = Statement("off", read.none[_NO_MIG])
    elif mig is None and found:
        mig = Statement("on", found[0])
    parts = [each for each in card.listed.values() if _PART.match(each.name)]
    if parts and card.devices is None:
        said = f"{parts[0].name} is a part of a GPU instance; of which is said by {ASK}"
        unfit = unfit or Statement(said, parts[0].where)
    return GpuFacts(
        index, card.where, card.said.get("uuid"), card.said.get("product"), mig,
        card.said.get("pending"), instances, listing=read.listing, unfit=unfit,
    )  # fmt: skip


def _instance(card: _Card, each: InstanceFacts) -> InstanceFacts:
    """Return an instance with what -L and the XML say of it."""
    if card.devices is None:  # -L alone does not say which of several equal ones has which UUID
        mine = [device for device in card.listed.values() if device.name == each.profile]
        alike = sum(other.profile == each.profile for other in card.instances)
        return replace(each, uuid=mine[0].uuid if alike == len(mine) == 1 else None)
    own = {at: d for at, d in card.devices.items() if d.gpu_instance == each.gpu_instance}
    if len(own) != 1:
        return replace(each, state=State.SPLIT if own else State.NO_COMPUTE_INSTANCE)
    ((at, device),) = own.items()
    listed = card.listed.get(at)
    if listed is None:
        return replace(each, multiprocessors=device.multiprocessors)
    if _PART.sub("", listed.name) != each.profile:
        says = f"device {at} is a {listed.name} here, and of a {each.profile} in {each.where}"
        raise fault_at(listed.where, says, _ONE_TIME)
    if listed.name != each.profile:
        return replace(each, state=State.SPLIT)
    return replace(each, uuid=listed.uuid)
