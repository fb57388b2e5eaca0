"""From what runs to what is wanted, on the fewest spare GPUs that were found to do; and back."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import inf
from typing import Literal

from ....errors import AlgorithmError, CmsError, InvalidOption, InvalidProblem
from ....solving.solution import Proof
from ....values.numbers import Number, shown
from ....values.words import count
from ...placement import PlacementConstraints, PlacementInfeasible, place, placement_constraints
from ...placement.program import Limits
from ..checking import check_deployment, find_impossible
from ..difference import with_fixed
from ..instance import State
from ..model import Deployment
from ..recounting import beyond_limits, recounted, with_known_curves
from ..wanted import DesiredState
from .checking import check_transition, unlike_gpus
from .durations import Durations
from .floors import floors_of, refuse_unlike
from .goal import TransitionGoal
from .kept import count_kept, in_common, proved_kept
from .model import Action, Floor, Frozen, Kept, Spare, Transition, What, most_gpus
from .necessity import find_frozen, prove_spare
from .order_search import SearchOptions, find_sequences
from .replay import find_end, list_uses, most_in_use, temporaries
from .waits import ShortOrder, find_short_order, order_groups, ordered
from .whole_gpus import PartitioningTool, align_target

#: Where it is impossible, these shares of the floors are tried, each from a number of beginnings.
_LOWER, _TRIES = tuple(Fraction(tenths, 10) for tenths in (9, 8, 7, 5)), 3
#: Up to this number of GPUs what could stay is given up, one instance at a time, before another GPU
#: is borrowed: 4 of 1,000 drawn pairs of A30s need one less for that.
_FEW_GPUS = 4
_INVERSE = {What.CREATE: What.DELETE, What.DELETE: What.CREATE}


@dataclass(frozen=True)
class Impossible:
    """There is no transition, or none was found.

    `proof`: ``CHECKED``: the reasons prove it. ``SOLVER``: a solver says so. ``NONE``: none was
    found, and there may be one. `necessity`: What proves that the GPUs that may be used are too
    few, if that is why.
    """

    reasons: tuple[str, ...]
    proof: Proof
    necessity: Frozen | None = None

    def __str__(self) -> str:
        what = "no transition was found" if self.proof is Proof.NONE else "there is no transition"
        return f"{what}: {'; '.join(self.reasons)}"


def transition(
    start: Deployment,
    to: DesiredState | Deployment,
    *,
    floor: Number = 1,
    floors: Mapping[str, Number] | None = None,
    spare: int | Literal["auto"] = "auto",
    as_grouped: bool = False,
    wishes: PlacementConstraints | None = None,
    durations: Durations | None = None,
    max_parallel: int | None = None,
    seed: int = 0,
    time_limit: float | None = None,
    cancel: threading.Event | None = None,
    tool: PartitioningTool | str = PartitioningTool.NVIDIA_SMI,
) -> Transition | Impossible:
    """Plan the way from what runs to what is wanted, above all floors at every moment.

    `start`: What runs now. `to`: What is wanted: then it is chosen here what lies where, so that
    most of what runs is kept, and what a place gets is decided when it is free. Or a target that is
    to be reached as it stands. `floor`: What each service keeps, as a share of the smaller of its
    old and its new rate; see :func:`floors_of`. Default 1. `floors`: Shares of single services.
    `spare`: Maximum number of GPUs borrowed beyond the larger of the numbers before and after;
    "auto" takes as few as are found to do. `Transition.spare` says how many are proved to be
    needed. `as_grouped`: Whether GPUs are to hold what the plan's groups have. Default False.
    `wishes`: As in `place`. `durations`: What the order is made short for. `max_parallel`: Maximum
    number of actions at once. `seed`: Of what is random. `time_limit`: Seconds.
    `tool`: What cuts the GPUs: parts of one, or whole ones (``mig-parted``; ``gpu-operator`` and
    ``slurm``, which drain the node), where most of what stays is what they can leave alone: see
    :mod:`~cms.fleet.deployment.transition.whole_gpus`. `Spare.least` and `Kept.most` hold for all
    tools. Default "nvidia-smi".

    Returns
    -------
    Transition or Impossible
        What is impossible on the GPUs that may be used is proved so, or was only not found. A
        transition has passed `check_transition`. Its `start` has supplies counted by the target's
        rule and limits.

    InvalidOption if there is no such tool, or `spare` is negative. UnsupportedProblem if a plan is
    for equal routing, and a service with a floor has instances that supply unlike. InvalidProblem
    if the start or the target cannot be as it is written, they are not of the same GPUs, or
    something that is not ours would have to go or stop.

    Examples
    --------
    >>> from cms import load_instance, solve
    >>> from cms.fleet import Plan, get_gpu
    >>> from cms.fleet.deployment import FleetGpu, FleetNode, desired_state
    >>> from cms.fleet.placement import place
    >>> from cms.fleet.deployment.transition import check_transition
    >>> def wanted(name):
    ...     serving = load_instance(name).build_problem()
    ...     return desired_state(Plan(serving, solve(serving.problem)))
    >>> cards = tuple(FleetGpu("a", index, get_gpu("a100-80gb")) for index in range(8))
    >>> now = place(wanted("S1"), Deployment((FleetNode("a", cards),))).deployment
    >>> found = transition(now, wanted("S2"))
    >>> found.spare.count, check_transition(found)
    (0, ())
    """
    if tool not in (*PartitioningTool,):
        raise InvalidOption(f"the tool is {tool!r}; expected one of {', '.join(PartitioningTool)}")
    if isinstance(spare, int) and spare < 0:
        raise InvalidOption(f"spare is {spare}; expected 0 or more, or 'auto'")
    tool, limits = PartitioningTool(tool), Limits(inf if time_limit is None else time_limit, cancel)
    options = SearchOptions(limits, durations or Durations(), max_parallel, seed)
    posed = _pose(start, to, tool, limits, wishes, as_grouped, floor, floors)
    if isinstance(posed, Impossible):
        return posed
    goal, kept = posed
    goals = [[goal]]
    if goal.is_late and tool.drains_nodes:  # what the target has as it is cut stays, if it can
        goals = [[goal, replace(goal, is_late=False)], [replace(goal, is_wide=True)]]
    before = most_gpus(goal.start, goal.target)
    free = len(goal.cards) - before
    most = free if spare == "auto" else min(free, spare)
    for some in goals:
        for allowed, own in product(range(before, before + most + 1), some):
            if best := find_order(own, allowed, options):
                return finish(own, best, kept, limits)
            if limits.over:
                raise CmsError("no transition was found in time; expected a longer time limit")
    return _refuse(goal, most, kept, options)


def find_order(goal: TransitionGoal, most: int, options: SearchOptions) -> ShortOrder | None:
    """Look for the quickest sequence; on few GPUs also for one that restarts what could stay."""
    found = find_sequences(goal, most, options)
    if not found and most <= _FEW_GPUS and goal.cuts_parts:
        others = (
            replace(goal, given_up=(card, each))
            for card, each in goal.start.instances()
            if each.is_managed and each.state is State.RUNNING
        )
        more = (each for each in others if len(each.openings) > len(goal.openings))
        found = [one for each in more for one in find_sequences(each, most, options)]
    how = options.durations, options.max_parallel
    orders = (
        order_groups(goal.start, each.actions, each.groups, goal.floors, *how)
        if any(each.groups)
        else find_short_order(goal.start, each.actions, goal.floors, most, *how)
        for each in found
    )
    return min(
        orders, key=lambda each: (each.gpus, each.milliseconds, len(each.actions)), default=None
    )


def finish(goal: TransitionGoal, best: ShortOrder, kept: Kept, limits: Limits) -> Transition:
    """Prove what can be proved of what was found, and check it."""
    target = goal.target.with_gpus(find_end(goal.start, best.actions))
    number = count_kept(goal.start, best.actions)
    if not goal.cuts_parts:
        most = max(number, in_common(goal.start, target, places=kept.places))
        kept = Kept(number, most, Proof.CHECKED, places=kept.places)
    elif kept.places:
        kept = replace(kept, count=number)
    else:
        kept = proved_kept(goal.start, target, number, (kept.most, kept.proof), limits)
    return check_result(goal.start, target, goal.floors, best.actions, best.gpus, kept, limits)


def check_result(
    start: Deployment,
    target: Deployment,
    floors: Mapping[str, Floor],
    actions: Sequence[Action],
    gpus: int,
    kept: Kept,
    limits: Limits | None = None,
) -> Transition:
    """Return a transition that has passed the check; one that has not is a defect.

    `gpus`: In use at some moment, and no more at any. Within `limits`, if there are any, a proof is
    looked for that fewer spare GPUs will not do.
    """
    both = {c.name for c in (*start.used_gpus(), *target.used_gpus())}
    borrowed = tuple(sorted({action.name for action in actions if action.adds} - both))
    temporary, _ = temporaries(start, actions)
    actions = tuple(replace(a, is_temporary=at in temporary) for at, a in enumerate(actions))
    lent = Spare(gpus - most_gpus(start, target), borrowed=borrowed)
    done = Transition(start, target, floors, actions, lent, kept)
    if limits is not None:
        done = replace(done, spare=prove_spare(done, limits))
    faults = check_transition(done)
    if faults:
        raise AlgorithmError("transition", f"it is refused: {'; '.join(map(str, faults[:5]))}")
    return done


def _refuse(goal: TransitionGoal, most: int, kept: Kept, options: SearchOptions) -> Impossible:
    nothing = Transition(goal.start, goal.target, goal.floors, (), Spare(most), kept)
    if proved := find_frozen(nothing, most, options.limits):
        would_do = "lower floors or more GPUs are needed"
        for lower in (share for share in _LOWER if not options.limits.over):
            floors = {n: replace(each, rps=each.rps * lower) for n, each in goal.floors.items()}
            gpus, few = most_gpus(goal.start, goal.target) + most, replace(options, restarts=_TRIES)
            if find_sequences(replace(goal, floors=floors), gpus, few):
                would_do = f"with {shown(lower * 100)} % of the floors there is one"
                break
        return Impossible((proved[1], would_do), Proof.CHECKED, proved[0])
    reasons = [f"none was found with {count(most, 'spare GPU')}"]
    if goal.tool is not None and goal.tool.drains_nodes:
        reasons.append(
            f"{goal.tool} drains a node to cut any GPU of it; mig-parted stops less at once"
        )
    if most == len(goal.cards) - most_gpus(goal.start, goal.target):
        reasons.append("the fleet has no more; lower floors would help most")
    states = [each.state for _, each in goal.start.instances() if each.work is not None]
    if begins := states.count(State.STARTING):
        what = f"{count(begins, 'instance')} {'is' if begins == 1 else 'are'} still starting"
        reasons.append(f"{what}, and counted only once running: observe again then")
    return Impossible(tuple(reasons), Proof.NONE)


# --- what is asked for, and what is refused before the search ------------------------------------


def _pose(
    start: Deployment,
    to: DesiredState | Deployment,
    tool: PartitioningTool,
    limits: Limits,
    wishes: PlacementConstraints | None,
    as_grouped: bool,
    share: Number,
    shares: Mapping[str, Number] | None,
) -> tuple[TransitionGoal, Kept] | Impossible:
    """Count supplies by the target's rule, and place what is wanted as the tool can."""
    routings = start.routing, to.routing
    is_whole, to = tool is not PartitioningTool.NVIDIA_SMI, with_known_curves(to, start)
    if isinstance(to, Deployment):
        target = with_fixed(to, start)
        for what, side in (("start", start), ("target", target)):
            if why := find_impossible(side):
                raise InvalidProblem(f"the {what} cannot be as it is written: {why}")
        for what, was, becomes in unlike_gpus(start, target):
            raise InvalidProblem(
                f"{what} is {was} in the start and {becomes} in the target; expected the same GPUs "
                "on both sides, those that stay empty as well"
            )
        works = [each.work for _, each in target.instances() if each.work is not None]
        start, is_late = recounted(start.with_uuids_of(target), to.services, to.rule, works), False
        same = in_common(start, target, places=True)
        kept = Kept(same, same, Proof.CHECKED, places=True)
    else:
        start = recounted(start, to.services, to.rule, [kind.work for kind in to.counts])
        wishes = placement_constraints(to.services) if wishes is None else wishes
        placed = place(
            to, start, constraints=wishes, as_grouped=as_grouped, whole_gpus=is_whole,
            time_limit=None if limits.seconds == inf else limits.left, cancel=limits.cancel,
        )  # fmt: skip
        if isinstance(placed, PlacementInfeasible):
            return Impossible(placed.reasons, placed.proof)
        kept, target = Kept(placed.kept, placed.most_kept, placed.proof), placed.deployment
        is_late = not (wishes or as_grouped)
    if is_whole:
        target = align_target(start, target, clears=not (kept.places or tool.drains_nodes))
    floors = floors_of(start, target, share, shares)
    refuse_unlike(start, target, floors, routings)
    for name, each in floors.items():
        if each.rps and (has := target.capacity(name)) < each.rps:
            reason = f"{name} is to keep {each}, and has {shown(has)} requests/s in the end"
            return Impossible((reason,), Proof.CHECKED)
    # what a target asks for is what floors and the end are held against
    for fault in check_deployment(target) if kept.places else ():
        raise InvalidProblem(
            f"the target gives less than it asks for: {fault}; expected instances that do, or a "
            "lower rate there"
        )
    return TransitionGoal(start, replace(target, plan=None), floors, is_late, tool), kept


