"""Files become facts: what a file is, is told from its content."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from ....errors import FileError
from ....files.parsed import Parsed
from ....files.source import Source, read_source
from ...hardware import Gpu
from ...hardware.yaml_text import read_yaml_or_json
from ..checking import find_impossible
from ..document import deployment_from_json
from ..model import Deployment, FleetGpu
from .age import format_moment
from .devices import find_gpu
from .facts import NodeFacts, Statement
from .kubernetes import ASK, read_kubernetes
from .merge import ObservationResult, merge
from .mig_parted import Entry, current_config, is_mig_parted, read_cuts
from .nvidia_smi import is_nvidia_smi, read_nvidia_smi
from .pods import MergeContext

_KINDS = (
    "a deployment, or the output of nvidia-smi (mig -lgi, -q -x, -L), nvidia-mig-parted export, or "
    "kubectl get nodes,pods -A -o json"
)
_MANIFEST = re.compile(r"^(apiVersion|kind|format)\s*:", re.M)
_KUBERNETES = ("Node", "Pod", "Deployment", "ResourceSlice", "ResourceClaim", "")


class SourceFile(NamedTuple):
    """A file that the user gave, and whose it is, where the user says so."""

    path: str  # ``-`` is standard input
    node: str | None = None

    @classmethod
    def from_argument(cls, argument: str) -> SourceFile:
        """Read ``NODE=FILE`` or ``FILE``.

        Examples
        --------
        >>> SourceFile.from_argument("node-a=lgi.txt"), SourceFile.from_argument("now.json")
        (SourceFile(path='lgi.txt', node='node-a'), SourceFile(path='now.json', node=None))
        """
        node, equals, path = argument.partition("=")
        if not (equals and node and path) or os.sep in node or Path(argument).exists():
            return cls(argument)
        return cls(path, node)


def observe(
    given: Iterable[SourceFile], *, node: str | None = None, known: Deployment | None = None,
    devices: Mapping[str, Gpu] | None = None, device: Gpu | None = None,
    service_label: str | None = None, places: Deployment | None = None,
) -> ObservationResult:  # fmt: skip
    """Read the instances of a fleet from files of any known kind.

    Texts of ``nvidia-smi`` of one node are read together, and so are those of a cluster. A
    deployment is taken as it is, and stands alone. `node` is whose files are that have no name, and
    `service_label` names a pod's service. Standard input counts as of now, a file as of when it was
    last changed. For the other parameters see `merge`.
    """
    texts: dict[str | None, list[tuple[Source, str]]] = {}
    cluster: list[tuple[Source, Sequence[Parsed], str]] = []
    configs: list[tuple[Source, tuple[Entry, ...], str | None, str]] = []
    given = tuple(given)
    for each in given:
        source = read_source(each.path, holds=_KINDS)
        at, name = _time_of(each.path), each.node or node
        if is_mig_parted(source.text):
            configs.append((source, current_config(source), name, at))
        elif source.text.lstrip()[:1] in ("{", "[") or _MANIFEST.search(source.text):
            documents = read_yaml_or_json(source, holds=_KINDS)
            if each.node is not None:
                what = f"it is not of node {each.node!r} alone"
                raise FileError(source.name, what, expected="the file without a node before it")
            if _is_kubernetes(documents):
                cluster.append((source, documents, at))
                continue
            if len(documents) > 1:
                raise documents[1].error("a second document begins here", expected="one alone")
            found = read_possible(documents[0])
            if len(given) > 1:
                what = f"it is a deployment, and {len(given) - 1} more sources are given"
                alone, fix = "a deployment alone", "what was meant to run goes to --plan"
                raise FileError(source.name, what, expected=alone, fix=fix)
            return ObservationResult(found, ())
        elif is_nvidia_smi(source):
            texts.setdefault(name, []).append((source, at))
        else:
            raise FileError(source.name, "no tool prints such a file", expected=_KINDS)
    facts = []
    for name, own in texts.items():
        told = read_nvidia_smi(*(source for source, _ in own))
        times = [*(at for _, at in own), *filter(None, (told.at,))]
        facts.append(_named(told, name, min(times)))
    if cluster:
        facts += _cluster_facts(cluster, service_label)
    context = MergeContext(known or Deployment(()), devices or {}, device)
    for source, entries, name, at in configs:
        gpus = () if name is None else _gpus_of(name, facts, context)
        cut = () if name is None else tuple(read_cuts(source, entries, name, gpus))
        facts.append(_named(NodeFacts(source.name, gpus=cut), name, at))
    return merge(facts, known, devices=devices, device=device, places=places)


def _named(told: NodeFacts, name: str | None, at: str) -> NodeFacts:
    return replace(told, node=None if name is None else Statement(name, told.source), at=at)


def _time_of(path: str) -> str:
    if path == "-":
        return format_moment(datetime.now(UTC))
    try:
        return format_moment(datetime.fromtimestamp(Path(path).stat().st_mtime, UTC))
    except (OSError, OverflowError, ValueError) as fault:  # gone again, or before all years
        raise FileError(path, f"when it was written cannot be read: {fault}") from None


def _is_kubernetes(documents: Sequence[Parsed]) -> bool:
    """Whether documents are what ``kubectl get -o json`` (or ``yaml``) prints of a cluster."""
    objects = [each.value for each in documents if isinstance(each.value, dict)]
    kinds = [str(each.get("kind")) for each in objects if isinstance(each.get("apiVersion"), str)]
    known = {kind.removesuffix("List") for kind in kinds} & {*_KUBERNETES}
    return len(kinds) == len(documents) and bool(known)


def _cluster_facts(
    cluster: Sequence[tuple[Source, Sequence[Parsed], str]], service_label: str | None
) -> list[NodeFacts]:
    """Return what a cluster says of its nodes; its files are read as one."""
    documents = [each for _, own, _ in cluster for each in own]
    name = ", ".join(source.name for source, _, _ in cluster)
    found = read_kubernetes(documents, name, service_label)
    if not found:
        labelled = "nodes with nvidia.com/gpu.product among their labels, or nvidia.com/gpu among"
        expected = f"{labelled} what they can give away: {ASK}"
        raise documents[0].error("no node with GPUs of NVIDIA is told of", expected=expected)
    return [replace(told, at=min(at for _, _, at in cluster)) for told in found]


def read_possible(document: Parsed) -> Deployment:
    """Read a deployment that can be as it is written."""
    found, path = deployment_from_json(document), document.source.name
    if why := find_impossible(found):
        fix = f"see all that is wrong with it: cms check {path}"
        raise FileError(path, f"it cannot be as it is written: {why}", fix=fix)
    return found


def _gpus_of(node: str, facts: Iterable[NodeFacts], context: MergeContext) -> tuple[FleetGpu, ...]:
    """Return the GPUs of a node that anything but a mig-parted file tells of, as far as known."""
    found: dict[int, Gpu | None] = {card.index: card.gpu for card in context.meant(node)}
    own = [told for told in facts if told.node and told.node.value == node and told.is_numbered]
    for each, whole in ((each, told.product) for told in own for each in told.gpus):
        product = each.product or whole
        gpu = find_gpu(context, product.value) if product else found.get(each.index)
        found[each.index] = gpu or context.device
    return tuple(FleetGpu(node, index, gpu) for index, gpu in sorted(found.items()) if gpu)
