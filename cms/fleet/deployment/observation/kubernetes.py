"""What ``kubectl get -o json`` printed: nodes, the pods on them, and what these hold of GPUs.

What a device plugin gives a pod is known by profile and node; what a claim gives it, exactly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ....files.node import Node
from ....files.numerals import is_whole
from ....values.frozen import FrozenMap
from ..instance import WHOLE
from .counting import MOST_GPUS
from .facts import SHARED, Counted, GpuFacts, NodeFacts, Stated
from .kubernetes_devices import Device, devices_of, gpus_of, where
from .kubernetes_objects import (
    ASK,
    PREFIX,
    Cluster,
    Names,
    array_of,
    count_of,
    entries_of,
    labels_of,
    profile_of,
    text_of,
    value_at,
)
from .kubernetes_pods import Held, held_in

__all__ = ["facts_of_kubernetes", "is_kubernetes"]

_READ = ("Node", "Pod", "Deployment", "ResourceSlice", "ResourceClaim")


def is_kubernetes(documents: Sequence[Node]) -> bool:
    """Whether documents are what ``kubectl get -o json`` (or ``yaml``) prints of a cluster.

    Examples
    --------
    >>> is_kubernetes([Node({"apiVersion": "v1", "kind": "List", "items": []})])
    True
    >>> is_kubernetes([Node({"version": "v1", "mig-configs": {}})])
    False
    """
    kinds = [
        each.value.get("kind")
        for each in documents
        if isinstance(each.value, dict) and isinstance(each.value.get("apiVersion"), str)
    ]
    return len(kinds) == len(documents) and any(
        isinstance(kind, str) and (kind == "List" or kind.removesuffix("List") in _READ)
        for kind in kinds
    )


def facts_of_kubernetes(
    documents: Sequence[Node], source: str, service_label: str | None = None
) -> list[NodeFacts]:
    """Read what a cluster knows of its nodes with GPUs.

    Parameters
    ----------
    documents : sequence of Node
        Lists or single objects, all that there are of one cluster. Kinds other than Node, Pod,
        ResourceSlice and ResourceClaim are passed over.
    source : str
        What they were read from.
    service_label : str, optional
        A label of one's own that names a pod's service, where it has no ``cms.service``.

    Returns
    -------
    list of NodeFacts
        By name; nodes without anything of NVIDIA's are left out.

    Raises
    ------
    FileError
        With path and line: what is malformed, a pod that holds GPUs of a node that is not there or
        more than the node has, a claim on a device that no slice lists, a slice of a node that is
        not there.

    Examples
    --------
    >>> pod = {
    ...     "apiVersion": "v1",
    ...     "kind": "Pod",
    ...     "metadata": {"name": "a-1", "namespace": "prod", "labels": {"cms.service": "chat"}},
    ...     "spec": {
    ...         "nodeName": "n",
    ...         "containers": [
    ...             {"name": "c", "resources": {"limits": {"nvidia.com/mig-3g.40gb": "1"}}}
    ...         ],
    ...     },
    ...     "status": {"phase": "Running"},
    ... }
    >>> node = {
    ...     "apiVersion": "v1",
    ...     "kind": "Node",
    ...     "metadata": {"name": "n", "labels": {"nvidia.com/gpu.product": "NVIDIA-A30"}},
    ...     "status": {"allocatable": {"nvidia.com/mig-3g.40gb": "2"}},
    ... }
    >>> (facts,) = facts_of_kubernetes([Node(pod), Node(node)], "cluster.json")
    >>> facts.product.value, facts.allocatable, facts.pods[0].service, str(facts.pods[0].state)
    ('NVIDIA-A30', {'3g.40gb': 2}, 'chat', 'starting')
    """
    cluster = _gathered(documents)
    devices = devices_of(cluster.slices.values())
    names = {name: _names(node) for name, node in cluster.nodes.items()}
    held: dict[str, list[Held]] = {}
    for each in held_in(cluster, devices, names, service_label):
        held.setdefault(each.node, []).append(each)
    listed: dict[str, list[Device]] = {}
    for device in devices.values():
        listed.setdefault(device.node, []).append(device)
    for name, own in listed.items():
        if name not in cluster.nodes:
            raise documents[0].error(
                f"a ResourceSlice lists devices of node {name!r} ({own[0].where}), which is not "
                "told of",
                expected=ASK,
            )
        if not (cluster.lists_pods or cluster.lists_claims):
            for device in own:
                if device.is_possible:
                    raise documents[0].error(
                        f"the GPUs of node {name!r} are cut as they are claimed ({device.where}), "
                        "and no claim or pod is told of",
                        expected=ASK,
                    )
    found = []
    for name, node in sorted(cluster.nodes.items()):
        own, mine = listed.get(name, []), held.get(name, [])
        if not own and not _is_nvidia(node):
            continue
        found.append(_node_facts(name, node, names[name], own, mine, source, cluster))
    return _with_doubt(found, {name.partition("/")[0] for name in cluster.pods})


def _with_doubt(found: list[NodeFacts], spaces: set[str]) -> list[NodeFacts]:
    """Say once that pods may be missing, if all are of one namespace and something seems free."""
    for at, facts in enumerate(found):
        held = sum(len(pod.profiles) for pod in facts.pods or ())
        if len(spaces) == 1 and (not facts.allocatable or held < sum(facts.allocatable.values())):
            (space,) = spaces
            said = (
                f"all pods told of are of namespace {space}: unless they were listed with -A, "
                "what pods of other namespaces hold counts as free"
            )
            found[at] = replace(facts, unknown=(*facts.unknown, said))
            break
    return found


# --- objects --------------------------------------------------------------------------------------


def _gathered(documents: Sequence[Node]) -> Cluster:
    cluster = Cluster()
    kept = {
        "Node": cluster.nodes,
        "Pod": cluster.pods,
        "ResourceSlice": cluster.slices,
        "ResourceClaim": cluster.claims,
    }
    for document in documents:
        outer = document.at("kind").text()
        cluster.lists_pods |= outer == "PodList"
        cluster.lists_claims |= outer == "ResourceClaimList"
        is_list = outer.endswith("List")
        for item in document.at("items").array() if is_list else [document]:
            if not isinstance(item.value, dict):
                raise item.wrong("an object of Kubernetes")
            kind = item.at("kind").text() if "kind" in item.value else outer.removesuffix("List")
            objects = kept.get(kind)
            if objects is None:
                continue
            meta = item.at("metadata")
            name = meta.at("name").text()
            if kind in ("Pod", "ResourceClaim"):
                name = f"{text_of(meta, 'namespace') or 'default'}/{name}"
            if name in objects:
                raise item.error(
                    f"{item.label}: {kind} {name!r} is told of twice, also in "
                    f"{where(objects[name])}",
                    expected="what one cluster said at one time",
                )
            objects[name] = item
            cluster.lists_pods |= kind == "Pod"
            cluster.lists_claims |= kind == "ResourceClaim"
    return cluster


# --- nodes ----------------------------------------------------------------------------------------


def _is_nvidia(node: Node) -> bool:
    resources = entries_of(node, "status", "allocatable")
    return (
        f"{PREFIX}gpu.product" in labels_of(node)
        or text_of(node, "metadata", "labels", f"{PREFIX}gpu.present") == "true"
        or any(name.startswith((f"{PREFIX}gpu", f"{PREFIX}mig-")) for name, _ in resources)
    )


def _names(node: Node) -> Names:
    labels = labels_of(node)
    product = labels.get(f"{PREFIX}gpu.product")
    written = "" if product is None else product.text()
    _, _, part = written.removesuffix("-SHARED").partition("-MIG-")
    sharing = labels.get(f"{PREFIX}gpu.sharing-strategy")
    is_shared = sharing.text() not in ("", "none") if sharing else written.endswith("-SHARED")
    return Names(profile_of(part), is_shared)


def _node_facts(
    name: str,
    node: Node,
    names: Names,
    devices: Sequence[Device],
    held: Sequence[Held],
    source: str,
    cluster: Cluster,
) -> NodeFacts:
    labels = labels_of(node)
    texts = {key: value.text() for key, value in labels.items()}
    if zone := texts.get("topology.kubernetes.io/zone"):
        texts.setdefault("zone", zone)
    unfit = _shared_parts(labels, names)
    allocatable = _counts(names, node.at("status").at("allocatable").entries())
    capacity = allocatable | _counts(names, entries_of(node, "status", "capacity"))
    if unfit is None:
        _refuse_more_than_there_is(name, capacity, held)
    gpus = gpus_of(devices, [each for pod in held for each in pod.devices])
    unknown = [*_hindrances(node, devices)]
    counted = None if gpus else _counted(node, texts, names, capacity)
    if not (gpus or +allocatable or +capacity):
        unknown.append("no pod is given any of its GPUs: it has no device plug-in that runs")
    shared, given = capacity.pop(SHARED, 0), allocatable.pop(SHARED, 0)
    if given < shared:
        unknown.append(f"{shared - given} of {shared} shares of its GPUs cannot be given away")
    if given:
        how = texts.get(f"{PREFIX}gpu.sharing-strategy", "some way")
        said = (
            f"its GPUs are shared by {how}: which pods share which of them, and in what parts, is "
            "not known"
        )
        if any(SHARED in each.pod.profiles for each in held):
            unknown.append(f"{said}, so that all of them count as another's")
        else:
            unfit = unfit or Stated(said, where(node))
    if texts.get(f"{PREFIX}gpu.product", "").endswith("-MIG-INVALID"):
        unknown.append("its device plugin has the strategy single, which its GPUs do not fit")
    is_numbered = not gpus
    if unfit is not None and not gpus and names.single is None:
        written = texts.get(f"{PREFIX}gpu.count", "")
        number = int(written) if is_whole(written) else 0
        gpus = tuple(GpuFacts(index, where(node)) for index in range(min(number, MOST_GPUS)))
    state = labels.get(f"{PREFIX}mig.config.state")
    return NodeFacts(
        source,
        Stated(name, where(node.at("metadata").at("name"))),
        driver=_driver(labels, devices),
        product=None if gpus else _product(labels),
        labels=FrozenMap(texts),
        gpus=gpus,
        pods=tuple(each.pod for each in held) if cluster.lists_pods and unfit is None else None,
        allocatable=dict(sorted(allocatable.items())) if unfit is None else None,
        capacity=dict(sorted(capacity.items())) if unfit is None else None,
        counted=None if unfit is not None else counted,
        mig_state=None if state is None else Stated(state.text(), where(state)),
        unknown=tuple(unknown),
        unfit=unfit,
        is_numbered=is_numbered,
    )


def _shared_parts(labels: Mapping[str, Node], names: Names) -> Stated | None:
    """Say whether parts of a node's GPUs are shared: what is counted there are no parts."""
    for key, value in labels.items():
        resource, _, what = key.removeprefix(PREFIX).rpartition(".")
        is_of_parts = resource.startswith("mig-") or (resource == "gpu" and names.single)
        if what == "sharing-strategy" and is_of_parts and value.text() not in ("", "none"):
            how = f"parts of its GPUs are shared by {value.text()}, and nobody knows by whom"
            return Stated(how, where(value))
    return None


