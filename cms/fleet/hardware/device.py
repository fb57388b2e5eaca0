"""A GPU: its profiles, and the configurations that its placement rules or MPS allow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from ...errors import InvalidOption
from ...problem.parts import Configuration, SizeBoundedConfigurations
from ...values.frozen import FrozenMap
from ...values.names import nearest
from ...values.numbers import Number, exact, format_exact, whole
from ...values.views import Viewed
from . import enumeration
from .enumeration import Counts, LayoutCounts, Places, Shape, Table

#: Of an instance with one of these, a GPU holds one at most: its JPEG and OFA engines exist once.
MEDIA_ATTRIBUTES = frozenset({"me", "me.all"})


@dataclass(frozen=True)
class Profile:
    """One kind of GPU instance, as a device file describes it; None is unknown."""

    name: str  #: as the driver prints it: ``3g.40gb``; it says how much memory only roughly
    family: str  #: without the card's memory: ``3g``, ``1g.double`` (double memory), ``1g+me``
    id: int | None  #: the driver's profile id
    compute: int  #: slices it takes, in which compute is not linear: see `sms`
    memory: int  #: slices it takes
    starts: tuple[int, ...]  #: the memory slices at which an instance can start
    max: int  #: at most this many on one GPU
    sms: int | None = None  #: streaming multiprocessors
    memory_mib: int | None = None  #: as the driver gives it; never computed from the name
    #: ``("me",)`` for ``1g.10gb+me``; an engine left out is written with its sign: ``("-me",)``.
    attributes: tuple[str, ...] = ()
    since_driver: str | None = None  #: the first driver branch that offers it
    other_names: tuple[str, ...] = ()  #: what other drivers call the same profile (``7g.79gb``)
    #: The first driver branch that calls it `name`; those before it take the first other name.
    named_since: str | None = None

    @property
    def is_base(self) -> bool:
        """Whether it is a plain profile: no attributes, and not the one with double memory."""
        return self.family == f"{self.compute}g"

    @property
    def has_media_engines(self) -> bool:
        """Whether it holds the engines of which a GPU can give away one set only."""
        return not MEDIA_ATTRIBUTES.isdisjoint(self.attributes)


class Placement(NamedTuple):
    """An instance in its place: a profile's name and its first memory slice."""

    profile: str
    start: int

    def __str__(self) -> str:
        return f"{self.profile}@{self.start}"


#: A set of instances on one GPU, in the order of their starts.
Layout: TypeAlias = tuple[Placement, ...]


@dataclass(frozen=True)
class Evidence:
    """Where figures of a device file come from."""

    fields: tuple[str, ...]  #: which it vouches for
    evidence: str  #: ``page``, ``code`` (both public), ``capture`` (of a device) or ``measured``
    source: str  #: the document, repository or device
    driver: str | None = None  #: its version, where one was running
    date: str | None = None  #: of the document or capture, ``YYYY-MM-DD``


#: Instances with their starts.
Placed: TypeAlias = Sequence[tuple[Profile, int]]


