"""Of all plans on the fewest GPUs, the one that keeps most of what runs."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf

from ...errors import AlgorithmError, CmsError, InvalidOption
from ...solving.solution import Proof
from ...values.numbers import shown
from ..serving.plan import Plan
from .model import Deployment
from .nearest_bound import find_plan_bound
from .nearest_program import NearestProgram, count_by_kind, plans_near, works_of
from .placed import PlacementResult
from .placing import as_chosen, place
from .programs import Limits
from .recounting import recounted
from .unplaceable import PlacementInfeasible
from .wanted import DesiredState, desired_state
from .wishes import PlacementConstraints, placement_constraints

__all__ = ["Nearest", "nearest"]

#: The share of the time left that is searched; what was chosen is put on GPUs in the rest.
_SEARCH = 0.9
_TOO_LATE = "no placement was found in time; expected a longer time limit"


@dataclass(frozen=True)
class Nearest:
    """The plan near what runs, and where it lies.

    Attributes
    ----------
    wanted : DesiredState
        So many instances of each kind, today's points among them; for a transition.
    placed : Placed
        `wanted` on the fleet: what goes on where it is, and what is new.
    blind_kept : int or None
        What the plan as it was made would keep; None if that has no place on the fleet.
    most_kept : int
        No plan on the same number of GPUs keeps more, exactly.
    proof : Proof
        Of `placed.kept` being the most: ``CHECKED`` where the bound is met, ``SOLVER`` where a
        solver says so, ``NONE`` where neither is.
    """

    wanted: DesiredState
    placed: PlacementResult
    blind_kept: int | None
    most_kept: int
    proof: Proof

    @property
    def deployment(self) -> Deployment:
        """What is to run where."""
        return self.placed.deployment

    @property
    def kept(self) -> int:
        """Instances that go on where they are."""
        return self.placed.kept

    @property
    def running(self) -> int:
        """Our instances that have work now."""
        return self.placed.running

    @property
    def more_gpus(self) -> dict[str, int]:
        """GPUs of a type beyond those of the plan as it was made."""
        own = {} if self.wanted.plan is None else desired_state(self.wanted.plan).gpus
        more = {key: n - own.get(key, 0) for key, n in self.placed.gpus.items()}
        return {key: n for key, n in more.items() if n > 0}

    @property
    def starts(self) -> int:
        """Instances that start anew."""
        return sum(self.wanted.counts.values()) - self.kept

    @property
    def stops(self) -> int:
        """Instances that stop, or do something else."""
        return self.running - self.kept

    def __str__(self) -> str:
        most = {
            Proof.CHECKED: "the most of all plans on as many GPUs, checked",
            Proof.SOLVER: f"the most on a solver's word, at most {self.most_kept}",
            Proof.NONE: f"at most {self.most_kept}",
        }[self.proof]
        blind = (
            "the plan as it was made has no place"
            if self.blind_kept is None
            else f"the plan as it was made keeps {self.blind_kept}"
        )
        stay = f"{self.kept} of {self.running} running instances kept ({most}); {blind}"
        moves = f"{self.starts} instance{'s' * (self.starts != 1)} to start, {self.stops} to stop"
        more = [f"{n} x {key} more than the plan's" for key, n in self.more_gpus.items()]
        wishes = [
            f"{wish}: costs {n} GPU{'s' * (n != 1)}" for wish, n in self.placed.wish_costs.items()
        ]
        return "\n".join([str(self.placed).partition("\n")[0], stay, moves, *more, *wishes])


def nearest(
    now: Deployment,
    plan: Plan,
    *,
    extra_gpus: int = 0,
    wishes: PlacementConstraints | None = None,
    time_limit: float | None = None,
    cancel: threading.Event | None = None,
    seed: int = 0,
) -> Nearest | PlacementInfeasible:
    """Choose, of the plans on as few GPUs, the one that keeps most of what runs.

    Instances may run what the plan's instances run, and today's may go on at their own points where
    the new limits admit them, at what they supply by the plan's rule. Of plans that keep equally
    many, one on few GPUs beyond the plan's, and then with few instances, is chosen: the best that a
    short search finds, not proved the fewest.

    `now`: What runs. `plan`: It says how many GPUs of each type are used, and its certificate that
    fewer do not do. `extra_gpus`: So many more may be used to keep more. Default 0. `wishes`: None:
    those in the columns of the services. `time_limit`: Seconds; then the best is returned that was
    found, with its bound. Without one the same is found every time. `cancel`: Ends the search
    likewise. `seed`: Of the order in which parts of the fleet are improved.

    Returns
    -------
    Nearest or PlacementInfeasible
        Never keeps less than the plan as it was made.

    InvalidOption if `extra_gpus` is negative. InvalidProblem if the plan has no schedule, or the
    fleet cannot be as it is written or has other devices than the plan. CmsError if time was up
    before anything was found.

    Examples
    --------
    >>> from cms import load_instance, solve
    >>> from cms.fleet import Plan, get_gpu
    >>> from cms.fleet.deployment import FleetGpu, FleetNode
    >>> def plan(name):
    ...     serving = load_instance(name).build_problem()
    ...     return Plan(serving, solve(serving.problem))
    >>> cards = tuple(FleetGpu("a", index, get_gpu("a100-80gb")) for index in range(8))
    >>> now = place(desired_state(plan("S1")), Deployment((FleetNode("a", cards),))).deployment
    >>> found = nearest(now, plan("S2"))
    >>> found.kept >= found.blind_kept, found.kept <= found.most_kept
    (True, True)
    """
    if extra_gpus < 0:
        raise InvalidOption(f"extra_gpus is {extra_gpus}; expected 0 or more")
    limits = Limits(inf if time_limit is None else time_limit, cancel)
    wanted = desired_state(plan)
    wishes = placement_constraints(wanted.services) if wishes is None else wishes
    now = recounted(now, wanted.services, wanted.rule, works_of(plan).values())
    left = None if time_limit is None else limits.left
    blind = place(wanted, now, wishes=wishes, time_limit=left, cancel=cancel)
    more: int | None = 0
    if isinstance(blind, PlacementInfeasible) or blind.more_gpus:
        more = _fewest_more(now, plan, wanted, wishes, limits)
        if more is None and isinstance(blind, PlacementInfeasible):
            return _no_plan(now, plan, blind, limits)
        if more is None and isinstance(blind, PlacementResult):  # time was up
            more = sum(blind.more_gpus.values())
    plans = plans_near(now, plan, wanted.gpus, (more or 0) + extra_gpus)
    if isinstance(blind, PlacementResult) and blind.kept == sum(plans.running.values()):
        return Nearest(blind.wanted, blind, blind.kept, blind.kept, Proof.CHECKED)
    program = NearestProgram(now, wanted, plans, wishes)
    start = program.values_of(blind.deployment) if isinstance(blind, PlacementResult) else None
    searching = Limits(_SEARCH * limits.left, cancel) if limits.left < inf else limits
    values, ended = program.search(start, searching, seed)
    found = None if values is None else _placed(program, values, wanted, wishes, limits)
    if isinstance(blind, PlacementResult) and (found is None or found.kept < blind.kept):
        found, ended = blind, False
    if found is None:
        raise CmsError(_TOO_LATE)
    known: tuple[Mapping[int, int], Mapping[int, int]] = {}, {}
    if values is not None:
        known = count_by_kind(program.keeping.x, values), count_by_kind(program.keeping.k, values)
    bound = find_plan_bound(program.spots, plans, known, found.kept, limits)
    if found.kept > bound:
        raise AlgorithmError("nearest", f"{found.kept} are kept, more than the bound {bound}")
    proof = Proof.SOLVER if ended and program.is_exact else Proof.NONE
    if found.kept == bound:
        proof = Proof.CHECKED
    blind_kept = blind.kept if isinstance(blind, PlacementResult) else None
    return Nearest(found.wanted, found, blind_kept, bound, proof)


def _fewest_more(
    now: Deployment, plan: Plan, wanted: DesiredState, wishes: PlacementConstraints, limits: Limits
) -> int | None:
    """How many GPUs beyond the plan's any plan needs on this fleet; None if there is none."""
    every = sum(1 for _ in now.gpus())
    program = NearestProgram(now, wanted, plans_near(now, plan, wanted.gpus, every), wishes)
    return program.keeping.fewest_more(limits)


