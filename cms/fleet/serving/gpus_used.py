"""The GPUs of a plan: which are meant, what each can be, how many there are and what one costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from ...errors import InvalidOption
from ...problem.parts import AnyConfiguration, GroupLimit, MachineType
from ...values.names import nearest
from ...values.numbers import Number, exact
from ..hardware import Gpu, get_gpu
from ..hardware.catalogue import is_called
from .available import AvailableGpus
from .measurements import InstanceKind

T = TypeVar("T")
DEFAULT_GPU = "a100-80gb"
#: How a GPU may be shared under MPS: in any way up to 100 %, or as a whole or in two.
SPLITS = ("any", "pairs")


def find_gpus(gpus: str | Gpu | Sequence[str | Gpu]) -> tuple[Gpu, ...]:
    """Look up the GPUs of a plan; refuse none, unknown ones and one that is named twice."""
    chosen = (gpus,) if isinstance(gpus, str | Gpu) else tuple(gpus)
    fleet = tuple(one if isinstance(one, Gpu) else get_gpu(one) for one in chosen)
    if not fleet:
        raise InvalidOption(f"no GPU type to plan with; name at least one, such as {DEFAULT_GPU!r}")
    keys = [one.key for one in fleet]
    if len(set(keys)) < len(keys):
        raise InvalidOption(f"a GPU type is named twice: {', '.join(keys)}; name each once")
    return fleet


def block_prefixes(fleet: Sequence[Gpu]) -> dict[str, str]:
    """Return what stands before a profile in a block's name: nothing, if there is one GPU type."""
    return {one.key: f"{one.key}:" if len(fleet) > 1 else "" for one in fleet}


def list_configurations(
    fleet: Sequence[Gpu],
    used: Iterable[InstanceKind],
    splits: str = "any",
    available: Sequence[AvailableGpus] = (),
) -> list[AnyConfiguration]:
    """List what each GPU can be; without `available` ones GPUs are empty."""
    kinds, prefixes = tuple(used), block_prefixes(fleet)
    devices, found = {one.key: one for one in fleet}, list[AnyConfiguration]()
    for each in available or map(AvailableGpus, devices):
        own = [name for key, name in kinds if key == each.gpu]
        found += each.list_configurations(devices[each.gpu], own, prefixes[each.gpu], splits)
    return found


def build_machine_types(
    fleet: Sequence[Gpu],
    limits: Mapping[str, int] | None,
    costs: Mapping[str, Number] | None,
    available: Sequence[AvailableGpus] = (),
) -> tuple[list[MachineType], list[GroupLimit]]:
    """Return a machine type a GPU, or for each of the `available` ones, and limits beyond theirs.

    InvalidOption for a limit or cost of no GPU here, or given twice.
    """
    limit, cost = _by_key("limit", limits, fleet), _by_key("cost", costs, fleet)
    if not available:
        keys = [one.key for one in fleet]
        return [MachineType(key, cost.get(key, 1), limit.get(key)) for key in keys], []
    prices = {key: exact(value, f"the cost of {key}") for key, value in cost.items()}
    groups = []
    names = {key: name for name, key in name_caps(available).items()}
    for key, cap in limit.items():
        own = {each.name: each.count for each in available if each.gpu == key}
        if cap < sum(own.values()):
            groups.append(GroupLimit(names[key], dict.fromkeys(own, 1), cap))
    return [MachineType(each.name, each.cost(prices), each.count) for each in available], groups


def name_caps(available: Iterable[AvailableGpus]) -> dict[str, str]:
    """Return the names of limits on all GPUs of a type, whatever is on them, and their keys."""
    return {f"--max-gpus {each.gpu}": each.gpu for each in available}


def _by_key(what: str, given: Mapping[str, T] | None, fleet: Sequence[Gpu]) -> dict[str, T]:
    result: dict[str, T] = {}
    for name, value in (given or {}).items():
        called = [one.key for one in fleet if is_called(one, name)]
        if not called:
            keys = [one.key for one in fleet]
            raise InvalidOption(
                f"a {what} is given for the GPU {name!r}, which is not in this fleet"
                f"{nearest(name, keys)}; "
                f"expected one of {', '.join(keys)}"
            )
        if called[0] in result:
            raise InvalidOption(
                f"a {what} is given for {called[0]} twice, once as {name!r}; give it once"
            )
        result[called[0]] = value
    return result