@dataclass(frozen=True, repr=False)
class Gpu(Viewed):
    """A GPU that can be partitioned into instances.

    Nothing about configurations is stored: layouts and multisets are enumerated from the starts,
    sizes and maxima of the profiles, once a set of profiles. A *layout* is a non-empty set of
    placed instances; it is *maximal* if no further instance fits. A *multiset* forgets the starts;
    a *maximal multiset* is contained in no other that can be placed.

    Methods that take `profiles` take names, in any order; None means `base_profiles`. Those that
    take `around` ask about a GPU in use: a layout, in any order, whose instances stay where they
    are.

    Examples
    --------
    >>> from cms.fleet import get_gpu
    >>> a100 = get_gpu("a100-80gb")
    >>> len(a100.layouts()), len(a100.maximal_layouts()), len(a100.maximal_multisets())
    (297, 19, 12)
    >>> print(*a100.place({"3g.40gb": 1, "2g.20gb": 2}))
    2g.20gb@0 2g.20gb@2 3g.40gb@4
    """

    key: str  #: what users write, and the name of its machine type
    aliases: tuple[str, ...]  #: product names as drivers print them
    #: ``0xDDDDVVVV`` (device, vendor), or with the subsystem ``0xDDDDVVVV:0xSSSSWWWW``.
    pci_device_ids: tuple[str, ...]
    architecture: str
    compute_slices: int
    memory_slices: int
    mode_change_needs_reset: bool | None  #: whether switching MIG on or off needs a reset
    profiles: tuple[Profile, ...]
    sources: tuple[Evidence, ...]
    version: int  #: of the device file's content

    def __str__(self) -> str:
        aliases = f" ({', '.join(self.aliases)})" if self.aliases else ""
        return (
            f"{self.key}{aliases}, {self.compute_slices} compute and {self.memory_slices} memory "
            f"slices\nprofiles: {', '.join(profile.name for profile in self.profiles)}"
        )

    def __repr__(self) -> str:
        return f"Gpu({self.key!r}, {len(self.profiles)} profiles)"

    def profile(self, name: str) -> Profile:
        """Return the profile of this name, of any driver; InvalidOption has the names there are."""
        for profile in self.profiles:
            if profile.name == name or name in profile.other_names:
                return profile
        names = [profile.name for profile in self.profiles]
        raise InvalidOption(
            f"{self.key} has no profile {name!r}{nearest(str(name), names)}; "
            f"its profiles: {', '.join(names)}"
        )

    @property
    def base_profiles(self) -> tuple[str, ...]:
        """Names of the profiles without attributes and without double memory, in file order."""
        return tuple(profile.name for profile in self.profiles if profile.is_base)

    @property
    def configurations(self) -> tuple[Configuration, ...]:
        """The maximal multisets of the base profiles; since blocks may idle, they say all."""
        return self.configurations_of(None)

    def configurations_of(
        self, profiles: Iterable[str] | None, *, prefix: str = ""
    ) -> tuple[Configuration, ...]:
        """Return the maximal multisets of some profiles as configurations.

        `prefix` is put before every block's name (``"h100-80gb:"``): a 3g.40gb of another card
        supplies something else, so with several GPU types its block needs another name.
        """
        return tuple(
            Configuration({f"{prefix}{name}": n for name, n in counts.items()}, machine=self.key)
            for counts in self.maximal_multisets(profiles)
        )

    def layouts(self, profiles: Iterable[str] | None = None) -> tuple[Layout, ...]:
        """Return every layout, each in the order of starts."""
        return self._layouts(enumeration.nodes, profiles)

    def maximal_layouts(self, profiles: Iterable[str] | None = None) -> tuple[Layout, ...]:
        """Return the layouts into which no further instance fits."""
        return self._layouts(enumeration.maximal_nodes, profiles)

    def multisets(self, profiles: Iterable[str] | None = None) -> tuple[FrozenMap[str, int], ...]:
        """Return every multiset that can be placed, the one with the largest instances first."""
        return self._multisets(enumeration.multisets, profiles)

    def maximal_multisets(
        self, profiles: Iterable[str] | None = None
    ) -> tuple[FrozenMap[str, int], ...]:
        """Return the multisets that are contained in no other that can be placed."""
        return self._multisets(enumeration.maximal_multisets, profiles)

    def layout_counts(self, profiles: Iterable[str] | None = None) -> LayoutCounts:
        """Return how many layouts and multisets there are."""
        return enumeration.layout_counts(self._table(self._chosen(profiles)))

    def sets_without_overlap(self, profiles: Iterable[str] | None = None) -> int:
        """Return how many sets of placed instances there are, whatever their maxima and compute.

        They are found without listing any; beyond 20,000 the methods that list raise InvalidOption.
        """
        return enumeration.sets_without_overlap(self._table(self._chosen(profiles)))

    def is_layout(self, layout: Iterable[tuple[str, int]]) -> bool:
        """Whether these instances can be on one GPU at once, in any order; none at all can."""
        return not self._find_fault(self._placed(layout))

    def maximal_layouts_around(
        self, layout: Iterable[tuple[str, int]], profiles: Iterable[str] | None = None
    ) -> tuple[Layout, ...]:
        """Return the layouts that contain this one and into which no further instance fits.

        `profiles` are those of what may be added; the layout's own need not be among them.
        """
        chosen = self._chosen(profiles)
        table, there = self._beside(chosen, layout)
        own = tuple(Placement(profile.name, start) for profile, start in there)
        added = [_layout(chosen, node.places) for node in enumeration.maximal_nodes(table)]
        return tuple(
            tuple(sorted((*own, *more), key=lambda place: place.start)) for more in added or [()]
        )

    def room(self, layout: Iterable[tuple[str, int]], profile: str) -> tuple[int, ...]:
        """Return the starts at which an instance still fits beside a layout."""
        return self._beside((self.profile(profile),), layout)[0].shapes[0].starts

    def place(
        self, counts: Mapping[str, int], *, around: Iterable[tuple[str, int]] = ()
    ) -> Layout | None:
        """Find starts for exactly these instances, by profile; zeros are allowed.

        The answer is looked up in the enumeration, so it is exact: None means that there are none,
        and :meth:`why_not` says why. It has the new instances alone, without `around`, and is the
        first of `layouts_of`, whatever the order of the counts. InvalidOption if a profile is
        unknown, a count is not a whole number >= 0 or `around` is no layout.
        """
        chosen, wanted, (table, _) = self._asked(counts, around)
        places = enumeration.first_layouts(table).get(wanted)
        return None if places is None else _layout(chosen, places)

    def layouts_of(
        self, counts: Mapping[str, int], *, around: Iterable[tuple[str, int]] = ()
    ) -> tuple[Layout, ...]:
        """Return every choice of starts for exactly these instances; `place` takes the first."""
        chosen, wanted, (table, _) = self._asked(counts, around)
        found = enumeration.layouts_of(table, wanted) if chosen else ((),)
        return tuple(_layout(chosen, places) for places in found)

    def why_not(self, counts: Mapping[str, int], *, around: Iterable[tuple[str, int]] = ()) -> str:
        """Say in words why these instances cannot be placed, beside a layout; empty if they can."""
        chosen, wanted, (table, there) = self._asked(counts, around)
        if wanted in enumeration.first_layouts(table):
            return ""
        return _reason(self.key, dict(zip(chosen, wanted, strict=True)), table, there)

    def _layouts(
        self, find: Callable[[Table], Iterable[enumeration.Node]], profiles: Iterable[str] | None
    ) -> tuple[Layout, ...]:
        chosen = self._chosen(profiles)
        return tuple(_layout(chosen, node.places) for node in find(self._table(chosen)))

    def _multisets(
        self, find: Callable[[Table], Iterable[Counts]], profiles: Iterable[str] | None
    ) -> tuple[FrozenMap[str, int], ...]:
        chosen = self._chosen(profiles)
        return tuple(
            FrozenMap({p.name: count for p, count in zip(chosen, counts, strict=True) if count})
            for counts in find(self._table(chosen))
        )

    def _asked(
        self, counts: Mapping[str, int], around: Iterable[tuple[str, int]]
    ) -> tuple[tuple[Profile, ...], Counts, tuple[Table, Placed]]:
        """Return which profiles are wanted, how many, and what `around` leaves for them."""
        wanted: dict[str, int] = {}
        for name, count in counts.items():
            number = whole(count, f"count of {name!r}", least=0, error=InvalidOption)
            own = self.profile(name).name
            wanted[own] = wanted.get(own, 0) + number
        chosen = self._chosen(name for name, count in wanted.items() if count)
        return chosen, tuple(wanted[one.name] for one in chosen), self._beside(chosen, around)

    def _beside(
        self, chosen: tuple[Profile, ...], around: Iterable[tuple[str, int]]
    ) -> tuple[Table, Placed]:
        """Return what a layout leaves of the GPU for some profiles, and its instances by start."""
        there = self._placed(around)
        if why := self._find_fault(there):
            raise InvalidOption(f"no layout of {self.key}: {why}")
        # what is beyond the last slice is taken too
        occupied = -1 << self.memory_slices
        for profile, start in there:
            occupied |= ((1 << profile.memory) - 1) << start
        compute = self.compute_slices - sum(profile.compute for profile, _ in there)
        media = any(profile.has_media_engines for profile, _ in there)
        table, held = self._table(chosen), [profile.name for profile, _ in there]
        shapes = []
        for profile, shape in zip(chosen, table.shapes, strict=True):
            most, own = shape.max - held.count(profile.name), (1 << shape.memory) - 1
            fits = most > 0 and shape.compute <= compute and not (shape.media and media)
            starts = tuple(at for at in shape.starts if fits and not occupied & own << at)
            # A maximum that no longer binds is forgotten: more layouts leave the same table.
            shapes.append(shape._replace(starts=starts, max=min(most, len(starts))))
        left = table._replace(shapes=tuple(shapes), compute_slices=compute)
        return left, sorted(there, key=itemgetter(1))

    def _find_fault(self, placed: Placed) -> str:
        """Say which rule some instances on the whole GPU break; nothing if they are a layout.

        The rules are read off the profiles here, not asked of the enumeration.
        """
        for profile, start in placed:
            if start not in profile.starts:
                return f"{profile.name} starts at {_or(profile.starts)}, not at {start}"
            if start + profile.memory > self.memory_slices:
                return f"{profile.name}@{start} ends beyond the {self.memory_slices} memory slices"
        for (one, at), (two, other) in combinations(placed, 2):
            if max(at, other) < min(at + one.memory, other + two.memory):
                return f"{one.name}@{at} and {two.name}@{other} share memory slices"
        for profile, count in Counter(profile for profile, _ in placed).items():
            if count > profile.max:
                return f"{count} x {profile.name}: at most {profile.max}"
        if sum(profile.has_media_engines for profile, _ in placed) > 1:
            return "at most one instance with media engines (+me)"
        needed, total = sum(profile.compute for profile, _ in placed), self.compute_slices
        if needed > total:
            return f"its instances take {needed} compute slices, {self.key} has {total}"
        return ""

    def _placed(self, layout: Iterable[tuple[str, int]]) -> Placed:
        what = "start of {!r}".format
        return [(self.profile(n), whole(at, what(n), error=InvalidOption)) for n, at in layout]

    def _chosen(self, profiles: Iterable[str] | None) -> tuple[Profile, ...]:
        """Return profiles by name: more memory first, then more compute, then as in the file."""
        if isinstance(profiles, str):
            raise InvalidOption(f"profiles is the text {profiles!r}; expected a list of names")
        names = set(self.base_profiles if profiles is None else profiles)
        own = {self.profile(name).name for name in names}
        chosen = [profile for profile in self.profiles if profile.name in own]
        return tuple(sorted(chosen, key=lambda profile: (-profile.memory, -profile.compute)))

    def _table(self, chosen: Iterable[Profile]) -> Table:
        shapes = tuple(
            Shape(p.compute, p.memory, p.starts, p.max, p.has_media_engines) for p in chosen
        )
        return Table(shapes, self.compute_slices, self.memory_slices)