# --- the way back ---------------------------------------------------------------------------------


def reversal(transition: Transition) -> Transition:
    """Return the transition back, which has passed `check_transition` as well.

    Every action is undone, in reverse order. It visits the same states, so it keeps the same floors
    with the same spare GPUs; what waits for what is worked out anew.

    Returns
    -------
    Transition
        Its target is the start again, but that nothing lacks a compute instance, starting or
        draining there: what was so and has gone is not brought back. A service asks for no more
        than it had.

    Examples
    --------
    >>> from cms.fleet.deployment import Deployment, FleetGpu, FleetNode, Instance
    >>> from cms.fleet import get_gpu
    >>> from cms.fleet.deployment.transition import transition
    >>> card = FleetGpu("a", 0, get_gpu("a100-80gb"), instances=(Instance("3g.40gb", 0),))
    >>> now = Deployment((FleetNode("a", (card,)),))
    >>> then = now.with_gpus({("a", 0): card.with_instances([Instance("4g.40gb", 0)])})
    >>> print(*reversal(transition(now, then)).actions, sep="\\n")
    delete on a/0: 4g.40gb@0 idle
    create on a/0: 3g.40gb@0 idle
    """
    modes = {(card.node, card.index): card.mode for card in transition.start.gpus()}
    back: list[Action] = []
    for action in transition.actions:
        mode = modes[action.gpu] if action.mode is not None else None
        modes[action.gpu] = action.mode or modes[action.gpu]
        adds = tuple(
            replace(each, gpu_instance=None, uuid=None)
            for each in action.removes
            if each.state is State.RUNNING
        )
        if action.removes and not (adds or action.adds or mode):
            continue
        what = _INVERSE.get(action.what, action.what)
        if action.removes and not adds and what is not What.REPARTITION:
            what = What.DELETE
        back.append(replace(action, what=what, removes=action.adds, adds=adds, after=(), mode=mode))
    back.reverse()
    start = transition.target
    target = _as_it_was(transition).with_gpus(find_end(start, back))
    most = most_in_use(list_uses(start, back))
    actions = ordered(start, back, transition.floors, most)
    both = in_common(start, target, places=True)
    kept = Kept(count_kept(start, back), both, Proof.CHECKED, places=True)
    return check_result(start, target, transition.floors, actions, most, kept)


def _as_it_was(transition: Transition) -> Deployment:
    """Ask for no more than there was: a way back need not lead to what had been asked for.

    Nor within the limits that had been: what comes on the way was counted by the new ones. Only
    where these do not admit what is to run again, it is the old ones that do.
    """
    start = transition.start
    new = {each.name: each for each in transition.target.services}
    works = (each.work for _, each in start.instances())
    old = {work.service for work in beyond_limits(works, new, transition.target.rule)}
    services = tuple(
        replace(
            each if each.name in old else new.get(each.name, each),
            rate_rps=min(each.rate_rps, start.capacity(each.name)),
        )
        for each in start.services
    )
    return replace(start, services=services)
