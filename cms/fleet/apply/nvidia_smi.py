"""On the node: ``nvidia-smi`` makes an instance at its start, ``nvidia-mig-parted`` whole GPUs."""

from __future__ import annotations

import shlex
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from threading import Lock

from ...errors import CmsError
from ...files.source import Source
from ..deployment.export.mig_parted import cut_of, name_of, text_of
from ..deployment.instance import Instance, Mode, list_counts
from ..deployment.model import FleetGpu, FleetNode
from ..deployment.observation.age import format_moment
from ..deployment.observation.facts import Statement
from ..deployment.observation.merge import merge
from ..deployment.observation.mig_parted import Cut
from ..deployment.observation.nvidia_smi import read_nvidia_smi
from .tool import ActionFailed, Job, Look, Ran, Tool
from .units import Place, Seat, Unit, find_place

#: What a node is asked; every reader takes it from the texts of `nvidia-smi` alone.
_LISTING = "nvidia-smi mig -lgi; nvidia-smi -q -x; nvidia-smi -L"
_READS = 3
#: Shell functions that do nothing where nothing is to be done: names are those that drivers use.
_FUNCTIONS = r"""
at() { # GPU NAMES START: the number of the GPU instance that is there
    nvidia-smi mig -i "$1" -lgi | tr '|' ' ' | awk -v names="|$2|" -v start="$3" \
        '$2 == "MIG" && index(names, "|" $3 "|") && $6 ~ "^" start ":" { print $5 }'
}
add() { # GPU NAMES START
    id=$(at "$@")
    if [ -n "$id" ]; then nvidia-smi mig -i "$1" -gi "$id" -cci; fi
    for name in $(echo "$2" | tr '|' ' '); do
        if [ -z "$(at "$@")" ]; then nvidia-smi mig -i "$1" -cgi "$name:$3" -C; fi
    done
}
del() { # GPU NAMES START
    id=$(at "$@")
    if [ -n "$id" ]; then
        nvidia-smi mig -i "$1" -gi "$id" -dci
        nvidia-smi mig -i "$1" -gi "$id" -dgi
    fi
}
is_mig() { [ "$(nvidia-smi -i "$1" --query-gpu=mig.mode.current --format=csv,noheader)" = "$2" ]; }
mig() { # GPU Enabled 1, or GPU Disabled 0
    is_mig "$1" "$2" || nvidia-smi -i "$1" -mig "$3"
    is_mig "$1" "$2" || nvidia-smi -i "$1" --gpu-reset
}
""".lstrip()


class NvidiaSmi(Tool):
    """Instances are created and deleted one by one; what runs beside them goes on."""

    #: Whether instances are made one by one at their starts.
    by_start = True

    def __init__(self, job: Job) -> None:
        super().__init__(job)
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

    def look(self, unit: Unit, *, begun: bool) -> Look:
        """Compare what is observed with what was before and is to be after."""
        there = {card.index: card for card in self._observe(unit.node).gpus}
        looks = set()
        for before, after in zip(unit.befores, unit.afters, strict=True):
            if before.mode is not Mode.FIXED:
                seen = self._seen[before.name] = _recognise(there, before, after)
                looks |= {self._judge(unit, seen, before, after, begun)} - {None}
        return Look.BETWEEN if len(looks) > 1 else next(iter(looks), None) or Look.BEFORE

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

    def _judge(
        self, unit: Unit, seen: FleetGpu, before: FleetGpu, after: FleetGpu, begun: bool
    ) -> Look | None:
        """Compare the places of actions alone: what else is on the GPU goes on."""
        removed, added = unit.places(before.index)
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
        return Look.BEFORE if gone <= held.keys() and not come & held.keys() else Look.BETWEEN

    def change(self, unit: Unit) -> str:
        """Run the commands of what is still to be done."""
        lines = [*self._lines(unit, self._seen)]
        return self.on_node(unit.node, _FUNCTIONS + "\n".join(lines)).said if lines else ""

    def commands(self, unit: Unit) -> Sequence[str]:
        """Return the calls of :data:`_FUNCTIONS`."""
        return [*self._lines(unit, {card.name: card for card in unit.befores})]

    def _lines(self, unit: Unit, seen: dict[str, FleetGpu]) -> Iterator[str]:
        for before, after in zip(unit.befores, unit.afters, strict=True):
            removed, added = unit.places(before.index)
            was_cut, is_cut = (card.mode is Mode.MIG for card in (before, after))
            held = seen[before.name].instances if was_cut or is_cut else ()
            whole = {find_place(each) for each in held if each.is_whole}
            there = {find_place(each) for each in held} - added.keys()
            for place in sorted(removed.keys() & there, key=str):
                yield self.line("del", before, removed[place])
            if is_cut and (before.is_empty or not was_cut):
                yield f"mig {before.index} Enabled 1"
            for place in sorted(added.keys() - removed.keys() - whole, key=str):
                yield self.line("add", before, added[place])
            if was_cut and not is_cut:
                yield f"mig {before.index} Disabled 0"

    def line(self, does: str, card: FleetGpu, each: Instance) -> str:
        """Return a call of `add` or `del`, with this node's name of the profile first."""
        profile = card.gpu.profile(each.profile)
        first = self.job.node(card.node).calls(card.gpu, profile.name)
        names = "|".join(dict.fromkeys((first, profile.name, *profile.other_names)))
        return f"{does} {card.index} '{names}' {each.start}"


