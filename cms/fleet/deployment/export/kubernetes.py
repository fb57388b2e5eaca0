"""For Kubernetes with NVIDIA's device plugin: an overlay with a Deployment for each kind of pod.

Each is a patch of a base Deployment, the user's or a minimal one; its pods ask for the instances of
one profile by the plugin's name for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from ..instance import WHOLE
from ..model import Deployment, FleetGpu
from .advertised import resource_of
from .export import Export, ExportOptions, assembled
from .losses import about_fixed, about_mps, about_nodes, about_others, some
from .overlay import PLACEHOLDER, Container, overlay, read_overlay
from .workloads import Asked, Workload, about_work, offered_by, working, workloads_of

__all__ = ["as_seen", "read", "write"]

_SHARED = "nvidia.com/gpu.shared"


def write(deployment: Deployment, options: ExportOptions) -> Export:
    """Write ``kustomization.yaml``, a base for each service and ``workloads/NAME`` for each kind.

    Raises
    ------
    FileError
        If a base given is no Deployment, or there is none for a service.
    """
    place = _place(pin_nodes=options.pin_nodes)
    workloads = workloads_of(deployment, place)
    return assembled(
        "kubernetes",
        "How many pods of each kind are to run, each with an instance of its profile.",
        overlay(workloads, options, _container),
        _losses(deployment, options),
        order(workloads, options, workloads_of(options.now, place) if options.now else None),
        back(options),
    )


def _place(*, pin_nodes: bool) -> Callable[[FleetGpu], str | None]:
    return lambda card: card.node if pin_nodes else None


def order(
    workloads: tuple[Workload, ...],
    options: ExportOptions,
    former: tuple[Workload, ...] | None,
    first: tuple[str, ...] = (),
) -> Iterator[str]:
    """Say in what order an overlay is brought about."""
    if not options.base and workloads:
        yield (
            "Write the image of each service, its ports and probes into "
            f"`base/SERVICE/deployment.yaml`, in place of `{PLACEHOLDER}`; or "
            "give your own with `--base`. Each container reads what it is to do from CMS_MODEL, "
            "CMS_PROCESSES and CMS_BATCH."
        )
    if workloads:
        yield "`kubectl kustomize .` shows what will be applied, and needs no cluster."
    yield from first
    names = {each.name for each in workloads}
    gone = sorted(each.name for each in former or () if each.name not in names)
    if gone:
        space = f" -n {options.namespace}" if options.namespace else ""
        command = f"kubectl delete deployment{space} {' '.join(gone)}"
        yield f"What runs today and is not wanted: `{command}`."
    elif former is None:
        yield (
            "`kubectl get deployments -A -l cms.workload` lists what an earlier export has left; "
            "delete those that are not in `workloads/`: `kubectl apply` does not."
        )
    yield (
        "Cut the GPUs first (`mig-parted`, `gpu-operator` or `nvidia-smi`), then "
        "`kubectl apply -k .`"
        if workloads
        else "Nothing is to run: there is nothing to apply."
    )


def back(options: ExportOptions) -> str:
    """Say how to undo an overlay."""
    if options.now is None:
        return "`kubectl delete -k .`, then `kubectl apply -k` with the folder of before."
    return (
        "`kubectl delete -k .`, then export the deployment of today, which was given, and "
        "`kubectl apply -k` that."
    )


def _container(workload: Workload) -> Container:
    profile = workload.asked.profile
    if profile == WHOLE:
        return Container({"limits": {"nvidia.com/gpu": "1"}}, {}, {})
    if profile.startswith("mps:"):
        share = profile.removeprefix("mps:")
        env = {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": share}
        return Container({"limits": {_SHARED: "1"}}, {}, env)
    return Container({"limits": {resource_of(profile): "1"}}, {}, {})


def _losses(deployment: Deployment, options: ExportOptions) -> Iterator[str]:
    if working(deployment):
        node = "which GPU of its node" if options.pin_nodes else "which node and which GPU"
        yield (
            f"Places: {node} a pod gets, and which start; the scheduler and the device plugin give "
            "any instance of the profile."
        )
    yield "The GPUs themselves: how they are cut."
    yield from about_work(deployment)
    yield from about_types(deployment)
    yield from about_mps(
        deployment,
        "the device plugin gives equal shares alone (`sharing.mps` with `renameByDefault: true`, "
        f"so that pods ask for `{_SHARED}`, and as many `replicas` as the fullest of these GPUs "
        "has shares); the pods' own are in CUDA_MPS_ACTIVE_THREAD_PERCENTAGE.",
    )
    for about in (about_others, about_fixed):
        yield from about(deployment, "they are not asked for, and no pod is told to spare them")
    yield from about_nodes(deployment)


def about_types(deployment: Deployment) -> Iterator[str]:
    """Types of GPU that a cluster cannot tell apart, since they are in one node."""
    mixed = []
    for node in deployment.nodes:
        kinds = {(card.gpu.key, name) for card in node.gpus for name in offered_by(card)}
        if max(Counter(profile for _, profile in kinds).values(), default=0) > 1:
            mixed.append(node.name)
    if mixed:
        yield (
            f"Types of GPU: {some(mixed)} has one profile on GPUs of several types, which pods "
            "cannot tell apart there."
        )


def read(files: Mapping[str, str], fleet: Deployment) -> dict[Asked, int]:
    """Read the patches back: how many pods there are of each kind.

    Parameters
    ----------
    files : Mapping[str, str]
        ``{path: text}``, as `Export` has them.
    fleet : Deployment
        The nodes and their types of GPU.

    Raises
    ------
    FileError
        If a file is missing or wrong, or asks for what the fleet does not have.
    """
    found: Counter[Asked] = Counter()
    for each in read_overlay(files, fleet):
        profile = each.asked.profile
        limits = each.container.at("resources").at("limits")
        one = Workload(each.asked, "", 1, (), (), ())
        wanted = _container(one).resources["limits"]
        said = {name: value.value for name, value in limits.entries() if value.value is not None}
        if said != wanted:
            raise limits.error(f"{said} is asked for", expected=f"{wanted}, for {profile}")
        found[each.asked] += each.replicas
    return dict(found)


def as_seen(deployment: Deployment, *, pin_nodes: bool = False) -> dict[Asked, int]:
    """Return how many pods of each kind there are, tied to their nodes or to none."""
    place = _place(pin_nodes=pin_nodes)
    return {each.asked: each.replicas for each in workloads_of(deployment, place)}
