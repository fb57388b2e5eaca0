"""What a partitioning tool has to be able to do, and how what it left is judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Protocol

from ...errors import CmsError, InvalidProblem
from ...files.source import Source
from ..deployment.export import ExportOptions
from ..deployment.guesses import doubtful, in_doubt
from ..deployment.instance import Instance, Mode
from ..deployment.labels import SERVICE_LABEL
from ..deployment.model import FleetGpu, FleetNode
from ..deployment.observation.age import format_moment
from ..deployment.observation.facts import Statement
from ..deployment.observation.merge import merge
from ..deployment.observation.nvidia_smi import read_nvidia_smi
from ..deployment.transition import Action, Transition
from .shell import ActionFailed, Ran, Shell
from .units import Seat, Unit

__all__ = ["LISTING", "Job", "Look", "Tool", "Worker", "look_at_node", "refuse_start"]

#: What a node is asked; every reader takes it from the texts of `nvidia-smi` alone.
LISTING = "nvidia-smi mig -lgi; nvidia-smi -q -x; nvidia-smi -L"


class Look(StrEnum):
    """How the GPUs of a unit look."""

    BEFORE = "before"
    BETWEEN = "between"
    AFTER = "after"


@dataclass(frozen=True)
class Job:
    """What tools are given: the transition, how nodes are reached, and what files say."""

    transition: Transition
    shell: Shell
    export: ExportOptions = field(default_factory=ExportOptions)
    service_label: str = SERVICE_LABEL  # of pods that are managed
    drain_flags: str = "--ignore-daemonsets"
    slurm_folder: str = "/etc/slurm"
    slurm_restart: str = ""
    uuids: dict[str, str] = field(default_factory=dict)  # of instances, by GPU and place

    def node(self, name: str) -> FleetNode:
        """Return a node as the transition's start has it."""
        return self.transition.start.node(name)


class Worker(Protocol):
    """What starts and stops work."""

    def is_drained(self, seat: Seat, place: Instance | None) -> bool:
        """Whether nothing of it is left. `place`: the instance as it was observed."""

    def stop(self, seat: Seat, place: Instance | None) -> None:
        """Take it out of service and end it."""

    def is_ready(self, seat: Seat, place: Instance | None) -> bool:
        """Whether it serves with all of its capacity."""

    def start(self, seat: Seat, place: Instance | None) -> None:
        """Begin to serve."""


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


def refuse_start(transition: Transition, units: Sequence[Unit], *, needs_starts: bool) -> None:
    """Refuse to delete what may not be ours, and places that are not known."""
    for unit in units:
        doubts = doubtful(transition.start.node(unit.node))
        for card in unit.befores:
            gone = [each for a in unit.actions if a.index == card.index for each in a.removes]
            come = [each for a in unit.actions if a.index == card.index for each in a.adds]
            if needs_starts and card.mode is Mode.MIG and any(i.start is None for i in gone + come):
                raise InvalidProblem(
                    f"the starts of the instances on {card.name} are not known, and nvidia-smi is "
                    f"to be given them; observe node {card.node!r} with: nvidia-smi mig -lgi"
                )
            for each in in_doubt(card, doubts) if unit.partitions else ():
                if each in gone and each not in come:
                    raise InvalidProblem(
                        f"{card.name} has {each.place}, which would be deleted and may be what "
                        f"{doubts[each.profile]} holds, since the device plug-in does not tell; "
                        f"expected that nobody holds it: cms observe ... --reclaim {card.name}"
                    )


def look_at_node(job: Job, name: str) -> FleetNode:
    """Observe a node by `nvidia-smi`; ActionFailed if it does not answer, or not sensibly."""
    ran: Ran = job.shell.on(name, LISTING)
    source = Source(f"{name}: nvidia-smi", ran.out)
    try:
        told = replace(
            read_nvidia_smi(source), node=Statement(name, source.name),
            at=format_moment(datetime.now(UTC)),
        )  # fmt: skip
        return merge([told], devices=job.transition.start.devices).deployment.node(name)
    except CmsError as fault:
        raise ActionFailed(
            f"node {name} cannot be observed: {fault}. It said: {ran.said}"
        ) from None


