"""Placement constraints: what users ask of a placement beyond a plan's counts, and the check."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import reduce
from itertools import product

from ...errors import InvalidOption, InvalidProblem
from ...files.numerals import is_whole
from ...schedule.faults import Violation
from ...values.frozen import FrozenMap
from ...values.names import nearest
from ...values.numbers import shown
from ..deployment.model import Deployment
from ..deployment.wanted import DesiredState
from ..serving.service import HEEDED, Service, combine_supplies

DOMAINS = ("node", "zone")
_SEPARATORS = re.compile(r"[;\s]+")


@dataclass(frozen=True)
class PlacementConstraints:
    """What a placement has to satisfy beside the plan's counts.

    `min_replicas`: ``{service: n}``: at least n instances. `spread`: ``{service: "node"}`` or
    ``"zone"``: no node (zone) has more than its equal share of the service's instances, rounded up;
    nodes without a GPU of a type it runs on do not count. `anti_affinity`: Two services that are
    never on one GPU. `max_per_gpu`: ``{service: n}``: at most n instances on one GPU. `survive`:
    With any one node gone, each service still has this share of its rate: 0.8. In equal
    shares, if the plan is for equal routing: as many times the smallest instance left.

    InvalidOption if a number or a word is out of its range.

    Examples
    --------
    >>> constraints = PlacementConstraints(
    ...     min_replicas={"chat": 2}, spread={"chat": "node"}, survive="0.8"
    ... )
    >>> print(*constraints.split(), sep="; ")
    min_replicas of chat: 2; spread of chat: node; survive: node:80%
    """

    min_replicas: Mapping[str, int] = field(default_factory=FrozenMap)
    spread: Mapping[str, str] = field(default_factory=FrozenMap)
    anti_affinity: Iterable[tuple[str, str]] = ()
    max_per_gpu: Mapping[str, int] = field(default_factory=FrozenMap)
    survive: Fraction | str | int | None = None
    #: What is left of each rate with any one node gone.
    share: Fraction | None = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        for name in ("min_replicas", "spread", "max_per_gpu"):
            put(self, name, FrozenMap(getattr(self, name)))
        pairs = {tuple(sorted(pair)) for pair in self.anti_affinity}
        put(self, "anti_affinity", tuple(sorted(pairs)))
        for what, least in (("min_replicas", 0), ("max_per_gpu", 1)):
            for service, number in getattr(self, what).items():
                if isinstance(number, bool) or not isinstance(number, int) or number < least:
                    raise InvalidOption(
                        f"{what} of {service!r} is {number!r}; expected a whole number >= {least}"
                    )
        for service, word in self.spread.items():
            if word not in DOMAINS:
                raise InvalidOption(
                    f"spread of {service!r} is {word!r}; expected {' or '.join(DOMAINS)}"
                )
        for pair in self.anti_affinity:
            if len(set(pair)) != 2:
                raise InvalidOption(
                    f"anti_affinity has {' and '.join(pair)}; expected two services"
                )
        put(self, "share", None if self.survive is None else _share(self.survive))
        put(self, "survive", self.share)

    @property
    def services(self) -> dict[str, None]:
        """The services that are named."""
        pairs = (name for pair in self.anti_affinity for name in pair)
        return dict.fromkeys([*self.min_replicas, *self.spread, *self.max_per_gpu, *pairs])

    def split(self) -> dict[str, PlacementConstraints]:
        """Return each constraint alone, under its name."""
        only = PlacementConstraints
        found = {f"min_replicas of {s}: {n}": only({s: n}) for s, n in self.min_replicas.items()}
        found |= {f"spread of {s}: {w}": only(spread={s: w}) for s, w in self.spread.items()}
        for a, b in self.anti_affinity:
            found[f"anti_affinity of {a} and {b}"] = only(anti_affinity=[(a, b)])
        for s, n in self.max_per_gpu.items():
            found[f"max_per_gpu of {s}: {n}"] = only(max_per_gpu={s: n})
        if self.share is not None:
            found[f"survive: node:{shown(100 * self.share)}%"] = only(survive=self.share)
        return found

    def without(self, name: str) -> PlacementConstraints:
        """Return all but one constraint, by its name in `split`."""
        others = (part for other, part in self.split().items() if other != name)
        return reduce(PlacementConstraints.__or__, others, PlacementConstraints())

    def without_services(self, names: Collection[str]) -> PlacementConstraints:
        """Return what is asked of other services."""
        parts = [part for part in self.split().values() if not part.services.keys() & {*names}]
        return reduce(PlacementConstraints.__or__, parts, PlacementConstraints())

    def __or__(self, other: PlacementConstraints) -> PlacementConstraints:
        """Return both; the other overrides."""
        return PlacementConstraints(
            {**self.min_replicas, **other.min_replicas},
            {**self.spread, **other.spread},
            (*self.anti_affinity, *other.anti_affinity),
            {**self.max_per_gpu, **other.max_per_gpu},
            self.share if other.share is None else other.share,
        )

    def __bool__(self) -> bool:
        return any(getattr(self, each.name) for each in fields(self))

    def require(self, services: Iterable[Service]) -> None:
        """Refuse a constraint of a service that is not there."""
        known = [service.name for service in services]
        for name in self.services:
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
    """Read the constraints in the columns of a table of services.

    Columns ``min_replicas`` (a number), ``spread`` (``node`` or ``zone``) and ``anti_affinity``
    (services with blanks or semicolons between them); empty cells ask for nothing.

    InvalidProblem if a cell is none of these; the message says where it was read.

    Examples
    --------
    >>> extra = {"min_replicas": "2", "anti_affinity": "code; sum"}
    >>> service = Service("chat", "bert", 19, 400, extra=extra)
    >>> print(*placement_constraints([service]).split(), sep="; ")
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


