"""Place a plan on a fleet: numbered GPUs, on which most of what runs is kept."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction

from ...errors import CmsError, InvalidProblem
from ...solving.solution import Proof
from ..deployment.checking import has_our_work, require_possible
from ..deployment.instance import Mode, StartSource
from ..deployment.model import Deployment, FleetGpu
from ..deployment.wanted import DesiredState, desired_state, kinds_of
from ..hardware import Gpu
from ..serving.gpus_used import tell_limit
from ..serving.plan import Plan
from .constraint_rows import (
    build_demand,
    build_model,
    certified_cost,
    is_covered,
    list_blocks,
)
from .constraints import PlacementConstraints, placement_constraints
from .gpu_group import GpuCost, GpuGroup, LayoutOption, group_equivalent_gpus
from .placement_model import Decision, KindGroup, OptionGroup, PlacementModel
from .placement_result import (
    PlacementInfeasible,
    PlacementResult,
    check_placement,
    explain_infeasibility,
)
from .program import Limits
from .realisation import realise

TOO_LATE = "no placement was found in time; expected a longer time limit"


def _best_fit(
    group: GpuGroup, kinds: Mapping[int, int], counts: Mapping[str, int]
) -> LayoutOption | None:
    """Return the way in which a content lies on a GPU: what keeps most, then reuses most."""
    fits = [
        option._replace(
            counts=tuple(sorted(counts.items())),
            keeps=tuple((k, min(n, kinds[k])) for k, n in option.keeps if k in kinds),
            there=tuple((name, min(n, counts[name])) for name, n in option.there if name in counts),
        )
        for option in group.options
        if all(dict(option.counts).get(name, 0) >= n for name, n in counts.items())
        and not (option.stays and dict(option.keeps) != kinds)
    ]
    total = [(sum(n for _, n in o.keeps), sum(n for _, n in o.there), o.stays) for o in fits]
    return fits[total.index(max(total))] if fits else None


def place(
    wanted: DesiredState,
    fleet: Deployment,
    *,
    constraints: PlacementConstraints | None = None,
    as_grouped: bool = False,
    whole_gpus: bool = False,
    time_limit: float | None = None,
    cancel: threading.Event | None = None,
) -> PlacementResult | PlacementInfeasible:
    """Place a desired state on a fleet and keep as many running instances as possible.

    Foreign instances (`Instance.owner`) never move; managed ones are deleted if they are not
    wanted. Which instances share a GPU is chosen here. Objectives in lexicographic order: least
    cost, fewest GPUs, fewest instances beyond the desired state's (which only constraints ask for),
    most kept instances, most restarts in place, fewest changed GPUs, fewest nodes, the first nodes,
    what starts and stops spread over GPUs, the first GPUs. A GPU costs its type's price; one on
    which something foreign stays costs nothing. No more GPUs of a type are used than `wanted`
    allows.

    `wanted`: See `desired_state`. `fleet`: The current state; that of a table of nodes
    (`read_nodes`) is an empty one. `constraints`: None: those in the columns of the services
    (`placement_constraints`). `as_grouped`: Whether GPUs hold what the plan's groups have, so that
    only these are matched. Default False. `whole_gpus`: Whether the partitioning tool repartitions
    whole GPUs only (mig-parted, the GPU Operator, Slurm): instances are kept only where their GPU
    keeps its layout, and what has no work any more idles there. Default False. `time_limit`:
    Seconds; then the best placement found is returned, with its bound. Without one the answer is
    deterministic. `cancel`: Ends the search likewise.

    InvalidProblem if the fleet is inconsistent, or its devices differ from the plan's. CmsError if
    time was up before a placement was found.

    Notes
    -----
    Nodes are filled to use the fewest for up to some 1,500 pairs of groups of GPUs and nodes;
    beyond that one after the other, which may use more.

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
    limits = Limits(time_limit, cancel)
    constraints = placement_constraints(wanted.services) if constraints is None else constraints
    constraints.require(wanted.services)
    require_same_devices(wanted, fleet)
    if whole_gpus:  # as if starts were not known; they are where no GPU is repartitioned
        unseen = {
            (card.node, card.index): replace(card, start_source=StartSource.UNKNOWN)
            for card in fleet.gpus()
            if card.mode is Mode.MIG and card.instances
        }
        found = place(
            wanted, fleet.with_gpus(unseen), constraints=constraints, as_grouped=as_grouped,
            time_limit=time_limit, cancel=cancel,
        )  # fmt: skip
        return found if isinstance(found, PlacementInfeasible) else _restore_starts(found, fleet)
    plan = wanted.plan
    if plan is not None and desired_state(plan).counts != wanted.counts:
        plan = None  # near what ran: other instances than those that the plan has grouped
    beyond = [] if plan is None else _list_beyond(wanted, plan)
    if as_grouped and beyond:
        return PlacementInfeasible(tuple(beyond), Proof.CHECKED)
    least = certified_cost(wanted)

    def build(some: PlacementConstraints) -> PlacementModel:
        return build_model(build_demand(wanted, some), fleet, some, least)

    asked = build(constraints)
    # with several prices another plan that costs as much may be on fewer GPUs
    is_first = bool(least) and not fleet.kinds() and asked.has_one_price
    if plan is not None and not constraints and not beyond and (as_grouped or is_first):
        matched = match_groups(wanted, plan, fleet, limits)
        if as_grouped or (isinstance(matched, PlacementResult) and matched.least_cost):
            return matched
    if as_grouped:
        raise InvalidProblem(
            "constraints decide which instances share a GPU, and as_grouped leaves that to the "
            "plan; expected one of them"
            if constraints
            else "there is no plan whose groups hold what is wanted; expected as_grouped=False"
        )
    for budget in dict.fromkeys((wanted.budget, None)):
        model = asked.branch()
        decision = model.solve(limits, budget)
        if decision is not None:
            found = build_result(fleet, constraints, model, decision, limits)
            return price_constraints(
                found, constraints, model, lambda some: build(some).price_least(limits)
            )
        if not model.has_ended:
            raise CmsError(TOO_LATE)
    return explain_infeasibility(wanted, fleet, constraints, limits)


