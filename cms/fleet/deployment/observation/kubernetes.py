"""What ``kubectl get -o json`` printed: nodes with GPUs, and what their labels and counts tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ....files.numerals import is_whole
from ....files.parsed import Parsed
from ....values.frozen import FrozenMap
from ..instance import WHOLE
from ..kubernetes_objects import NodeObject
from .cluster import ASK, PREFIX, Cluster, PodHolding, count_profiles, gather, held_in, profile_of
from .counting import MOST_GPUS
from .dra import Device, devices_of, gpus_of, where
from .facts import GpuFacts, NodeCounts, NodeFacts, Statement

__all__ = ["read_kubernetes"]


def read_kubernetes(
    documents: Sequence[Parsed], source: str, service_label: str | None = None
) -> list[NodeFacts]:
    """Read what a cluster knows of its nodes with GPUs, from all of its objects.

    `service_label` names a pod's service where it has no ``cms.service``.
    """
    cluster = gather(documents)
    devices = devices_of(cluster.slices.values())
    singles = {name: _single_of(each) for name, (_, each) in cluster.nodes.items()}
    held: dict[str, list[PodHolding]] = {}
    for each in held_in(cluster, devices, singles, service_label):
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
        possible = next((device for device in own if device.is_possible), None)
        if possible is not None and not {"Pod", "ResourceClaim"} & cluster.listed:
            raise documents[0].error(
                f"the GPUs of node {name!r} are cut as they are claimed ({possible.where}), and no "
                "claim or pod is told of",
                expected=ASK,
            )
    found = [
        _node_facts(cluster, name, singles[name], listed.get(name, []), held.get(name, []), source)
        for name, (_, each) in sorted(cluster.nodes.items())
        if name in listed or _is_nvidia(each)
    ]
    spaces = {name.partition("/")[0] for name in cluster.pods}
    return _with_doubt(found, spaces) if len(spaces) == 1 else found


def _with_doubt(found: list[NodeFacts], spaces: set[str]) -> list[NodeFacts]:
    """Say once that pods may be missing, if all are of one namespace and something seems free."""
    for at, facts in enumerate(found):
        held = sum(len(pod.profiles) for pod in facts.pods or ())
        if not facts.allocatable or held < sum(facts.allocatable.values()):
            said = (
                f"all pods told of are of namespace {', '.join(spaces)}: unless they were listed "
                "with -A, what pods of other namespaces hold counts as free"
            )
            found[at] = replace(facts, unknown=(*facts.unknown, said))
            break
    return found


# --- nodes ----------------------------------------------------------------------------------------


def _is_nvidia(node: NodeObject) -> bool:
    labels = node.labels
    return (
        f"{PREFIX}gpu.product" in labels
        or labels.get(f"{PREFIX}gpu.present") == "true"
        or any(name.startswith((f"{PREFIX}gpu", f"{PREFIX}mig-"))
               for name in node.allocatable)
    )  # fmt: skip


def _single_of(node: NodeObject) -> str | None:
    """Return the profile that ``nvidia.com/gpu`` stands for, if not for a GPU."""
    written = node.labels.get(f"{PREFIX}gpu.product", "")
    return profile_of(written.removesuffix("-SHARED").partition("-MIG-")[2])


def _node_facts(
    cluster: Cluster,
    name: str,
    single: str | None,
    devices: Sequence[Device],
    held: Sequence[PodHolding],
    source: str,
) -> NodeFacts:
    at, node = cluster.nodes[name]
    labels = dict(node.labels)
    if zone := labels.get("topology.kubernetes.io/zone"):
        labels.setdefault("zone", zone)

    def label(key: str, value: str | None = None) -> Statement | None:
        """What a label says, or what follows from it."""
        if f"{PREFIX}{key}" not in labels:
            return None
        said = labels[f"{PREFIX}{key}"] if value is None else value
        return Statement(said, f'{where(at)}.metadata.labels["{PREFIX}{key}"]')

    unfit = _find_sharing(labels, where(at))
    allocatable = count_profiles(node.allocatable, single)
    capacity = allocatable | count_profiles(node.capacity, single)
    if unfit is None:
        _refuse_more_than_there_is(name, capacity, held)
    gpus = gpus_of(devices, [each for pod in held for each in pod.devices])
    is_numbered = not gpus
    unknown = [*_hindrances(node, devices)]
    counted = None if gpus else _counted(where(at), labels, single, capacity)
    if not (gpus or +allocatable or +capacity):
        unknown.append("no pod is given any of its GPUs: it has no device plug-in that runs")
    product = labels.get(f"{PREFIX}gpu.product", "")
    if product.endswith("-MIG-INVALID"):
        unknown.append("its device plugin has the strategy single, which its GPUs do not fit")
    if unfit is not None and not gpus and single is None:
        number = _number(labels, "gpu.count")
        gpus = tuple(GpuFacts(index, where(at)) for index in range(min(number, MOST_GPUS)))
    parts = (labels.get(f"{PREFIX}cuda.driver.{part}", "") for part in ("major", "minor", "rev"))
    driver = label("cuda.driver-version.full")
    driver = driver or label("cuda.driver.major", ".".join(filter(None, parts)))
    driver = driver or next(filter(None, (each.stated("driverVersion") for each in devices)), None)
    plain = product.removesuffix("-SHARED").partition("-MIG-")[0]
    is_fit = unfit is None
    return NodeFacts(
        source,
        Statement(name, f"{where(at)}.metadata.name"),
        driver=driver,
        product=None if gpus else label("gpu.product", plain),
        labels=FrozenMap(labels),
        gpus=gpus,
        pods=tuple(each.pod for each in held) if "Pod" in cluster.listed and is_fit else None,
        allocatable=dict(sorted(allocatable.items())) if is_fit else None,
        capacity=dict(sorted(capacity.items())) if is_fit else None,
        counted=counted if is_fit else None,
        mig_state=label("mig.config.state"),
        unknown=tuple(unknown),
        unfit=unfit,
        is_numbered=is_numbered,
    )


def _number(labels: Mapping[str, str], key: str) -> int:
    written = labels.get(f"{PREFIX}{key}", "")
    return int(written) if is_whole(written) else 0


def _find_sharing(labels: Mapping[str, str], at: str) -> Statement | None:
    """Say how a node's GPUs, or parts of them, are shared: what is counted there are shares."""
    ways = [v for k, v in labels.items() if k.startswith(PREFIX) and k.endswith("sharing-strategy")]
    ways = [way for way in ways if way not in ("", "none")]
    if not ways and not labels.get(f"{PREFIX}gpu.product", "").endswith("-SHARED"):
        return None
    how = ways[0] if ways else "some way"
    return Statement(f"its GPUs are shared by {how}, and by which pods is not known", at)


