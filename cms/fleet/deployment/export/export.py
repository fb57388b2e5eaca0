"""What an exporter is given, and gives: files, what they cannot say, and the order of their use."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NoReturn, Protocol

from ....errors import InvalidProblem
from ....files.source import Source, quoted
from ....values.frozen import FrozenMap
from ..instance import Instance, Mode
from ..model import Deployment, FleetGpu

__all__ = [
    "Export",
    "ExportOptions",
    "Target",
    "assembled",
    "bare",
    "by_driver",
    "former",
    "projected",
    "refuse_doubtful",
    "refuse_unnumbered",
    "without_head",
    "word",
]

_WORD = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._+-]*[A-Za-z0-9])?", re.ASCII)
_HEAD, _END = "# Written by cms export: ", "# (end of what cms says)"


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """What an exporter may be told beside the deployment; each heeds what concerns it.

    Parameters
    ----------
    now : Deployment, optional
        What stands today on the same GPUs. Scripts then know what may go, and how to go back.
    merge : Source, optional
        A mig-parted file whose configurations and comments are kept.
    operator_namespace, config_map : str
        Where the GPU Operator runs, and the name of the ConfigMap made for it.
    slurm_types : FrozenMap
        ``{key of a GPU: what its Slurm types begin with}``: ``{"a100-80gb": "a100"}``, which is
        also what is taken where nothing is said; an empty text leaves the profile alone.
    slurm_nodes : FrozenMap
        ``{node: the rest of its line in slurm.conf}``: ``CPUs=64 RealMemory=512000``.
    base : tuple of Source
        Manifests, a Deployment in each, that those of a cluster are patches of: one of a service,
        by its label ``cms.service`` or its name, or one for all.
    namespace : str, optional
        Where pods are to run; else where the base or kubectl says.
    pin_nodes, pin_gpus : bool
        Whether pods are tied to their nodes, and with DRA to their GPUs.
    """

    now: Deployment | None = None
    merge: Source | None = None
    operator_namespace: str = "gpu-operator"
    config_map: str = "cms-mig-parted-config"
    slurm_types: FrozenMap[str, str] = field(default_factory=FrozenMap)
    slurm_nodes: FrozenMap[str, str] = field(default_factory=FrozenMap)
    base: tuple[Source, ...] = ()
    namespace: str | None = None
    pin_nodes: bool = False
    pin_gpus: bool = False


@dataclass(frozen=True, slots=True)
class Export:
    """The files of a target.

    Parameters
    ----------
    files : FrozenMap
        ``{path in the folder: text}``, ``README.md`` among them; lines end in ``\\n``.
    losses : tuple of str
        What the deployment says and the files do not, a sentence each.
    order : tuple of str
        What to do with the files, step by step.
    executables : tuple of str
        The paths of the scripts.
    """

    files: FrozenMap[str, str]
    losses: tuple[str, ...]
    order: tuple[str, ...]
    executables: tuple[str, ...] = ()


class Target(Protocol):
    """A tool that deployments are written for: a module with these three functions.

    What was written is read back as what the tool sees of it: for every deployment,
    ``read(write(deployment, options).files, bare(deployment)) == as_seen(deployment)``.
    """

    def write(self, deployment: Deployment, options: ExportOptions) -> Export:
        """Write a deployment that `export` has checked."""

    def read(self, files: Mapping[str, str], fleet: Deployment) -> object:
        """Read files back; the fleet says which GPUs its nodes have, whatever is on them."""

    def as_seen(self, deployment: Deployment) -> object:
        """Return what is left of a deployment where only this target's files are known."""


def word(text: str, what: str) -> str:
    """Return a text that can stand in file names, scripts and labels as it is.

    Raises
    ------
    InvalidProblem
        If it cannot.

    Examples
    --------
    >>> word("gpu-12.rack-3", "node")
    'gpu-12.rack-3'
    >>> word("$(rm x)", "node")
    Traceback (most recent call last):
        ...
    cms.errors.InvalidProblem: node "$(rm x)" cannot stand in a script or a label; ...
    """
    if len(text) > 253 or not _WORD.fullmatch(text):
        raise InvalidProblem(
            f"{what} {quoted(text)} cannot stand in a script or a label; expected up to 253 of "
            "A-Z a-z 0-9 . _ + -, with a letter or digit at both ends"
        )
    return text


def bare(deployment: Deployment) -> Deployment:
    """Return the nodes and GPUs of a deployment alone, with nothing on them.

    Examples
    --------
    >>> from cms.fleet import gpu
    >>> from cms.fleet.deployment import FleetNode, Instance
    >>> card = FleetGpu("node-a", 0, gpu("a100-80gb"), instances=(Instance("3g.40gb", 4),))
    >>> print(bare(Deployment((FleetNode("node-a", (card,)),))))
    1 GPU on 1 node, 0 instances
    """
    return projected(deployment, lambda card: FleetGpu(card.node, card.index, card.gpu))


