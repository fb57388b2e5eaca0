"""What a partitioning tool has to be able to do, and how what it left is judged."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from threading import Lock
from typing import Literal, Protocol, TypeAlias

from ...errors import CmsError
from ...files.source import Source
from ..deployment.export import ExportOptions
from ..deployment.export.export import named_by
from ..deployment.instance import Instance, Mode
from ..deployment.labels import SERVICE_LABEL
from ..deployment.model import FleetGpu, FleetNode
from ..deployment.observation.age import format_moment
from ..deployment.observation.facts import Statement
from ..deployment.observation.merge import merge
from ..deployment.observation.nvidia_smi import read_nvidia_smi
from ..deployment.transition import Transition
from .shell import ActionFailed, Ran, Shell
from .units import Place, Seat, Unit, find_place

__all__ = ["Job", "Look", "SmiTool", "Tool", "Turn", "Worker"]

#: What a node is asked; every reader takes it from the texts of `nvidia-smi` alone.
_LISTING = "nvidia-smi mig -lgi; nvidia-smi -q -x; nvidia-smi -L"


_READS = 3


class Look(StrEnum):
    """How the GPUs of a unit look."""

    BEFORE = "before"
    BETWEEN = "between"
    AFTER = "after"


@dataclass(frozen=True)
class Job:
    """What tools are given: the transition, how nodes are reached, and what files say.

    `service_label`: Of pods that are managed. `uuids`: Of instances, by GPU and place.
    """

    transition: Transition
    shell: Shell
    export: ExportOptions = field(default_factory=ExportOptions)
    service_label: str = SERVICE_LABEL
    drain_flags: str = "--ignore-daemonsets"
    slurm_folder: str = "/etc/slurm"
    slurm_restart: str = ""
    uuids: dict[str, str] = field(default_factory=dict)

    def node(self, name: str) -> FleetNode:
        """Return a node as the transition's start has it."""
        return self.transition.start.node(name)

    def named(self, cards: Sequence[FleetGpu]) -> tuple[FleetGpu, ...]:
        """Return GPUs with their whole instances, called as their nodes' drivers call them."""
        whole = (replace(c, instances=tuple(i for i in c.instances if i.is_whole)) for c in cards)
        return tuple(named_by(self.node(card.node), card) for card in whole)


Turn: TypeAlias = Literal["start", "stop"]


class Worker(Protocol):
    """What starts and stops work. `place`: The instance of a seat as it was observed."""

    def is_done(self, what: Turn, seat: Seat, place: Instance | None) -> bool:
        """Whether it serves with all of its capacity, or nothing of it is left."""

    def do(self, what: Turn, seat: Seat, place: Instance | None) -> None:
        """Begin to serve, or take it out of service and end it."""


class Tool(Protocol):
    """What partitions GPUs. It looks before and after; the runner does the rest alike for all."""

    def look(self, unit: Unit, *, begun: bool) -> Look:
        """Observe the unit's GPUs; ActionFailed if they hold what the unit may not touch.

        `begun`: Whether the unit was begun, so that what it adds may be there.
        """

    def find(self, seat: Seat) -> Instance | None:
        """Return the instance of a seat as it was observed last; None where nothing tells."""

    def close(self, unit: Unit) -> None:
        """Let nothing new begin on what is to be changed."""

    def change(self, unit: Unit) -> str:
        """Make the unit's GPUs as they are to be; return what was printed."""

    def open(self, unit: Unit) -> None:
        """Let work begin there again."""

    def commands(self, unit: Unit) -> Sequence[str]:
        """Return what is run, for people and for scripts."""


