"""What exporters are given and give, and what all of them say beside their files, and refuse."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....errors import InvalidProblem
from ....files.source import Source, quoted
from ....values.frozen import FrozenMap
from ....values.numbers import shown
from ..instance import Instance, Mode, State, Work
from ..model import Deployment, FleetGpu
from ..turns import shares_of
from .workloads import list_working, offered_profiles

if TYPE_CHECKING:
    from jinja2 import Environment


_WORD = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._+-]*[A-Za-z0-9])?", re.ASCII)
_TOO_LITTLE = "which is too little"
HEAD, END = "# Written by cms export: ", "# (end of what cms says)"
# What every version of YAML takes for a text; all else is quoted, as are its words for values.
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9./_-]*", re.ASCII)
_YAML_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """Options of the exporters; each reads those that concern it.

    `now`: Current state of the same GPUs. With it nothing foreign is cut anew, and what was before
    is written as well.
    `merge`: A mig-parted file whose configurations and comments are kept. `operator_namespace`,
    `config_map`: Namespace of the GPU Operator, and the name of the ConfigMap made for it.
    `slurm_types`: ``{GPU key: start of its Slurm types}``, by default ``a100`` of ``a100-80gb``; an
    empty text leaves the profile alone. `slurm_nodes`: ``{node: rest of its line in slurm.conf}``:
    ``CPUs=64 RealMemory=512000``. `base`: Manifests with a Deployment each, which are patched: one
    of a service, by its label ``cms.service`` or its name, or one for all services. `namespace`:
    Namespace of the pods; by default the base's or kubectl's. `gateway`: The Gateway, ``name`` or
    ``namespace/name``, that spreads requests by capacity. `pin_nodes`, `pin_gpus`: Whether pods are
    tied to their nodes, and with DRA to their GPUs.
    """

    now: Deployment | None = None
    merge: Source | None = None
    operator_namespace: str = "gpu-operator"
    config_map: str = "cms-mig-parted-config"
    slurm_types: FrozenMap[str, str] = field(default_factory=FrozenMap)
    slurm_nodes: FrozenMap[str, str] = field(default_factory=FrozenMap)
    base: tuple[Source, ...] = ()
    namespace: str | None = None
    gateway: str | None = None
    pin_nodes: bool = False
    pin_gpus: bool = False


@dataclass(frozen=True, slots=True)
class Export:
    """The files of a target.

    `files`: ``{path in the folder: text}``, ``README.md`` among them; lines end in ``\\n``.
    `losses`: What the deployment says and the files cannot express, a sentence each. `order`: How
    to use the files, step by step. `executables`: Paths of the scripts.
    """

    files: FrozenMap[str, str]
    losses: tuple[str, ...]
    order: tuple[str, ...]
    executables: tuple[str, ...] = ()


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")), undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip

    def list_some(names: Collection[str]) -> str:
        return ", ".join([*names][:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")

    made.filters |= {"scalar": write_scalar, "some": list_some}
    return made


def render(template: str, **values: object) -> str:
    """Fill in a template."""
    return _environment().get_template(template).render(values)


def write_scalar(value: str | int | None) -> str:
    """Write a value as YAML that all versions of YAML read alike.

    Examples
    --------
    >>> print(*map(write_scalar, ("no", 1, "a.b/c", "a: b", None)))
    "no" 1 a.b/c "a: b" null
    """
    if not isinstance(value, str):
        return json.dumps(value)
    if _PLAIN.fullmatch(value) and value.lower() not in _YAML_WORDS:
        return value
    return json.dumps(value, ensure_ascii=not value.isprintable())


def remove_head(text: str) -> str:
    """Return a file without what `cms export` put at its head."""
    if text.startswith(HEAD):
        return text.partition(END + "\n")[2] or text
    return text


def require_word(text: str, what: str) -> str:
    """Return a text that can stand in file names, scripts and labels; else raise InvalidProblem."""
    if len(text) > 253 or not _WORD.fullmatch(text):
        raise InvalidProblem(
            f"{what} {quoted(text)} cannot stand in a script or a label; expected up to 253 of "
            "A-Z a-z 0-9 . _ + -, with a letter or digit at both ends"
        )
    return text


def refuse_unnumbered(deployment: Deployment) -> None:
    """Refuse GPUs whose numbers are not known: DRA alone tells an order, and no numbers."""
    for node in deployment.nodes:
        if not node.is_numbered:
            raise InvalidProblem(
                f"the numbers of the GPUs of node {node.name!r} are not known: dynamic resource "
                "allocation names GPUs otherwise, and this tool needs numbers; observe the node "
                "again together with the output of: nvidia-smi -q -x"
            )


def find_current(deployment: Deployment, now: Deployment | None) -> dict[str, FleetGpu] | None:
    """Return the current GPUs by name, or None if the current state is not given.

    Refuses a current state in which a GPU is missing, or is another one.
    """
    if now is None:
        return None
    found = {card.name: card for card in now.gpus()}
    for card in deployment.gpus():
        if (current := found.get(card.name)) is None:
            what = f"{card.name} is not in the deployment of today"
            raise InvalidProblem(f"{what}; expected one that has every GPU")
        for one, other in ((current.uuid, card.uuid), (current.gpu.key, card.gpu.key)):
            if one and other and one != other:
                what = f"{card.name} is {one} in the deployment of today and {other} here"
                raise InvalidProblem(f"{what}; expected the same GPUs in both")
    return found


def assemble(
    target: str, deployment: Deployment, options: ExportOptions, files: Mapping[str, str],
    **facts: object,
) -> Export:  # fmt: skip
    """Put what the files cannot express at the head of each, and add the README.

    The sentences are those of ``notes/TARGET.txt``, which `facts` are also about. Files take
    comments with ``#``; shell scripts, ``*.sh``, come without their first line.
    """
    said = render(f"notes/{target}.txt", d=_describe(deployment), options=options, **facts)
    # a comment ends with its line, whatever names contain
    what, order, losses, back = (
        tuple(" ".join(line.split()) for line in part.split("\n") if line.strip())
        for part in re.split(r"^\[\w+\]$", said, flags=re.M)
    )
    head = [f"{HEAD}{target}. {what[0]}", *(f"# Not said here: {each}" for each in losses), END]
    executables = sorted(path for path in files if path.endswith(".sh"))
    written = {
        path: "\n".join([*(["#!/bin/sh"] if path in executables else []), *head, text])
        for path, text in files.items()
    }
    written["README.md"] = render(
        "readme.md", target=target, what=what[0], order=order, losses=losses, back=back[0]
    )
    return Export(FrozenMap(written), losses, order, tuple(executables))


def _describe(deployment: Deployment) -> dict[str, Any]:
    """Gather what files of tools may not be able to express."""
    cards, instances = [*deployment.gpus()], [*deployment.instances()]
    managed = [(card, each) for card, each in instances if each.is_managed]
    working = [each.work for _, each in instances if each.work is not None]
    supplies: defaultdict[str, set[Fraction]] = defaultdict(set)
    for work in working:
        supplies[work.service].add(work.supply_rps)
    shared = [card for card in cards if card.mode is Mode.MPS]
    asked = list_working(deployment)
    traffic = [*_find_losses(deployment, asked)]
    # where pods cannot tell types of GPU apart
    kinds = {(c.node, name, c.gpu.key) for c in cards for name in offered_profiles(c)}
    types = Counter((node, name) for node, name, _ in kinds)
    return {
        "asked": asked,
        "fixed": [card.name for card in cards if card.mode is Mode.FIXED],
        "foreign": [f"{card.name} {each}" for card, each in instances
                    if not each.is_managed and card.mode is not Mode.FIXED],
        "has_nodes": bool(deployment.nodes),
        "has_plan": deployment.plan is not None,
        "idle": sum(each.work is None for _, each in managed),
        "is_cut": any(card.mode is Mode.MIG for card in cards),
        "mixed": sorted({node for (node, _), n in types.items() if n > 1}),
        "moved": [f"{c.name} {i}" for c, i in managed if i.work and i.state is not State.RUNNING],
        "nameless": any(card.uuid is None for card in cards),
        "overrun": [name for name, told in traffic if told["verdict"] == _TOO_LITTLE],
        "not_running": [f"{c.name} {i}" for c, i in instances if i.state is not State.RUNNING],
        "services": [service.name for service in deployment.services],
        "shared": [card.name for card in shared],
        "supplies": supplies,
        "traffic": traffic,
        "turns": [f"{card.name} {place}" for card in shared
                  for place, held in shares_of(card).items() if len(held) > 1],
        "unclear": [card.name for card in cards
                    if card.mode is Mode.MIG and len(card.gpu.layouts_of(card.counts)) > 1],
        "unequal": [card.name for card in shared if len(card.counts) > 1],
        "uneven": [name for name, found in supplies.items() if len(found) > 1],
        "working": working,
    }  # fmt: skip


def _find_losses(
    deployment: Deployment, asked: list[tuple[FleetGpu, Instance, Work]]
) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield what is lost where a Service spreads requests evenly over uneven pods."""
    for service in sorted(deployment.services, key=lambda each: each.name):
        own = [work.supply_rps for *_, work in asked if work.service == service.name]
        if len({*own}) > 1:
            even, rate = len(own) * min(own), service.rate_rps
            yield service.name, {
                "supplies": ", ".join(map(shown, sorted({*own}))), "even": shown(even),
                "total": shown(sum(own)), "pods": len(own), "rate": shown(rate),
                "verdict": "which is still enough" if even >= rate else _TOO_LITTLE,
            }  # fmt: skip