def _product(labels: Mapping[str, Node]) -> Stated | None:
    product = labels.get(f"{PREFIX}gpu.product")
    if product is None:
        return None
    written, _, _ = product.text().removesuffix("-SHARED").partition("-MIG-")
    return Stated(written, where(product))


def _driver(labels: Mapping[str, Node], devices: Sequence[Device]) -> Stated | None:
    full = labels.get(f"{PREFIX}cuda.driver-version.full")
    if full is not None:
        return Stated(full.text(), where(full))
    parts = [labels.get(f"{PREFIX}cuda.driver.{part}") for part in ("major", "minor", "rev")]
    written = ".".join(each.text() for each in parts if each is not None and each.text())
    if written and parts[0] is not None:
        return Stated(written, where(parts[0]))
    return next(filter(None, (each.stated("driverVersion") for each in devices)), None)


def _counts(names: Names, resources: Iterable[tuple[str, Node]]) -> Counter[str]:
    """Count what resources stand for, by profile."""
    found: Counter[str] = Counter()
    for resource, count in resources:
        profile = names.profile(resource)
        if profile is not None:
            found[profile] += count_of(count)
    return found


def _hindrances(node: Node, devices: Iterable[Device]) -> Iterator[str]:
    """Say why no new pod may come to a node, or to some of its devices."""
    closed = value_at(node, "spec", "unschedulable")
    if closed is not None and closed.boolean():
        yield "it is cordoned: no new pod comes to it"
    for each in array_of(node, "status", "conditions"):
        if each.at("type").text() == "Ready" and (said := each.at("status").text()) != "True":
            yield f"it is not ready (Ready is {said}): what is told of it may be old"
    tainted: dict[str, list[str]] = {}
    for device in devices:
        if device.taint is not None:
            tainted.setdefault(device.taint, []).append(device.where)
    for taint, places in tainted.items():
        more = f" and {len(places) - 1} more" if len(places) > 1 else ""
        yield f"no new pod is given {places[0]}{more}: taint {taint}"