def _layout(chosen: Iterable[Profile], places: Places) -> Layout:
    names = [profile.name for profile in chosen]
    return tuple(Placement(names[i], start) for i, start in places)


def _reason(gpu: str, wanted: Mapping[Profile, int], table: Table, there: Placed) -> str:
    """Name every sum that is exceeded, else the smallest part of `wanted` with no starts."""
    own = Counter(profile for profile, _ in there)
    reasons = [
        f"{_counted({profile: count})}: at most {profile.max} on one {gpu}"
        + (f", which has {own[profile]}" if own[profile] else "")
        for profile, count in wanted.items()
        if count + own[profile] > profile.max
    ]
    media = {profile: count for profile, count in wanted.items() if profile.has_media_engines}
    holding = [place for place in there if place[0].has_media_engines]
    if media and len({*media, *(profile for profile, _ in holding)}) > 1:
        reasons.append(
            f"{_counted(media)}: at most one instance with media engines (+me) on one {gpu}"
            + (f", which has {_places(holding)}" if holding else "")
        )
    beside = f" beside {_places(there)}" if there else ""
    taken = sum(profile.memory for profile, _ in there)
    left = {"compute": table.compute_slices, "memory": table.memory_slices - taken}
    for what, total in left.items():
        terms = [(count, getattr(profile, what)) for profile, count in wanted.items()]
        needed = sum(count * size for count, size in terms)
        if needed > total:
            sizes = " + ".join(f"{count} x {size}" for count, size in terms)
            verb = "takes" if sum(wanted.values()) == 1 else "take"
            reasons.append(
                f"{_counted(wanted)} {verb} {needed} {what} slices ({sizes}), "
                f"{gpu} has {total}{beside}"
            )
    if reasons:
        return "; ".join(reasons)
    placeable, stuck = enumeration.first_layouts(table), dict(wanted)
    for profile in wanted:
        while stuck[profile]:
            fewer = stuck | {profile: stuck[profile] - 1}
            if tuple(fewer.values()) in placeable:
                break
            stuck = fewer
    stuck = {profile: count for profile, count in stuck.items() if count}
    rules = "; ".join(
        f"{profile.name} takes {profile.memory} of the {table.memory_slices} memory slices of "
        f"{gpu} and starts at {_or(profile.starts)}"
        for profile in stuck
    )
    said = f"no starts work for {_counted(stuck)}{beside}"
    return f"the slices would suffice, but {said}: {rules}"


