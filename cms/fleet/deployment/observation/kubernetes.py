"""What ``kubectl get -o json`` printed: nodes with GPUs, their labels and counts, and pods."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ....files.numerals import is_whole
from ....files.parsed import Parsed
from ....values.frozen import FrozenMap
from ..instance import WHOLE
from ..kubernetes_objects import ClaimObject, NodeObject, PodObject, SliceObject, read_object
from ..labels import HOSTNAME, POINT_LABEL, SERVICE_LABEL
from .counting import MOST_GPUS
from .dra import Device, devices_of, gpus_of, results_of, where
from .facts import GpuFacts, NodeCounts, NodeFacts, PodFacts, Statement

ASK = "kubectl get nodes,pods,deployments,resourceslices,resourceclaims -A -o json"
_PREFIX = "nvidia.com/"
_MIG = re.compile(r"((?:\d+c\.)?\d+g\.\d+gb(?:-[a-z.]+)?)(?:\.([a-z.]+))?", re.ASCII)
#: What is read of a cluster.
_MODELS: Mapping[str, Any] = {
    "Node": NodeObject, "Pod": PodObject, "ResourceSlice": SliceObject,
    "ResourceClaim": ClaimObject,
}  # fmt: skip


class _Cluster(NamedTuple):
    """The objects of all documents by name, each with its place."""

    nodes: dict[str, tuple[Parsed, NodeObject]]
    pods: dict[str, tuple[Parsed, PodObject]]
    slices: dict[str, tuple[Parsed, SliceObject]]
    claims: dict[str, tuple[Parsed, ClaimObject]]
    listed: set[str]  # kinds, also those of which there is none

    def single(self, name: str) -> str | None:
        """Return the profile that ``nvidia.com/gpu`` stands for on a node, if not for a GPU."""
        product = _labels(self.nodes[name][1]).get("gpu.product", "")
        return _profile_of(product.removesuffix("-SHARED").partition("-MIG-")[2])


class _PodHolding(NamedTuple):
    """What a pod holds, and where it says so."""

    node: str
    pod: PodFacts
    devices: tuple[Device, ...]
    at: Parsed


def read_kubernetes(
    documents: Sequence[Parsed], source: str, service_label: str | None = None
) -> list[NodeFacts]:
    """Read what a cluster knows of its nodes with GPUs, from all of its objects.

    `service_label` names a pod's service where it has no ``cms.service``.
    """
    cluster = _gather(documents)
    devices = devices_of(cluster.slices.values())
    held: defaultdict[str, list[_PodHolding]] = defaultdict(list)
    for each in _held_in(cluster, devices, service_label):
        held[each.node].append(each)
    listed: defaultdict[str, list[Device]] = defaultdict(list)
    for device in devices.values():
        listed[device.node].append(device)
        name, what = device.node, ""
        if name not in cluster.nodes:
            what = f"a ResourceSlice lists devices of node {name!r} ({device.where}), which is not"
        elif device.is_possible and not {"Pod", "ResourceClaim"} & cluster.listed:
            what = f"the GPUs of node {name!r} are cut as they are claimed ({device.where}), and no"
            what += " claim or pod is"
        if what:
            raise documents[0].error(f"{what} told of", expected=ASK)
    found = [
        _node_facts(cluster, name, listed[name], held[name], source)
        for name, (_, each) in sorted(cluster.nodes.items())
        if name in listed or _is_nvidia(each)
    ]
    spaces = {name.partition("/")[0] for name in cluster.pods}
    for at, facts in enumerate(found if len(spaces) == 1 else ()):
        taken = sum(len(pod.profiles) for pod in facts.pods or ())
        if not facts.allocatable or taken < sum(facts.allocatable.values()):  # something seems free
            said = (
                f"all pods told of are of namespace {', '.join(spaces)}: unless they were listed "
                "with -A, what pods of other namespaces hold counts as free"
            )
            found[at] = replace(facts, unknown=(*facts.unknown, said))
            break
    return found


def _profile_of(written: str) -> str | None:
    """Return a profile from a name that may have no plus: ``1g.10gb+me`` of ``1g.10gb.me``."""
    match = _MIG.fullmatch(written)
    return match and "+".join(filter(None, match.groups()))


def _profile_of_resource(resource: str, single: str | None) -> str | None:
    """Return the profile of a resource, or WHOLE; None if it is of no GPU.

    `single`: The profile that ``nvidia.com/gpu`` stands for on a node, if not for a GPU.
    """
    if resource in ("nvidia.com/gpu", "nvidia.com/gpu.shared"):
        return single or WHOLE
    return _profile_of(resource.removeprefix(f"{_PREFIX}mig-"))


def _count_profiles(resources: Mapping[str, int], single: str | None) -> Counter[str]:
    """Count what the resources of a node stand for, by profile."""
    found = Counter[str]()
    for resource, count in resources.items():
        if (profile := _profile_of_resource(resource, single)) is not None:
            found[profile] += count
    return found


def _gather(documents: Sequence[Parsed]) -> _Cluster:
    """Read the objects of all documents."""
    found: dict[str, dict[str, tuple[Parsed, Any]]] = {kind: {} for kind in _MODELS}
    listed = set()
    for document in documents:
        outer, items = _kind(document), [document]
        if outer.endswith("List"):
            inside = document.at("items")
            if inside.value is None:
                what = f'{document.label()} has no "items"'
                raise document.error(what, expected='the key "items"')
            if not isinstance(inside.value, list | tuple):
                raise document.wrong("an array", "items")
            items = [document.at("items", index) for index in range(len(inside.value))]
        listed.add(outer.removesuffix("List"))
        for item in items:
            if not isinstance(item.value, dict):
                raise item.wrong("an object of Kubernetes")
            kind = _kind(item) if "kind" in item.value else outer.removesuffix("List")
            if kind not in _MODELS:
                continue
            listed.add(kind)
            one = read_object(item, _MODELS[kind])
            before, _ = found[kind].setdefault(one.full_name, (item, one))
            if before is not item:
                raise item.error(
                    f"{item.label()}: {kind} {one.full_name!r} is told of twice, also in "
                    f"{where(before)}",
                    expected="what one cluster said at one time",
                )
    nodes, pods, slices, claims = found.values()
    return _Cluster(nodes, pods, slices, claims, listed)


def _kind(item: Parsed) -> str:
    if not isinstance(kind := item.at("kind").value, str):
        raise item.wrong("a text", "kind")
    return kind


def _labels(node: NodeObject) -> dict[str, str]:
    """Return what NVIDIA's labels say, by their names without the prefix."""
    every = node.labels.items()
    return {key.removeprefix(_PREFIX): said for key, said in every if key.startswith(_PREFIX)}