def _restore_starts(found: PlacementResult, fleet: Deployment) -> PlacementResult:
    """Return a placement that knows starts as a fleet does, where no GPU is repartitioned."""
    sources = {card.name: card.start_source for card in fleet.gpus()}

    def restore(card: FleetGpu) -> FleetGpu:
        is_unseen = card.start_source is StartSource.UNKNOWN
        return replace(card, start_source=sources[card.name]) if is_unseen else card

    cards = {(card.node, card.index): restore(card) for card in found.deployment.gpus()}
    changed = tuple(map(restore, found.changed))
    return replace(found, deployment=found.deployment.with_gpus(cards), changed=changed)


def _list_beyond(wanted: DesiredState, plan: Plan) -> list[str]:
    """Say which limits the GPUs of a plan are beyond."""
    used: Counter[str] = Counter()
    for group in plan.groups:
        used[group.machine or group.gpu] += group.count
    beyond = [
        f"the plan uses more than {cap} x {key}"
        for key, cap in wanted.max_gpus.items()
        if wanted.gpus.get(key, 0) > cap
    ]
    return beyond + [
        f"the plan uses more than {tell_limit(limit)}"
        for limit in wanted.group_limits
        if sum(n * used[name] for name, n in limit.weights.items()) > limit.at_most
    ]


def _geometry(gpu: Gpu) -> tuple[object, ...]:
    """Return what decides how a GPU can be cut: product names and sources may grow."""
    profiles = ((p.name, p.compute, p.memory, p.starts, p.max, p.attributes) for p in gpu.profiles)
    return gpu.compute_slices, gpu.memory_slices, tuple(profiles)


