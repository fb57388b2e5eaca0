"""The folder of a transition, whole: its document, its scripts, and a page that explains them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any, Protocol

from .....errors import InvalidOption, InvalidProblem, UnsupportedProblem
from .....files.documents import document_text, number_to_json
from .....values.names import nearest
from ...document import deployment_to_json
from ...export.export import ExportOptions, name_by_driver, refuse_unnumbered
from ...instance import Instance
from ...labels import point_label
from ...model import Deployment
from ..document import transition_to_json
from ..durations import Durations
from ..model import Transition, What
from ..reversal import reversal
from ..whole_gpus import PartitioningTool
from . import gpu_operator, mig_parted, nvidia_smi, slurm
from .readme import readme
from .scripts import RUN, STEP, WORK
from .states import open_starts, states
from .steps import Part, Step, steps_of
from .summary import summary

__all__ = ["TOOLS", "ToolWriter", "Folder", "FolderOptions", "folder_of"]


class ToolWriter(Protocol):
    """What cuts GPUs: a module with these; the rest of the folder is the same for all.

    Its files define ``on_gpu close|check|apply|verify|undo|places`` in ``lib/on-gpu.sh``, which
    reads the tables of a part's script, and ``on_gpu stands|undone``: whether the GPUs are cut as
    after or before the part, so that nothing has to stop for it.
    """

    def files(
        self, transition: Transition, steps: tuple[Step, ...], options: ExportOptions
    ) -> Mapping[str, str]:
        """Return the files that all steps share, by path."""

    def order(self, options: ExportOptions) -> tuple[str, ...]:
        """Say what has to be done once, before the rest."""

    def refuse(self, start: Deployment, options: ExportOptions) -> None:
        """Refuse a start or names that it cannot go from, before anything is planned."""

    def refuse_part(self, transition: Transition, part: Part) -> None:
        """Refuse a part that it cannot do."""

    def losses(self, transition: Transition) -> Iterator[str]:
        """Say what its scripts cannot express, a sentence each."""

    def tables(self, part: Part, options: ExportOptions) -> Mapping[str, tuple[str, ...]]:
        """Return the rows of each of a part's tables."""


#: The module of each tool.
TOOLS: Mapping[str, ToolWriter] = {
    "nvidia-smi": nvidia_smi,
    "mig-parted": mig_parted,
    "gpu-operator": gpu_operator,
    "slurm": slurm,
}


@dataclass(frozen=True)
class FolderOptions:
    """What a folder may be told beside its transition."""

    tool: str = "nvidia-smi"
    floor: str = "100 %"  # what was asked for, in words
    durations: Durations | None = None
    #: How many things at once, if run.sh is told nothing else; None: one after the other.
    max_parallel: int | None = None
    #: What the files of a tool are told: the names of the GPU Operator's, Slurm's types and
    #: nodes.
    export: ExportOptions = field(default_factory=ExportOptions)
    picture: Callable[[], str] | None = field(default=None, compare=False)  # draws ``gantt.svg``


@dataclass(frozen=True)
class Folder:
    """The files of a transition."""

    files: Mapping[str, str]  # ``{path in the folder: text}``
    losses: tuple[str, ...]  # what the scripts do not say


def _by_driver(transition: Transition) -> Transition:
    """Return a transition whose profiles have the names that each node's driver knows."""
    start = transition.start

    def called(node: str, index: int, each: Instance) -> Instance:
        gpu = next(card.gpu for card in start.node(node).gpus if card.index == index)
        return replace(each, profile=start.node(node).calls(gpu, each.profile))

    actions = tuple(
        replace(
            action,
            removes=tuple(called(*action.gpu, each) for each in action.removes),
            adds=tuple(called(*action.gpu, each) for each in action.adds),
        )
        for action in transition.actions
    )
    return replace(
        transition,
        start=name_by_driver(start),
        target=name_by_driver(transition.target),
        actions=actions,
    )