def _hindrances(node: NodeObject, devices: Iterable[Device]) -> Iterator[str]:
    """Say why no new pod may come to a node, or to some of its devices."""
    if node.unschedulable:
        yield "it is cordoned: no new pod comes to it"
    for each in node.conditions:
        if each.get("type") == "Ready" and (status := each.get("status")) != "True":
            yield f"it is not ready (Ready is {status}): what is told of it may be old"
    tainted: dict[str, list[str]] = {}
    for device in devices:
        if device.taint is not None:
            tainted.setdefault(device.taint, []).append(device.where)
    for taint, places in tainted.items():
        more = f" and {len(places) - 1} more" if len(places) > 1 else ""
        yield f"no new pod is given {places[0]}{more}: taint {taint}"


def _counted(
    at: str, labels: Mapping[str, str], single: str | None, capacity: Mapping[str, int]
) -> NodeCounts | None:
    """Return what the counts of a node may tell of its GPUs; None where they tell nothing."""
    number = _number(labels, "gpu.count")
    if single is not None:  # its gpu.count counts instances as well
        return NodeCounts(at, None, {name: n for name, n in capacity.items() if name == single})
    if not 0 < number <= MOST_GPUS:
        return None
    strategy, product = labels.get(f"{PREFIX}mig.strategy"), labels.get(f"{PREFIX}gpu.product")
    # Under the strategy single all GPUs are cut, which their product then says, or none is.
    is_uncut = labels.get(f"{PREFIX}mig.capable") == "false" or (
        strategy == "single" and product is not None and "-MIG-" not in product
    )
    if is_uncut:  # whatever is counted
        return NodeCounts(at, number, {WHOLE: number})
    if strategy != "mixed":
        return None
    return NodeCounts(at, number, capacity)


def _refuse_more_than_there_is(
    name: str, capacity: Mapping[str, int], held: Sequence[PodHolding]
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