def by_driver(deployment: Deployment) -> Deployment:
    """Return a deployment whose profiles have the names that each node's driver knows."""
    cards = {}
    for node in deployment.nodes:
        for card in node.gpus:
            called = [
                replace(each, profile=node.calls(card.gpu, each.profile)) for each in card.instances
            ]
            cards[card.node, card.index] = replace(card, instances=tuple(called))
    return deployment.with_gpus(cards)


def refuse_unnumbered(deployment: Deployment) -> None:
    """Refuse to mean GPUs by numbers that are an order alone.

    Raises
    ------
    InvalidProblem
        With the command that tells them.
    """
    for node in deployment.nodes:
        if not node.is_numbered:
            raise InvalidProblem(
                f"which numbers the GPUs of {node.name!r} have is not known, since names of "
                "dynamic resource allocation are others, and this tool is told GPUs by number; "
                "observe the node again together with what it prints of: nvidia-smi "
                "--query-gpu=index,uuid,name,mig.mode.current,driver_version --format=csv"
            )


def projected(deployment: Deployment, seen: Callable[[FleetGpu], FleetGpu]) -> Deployment:
    """Return a deployment with each GPU as it is seen, of which no service is known.

    Those on which nothing is planned stay as they are, since no tool is told to change them.
    The GPUs' UUIDs are kept, and so is what nodes are: their labels and drivers.
    """
    nodes = tuple(
        replace(
            node,
            gpus=tuple(
                card if card.mode is Mode.FIXED else replace(seen(card), uuid=card.uuid)
                for card in node.gpus
            ),
            observed=None,
        )
        for node in deployment.nodes
    )
    return Deployment(nodes)


def former(deployment: Deployment, now: Deployment | None) -> dict[str, FleetGpu] | None:
    """Return today's GPUs by name, or None if nobody said what stands today.

    Raises
    ------
    InvalidProblem
        If a GPU of the deployment is not there today, or is of another type.
    """
    if now is None:
        return None
    found = {card.name: card for card in now.gpus()}
    for card in deployment.gpus():
        if card.name not in found:
            raise InvalidProblem(
                f"{card.name} is not in the deployment of today; expected one that has every GPU"
            )
        if None not in (uuids := (found[card.name].uuid, card.uuid)) and uuids[0] != uuids[1]:
            raise InvalidProblem(
                f"{card.name} is {uuids[0]} in the deployment of today and {uuids[1]} here; "
                "expected the same GPUs in both"
            )
        if found[card.name].gpu.key != card.gpu.key:
            raise InvalidProblem(
                f"{card.name} is a {card.gpu.key}, and a {found[card.name].gpu.key} in the "
                "deployment of today; expected the same GPUs in both"
            )
    return found


def refuse_doubtful(card: FleetGpu, instance: Instance, doubts: Mapping[str, str]) -> NoReturn:
    """Refuse to have an instance go that may be another's; see `cms.fleet.deployment.guesses`.

    Raises
    ------
    InvalidProblem
        Always.
    """
    raise InvalidProblem(
        f"{card.name} has {instance.place} today, which would go and may be what "
        f"{doubts[instance.profile]} holds, since the device plug-in does not tell; expected it at "
        f"its place, or that nobody holds it: cms observe ... --release {_place_of(card, instance)}"
    )


def _place_of(card: FleetGpu, instance: Instance) -> str:
    return card.name if instance.start is None else f"{card.name}:{instance.start}"


def assembled(
    target: str,
    what: str,
    files: Mapping[str, str],
    losses: Iterable[str],
    order: Iterable[str],
    back: str,
    executables: Iterable[str] = (),
) -> Export:
    """Put the losses at the head of each file, and add the README.

    Parameters
    ----------
    target : str
        Its name in the registry.
    what : str
        What the files are for, in a sentence.
    files : Mapping[str, str]
        Texts that take comments with ``#``; scripts without their first line.
    losses, order : iterable of str
    back : str
        How to return to what was before.
    executables : iterable of str
        Those of the files that are shell scripts.
    """
    # A comment ends with its line, whatever an author of names thinks of.
    losses = tuple(" ".join(loss.split()) for loss in losses)
    order, scripts = tuple(order), frozenset(executables)
    said = [f"{_HEAD}{target}. {what}", *(f"# Not said here: {loss}" for loss in losses), _END]
    head = "\n".join(said) + "\n"
    written = {
        path: ("#!/bin/sh\n" if path in scripts else "") + head + text
        for path, text in files.items()
    }
    parts = [
        f"# {target}",
        what,
        "## In this order",
        "\n".join(f"{number}. {step}" for number, step in enumerate(order, 1)),
        "## What these files do not say",
        "\n".join(f"- {loss}" for loss in losses) or "Nothing is lost.",
        "## How to go back",
        back,
    ]
    written["README.md"] = "\n\n".join(parts) + "\n"
    return Export(FrozenMap(written), losses, order, tuple(sorted(scripts)))


def without_head(text: str) -> str:
    """Return a file without what `assembled` put at its head."""
    if text.startswith(_HEAD):
        return text.partition(_END + "\n")[2] or text
    return text