def folder_of(transition: Transition, options: FolderOptions | None = None) -> Folder:
    """Write a transition as a folder of texts.

    Examples
    --------
    >>> from cms.fleet import get_gpu
    >>> from cms.fleet.deployment import Deployment, FleetGpu, FleetNode, Instance
    >>> from cms.fleet.deployment.transition import transition
    >>> card = FleetGpu("a", 0, get_gpu("a100-80gb"), instances=(Instance("3g.40gb", 0),))
    >>> now = Deployment((FleetNode("a", (card,)),))
    >>> then = now.with_gpus({("a", 0): card.with_instances([Instance("4g.40gb", 0)])})
    >>> print(*sorted(folder_of(transition(now, then)).files), sep=", ")
    README.md, lib/nvidia-smi.sh, lib/on-gpu.sh, lib/step.sh, run.sh, steps/01-a-gpu0.sh,
    steps/01.json, steps/02-a-gpu0.sh, steps/02.json, target.json, transition.json, work.sh
    """
    options = options or FolderOptions()
    tool = tool_writer(options.tool)
    if any(action.what is What.SWITCH for action in transition.actions):
        raise UnsupportedProblem(
            f"shares of GPUs are switched, and {options.tool} knows none; expected a "
            "transition between instances that serve one service each: a switch is yours to carry "
            "out"
        )
    refuse_unnumbered(transition.start)
    tool.refuse(transition.start, options.export)
    told = _by_driver(transition)
    steps = steps_of(told, options.tool)
    for part in (part for step in steps for part in step.parts):
        tool.refuse_part(told, part)
    target = open_starts(transition, transition.target)
    files = {
        "transition.json": document_text(lambda: transition_to_json(transition), "transition.json"),
        "target.json": document_text(lambda: deployment_to_json(target), "target.json"),
        "work.sh": WORK.lstrip(),
        "lib/step.sh": STEP.lstrip(),
        **tool.files(told, steps, options.export),
        "run.sh": _run(steps, options.max_parallel),
    }
    for step in steps:
        for part in step.parts:
            tables = tool.tables(part, options.export)
            files[f"steps/{part.name}.sh"] = _script(told, step, part, tables)
    files |= _documents(told, steps)
    losses = tuple(tool.losses(transition))
    words = summary(
        transition, floor=options.floor, durations=options.durations,
        max_parallel=options.max_parallel, by_node=PartitioningTool(options.tool).drains_nodes,
    )  # fmt: skip
    if options.picture is not None:
        files["gantt.svg"] = options.picture()
    files["README.md"] = readme(
        transition, steps, words, losses, _way_back(transition), options.tool,
        tool.order(options.export),
        has_picture=options.picture is not None,
    )  # fmt: skip
    return Folder(files, losses)


def tool_writer(name: str) -> ToolWriter:
    """Return a tool by its name."""
    if name not in TOOLS:
        raise InvalidOption(
            f"there is no tool {name!r}{nearest(name, TOOLS)}; expected one of {', '.join(TOOLS)}"
        )
    return TOOLS[name]


def _way_back(transition: Transition) -> str:
    try:
        back = reversal(transition)
    except InvalidProblem as fault:
        return f"It is not proved: {fault}."
    return (
        f"It is proved as well: {len(back.actions)} actions, the last done undone first, above the "
        "same floors at every moment and on the same GPUs."
    )


def _run(steps: tuple[Step, ...], max_parallel: int | None) -> str:
    def listed(names: tuple[str, ...]) -> str:
        return ",".join(names) or "-"

    rows = "".join(
        f"{step.number} {part.name} {'yes' if part.is_telling else 'no'} "
        f"{'yes' if part.may_be_hidden else 'no'} {listed(part.after)} {listed(part.undoes)} "
        f"{listed(part.undone_by)}\n"
        for step in steps
        for part in step.parts
    )
    body = RUN.lstrip() % {
        "table": rows,
        "steps": len(steps),
        "parallel": max_parallel or 1,
        "parts": sum(len(step.parts) for step in steps),
    }
    return f"#!/bin/sh\n{body}"


