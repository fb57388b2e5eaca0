"""A GPU of the catalogue: its profiles, and the configurations that its placement rules allow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

from ...errors import InvalidOption
from ...problem.parts import Configuration
from ...values.frozen import FrozenMap
from ...values.names import nearest
from ...values.numbers import whole
from ...values.views import Viewed
from . import enumeration
from .enumeration import Counts, LayoutCounts, Places, Shape, Table
from .profile import Evidence, Layout, Placement, Profile

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
        return self._node(layout, ())[2] is not None

    def maximal_layouts_around(
        self, layout: Iterable[tuple[str, int]], profiles: Iterable[str] | None = None
    ) -> tuple[Layout, ...]:
        """Return the layouts that contain this one and into which no further instance fits.

        `profiles` are those of what may be added; the layout's own need not be among them.
        """
        placed, chosen = tuple(layout), self._chosen(profiles)
        table, own = self._table_beside(chosen, placed)
        added = [_layout(chosen, node.places) for node in enumeration.maximal_nodes(table)]
        return tuple(
            tuple(sorted((*own, *more), key=lambda place: place.start)) for more in added or [()]
        )

    def room(self, layout: Iterable[tuple[str, int]], profile: str) -> tuple[int, ...]:
        """Return the starts at which an instance still fits beside a layout."""
        table, _ = self._table_beside((self.profile(profile),), layout)
        return enumeration.beside(table, enumeration.root(table)).shapes[0].starts

    def place(
        self, counts: Mapping[str, int], *, around: Iterable[tuple[str, int]] = ()
    ) -> Layout | None:
        """Find starts for exactly these instances, by profile; zeros are allowed.

        The answer is looked up in the enumeration, so it is exact: None means that there are none,
        and :meth:`why_not` says why. It has the new instances alone, without `around`, and is the
        first of `layouts_of`, whatever the order of the counts. InvalidOption if a profile is
        unknown, a count is not a whole number >= 0 or `around` is no layout.
        """
        chosen, table, counts_in_order = self._asked(counts, around)
        if not chosen:
            return ()
        places = enumeration.first_layouts(table).get(counts_in_order)
        return None if places is None else _layout(chosen, places)

    def layouts_of(
        self, counts: Mapping[str, int], *, around: Iterable[tuple[str, int]] = ()
    ) -> tuple[Layout, ...]:
        """Return every choice of starts for exactly these instances; `place` takes the first."""
        chosen, table, counts_in_order = self._asked(counts, around)
        if not chosen:
            return ((),)
        found = enumeration.layouts_of(table, counts_in_order)
        return tuple(_layout(chosen, places) for places in found)

    def why_not(self, counts: Mapping[str, int], *, around: Iterable[tuple[str, int]] = ()) -> str:
        """Say in words why these instances cannot be placed, beside a layout; empty if they can."""
        around = tuple(around)
        if self.place(counts, around=around) is not None:
            return ""
        chosen, table, counts_in_order = self._asked(counts, around)
        _, own = self._table_beside(chosen, around)
        there = [(self.profile(name), start) for name, start in own]
        return _reason(self.key, chosen, table, counts_in_order, there)

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
    ) -> tuple[tuple[Profile, ...], Table, Counts]:
        """Return the profiles that are wanted, what `around` leaves for them, and how many."""
        wanted = self._checked(counts)
        chosen = self._chosen(wanted)
        table, _ = self._table_beside(chosen, around)
        return chosen, table, tuple(wanted[profile.name] for profile in chosen)

    def _table_beside(
        self, chosen: tuple[Profile, ...], around: Iterable[tuple[str, int]]
    ) -> tuple[Table, Layout]:
        """Return what a layout leaves for some profiles, and the layout in our names and order."""
        around = tuple(around)
        if not around:
            return self._table(chosen), ()
        every, table, node = self._node(around, chosen)
        if node is None:
            own = [(self.profile(name), start) for name, start in around]
            why = find_layout_fault(self.key, table, own)
            raise InvalidOption(f"no layout of {self.key}: {why}")
        left = enumeration.beside(table, node)
        shapes = zip(every, left.shapes, strict=True)
        own_shapes = tuple(shape for profile, shape in shapes if profile in chosen)
        return left._replace(shapes=own_shapes), _layout(every, node.places)

    def _node(
        self, layout: Iterable[tuple[str, int]], more: tuple[Profile, ...]
    ) -> tuple[tuple[Profile, ...], Table, enumeration.Node | None]:
        """Return a layout as a node of the enumeration over its profiles and some more."""
        placed = [
            (self.profile(name).name, whole(start, f"start of {name!r}", error=InvalidOption))
            for name, start in layout
        ]
        every = self._chosen({*(name for name, _ in placed), *(p.name for p in more)})
        order = {profile.name: i for i, profile in enumerate(every)}
        table = self._table(every)
        node = enumeration.node_of(table, ((order[name], start) for name, start in placed))
        return every, table, node

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

    def _checked(self, counts: Mapping[str, int]) -> dict[str, int]:
        """Return the counts above 0 under the profiles' own names."""
        wanted: dict[str, int] = {}
        for name, count in counts.items():
            number = whole(count, f"count of {name!r}", least=0, error=InvalidOption)
            own = self.profile(name).name
            if number:
                wanted[own] = wanted.get(own, 0) + number
        return wanted


