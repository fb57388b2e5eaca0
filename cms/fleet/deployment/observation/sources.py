"""Files become facts: what a file is, is told from its content."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from ....errors import FileError, InvalidOption
from ....files.documents import check_head
from ....files.node import Node
from ....files.source import Source, read_source
from ....files.yaml_text import read_yaml_or_json
from ...hardware import Gpu
from ...hardware.catalogue import gpu_called, uncut_gpu
from ...serving.service import Service
from ..checking import check_deployment
from ..export.mig_parted_file import Entry, cuts_of, read_configs
from ..files import deployment_from_json
from ..model import Deployment, FleetGpu, FleetNode
from .age import written
from .facts import GpuFacts, NodeFacts, Stated
from .kubernetes import facts_of_kubernetes, is_kubernetes
from .kubernetes_objects import ASK
from .merge import Observed, merge
from .nvidia_smi import is_nvidia_smi, read_nvidia_smi

__all__ = ["Given", "observe"]

_KINDS = (
    "a deployment of ours, or the output of nvidia-smi (mig -lgi, mig -lci, -L, --query-gpu=... "
    "--format=csv), nvidia-mig-parted export, or kubectl get nodes,pods -A -o json"
)
_MANIFEST = re.compile(r"^(apiVersion|kind|format)\s*:", re.M)
_MIG_PARTED = re.compile(r"^\s*[\"']?mig-configs[\"']?\s*:", re.M)
#: What mig-parted calls the configuration that it exports.
_CURRENT = "current"


class Given(NamedTuple):
    """A file that the user gave.

    Attributes
    ----------
    path : str
        ``-`` is standard input.
    node : str or None
        Whose it is, where the user says so.
    """

    path: str
    node: str | None = None

    @classmethod
    def from_argument(cls, argument: str) -> Given:
        """Read ``NODE=FILE`` or ``FILE``.

        Examples
        --------
        >>> Given.from_argument("node-a=lgi.txt"), Given.from_argument("now.json")
        (Given(path='lgi.txt', node='node-a'), Given(path='now.json', node=None))
        """
        node, equals, path = argument.partition("=")
        if not (equals and node and path) or os.sep in node or Path(argument).exists():
            return cls(argument)
        return cls(path, node)


def observe(
    given: Iterable[Given],
    *,
    node: str | None = None,
    known: Deployment | None = None,
    devices: Mapping[str, Gpu] | None = None,
    device: Gpu | None = None,
    service_label: str | None = None,
    places: Deployment | None = None,
    now: datetime | None = None,
) -> Observed:
    """Read what is there now from files of any known kind.

    Parameters
    ----------
    given : iterable of Given
        Texts of ``nvidia-smi`` of one node are read together, and so are those of a cluster.
    node : str, optional
        Whose files are that have no name, neither in them nor given.
    known : Deployment, optional
        What was meant to run; see `merge`.
    devices : Mapping[str, Gpu], optional
        Devices of one's own by key, beside the catalogue's.
    device : Gpu, optional
        What a GPU is of which no source says so.
    service_label : str, optional
        A label of one's own that names a pod's service.
    places : Deployment, optional
        What was meant to be where, if not `known`; see `merge`.
    now : datetime, optional
        When standard input was read; the clock's time by default. A file that has no time in it
        counts as of when it was last changed.

    Returns
    -------
    Observed
        Nodes of deployments of ours are taken as they are.

    Raises
    ------
    FileError
        If a file is of no kind that is known, or for the reasons of `merge`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from cms.fleet import gpu
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "lgi.txt"
    >>> _ = path.write_text("|   0  MIG 3g.40gb    9    2    4:4     |")
    >>> seen = observe([Given(str(path), "a")], device=gpu("a100-80gb"))
    >>> print(*seen.deployment.gpus(), seen.deployment.node("a").observed is not None)
    a/0 a100-80gb: 3g.40gb@4 of unknown True
    """
    read = _Read(now or datetime.now(UTC), node)
    for each in given:
        read.add(each)
    facts = [*read.facts(), *read.cluster_facts(service_label)]
    for source, entries, name, at in read.cuts:
        if name is None:
            raise _nameless(source.name)
        gpus = _gpus_of(name, facts, known, devices or {}, device)
        cut = _cut_facts(source, entries, name, gpus)
        facts.append(NodeFacts(source.name, Stated(name, source.name), at, gpus=tuple(cut)))
    return _with_own(merge(facts, known, devices=devices, device=device, places=places), read.own)


@dataclass
class _Read:
    """What the files were, gathered."""

    now: datetime
    node: str | None
    texts: dict[str | None, list[tuple[Source, str]]] = field(default_factory=dict)
    own: list[tuple[str, Deployment]] = field(default_factory=list)
    cluster: list[tuple[Source, Sequence[Node], str]] = field(default_factory=list)
    cuts: list[tuple[Source, tuple[Entry, ...], str | None, str]] = field(default_factory=list)

    def add(self, given: Given) -> None:
        """Read a file as what it is."""
        source = read_source(given.path, holds=_KINDS)
        text, at = source.text or "", self._time_of(given.path)
        name = given.node or self.node
        if _MIG_PARTED.search(text):
            self.cuts.append((source, _current(source), name, at))
        elif text.lstrip()[:1] in ("{", "[") or _MANIFEST.search(text):
            documents = read_yaml_or_json(source, holds=_KINDS)
            if given.node is not None:
                raise FileError(
                    source.name, f"it is not of node {given.node!r} alone",
                    expected="the file without a node before it",
                )  # fmt: skip
            if is_kubernetes(documents):
                self.cluster.append((source, documents, at))
                return
            check_head(documents[0], "cms-deployment")
            self.own.append((source.name, _legal(source, deployment_from_json(documents[0]))))
        elif is_nvidia_smi(source):
            self.texts.setdefault(name, []).append((source, at))
        else:
            raise FileError(source.name, "it is nothing that is known here", expected=_KINDS)

    def facts(self) -> Iterator[NodeFacts]:
        """Return what the texts of each node say, with names and times."""
        for name, texts in self.texts.items():
            told = read_nvidia_smi(*(source for source, _ in texts))
            if name is None:
                raise _nameless(told.source)
            at = told.at or min(at for _, at in texts)
            yield replace(told, node=Stated(name, told.source), at=at)

    def cluster_facts(self, service_label: str | None) -> Iterator[NodeFacts]:
        """Return what a cluster says of its nodes; its files are read as one."""
        if not self.cluster:
            return
        documents = [each for _, own, _ in self.cluster for each in own]
        name = ", ".join(source.name for source, _, _ in self.cluster)
        at = min(at for _, _, at in self.cluster)
        found = facts_of_kubernetes(documents, name, service_label)
        if not found:
            raise documents[0].error(
                "no node with GPUs of NVIDIA is told of",
                expected="nodes with nvidia.com/gpu.product among their labels, or nvidia.com/gpu "
                f"among what they can give away: {ASK}",
            )
        for told in found:
            yield replace(told, at=told.at or at)

    def _time_of(self, path: str) -> str:
        if path == "-":
            return written(self.now)
        try:
            return written(datetime.fromtimestamp(Path(path).stat().st_mtime, UTC))
        except (OSError, OverflowError, ValueError) as fault:  # gone again, or before all years
            raise FileError(path, f"when it was written cannot be read: {fault}") from None


def _legal(source: Source, deployment: Deployment) -> Deployment:
    faults = [fault for fault in check_deployment(deployment) if fault.kind != "capacity"]
    if faults:
        raise FileError(
            source.name, f"it cannot be as it is written: {faults[0]}",
            fix=f"see all that is wrong with it: cms check {source.name}",
        )  # fmt: skip
    return deployment


def _nameless(path: str) -> FileError:
    return FileError(
        path, "it does not say of which node it is",
        expected=f"NODE={path}", fix="or --node NAME for all files without a name",
    )  # fmt: skip


def _current(source: Source) -> tuple[Entry, ...]:
    """Choose the configuration that says how the GPUs are cut now."""
    configs = read_configs(source)
    if _CURRENT in configs:
        return configs[_CURRENT]
    if len(configs) != 1:
        names = ", ".join(configs) or "none"
        raise FileError(
            source.name, f"which of its configurations is there now is not said: {names}",
            expected=f"{_CURRENT!r}, as nvidia-mig-parted export calls it, or only one",
        )  # fmt: skip
    return next(iter(configs.values()))


def _gpus_of(
    name: str,
    facts: Sequence[NodeFacts],
    known: Deployment | None,
    devices: Mapping[str, Gpu],
    device: Gpu | None,
) -> tuple[FleetGpu, ...]:
    """Return the GPUs of a node that anything but a mig-parted file tells of, as far as known."""
    found: dict[int, Gpu | None] = {}
    meant = {node.name: node for node in known.nodes}.get(name) if known else None
    for card in meant.gpus if meant else ():
        found[card.index] = card.gpu
    for told in facts:
        if told.node is None or told.node.value != name or not told.is_numbered:
            continue
        for each in told.gpus:
            product = each.product or told.product
            found[each.index] = found.get(each.index) or device
            if product is not None:
                try:
                    found[each.index] = gpu_called(product.value, devices.values())
                except InvalidOption:  # `merge` says so
                    found[each.index] = uncut_gpu(product.value)
    return tuple(FleetGpu(name, index, gpu) for index, gpu in sorted(found.items()) if gpu)


def _cut_facts(
    source: Source, entries: Sequence[Entry], name: str, gpus: Sequence[FleetGpu]
) -> Iterator[GpuFacts]:
    if gpus:
        cuts = cuts_of(entries, FleetNode(name, tuple(gpus)), source.name)
    else:
        cuts = {}
        for entry in entries:
            if entry.devices is None:
                raise FileError(
                    source.name,
                    f"it is of all GPUs of node {name!r}, and how many these are is said nowhere",
                    expected=f"the output of nvidia-smi -L beside it: {name}=list.txt",
                )
            for index in entry.devices:
                if index in cuts:
                    raise FileError(source.name, f"GPU {index} is in two entries", expected="one")
                cuts[index] = entry.cut
    products = _products(entries)
    for index, cut in sorted(cuts.items()):
        mig = Stated("off" if cut is None else "on", source.name)
        told = GpuFacts(index, source.name, product=products.get(index), mig=mig)
        yield told if cut is None else replace(told, counts=dict(cut))


def _products(entries: Sequence[Entry]) -> dict[int, Stated]:
    """What the one PCI id of an entry says of its GPUs."""
    return {
        index: Stated(entry.filters[0], "device-filter")
        for entry in entries
        if len(entry.filters) == 1
        for index in entry.devices or ()
    }


def _with_own(merged: Observed, own: Sequence[tuple[str, Deployment]]) -> Observed:
    """Add the nodes of deployments of ours; no node may be told of twice."""
    if not own:
        return merged
    found = merged.deployment
    where = {
        each.name: ", ".join(each.observed.sources) if each.observed else "another file"
        for each in found.nodes
    }
    services: dict[str, tuple[Service, str]] = {}
    rule = found.rule if found.nodes else None
    for path, deployment in own:
        for node in deployment.nodes:
            if node.name in where:
                raise FileError(
                    path, f"node {node.name!r} is in it, and in {where[node.name]}",
                    expected="one of them",
                    fix="what was meant to run, and not what was seen, goes to --plan",
                )  # fmt: skip
            where[node.name] = path
        if rule is not None and deployment.rule is not None and rule != deployment.rule:
            raise FileError(
                path,
                f"its supplies are counted by the rule {deployment.rule.name!r}, those before it "
                f"by {rule.name!r}",
                expected="the same rule, and the same terms of it",
            )
        rule = rule or deployment.rule
        for service in deployment.services:
            same, before = services.setdefault(service.name, (service, path))
            if same != service:
                raise FileError(
                    path, f"service {service.name!r} is another one than in {before}",
                    expected="one service of a name",
                )  # fmt: skip
    if found.nodes:
        for service in found.services:
            services.setdefault(service.name, (service, "--plan"))
    plan = own[0][1].plan if len(own) == 1 and not found.nodes else None
    nodes = [*found.nodes, *(node for _, each in own for node in each.nodes)]
    every = tuple(service for service, _ in services.values())
    return merged._replace(deployment=Deployment(tuple(nodes), every, rule, plan))