def _is_nvidia(node: NodeObject) -> bool:
    labels, offered = _labels(node), (f"{_PREFIX}gpu", f"{_PREFIX}mig-")
    is_told = "gpu.product" in labels or labels.get("gpu.present") == "true"
    return is_told or any(name.startswith(offered) for name in node.allocatable)


def _node_facts(
    cluster: _Cluster, name: str, devices: Sequence[Device], held: Sequence[_PodHolding],
    source: str,
) -> NodeFacts:  # fmt: skip
    at, node = cluster.nodes[name]
    here, single = where(at), cluster.single(name)
    every, labels = dict(node.labels), _labels(node)
    if zone := every.get("topology.kubernetes.io/zone"):
        every.setdefault("zone", zone)

    def label(key: str, value: str | None = None) -> Statement | None:
        """What a label says, or what follows from it."""
        if key not in labels:
            return None
        said = labels[key] if value is None else value
        return Statement(said, f'{here}.metadata.labels["{_PREFIX}{key}"]')

    product = labels.get("gpu.product", "")
    number = int(labels["gpu.count"]) if is_whole(labels.get("gpu.count", "")) else 0
    ways = [way for key, way in labels.items() if key.endswith("sharing-strategy")]
    ways = [way for way in ways if way not in ("", "none")]
    unfit = None
    if ways or product.endswith("-SHARED"):  # what is counted are shares
        how = [*ways, "some way"][0]
        unfit = Statement(f"its GPUs are shared by {how}, and by which pods is not known", here)
    allocatable = _count_profiles(node.allocatable, single)
    capacity = allocatable | _count_profiles(node.capacity, single)
    if unfit is None:
        _refuse_more_than_there_is(name, capacity, held)
    gpus = gpus_of(devices, [each for pod in held for each in pod.devices])
    is_fit, is_numbered = unfit is None, not gpus
    unknown = [*_hindrances(node, devices)]
    counted = None if gpus or unfit else _counted(here, labels, number, single, capacity)
    if not (gpus or +allocatable or +capacity):
        unknown.append("no pod is given any of its GPUs: it has no device plug-in that runs")
    if product.endswith("-MIG-INVALID"):
        unknown.append("its device plugin has the strategy single, which its GPUs do not fit")
    plain = product.removesuffix("-SHARED").partition("-MIG-")[0]
    if unfit is not None and not gpus and single is None:
        gpus = tuple(GpuFacts(index, here) for index in range(min(number, MOST_GPUS)))
    parts = (labels.get(f"cuda.driver.{part}", "") for part in ("major", "minor", "rev"))
    driver = label("cuda.driver-version.full")
    driver = driver or label("cuda.driver.major", ".".join(filter(None, parts)))
    driver = driver or next(filter(None, (each.stated("driverVersion") for each in devices)), None)
    return NodeFacts(
        source, Statement(name, f"{here}.metadata.name"), driver=driver,
        product=None if gpus else label("gpu.product", plain), labels=FrozenMap(every), gpus=gpus,
        pods=tuple(each.pod for each in held) if is_fit and "Pod" in cluster.listed else None,
        allocatable=dict(sorted(allocatable.items())) if is_fit else None,
        capacity=dict(sorted(capacity.items())) if is_fit else None, counted=counted,
        mig_state=label("mig.config.state"), unknown=tuple(unknown), unfit=unfit,
        is_numbered=is_numbered,
    )  # fmt: skip


