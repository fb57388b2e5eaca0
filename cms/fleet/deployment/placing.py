"""Placing a plan on a fleet: numbered GPUs, where most of what runs goes on as it is."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf

from ...errors import AlgorithmError, CmsError, InvalidProblem
from ...solving.solution import Proof
from ..hardware import Gpu
from ..serving.plan import Plan
from .checking import require_possible
from .grouped import Lacking, contents_of, match_contents
from .instance import Mode, StartSource
from .keeping import Chosen, Demand
from .keeping_bound import best_prices
from .model import Deployment, FleetGpu
from .placed import PlacementResult, checked_placement, has_our_work
from .programs import Limits
from .realising import filled, realise
from .spots import Spot, spots_of
from .unplaceable import PlacementInfeasible, why_unplaceable
from .wanted import DesiredState, desired_state
from .wishes import PlacementConstraints, demand_of, keeping_program, placement_constraints

__all__ = ["as_chosen", "place"]


def place(
    wanted: DesiredState,
    fleet: Deployment,
    *,
    wishes: PlacementConstraints | None = None,
    as_grouped: bool = False,
    whole_gpus: bool = False,
    time_limit: float | None = None,
    cancel: threading.Event | None = None,
) -> PlacementResult | PlacementInfeasible:
    """Place what is wanted on a fleet, keeping as much as possible of what runs there.

    Which instances share a GPU is chosen here. Foreign instances (`Instance.owner`) stay where they
    are; managed ones are deleted if they are not wanted. In this order: fewest
    GPUs beyond the promise's, fewest instances beyond it (which only wishes ask for), most
    instances kept, most new work where an instance is already (a restart instead of a new cut),
    fewest GPUs touched, fewest nodes, the first nodes and GPUs.

    `wanted`: See `desired_state`. `fleet`: What runs now; what a table of nodes gives
    (`read_nodes`) is an empty one. `wishes`: None: those in the columns of the services
    (`placement_constraints`). `as_grouped`: Whether GPUs are to hold what the plan's groups have,
    so that only these are matched. Default False. `whole_gpus`: Whether GPUs are cut by a tool that
    can only cut a whole one anew (mig-parted, the GPU Operator, Slurm): instances go on only where
    their GPU stays as it is cut, and what has no work any more idles there. Default False.
    `time_limit`: Seconds; then what was found is returned, with its bound. Without one the same is
    found every time. `cancel`: Ends the search likewise.

    InvalidProblem if the fleet cannot be as it is written, or its devices are others than the
    plan's. CmsError if time was up before anything was found.

    Notes
    -----
    Nodes are filled to use the fewest for up to some 1,500 pairs of kinds of GPUs and nodes; beyond
    that one after the other, which may use more.

    Examples
    --------
    >>> from cms import load_instance, solve
    >>> from cms.fleet import Plan, get_gpu
    >>> from cms.fleet.deployment import FleetNode, desired_state
    >>> serving = load_instance("S1").build_problem()
    >>> wanted = desired_state(Plan(serving, solve(serving.problem)))
    >>> cards = tuple(FleetGpu("a", index, get_gpu("a100-80gb")) for index in range(8))
    >>> now = place(wanted, Deployment((FleetNode("a", cards),)))
    >>> print(now)
    2 x a100-80gb on 1 node, 2 changed
    >>> print(place(wanted, now.deployment))
    2 x a100-80gb on 1 node, 0 changed
    10 of 10 running instances kept (maximum, proof checked)
    """
    limits = Limits(inf if time_limit is None else time_limit, cancel)
    wishes = placement_constraints(wanted.services) if wishes is None else wishes
    wishes.require(wanted.services)
    _require(wanted, fleet)
    find = _on_whole_gpus if whole_gpus else _found
    return find(wanted, fleet, wishes, as_grouped, limits)


def _on_whole_gpus(
    wanted: DesiredState,
    fleet: Deployment,
    wishes: PlacementConstraints,
    as_grouped: bool,
    limits: Limits,
) -> PlacementResult | PlacementInfeasible:
    """Plan as if starts were not known, and have them back afterwards where nothing is cut anew."""
    unseen = fleet.with_gpus(
        {
            (card.node, card.index): replace(card, start_source=StartSource.UNKNOWN)
            for card in fleet.gpus()
            if card.mode is Mode.MIG and card.instances
        }
    )
    found = _found(wanted, unseen, wishes, as_grouped, limits)
    if isinstance(found, PlacementInfeasible):
        return found
    seen = {(card.node, card.index): card.start_source for card in fleet.gpus()}
    cards = {
        (card.node, card.index): replace(card, start_source=seen[card.node, card.index])
        for card in found.deployment.gpus()
        if card.start_source is StartSource.UNKNOWN
    }
    changed = tuple(cards.get((card.node, card.index), card) for card in found.changed)
    return replace(found, deployment=found.deployment.with_gpus(cards), changed=changed)


def _found(
    wanted: DesiredState,
    fleet: Deployment,
    wishes: PlacementConstraints,
    as_grouped: bool,
    limits: Limits,
) -> PlacementResult | PlacementInfeasible:
    plan = wanted.plan
    if plan is not None and desired_state(plan).counts != wanted.counts:
        plan = None  # near what ran: other instances than those that the plan has grouped
    if not wishes and plan is not None and (as_grouped or not fleet.used_gpus()):
        found = _as_grouped(wanted, plan, fleet)
        if isinstance(found, PlacementResult) or as_grouped:
            return found
    if as_grouped:
        raise InvalidProblem(
            "wishes decide which instances share a GPU, and as_grouped leaves that to the plan; "
            "expected one of them"
            if wishes
            else "there is no plan whose groups hold what is wanted; expected as_grouped=False"
        )
    return _regrouped(wanted, fleet, wishes, limits)


def _geometry(gpu: Gpu) -> tuple[object, ...]:
    """Return what decides how a GPU can be cut: product names and sources may grow."""
    profiles = ((p.name, p.compute, p.memory, p.starts, p.max, p.attributes) for p in gpu.profiles)
    return gpu.compute_slices, gpu.memory_slices, tuple(profiles)


def _require(wanted: DesiredState, fleet: Deployment) -> None:
    for key, gpu in wanted.devices.items():
        if _geometry(fleet.devices.get(key, gpu)) != _geometry(gpu):
            raise InvalidProblem(
                f"the plan's {key} is cut by other rules than the fleet's, whose device file is "
                "another; expected the same profiles, starts and slices"
            )
    require_possible(fleet)


# --- any contents ---------------------------------------------------------------------------------


def _regrouped(
    wanted: DesiredState, fleet: Deployment, wishes: PlacementConstraints, limits: Limits
) -> PlacementResult | PlacementInfeasible:
    demand = demand_of(wanted, wishes)
    program = keeping_program(wanted, fleet, wishes, demand)
    chosen, ended = program.solve(limits)
    if chosen is not None:
        return as_chosen(wanted, fleet, wishes, demand, chosen, program.spots, limits)
    if not ended:
        raise CmsError("no placement was found in time; expected a longer time limit")
    return _unplaceable(wanted, fleet, wishes, limits)


def as_chosen(
    wanted: DesiredState,
    fleet: Deployment,
    wishes: PlacementConstraints,
    demand: Demand,
    chosen: Chosen,
    spots: Sequence[Spot],
    limits: Limits,
) -> PlacementResult:
    """Put instances where it was chosen, and say what is proved of that."""
    counts = chosen.counts(demand)
    deployment = _deployment(fleet, wanted, realise(fleet, spots, demand, chosen))
    used = Counter(card.gpu.key for card in deployment.gpus() if has_our_work(card))
    more = {key: n - wanted.gpus.get(key, 0) for key, n in sorted(used.items())}
    more = {key: n for key, n in more.items() if n > 0}
    allowed = {key: wanted.gpus.get(key, 0) + more.get(key, 0) for key in {*wanted.gpus, *more}}
    pairs = zip(demand.kinds, counts, strict=True)
    allowed = dict(sorted(allowed.items()))
    grown = replace(wanted, counts={kind: n for kind, n in pairs if n}, gpus=allowed)
    final = Demand(demand.kinds, counts, allowed, demand.crowds)
    kept = chosen.most_kept
    bound, proof = _bound(spots, final, kept, chosen.ended, limits)
    costs = dict.fromkeys(wishes.words(), 0)
    if more:
        for name, wish in wishes.words().items():
            fewer = _fewest_more(wanted, fleet, wishes.without(wish), limits)
            if fewer is None:  # time was up
                del costs[name]
            else:
                costs[name] = max(0, sum(more.values()) - fewer)
    return checked_placement(
        deployment, fleet, grown, kept, (bound, proof), more,
        _proof_of_more(spots, demand, allowed, more, chosen.ended, limits), costs, wishes,
    )  # fmt: skip


def _fewest_more(
    wanted: DesiredState, fleet: Deployment, wishes: PlacementConstraints, limits: Limits
) -> int | None:
    """How many GPUs beyond the promise's are needed under fewer wishes."""
    program = keeping_program(wanted, fleet, wishes, demand_of(wanted, wishes))
    return program.fewest_more(limits)


