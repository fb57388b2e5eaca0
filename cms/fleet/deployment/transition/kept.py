"""How many instances a transition keeps, and why none keeps more.

What both sides have in common bounds it. Where GPUs would have to be cut in two ways at once to
keep all of that, prices say so (:mod:`~cms.fleet.placement.kept_bound`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

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
from ..wanted import DesiredState
from .model import Action, Kept, KeptPrices, Transition


def count_kept(start: Deployment, actions: Iterable[Action]) -> int:
    """Count the instances with work that no action removes."""
    gone = Counter((action.gpu, each) for action in actions for each in action.removes)
    there = Counter(
        ((card.node, card.index), each)
        for card, each in start.instances()
        if each.is_managed and each.work is not None
    )
    return (there - gone).total()


def has_starts(side: Deployment) -> bool:
    """Whether all that is there is cut by MIG, at known starts."""
    return all(card.mode is Mode.MIG and each.start is not None for card, each in side.instances())


def in_common(start: Deployment, target: Deployment, *, places: bool = False) -> int:
    """Count what both sides have of each kind, or of each kind at each place."""
    if places:
        return (start.places() & target.places()).total()
    return (start.kinds() & target.kinds()).total()


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
        groups, demand = _program(start, target)
        if (found := best_prices(groups, demand, limits)) is not None:
            works = ((demand.kinds[at].work, price) for at, price in sorted(found[0].kinds.items()))
            blocks, gpus = FrozenMap(found[0].blocks), FrozenMap(found[0].gpus)
            proved = Kept(count, most, proof, prices=KeptPrices(tuple(works), blocks, gpus))
            if _bound_kept(start, target, proved) <= most:
                return proved
    return Kept(count, most, Proof.SOLVER)


def _program(start: Deployment, target: Deployment) -> tuple[tuple[GpuGroup, ...], Demand]:
    counts = target.kinds()
    gpus = Counter(card.gpu.key for card in target.gpus() if has_our_work(card))
    wanted = DesiredState(counts, gpus, target.devices, target.services, target.rule)
    demand = Demand(wanted, tuple(counts), tuple(counts.values()))
    return group_equivalent_gpus(start, demand.numbers), demand


def _bound_kept(start: Deployment, target: Deployment, kept: Kept) -> int:
    """Return how many can be kept at most: what both sides have in common, or as prices say."""
    if (prices := kept.prices) is None:
        return in_common(start, target, places=kept.places)
    if not (has_starts(start) and has_starts(target)):
        raise InvalidCertificate("prices of GPUs that are not cut by MIG, or without starts")
    groups, demand = _program(start, target)
    number = {kind.work: at for at, kind in enumerate(demand.kinds)}
    if unknown := [work for work, _ in prices.works if work not in number]:
        raise InvalidCertificate(f"a price of {unknown[0]}, which is not wanted")
    if far := prices.gpus.keys() - demand.wanted.gpus.keys():
        raise InvalidCertificate(f"a price of {min(far)}, which the target does not use")
    works = {number[work]: price for work, price in prices.works}
    return most_kept(groups, demand, Prices(works, prices.blocks, prices.gpus))


def kept_faults(transition: Transition) -> Iterator[Violation]:
    """Say what is wrong with the bound that a transition states, if it is said to be checked."""
    kept = transition.kept
    if kept.proof is not Proof.CHECKED:
        return
    try:
        most = _bound_kept(transition.start, transition.target, kept)
        why = f"proof of no more than {most}" if most > kept.most else ""
    except CmsError as fault:
        why = str(fault)
    if why:
        has = f"at most {kept.most} instances kept, with {why}"
        yield Violation("kept", "the transition", has, "a bound that is proved")