class SmiTool:
    """What the tools that are seen by `nvidia-smi` have in common."""

    #: Whether instances are made one by one at their starts.
    by_start = True

    def __init__(self, job: Job) -> None:
        self.job = job
        self._seen: dict[str, FleetGpu] = {}
        self._locks: defaultdict[str, Lock] = defaultdict(Lock)  # by node

    def on_node(self, node: str, command: str) -> Ran:
        """Run a command on a node, one at a time: a listing is of one moment."""
        with self._locks[node]:
            return self.job.shell.on(node, command)

    def find(self, seat: Seat) -> Instance | None:
        """Return the instance that was observed last at a seat: by start, or by its number."""
        held = self._seen[seat.gpu.name].instances if seat.gpu.name in self._seen else ()
        if self.by_start:
            return next((i for i in held if find_place(i) == find_place(seat.instance)), None)
        alike = [i for i in held if i.profile == seat.instance.profile and i.is_whole]
        return alike[seat.number - 1] if len(alike) >= seat.number else None

    def close(self, unit: Unit) -> None:
        """Do nothing: no other work comes to an instance by itself."""

    def open(self, unit: Unit) -> None:
        """Do nothing."""

    def look(self, unit: Unit, *, begun: bool) -> Look:
        """Compare what is observed with what was before and is to be after."""
        there = {card.index: card for card in self._observe(unit.node).gpus}
        looks: set[Look | None] = {None}
        for before, after in zip(unit.befores, unit.afters, strict=True):
            if before.mode is not Mode.FIXED:
                seen = self._seen[before.name] = _recognise(there, before, after)
                if self.by_start:
                    removed, added = unit.places(before.index)
                    looks.add(self._by_places(seen, before, after, removed, added, begun))
                else:
                    looks.add(_by_counts(seen, before, after, begun))
        looks.remove(None)
        return Look.BETWEEN if len(looks) > 1 else next(filter(None, looks), Look.BEFORE)

    def _observe(self, name: str) -> FleetNode:
        """Read what is on a node; read again if it changed during the listing."""
        for _ in range(_READS):
            ran = self.on_node(name, _LISTING)
            source = Source(f"{name}: nvidia-smi", ran.out)
            at = format_moment(datetime.now(UTC))
            try:
                told = replace(read_nvidia_smi(source), node=Statement(name, source.name), at=at)
                devices = self.job.transition.start.devices
                return merge([told], devices=devices).deployment.node(name)
            except CmsError as fault:
                why = f"node {name} cannot be observed: {fault}. It said: {ran.said}"
                time.sleep(self.job.shell.pause_s)
        raise ActionFailed(why)

    def _by_places(
        self, seen: FleetGpu, before: FleetGpu, after: FleetGpu, removed: dict[Place, Instance],
        added: dict[Place, Instance], begun: bool,
    ) -> Look | None:  # fmt: skip
        """Compare the places of actions alone: what else is on the GPU goes on."""
        if Mode.MIG not in (before.mode, after.mode):
            return None
        gone, come = removed.keys() - added.keys(), added.keys() - removed.keys()
        held = {find_place(each): each for each in seen.instances}
        switches = before.is_cut is not after.is_cut or (before.is_empty and not seen.is_cut)
        taken = {slot for place in come for slot in _slots(seen, place)}
        for place, each in held.items():
            if place in come and not begun:
                raise ActionFailed(f"{seen.name} has {each.place}, which cms has not made")
            is_in_the_way = switches or not taken.isdisjoint(_slots(seen, place))
            if place not in removed.keys() | come and is_in_the_way:
                what = ", ".join(i.place for i in added.values()) or "a change of MIG mode"
                why = f"{seen.name} has {each.place}, which is not known, in the way of {what}"
                raise ActionFailed(why)
            known = self.job.uuids.get(f"{seen.name}:{each.place}")
            known = known or (removed[place].uuid if place in removed else None)
            if place in gone and known and each.uuid not in (None, known):
                raise ActionFailed(f"{seen.name} has another {each.place} than was to be deleted")
        if missing := [removed[at].place for at in removed.keys() & added.keys() - held.keys()]:
            raise ActionFailed(f"{seen.name} lacks {missing[0]}, on which work is to change")
        if not (gone or come or switches):
            return None
        whole = {place for place, each in held.items() if each.is_whole}
        if not gone & held.keys() and come <= whole and seen.is_cut is after.is_cut:
            return Look.AFTER
        is_before = gone <= held.keys() and not come & held.keys()
        return Look.BEFORE if is_before else Look.BETWEEN


def _by_counts(seen: FleetGpu, before: FleetGpu, after: FleetGpu, begun: bool) -> Look | None:
    """Compare all that is on a GPU, by profile: such a tool cuts whole GPUs."""
    has, had, wants = map(_count, (seen, before, after))
    if before.is_empty and has is None and not had:
        had = None  # no source has said whether MIG is on
    if has == had:
        return None if had == wants else Look.BEFORE
    if has == wants and all(each.is_whole for each in seen.instances):
        if not begun and (wants or Counter()) - (had or Counter()):
            raise ActionFailed(f"{seen.name} has {_say(has)}, which cms has not made")
        return Look.AFTER
    if begun and any((has or Counter()) <= (side or Counter()) for side in (had, wants)):
        return Look.BETWEEN
    raise ActionFailed(
        f"{seen.name} has {_say(has)}, expected {_say(had)} or {_say(wants)}: it is left as it is; "
        "observe the node again"
    )


def _count(card: FleetGpu) -> Counter[str] | None:
    """Count the whole instances of a GPU by profile; None where MIG is off."""
    return Counter(i.profile for i in card.instances if i.is_whole) if card.is_cut else None


def _say(counts: Counter[str] | None) -> str:
    if counts is None:
        return "MIG off"
    return " + ".join(f"{n} x {profile}" for profile, n in sorted(counts.items())) or "nothing"


def _recognise(there: dict[int, FleetGpu], before: FleetGpu, after: FleetGpu) -> FleetGpu:
    """Return the GPU that was observed; refuse one that is not there, another, or not fit."""
    seen, uuid = there.get(before.index), before.uuid or after.uuid
    if seen is None:
        numbers = ", ".join(map(str, there)) or "none"
        raise ActionFailed(f"{before.name} is not there: the node has the GPUs {numbers}")
    if uuid and seen.uuid and seen.uuid != uuid:
        raise ActionFailed(f"{before.name} is {seen.uuid}, not {uuid}: the numbers have changed")
    if seen.mode is Mode.FIXED or seen.gpu.key != before.gpu.key:
        raise ActionFailed(f"{before.name} is no {before.gpu.key} that can be partitioned: {seen}")
    return seen


def _slots(card: FleetGpu, place: Place) -> range:
    profile, start = place
    return range(start or 0, (start or 0) + card.gpu.profile(profile).memory)