def find_domains(fleet: Deployment, word: str) -> dict[str, str]:
    """Return the node or zone of each node; InvalidProblem if a node has no zone."""
    for node in fleet.nodes if word == "zone" else ():
        if "zone" not in node.labels:
            raise InvalidProblem(
                f"node {node.name!r} has no label zone, by which instances are to be spread; "
                "expected one on every node"
            )
    return {n.name: n.labels["zone"] if word == "zone" else n.name for n in fleet.nodes}


def find_constraint_violations(
    deployment: Deployment, constraints: PlacementConstraints, wanted: DesiredState
) -> Iterator[Violation]:
    """Iterate over the constraints that a deployment violates, exactly.

    Managed instances that have work count, whatever their state.
    """
    total: Counter[str] = Counter()
    supplies: defaultdict[tuple[str, str], list[Fraction]] = defaultdict(list)
    for card in deployment.gpus():
        works = [each.work for each in card.instances if each.is_managed and each.work is not None]
        for work in works:
            supplies[work.service, card.node].append(work.supply_rps)
        here = Counter(work.service for work in works)
        total += here
        for service, n in here.items():
            if n > (most := constraints.max_per_gpu.get(service, n)):
                has = f"{n} instances of {service}"
                yield Violation("max_per_gpu", card.name, has, f"at most {most}")
        for one, other in constraints.anti_affinity:
            if here[one] and here[other]:
                yield Violation("anti_affinity", card.name, f"{one} and {other}", "one of them")
    for service, least in constraints.min_replicas.items():
        if total[service] < least:
            has = f"{total[service]} instances"
            yield Violation("min_replicas", f"service {service}", has, f"at least {least}")
    for service, word in constraints.spread.items():
        of = find_domains(deployment, word)
        keys = {kind.gpu for kind in wanted.counts if kind.work.service == service}
        places = {of[card.node] for card in deployment.gpus() if card.gpu.key in keys}
        at: Counter[str] = Counter()
        for node, place in of.items():
            at[place] += len(supplies[service, node])
        for place, n in sorted(at.items()):
            if n > (most := -(-total[service] // max(1, len(places)))):
                has = f"{n} of {total[service]} instances of {service}"
                yield Violation("spread", f"{word} {place}", has, f"at most {most}")
    if constraints.share is not None:
        for entry, lost in product(wanted.services, deployment.nodes):
            own = [(at, each) for (s, at), each in supplies.items() if s == entry.name]
            rest = [(supply, 1) for at, each in own for supply in each if at != lost.name]
            left = combine_supplies(rest, wanted.routing)
            if left < constraints.share * entry.rate_rps:
                where = f"service {entry.name} without {lost.name}"
                needs = f"{shown(constraints.share * entry.rate_rps)} requests/s"
                yield Violation("survive", where, f"{shown(left)} requests/s", needs)
