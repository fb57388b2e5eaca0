"""How many instances can stay at most, and what proves it.

What both sides have in common is a bound by itself. Where GPUs would have to be cut in two ways at
once to keep all of that, prices say so, as in a placement
(:mod:`~cms.fleet.placement.kept_bound`): they travel with the transition, and readers
can add them up again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ....errors import CmsError, InvalidCertificate
from ....schedule.faults import Violation
from ....solving.solution import Proof
from ....values.frozen import FrozenMap
from ...placement.gpu_group import GpuGroup, group_equivalent_gpus
from ...placement.kept_bound import Prices, best_prices, most_kept
from ...placement.placement_model import Demand
from ...placement.program import Limits
from ..checking import has_our_work
from ..instance import Mode
from ..model import Deployment
from .model import Kept, KeptPrices, Transition

__all__ = ["has_starts", "in_common", "kept_faults", "proved_kept"]


def in_common(start: Deployment, target: Deployment, *, places: bool = False) -> int:
    """Count what both sides have of each kind, or of each kind at each place."""
    if not places:
        return (start.kinds() & target.kinds()).total()
    here, there = (
        Counter(
            (card.name, each.profile, each.start, each.work)
            for card, each in side.instances()
            if each.is_managed and each.work is not None
        )
        for side in (start, target)
    )
    return (here & there).total()


def proved_kept(
    start: Deployment, target: Deployment, count: int, bound: tuple[int, Proof], limits: Limits
) -> Kept:
    """Say how many are kept of at most how many, with prices where it takes any to prove it.

    It is on a solver's word where prices prove nothing: of GPUs that are not cut by MIG, and of
    contents as grouped.
    """
    most, proof = max(count, bound[0]), bound[1]
    if proof is not Proof.CHECKED or in_common(start, target) <= most:
        return Kept(count, most, proof)
    if has_starts(start) and has_starts(target):
        spots, demand = _program(start, target)
        found = best_prices(spots, demand, limits)
        if found is not None:
            kinds = sorted(found[0].kinds.items())
            prices = KeptPrices(
                tuple((demand.kinds[at].work, price) for at, price in kinds),
                FrozenMap(found[0].blocks),
                FrozenMap(found[0].gpus),
            )
            if _most(spots, demand, prices) <= most:
                return Kept(count, most, proof, prices=prices)
    return Kept(count, most, Proof.SOLVER)


def has_starts(side: Deployment) -> bool:
    """Whether all that is there is cut by MIG, at known starts."""
    return all(card.mode is Mode.MIG and each.start is not None for card, each in side.instances())


def _program(start: Deployment, target: Deployment) -> tuple[tuple[GpuGroup, ...], Demand]:
    counts = target.kinds()
    kinds = tuple(counts)
    gpus = Counter(card.gpu.key for card in target.gpus() if has_our_work(card))
    spots = group_equivalent_gpus(start, {kind: number for number, kind in enumerate(kinds)})
    return spots, Demand(kinds, tuple(counts.values()), gpus, ())


def _most(spots: tuple[GpuGroup, ...], demand: Demand, prices: KeptPrices) -> int:
    number = {kind.work: at for at, kind in enumerate(demand.kinds)}
    if unknown := [work for work, _ in prices.works if work not in number]:
        raise InvalidCertificate(f"a price of {unknown[0]}, which is not wanted")
    if far := prices.gpus.keys() - demand.gpus.keys():
        raise InvalidCertificate(f"a price of {min(far)}, which the target does not use")
    works = {number[work]: price for work, price in prices.works}
    return most_kept(spots, demand, Prices(works, prices.blocks, prices.gpus))


def kept_faults(transition: Transition) -> Iterator[Violation]:
    """Say what is wrong with the bound that a transition states, if it is said to be checked."""
    kept, start, target = transition.kept, transition.start, transition.target
    if kept.proof is not Proof.CHECKED:
        return
    why = ""
    if kept.prices is None:
        if (most := in_common(start, target, places=kept.places)) > kept.most:
            why = f"no prices, and {most} in common"
    elif not (has_starts(start) and has_starts(target)):
        why = "prices of GPUs that are not cut by MIG, or without starts"
    else:
        spots, demand = _program(start, target)
        try:
            if (most := _most(spots, demand, kept.prices)) > kept.most:
                why = f"prices that prove no more than {most}"
        except CmsError as fault:
            why = str(fault)
    if why:
        has = f"at most {kept.most} instances kept, with {why}"
        yield Violation("kept", "the transition", has, "a bound that is proved")