def _hindrances(node: NodeObject, devices: Iterable[Device]) -> Iterator[str]:
    """Say why no new pod may come to a node, or to some of its devices."""
    if node.unschedulable:
        yield "it is cordoned: no new pod comes to it"
    for each in node.conditions:
        if each.get("type") == "Ready" and (status := each.get("status")) != "True":
            yield f"it is not ready (Ready is {status}): what is told of it may be old"
    for taint in dict.fromkeys(device.taint for device in devices if device.taint is not None):
        places = [device.where for device in devices if device.taint == taint]
        more = f" and {len(places) - 1} more" if len(places) > 1 else ""
        yield f"no new pod is given {places[0]}{more}: taint {taint}"


def _counted(
    at: str, labels: Mapping[str, str], number: int, single: str | None, capacity: Mapping[str, int]
) -> NodeCounts | None:
    """Return what the counts of a node may tell of its GPUs; None where they tell nothing."""
    if single is not None:  # its gpu.count counts instances as well
        return NodeCounts(at, None, {name: n for name, n in capacity.items() if name == single})
    if not 0 < number <= MOST_GPUS:
        return None
    strategy, product = labels.get("mig.strategy"), labels.get("gpu.product", "-MIG-")
    # under the strategy single all GPUs are cut, which their product then says, or none is
    is_uncut = strategy == "single" and "-MIG-" not in product
    if is_uncut or labels.get("mig.capable") == "false":  # whatever is counted
        return NodeCounts(at, number, {WHOLE: number})
    return NodeCounts(at, number, capacity) if strategy == "mixed" else None