def _script(
    transition: Transition, step: Step, part: Part, tables: Mapping[str, tuple[str, ...]]
) -> str:
    said = [f"# Step {step.number}, {part.where}:"]
    said += [f"# {' '.join(str(transition.actions[at]).split())}" for at in part.positions]
    if part.after:
        said.append(f"# It waits for {', '.join(part.after)}.")
    lines = [
        "#!/bin/sh", *said, "#",
        """folder=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd) || exit 1""",
        f"step={part.name} node={part.node} cuts={'yes' if part.repartitions else 'no'}",
    ]  # fmt: skip
    seats = map(part.seat, (*part.removes, *part.adds))
    tables = {
        **tables,
        "seat_rows": tuple(dict.fromkeys(" ".join(map(str, seat)) for seat in seats)),
        "work_rows": tuple(_work_rows(transition, part)),
        "floor_rows": tuple(_floor_rows(transition, part)),
    }
    for name, rows in tables.items():
        lines += [f"{name}() {{ cat <<'END'", *rows, "END", "}"]
    lines += ['. "$folder/lib/on-gpu.sh"', '. "$folder/lib/step.sh"']
    return "\n".join(lines) + "\n"


def _work_rows(transition: Transition, part: Part) -> Iterator[str]:
    """What stops, starts, does both, and serves at other times in the same places."""
    models = {
        service.name: service.model
        for side in (transition.start, transition.target)
        for service in side.services
    }
    uuids = {card.index: card.uuid or "-" for card in part.cards}
    removes, adds = (
        [(part.seat(p), p.instance.work) for p in s] for s in (part.removes, part.adds)
    )
    own, works = {seat for seat, _ in (*removes, *adds)}, {*removes, *adds}
    others = (
        place
        for place in part.others
        if part.seat(place) in own and (part.seat(place), place.instance.work) not in works
    )
    rows: dict[str, None] = {}
    for mark, places in (("stop", part.removes), ("start", part.adds), ("other", others)):
        for place in places:
            each, seat = place.instance, part.seat(place)
            if each.work is None or not each.is_whole:
                continue
            is_both = (seat, each.work) in removes and (seat, each.work) in adds
            if is_both and mark == "start":
                continue
            point = each.work.point
            row = "\t".join(
                (
                    "again" if is_both else mark, str(place.gpu), uuids[place.gpu],
                    *seat[1:], str(point.processes), str(point.batch),
                    _decimal(each.work.supply_rps), point_label(each.work),
                    "yes" if place in part.restored else "no", each.work.service,
                    models[each.work.service],
                )
            )  # fmt: skip
            rows[row] = None
    yield from rows


def _floor_rows(transition: Transition, part: Part) -> Iterator[str]:
    stopped = {
        place.instance.work.service
        for place in part.removes
        if place.instance.supply_rps and place.instance.work is not None
    }
    for service in sorted(stopped):
        floor = transition.floors.get(service)
        if floor is not None and floor.rps:
            yield f"{_decimal(floor.rps)}\t{service}"


def _decimal(rps: Fraction) -> str:
    """Round to thousandths, down: a guard by a measured figure is not to fail by a hair."""
    thousandths = int(rps * 1000)
    return f"{thousandths // 1000}.{thousandths % 1000:03}"


def _documents(transition: Transition, steps: tuple[Step, ...]) -> dict[str, str]:
    every = states(transition)
    files = {}
    for step in steps:
        before, after = every[step.number - 1], every[step.number]
        touched = sorted({s for at in step.positions for s in transition.actions[at].services})
        document: dict[str, Any] = {
            "step": step.number,
            "parts": [
                {
                    "name": part.name,
                    "node" if part.is_of_a_node else "gpu": part.where,
                    "after": list(part.after),
                    "actions": [
                        {
                            "position": at,
                            "does": str(transition.actions[at]),
                            "after": list(transition.actions[at].after),
                        }
                        for at in part.positions
                    ],
                }
                for part in step.parts
            ],
            "capacity_rps": {
                service: {
                    "before": number_to_json(before.capacity(service)),
                    "after": number_to_json(after.capacity(service)),
                    "floor": number_to_json(
                        transition.floors[service].rps
                        if service in transition.floors
                        else Fraction(0)
                    ),
                }
                for service in touched
            },
        }
        number = step.parts[0].name.partition("-")[0]
        files[f"steps/{number}.json"] = document_text(partial(dict, document), number)
    return files
