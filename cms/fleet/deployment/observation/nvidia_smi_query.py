"""What is gathered of the GPUs of a node, and the table of ``nvidia-smi --query-gpu``."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, field
from datetime import datetime

from ....errors import FileError
from ....files.numerals import is_whole
from ....files.source import Source
from .age import written as in_utc
from .facts import InstanceFacts, Stated

__all__ = [
    "ASK", "Card", "Read", "fault", "field_of", "is_query", "is_row", "is_unreadable", "once",
]  # fmt: skip

ASK = "nvidia-smi --query-gpu=index,uuid,name,mig.mode.current,driver_version --format=csv"
_FIELDS = ("index", "uuid", "name", "mig.mode.current", "mig.mode.pending", "driver_version")
_OTHER_FIELDS = {"gpu_uuid": "uuid", "gpu_name": "name"}
_MODES = {"enabled": "on", "disabled": "off"}
#: What stands for a value that there is none of, as MIG mode is of most cards.
_NOTHING = ("n/a", "not supported", "not available")
#: What stands for a value that could not be read, in brackets or not.
_UNREADABLE = re.compile(
    r"err!?|(gpu )?requires reset|gpu is lost|unknown error|insufficient permissions?"
    r"|no permission|function not found|not found|timeout|reset required|in use",
    re.I,
)
#: Of these nobody has to have asked to know that a GPU is not well.
_LOST = re.compile(r"requires reset|is lost|unknown error|reset required", re.I)


@dataclass
class Card:
    """What the lines of a file say of one GPU, gathered."""

    where: str
    uuid: Stated | None = None
    product: Stated | None = None
    mig: Stated | None = None
    pending: Stated | None = None
    instances: list[InstanceFacts] = field(default_factory=list)
    devices: list[tuple[str, str, str]] = field(default_factory=list)  # profile, UUID, where
    is_listed: bool = False  # by -L, with all its devices
    unfit: Stated | None = None


@dataclass
class Read:
    """What a file says, gathered line by line."""

    source: Source
    cards: dict[int, Card] = field(default_factory=dict)
    driver: Stated | None = None
    at: str | None = None
    listing: str | None = None  # where GPU instances are listed, or said to be none
    # By (GPU, GPU instance), the compute instances' names
    computes: dict[tuple[int, int], list[Stated]] | None = None
    none: dict[str, str] = field(default_factory=dict)  # where it says that there are none, or off
    found: bool = False
    lost: dict[str, Stated] = field(default_factory=dict)  # by PCI address, GPUs without a number
    warnings: dict[str, None] = field(default_factory=dict)

    def card(self, index: int, where: str) -> Card:
        """Return what is gathered of a GPU."""
        return self.cards.setdefault(index, Card(where))


def is_unreadable(value: str) -> bool:
    """Whether a text stands for a value that could not be read."""
    return _UNREADABLE.fullmatch(value.strip("[] ")) is not None


def field_of(cell: str) -> str:
    """Return the field that heads a column, without its unit, by the name that it has here."""
    name = cell.strip().split(" ")[0]
    return _OTHER_FIELDS.get(name, name)


def is_query(line: str) -> bool:
    """Whether a line heads the table of ``--query-gpu``."""
    names = [field_of(cell) for cell in line.split(",")]
    return (
        len(names) > 1 and "index" in names and all(re.fullmatch(r"[a-z0-9_.]+", n) for n in names)
    )


def is_row(read: Read, number: int, line: str, names: list[str]) -> bool:
    """Read a row of the table of ``--query-gpu``; return whether the line was one."""
    try:
        cells = [cell.strip() for cell in next(csv.reader([line]), [])]
    except csv.Error as why:
        raise fault(read, number, f"the row cannot be read: {why}", ASK) from None
    if len(cells) < 2:
        return False
    if len(cells) != len(names):
        raise fault(read, number, f"{len(cells)} cells under {len(names)} names", ASK)
    row = dict(zip(names, cells, strict=True))
    if not is_whole(row["index"]):
        raise fault(read, number, f"the index is {row['index']!r}, which is no number", ASK)
    read.found = True
    _row(read, number, row)
    return True


def _row(read: Read, number: int, row: dict[str, str]) -> None:
    where = f"{read.source.name}:{number}"
    index = int(row["index"])
    card = read.card(index, where)
    said: dict[str, Stated] = {}
    for name, value in row.items():
        plain = value.strip("[] ").lower()
        is_needed = name in ("uuid", "name") and plain in _NOTHING
        if is_needed or _LOST.search(value) or (name in _FIELDS and is_unreadable(value)):
            card.unfit = card.unfit or Stated(f"{name} is {value}", where)
        elif name in _FIELDS and value and plain not in _NOTHING:
            said[name] = Stated(value, where)
        elif name == "mig.mode.current" and value:
            card.mig = once(read, number, card.mig, Stated("off", where), f"{name} of {index}")
    if "uuid" in said:
        card.uuid = once(read, number, card.uuid, said["uuid"], f"UUID of GPU {index}")
    if "name" in said:
        card.product = once(read, number, card.product, said["name"], f"product of GPU {index}")
    for name, what in (("mig.mode.current", "mig"), ("mig.mode.pending", "pending")):
        if name in said:
            mode = _MODES.get(said[name].value.lower())
            if mode is None:
                wrong = f"{name} is {said[name].value!r}"
                raise fault(read, number, wrong, "Enabled, Disabled or [N/A]")
            old = getattr(card, what)
            setattr(card, what, once(read, number, old, Stated(mode, where), f"{name} of {index}"))
    if "driver_version" in said:
        read.driver = once(read, number, read.driver, said["driver_version"], "driver")
    if "timestamp" in row:
        read.at = _time(read, number, row["timestamp"])


def _time(read: Read, number: int, written: str) -> str:
    for form in ("%Y/%m/%d %H:%M:%S.%f", "%Y/%m/%d %H:%M:%S"):
        try:
            # The tool prints the clock of its node, without a zone: taken to be that of this
            # machine. Where it is another one, hours are wrong, and refused as too old or to come.
            return in_utc(datetime.strptime(written, form).astimezone())
        except (ValueError, OverflowError):
            continue
    raise fault(read, number, f"the timestamp is {written!r}", "2026/11/23 10:15:00.000")


def once(read: Read, number: int, old: Stated | None, new: Stated, what: str) -> Stated:
    """Return what is said, the first time it is; refuse another value."""
    if old is not None and old.value != new.value:
        raise fault(
            read, number,
            f"the {what} is {new.value} here and {old.value} in {old.where}",
            "what one node said at one time; give the files of other nodes as NODE=FILE",
        )  # fmt: skip
    return old or new


def fault(read: Read, number: int, what: str, expected: str) -> FileError:
    """Build an error at a line."""
    return FileError(read.source.name, what, line=number, expected=expected)
