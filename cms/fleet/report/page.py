"""The view of an object: facts, then sections of words, tables, bars of GPUs and drawings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from ...values.words import count, decimal
from .colours import COLOURS
from .tables import Grid

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: What stands on a box for what becomes of its instance, and for its state.
MARKS = {
    "kept": "=", "restarted": "~", "created": "+", "deleted": "-", "repartition": "*",
    "switch": ">",
}  # fmt: skip
STATES = {
    "starting": "^", "draining": "v", "no compute instance": "!", "split": "%", "unknown": "?",
    "temporary": "t",
}  # fmt: skip
PER_CENT = 100


@dataclass(frozen=True, slots=True)
class Fact:
    """A number at the head of a page; its tone is "", "good", "fair" or "bad"."""

    name: str
    value: str
    note: str = ""
    tone: str = ""


@dataclass(frozen=True, slots=True)
class Words:
    """A paragraph with a tone: also "head" or "soft"; `only` names the one medium it is for."""

    text: str
    tone: str = ""
    only: str = ""


@dataclass(frozen=True, slots=True)
class Bullets:
    """Sentences below each other, each with what stands before it."""

    items: Sequence[tuple[str, str]]
    only: str = ""


@dataclass(frozen=True, slots=True)
class Box:
    """A run of slices on a GPU: an instance, or nothing; or an action on a line of time.

    `service` is None for an idle instance and for free slices; `place` is its service's, which
    gives colour and key; `owner` is that of a foreign instance; `slots` are of services that share
    it in time, in thousandths of its width.
    """

    start: int
    width: int
    profile: str = ""
    service: str | None = None
    place: int = 0
    point: str = ""
    owner: str = ""
    state: str = ""
    mark: str = ""
    slots: tuple[Box, ...] = ()

    @property
    def sign(self) -> str:
        """What becomes of it and its state as letters, beside which no colour is needed."""
        return MARKS.get(self.mark, "") + STATES.get(self.state, "")

    @property
    def look(self) -> str:
        """How it is filled: free, blank, idle, foreign, empty, or with the colour of a service."""
        if self.state == "blank":
            return "blank"
        if not self.profile or self.state == "margin":
            return "free"
        if self.service is not None:
            return f"c{self.place % len(COLOURS)}"
        return (
            "foreign" if self.owner else "empty" if self.state == "no compute instance" else "idle"
        )

    @property
    def doing(self) -> str:
        """What the instance does: the service after its key, the owner, or that it is idle."""
        if self.service is not None:
            return f"{self.place + 1} {self.service}"
        return (self.owner or self.state or "idle") if self.profile else ""

    @property
    def tip(self) -> str:
        """All that is known of it, in a line."""
        if not self.profile:
            return f"no instance on {count(self.width, 'slice')}"
        turns = " | ".join(f"{slot.service} {slot.point}" for slot in self.slots)
        named = turns or self.service or self.owner or self.state or "idle"
        said = f"{named}: {self.profile} {self.point}".rstrip()
        return ", ".join([said, *(each for each in (self.state, self.mark) if each)])


@dataclass(frozen=True, slots=True)
class Bar:
    """A use of a GPU, its number of GPUs, and the words beside and above it."""

    gpu: str
    slices: int
    boxes: tuple[Box, ...]
    count: int = 1
    label: str | None = None
    caption: str = ""

    @property
    def shared(self) -> bool:
        """Whether the GPU is shared by MPS instead of partitioned by MIG."""
        return self.slices == PER_CENT

    @property
    def name(self) -> str:
        """What stands before it."""
        return f"{decimal(self.count)} ×" if self.label is None else self.label


@dataclass(frozen=True, slots=True)
class Bars:
    """Bars of GPUs below a head; `key` says how they are read, if not as GPUs are.

    A terminal draws large ones in two lines, "line" ones in one, and says the head alone of "small"
    ones.
    """

    bars: Sequence[Bar]
    head: str = ""
    note: str = ""
    size: str = "large"
    key: str = ""
    only: str = ""

    @property
    def ruler(self) -> int:
        """How many slices are to be numbered above the bars; 0 where they differ."""
        slices = {bar.slices for bar in self.bars if not bar.shared and self.size != "small"}
        return slices.pop() if len(slices) == 1 and max(slices) <= 16 and not self.key else 0


def legend(parts: Iterable[Bars], free: str, idle: str, foreign: str) -> str:
    """Say what widths, letters and hatchings mean, those that there are; of no bars nothing."""
    if not (drawn := list(parts)):
        return ""
    bars = [bar for each in drawn for bar in each.bars]
    boxes = [box for bar in bars for box in bar.boxes]
    signs = {letter for box in boxes for letter in box.sign}
    explained = [f"{sign} {name}" for name, sign in (MARKS | STATES).items() if sign in signs]
    if key := next((each.key for each in drawn if each.key), ""):
        return "; ".join([key, *explained])
    shared, looks = {bar.shared for bar in bars}, {box.look for box in boxes}
    wide = "memory slices, under MPS per cent" if len(shared) == 2 else "memory slices"
    said = [f"width: {'per cent of a GPU, under MPS' if shared == {True} else wide}"]
    said += ["p processes, b batch"] * any(box.point for box in boxes)
    meant = {"free": free, "idle": idle, "foreign": foreign}
    said += [words for look, words in meant.items() if look in looks]
    said += ["┊ in turn"] * any(box.slots for box in boxes)
    return "; ".join([*said, *explained])


@dataclass(frozen=True, slots=True)
class Picture:
    """Axes and curves: `draw` puts them on a sheet, `height` inches high.

    Described for readers who cannot see it, and for terminals.
    """

    description: str
    draw: Callable[[Figure], None]
    height: float = 3.2
    only: str = "web"


#: A paragraph, or one of the others.
Part: TypeAlias = "str | Words | Bullets | Grid | Bars | Picture"


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands below it.

    `only`: "web" for pages alone, "terminal" for terminals. `drawn`: part of stand-alone pictures
    and of what a notebook shows.
    """

    name: str
    title: str
    parts: Sequence[Part]
    only: str = ""
    drawn: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """A report: title, a sentence, facts, sections, and the lines at the end of a terminal's."""

    title: str
    lead: str = ""
    facts: Sequence[Fact] = ()
    sections: Sequence[Section] = ()
    source: str = ""
    end: Sequence[Words] = ()