def _bound(
    spots: Sequence[Spot], demand: Demand, kept: int, ended: bool, limits: Limits
) -> tuple[int, Proof]:
    run: Counter[int] = Counter()
    for spot in spots:
        for each in spot.here:
            run[each.kind] += len(spot.cards)
    # no more of a kind can be kept than run, nor than are wanted
    trivial = sum(min(n, demand.counts[kind]) for kind, n in run.items() if kind >= 0)
    if kept < trivial:
        found = best_prices(spots, demand, limits)
        if found is not None:
            trivial = min(trivial, found[1])
    if kept > trivial:
        raise AlgorithmError("place", f"{kept} instances are kept, more than the bound {trivial}")
    if kept == trivial:
        return trivial, Proof.CHECKED
    return trivial, Proof.SOLVER if ended else Proof.NONE


def _proof_of_more(
    spots: Sequence[Spot],
    demand: Demand,
    used: Mapping[str, int],
    more: Mapping[str, int],
    ended: bool,
    limits: Limits,
) -> Proof:
    """Whether prices prove the number of GPUs, without any wish."""
    for key in more:
        found = best_prices(spots, demand, limits, gpus=key)
        if found is None or found[1] < used[key]:
            return Proof.SOLVER if ended else Proof.NONE
    return Proof.CHECKED


