"""A plan on numbered GPUs: what was decided, what is proved of it, and that it was checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import floor
from typing import NamedTuple

from ...errors import AlgorithmError
from ...problem.parts import GroupLimit
from ...schedule.faults import Violation
from ...solving.solution import Proof
from ...values.numbers import shown
from ...values.words import money
from ..deployment.checking import check_deployment, has_our_work
from ..deployment.guesses import doubtful, in_doubt
from ..deployment.instance import Work
from ..deployment.model import Deployment, FleetGpu
from ..deployment.wanted import DesiredState
from .constraints import PlacementConstraints, find_constraint_violations


class GpuCost(NamedTuple):
    """What GPUs cost, and how many they are, without those on which something foreign stays."""

    cost: Fraction
    gpus: int

    def tell(self, currency: str = "") -> str:
        """Say both, in money if there is a currency."""
        gpus = f"{self.gpus} GPU{'s' * (self.gpus != 1)}"
        if self.cost == self.gpus and not currency:
            return gpus
        return f"{gpus} ({_tell_cost(self.cost, currency)})"


def _tell_cost(cost: Fraction, currency: str) -> str:
    """Say a cost: ``41.20 EUR/h``, or in no currency ``cost 41.2``."""
    return money(cost, currency) if currency else f"cost {shown(cost)}"


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
        used = {card.node for card in self.deployment.gpus() if has_our_work(card)}
        return tuple(sorted(used))

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
            lines.append(f"{_tell_cost(self.cost, currency)} ({word})")
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
    found: PlacementResult,
    fleet: Deployment,
    constraints: PlacementConstraints,
    uses: Iterable[tuple[GroupLimit, Fraction]] = (),
) -> PlacementResult:
    """Check a placement and return it; a placement that fails is a bug in `cms`.

    `uses`: What its GPUs count in each limit on several machine types.
    """
    deployment, wanted = found.deployment, found.wanted
    own = {f"service {service.name}" for service in wanted.services}
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
    doubts = {node.name: doubtful(node) for node in fleet.nodes}
    faults += [
        Violation("foreign", before.name, f"no {each.place}, which may be another's", "it there")
        for before, after in pairs
        for each in in_doubt(before, doubts[before.node])
        if (each.profile, each.start) not in {(one.profile, one.start) for one in after.instances}
    ]
    for key, n in found.gpus.items():
        if n > (most := wanted.max_gpus.get(key, n)):
            faults.append(Violation("gpus", "the deployment", f"{n} x {key}", f"at most {most}"))
    for limit, used in uses:
        if used > limit.at_most:
            needs = f"at most {shown(limit.at_most)} in group {limit.name}"
            faults.append(Violation("gpus", "the deployment", shown(used), needs))
    faults += find_constraint_violations(deployment, constraints, wanted)
    kept = sum(_count_kept(before, after) for before, after in pairs)
    if not found.kept <= min(kept, found.most_kept):
        has = f"{kept} kept of {found.most_kept} at most"
        faults.append(Violation("kept", "the deployment", has, f"{found.kept} kept"))
    if faults:
        raise AlgorithmError("place", f"its deployment is refused: {'; '.join(map(str, faults))}")
    changed = tuple(after for before, after in pairs if before != after)
    return replace(found, changed=changed)


def _count_kept(before: FleetGpu, after: FleetGpu) -> int:
    """Count the managed instances that keep their place and work."""

    def doing(card: FleetGpu) -> Counter[tuple[str, int | None, Work]]:
        return Counter(
            (each.profile, each.start, each.work)
            for each in card.instances
            if each.is_managed and each.work is not None
        )

    return (doing(before) & doing(after)).total()
