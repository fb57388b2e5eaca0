"""By ``kubectl``: the GPU Operator cuts a drained node by its label, and Deployments are scaled."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from ...errors import CmsError, InvalidProblem
from ...files.parsed import Parsed
from ...files.source import Source
from ..deployment.export import mig_parted as files
from ..deployment.export.workloads import WorkloadKey, offer_of
from ..deployment.instance import Instance, State
from ..deployment.kubernetes_objects import DeploymentObject, NodeObject, PodObject, read_object
from ..deployment.labels import dns_label
from ..deployment.model import FleetGpu, FleetNode
from .nvidia_smi import list_cuts
from .tool import ActionFailed, Job, Look, Tool, Turn
from .units import Seat, Unit

T = TypeVar("T", NodeObject, PodObject, DeploymentObject)

_CONFIG, _STATE = "nvidia.com/mig.config", "nvidia.com/mig.config.state"
_CORDONED, _WORKLOAD = "cms.cordoned", "cms.workload"
_COST = "controller.kubernetes.io/pod-deletion-cost"


def _ask(job: Job, *words: str, given: str = "") -> Any:
    """Return what `kubectl` answers in JSON."""
    ran = job.shell.here("kubectl", *words, "-o", "json", given=given)
    try:
        return json.loads(ran.out)
    except ValueError:
        raise ActionFailed(f"kubectl {' '.join(words)}: {ran.said}") from None


def _list(job: Job, model: type[T], *words: str) -> list[T]:
    """Return the objects that `kubectl` lists; of pods those that have not ended."""
    told = _ask(job, "get", *words)
    listed = told.get("items", []) if isinstance(told, dict) else None
    if not isinstance(listed, list):
        raise ActionFailed(f"kubectl get {' '.join(words)} answers no list of objects")
    found = [_read(each, model) for each in listed]
    return [one for one in found if getattr(one, "phase", "") not in ("Succeeded", "Failed")]


def _read(value: Any, model: type[T]) -> T:
    try:
        return read_object(Parsed(value, Source("kubectl")), model)
    except CmsError as fault:
        raise ActionFailed(f"kubectl says what is not understood: {fault}") from None


def _migs(offered: Mapping[str, int]) -> dict[str, int]:
    return {name: n for name, n in offered.items() if n and name.startswith("nvidia.com/mig-")}


class GpuOperator(Tool):
    """Nodes are cordoned, drained, labelled for mig-manager, and uncordoned.

    The order is that of its maintainers: https://github.com/NVIDIA/gpu-operator/issues/262.
    """

    def prepare(self, units: Iterable[Unit]) -> None:
        """Have the ConfigMap of mig-manager know every configuration on the way."""
        export = self.job.export
        for name in (export.config_map, export.operator_namespace, *{unit.node for unit in units}):
            files.kubernetes_name(name)
        sides = (side for unit in units for side in (unit.befores, unit.afters))
        configs = files.configs_of(list_cuts(self.job, side) for side in sides)
        where = ("configmap", export.config_map, "-n", export.operator_namespace)
        ran = self.job.shell.here("kubectl", "get", *where, "--ignore-not-found", "-o", "json")
        there = ""
        if ran.out.strip():
            try:
                there = json.loads(ran.out)["data"]["config.yaml"]
            except (ValueError, KeyError, TypeError):
                what = f"the ConfigMap {export.config_map} has no config.yaml"
                raise ActionFailed(f"{what}; kubectl says: {ran.said}") from None
        if all(f"\n  {name}:" in there for name in configs):
            return
        source = Source(export.config_map, there) if there else export.merge
        text = files.text_of(configs) if source is None else files.merged(source, configs)
        _ask(self.job, "apply", "-f", "-", given=files.config_map(text, export))

    def look(self, unit: Unit, *, begun: bool) -> Look:
        """Judge by the labels and by what the node offers; refuse foreign pods that hold GPUs."""
        node = self._node(unit)
        offers = _migs(node.allocatable)
        is_mixed = node.labels.get("nvidia.com/mig.strategy") == "mixed"
        sides = (FleetNode(unit.node, self.job.named(c)) for c in (unit.befores, unit.afters))
        has, gets = (_migs(offer_of(side).resources) for side in sides)
        if not unit.partitions:  # it is of some of the node's GPUs only
            if is_mixed and not Counter(offers) >= Counter(has):
                raise ActionFailed(f"node {unit.node} offers {offers}, needs {has} at least")
            return Look.BEFORE
        is_asked = node.labels.get(_CONFIG) == self._config(unit.afters)
        before, after = (not is_mixed or offers == each for each in (has, gets))
        if is_asked and after and node.labels.get(_STATE) == "success":
            return Look.AFTER
        for pod in self._pods(unit.node):
            holds = {name for c in (*pod.containers, *pod.init_containers) for name in c.limits}
            if holds and not {self.job.service_label, "cms.service"} & pod.labels.keys():
                raise ActionFailed(
                    f"pod {pod.full_name} holds {', '.join(sorted(holds))} of node {unit.node} and "
                    "is not managed by cms: the node is not drained"
                )
        if before and not is_asked:
            return Look.BEFORE
        if begun or is_asked:
            return Look.BETWEEN
        raise ActionFailed(f"node {unit.node} offers {offers}, not what it is to offer before")

    def _config(self, cards: Sequence[FleetGpu]) -> str:
        return files.name_of(list_cuts(self.job, cards))

    def _node(self, unit: Unit) -> NodeObject:
        return _read(_ask(self.job, "get", "node", unit.node), NodeObject)

    def _pods(self, node: str) -> list[PodObject]:
        return _list(self.job, PodObject, "pods", "-A", f"--field-selector=spec.nodeName={node}")

    def close(self, unit: Unit) -> None:
        """Cordon the node, unless somebody else has; a label says that `cms` did."""
        if not self._node(unit).unschedulable:
            self._do("label", "--overwrite", "node", unit.node, f"{_CORDONED}=yes")
            self._do("cordon", unit.node)

    def change(self, unit: Unit) -> str:
        """Drain and label the node, and wait until mig-manager has answered."""
        seconds = f"--timeout={max(1, round(self.job.shell.timeout_s))}s"
        drained = self._do("drain", unit.node, seconds, *self.job.drain_flags.split())
        if any(pod for pod in self._pods(unit.node) if any(c.limits for c in pod.containers)):
            raise ActionFailed(
                f"node {unit.node} could not be drained and stays cordoned ([apply] drain_flags of "
                f"fleet.toml has the flags): {drained}"
            )
        node, wanted = self._node(unit), self._config(unit.afters)
        if node.labels.get(_CONFIG) != wanted:  # the old state must not be taken for the answer
            self._do("label", "--overwrite", "node", unit.node, f"{_CONFIG}={wanted}", f"{_STATE}-")
        elif node.labels.get(_STATE) == "failed":
            raise ActionFailed(
                f"mig-manager has failed with {wanted} on node {unit.node} and does not try again "
                "by itself. Read its log, then give another label first: kubectl label --overwrite "
                f"node {unit.node} {_CONFIG}=all-disabled"
            )
        self.job.shell.wait_until(
            lambda: self._node(unit).labels.get(_STATE) in ("success", "failed"),
            f"mig-manager has not answered on node {unit.node}, which stays cordoned "
            f"(is {self.job.export.config_map} the ConfigMap of the cluster policy?)",
        )
        return f"mig-manager says {self._node(unit).labels.get(_STATE)}"

    def open(self, unit: Unit) -> None:
        """Uncordon the node if `cms` cordoned it."""
        if _CORDONED in self._node(unit).labels:
            self._do("uncordon", unit.node)
            self._do("label", "node", unit.node, f"{_CORDONED}-")

    def _do(self, *words: str) -> str:
        return self.job.shell.here("kubectl", *words).said

    def commands(self, unit: Unit) -> Sequence[str]:
        """Return the calls of kubectl, waits aside."""
        node = unit.node
        drain = f"kubectl drain {node} {self.job.drain_flags}"
        label = f"kubectl label --overwrite node {node} {_CONFIG}={self._config(unit.afters)}"
        return [f"kubectl cordon {node}", drain, label, f"kubectl uncordon {node}"]


class Deployments:
    """Work is started and stopped by the replicas of the Deployments of `cms export`.

    Which pod goes is the scheduler's choice, so pods are counted over all of a Deployment.
    `running`: What is to run now.
    """

    def __init__(self, job: Job, running: Iterable[Seat]) -> None:
        self.job = job
        listed = _list(job, DeploymentObject, "deployments", "-A", "-l", _WORKLOAD)
        self._spaces = {each.name: each.namespace for each in listed}
        self._planned = Counter(map(self._name, running))
        self._asked: dict[tuple[Turn, object], str] = {}  # what, of which seat, of which Deployment
        self._lock = threading.RLock()

    def _name(self, seat: Seat) -> str:
        """Return the name of the Deployment of a seat: that of its node, or that of all nodes."""
        work = seat.instance.work
        assert work is not None
        profile = self.job.node(seat.gpu.node).calls(seat.gpu.gpu, seat.instance.profile)
        kind = work.service, seat.gpu.gpu.key, profile, work.point.processes, work.point.batch
        names = [dns_label(WorkloadKey(*kind, place).label) for place in (seat.gpu.node, "")]
        found = [name for name in names if name in self._spaces]
        if not found:
            raise InvalidProblem(
                f"there is no Deployment {names[1]} or {names[0]} for {seat}; expected those that "
                "'cms export --to kubernetes' writes, or [work] in fleet.toml"
            )
        return found[0]

    def _pods(self, name: str) -> list[PodObject]:
        words = "-n", self._spaces[name], "-l", f"{_WORKLOAD}={name}"
        return _list(self.job, PodObject, "pods", *words)

    def is_done(self, what: Turn, seat: Seat, place: Instance | None) -> bool:
        """Count pods over all of a Deployment, those aside that others have still to end.

        Started: all that are to run are ready. Stopped: no more are left than are to stay.
        """
        with self._lock:
            if (what, seat.key) not in self._asked:
                return False
            name = self._name(seat)
            pods, leaving = self._pods(name), self._leaving(name)
            if what == "start":
                ready = sum(pod.state is State.RUNNING for pod in pods)
                return ready >= self._planned[name] + leaving
            if len(pods) > self._planned[name] + leaving - 1:
                return False
            del self._asked[what, seat.key]
            return True

    def do(self, what: Turn, seat: Seat, place: Instance | None) -> None:
        """Ask for one pod more, or less: of this node if the scheduler heeds a deletion's cost."""
        with self._lock:
            name = self._name(seat)
            self._planned[name] += 1 if what == "start" else -1
            self._asked[what, seat.key] = name
            here = (pod for pod in self._pods(name) if pod.node_name == seat.gpu.node)
            for pod in [*here][: self._leaving(name)] if what == "stop" else ():
                words = "-n", pod.namespace, f"{_COST}=-1000"
                self.job.shell.here("kubectl", "annotate", "--overwrite", "pod", pod.name, *words)
            patch = json.dumps({"spec": {"replicas": self._planned[name]}})
            how = "-n", self._spaces[name], "--type=merge", "-p", patch
            self.job.shell.here("kubectl", "patch", "deployment", name, *how)

    def _leaving(self, name: str) -> int:
        """Count the pods of a Deployment that have still to end."""
        return sum(what == "stop" and named == name for (what, _), named in self._asked.items())
