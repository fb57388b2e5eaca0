"""Why a desired state has no place on a fleet: what lacks room, or which limit is in the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from ...solving.solution import Proof
from ..deployment.guesses import doubtful, in_doubt
from ..deployment.instance import WHOLE, Mode
from ..deployment.model import Deployment, FleetGpu
from ..deployment.wanted import DesiredState
from ..serving.gpus_used import tell_limit
from ..serving.operating_point import mps_share
from .constraint_rows import build_demand, build_model
from .constraints import PlacementConstraints
from .gpu_group import place_of
from .placement_model import PlacementModel
from .program import Limits

#: Builds the placement model of a desired state under some constraints.
Builder = Callable[[DesiredState, PlacementConstraints], PlacementModel]
#: GPUs that are named where a profile fits on none.
_NAMED = 3


@dataclass(frozen=True)
class PlacementInfeasible:
    """What is wanted cannot be placed on the fleet.

    `proof`: ``CHECKED``: prices of the rows of the placement model prove it exactly. ``SOLVER``: a
    solver says so.

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

    def __str__(self) -> str:
        proof = "proof checked" if self.proof is Proof.CHECKED else "on a solver's word"
        return f"unplaceable, {proof}: {'; '.join(self.reasons)}"


def explain_infeasibility(
    wanted: DesiredState,
    fleet: Deployment,
    constraints: PlacementConstraints,
    limits: Limits | None = None,
    build: Builder | None = None,
) -> PlacementInfeasible:
    """Say why there is no placement: a lack of GPUs, a cap on them, or constraints.

    The reasons are the profiles for which there is too little room, else the caps and constraints
    without each of which there is a placement. `build`: Builds the model of all plans, whose
    counts are not those of `wanted`.
    """
    limits = limits or Limits()

    def fixed(state: DesiredState, some: PlacementConstraints) -> PlacementModel:
        return build_model(state, fleet, some, build_demand(state, some), Fraction(0))

    make = build or fixed

    def is_possible(state: DesiredState, some: PlacementConstraints) -> bool:
        return make(state, some).program.maximise({}, limits).values is not None

    model = make(wanted, constraints)
    if build is None and (lack := tuple(_list_lacking(model, fleet))):
        return PlacementInfeasible(lack)
    reasons: list[str] = []
    for key, cap in wanted.max_gpus.items():
        others = {name: n for name, n in wanted.max_gpus.items() if name != key}
        if is_possible(replace(wanted, max_gpus=others), constraints):
            reasons.append(f"at most {cap} x {key} may be used, and with more there is a placement")
    for limit in wanted.group_limits:
        rest = tuple(each for each in wanted.group_limits if each is not limit)
        if is_possible(replace(wanted, group_limits=rest), constraints):
            most = tell_limit(limit)
            reasons.append(f"at most {most} may be used, and with more there is a placement")
    reasons += [
        f"{name} is asked for, and without it there is a placement"
        for name in constraints.split()
        if is_possible(wanted, constraints.without(name))
    ]
    is_proved = model.is_exact and model.program.refute(limits) is not None
    if not reasons:
        why = "no plan has a place on the fleet's GPUs"
        if build is None:
            why = "no layouts of the fleet's GPUs hold the instances wanted"
            n, bound = sum(wanted.counts.values()), model.bound_placed(limits)
            why += f": at most {bound} of {n} at once" if bound is not None and bound < n else ""
        reasons = [f"{why} under the constraints" if constraints else why]
    return PlacementInfeasible(tuple(reasons), Proof.CHECKED if is_proved else Proof.SOLVER)


def _list_lacking(model: PlacementModel, fleet: Deployment) -> Iterator[str]:
    """Say of which profiles all GPUs hold fewer than are wanted, whatever else is on them."""
    demand = model.demand
    for key in sorted({kind.gpu for kind in demand.kinds}):
        cards = [card for card in fleet.gpus() if card.gpu.key == key]
        profiles = sorted({kind.profile for kind in demand.kinds if kind.gpu == key})
        if not cards:
            counts = " + ".join(f"{demand.on(key, name)} x {name}" for name in profiles)
            yield f"{counts} of {key} are wanted, and the fleet has no {key}"
            continue
        for name in profiles:
            room = sum(
                len(group.members) * max(dict(each.counts).get(name, 0) for each in group.options)
                for group in model.groups
                if group.gpu.key == key
            )
            missing = demand.on(key, name) - room
            if missing > 0 and not room:
                yield f"{name} fits on no {key}: {_why_nowhere(name, fleet, cards)}"
            elif missing > 0:
                others = sum(len(card.foreign) for card in cards)
                beside = f" beside {others} foreign instances" if others else ""
                yield f"{missing} more {name} are needed than {len(cards)} x {key} hold{beside}"


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