class SmiTool:
    """What the tools that are seen by `nvidia-smi` have in common."""

    #: Whether instances are made one by one at their starts.
    by_start = True

    def __init__(self, job: Job) -> None:
        self.job = job
        self._seen: dict[str, FleetGpu] = {}

    def find(self, seat: Seat) -> Instance | None:
        """Return the instance that was observed last at a seat: by start, or by its number."""
        held = self._seen[seat.gpu.name].instances if seat.gpu.name in self._seen else ()
        if self.by_start:
            own = [each for each in held if _at(each) == _at(seat.instance)]
            return own[0] if own else None
        alike = [i for i in held if i.profile == seat.instance.profile and i.is_whole]
        return alike[seat.number - 1] if len(alike) >= seat.number else None

    def close(self, unit: Unit) -> None:
        """Do nothing: no other work comes to an instance by itself."""

    def open(self, unit: Unit) -> None:
        """Do nothing."""

    def look(self, unit: Unit, *, begun: bool) -> Look:
        """Compare what is observed with what was before and is to be after."""
        there = {card.index: card for card in look_at_node(self.job, unit.node).gpus}
        looks: set[Look | None] = set()
        for before, after in zip(unit.befores, unit.afters, strict=True):
            if before.mode is Mode.FIXED:
                continue
            seen = _recognise(there, before, after)
            self._seen[seen.name] = seen
            actions = [a for a in unit.actions if a.index == before.index]
            if self.by_start:
                looks.add(self._compare_places(seen, before, after, actions, begun=begun))
            else:
                looks.add(_compare_counts(seen, before, after, begun=begun))
        looks.discard(None)
        if len(looks) > 1:
            return Look.BETWEEN
        return looks.pop() or Look.BEFORE if looks else Look.BEFORE

    def _compare_places(
        self, seen: FleetGpu, before: FleetGpu, after: FleetGpu, actions: Iterable[Action], *,
        begun: bool,
    ) -> Look | None:  # fmt: skip
        """Compare the places of actions alone: what else is on the GPU goes on."""
        if before.mode is not Mode.MIG and after.mode is not Mode.MIG:
            return None
        removed, added = ({_at(i): i for a in actions for i in own(a)} for own in (_gone, _come))
        gone, come = removed.keys() - added.keys(), added.keys() - removed.keys()
        held = {_at(each): each for each in seen.instances}
        switches = before.is_cut is not after.is_cut or (before.is_empty and not seen.is_cut)
        for at, each in held.items():
            if at in come and not begun:
                raise ActionFailed(f"{seen.name} has {each.place}, which cms has not made")
            if at not in gone | come | removed.keys() and (switches or _overlaps(seen, each, come)):
                raise ActionFailed(
                    f"{seen.name} has {each.place}, which is not known and in the way of "
                    f"{', '.join(i.place for i in added.values()) or 'a change of MIG mode'}"
                )
            known = self.job.uuids.get(f"{seen.name}:{each.place}")
            known = known or (removed[at].uuid if at in removed else None)
            if at in gone and known and each.uuid and each.uuid != known:
                raise ActionFailed(f"{seen.name} has another {each.place} than was to be deleted")
        if missing := [removed[at].place for at in removed.keys() & added.keys() - held.keys()]:
            raise ActionFailed(f"{seen.name} lacks {missing[0]}, on which work is to change")
        if not (gone or come or switches):
            return None
        whole = {at for at, each in held.items() if each.is_whole}
        if not gone & held.keys() and come <= whole and seen.is_cut is after.is_cut:
            return Look.AFTER
        if gone <= held.keys() and not come & held.keys():
            return Look.BEFORE
        return Look.BETWEEN


def _compare_counts(
    seen: FleetGpu, before: FleetGpu, after: FleetGpu, *, begun: bool
) -> Look | None:
    """Compare all that is on a GPU, by profile: such a tool cuts whole GPUs."""
    has, had, wants = map(counts_of, (seen, before, after))
    if before.is_empty and has is None and had == Counter():
        had = None  # no source has said whether MIG is on
    half = not all(each.is_whole for each in seen.instances)
    if had == wants:
        if has == had:
            return None
    elif has == wants and not half:
        if not begun and wants and wants - (had or Counter()):
            raise ActionFailed(f"{seen.name} has {told(has)}, which cms has not made")
        return Look.AFTER
    elif has == had:
        return Look.BEFORE
    sides = [side or Counter() for side in (had, wants)]
    if not begun or not any((has or Counter()) <= side for side in sides):
        raise ActionFailed(
            f"{seen.name} has {told(has)}, expected {told(had)} or {told(wants)}: it is left as it "
            "is; observe the node again"
        )
    return Look.BETWEEN


def counts_of(card: FleetGpu) -> Counter[str] | None:
    """Count the whole instances of a GPU by profile; None where MIG is off."""
    return Counter(i.profile for i in card.instances if i.is_whole) if card.is_cut else None


def told(counts: Counter[str] | None) -> str:
    """Say how a GPU is cut.

    Examples
    --------
    >>> told(Counter({"1g.10gb": 2})), told(None)
    ('2 x 1g.10gb', 'MIG off')
    """
    if counts is None:
        return "MIG off"
    return " + ".join(f"{n} x {profile}" for profile, n in sorted(counts.items())) or "nothing"


def _recognise(there: Mapping[int, FleetGpu], before: FleetGpu, after: FleetGpu) -> FleetGpu:
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


def _gone(action: Action) -> tuple[Instance, ...]:
    return action.removes


def _come(action: Action) -> tuple[Instance, ...]:
    return action.adds


def _at(instance: Instance) -> tuple[str, int | None]:
    return instance.profile, instance.start


def _overlaps(card: FleetGpu, each: Instance, places: Iterable[tuple[str, int | None]]) -> bool:
    def slots(profile: str, start: int | None) -> range:
        return range(start or 0, (start or 0) + card.gpu.profile(profile).memory)

    return any({*slots(*_at(each))} & {*slots(*place)} for place in places)