def require_same_devices(wanted: DesiredState, fleet: Deployment) -> None:
    """Refuse a fleet that is inconsistent, or of other devices than are wanted."""
    for key, gpu in wanted.devices.items():
        if _geometry(fleet.devices.get(key, gpu)) != _geometry(gpu):
            raise InvalidProblem(
                f"the plan's {key} is cut by other rules than the fleet's, whose device file is "
                "another; expected the same profiles, starts and slices"
            )
    require_possible(fleet)


def match_groups(
    wanted: DesiredState, plan: Plan, fleet: Deployment, limits: Limits
) -> PlacementResult | PlacementInfeasible:
    """Put the groups of a plan on GPUs as they are: of its own machine types, if it knows all.

    A GPU holds together what the plan has on one GPU. Each way in which a content lies on
    equivalent GPUs is a pool, whose GPUs hold the same.
    """
    nothing = PlacementConstraints()
    demand = build_demand(wanted, nothing)
    kinds, numbers = demand.kinds, demand.numbers
    groups = group_equivalent_gpus(fleet, numbers, blocks=list_blocks(plan))
    is_known = is_covered(groups, demand)
    asked: Counter[tuple[str, frozenset[tuple[int, int]]]] = Counter()
    for group in plan.groups:
        if content := frozenset((numbers[kind], n) for kind, n in kinds_of(group).items()):
            asked[(is_known and group.machine) or group.gpu, content] += group.count
    contents = [dict(content) for _, content in asked]
    profiles = [
        Counter(kinds[kind].profile for kind in Counter(content).elements()) for content in contents
    ]
    options: list[list[LayoutOption]] = [[] for _ in groups]
    pools: list[OptionGroup] = []
    content_of: list[int] = []
    for s, gpus in enumerate(groups):
        name = gpus.available.name if is_known else gpus.gpu.key
        for c, (machine, _) in enumerate(asked):
            fit = _best_fit(gpus, contents[c], profiles[c]) if machine == name else None
            if fit is not None:
                others = frozenset(numbers.values()) - {*contents[c]}
                pools.append(OptionGroup(gpus.domain, ((s, len(options[s])),), others, True))
                options[s].append(fit)
                content_of.append(c)
    alone = [KindGroup((number,)) for number in range(len(kinds))]
    own = [replace(gpus, options=tuple(fit)) for gpus, fit in zip(groups, options, strict=True)]
    model = PlacementModel(own, replace(demand, groups=alone), pools)
    used: list[dict[int, int]] = [{} for _ in contents]
    for c, x, y in zip(content_of, model.x, model.y, strict=True):
        (v,) = y.values()
        used[c][v] = 1
        for kind, n in contents[c].items():
            model.program.equal({x[kind]: 1, v: -n}, 0)
    short = []
    for ((machine, _), number), counts, terms in zip(asked.items(), profiles, used, strict=True):
        model.program.equal(terms, number)
        if (there := sum(model.program.highs[v] for v in terms)) < number:
            held = " + ".join(f"{n} x {name}" for name, n in sorted(counts.items()))
            need = f"{number} x {machine} are needed to hold {held}"
            short.append(f"{need}, and {there} have room for it")
    decision = model.solve(limits)
    if decision is None:
        if limits.over:
            raise CmsError(TOO_LATE)
        proof = Proof.CHECKED if model.program.is_infeasible(limits) else Proof.SOLVER
        none = "the groups of the plan have too few GPUs for all of them at once"
        return PlacementInfeasible(tuple(short) or (none,), proof)
    least = certified_cost(wanted) if is_known else Fraction(0)
    proved = model.prove("kept", limits), (Proof.NONE, least)
    return build_result(fleet, nothing, model, decision, limits, proved)


# --- what constraints cost ------------------------------------------------------------------------