def _no_plan(
    now: Deployment, plan: Plan, blind: PlacementInfeasible, limits: Limits
) -> PlacementInfeasible:
    """Say why no plan has a place: by the plan's certificate, or on a solver's word."""
    if limits.over:
        raise CmsError(_TOO_LATE)
    serving, least = plan.serving, plan.solution.lower_bound
    keys = {gpu.key for gpu in serving.gpus}
    there = sum(card.gpu.key in keys for card in now.gpus())
    works = works_of(plan)
    is_bound = all(each.cost == 1 for each in serving.problem.machine_types) and all(
        (best := works.get((kind.gpu, kind.profile, kind.work.service))) is not None
        and kind.work.supply_rps <= best.supply_rps
        for kind in plans_near(now, plan, {}, 0).kinds
    )
    if is_bound and there < least:
        needed = f"{shown(least)} GPUs at least are needed, by the plan's certificate"
        return PlacementInfeasible((f"{needed}, and the fleet has {there}",), Proof.CHECKED)
    # prices are about the counts of one plan; that no other fits is what a solver says
    reasons = tuple(f"of the plan as it was made: {why}" for why in blind.reasons)
    return PlacementInfeasible(("no plan has a place beside what stays", *reasons), Proof.SOLVER)


def _placed(
    program: NearestProgram,
    values: list[int],
    wanted: DesiredState,
    wishes: PlacementConstraints,
    limits: Limits,
) -> PlacementResult:
    """Put a solution on GPUs; where time is up, as it is, which is not the neatest way."""
    numbers = count_by_kind(program.keeping.x, values)
    counts = {program.plans.kinds[number]: n for number, n in numbers.items()}
    near = replace(wanted, counts=counts, gpus=program.gpus(values))
    left = None if limits.left == inf else limits.left
    try:
        found = place(near, program.now, wishes=wishes, time_limit=left, cancel=limits.cancel)
    except CmsError as fault:
        if type(fault) is not CmsError:
            raise
        found = None  # time was up
    if isinstance(found, PlacementInfeasible):
        raise AlgorithmError("nearest", f"what was chosen has no place: {found}")
    if found is not None and found.kept >= program.kept_in(values):
        return found
    chosen = program.keeping.read(values, None, ended=False)
    return as_chosen(
        near, program.now, wishes, program.keeping.demand, chosen, program.spots, limits
    )
