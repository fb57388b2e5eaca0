"""GPUs that are there, as machine types of a plan: alike in device and in what stays on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

from ...problem.parts import AnyConfiguration, Configuration, SizeBoundedConfigurations
from ...values.numbers import shown
from ..hardware import MPS_CLIENTS, Gpu
from .operating_point import MPS_PREFIX, mps_share

__all__ = ["AvailableGpus", "HeldInstance"]


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
            for whole in _list_pairs(shares):
                yield Configuration(Counter(blocks[share] for share in whole), self.name)
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


def _list_pairs(shares: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """A whole GPU, or two shares that make one; a share without its other half stays alone."""
    for share in sorted(shares, reverse=True):
        if (other := 100 - share) not in shares:
            yield (share,)
        elif share >= other:
            yield share, other
