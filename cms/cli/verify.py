"""``cms verify``: whether what should be there is there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cms.errors import FileError

from . import options
from .check import fault_lines
from .fleets import MaxAge, read_fleet, refuse_stale_now, without_places
from .observe import Gpus, NodeName, ServiceLabel, Sources, seen
from .session import Exit, session_of

if TYPE_CHECKING:
    from cms.fleet.deployment import Deployment

#: The deployment in a folder of `cms export`.
TARGET = "target.json"
#: What a folder of `cms transition` has: its document, and the folder of its steps.
TRANSITION, STEPS = "transition.json", "steps"

_Against = Annotated[
    Path,
    typer.Option(
        "--against", metavar="TARGET",
        help="The deployment that should be there, a folder of 'cms export' or 'cms transition', "
        "or one of its steps: DIR/steps/07.",
    ),
]  # fmt: skip


def verify(
    context: typer.Context,
    sources: Sources,
    against: _Against,
    node: NodeName = None,
    gpu: Gpus = None,
    service_label: ServiceLabel = None,
    max_age: MaxAge = "15min",
    output: options.Output = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Report the drift of a fleet from what should run.

    Exit code 0: all is there; 1: something is not, or was observed too long ago.
    """
    session = session_of(context)
    output = session.begin(output, json=json, quiet=quiet)
    session.refuse_unwritable((output, "--output"))
    with session.reading("reading and comparing"):
        from cms.fleet.deployment import instance, verifying
        from cms.fleet.deployment.observation.numbering import renumber_gpus

        path, target = _meant(against)
        observed = seen(sources, node, without_places(target), gpu, service_label, target)
        target = renumber_gpus(target, observed.deployment)
        found = verifying.settle_guesses(renumber_gpus(observed.deployment, target), target)
        for warning in observed.warnings:
            session.warn(warning)
        refuse_stale_now(session, found, max_age, written=True)
        faults = verifying.verify(found, target, observed.of_pods)
        _, _, moved = verifying.settle_pods(found, target, observed.of_pods)
    gpus = {card.name for card in target.gpus()}
    unknown = _unknown(found, gpus, instance.UNKNOWN_OWNER)
    document = {
        "verified": not faults,
        "gpus": len(gpus),
        "places_alone": unknown,
        "faults": [{**fault._asdict(), "text": str(fault)} for fault in faults],
    }
    if session.json:
        session.print_json(lambda: document)
    elif not quiet:
        if unknown:
            session.warn(
                f"what {unknown} of the instances do was not observed; their places were compared"
            )
        if moved:
            session.warn(
                f"{moved} of the instances do not do what was placed on them: its pods are tied to "
                "no node, or on their node to no GPU, so that how many do it was compared"
            )
        unnamed = _without_uuid(found, target)
        if unnamed:
            session.warn(
                f"whether {unnamed[0]}{_more(unnamed)} is the GPU that was meant was not observed, "
                "but its number alone: its UUID is told by nvidia-smi -L"
            )
        if faults:
            session.print_text(fault_lines("not there", faults))
        else:
            from cms.values.words import count

            session.print_text(f"all there: {count(len(gpus), 'GPU')} as in {path}\n")
    session.write(lambda: document, output)
    return Exit.FAILED if faults else Exit.ANSWER


def _unknown(found: Deployment, gpus: set[str], owner: str) -> int:
    every = found.instances()
    return sum(card.name in gpus and each.owner == owner for card, each in every)


def _without_uuid(found: Deployment, target: Deployment) -> list[str]:
    """The GPUs of which one side alone knows a UUID, though their numbers may be other ones."""
    seen_as = {card.name: card.uuid for card in found.gpus()}
    loose = {card.name for node in found.nodes if not node.is_numbered for card in node.gpus}
    return [
        card.name
        for card in target.gpus()
        if (card.uuid and seen_as.get(card.name, card.uuid) is None)
        or (card.uuid is None and card.name in loose)
    ]


def _more(names: list[str]) -> str:
    return f" (and {len(names) - 1} more)" if len(names) > 1 else ""


def _meant(against: Path) -> tuple[Path, Deployment]:
    """What should be there, and the file that says so."""
    steps = against.parent
    document = steps.resolve().parent / TRANSITION
    if against.is_dir() or steps.name != STEPS or not document.is_file():
        path = _target(against)
        return path, read_fleet(path)
    from cms.fleet.deployment.transition import read_transition
    from cms.fleet.deployment.transition.folder import state_after

    name = against.name.removesuffix(".sh").removesuffix(".json")
    found = state_after(read_transition(document), name)
    if found is None:
        raise FileError(against, "there is no such step", expected="a step of the transition: 01")
    return against, found


def _target(against: Path) -> Path:
    """The file of a target: itself, or the one in its folder or in the folder around that."""
    if not against.is_dir():
        return against
    for folder in (against, against.resolve().parent):
        if (folder / TARGET).is_file():
            return folder / TARGET
    raise FileError(
        against, f"this folder holds no {TARGET}", expected="a folder that cms export wrote"
    )
