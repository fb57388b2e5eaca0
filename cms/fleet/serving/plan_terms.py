"""What a plan's problem is made of must be what its devices, services and limits allow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import Any

from ...errors import CmsError
from ...files.fields import blaming, refusal
from ...problem.parts import Block, SizeBoundedConfigurations
from ..hardware import Gpu
from ..hardware.catalogue import find_gpu, is_called
from .document_parts import PointPart
from .gpus_used import list_configurations
from .measurements import InstanceKind, find_allowed_instances
from .neighbours import NeighbourServing
from .operating_point import mps_share
from .posing import AnyServing


def refuse_other_terms(points: Sequence[PointPart], serving: AnyServing) -> None:
    """Refuse a plan on terms that could not have made its problem.

    A point of another model, device or profile than its service and block, or one that the service
    or the number of processes does not allow; a configuration that is none of the device's; a
    service that is called unservable and is not, or the other way round.
    """
    if not isinstance(serving, NeighbourServing):  # its problem was made of the devices anew
        _require_configurations(serving)
    # asked once a service and once a device: a plan may have thousands of points of either
    allowed = cache(partial(_allowed, serving))
    # a device goes by all the names under which points are accepted
    is_of = cache(lambda gpu, device: is_called(gpu, device) or find_gpu(device) == gpu)
    for index, part in enumerate(points):
        with blaming("operating_points", index):
            _require_own_point(part, serving, allowed, is_of)
    _require_unservable(serving)


def _require_own_point(
    part: Any,
    serving: AnyServing,
    allowed: Callable[[str], frozenset[InstanceKind] | CmsError | None],
    is_of: Callable[[Gpu, str], bool],
) -> None:
    service = serving.service(part.service)
    key, profile = serving.instance_of(part.block)
    gpu = serving.gpu_of(key)
    if part.model != service.model:
        raise refusal(f'"{service.model}", which service {service.name!r} runs', "model")
    if not is_of(gpu, part.device):
        raise refusal(f'"{key}", where {part.block} is, or a product name of it', "device")
    if part.profile != profile and _profile(gpu, part.profile) != profile:
        raise refusal(f'"{profile}", the profile of block {part.block}', "profile")
    most = serving.max_processes
    if most is not None and part.processes > most:
        raise refusal(f"at most max_processes = {most}", "processes")
    instances = allowed(service.name)
    if isinstance(instances, CmsError):
        raise refusal(None, "service", what=str(instances))
    if instances is not None and (key, profile) not in instances:
        names = ", ".join(service.allowed_profiles or ())
        raise refusal(f"one of {names}, which service {service.name!r} allows", "block")


def _allowed(serving: AnyServing, name: str) -> frozenset[InstanceKind] | CmsError | None:
    """What a service allows: None for everything; or why that cannot be said."""
    service = serving.service(name)
    if service.allowed_profiles is None:
        return None
    try:
        return frozenset(
            where
            for each in service.allowed_profiles
            for where in find_allowed_instances(each, service, serving.gpus)
        )
    except CmsError as fault:
        return fault


def _profile(gpu: Gpu, name: str) -> str | None:
    try:
        return None if mps_share(name) is not None else gpu.profile(name).name
    except CmsError:
        return None


def _require_configurations(serving: AnyServing) -> None:
    """Each GPU can be just what its device file allows with the profiles there are blocks of."""
    blocks = serving.problem.blocks
    used = [serving.instance_of(block) for block in blocks]
    with blaming("problem", "blocks"):
        allowed = dict.fromkeys(list_configurations(serving.gpus, used, serving.splits))
    for index, shape in enumerate(serving.problem.configurations):
        if shape not in allowed:
            own = _listed(blocks, isinstance(shape, SizeBoundedConfigurations))
            raise refusal(
                f"what the device {shape.machine} allows with {own}",
                "problem", "configurations", index, what=f"{{}} is {shape}",
            )  # fmt: skip
    there = set(serving.problem.configurations)
    for shape in allowed:
        if shape not in there:
            raise refusal(
                "every one that the devices allow with these blocks",
                "problem", "configurations", what=f"{{}} lacks {shape}",
            )  # fmt: skip


def _listed(blocks: Iterable[Block], shared: bool) -> str:
    own = [block for block in blocks if ("mps:" in block) == shared]
    return ", ".join(own) or "the blocks there are"


def _require_unservable(serving: AnyServing) -> None:
    lost = {
        service.name
        for service in serving.services
        if service.rate_rps and not serving.can_serve(service.name)
    }
    for name in serving.unservable:
        if name not in lost:
            raise refusal(
                "services that no block serves, which this one is not",
                "unservable", name, what=f"{{}} is about {name!r}", at_key=True,
            )  # fmt: skip
    if missing := sorted(lost - set(serving.unservable)):
        raise refusal(
            "it, since no block serves it", "unservable", what=f"{{}} does not name {missing[0]!r}"
        )