def _counted(wanted: Mapping[Profile, int]) -> str:
    return " + ".join(f"{n} x {p.name}" if n > 1 else p.name for p, n in wanted.items())


def _places(there: Placed) -> str:
    return ", ".join(str(Placement(profile.name, start)) for profile, start in there)


def _or(numbers: tuple[int, ...]) -> str:
    *most, last = map(str, numbers)
    return f"{', '.join(most)} or {last}" if most else f"{last} only"


#: An MPS daemon serves at most this many clients of one GPU.
MPS_CLIENTS = 48


def mps_shares(
    steps: Iterable[Number], *, machine: str, prefix: str = ""
) -> SizeBoundedConfigurations:
    """Share a whole GPU by MPS: any clients whose active-thread percentages sum to at most 100.

    MPS and MIG do not mix on one GPU here: the shares are of a GPU whose MIG mode is off, of the
    machine type `machine`. `steps` are the shares that a client can have, each once, in per cent of
    the GPU: > 0, at most 100. The block of 40 per cent is called ``mps:40``, after a `prefix`. MPS
    allows at most 48 clients on a GPU. InvalidOption names a wrong step.

    Examples
    --------
    >>> shares = mps_shares([10, 25, 40], machine="a100-80gb-mps")
    >>> shares.capacity, shares.max_blocks, list(shares.sizes)
    (Fraction(100, 1), 48, ['mps:10', 'mps:25', 'mps:40'])
    """
    sizes = {}
    for step in steps:
        share = exact(step, "MPS step", error=InvalidOption)
        if not 0 < share <= 100:
            raise InvalidOption(
                f"MPS step is {format_exact(share)}; expected per cent of a GPU, "
                "more than 0 and at most 100"
            )
        block = f"{prefix}mps:{format_exact(share)}"
        if block in sizes:
            raise InvalidOption(f"MPS step {format_exact(share)} occurs twice; give it once")
        sizes[block] = share
    if not sizes:
        raise InvalidOption("no MPS steps; give the shares a client can have, such as [10, 25, 50]")
    return SizeBoundedConfigurations(sizes, capacity=100, machine=machine, max_blocks=MPS_CLIENTS)
