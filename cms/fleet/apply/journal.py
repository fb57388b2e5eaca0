"""``state.jsonl``: what was to be done, and what has been begun and ended, line by line."""

from __future__ import annotations

import fcntl
import getpass
import json
import os
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from ...errors import FileError
from ...files.source import sync_folder, telling
from ..deployment.instance import Instance
from ..deployment.model import Deployment
from ..deployment.transition import PartitioningTool, Transition
from ..deployment.transition.document import transition_from_json, transition_to_json
from .units import Unit, list_units, shorten

FORMAT = "cms-apply-state"


@dataclass(frozen=True)
class Head:
    """What is being done. `loose`: GPUs on which something may be half done from before."""

    transition: Transition
    tool: PartitioningTool
    with_work: bool
    is_undo: bool = False
    loose: frozenset[str] = frozenset()

    @cached_property
    def units(self) -> tuple[Unit, ...]:
        """What is done at once."""
        return list_units(self.transition, self.tool)


@dataclass
class Journal:
    """A state file: a head, then two lines or more for each unit; an undo begins with a new head.

    `phases`: How far each unit has come: ``begun``, ``stopped``, ``changed`` or ``done``; that it
    failed leaves it where it was. `uuids`: Of instances that were created, by GPU and place.
    """

    path: Path
    head: Head
    phases: dict[int, str] = field(default_factory=dict)
    uuids: dict[str, str] = field(default_factory=dict)
    size: int = 0  # of what is whole, in bytes
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def create(cls, path: Path, head: Head) -> Journal:
        """Begin a state file; one that is there is kept beside it.

        FileError if that one has something begun that is not done: it alone knows of it.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            old = cls.read(path)
            if old.loose or old.phases.keys() - old.ended:
                raise FileError(
                    path, "an earlier apply has begun what is not done",
                    fix="cms apply --resume, or --undo; to begin anew, move this file away",
                )  # fmt: skip
        with suppress(FileNotFoundError):
            path.replace(path.with_name(f"{path.name}.old"))
        found = cls(path, head).follow(head)
        sync_folder(path.parent)
        return found

    def follow(self, head: Head) -> Journal:
        """Begin another part of the file, which is what counts from here on."""
        found = Journal(self.path, head, size=self.size)
        found._append({
            "format": FORMAT, "at": _now(), "user": user_name(), "tool": head.tool.value,
            "with_work": head.with_work, "is_undo": head.is_undo, "loose": sorted(head.loose),
            "transition": transition_to_json(head.transition),
        })  # fmt: skip
        return found

    @classmethod
    def read(cls, path: Path) -> Journal:
        """Read how far an apply has come; a last line that was cut off does not count."""
        if not path.exists():
            what = "nothing was begun here, so there is nothing to go on with or to undo"
            raise FileError(path, what, expected="the folder of an earlier 'cms apply'")
        with telling(path, "read"):
            text = path.read_bytes()
        size = text.rfind(b"\n") + 1
        lines = text[:size].decode(errors="replace").splitlines()
        heads = [at for at, line in enumerate(lines) if line.startswith('{"format"')]
        if not heads:
            raise FileError(path, "it has no head", expected=f"a file of format {FORMAT}")
        try:
            told = json.loads(lines[heads[-1]])
            transition, tool = transition_from_json(told["transition"]), told["tool"]
            head = Head(
                transition, PartitioningTool(tool), told["with_work"], told["is_undo"],
                frozenset(told["loose"]),
            )  # fmt: skip
            found = cls(path, head, size=size)
            for line in lines[heads[-1] + 1 :]:
                found._take(json.loads(line))
        except FileError:
            raise
        except (ValueError, KeyError, TypeError) as fault:
            raise FileError(path, f"it is damaged: {fault}") from None
        return found

    @property
    def ended(self) -> set[int]:
        """The units that are done."""
        return {at for at, phase in self.phases.items() if phase == "done"}

    @property
    def loose(self) -> frozenset[str]:
        """GPUs on which something may still be half done from before."""
        left = (it.gpus for it in self.head.units if self.phases.get(it.number) != "done")
        return self.head.loose & frozenset[str]().union(*left)

    def where(self) -> Deployment:
        """Return what is known to be there: nothing where something is under way."""
        told = [unit for unit in self.head.units if unit.number in self.phases]
        done = {at for unit in told if unit.number in self.ended for at in unit.positions}
        there = shorten(self.head.transition, done).target
        loose: defaultdict[tuple[str, int], set[Instance]] = defaultdict(set)
        for action in (a for unit in told if unit.number not in self.ended for a in unit.actions):
            loose[action.gpu] |= {*action.removes, *action.adds}
        cards, half_done = {}, self.loose
        for card in there.gpus():
            at, is_loose = (card.node, card.index), card.name in half_done
            held = () if is_loose else {*card.instances} - loose[at]
            cards[at] = replace(card, instances=tuple(held))
        return there.with_gpus(cards)

    def note(self, unit: int, result: str, **more: Any) -> None:
        """Write a line, and wait until it is on the disk."""
        record = {"at": _now(), "user": user_name(), "unit": unit, "result": result, **more}
        with self._lock:
            self._append(record)
            self._take(record)

    def _append(self, record: dict[str, Any]) -> None:
        """Write a line after what is whole, and wait until it is on the disk."""
        number = os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o644)
        try:
            os.ftruncate(number, self.size)
            self.size += os.pwrite(number, json.dumps(record).encode() + b"\n", self.size)
            os.fsync(number)
        finally:
            os.close(number)

    def _take(self, record: dict[str, Any]) -> None:
        if record["result"] != "failed":
            self.phases[record["unit"]] = record["result"]
        self.uuids.update(record.get("uuids", {}))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def user_name() -> str:
    """Return who runs this, as far as the system knows."""
    with suppress(OSError, KeyError):
        return getpass.getuser()
    return str(os.getuid())


@contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Hold the lock of a fleet; FileError if another process does. A dead one holds none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    number = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(number, 200).decode(errors="replace").strip()
            what = f"another 'cms apply' is changing this fleet ({holder})"
            raise FileError(path, what, fix="wait until it has ended") from None
        os.ftruncate(number, 0)
        os.write(number, f"process {os.getpid()} of {user_name()}, since {_now()}".encode())
        yield
    finally:
        os.close(number)
