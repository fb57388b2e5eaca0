"""The GPUs of a plan: which are meant or there, what each can be, and what one costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple, TypeVar

from ...errors import InvalidOption
from ...problem.parts import (
    AnyConfiguration,
    Configuration,
    GroupLimit,
    SizeBoundedConfigurations,
)
from ...values.names import nearest
from ...values.numbers import shown
from ..hardware import MPS_CLIENTS, Gpu, get_gpu
from ..hardware.catalogue import is_called
from .measurements import InstanceKind
from .operating_point import MPS_PREFIX, mps_share


class HeldInstance(NamedTuple):
    """An instance that stays on a GPU, whatever is planned.

    `start`: None under MPS, and where no start on the GPU is known. `serves`: Whether it may serve:
    it is managed, but has to stay as it is, since its owner is in doubt or its start is not known.
    """

    profile: str
    start: int | None
    serves: bool = False

    def __str__(self) -> str:
        at = "" if self.start is None else f"@{self.start}"
        return f"{self.profile}{at}{'?' if self.serves else ''}"


@dataclass(frozen=True, slots=True)
class AvailableGpus:
    """GPUs of a fleet that a plan need not distinguish: a machine type.

    `gpu`: Their key. `count`: How many there are. `held`: What stays on each of them. `lacks`:
    Profiles that their driver does not offer. `price`: Of one, where it is not that of the type. A
    GPU on which something is held costs nothing, since it is in use anyway.

    Examples
    --------
    >>> from cms.fleet import get_gpu
    >>> taken = AvailableGpus("a30-24gb", 2, (HeldInstance("1g.6gb", 0),))
    >>> taken.name, taken.cost({})
    ('a30-24gb beside 1g.6gb@0', Fraction(0, 1))
    >>> print(*taken.list_configurations(get_gpu("a30-24gb"), ["1g.6gb", "2g.12gb"]), sep="; ")
    1g.6gb + 2g.12gb; 3 x 1g.6gb
    """

    gpu: str
    count: int = 1
    held: tuple[HeldInstance, ...] = ()
    lacks: tuple[str, ...] = ()
    price: Fraction | None = None

    @property
    def name(self) -> str:
        """What the machine type is called: the key alone if nothing is special."""
        words = [self.gpu]
        if self.held:
            words.append(f"beside {' + '.join(map(str, self.held))}")
        if self.lacks:
            words.append(f"without {' + '.join(self.lacks)}")
        if self.price is not None:
            words.append(f"at {shown(self.price)}")
        return " ".join(words)

    def cost(self, costs: Mapping[str, Fraction]) -> Fraction:
        """Return what one of them costs, where `costs` has what GPUs of a type do."""
        if self.held:
            return Fraction(0)
        return costs.get(self.gpu, Fraction(1)) if self.price is None else self.price

    def limit_to(self, profiles: Collection[str]) -> AvailableGpus:
        """Return the same where only some profiles matter."""
        return replace(self, lacks=tuple(name for name in self.lacks if name in profiles))

    def list_configurations(
        self, gpu: Gpu, profiles: Iterable[str], prefix: str = "", splits: str = "any"
    ) -> Iterator[AnyConfiguration]:
        """List what they can be: partitioned by MIG, or with MIG off shared under MPS.

        `prefix`: What stands before profiles in the names of blocks. `splits`: A word of `SPLITS`.
        """
        offered = [name for name in profiles if name not in self.lacks]
        shares = sorted(share for name in offered if (share := mps_share(name)) is not None)
        cut = [name for name in offered if mps_share(name) is None]
        is_shared = bool(self.held) and mps_share(self.held[0].profile) is not None
        if cut and not is_shared:
            for counts in self._list_multisets(gpu, cut):
                yield Configuration({prefix + name: n for name, n in counts.items()}, self.name)
        if not shares or (self.held and not is_shared):
            return
        blocks = {share: f"{prefix}{MPS_PREFIX}{share}" for share in shares}
        if splits == "pairs":
            for share in reversed(shares):  # a share without its other half stays alone
                whole = (share, 100 - share) if 100 - share in blocks else (share,)
                if len(whole) == 1 or share >= 50:
                    yield Configuration(Counter(blocks[each] for each in whole), self.name)
            return
        others = [mps_share(each.profile) or 0 for each in self.held if not each.serves]
        room, clients = 100 - sum(others), MPS_CLIENTS - len(others)
        if room >= shares[0] and clients:
            sizes = {block: share for share, block in blocks.items()}
            yield SizeBoundedConfigurations(sizes, room, self.name, clients)

    def _list_multisets(self, gpu: Gpu, profiles: Sequence[str]) -> Iterable[Mapping[str, int]]:
        """List what can be used at once beside what another holds, as far as it is maximal."""
        if not self.held:
            return gpu.maximal_multisets(profiles)
        places = [(each.profile, each.start) for each in self.held if each.start is not None]
        if len(places) < len(self.held):  # no starts are known: it stays as it is cut
            usable = [[each.profile for each in self.held if each.serves]]
        else:
            others = {each.start for each in self.held if not each.serves}
            layouts = gpu.maximal_layouts_around(places, profiles)
            usable = [[p.profile for p in one if p.start not in others] for one in layouts]
        known = frozenset(profiles)
        found = [Counter(name for name in one if name in known) for one in usable]
        distinct = [one for at, one in enumerate(found) if one and one not in found[:at]]
        return [one for one in distinct if not any(one < other for other in distinct)]


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


def name_caps(available: Iterable[AvailableGpus]) -> dict[str, str]:
    """Return the names of limits on all GPUs of a type, whatever is on them, and their keys."""
    return {f"all {each.gpu} GPUs": each.gpu for each in available}


def tell_limit(limit: GroupLimit) -> str:
    """Say how much a limit allows: ``1 x a30-24gb`` of a type, else ``2 of group b``."""
    caps = name_caps(map(AvailableGpus, limit.weights))
    of = f"x {caps[limit.name]}" if limit.name in caps else f"of group {limit.name}"
    return f"{shown(limit.at_most)} {of}"


def key_by_gpu(what: str, given: Mapping[str, T] | None, fleet: Sequence[Gpu]) -> dict[str, T]:
    """Return what is given for GPUs, by their keys; refuse others and one that is named twice."""
    result: dict[str, T] = {}
    for name, value in (given or {}).items():
        called = [one.key for one in fleet if is_called(one, name)]
        if not called:
            keys = [one.key for one in fleet]
            raise InvalidOption(
                f"a {what} is given for the GPU {name!r}, which is not in this fleet"
                f"{nearest(name, keys)}; expected one of {', '.join(keys)}"
            )
        if called[0] in result:
            raise InvalidOption(
                f"a {what} is given for {called[0]} twice, once as {name!r}; give it once"
            )
        result[called[0]] = value
    return result