def _counted(
    node: Node, labels: Mapping[str, str], names: Names, capacity: Mapping[str, int]
) -> Counted | None:
    """Return what the counts of a node may tell of its GPUs; None where they tell nothing."""
    at, written = where(node), labels.get(f"{PREFIX}gpu.count", "")
    totals = {name: count for name, count in capacity.items() if name != SHARED}
    if names.single is not None:  # its gpu.count counts instances as well
        return Counted(at, None, {name: n for name, n in totals.items() if name == names.single})
    if not (is_whole(written) and 0 < int(written) <= MOST_GPUS):
        return None
    strategy, product = labels.get(f"{PREFIX}mig.strategy"), labels.get(f"{PREFIX}gpu.product")
    # Under the strategy single all GPUs are cut, which their product then says, or none is.
    is_uncut = labels.get(f"{PREFIX}mig.capable") == "false" or (
        strategy == "single" and product is not None and "-MIG-" not in product
    )
    if is_uncut:  # whatever is counted
        return Counted(at, int(written), {WHOLE: int(written)})
    if strategy != "mixed":
        return None
    replicas = labels.get(f"{PREFIX}gpu.replicas", "")
    if shared := capacity.get(SHARED, 0):
        by = int(replicas) if is_whole(replicas) else 0
        if by < 1:
            return None
        totals[WHOLE] = totals.get(WHOLE, 0) + shared // by
    return Counted(at, int(written), totals)


def _refuse_more_than_there_is(
    name: str, capacity: Mapping[str, int], held: Sequence[Held]
) -> None:
    taken: Counter[str] = Counter()
    for each in held:
        placed = Counter(profile for _, profile, _ in each.pod.places)
        for profile, count in (Counter(each.pod.profiles) - placed).items():
            taken[profile] += count
            if taken[profile] > capacity.get(profile, 0):
                raise each.at.error(
                    f"{each.at.label}: pod {each.pod.name} holds {profile}, and then "
                    f"{taken[profile]} of these are held of node {name!r}, which has "
                    f"{capacity.get(profile, 0)}",
                    expected="nodes and pods of one time; a change of the GPUs may have left a "
                    "stale key",
                )  # fmt: skip
