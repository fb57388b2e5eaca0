"""What users wish of a placement beyond the plan's counts, as rows of the keeping program.

All of them are linear in counts. They can ask for more instances and more GPUs than the plan's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from math import ceil, floor
from typing import cast

from ...errors import InvalidOption, InvalidProblem
from ...files.numerals import is_whole
from ...values.frozen import FrozenMap
from ...values.names import nearest
from ...values.numbers import shown
from ..serving.service import HEEDED, Service
from .instance import Kind, Work
from .keeping import Crowd, Demand, KeepingProgram, Pool
from .model import Deployment
from .spots import Spot, spots_of
from .wanted import DesiredState

__all__ = [
    "PlacementConstraints", "WishRules", "demand_of", "homes_of", "keeping_program", "places_of",
    "placement_constraints",
]  # fmt: skip

HOMES = ("node", "zone")
#: Parts of a rate that supplies (rounded down) and rates (rounded up) are scaled to.
_PARTS = 10**6
_SEPARATORS = re.compile(r"[;\s]+")


@dataclass(frozen=True)
class PlacementConstraints:
    """What a placement is to have beside the plan's counts.

    `min_replicas`: ``{service: n}``: at least n instances. `spread`: ``{service: "node"}`` or
    ``"zone"``: no node (zone) has more than its equal share of the service's instances, rounded up;
    nodes without a GPU of a type it runs on do not count. `anti_affinity`: Two services that are
    never on one GPU. `max_per_gpu`: ``{service: n}``: at most n instances on one GPU. `survive`:
    With any one node gone, each service still has this share of its rate: 0.8.

    InvalidOption if a number or a word is out of its range.

    Examples
    --------
    >>> wishes = PlacementConstraints(
    ...     min_replicas={"chat": 2}, spread={"chat": "node"}, survive="0.8"
    ... )
    >>> print(*wishes.words(), sep="; ")
    min_replicas of chat: 2; spread of chat: node; survive: node:80%
    """

    min_replicas: Mapping[str, int] = field(default_factory=FrozenMap)
    spread: Mapping[str, str] = field(default_factory=FrozenMap)
    anti_affinity: Iterable[tuple[str, str]] = ()
    max_per_gpu: Mapping[str, int] = field(default_factory=FrozenMap)
    survive: Fraction | str | int | None = None

    def __post_init__(self) -> None:
        put = object.__setattr__
        for name in ("min_replicas", "spread", "max_per_gpu"):
            put(self, name, FrozenMap(getattr(self, name)))
        pairs = {cast("tuple[str, str]", tuple(sorted(pair))) for pair in self.anti_affinity}
        put(self, "anti_affinity", tuple(sorted(pairs)))
        for what, least in (("min_replicas", 0), ("max_per_gpu", 1)):
            for service, number in getattr(self, what).items():
                if isinstance(number, bool) or not isinstance(number, int) or number < least:
                    raise InvalidOption(
                        f"{what} of {service!r} is {number!r}; expected a whole number >= {least}"
                    )
        for service, word in self.spread.items():
            if word not in HOMES:
                raise InvalidOption(
                    f"spread of {service!r} is {word!r}; expected {' or '.join(HOMES)}"
                )
        for pair in self.pairs:
            if len(set(pair)) != 2:
                raise InvalidOption(
                    f"anti_affinity has {' and '.join(pair)}; expected two services"
                )
        if self.survive is not None:
            share = _share(self.survive)
            put(self, "survive", share)

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """The services that are never on one GPU."""
        return cast("tuple[tuple[str, str], ...]", self.anti_affinity)

    @property
    def share(self) -> Fraction | None:
        """What is left of each rate with any one node gone."""
        return cast("Fraction | None", self.survive)

    def words(self) -> dict[str, PlacementConstraints]:
        """Return each wish alone, under what it is called."""
        only = PlacementConstraints
        found = {f"min_replicas of {s}: {n}": only({s: n}) for s, n in self.min_replicas.items()}
        found |= {f"spread of {s}: {w}": only(spread={s: w}) for s, w in self.spread.items()}
        for pair in self.pairs:
            found[f"anti_affinity of {' and '.join(pair)}"] = only(anti_affinity=(pair,))
        for service, n in self.max_per_gpu.items():
            found[f"max_per_gpu of {service}: {n}"] = only(max_per_gpu={service: n})
        if self.share is not None:
            found[f"survive: node:{shown(100 * self.share)}%"] = only(survive=self.share)
        return found

    def without(self, other: PlacementConstraints) -> PlacementConstraints:
        """Return these but for others."""
        return PlacementConstraints(
            {s: n for s, n in self.min_replicas.items() if s not in other.min_replicas},
            {s: w for s, w in self.spread.items() if s not in other.spread},
            tuple(pair for pair in self.pairs if pair not in other.pairs),
            {s: n for s, n in self.max_per_gpu.items() if s not in other.max_per_gpu},
            None if other.share is not None else self.share,
        )

    def __or__(self, other: PlacementConstraints) -> PlacementConstraints:
        """Return both; the other's word goes before."""
        return PlacementConstraints(
            {**self.min_replicas, **other.min_replicas},
            {**self.spread, **other.spread},
            (*self.pairs, *other.pairs),
            {**self.max_per_gpu, **other.max_per_gpu},
            self.share if other.share is None else other.share,
        )

    def __bool__(self) -> bool:
        return any(getattr(self, each.name) for each in fields(self))

    def require(self, services: Iterable[Service]) -> None:
        """Refuse a wish about a service that is not there."""
        known = [service.name for service in services]
        named = [*self.min_replicas, *self.spread, *self.max_per_gpu]
        for name in (*named, *(name for pair in self.pairs for name in pair)):
            if name not in known:
                raise InvalidOption(
                    f"{name!r}, which constraints name, is no service{nearest(name, known)}"
                )


