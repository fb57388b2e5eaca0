"""Why a desired state cannot be placed on a fleet: prices that prove it, and what they say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil, lcm

from ...solving.solution import Proof
from ...values.numbers import shown
from ..deployment.guesses import doubtful, in_doubt
from ..deployment.instance import WHOLE, Mode
from ..deployment.model import Deployment, FleetGpu
from ..deployment.wanted import DesiredState
from ..serving.operating_point import mps_share
from .constraint_rows import build_demand, build_model
from .constraints import PlacementConstraints
from .gpu_group import GpuGroup, group_equivalent_gpus, place_of
from .kept_bound import find_room_prices, room_missing
from .placement_model import Demand, PlacementModel
from .plan_groups import Shortage
from .program import Limits

__all__ = ["PlacementInfeasible", "check_unplaceable", "explain_infeasibility", "explain_shortage"]

Block = tuple[str, str]
#: Builds the placement model of a desired state under some constraints.
Builder = Callable[[DesiredState, PlacementConstraints], PlacementModel]
#: GPUs that are named where a profile fits on none.
_NAMED = 3


@dataclass(frozen=True)
class PlacementInfeasible:
    """What is wanted cannot be placed on the fleet.

    `proof`: ``CHECKED``: `prices` prove it, which `check_unplaceable` rechecks; of constraints and
    caps, prices of all rows of the placement model; of a plan's groups, that they need more GPUs
    than have room for any of them, which was counted. ``SOLVER``: a solver says so. `prices`:
    ``{(GPU, profile): price}``: at these the instances wanted of a GPU type are worth more than all
    GPUs of the type can hold beside foreign instances.

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
    >>> fleet = Deployment(())
    >>> found = explain_infeasibility(wanted, fleet, PlacementConstraints())
    >>> check_unplaceable(found, wanted, fleet)
    True
    """
    demand = build_demand(wanted, PlacementConstraints())
    if any(price < 0 for price in found.prices.values()):
        return False
    groups = group_equivalent_gpus(fleet, demand.numbers)
    keys = {key for key, _ in found.prices}
    return bool(keys) and all(room_missing(groups, demand, key, found.prices) > 0 for key in keys)


def explain_infeasibility(
    wanted: DesiredState,
    fleet: Deployment,
    constraints: PlacementConstraints,
    limits: Limits | None = None,
    build: Builder | None = None,
    *,
    is_exact: bool = True,
) -> PlacementInfeasible:
    """Say why there is no placement: a lack of GPUs, a cap on them, or constraints.

    Prices prove a lack of GPUs if possible. Otherwise the reasons are the caps and constraints
    without each of which there is a placement. `build`: Builds the model of all plans, whose
    counts are not those of `wanted`; `is_exact`: whether its rows say no more than is asked.
    """
    limits = limits or Limits()
    if build is None and (found := _find_lack(wanted, fleet, limits)) is not None:
        return found

    def fixed(state: DesiredState, some: PlacementConstraints) -> PlacementModel:
        return build_model(state, fleet, some, build_demand(state, some), Fraction(0))

    make = build or fixed

    def is_possible(state: DesiredState, some: PlacementConstraints) -> bool:
        return make(state, some).program.maximise({}, limits).values is not None

    reasons = []
    for key, cap in wanted.max_gpus.items():
        others = {name: n for name, n in wanted.max_gpus.items() if name != key}
        if is_possible(replace(wanted, max_gpus=others), constraints):
            reasons.append(f"at most {cap} x {key} may be used, and with more there is a placement")
    for limit in wanted.group_limits:
        rest = tuple(each for each in wanted.group_limits if each is not limit)
        if is_possible(replace(wanted, group_limits=rest), constraints):
            most = f"at most {shown(limit.at_most)} of group {limit.name}"
            reasons.append(f"{most} may be used, and with more there is a placement")
    reasons += [
        f"{name} is asked for, and without it there is a placement"
        for name in constraints.split()
        if is_possible(wanted, constraints.without(name))
    ]
    proof = Proof.SOLVER
    is_limited = bool(constraints or wanted.max_gpus or wanted.group_limits)
    if is_exact and is_limited and make(wanted, constraints).program.refute(limits) is not None:
        proof = Proof.CHECKED
    if not reasons:
        why = "no layouts of the fleet's GPUs hold the instances wanted"
        if build is not None:
            why = "no plan has a place on the fleet's GPUs"
        reasons = [f"{why} under the constraints" if constraints else why]
    return PlacementInfeasible(tuple(reasons), proof)


def _find_lack(
    wanted: DesiredState, fleet: Deployment, limits: Limits
) -> PlacementInfeasible | None:
    """Look for prices that prove that the fleet has no room for what is wanted.

    None if there are none: then only a search through whole numbers can tell.
    """
    demand = build_demand(wanted, PlacementConstraints())
    groups = group_equivalent_gpus(fleet, demand.numbers)
    reasons: list[str] = []
    prices: dict[Block, Fraction] = {}
    for key in sorted({kind.gpu for kind in demand.kinds}):
        cards = [card for card in fleet.gpus() if card.gpu.key == key]
        own = _find_lacking_profiles(groups, demand, key, fleet, cards, reasons)
        if not own:
            own = _weigh_all(groups, demand, key, cards, reasons, limits)
        prices |= own
    return PlacementInfeasible(tuple(reasons), Proof.CHECKED, prices) if reasons else None


def explain_shortage(lacking: Shortage, fleet: Deployment) -> PlacementInfeasible:
    """Say which GPUs are missing: the contents need more of them than have room for any."""
    held = [
        " + ".join(f"{n} x {name}" for name, n in sorted(content.counts.items()))
        for content in lacking.contents
    ]
    key = lacking.contents[0].gpu
    reason = (
        f"{lacking.needed} x {key} are needed to hold {' or '.join(dict.fromkeys(held))}, and "
        f"{lacking.there} of the fleet's have room for it"
    )
    counts = lacking.contents[0].counts
    for card in fleet.gpus():
        foreign, known = card.foreign, {profile.name for profile in card.gpu.profiles}
        is_told = card.mode is Mode.MIG and all(each.start is not None for each in foreign)
        if card.gpu.key == key and foreign and is_told and counts.keys() <= known:
            around = list(map(place_of, foreign))
            if why := card.gpu.why_not(counts, around=around):
                reason += f"; {card.name}: {why}"
                break
    return PlacementInfeasible((reason,), Proof.CHECKED)


def _find_lacking_profiles(
    groups: Sequence[GpuGroup],
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
        missing = room_missing(groups, demand, key, {block: Fraction(1)})
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
            pinned = list(map(place_of, held))
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


def _weigh_all(
    groups: Sequence[GpuGroup],
    demand: Demand,
    key: str,
    cards: Sequence[FleetGpu],
    reasons: list[str],
    limits: Limits,
) -> dict[Block, Fraction]:
    prices = find_room_prices(groups, demand, key, limits)
    if not prices:
        return {}
    missing = room_missing(groups, demand, key, prices)
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
