"""A plan on numbered GPUs: what was decided, proved and checked; or why it has no place there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import floor

from ...errors import AlgorithmError
from ...problem.parts import GroupLimit
from ...schedule.faults import Violation
from ...solving.solution import Proof
from ...values.numbers import shown
from ...values.words import money
from ..deployment.checking import check_deployment, has_our_work
from ..deployment.instance import WHOLE, Mode
from ..deployment.model import Deployment, FleetGpu
from ..deployment.wanted import DesiredState
from ..serving.gpus_used import tell_limit
from ..serving.operating_point import mps_share
from .constraint_rows import build_demand, build_model
from .constraints import PlacementConstraints, find_constraint_violations
from .gpu_group import GpuCost, place_of, tell_cost
from .placement_model import PlacementModel
from .program import Limits


@dataclass(frozen=True)
class PlacementResult:
    """A plan on numbered GPUs."""

    deployment: Deployment  #: what is to run where; it has passed `check_deployment`
    #: The desired state, with the instances and GPUs that constraints and foreign ones require.
    wanted: DesiredState
    kept: int  #: instances that go on where they are
    running: int  #: managed instances that had work before
    most_kept: int  #: no deployment of `wanted` at this cost on as many GPUs keeps more
    #: Of `kept` being the most: ``CHECKED`` where the bound is met, ``SOLVER`` where a solver says
    #: so, ``NONE`` where time was up.
    proof: Proof
    spent: GpuCost  #: on the GPUs with managed work
    cost_proof: Proof  #: of there being none that costs less, or as much on fewer GPUs
    more_gpus: Mapping[str, int]  #: GPUs of a type beyond those of the plan
    changed: tuple[FleetGpu, ...]  #: the GPUs on which something changes, as they will be
    #: What each constraint costs by itself, beyond what placing costs without any.
    constraint_costs: Mapping[str, GpuCost] = field(default_factory=dict)
    constraints_cost: GpuCost | None = None  #: what they cost together; None if time was up
    are_costs_proved: bool = True  #: whether all these are differences of costs proved least
    least_cost: Fraction = Fraction(0)  #: none costs less, by prices and the plan's certificate
    is_of_all_plans: bool = False  #: whether all plans were searched, not one plan's instances
    blind_kept: int | None = None  #: what the plan as it was made would keep; None: it has no place

    @property
    def cost(self) -> Fraction:
        """What the GPUs cost."""
        return self.spent.cost

    @property
    def gpus(self) -> dict[str, int]:
        """How many GPUs of each type have managed work."""
        used = (card.gpu.key for card in self.deployment.gpus() if has_our_work(card))
        return dict(sorted(Counter(used).items()))

    @property
    def starts(self) -> int:
        """Instances that start anew."""
        return sum(self.wanted.counts.values()) - self.kept

    @property
    def stops(self) -> int:
        """Instances that stop, or do something else."""
        return self.running - self.kept

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes with managed work."""
        return tuple(sorted({card.node for card in self.deployment.gpus() if has_our_work(card)}))

    @property
    def summary(self) -> str:
        """GPUs, nodes and changes, in a line."""
        gpus = " and ".join(f"{n} x {key}" for key, n in self.gpus.items()) or "no GPU"
        nodes = f"{len(self.nodes)} node{'s' * (len(self.nodes) != 1)}"
        return f"{gpus} on {nodes}, {len(self.changed)} changed"

    @property
    def prices(self) -> list[str]:
        """What is known of costs, a line each."""
        proof = Proof.CHECKED if self.cost == self.least_cost else self.cost_proof
        scope = "" if self.is_of_all_plans else " for the plan's instances"
        plan = self.wanted.plan
        currency = "" if plan is None else plan.serving.currency
        least = money(self.least_cost, currency, floor) if currency else shown(self.least_cost)
        word = {
            Proof.CHECKED: f"least{scope}, proof checked",
            Proof.SOLVER: f"least{scope} claimed by a solver, at least {least}",
            Proof.NONE: f"not proved least, at least {least}",
        }[proof]
        is_open = self.is_of_all_plans and proof is not Proof.CHECKED and not self.more_gpus
        has_cost = currency or self.cost != self.spent.gpus or is_open
        is_asked = self.wanted.budget is None or (self.is_of_all_plans and not has_cost)
        said = f" ({word})" if is_asked else ""
        lines = [f"{n} x {key} more than planned{said}" for key, n in self.more_gpus.items()]
        if has_cost:
            lines.append(f"{tell_cost(self.cost, currency)} ({word})")
        costs, about = self.constraint_costs.items(), "" if self.are_costs_proved else "about "
        lines += [f"{name}: costs {about}{each.tell(currency)}" for name, each in costs]
        if len(costs) > 1 and self.constraints_cost is not None:
            lines.append(
                f"constraints together: cost {about}{self.constraints_cost.tell(currency)}"
            )
        return lines

    @property
    def kept_line(self) -> str:
        """How many instances are kept, and what is proved of that."""
        most = {
            Proof.CHECKED: "maximum, proof checked",
            Proof.SOLVER: f"maximum claimed by a solver, at most {self.most_kept}",
            Proof.NONE: f"at most {self.most_kept}",
        }[self.proof]
        return f"{self.kept} of {self.running} running instances kept ({most})"

    def __str__(self) -> str:
        kept = [self.kept_line] if self.running else []
        if self.running and self.is_of_all_plans:
            blind = "has no place" if self.blind_kept is None else f"keeps {self.blind_kept}"
            kept = [f"{self.kept_line} of all plans; the plan as it was made {blind}"]
        return "\n".join([self.summary, *kept, *self.prices])