def _share(text: Fraction | str | int) -> Fraction:
    """Read ``0.8``, ``80%`` or ``node:80%``."""
    written = text.removeprefix("node:") if isinstance(text, str) else text
    try:
        if isinstance(written, str) and written.endswith("%"):
            share = Fraction(written[:-1]) / 100
        else:
            share = Fraction(written)
    except (ValueError, ZeroDivisionError):
        share = Fraction(-1)
    if not 0 < share <= 1:
        raise InvalidOption(f"survive is {text!r}; expected a share of the rates: node:80%")
    return share


def placement_constraints(services: Iterable[Service]) -> PlacementConstraints:
    """Read the wishes in the columns of a table of services.

    Columns ``min_replicas`` (a number), ``spread`` (``node`` or ``zone``) and ``anti_affinity``
    (services with blanks or semicolons between them); empty cells wish nothing.

    InvalidProblem if a cell is none of these; the message says where it was read.

    Examples
    --------
    >>> extra = {"min_replicas": "2", "anti_affinity": "code; sum"}
    >>> service = Service("chat", "bert", 19, 400, extra=extra)
    >>> print(*placement_constraints([service]).words(), sep="; ")
    min_replicas of chat: 2; anti_affinity of chat and code; anti_affinity of chat and sum
    """
    found = PlacementConstraints()
    for service in services:
        cells = {name: service.extra.get(name, "").strip() for name in HEEDED}
        replicas, spread, others = (cells[name] for name in HEEDED)
        if replicas and not is_whole(replicas):
            raise service.fault(
                f"min_replicas of {service.name!r} is {replicas!r}; expected a whole number"
            )
        try:
            found |= PlacementConstraints(
                {service.name: int(replicas)} if replicas else {},
                {service.name: spread} if spread else {},
                [(service.name, name) for name in _SEPARATORS.split(others) if name],
            )
        except InvalidOption as fault:
            raise service.fault(str(fault)) from None
    return found


def homes_of(fleet: Deployment, wishes: PlacementConstraints) -> dict[str, str] | None:
    """Return the node or zone of each node, whichever wishes speak of; None if they do not."""
    if wishes.share is not None or "node" in wishes.spread.values():
        return places_of(fleet, "node")
    return places_of(fleet, "zone") if wishes.spread else None


def places_of(fleet: Deployment, word: str) -> dict[str, str]:
    """Return the node or zone of each node; InvalidProblem if a node has no zone."""
    for node in fleet.nodes if word == "zone" else ():
        if "zone" not in node.labels:
            raise InvalidProblem(
                f"node {node.name!r} has no label zone, by which instances are to be spread; "
                "expected one on every node"
            )
    return {n.name: n.labels["zone"] if word == "zone" else n.name for n in fleet.nodes}


def demand_of(wanted: DesiredState, wishes: PlacementConstraints) -> Demand:
    """Return what is wanted, with the kinds that wishes could add instances of.

    A service that needs more instances may get them at any point of the plan's problem, at its
    supply there.
    """
    grows = {name for name, n in wishes.min_replicas.items() if n}
    if wishes.share is not None:
        grows = {service.name for service in wanted.services}
    apart = grows | {*wishes.spread, *wishes.max_per_gpu}
    apart |= {name for pair in wishes.pairs for name in pair}
    counts = dict(wanted.counts)
    if wanted.plan is not None and grows:
        serving = wanted.plan.serving
        for service, block in serving.points:
            if service in grows:
                gpu, profile = serving.instance_of(block)
                for served in serving.served(service, block):
                    work = Work(service, served.point, served.rate_rps)
                    counts.setdefault(Kind(gpu, profile, work), 0)
    kinds = tuple(sorted(counts, key=lambda kind: kind.order))
    crowds: list[Crowd] = []
    together: dict[tuple[str, str], list[int]] = {}
    for number, kind in enumerate(kinds):
        if kind.work.service in apart:
            grow = kind.work.service in grows
            crowds.append(Crowd(kind.gpu, kind.profile, (number,), grow))
        else:
            together.setdefault((kind.gpu, kind.profile), []).append(number)
    crowds += [Crowd(*block, tuple(numbers)) for block, numbers in sorted(together.items())]
    return Demand(kinds, tuple(counts[kind] for kind in kinds), wanted.gpus, tuple(crowds))


