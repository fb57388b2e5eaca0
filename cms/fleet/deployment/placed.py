"""A plan on numbered GPUs: what was decided, what is proved of it, and that it was checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from ...errors import AlgorithmError
from ...schedule.faults import Violation
from ...solving.solution import Proof
from .checking import check_deployment, has_our_work
from .guesses import doubtful, in_doubt
from .instance import Work
from .model import Deployment, FleetGpu
from .wanted import DesiredState
from .wish_check import wish_faults
from .wishes import PlacementConstraints

__all__ = ["PlacementResult", "checked_placement", "has_our_work"]


@dataclass(frozen=True)
class PlacementResult:
    """A plan on numbered GPUs.

    Attributes
    ----------
    deployment : Deployment
        What is to run where; it has passed `check_deployment` against `wanted`.
    wanted : DesiredState
        What it realises: the promise, with the instances and GPUs that constraints and foreign
        instances require beyond it.
    kept : int
        Instances that go on where they are.
    running : int
        Our instances that had work before.
    most_kept : int
        No deployment of `wanted` keeps more.
    proof : Proof
        Of `kept` being the most: ``CHECKED`` where the bound is met, ``SOLVER`` where a solver says
        so, ``NONE`` where time was up.
    more_gpus : Mapping[str, int]
        GPUs of a type beyond the promise's.
    more_gpus_proof : Proof
        Of there being no deployment with fewer.
    wish_costs : Mapping[str, int]
        For each wish, how many GPUs fewer would do without it, the others kept.
    changed : tuple of FleetGpu
        The GPUs on which something changes, as they will be.
    """

    deployment: Deployment
    wanted: DesiredState
    kept: int
    running: int
    most_kept: int
    proof: Proof
    more_gpus: Mapping[str, int]
    more_gpus_proof: Proof
    wish_costs: Mapping[str, int]
    changed: tuple[FleetGpu, ...]

    @property
    def gpus(self) -> dict[str, int]:
        """How many GPUs of each type our work is on."""
        return dict(sorted(Counter(card.gpu.key for card in self._used()).items()))

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes our work is on."""
        return tuple(sorted({card.node for card in self._used()}))

    @property
    def untouched(self) -> tuple[FleetGpu, ...]:
        """The GPUs on which nothing changes."""
        changed = {card.name for card in self.changed}
        return tuple(card for card in self.deployment.gpus() if card.name not in changed)

    def _used(self) -> list[FleetGpu]:
        return [card for card in self.deployment.gpus() if has_our_work(card)]

    def __str__(self) -> str:
        gpus = ", ".join(f"{n} x {key}" for key, n in self.gpus.items()) or "no GPU"
        nodes = f"{len(self.nodes)} node{'s' * (len(self.nodes) != 1)}"
        lines = [f"{gpus} on {nodes}, {len(self.changed)} changed"]
        if self.running:
            most = {
                Proof.CHECKED: "maximum, proof checked",
                Proof.SOLVER: f"maximum claimed by a solver, at most {self.most_kept}",
                Proof.NONE: f"at most {self.most_kept}",
            }[self.proof]
            lines.append(f"{self.kept} of {self.running} running instances kept ({most})")
        word = {
            Proof.CHECKED: "the fewest, checked",
            Proof.SOLVER: "the fewest on a solver's word",
            Proof.NONE: "fewer may do",
        }[self.more_gpus_proof]
        for key, n in self.more_gpus.items():
            lines.append(f"{n} x {key} more than promised ({word})")
        for wish, n in self.wish_costs.items():
            lines.append(f"{wish}: costs {n} GPU{'s' * (n != 1)}")
        return "\n".join(lines)


def checked_placement(
    deployment: Deployment,
    fleet: Deployment,
    wanted: DesiredState,
    kept: int,
    bound: tuple[int, Proof],
    more: Mapping[str, int],
    more_proof: Proof,
    costs: Mapping[str, int],
    wishes: PlacementConstraints,
) -> PlacementResult:
    """Check a placement and return it; a placement that fails is a bug in `cms`."""
    faults = [fault for fault in check_deployment(deployment, wanted) if _is_ours(fault, wanted)]
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
    faults += wish_faults(deployment, wishes, wanted)
    stayed = sum(_stayed(before, after) for before, after in pairs)
    if stayed < kept:
        faults.append(Violation("kept", "the deployment", f"{stayed} kept", f"{kept} kept"))
    if faults:
        raise AlgorithmError("place", f"its deployment is refused: {'; '.join(map(str, faults))}")
    running = sum(fleet.kinds().values())
    changed = tuple(after for before, after in pairs if before != after)
    return PlacementResult(
        deployment, wanted, kept, running, *bound, more, more_proof, costs, changed
    )


def _is_ours(fault: Violation, wanted: DesiredState) -> bool:
    """Whether a fault concerns what was placed; services of foreign instances alone do not."""
    own = {f"service {service.name}" for service in wanted.services}
    return fault.kind != "capacity" or fault.where in own


def _stayed(before: FleetGpu, after: FleetGpu) -> int:
    """Count the managed instances that keep their place and work."""

    def doing(card: FleetGpu) -> Counter[tuple[str, int | None, Work]]:
        return Counter(
            (each.profile, each.start, each.work)
            for each in card.instances
            if each.is_managed and each.work is not None
        )

    return (doing(before) & doing(after)).total()