def _unplaceable(
    wanted: DesiredState, fleet: Deployment, wishes: PlacementConstraints, limits: Limits
) -> PlacementInfeasible:
    found = why_unplaceable(wanted, fleet, limits)
    if found is not None:
        return found
    reasons = [
        f"{name} is wished, and without it there is a placement"
        for name, wish in wishes.words().items()
        if _fewest_more(wanted, fleet, wishes.without(wish), limits) is not None
    ]
    if not reasons:
        why = "no way to cut the fleet's GPUs holds the instances wanted"
        reasons = [f"{why} and keeps the wishes" if wishes else why]
    return PlacementInfeasible(tuple(reasons), Proof.SOLVER)


# --- the plan's own contents ----------------------------------------------------------------------


def _as_grouped(
    wanted: DesiredState, plan: Plan, fleet: Deployment
) -> PlacementResult | PlacementInfeasible:
    demand = demand_of(wanted, PlacementConstraints())
    spots = spots_of(fleet, demand.numbers)
    match = match_contents(spots, contents_of(plan, demand.numbers))
    if match.lacking:
        return _lacking(match.lacking, fleet)
    deployment = _deployment(fleet, wanted, filled(fleet, match.fillings, demand.kinds))
    proof = Proof.CHECKED if match.is_best else Proof.SOLVER
    bound = match.kept, proof
    wishes = PlacementConstraints()
    return checked_placement(
        deployment, fleet, wanted, match.kept, bound, {}, Proof.CHECKED, {}, wishes
    )


def _lacking(lacking: Lacking, fleet: Deployment) -> PlacementInfeasible:
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
            around = [(each.profile, each.start or 0) for each in foreign]
            if why := card.gpu.why_not(counts, around=around):
                reason += f"; {card.name}: {why}"
                break
    return PlacementInfeasible((reason,), Proof.CHECKED)


# --- the answer -----------------------------------------------------------------------------------


def _deployment(
    fleet: Deployment, wanted: DesiredState, cards: Mapping[tuple[str, int], FleetGpu]
) -> Deployment:
    own = {service.name for service in wanted.services}
    others = tuple(service for service in fleet.services if service.name not in own)
    deployment = replace(fleet, services=(*wanted.services, *others)).with_gpus(cards)
    named = {each.work.service for _, each in deployment.instances() if each.work is not None}
    services = (*wanted.services, *(each for each in others if each.name in named))
    return replace(deployment, services=services, rule=wanted.rule, plan=wanted.plan)
