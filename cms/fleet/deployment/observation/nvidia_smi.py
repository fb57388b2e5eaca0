"""What ``nvidia-smi`` printed on a node: its GPUs, their MIG mode and their instances."""

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

ASK, _LGI = "nvidia-smi -q -x", "nvidia-smi mig -lgi"
_ONE_TIME = "listings of one time; observe the node again"
_LOG, _LOG_END = "<nvidia_smi_log", "</nvidia_smi_log>"
#: What is read of a GPU in the XML, by the names of `GpuFacts`.
_FIELDS = {
    "uuid": "uuid", "product": "product_name", "mig": "mig_mode/current_mig",
    "pending": "mig_mode/pending_mig",
}  # fmt: skip
#: What stands for a value that there is none of, as MIG mode is of most GPUs.
_NOTHING = ("n/a", "not supported", "not available")
_MODES = {"enabled": "on", "disabled": "off", **dict.fromkeys(_NOTHING, "off")}
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


class _Device(NamedTuple):
    """A MIG device, as -L lists it by name, or the XML by its GPU instance."""

    where: str
    name: str = ""
    uuid: str | None = None
    gpu_instance: int | None = None
    multiprocessors: int | None = None


@dataclass
class _Card:
    """What is said of one GPU."""

    where: str
    said: dict[str, Statement] = field(default_factory=dict)  # by the names of `GpuFacts`
    instances: list[InstanceFacts] = field(default_factory=list)
    listed: dict[int, _Device] = field(default_factory=dict)  # by number, of -L
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

    def lose(self, index: int, why: str) -> None:
        """Take it that nothing can be planned on a GPU, for the first reason that is told."""
        card = self.card(index)
        card.unfit = card.unfit or Statement(why, self.where)

    def tell(self, index: int, name: str, value: str) -> None:
        """Take what is said of a GPU."""
        card, plain = self.card(index), value.strip("[] ").lower()
        is_mode = name in ("mig", "pending")
        is_nothing = plain in _NOTHING or (name == "uuid" and not value.startswith("GPU-"))
        if _UNREADABLE.fullmatch(plain) or (is_nothing and not is_mode):
            self.lose(index, f"its {name} is {value}")
        elif is_mode and plain not in _MODES:
            raise self.fault(f"its {name} MIG mode is {value!r}", "Enabled, Disabled or N/A")
        elif name != "pending" or not is_nothing:
            value = _MODES[plain] if is_mode else value
            card.said[name] = self.once(card.said.get(name), value, f"{name} of GPU {index}")


def is_nvidia_smi(source: Source) -> bool:
    """Whether a text looks like something that ``nvidia-smi`` printed."""
    return "NVIDIA-SMI" in source.text or _TELLS.search(source.text) is not None