def _refuse_more_than_there_is(
    name: str, capacity: Mapping[str, int], held: Sequence[_PodHolding]
) -> None:
    taken: Counter[str] = Counter()
    for each in held:
        placed = Counter(profile for _, profile, _ in each.pod.places)
        for profile, count in (Counter(each.pod.profiles) - placed).items():
            taken[profile] += count
            if taken[profile] > capacity.get(profile, 0):
                raise each.at.error(
                    f"{each.at.label()}: pod {each.pod.name} holds {profile}, and then "
                    f"{taken[profile]} of these are held of node {name!r}, which has "
                    f"{capacity.get(profile, 0)}",
                    expected="nodes and pods of one time; a change of the GPUs may have left a "
                    "stale key",
                )  # fmt: skip


def _held_in(
    cluster: _Cluster, devices: Mapping[tuple[str, str], Device], service_label: str | None
) -> Iterator[_PodHolding]:
    """Yield the pods that hold GPUs, or parts of them."""
    given = {name: tuple(results_of(claim, devices)) for name, claim in cluster.claims.items()}
    users: set[str] = set()
    are_told = "ResourceClaim" in cluster.listed
    for name, (at, pod) in cluster.pods.items():
        node = pod.node_name
        if not node or pod.phase in ("Succeeded", "Failed"):
            continue
        own: list[Device] = []
        named = [each.get("resourceClaimName") for each in (*pod.claims, *pod.made_claims)]
        for each in filter(None, (*named, pod.extended_claim)):
            claim = f"{pod.namespace}/{each}"
            if claim not in given:
                what = f"pod {name} holds the claim {claim!r}, which is not told of"
                expected = "claims of the same time" if are_told else ASK
                raise at.error(f"{at.label()}: {what}", expected=expected)
            users.add(claim)
            own += given[claim]
        resources = _resources(pod)
        if node not in cluster.nodes:
            if own or any(_profile_of_resource(each, None) for each in resources):
                at = at.at("spec").at("nodeName")
                what = f"pod {name} holds GPUs of node {node!r}, which is not told of"
                raise at.error(f"{at.label()}: {what}", expected=ASK)
            continue
        for device in own:
            if device.node != node:
                what = f"holds a device of {device.node!r} ({device.where})"
                raise at.error(
                    f"{at.label()}: pod {name} runs on node {node!r}, and {what}",
                    expected="objects of one time",
                )
        places = tuple(device.held for device in own)
        counted = _count_profiles(resources, cluster.single(node)).elements()
        profiles = (*counted, *(profile for _, profile, _ in places))
        if profiles:
            service = pod.labels.get(SERVICE_LABEL, pod.labels.get(service_label or SERVICE_LABEL))
            facts = PodFacts(
                name, where(at), profiles, service, pod.labels.get(POINT_LABEL), pod.state, places,
                HOSTNAME in pod.node_selector,
            )  # fmt: skip
            yield _PodHolding(node, facts, tuple(own), at)
    for claim, held in given.items():  # of some pods their claims alone tell
        at, found = cluster.claims[claim]
        if held and found.user and claim not in users:
            # several may share it, and one of them is enough to keep it from us
            places = tuple(device.held for device in held)
            pod_name, parts = f"{found.namespace}/{found.user}", tuple(p for _, p, _ in places)
            facts = PodFacts(pod_name, where(at), parts, places=places)
            yield _PodHolding(held[0].node, facts, held, at)


def _resources(pod: PodObject) -> dict[str, int]:
    """Count what a pod holds through the device plugin: containers together, or one before them."""
    served = {each.get("resourceName") for each in pod.extended_resources}
    together: Counter[str] = Counter()
    before: Counter[str] = Counter()
    for each in pod.init_containers:
        before |= (now := together + Counter(each.limits))
        if each.restart_policy == "Always":  # it runs beside the others
            together = now
    for each in pod.containers:
        together += Counter(each.limits)
    return {name: n for name, n in (together | before).items() if name not in served}
