"""A transition that is carried out: what it needs, how it is begun, gone on with, and undone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ...errors import CmsError, FileError, InvalidOption, InvalidProblem, UnsupportedProblem
from ...values.names import nearest
from ...values.numbers import exact, format_exact
from ...values.words import count
from ..deployment.export.export import refuse_unnumbered, require_word
from ..deployment.instance import Instance
from ..deployment.labels import point_label
from ..deployment.observation.age import format_time
from ..deployment.transition import (
    Durations,
    PartitioningTool,
    Transition,
    What,
    check_transition,
    reversal,
)
from .journal import Head, Journal
from .kubectl import Deployments, GpuOperator
from .nvidia_smi import MigParted, NvidiaSmi, write_scripts
from .runner import PER_NODE, Outcome, Runner, find_makespan
from .slurm import Slurm
from .tool import ActionFailed, Job, Look, Ran, Shell, Tool, Turn, Worker
from .units import Seat, Unit, refuse_units, shorten

#: The commands that there have to be.
HOOKS = ("start", "stop", "ready", "drained")
_ASKED = {"start": "ready", "stop": "drained"}
#: What carries out the changes of each tool.
TOOLS: dict[str, Callable[[Job], Tool]] = {
    "nvidia-smi": NvidiaSmi, "mig-parted": MigParted, "gpu-operator": GpuOperator, "slurm": Slurm,
}  # fmt: skip


def find_tool(name: str) -> PartitioningTool:
    """Return a tool by its name."""
    if name not in TOOLS:
        expected = f"expected one of {', '.join(TOOLS)}"
        raise InvalidOption(f"there is no tool {name!r}{nearest(name, TOOLS)}; {expected}")
    return PartitioningTool(name)


@dataclass(frozen=True)
class Hooks:
    """Shell commands of the user, run on this machine.

    `commands`: ``start``, ``stop``: Begin and end to serve. ``ready``, ``drained``: Exit with 0 if
    that is so; asked again until they do. ``capacity``, optional: Prints the requests/s that a
    service serves now, or nothing. No work is stopped that takes it below its floor as measured.
    """

    transition: Transition
    commands: Mapping[str, str]
    shell: Shell

    def is_done(self, what: Turn, seat: Seat, place: Instance | None) -> bool:
        """Ask whether it serves, or nothing of it is left."""
        return self._run(_ASKED[what], seat, place).code == 0

    def do(self, what: Turn, seat: Seat, place: Instance | None) -> None:
        """Have it begin, or end where what is measured allows."""
        assert seat.instance.work is not None
        name = seat.instance.work.service
        floor = self.transition.floors.get(name)
        supply = seat.instance.supply_rps
        if what == "stop" and "capacity" in self.commands and floor is not None and supply:
            said = self._run("capacity", seat, place).out.strip()
            try:
                is_low = said and exact(said, f"the capacity of {name}") < floor.rps + supply
            except CmsError as fault:
                raise ActionFailed(f"[work] capacity: {fault}") from None
            if is_low:
                raise ActionFailed(
                    f"{name} has {said} requests/s now; before {seat} stops it needs what that "
                    f"supplies beside its floor of {floor}"
                )
        ran = self._run(what, seat, place)
        if ran.code:
            raise ActionFailed(f"[work] {what} of {seat} ended with {ran.code}: {ran.said}")

    def _run(self, name: str, seat: Seat, place: Instance | None) -> Ran:
        work, card = seat.instance.work, seat.gpu
        assert work is not None
        services = (*self.transition.start.services, *self.transition.target.services)
        models = {service.name: service.model for service in services}
        start, uuid = (seat.instance.start, None) if place is None else (place.start, place.uuid)
        told = {
            "SERVICE": work.service, "MODEL": models[work.service], "POINT": point_label(work),
            "PROCESSES": work.point.processes, "BATCH": work.point.batch,
            "SUPPLY": format_exact(work.supply_rps), "NODE": card.node, "GPU": card.index,
            "GPU_UUID": card.uuid or "", "PROFILE": seat.instance.profile,
            "START": "" if start is None else start, "NUMBER": seat.number, "UUID": uuid or "",
        }  # fmt: skip
        more = {f"CMS_{key}": str(value) for key, value in told.items()}
        return self.shell.here("sh", "-c", self.commands[name], more=more)


@dataclass(frozen=True)
class Apply:
    """What carries out a transition, checked before anything is begun.

    `commands`: Of ``[work]``: how work is started and stopped; empty without them.
    """

    head: Head
    job: Job
    commands: dict[str, str]
    durations: Durations | None = None

    def __post_init__(self) -> None:
        transition, tool = self.head.transition, self.head.tool
        if faults := check_transition(transition):
            more = f" (and {len(faults) - 1} more; cms check lists them)" if faults[1:] else ""
            raise InvalidProblem(f"the transition does not hold: {faults[0]}{more}")
        if any(action.what is What.SWITCH for action in transition.actions):
            raise UnsupportedProblem(
                f"shares of GPUs are switched, and {tool} knows none; expected a transition "
                "between instances that serve one service each: a switch is yours to carry out"
            )
        if missing := [name for name in HOOKS if self.commands and name not in self.commands]:
            what = f"[work] of fleet.toml has no {', '.join(missing)}"
            raise InvalidProblem(f"{what}; expected {', '.join(HOOKS)}")
        refuse_unnumbered(transition.start)
        for unit in self.head.units:
            require_word(unit.node, "node")
        refuse_units(transition, self.head.units, tool)

    @cached_property
    def tool(self) -> Tool:
        """What changes the GPUs."""
        return TOOLS[self.head.tool](self.job)

    def expect(self, parallel: int) -> str:
        """Say how much is to be done, and how long it is expected to take."""
        durations = self.durations or Durations()
        times = [find_makespan(self.head.units, durations, n) for n in (1, parallel)]
        nodes = len({unit.node for unit in self.head.units})
        more = f", {format_time(times[1])} on {parallel} nodes at once" * (parallel > 1)
        return (
            f"{count(len(self.head.transition.actions), 'action')} on {count(nodes, 'node')}: "
            f"about {format_time(times[0])}, node after node{more} (assumed)"
        )

    def describe(self, ended: Collection[int] = ()) -> Iterator[str]:
        """Yield what would be run for each unit that is left, and by what."""
        shell = self.job.shell
        most = f"for at most {shell.timeout_s:g} s"
        yield f"# by {shell.template}; a look every {shell.pause_s:g} s, {most}"
        for unit in (each for each in self.head.units if each.number not in ended):
            yield f"# {unit}"
            yield from (f"# stop {seat}" for seat in unit.stops)
            yield from self.tool.commands(unit) if unit.partitions else ()
            yield from (f"# start {seat}" for seat in unit.starts)

    def write_scripts(self) -> dict[str, str]:
        """Return scripts that do the same; UnsupportedProblem of a tool that reaches all nodes."""
        if self.head.tool.drains_nodes or not isinstance(self.tool, NvidiaSmi):
            raise UnsupportedProblem(
                "scripts are for tools that run on the nodes, nvidia-smi and mig-parted; kubectl "
                "and scontrol reach all nodes from here: leave out --print"
            )
        return write_scripts(self.head.units, self.tool)

    def find_worker(self, journal: Journal | None = None) -> Worker | None:
        """Return what starts and stops work; InvalidProblem if floors need it and nothing does."""
        if not self.head.with_work:
            return None
        if self.commands:
            return Hooks(self.head.transition, self.commands, self.job.shell)
        if self.head.tool is PartitioningTool.GPU_OPERATOR:
            return Deployments(self.job, self._running(journal.phases if journal else {}))
        floors = {name for name, floor in self.head.transition.floors.items() if floor.rps}
        for seat in (seat for unit in self.head.units for seat in (*unit.stops, *unit.starts)):
            if seat.instance.work is not None and seat.instance.work.service in floors:
                raise InvalidProblem(
                    f"{seat} is started or stopped, and how is not known, so that no floor can be "
                    "kept; expected start, stop, ready and drained in [work] of fleet.toml, or "
                    "--no-work"
                )
        return None

    def _running(self, phases: dict[int, str]) -> list[Seat]:
        """Return what is to run now: several may be equal where starts are not known."""
        start = self.head.transition.start
        runs = Counter((c.name, i) for c, i in start.instances() if i.work and i.is_managed)
        for unit in self.head.units:
            if phases.get(unit.number) in ("stopped", "changed", "done"):
                runs.subtract((seat.gpu.name, seat.instance) for seat in unit.stops)
            if phases.get(unit.number) == "done":
                runs.update((seat.gpu.name, seat.instance) for seat in unit.starts)
        cards = {card.name: card for card in start.gpus()}
        return [Seat(cards[name], each, 0) for name, each in runs.elements()]

    def run(self, journal: Journal, *, parallel: int = 1, **how: Any) -> Outcome:
        """Carry out what is left, and look at the end whether all is there.

        `parallel`: Nodes at once. `how`: Other settings of :class:`~.runner.Runner`.
        """
        self.job.uuids.update(journal.uuids)
        tool, worker = self.tool, self.find_worker(journal)
        if isinstance(tool, GpuOperator):
            tool.prepare(self.head.units)
        own = self.head.units, tool, worker, journal, self.job.shell
        outcome = Runner(*own, parallel=parallel, **how).run()

        def look_again(unit: Unit) -> str:
            try:
                is_there = tool.look(unit, begun=True) is Look.AFTER
            except ActionFailed as fault:
                return str(fault)
            return "" if is_there else "it is not there any more"

        if outcome.has_arrived:
            last = {name: unit for unit in self.head.units for name in unit.gpus if unit.partitions}
            again = {unit.number: unit for unit in last.values()}
            with ThreadPoolExecutor(PER_NODE * parallel) as pool:
                faults = pool.map(look_again, again.values())
            outcome.failed |= {at: why for at, why in zip(again, faults, strict=True) if why}
        return outcome


def begin_undo(journal: Journal) -> Head:
    """Return the proved reversal of all that was begun; FileError while an undo is half done."""
    head, ended = journal.head, journal.ended
    if journal.loose:  # its instances may be neither those before an action nor those after it
        what = f"an undo that was broken off has yet to mend {', '.join(sorted(journal.loose))}"
        raise FileError(journal.path, what, fix="cms apply --resume, and --undo after it")
    begun = [unit for unit in head.units if unit.number in journal.phases]
    busy = [unit for unit in begun if unit.number not in ended]
    positions, under_way = ({at for u in some for at in u.positions} for some in (begun, busy))
    back = reversal(shorten(head.transition, positions, under_way))
    loose = frozenset[str]().union(*(unit.gpus for unit in busy))
    return replace(head, transition=back, is_undo=not head.is_undo, loose=loose)