def price_constraints(
    found: PlacementResult,
    constraints: PlacementConstraints,
    model: PlacementModel,
    find: Callable[[PlacementConstraints], tuple[GpuCost, bool] | None],
    *,
    is_bound: bool = True,
) -> PlacementResult:
    """Say what constraints cost, each by itself and together: the same objective without others.

    `find`: Finds the least cost under some constraints, or a little more where it is short of time,
    and whether it is proved; what more constraints cost bounds it. `is_bound`: Whether the
    certified cost holds without any constraint.
    """
    parts, total = constraints.split(), found.spent
    if not parts:
        return found
    least: tuple[GpuCost, bool] | None = total, True
    if not (is_bound and model.has_one_price and found.cost == model.certified):
        least = find(PlacementConstraints())
    if least is None:
        return found
    base, is_proved = min(least[0], total), least[1]
    is_proved &= base == total or found.cost_proof is Proof.CHECKED
    costs: dict[str, GpuCost] = {}
    for name, part in parts.items():
        known = base == total or len(parts) == 1
        priced = (total, True) if known else find(part)
        if priced is not None:
            own = min(max(base, priced[0]), total)
            is_proved &= priced[1]
            costs[name] = GpuCost(own.cost - base.cost, own.gpus - base.gpus)
    together = GpuCost(total.cost - base.cost, total.gpus - base.gpus)
    return replace(
        found, constraint_costs=costs, constraints_cost=together, are_costs_proved=is_proved
    )


# --- the answer -----------------------------------------------------------------------------------


def build_deployment(
    fleet: Deployment, wanted: DesiredState, cards: Mapping[tuple[str, int], FleetGpu]
) -> Deployment:
    """Return a fleet with some GPUs replaced, and the services that are wanted."""
    own = {service.name for service in wanted.services}
    others = tuple(service for service in fleet.services if service.name not in own)
    deployment = replace(fleet, services=(*wanted.services, *others)).with_gpus(cards)
    named = {each.work.service for _, each in deployment.instances() if each.work is not None}
    services = (*wanted.services, *(each for each in others if each.name in named))
    return replace(deployment, services=services, rule=wanted.rule, plan=wanted.plan)


def build_result(
    fleet: Deployment,
    constraints: PlacementConstraints,
    model: PlacementModel,
    decision: Decision,
    limits: Limits,
    proved: tuple[tuple[int, Proof], tuple[Proof, Fraction]] | None = None,
) -> PlacementResult:
    """Put instances where it was decided, and say what is proved.

    `proved`: The bound on kept instances with its proof, and the proof of the cost with its bound;
    None: by the prices of the model.
    """
    demand, wanted = model.demand, model.demand.wanted
    deployment = build_deployment(fleet, wanted, realise(fleet, model, decision))
    used = [card for card in deployment.gpus() if has_our_work(card)]
    by_type = Counter(card.gpu.key for card in used)
    more = {key: n for key in by_type if (n := by_type[key] - wanted.gpus.get(key, 0)) > 0}
    pairs = zip(demand.kinds, model.counts_of(decision.values), strict=True)
    grown = replace(
        wanted, counts={kind: n for kind, n in pairs if n},
        gpus=dict(sorted((Counter(wanted.gpus) | by_type).items())),
    )  # fmt: skip
    home = {card.name: group for group in model.groups for card in group.members}
    groups = [home[card.name] for card in used]
    prices = [demand.price_of(group) for group in groups if not group.is_held]
    spent = GpuCost(sum(prices, Fraction(0)), len(prices))
    uses = [
        (limit, sum((demand.weight_in(limit, group) for group in groups), Fraction(0)))
        for limit in wanted.group_limits
    ]
    if proved is None:
        proved = model.prove("kept", limits), model.prove_least(limits)
    (most, proof), (cost_proof, least) = proved
    if model.has_one_price and spent.cost == least:
        cost_proof = Proof.CHECKED
    kept = model.kept_in(decision.values)
    changed = check_placement(deployment, grown, fleet, constraints, kept, most, uses)
    return PlacementResult(
        deployment, grown, kept, fleet.kinds().total(), most, proof, spent, cost_proof, more,
        changed, least_cost=least,
    )  # fmt: skip
