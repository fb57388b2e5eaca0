"""A plan on numbered GPUs: what was decided, what is proved of it, and that it was checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import ClassVar, NamedTuple

from ...errors import AlgorithmError
from ...schedule.faults import Violation
from ...solving.solution import Proof
from ...values.numbers import shown
from ..deployment.checking import check_deployment, has_our_work
from ..deployment.guesses import doubtful, in_doubt
from ..deployment.instance import Work
from ..deployment.model import Deployment, FleetGpu
from ..deployment.wanted import DesiredState
from .constraints import PlacementConstraints, find_constraint_violations

__all__ = ["GpuCost", "PlacementResult", "check_placement"]


class GpuCost(NamedTuple):
    """What GPUs cost, and how many they are, without those on which something foreign stays."""

    cost: Fraction
    gpus: int

    def __str__(self) -> str:
        gpus = f"{self.gpus} GPU{'s' * (self.gpus != 1)}"
        return gpus if self.cost == self.gpus else f"{gpus} (cost {shown(self.cost)})"


@dataclass(frozen=True)
class PlacementResult:
    """A plan on numbered GPUs.

    Attributes
    ----------
    deployment : Deployment
        What is to run where; it has passed `check_deployment` against `wanted`.
    wanted : DesiredState
        What it realises: the desired state, with the instances and GPUs that constraints and
        foreign instances require beyond it.
    kept : int
        Instances that go on where they are.
    running : int
        Managed instances that had work before.
    most_kept : int
        No deployment of `wanted` at this cost on as many GPUs keeps more.
    proof : Proof
        Of `kept` being the most: ``CHECKED`` where the bound is met, ``SOLVER`` where a solver says
        so, ``NONE`` where time was up.
    spent : GpuCost
        On the GPUs with managed work.
    cost_proof : Proof
        Of there being no deployment that costs less, or as much on fewer GPUs.
    more_gpus : Mapping[str, int]
        GPUs of a type beyond those of the plan.
    constraint_costs : Mapping[str, GpuCost]
        What each constraint costs by itself, beyond what placing costs without any.
    constraints_cost : GpuCost or None
        What they cost together; None if time was up.
    changed : tuple of FleetGpu
        The GPUs on which something changes, as they will be.
    """

    deployment: Deployment
    wanted: DesiredState
    kept: int
    running: int
    most_kept: int
    proof: Proof
    spent: GpuCost
    cost_proof: Proof
    more_gpus: Mapping[str, int]
    changed: tuple[FleetGpu, ...]
    constraint_costs: Mapping[str, GpuCost] = field(default_factory=dict)
    constraints_cost: GpuCost | None = None
    #: Of what the cost is the least.
    scope: ClassVar[str] = " for the plan's instances"

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
    def nodes(self) -> tuple[str, ...]:
        """The nodes with managed work."""
        used = {card.node for card in self.deployment.gpus() if has_our_work(card)}
        return tuple(sorted(used))

    @property
    def untouched(self) -> tuple[FleetGpu, ...]:
        """The GPUs on which nothing changes."""
        changed = {card.name for card in self.changed}
        return tuple(card for card in self.deployment.gpus() if card.name not in changed)

    @property
    def summary(self) -> str:
        """GPUs, nodes and changes, in a line."""
        gpus = " and ".join(f"{n} x {key}" for key, n in self.gpus.items()) or "no GPU"
        nodes = f"{len(self.nodes)} node{'s' * (len(self.nodes) != 1)}"
        return f"{gpus} on {nodes}, {len(self.changed)} changed"

    @property
    def prices(self) -> list[str]:
        """What is known of costs, a line each."""
        word = {
            Proof.CHECKED: f"least{self.scope}, proof checked",
            Proof.SOLVER: f"least{self.scope} claimed by a solver",
            Proof.NONE: "not proved least",
        }[self.cost_proof]
        said = f" ({word})" if self.wanted.budget is None else ""
        lines = [f"{n} x {key} more than planned{said}" for key, n in self.more_gpus.items()]
        if any(self.wanted.prices.get(key, 1) != 1 for key in self.gpus):
            lines.append(f"cost {shown(self.cost)} ({word})")
        lines += [f"{name}: costs {each}" for name, each in self.constraint_costs.items()]
        if len(self.constraint_costs) > 1 and self.constraints_cost is not None:
            lines.append(f"constraints together: cost {self.constraints_cost}")
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
        return "\n".join([self.summary, *kept, *self.prices])


def check_placement(
    found: PlacementResult, fleet: Deployment, constraints: PlacementConstraints
) -> PlacementResult:
    """Check a placement and return it; a placement that fails is a bug in `cms`."""
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
    for limit in wanted.group_limits:
        used = sum((w * found.gpus.get(key, 0) for key, w in limit.weights.items()), Fraction(0))
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
