"""What exporters are given and give, how templates are filled in, and what all exporters refuse."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ....errors import InvalidProblem
from ....files.source import Source, quoted
from ....values.frozen import FrozenMap
from ..model import Deployment, FleetGpu, FleetNode

if TYPE_CHECKING:
    from jinja2 import Environment


_TEMPLATES = Path(__file__).parent / "templates"
_WORD = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._+-]*[A-Za-z0-9])?", re.ASCII)
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
        loader=FileSystemLoader(_TEMPLATES), undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    made.filters |= {"scalar": write_scalar, "some": list_some}
    return made


def render(template: str, **values: object) -> str:
    """Fill in a template."""
    return _environment().get_template(template).render(values)


def list_some(names: Collection[str]) -> str:
    """List a few names, and say how many more there are."""
    first = list(names)[:5]
    return ", ".join(first) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


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


def name_by_driver(deployment: Deployment) -> Deployment:
    """Return a deployment whose profiles have the names that each node's driver knows."""
    named = {(c.node, c.index): named_by(node, c) for node in deployment.nodes for c in node.gpus}
    return deployment.with_gpus(named)


def named_by(node: FleetNode, card: FleetGpu) -> FleetGpu:
    """Return a GPU whose profiles have the names that its node's driver knows."""
    held = (replace(i, profile=node.calls(card.gpu, i.profile)) for i in card.instances)
    return replace(card, instances=tuple(held))


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
