"""Whether a deployment keeps wishes, counted off the deployment itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

from ...schedule.faults import Violation
from ...values.numbers import shown
from .model import Deployment
from .wanted import DesiredState
from .wishes import PlacementConstraints, places_of

__all__ = ["wish_faults"]


def wish_faults(
    deployment: Deployment, wishes: PlacementConstraints, wanted: DesiredState
) -> Iterator[Violation]:
    """Iterate over the wishes that a deployment does not keep, exactly.

    Managed instances that have work count, whatever their state.
    """
    total: Counter[str] = Counter()
    on_node: Counter[tuple[str, str]] = Counter()
    supply: dict[tuple[str, str], Fraction] = {}
    for card in deployment.gpus():
        works = [each.work for each in card.instances if each.is_managed and each.work is not None]
        for work in works:
            at_node = work.service, card.node
            supply[at_node] = supply.get(at_node, Fraction(0)) + work.supply_rps
        here = Counter(work.service for work in works)
        total += here
        for service, n in here.items():
            on_node[service, card.node] += n
            if n > (most := wishes.max_per_gpu.get(service, n)):
                has = f"{n} instances of {service}"
                yield Violation("max_per_gpu", card.name, has, f"at most {most}")
        for one, other in wishes.pairs:
            if here[one] and here[other]:
                yield Violation("anti_affinity", card.name, f"{one} and {other}", "one of them")
    for service, least in wishes.min_replicas.items():
        if total[service] < least:
            has = f"{total[service]} instances"
            yield Violation("min_replicas", f"service {service}", has, f"at least {least}")
    for service, word in wishes.spread.items():
        of = places_of(deployment, word)
        keys = {kind.gpu for kind in wanted.counts if kind.work.service == service}
        places = {of[card.node] for card in deployment.gpus() if card.gpu.key in keys}
        at: Counter[str] = Counter()
        for node, place in of.items():
            at[place] += on_node[service, node]
        for place, n in sorted(at.items()):
            if n > (most := -(-total[service] // max(1, len(places)))):
                has = f"{n} of {total[service]} instances of {service}"
                yield Violation("spread", f"{word} {place}", has, f"at most {most}")
    if wishes.share is not None:
        for entry in wanted.services:
            every = {
                node.name: supply.get((entry.name, node.name), Fraction(0))
                for node in deployment.nodes
            }
            for node, gone in every.items():
                left = sum(every.values(), Fraction(0)) - gone
                if left < wishes.share * entry.rate_rps:
                    where = f"service {entry.name} without {node}"
                    needs = f"{shown(wishes.share * entry.rate_rps)} requests/s"
                    yield Violation("survive", where, f"{shown(left)} requests/s", needs)