def _layout(chosen: tuple[Profile, ...], places: Places) -> Layout:
    return tuple(Placement(chosen[i].name, start) for i, start in places)


def find_layout_fault(gpu: str, table: Table, placed: Placed) -> str:
    """Say which rule some instances placed on a whole GPU break; nothing if they are a layout.

    The rules are read off the profiles here, not asked of the enumeration.
    """
    for profile, start in placed:
        if start not in profile.starts:
            return f"{profile.name} starts at {_or(profile.starts)}, not at {start}"
        if start + profile.memory > table.memory_slices:
            return f"{profile.name}@{start} ends beyond the {table.memory_slices} memory slices"
    for (one, at), (two, other) in combinations(placed, 2):
        if max(at, other) < min(at + one.memory, other + two.memory):
            return f"{one.name}@{at} and {two.name}@{other} share memory slices"
    for profile, count in Counter(profile for profile, _ in placed).items():
        if count > profile.max:
            return f"{count} x {profile.name}: at most {profile.max}"
    if sum(profile.has_media_engines for profile, _ in placed) > 1:
        return "at most one instance with media engines (+me)"
    needed = sum(profile.compute for profile, _ in placed)
    if needed > table.compute_slices:
        return f"its instances take {needed} compute slices, {gpu} has {table.compute_slices}"
    return ""


def _reason(
    gpu: str, profiles: tuple[Profile, ...], table: Table, counts: Counts, there: Placed = ()
) -> str:
    """Say why a multiset, at least one of each of these profiles, cannot be placed beside `there`.

    `table` is what the other instances leave of the GPU. The answer is every sum that is exceeded;
    where none is, the smallest part of the multiset for which no starts work, with the starts its
    profiles have.
    """
    wanted = tuple(zip(profiles, counts, strict=True))
    own = Counter(profile for profile, _ in there)
    reasons = [
        f"{_counted([(profile, count)])}: at most {profile.max} on one {gpu}"
        + (f", which has {own[profile]}" if own[profile] else "")
        for profile, count in wanted
        if count + own[profile] > profile.max
    ]
    media = [(profile, count) for profile, count in wanted if profile.has_media_engines]
    holding = [place for place in there if place[0].has_media_engines]
    kinds = {profile for profile, _ in (*media, *holding)}
    if media and sum(count for _, count in media) + len(holding) > 1 and len(kinds) > 1:
        reasons.append(
            f"{_counted(media)}: at most one instance with media engines (+me) on one {gpu}"
            + (f", which has {_places(holding)}" if holding else "")
        )
    taken = sum(profile.memory for profile, _ in there)
    for what, total, sizes in (
        ("compute", table.compute_slices, [profile.compute for profile in profiles]),
        ("memory", table.memory_slices - taken, [profile.memory for profile in profiles]),
    ):
        needed = sum(count * size for count, size in zip(counts, sizes, strict=True))
        if needed > total:
            terms = " + ".join(f"{n} x {size}" for n, size in zip(counts, sizes, strict=True))
            verb = "takes" if sum(counts) == 1 else "take"
            reasons.append(
                f"{_counted(wanted)} {verb} {needed} {what} slices ({terms}), "
                f"{gpu} has {total}{_beside(there)}"
            )
    if reasons:
        return "; ".join(reasons)
    placeable = enumeration.first_layouts(table)
    for i in range(len(counts)):
        while counts[i]:
            fewer = (*counts[:i], counts[i] - 1, *counts[i + 1 :])
            if not any(fewer) or fewer in placeable:
                break
            counts = fewer
    stuck = [(p, count) for p, count in zip(profiles, counts, strict=True) if count]
    rules = "; ".join(
        f"{profile.name} takes {profile.memory} of the {table.memory_slices} memory slices of "
        f"{gpu} and starts at {_or(profile.starts)}"
        for profile, _ in stuck
    )
    said = f"no starts work for {_counted(stuck)}{_beside(there)}"
    return f"the slices would suffice, but {said}: {rules}"


def _counted(wanted: Iterable[tuple[Profile, int]]) -> str:
    return " + ".join(
        f"{count} x {profile.name}" if count > 1 else profile.name for profile, count in wanted
    )


def _places(there: Placed) -> str:
    return ", ".join(str(Placement(profile.name, start)) for profile, start in there)


def _beside(there: Placed) -> str:
    return f" beside {_places(there)}" if there else ""


def _or(numbers: tuple[int, ...]) -> str:
    *most, last = map(str, numbers)
    return f"{', '.join(most)} or {last}" if most else f"{last} only"