def check_placement(
    deployment: Deployment,
    wanted: DesiredState,
    fleet: Deployment,
    constraints: PlacementConstraints,
    kept: int,
    most_kept: int,
    uses: Iterable[tuple[GroupLimit, Fraction]] = (),
    *,
    is_enough: bool = True,
) -> tuple[FleetGpu, ...]:
    """Check a placement and return the GPUs that it changes; one that fails is a bug in `cms`.

    `uses`: What its GPUs count in each limit on several machine types. `is_enough`: Whether the
    instances wanted supply what services ask for.
    """
    own = {f"service {service.name}" for service in wanted.services if is_enough}
    faults = [
        fault
        for fault in check_deployment(deployment, wanted)
        if fault.kind != "capacity" or fault.where in own
    ]
    pairs = list(zip(fleet.gpus(), deployment.gpus(), strict=True))
    faults += [
        Violation("foreign", before.name, "instances of others moved", "them where they were")
        for before, after in pairs
        if before.foreign != after.foreign
    ]
    faults += [
        Violation("foreign", before.name, f"no {each.place}, which may be another's", "it there")
        for before, after in pairs
        for each in fleet.in_doubt(before)
        if (each.profile, each.start) not in {(one.profile, one.start) for one in after.instances}
    ]
    for limit, used in uses:
        if used > limit.at_most:
            needs = f"at most {shown(limit.at_most)} in group {limit.name}"
            faults.append(Violation("gpus", "the deployment", shown(used), needs))
    faults += find_constraint_violations(deployment, constraints, wanted)
    stay = (fleet.places() & deployment.places()).total()
    if kept > min(stay, most_kept):
        has = f"{stay} kept of {most_kept} at most"
        faults.append(Violation("kept", "the deployment", has, f"{kept} kept"))
    if faults:
        raise AlgorithmError("place", f"its deployment is refused: {'; '.join(map(str, faults))}")
    return tuple(after for before, after in pairs if before != after)


# --- why there is none ----------------------------------------------------------------------------

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
    >>> why = "2 x 3g.40gb of a100-80gb are wanted, and the fleet has no a100-80gb"
    >>> print(PlacementInfeasible((why,)))
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
    limits: Limits,
    build: Builder | None = None,
) -> PlacementInfeasible:
    """Say why there is no placement: a lack of GPUs, a cap on them, or constraints.

    The reasons are the profiles for which there is too little room, else the caps and constraints
    without each of which there is a placement. `build`: Builds the model of all plans, whose
    counts are not those of `wanted`.
    """
    make = build or (lambda state, some: build_model(build_demand(state, some), fleet, some))
    model = make(wanted, constraints)
    if build is None and (lack := tuple(_list_lacking(model, fleet))):
        return PlacementInfeasible(lack)
    without: list[tuple[str, DesiredState, PlacementConstraints]] = []
    for key, cap in wanted.max_gpus.items():
        others = {name: n for name, n in wanted.max_gpus.items() if name != key}
        what = f"at most {cap} x {key} may be used, and with more"
        without.append((what, replace(wanted, max_gpus=others), constraints))
    for limit in wanted.group_limits:
        rest = tuple(each for each in wanted.group_limits if each is not limit)
        what = f"at most {tell_limit(limit)} may be used, and with more"
        without.append((what, replace(wanted, group_limits=rest), constraints))
    for name in constraints.split():
        what = f"{name} is asked for, and without it"
        without.append((what, wanted, constraints.without(name)))
    reasons = tuple(
        f"{what} there is a placement"
        for what, state, some in without
        if make(state, some).program.maximise({}, limits).values is not None
    )
    is_proved = model.is_exact and model.program.is_infeasible(limits)
    if not reasons:
        why = "no plan has a place on the fleet's GPUs"
        if build is None:
            why = "no layouts of the fleet's GPUs hold the instances wanted"
            n, bound = sum(wanted.counts.values()), model.bound_placed(limits)
            why += f": at most {bound} of {n} at once" if bound is not None and bound < n else ""
        reasons = (f"{why} under the constraints" if constraints else why,)
    return PlacementInfeasible(reasons, Proof.CHECKED if is_proved else Proof.SOLVER)


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
        doubted = fleet.in_doubt(card)
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
