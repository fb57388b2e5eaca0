"""The least cost of serving services on a tiny fleet, and of that the fewest GPUs, by trying all.

A GPU's contents are listed by the rules alone. What matters of a node is summed: how many instances
each service has, what they supply, and how many are replicas. Contents of one sum are one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations_with_replacement, product

from cms.fleet.deployment import Deployment, FleetGpu
from tests.references.placements import every_layout

#: What GPUs cost, and how many they are on which nothing foreign is.
Spent = tuple[Fraction, int]
#: By service: instances, supply, replicas.
Sum = tuple[tuple[int, Fraction, int], ...]


@dataclass(frozen=True)
class Asked:
    """What is asked of a tiny fleet.

    `supply`: Of a service on a GPU's profile. `replicas`: A number, and the least supply of each.
    """

    rates: Mapping[str, Fraction]
    supply: Mapping[tuple[str, str, str], Fraction]  # service, GPU, profile
    prices: Mapping[str, Fraction]
    caps: Mapping[str, int] = field(default_factory=dict)
    replicas: Mapping[str, tuple[int, Fraction]] = field(default_factory=dict)
    spread: frozenset[str] = frozenset()  # services, evenly over nodes
    apart: bool = False  # no two services on one GPU
    most: Mapping[str, int] = field(default_factory=dict)  # on a GPU
    survive: Fraction = Fraction(0)


def _contents(card: FleetGpu, asked: Asked) -> Iterator[Counter[tuple[str, str]]]:
    """Yield what a GPU can hold: instances by profile and service."""
    held = [(each.profile, each.start) for each in card.foreign]
    names = {profile for _, key, profile in asked.supply if key == card.gpu.key}
    seen = set()
    for layout in every_layout(card.gpu, frozenset(names | {name for name, _ in held})):
        if not {*held} <= {*layout}:
            continue
        free = Counter(place.profile for place in layout if place not in held)
        if not free.keys() <= names or (key := tuple(sorted(free.items()))) in seen:
            continue
        seen.add(key)
        ways = [
            combinations_with_replacement(
                [s for s in asked.rates if asked.supply.get((s, card.gpu.key, profile))], n
            )
            for profile, n in free.items()
        ]
        for chosen in product(*ways):
            yield Counter(
                (profile, service)
                for profile, own in zip(free, chosen, strict=True)
                for service in own
            )


def _options(card: FleetGpu, asked: Asked) -> dict[tuple[Sum, tuple[tuple[str, int], ...]], Spent]:
    """Return the sums that a GPU can have, with what counts against caps, and their costs."""
    key = card.gpu.key
    found: dict[tuple[Sum, tuple[tuple[str, int], ...]], Spent] = {}
    spent = (Fraction(0), 0) if card.foreign else (asked.prices[key], 1)
    for content in _contents(card, asked):
        here = Counter[str]()
        for (_, service), n in content.items():
            here[service] += n
        if asked.apart and len(here) > 1:
            continue
        if any(n > asked.most.get(service, n) for service, n in here.items()):
            continue
        entry = []
        for service in asked.rates:
            own = [(p, n) for (p, s), n in content.items() if s == service]
            each = asked.supply
            supply = sum((n * each[service, key, p] for p, n in own), Fraction(0))
            _, least = asked.replicas.get(service, (0, Fraction(0)))
            replicas = sum(n for p, n in own if each[service, key, p] >= least)
            entry.append((sum(n for _, n in own), min(supply, 2 * asked.rates[service]), replicas))
        used = ((key, 1),) if content else ()
        found[tuple(entry), used] = spent if content else (Fraction(0), 0)
    return found


def _add(one: Sum, other: Sum) -> Sum:
    return tuple((a + d, b + e, c + f) for (a, b, c), (d, e, f) in zip(one, other, strict=True))


def least_cost(fleet: Deployment, asked: Asked) -> Spent | None:
    """The least cost of a plan that has a place, and its GPUs; None if none has."""
    nothing: Sum = ((0, Fraction(0), 0),) * len(asked.rates)
    States = dict[tuple[tuple[Sum, ...], tuple[tuple[str, int], ...]], Spent]
    states: States = {((), ()): (Fraction(0), 0)}
    for node in fleet.nodes:
        states = {((*sums, nothing), used): cost for (sums, used), cost in states.items()}
        for card in node.gpus:
            options = _options(card, asked)
            after: States = {}
            for ((sums, used), cost), ((own, more), price) in product(
                states.items(), options.items()
            ):
                count = Counter(dict(used)) + Counter(dict(more))
                if any(n > asked.caps.get(key, n) for key, n in count.items()):
                    continue
                key = (*sums[:-1], _add(sums[-1], own)), tuple(sorted(count.items()))
                more_cost = cost[0] + price[0], cost[1] + price[1]
                after[key] = min(more_cost, after.get(key, more_cost))
            states = after
    return min(
        (cost for (sums, _), cost in states.items() if _serves(fleet, asked, sums)), default=None
    )


def is_served(deployment: Deployment, asked: Asked) -> bool:
    """Whether a deployment does what is asked, at what each instance supplies."""
    nothing: Sum = ((0, Fraction(0), 0),) * len(asked.rates)
    sums = []
    for node in deployment.nodes:
        total = nothing
        for card in node.gpus:
            works = [e.work for e in card.instances if e.is_managed and e.work is not None]
            here = Counter(work.service for work in works)
            if asked.apart and len(here) > 1:
                return False
            if any(n > asked.most.get(service, n) for service, n in here.items()):
                return False
            own = []
            for service in asked.rates:
                each = [work.supply_rps for work in works if work.service == service]
                _, least = asked.replicas.get(service, (0, Fraction(0)))
                own.append((len(each), sum(each, Fraction(0)), sum(n >= least for n in each)))
            total = _add(total, tuple(own))
        sums.append(total)
    return _serves(deployment, asked, sums)


def _serves(fleet: Deployment, asked: Asked, sums: Sequence[Sum]) -> bool:
    for at, (service, rate) in enumerate(asked.rates.items()):
        counts, supplies, replicas = zip(*(own[at] for own in sums), strict=True)
        if sum(supplies) < rate or sum(replicas) < asked.replicas.get(service, (0, 0))[0]:
            return False
        if any(sum(supplies) - own < asked.survive * rate for own in supplies):
            return False
        if service in asked.spread:
            keys = {key for name, key, _ in asked.supply if name == service}
            homes = [any(card.gpu.key in keys for card in node.gpus) for node in fleet.nodes]
            most = -(-sum(counts) // max(1, sum(homes)))
            if any(n > most for n in counts):
                return False
    return True
