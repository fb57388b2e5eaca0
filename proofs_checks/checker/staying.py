"""How many instances can stay at most: what both sides have in common, or what prices prove.

**By prices.** Let a deployment have the target's instances, wherever they are, on no more GPUs of
each type than the target uses. An instance that goes on is worth the price ``a`` of its point, any
instance of ours the price ``b`` of its profile, and a GPU costs ``c``; none is below 0. Of a point
that is wanted ``n`` times at most ``a k + (1 - a) k <= a k + n max(0, 1 - a)`` of ``k`` kept are
counted. So kept is at most the sum of ``n max(0, 1 - a) - n b`` over points, plus ``c N`` over
types, plus over GPUs what can be there at once is worth, less ``c``, if that is more than 0: all
that any deployment can have on a GPU is among its layouts, which are tried one by one.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import floor

from .ground import Site, ground_of
from .reading import ZERO, Fault, show
from .room import Held, layouts, offered, shape
from .transition import Transition


def in_common(of: Transition, *, places: bool) -> int:
    """Count what both sides have of each kind, or of each kind at each place."""
    sides = [
        Counter(
            (
                card.name if places else card.device.key,
                card.device.name_of(each.profile),
                each.start if places else None,
                each.point,
            )
            for card in side.cards.values()
            for each in card.held
            if each.point is not None and each.owner is None
        )
        for side in (of.start, of.target)
    ]
    return sum((sides[0] & sides[1]).values())


def most_by_prices(of: Transition) -> int:
    """Return what the prices prove that no deployment can keep more than."""
    if of.kept.prices is None:
        raise Fault("there are no prices of what is kept")
    points, instances, gpus = of.kept.prices
    ground = ground_of(of)
    if unknown := [name for name in points if not ground.wanted[name]]:
        raise Fault(f"{show(unknown[0])} has a price, and the target has none")
    used = Counter(
        card.device.key
        for card in of.target.cards.values()
        if any(each.owner is None and each.point is not None for each in card.held)
    )
    if unknown := [name for name in gpus if not used[name]]:
        raise Fault(f"{show(unknown[0])} has a price, and the target uses none")
    total = ZERO
    for name, count in ground.wanted.items():
        kind = ground.kinds[name]
        total += count * max(ZERO, 1 - points.get(name, ZERO))
        total -= count * instances.get((kind.device, kind.profile), ZERO)
    total += sum((price * used[name] for name, price in gpus.items()), ZERO)
    profiles = {(ground.kinds[name].device, ground.kinds[name].profile) for name in ground.wanted}
    worths: dict[object, Fraction] = {}
    for site in ground.sites:
        alike = site.card.device.key, site.card.driver, site.foreign, site.held
        if alike not in worths:
            own = frozenset(p for d, p in profiles if d == site.card.device.key)
            worths[alike] = _worth(of, site, own)
        total += max(ZERO, worths[alike] - gpus.get(site.card.device.key, ZERO))
    return floor(total)


def _worth(of: Transition, site: Site, wanted: frozenset[str]) -> Fraction:
    """What all that can be on a GPU at once is worth at most."""
    assert of.kept.prices is not None
    points, instances, _ = of.kept.prices
    stays = {
        (profile, start): points.get(point, ZERO)
        for profile, start, point in site.held
        if profile in wanted
    }
    added = frozenset(p for p in wanted if offered(site.card, p)) | {p for p, _ in stays}
    key = site.card.device.key

    def worth(here: Held) -> Fraction:
        own = here - site.foreign
        return sum((instances.get((key, at[0]), ZERO) + stays.get(at, ZERO) for at in own), ZERO)

    return max(map(worth, layouts(shape(site.card.device, added), site.foreign)))


def kept_faults(of: Transition) -> list[str]:
    """Say why the bound of what can be kept is not proved, if it is said to be."""
    kept = of.kept
    if kept.proof != "checked":
        return []
    if kept.prices is None:
        common = in_common(of, places=kept.of_target)
        words = f"{common} instances are in common, and there are no prices"
        return [f"that {kept.most} are kept at most is not proved: {words}"] * (common > kept.most)
    try:
        most = most_by_prices(of)
    except Fault as fault:
        return [f"that {kept.most} are kept at most is not proved: {fault}"]
    words = f"that {kept.most} are kept at most is not proved, only {most}"
    return [words] * (most > kept.most)