def keeping_program(
    wanted: DesiredState, fleet: Deployment, wishes: PlacementConstraints, demand: Demand
) -> KeepingProgram:
    """Build the program of what stays, wishes among its rows."""
    spots = spots_of(fleet, demand.numbers, homes_of(fleet, wishes))
    rules = WishRules(wishes, fleet, wanted, demand.kinds)
    keeping = KeepingProgram(spots, demand, rules.pools(spots))
    rules.write(keeping)
    return keeping


@dataclass(frozen=True)
class WishRules:
    """Placement constraints as rows."""

    wishes: PlacementConstraints
    fleet: Deployment
    wanted: DesiredState
    kinds: Sequence[Kind]

    def pools(self, spots: Sequence[Spot]) -> list[Pool]:
        """A pool for each node or zone that wishes speak of; columns on which GPUs matter alone."""
        shared: dict[str, list[tuple[int, int]]] = {}
        alone: list[Pool] = []
        for s, spot in enumerate(spots):
            for c, column in enumerate(spot.columns):
                shut = self._shut(spot.gpu.key, {profile for profile, _ in column.counts})
                if shut is None:
                    shared.setdefault(spot.home, []).append((s, c))
                else:
                    alone += [Pool(spot.home, ((s, c),), out, is_even=True) for out in shut]
        return [Pool(home, tuple(columns)) for home, columns in shared.items()] + alone

    def _shut(self, gpu: str, profiles: set[str]) -> list[frozenset[int]] | None:
        """Which kinds to keep out of a GPU with these profiles; None if no wish is about it."""
        here: dict[str, set[int]] = {}
        if not (self.wishes.pairs or self.wishes.max_per_gpu):
            return None
        for number, kind in enumerate(self.kinds):
            if kind.gpu == gpu and kind.profile in profiles:
                here.setdefault(kind.work.service, set()).add(number)
        pairs = [pair for pair in self.wishes.pairs if here.keys() >= {*pair}]
        if not pairs and here.keys().isdisjoint(self.wishes.max_per_gpu):
            return None
        return [frozenset(n for name in out for n in here[name]) for out in _covers(pairs)]

    def write(self, keeping: KeepingProgram) -> None:
        """Add the rows."""
        wishes, program = self.wishes, keeping.program
        for service, least in wishes.min_replicas.items():
            program.at_least(self._instances(keeping, service), least)
        for service, word in wishes.spread.items():
            self._spread(keeping, service, word)
        for service, most in wishes.max_per_gpu.items():
            for q, y in enumerate(keeping.y):
                if terms := self._instances(keeping, service, [q]):
                    program.at_most(terms | dict.fromkeys(y.values(), -most), 0)
        if wishes.share is not None:
            for entry in self.wanted.services:
                self._survive(keeping, entry, wishes.share)

    def _instances(
        self, keeping: KeepingProgram, service: str, pools: Iterable[int] | None = None
    ) -> dict[int, int]:
        """The variables of a service's instances, which are in crowds of their own."""
        return {
            v: 1
            for q in (range(len(keeping.pools)) if pools is None else pools)
            for i, v in keeping.x[q].items()
            if self.kinds[keeping.demand.crowds[i].kinds[0]].work.service == service
        }

    def _spread(self, keeping: KeepingProgram, service: str, word: str) -> None:
        keys = {kind.gpu for kind in self.kinds if kind.work.service == service}
        of = places_of(self.fleet, word)
        known = {of[card.node] for card in self.fleet.gpus() if card.gpu.key in keys}
        every = self._instances(keeping, service)
        for place in sorted(known):
            # a pool's home is a node or, if no wish speaks of nodes, a zone
            pools = [q for q, p in enumerate(keeping.pools) if of.get(p.home, p.home) == place]
            here = self._instances(keeping, service, pools)
            # here <= (all + places - 1) / places, rounded down: the equal share, rounded up
            terms = {v: len(known) * (v in here) - 1 for v in every}
            keeping.program.at_most(terms, len(known) - 1)

    def _survive(self, keeping: KeepingProgram, service: Service, share: Fraction) -> None:
        if not service.rate_rps:
            return
        unit = _PARTS / service.rate_rps
        for node in self.fleet.nodes:
            terms: dict[int, int] = {}
            for pool, x in zip(keeping.pools, keeping.x, strict=True):
                for i, v in x.items():
                    kind = self.kinds[keeping.demand.crowds[i].kinds[0]]
                    if kind.work.service == service.name and pool.home != node.name:
                        terms[v] = floor(kind.work.supply_rps * unit)
            keeping.program.at_least(terms, ceil(share * _PARTS))


def _covers(pairs: Sequence[tuple[str, str]]) -> list[frozenset[str]]:
    """Return the smallest sets of services to be kept out, so that no pair is on one GPU."""
    found: set[frozenset[str]] = {frozenset()}
    for pair in pairs:
        found = {
            more
            for out in found
            for more in ([out] if out & set(pair) else [out | {name} for name in pair])
        }
    return sorted((out for out in found if not any(other < out for other in found)), key=sorted)
