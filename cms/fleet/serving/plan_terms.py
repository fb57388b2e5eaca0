"""What a plan's problem is made of must be what its devices, services and limits allow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...files.fields import blaming, refusal
from ...files.problems import problem_to_json
from ...problem.machine_problem import MachineProblem
from ...problem.parts import AnyConfiguration
from ..hardware import Gpu
from .document_parts import PointPart, agree
from .gpus_used import list_configurations
from .measurements import InstanceKind, find_allowed_instances, is_measured_on
from .neighbours import classes_in
from .operating_point import mps_share
from .posing import AnyServing

_WHY = "as the rest of the plan has"


def allowed_configurations(serving: AnyServing) -> list[AnyConfiguration]:
    """Return what the devices allow with the profiles that there are blocks of."""
    with blaming("problem", "blocks"):
        plain = (block for block in serving.problem.blocks if classes_in(block) is None)
        used = [serving.instance_of(block) for block in plain]
        return list_configurations(serving.gpus, used, serving.splits)


def require_problem(given: MachineProblem, wanted: MachineProblem, *at: str) -> None:
    """Refuse a problem that is not the one that the rest of its plan poses."""
    if given != wanted:
        agree(problem_to_json(given), problem_to_json(wanted), _WHY, *at)
        raise refusal(f"the one {_WHY}", *at, what="{} is another problem")


def refuse_other_terms(points: Sequence[PointPart], serving: AnyServing) -> None:
    """Refuse a plan on terms that could not have made its problem.

    A point of another model, device or profile than its service and block, or one that the service
    or the number of processes does not allow; a service that is called unservable and is not, or
    the other way round.
    """
    allowed: dict[str, set[InstanceKind]] = {}
    for index, service in enumerate(serving.services):
        with blaming("services", index, "allowed_profiles"):
            if service.allowed_profiles is not None:
                allowed[service.name] = {
                    instance
                    for name in service.allowed_profiles
                    for instance in find_allowed_instances(name, service, serving.gpus)
                }
    for index, part in enumerate(points):
        with blaming("operating_points", index):
            _require_own_point(part, serving, allowed)
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


def _require_own_point(
    part: Any, serving: AnyServing, allowed: dict[str, set[InstanceKind]]
) -> None:
    service = serving.service(part.service)
    key, profile = serving.instance_of(part.block)
    gpu = serving.gpu_of(key)
    if part.model != service.model:
        raise refusal(f'"{service.model}", which service {service.name!r} runs', "model")
    if part.device != key and not is_measured_on(part.point(), gpu):
        raise refusal(f'"{key}", where {part.block} is, or a product name of it', "device")
    if part.profile != profile and part.profile not in _other_names(gpu, profile):
        raise refusal(f'"{profile}", the profile of block {part.block}', "profile")
    most = serving.max_processes
    if most is not None and part.processes > most:
        raise refusal(f"at most max_processes = {most}", "processes")
    if (key, profile) not in allowed.get(service.name, {(key, profile)}):
        names = ", ".join(service.allowed_profiles or ())
        raise refusal(f"one of {names}, which service {service.name!r} allows", "block")


def _other_names(gpu: Gpu, profile: str) -> tuple[str, ...]:
    return () if mps_share(profile) is not None else gpu.profile(profile).other_names