def read_nvidia_smi(*sources: Source) -> NodeFacts:
    """Read what ``nvidia-smi`` printed on one node, in any order, in one file or several.

    The XML (``-q -x``) lacks profiles and starts, which ``mig -lgi`` tells, and the UUIDs of MIG
    devices, which ``-L`` does. `NodeFacts.at` is the last moment that it can be of: the XML has the
    clock of its node without a zone. A line that is not understood is refused; lines are split on
    blanks, since widths differ between drivers. A GPU of which a value cannot be read is unfit. The
    overview that ``nvidia-smi`` prints without a word is passed over: it names no profiles.
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
    left = sorted({*range(max(read.cards, default=-1))} - read.cards.keys())
    for at, (address, said) in enumerate(read.lost.items()):
        if len(left) == len(read.lost):  # the lost GPUs have the numbers that are left out
            read.cards[left[at]] = _Card(said.where, unfit=said)
        else:
            hidden = f"the GPU at {address} is not shown, as its number is not told"
            read.warnings[f"{hidden}: {said.value} ({said.where})"] = None
    return NodeFacts(
        ", ".join(source.name for source in sources),
        at=read.latest,
        driver=read.driver,
        gpus=tuple(_facts(read, index) for index in sorted(read.cards)),
        unknown=tuple(read.warnings),
    )


def _read_log(read: _Reader, source: Source, text: str) -> None:
    lines: dict[ElementTree.Element, int] = {}
    parser: Any = ElementTree.XMLPullParser(["start"])
    try:
        for number, each in enumerate(text.splitlines(keepends=True), 1):
            parser.feed(each)
            lines |= {element: number for _, element in parser.read_events()}
        parser.close()
    except ElementTree.ParseError as fault:
        what, expected = f"its XML cannot be read: {fault.msg}", f"all that {ASK} printed"
        raise FileError(source.name, what, line=fault.position[0], expected=expected) from None
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
        texts = (e.text or "" for part in gpu if part.tag != "processes" for e in part.iter())
        if (lost := next(filter(_LOST.search, texts), None)) is not None:
            read.lose(index, lost.strip())
        if gpu.find("mig_devices") is not None:
            read.card(index).devices = dict(_devices(read, gpu, lines))


def _devices(
    read: _Reader, gpu: ElementTree.Element, lines: Mapping[ElementTree.Element, int]
) -> Iterator[tuple[int, _Device]]:
    for device in gpu.iterfind("mig_devices/mig_device"):
        read.line = lines[device]
        numbers = "index", "gpu_instance_id", "device_attributes/shared/multiprocessor_count"
        texts = (device.findtext(path, "").strip() for path in numbers)
        number, instance, size = (int(text) if is_whole(text) else None for text in texts)
        if number is None or instance is None:
            raise read.fault("a MIG device has no numbers", "its index and gpu_instance_id")
        yield number, _Device(read.where, gpu_instance=instance, multiprocessors=size)


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
            read.card(last).listed[int(match[2])] = _Device(read.where, match[1], match[3])
        elif match := _HANDLE.fullmatch(bare):
            said = match[3].strip().rstrip(".")
            if match[1] is not None:
                read.lose(int(match[1]), said)
            else:
                read.lost.setdefault(match[2].lower(), Statement(said, read.where))
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
    words = line.replace("|", " ").split()
    none = next((said for said in (_NO_MIG, _NO_INSTANCES) if said in line), None)
    if none is not None:
        read.none.setdefault(none, read.where)
    elif "MIG" in words and is_whole(words[0]):
        _read_row(read, words)
    elif not (_FRAME.fullmatch(line) or {word.lower() for word in words} <= _WORDS):
        raise read.fault(f"{line.strip()[:60]!r} is not understood", _LGI)
    elif "instances:" not in words:
        return
    read.listing = read.listing or read.where


def _read_row(read: _Reader, words: list[str]) -> None:
    place = _PLACE.fullmatch(words[-1])  # of GPU, MIG, name, profile, instance, placement
    if place is None or len(words) != 6 or not all(map(is_whole, words[3:5])) or words[1] != "MIG":
        raise read.fault(
            f"{' '.join(words)[:60]!r} is no GPU instance with its placement Start:Size", _LGI
        )
    card, number = read.card(int(words[0])), int(words[4])
    for other in card.instances:
        if other.gpu_instance == number:
            what = f"GPU {words[0]} has GPU instance {number} here and in {other.where}"
            raise read.fault(what, "one listing of a node at one time")
    card.instances.append(InstanceFacts(words[2], read.where, int(place[1]), int(place[2]), number))


def _refuse_contradictions(read: _Reader) -> None:
    """Refuse listings that say there are none, or fewer, where another line lists one."""
    there, on, beyond = [], [], []
    for index, card in sorted(read.cards.items()):
        name, mig, parts = f"GPU {index}", card.said.get("mig"), card.devices or {}
        listed = [*card.listed.values()]
        if listed and mig is not None and mig.value == "off":
            has = f"a MIG device here, and MIG is off in {mig.where}"
            raise fault_at(listed[0].where, f"{name} has {has}", _ONE_TIME)
        if listed and card.devices is not None and card.listed.keys() != parts.keys():
            has = f"{count(len(listed), 'MIG device')} here, and {len(parts)} by {ASK}"
            asked = "both of one time, asked by root on the node"
            raise fault_at(listed[0].where, f"{name} has {has}", asked)
        own = [
            Statement(f"{name} has GPU instance {each.gpu_instance}", each.where)
            for each in parts.values()
        ]
        there += [Statement(f"{name} has a {i.profile}", i.where) for i in card.instances]
        there += [*(Statement(f"{name} has a {each.name}", each.where) for each in listed), *own]
        if mig is not None and mig.value == "on":
            on.append(Statement(f"MIG is on on {name}", mig.where))
        # in what instances there are devices that -lgi, cut off or older, does not list
        numbers = {each.gpu_instance for each in card.instances}
        room = Counter(each.profile for each in card.instances)
        pairs = zip(own, parts.values(), strict=True)
        beyond += [said for said, each in pairs if each.gpu_instance not in numbers]
        # whole instances first: parts are of those that are left
        for each in sorted(listed, key=lambda one: bool(_PART.match(one.name))):
            whole = _PART.sub("", each.name)
            room[whole] -= each.name == whole
            if room[whole] < (each.name != whole):
                beyond.append(Statement(f"{name} has a MIG device {each.name}", each.where))
    for said, where in read.none.items():
        for other in [*there, *(on if said == _NO_MIG else ())][:1]:
            raise fault_at(
                where, f'it says "{said}" here, and {other.value} in {other.where}',
                "one listing of all GPUs of a node at one time; observe it again",
            )  # fmt: skip
    for more in beyond if read.listing else ():
        raise fault_at(
            more.where, f"{more.value}, which the listing from {read.listing} on does not have",
            f"all that {_LGI} printed, of the same time; observe the node again",
        )  # fmt: skip


def _facts(read: _Reader, index: int) -> GpuFacts:
    card = read.cards[index]
    mig, unfit, instances = card.said.get("mig"), card.unfit, None
    if card.instances or (read.listing and (mig is None or mig.value == "on")):
        instances = tuple(_instance(card, each) for each in card.instances)
    found = [*(each.where for each in card.instances), *(d.where for d in card.listed.values())]
    if mig is None and (_NO_MIG in read.none or found):
        is_off = _NO_MIG in read.none
        mig = Statement("off", read.none[_NO_MIG]) if is_off else Statement("on", found[0])
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
    is_whole_one = listed.name == each.profile
    return replace(each, uuid=listed.uuid) if is_whole_one else replace(each, state=State.SPLIT)
