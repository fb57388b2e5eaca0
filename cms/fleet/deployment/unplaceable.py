"""Why a plan cannot be placed on a fleet: prices that prove it, and what they say in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, lcm

from ...solving.solution import Proof
from ..serving.operating_point import mps_share
from .guesses import doubtful, in_doubt
from .instance import WHOLE, Mode
from .keeping import Demand
from .keeping_bound import best_prices, room_missing
from .model import Deployment, FleetGpu
from .programs import Limits
from .spots import Spot, spots_of
from .wanted import DesiredState
from .wishes import PlacementConstraints, demand_of

__all__ = ["PlacementInfeasible", "check_unplaceable", "why_unplaceable"]

Block = tuple[str, str]
#: GPUs that are named where a profile fits on none.
_NAMED = 3


@dataclass(frozen=True)
class PlacementInfeasible:
    """What is wanted cannot be placed on the fleet.

    `proof`: ``CHECKED``: `prices` prove it, which `check_unplaceable` looks over again; of a plan's
    groups, that they need more GPUs than have room for any of them, which was counted. ``SOLVER``:
    a solver says so. `prices`: ``{(GPU, profile): price}``: at these the instances wanted of a GPU
    type are worth more than all GPUs of the type can hold beside foreign instances.

    Examples
    --------
    >>> print(
    ...     PlacementInfeasible(
    ...         ("2 x 3g.40gb of a100-80gb are wanted, and the fleet has no a100-80gb",)
    ...     )
    ... )
    unplaceable, proof checked: 2 x 3g.40gb of a100-80gb are wanted, and the fleet has no a100-80gb
    """

    reasons: tuple[str, ...]
    proof: Proof = Proof.CHECKED
    prices: Mapping[Block, Fraction] = field(default_factory=dict)

    def __str__(self) -> str:
        proof = "proof checked" if self.proof is Proof.CHECKED else "on a solver's word"
        return f"unplaceable, {proof}: {'; '.join(self.reasons)}"


def check_unplaceable(found: PlacementInfeasible, wanted: DesiredState, fleet: Deployment) -> bool:
    """Whether the prices prove that what is wanted has no place on the fleet, exactly.

    Examples
    --------
    >>> from cms import load_instance, solve
    >>> from cms.fleet import Plan
    >>> from cms.fleet.deployment import desired_state
    >>> serving = load_instance("S1").build_problem()
    >>> wanted = desired_state(Plan(serving, solve(serving.problem)))
    >>> check_unplaceable(why_unplaceable(wanted, Deployment(())), wanted, Deployment(()))
    True
    """
    demand = demand_of(wanted, PlacementConstraints())
    if any(price < 0 for price in found.prices.values()):
        return False
    spots = spots_of(fleet, demand.numbers)
    keys = {key for key, _ in found.prices}
    return bool(keys) and all(room_missing(spots, demand, key, found.prices) > 0 for key in keys)


def why_unplaceable(
    wanted: DesiredState, fleet: Deployment, limits: Limits | None = None
) -> PlacementInfeasible | None:
    """Look for prices that prove that what is wanted has no place on the fleet.

    None if there are none: then there is a deployment, or only a search through whole numbers can
    tell that there is none.
    """
    demand = demand_of(wanted, PlacementConstraints())
    spots = spots_of(fleet, demand.numbers)
    reasons: list[str] = []
    prices: dict[Block, Fraction] = {}
    for key in sorted({kind.gpu for kind in demand.kinds}):
        cards = [card for card in fleet.gpus() if card.gpu.key == key]
        own = _of_single_profiles(spots, demand, key, fleet, cards, reasons)
        if not own:
            own = _together(spots, demand, key, cards, reasons, limits or Limits())
        prices |= own
    return PlacementInfeasible(tuple(reasons), Proof.CHECKED, prices) if reasons else None


def _of_single_profiles(
    spots: Sequence[Spot],
    demand: Demand,
    key: str,
    fleet: Deployment,
    cards: Sequence[FleetGpu],
    reasons: list[str],
) -> dict[Block, Fraction]:
    prices: dict[Block, Fraction] = {}
    wanted = {kind.profile for kind in demand.kinds if kind.gpu == key}
    if not cards:
        counts = " + ".join(f"{demand.on(key, name)} x {name}" for name in sorted(wanted))
        reasons.append(f"{counts} of {key} are wanted, and the fleet has no {key}")
        return {(key, name): Fraction(1) for name in wanted}
    for name in sorted(wanted):
        block = key, name
        missing = room_missing(spots, demand, key, {block: Fraction(1)})
        if missing <= 0:
            continue
        prices[block] = Fraction(1)
        if missing == demand.on(*block):
            reasons.append(f"{name} fits on no {key}: {_why_nowhere(name, fleet, cards)}")
        else:
            reasons.append(f"{missing} more {name} are needed than {_the_gpus(cards)} can hold")
    return prices


def _why_nowhere(name: str, fleet: Deployment, cards: Sequence[FleetGpu]) -> str:
    """Why a profile fits on none of some GPUs, said of the first few."""
    profile = next((each for each in cards[0].gpu.profiles if each.name == name), None)
    is_part = mps_share(name) is None and name != WHOLE
    said: dict[str, str] = {}
    for card in cards:
        node = fleet.node(card.node)
        doubted = in_doubt(card, doubtful(node))
        if profile is not None and not node.offers(profile):
            why = (
                f"the driver {node.driver} of {card.node} does not offer it, it is there since "
                f"{profile.since_driver}"
            )
        elif card.mode is Mode.FIXED:
            why = f"{card.name} is fixed, as it was found not fit for a plan"
        elif card.mode is not Mode.MIG and card.foreign and profile is not None:
            why = f"{card.name} is shared by {_owners(card)} without MIG"
        elif card.foreign and not is_part:
            why = f"{card.name} has {_owners(card)} on it"
        elif doubted and (card.mode is not Mode.MIG or not is_part):
            why = f"{card.name} has instances on it that may be another's"
        elif any(each.start is None for each in (*card.foreign, *doubted)):
            why = f"the starts of the instances on {card.name} are not known"
        else:
            held = (*card.foreign, *doubted)
            pinned = [(each.profile, each.start or 0) for each in held]
            why = f"{card.name}: {card.gpu.why_not({name: 1}, around=pinned)}"
        said.setdefault(why.replace(card.name, "", 1), why)
    shown = list(said.values())[:_NAMED]
    more = f"; and {len(said) - _NAMED} more reasons" if len(said) > _NAMED else ""
    return "; ".join(shown) + more


def _owners(card: FleetGpu) -> str:
    return ", ".join(sorted({each.owner or "" for each in card.foreign}))


def _the_gpus(cards: Sequence[FleetGpu]) -> str:
    """``the 11 GPUs``, and the instances of others on them."""
    others = sum(len(card.foreign) for card in cards)
    gpus = f"the {len(cards)} GPUs" if len(cards) > 1 else "the GPU"
    return gpus if not others else f"{gpus}, beside {others} foreign instance{'s' * (others > 1)},"


def _together(
    spots: Sequence[Spot],
    demand: Demand,
    key: str,
    cards: Sequence[FleetGpu],
    reasons: list[str],
    limits: Limits,
) -> dict[Block, Fraction]:
    found = best_prices(spots, demand, limits, room=key)
    if found is None:
        return {}
    prices = {block: price for block, price in found[0].blocks.items() if price}
    missing = room_missing(spots, demand, key, prices)
    if missing <= 0:
        return {}
    unit = lcm(*(price.denominator for price in prices.values()))
    whole = {name: price * unit for (_, name), price in sorted(prices.items())}
    if len(set(whole.values())) == 1:
        short = ceil(missing / next(iter(prices.values())))
        names = " and ".join(whole)
        reasons.append(f"{short} more of {names} are needed than {_the_gpus(cards)} can hold")
    else:
        asked = sum(price * demand.on(key, name) for name, price in whole.items())
        worth = ", ".join(f"{name} = {price}" for name, price in whole.items())
        reasons.append(
            f"counted as {worth}, the instances wanted come to {asked}, more than the "
            f"{asked - missing * unit} that {_the_gpus(cards)} can hold"
        )
    return prices
