"""The GPUs of a plan: which are meant, what each can be, how many there are and what one costs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from ...errors import InvalidOption
from ...problem.parts import AnyConfiguration, Configuration, MachineType
from ...values.names import nearest
from ...values.numbers import Number
from ..hardware import Gpu, get_gpu, mps_shares
from ..hardware.catalogue import is_called
from .measurements import InstanceKind
from .operating_point import MPS_PREFIX, mps_share

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
    fleet: Sequence[Gpu], used: Iterable[InstanceKind], splits: str = "any"
) -> list[AnyConfiguration]:
    """List what each GPU can be: partitioned by MIG, or with MIG off shared under MPS."""
    kinds, prefixes, found = tuple(used), block_prefixes(fleet), list[AnyConfiguration]()
    for one in fleet:
        prefix, profiles = prefixes[one.key], [name for key, name in kinds if key == one.key]
        shares = sorted(share for name in profiles if (share := mps_share(name)) is not None)
        if mig := [name for name in profiles if mps_share(name) is None]:
            found += one.configurations_of(mig, prefix=prefix)
        if shares and splits == "any":
            found.append(mps_shares(shares, machine=one.key, prefix=prefix))
        else:
            found += _pairs(shares, one.key, prefix)
    return found


def _pairs(shares: Sequence[int], machine: str, prefix: str) -> Iterator[Configuration]:
    """A whole GPU, or two shares that make one; a share without its other half stays alone."""

    def block(share: int) -> str:
        return f"{prefix}{MPS_PREFIX}{share}"

    for share in sorted(shares, reverse=True):
        other = 100 - share
        if other == share:
            yield Configuration({block(share): 2}, machine)
        elif other not in shares:
            yield Configuration({block(share): 1}, machine)
        elif share > other:
            yield Configuration({block(share): 1, block(other): 1}, machine)


def build_machine_types(
    fleet: Sequence[Gpu], limits: Mapping[str, int] | None, costs: Mapping[str, Number] | None
) -> list[MachineType]:
    """Return a machine type a GPU; refuse a limit or cost of no GPU here, or given twice."""
    limit, cost = _by_key("limit", limits, fleet), _by_key("cost", costs, fleet)
    return [
        MachineType(one.key, cost=cost.get(one.key, 1), limit=limit.get(one.key)) for one in fleet
    ]


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