class MigParted(NvidiaSmi):
    """GPUs are emptied and cut anew by counts, which `nvidia-smi` shows; it chooses the starts."""

    by_start = False

    def _judge(
        self, unit: Unit, seen: FleetGpu, before: FleetGpu, after: FleetGpu, begun: bool
    ) -> Look | None:
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
            f"{seen.name} has {_say(has)}, expected {_say(had)} or {_say(wants)}: it is left as it "
            "is; observe the node again"
        )

    def change(self, unit: Unit) -> str:
        """Remove what is half made, which mig-parted does not see, and have the GPUs cut."""
        seen = [self._seen[card.name] for card in unit.befores if card.name in self._seen]
        half = [self.line("del", c, i) for c in seen for i in c.instances if not i.is_whole]
        return self.on_node(unit.node, _FUNCTIONS + "\n".join([*half, *self.commands(unit)])).said

    def commands(self, unit: Unit) -> Sequence[str]:
        """Return the command, with a configuration that names the unit's GPUs alone."""
        before, after = (list_cuts(self.job, side) for side in (unit.befores, unit.afters))
        if before == after:
            return []
        name = name_of(after)
        return [f"nvidia-mig-parted apply -f - -c {name} <<'END'\n{text_of({name: after})}END"]


def list_cuts(job: Job, cards: Sequence[FleetGpu]) -> dict[int, Cut]:
    """Return how GPUs are cut by index, as their drivers call it; those fixed stay as they are."""
    return {card.index: cut_of(card) for card in job.named(cards) if card.mode is not Mode.FIXED}


def _count(card: FleetGpu) -> Counter[str] | None:
    """Count the whole instances of a GPU by profile; None where MIG is off."""
    return Counter(i.profile for i in card.instances if i.is_whole) if card.is_cut else None


def _say(counts: Counter[str] | None) -> str:
    return "MIG off" if counts is None else list_counts(counts)


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


_HEAD = """\
#!/bin/sh
# Step {step} on {node}, as root there: once the steps before it have ended on all nodes.
# It may be run again; it stops at a GPU that holds something else than before or after it.
set -u
"""
_LOOK = r"""
look() { # GPU: its instances by profile and start, those without a compute instance marked
    { nvidia-smi mig -i "$1" -lci; nvidia-smi mig -i "$1" -lgi; } | tr '|' ' ' | awk '
        $3 == "MIG" { whole[$2] }
        $2 == "MIG" { split($6, at, ":"); print $3 (%s) ($5 in whole ? "" : ",half") }
    ' | LC_ALL=C sort | paste -s -d ' ' -
}
expect() { # GPU, then what it may hold
    gpu=$1 has=$(look "$1")
    shift
    for each in "$@"; do [ "$has" != "$each" ] || return 0; done
    echo "GPU $gpu holds '$has', expected '$1'${2+ or '$2'}: nothing more is done" >&2
    exit 1
}
"""


def write_scripts(units: Iterable[Unit], tool: NvidiaSmi) -> dict[str, str]:
    """Return the scripts by file name: ``01-node-a.sh``.

    Each compares every GPU that it changes before and after with what it is to hold. Work is for
    the user to stop before and to start after, as the comments say.
    """
    steps: dict[tuple[int, str], list[Unit]] = {}
    for unit in units:
        steps.setdefault((unit.step, unit.node), []).append(unit)
    return {
        f"{step:02}-{node}.sh": _HEAD.format(step=step, node=node) + "".join(_body(own, tool))
        for (step, node), own in steps.items()
    }


def _body(units: list[Unit], tool: NvidiaSmi) -> Iterator[str]:
    before: dict[int, FleetGpu] = {}
    after: dict[int, FleetGpu] = {}
    for unit in units:
        yield from (f"# {' '.join(str(action).split())}\n" for action in unit.actions)
        yield from (f"# before: stop {seat}\n" for seat in unit.stops)
        yield from (f"# after: start {seat}\n" for seat in unit.starts)
        for first, last in zip(unit.befores, unit.afters, strict=True):
            before.setdefault(first.index, first)
            after[last.index] = last
    yield _FUNCTIONS
    yield _LOOK % ('"@" at[1]' if tool.by_start else '""')
    changed = [i for i, card in before.items() if Mode.MIG in (card.mode, after[i].mode)]
    for index in changed:
        holds = dict.fromkeys(_held(tool, side[index]) for side in (before, after))
        yield f"expect {index} {shlex.join(holds)}\n"
    yield from (f"{line}\n" for unit in units for line in tool.commands(unit))
    yield from (f"expect {i} {shlex.join([_held(tool, after[i])])}\n" for i in changed)


def _held(tool: NvidiaSmi, card: FleetGpu) -> str:
    node, held = tool.job.node(card.node), []
    for each in card.instances if card.mode is Mode.MIG else ():
        start, half = f"@{each.start}" * tool.by_start, ",half" * (not each.is_whole)
        held.append(f"{node.calls(card.gpu, each.profile)}{start}{half}")
    return " ".join(sorted(held))
