"""What a plan's problem is made of must be what its devices, services and limits allow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial

from ...errors import CmsError
from ...files.node import Node
from ...problem.parts import AnyConfiguration, Block, SizeBoundedConfigurations
from ..hardware import Gpu
from ..hardware.catalogue import is_called
from .gpus_used import shapes
from .measurements import InstanceKind, meant
from .neighbours import NeighbourServing
from .operating_point import OperatingPoint, mps_share
from .posing import AnyServing

__all__ = ["refuse_other_terms"]


def refuse_other_terms(fields: Mapping[str, Node], serving: AnyServing) -> None:
    """Refuse a plan on terms that could not have made its problem.

    Parameters
    ----------
    fields : Mapping of str to Node
        The values of the plan's document, to point at.
    serving : AnyServing
        What they say; its supplies agree with its points already.

    Raises
    ------
    FileError
        If a point is of another model, device or profile than its service and block, or not one
        that the service or the number of processes allows; if a configuration is none of the
        device's; if a service is called unservable that is not, or the other way round.
    """
    if not isinstance(serving, NeighbourServing):  # its problem was made of the devices anew
        _require_configurations(fields["problem"], serving)
    # asked once a service and once a device: a plan may have thousands of points of either
    allowed = cache(partial(_allowed, serving))
    is_of = cache(_is_of)
    for entry in fields["operating_points"].array():
        _require_own_point(entry, serving, allowed, is_of)
    _require_unservable(fields["unservable"], serving)


def _require_own_point(
    entry: Node,
    serving: AnyServing,
    allowed: Callable[[str], frozenset[InstanceKind] | CmsError | None],
    is_of: Callable[[Gpu, str], bool],
) -> None:
    name, block = entry.at("service").text(), entry.at("block").text()
    service, point = serving.service(name), _point_of(entry, serving.points[name, block])
    key, profile = serving.instance_of(block)
    gpu = serving.gpu_of(key)
    entry.at("model").agree(service.model, f"which service {name!r} runs")
    if not is_of(gpu, point.device):
        raise entry.at("device").wrong(f'"{key}", where {block} is, or a product name of it')
    if point.profile != profile and _profile(gpu, point.profile) != profile:
        raise entry.at("profile").wrong(f'"{profile}", the profile of block {block}')
    most = serving.max_processes
    if most is not None and point.processes > most:
        raise entry.at("processes").wrong(f"at most max_processes = {most}")
    instances = allowed(name)
    if isinstance(instances, CmsError):
        raise entry.at("service").error(str(instances))
    if instances is not None and (key, profile) not in instances:
        raise entry.at("block").wrong(
            f"one of {', '.join(service.allowed_profiles or ())}, which service {name!r} allows"
        )


def _point_of(entry: Node, points: Sequence[OperatingPoint]) -> OperatingPoint:
    setting = entry.at("processes").integer(), entry.at("batch").integer()
    return next(point for point in points if (point.processes, point.batch) == setting)


def _allowed(serving: AnyServing, name: str) -> frozenset[InstanceKind] | CmsError | None:
    """What a service allows: None for everything; or why that cannot be said."""
    service = serving.service(name)
    if service.allowed_profiles is None:
        return None
    try:
        return frozenset(
            where
            for each in service.allowed_profiles
            for where in meant(each, service, serving.gpus)
        )
    except CmsError as fault:
        return fault


def _is_of(gpu: Gpu, device: str) -> bool:
    """Whether a point's device is this GPU, by one of the names under which points are accepted."""
    if is_called(gpu, device):
        return True
    from ..hardware import gpu as find

    try:
        return find(device) == gpu
    except CmsError:
        return False


def _profile(gpu: Gpu, name: str) -> str | None:
    try:
        return None if mps_share(name) is not None else gpu.profile(name).name
    except CmsError:
        return None


def _require_configurations(node: Node, serving: AnyServing) -> None:
    """Each GPU can be just what its device file allows with the profiles there are blocks of."""
    blocks = serving.problem.blocks
    used = [serving.instance_of(block) for block in blocks]
    prefix = "{}:" if len(serving.gpus) > 1 else ""
    allowed: dict[AnyConfiguration, None] = {}
    for gpu in serving.gpus:
        try:
            allowed |= dict.fromkeys(shapes(gpu, used, prefix.format(gpu.key), serving.splits))
        except CmsError as fault:
            raise node.at("blocks").error(f"{node.at('blocks').label}: {fault}") from None
    for entry, shape in zip(
        node.at("configurations").array(), serving.problem.configurations, strict=True
    ):
        if shape not in allowed:
            raise entry.error(
                f"{entry.label} is {shape}",
                expected=f"what the device {shape.machine} allows with "
                f"{_listed(blocks, isinstance(shape, SizeBoundedConfigurations))}",
            )
    there = set(serving.problem.configurations)
    missing = [shape for shape in allowed if shape not in there]
    if missing:
        raise node.at("configurations").error(
            f"{node.at('configurations').label} lacks {missing[0]}",
            expected="every one that the devices allow with these blocks",
        )


def _listed(blocks: Iterable[Block], shared: bool) -> str:
    own = [block for block in blocks if ("mps:" in block) == shared]
    return ", ".join(own) or "the blocks there are"


def _require_unservable(node: Node, serving: AnyServing) -> None:
    lost = {
        service.name
        for service in serving.services
        if service.rate_rps and not serving.can_serve(service.name)
    }
    for name, entry in node.entries():
        if name not in lost:
            raise entry.error(
                f"{node.label} names {name!r}",
                expected="services that no block serves, which this one is not",
                at_key=True,
            )
    if missing := sorted(lost - set(serving.unservable)):
        raise node.error(
            f"{node.label} does not name {missing[0]!r}", expected="it, since no block serves it"
        )
