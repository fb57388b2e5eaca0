"""From what runs to what is wanted: a transition on the fewest spare GPUs that were found to do."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf
from typing import Literal

from ....errors import AlgorithmError, CmsError, InvalidOption, InvalidProblem
from ....solving.solution import Proof
from ....values.numbers import Number, shown
from ..checking import check_deployment
from ..instance import Instance, State
from ..model import Deployment, FleetGpu
from ..placing import place
from ..programs import Limits
from ..recounting import outdated, recounted
from ..unplaceable import Unplaceable
from ..wanted import Wanted
from ..wishes import Wishes, wishes_of
from .checking import check_transition, most_gpus
from .durations import Durations
from .floors import floors_of
from .kept import in_common, proved_kept
from .model import Action, Floor, Kept, Necessary, Spare, Transition
from .necessity import Necessity
from .order import temporaries
from .ordering import sequences
from .shortening import shortened
from .state import Fleet

__all__ = ["Impossible", "arrived", "checked", "transition"]

#: So many actions more are taken for less time.
_MORE_ACTIONS = 2
#: Where it is impossible, these shares of the floors are tried, each from so many beginnings more.
_LOWER, _TRIES = tuple(Fraction(tenths, 10) for tenths in (9, 8, 7, 5)), 3


@dataclass(frozen=True)
class Impossible:
    """There is no transition, or none was found.

    Parameters
    ----------
    reasons : tuple of str
    proof : Proof
        ``CHECKED``: the reasons prove it. ``SOLVER``: a solver says so. ``NONE``: none was found,
        and there may be one.
    necessity : Frozen, Exhausted or FirstCut, optional
        What proves that the GPUs that may be used are too few, if that is why.
    """

    reasons: tuple[str, ...]
    proof: Proof
    necessity: Necessary | None = None

    def __str__(self) -> str:
        what = "no transition was found" if self.proof is Proof.NONE else "there is no transition"
        return f"{what}: {'; '.join(self.reasons)}"


def transition(
    start: Deployment,
    to: Wanted | Deployment,
    *,
    floor: Number = 1,
    floors: Mapping[str, Number] | None = None,
    spare: int | Literal["auto"] = "auto",
    as_grouped: bool = False,
    wishes: Wishes | None = None,
    durations: Durations | None = None,
    max_parallel: int | None = None,
    seed: int = 0,
    restarts: int = 12,
    time_limit: float | None = None,
    cancel: threading.Event | None = None,
) -> Transition | Impossible:
    """Plan the way from what runs to what is wanted, above all floors at every moment.

    Parameters
    ----------
    start : Deployment
        What runs now.
    to : Wanted or Deployment
        What is wanted: then it is chosen here what lies where, so that most of what runs is kept,
        and what a place gets is decided when it is free. Or a target that is to be reached as it
        stands.
    floor : number, default 1
        What each service keeps, as a share of the smaller of its old and its new rate; see
        :func:`floors_of`.
    floors : Mapping[str, number], optional
        Shares of single services.
    spare : int or "auto"
        At most so many GPUs are borrowed beyond the larger of the numbers before and after;
        "auto" takes as few as are found to do. `Transition.spare` says how many are proved to be
        needed.
    as_grouped : bool, default False
        Whether GPUs are to hold what the plan's groups have.
    wishes : Wishes, optional
        As in `place`.
    durations : Durations, optional
        What the order is made short for.
    max_parallel : int, optional
        At most so many actions at once.
    seed : int
        Of what is random.
    restarts : int
        Beginnings at random, for each number of spare GPUs.
    time_limit : float, optional
        Seconds.
    cancel : threading.Event, optional

    Returns
    -------
    Transition or Impossible
        What is impossible on the GPUs that may be used is proved so, or was only not found. A
        transition has passed `check_transition`. Its `start` has supplies counted by the target's
        rule and limits.

    Raises
    ------
    InvalidProblem
        If the start or the target cannot be as it is written, they are not of the same GPUs, or
        something that is not ours would have to go.

    Examples
    --------
    >>> from cms import load_instance, solve
    >>> from cms.fleet import Plan, gpu
    >>> from cms.fleet.deployment import FleetNode, place, wanted_of
    >>> def wanted(name):
    ...     serving = load_instance(name).as_problem()
    ...     return wanted_of(Plan(serving, solve(serving.problem)))
    >>> cards = tuple(FleetGpu("a", index, gpu("a100-80gb")) for index in range(8))
    >>> now = place(wanted("S1"), Deployment((FleetNode("a", cards),))).deployment
    >>> found = transition(now, wanted("S2"))
    >>> found.spare.count, check_transition(found)
    (0, ())
    """
    if isinstance(spare, int) and spare < 0:
        raise InvalidOption(f"spare is {spare}; expected 0 or more, or 'auto'")
    limits = Limits(inf if time_limit is None else time_limit, cancel)
    durations = durations or Durations()
    goal = _goal(start, to, as_grouped, wishes, limits)
    if isinstance(goal, Impossible):
        return goal
    asked = floors_of(goal.start, goal.target, floor, floors)
    for name, each in asked.items():
        if each.rps and (has := goal.target.capacity(name)) < each.rps:
            reason = f"{name} is to keep {each}, and has {shown(has)} items/s in the end"
            return Impossible((reason,), Proof.CHECKED)
    fleet = Fleet(goal.start, goal.target, asked, goal.is_late)
    before = most_gpus(goal.start, goal.target)
    free = len(fleet.cards) - before
    most = free if spare == "auto" else min(free, spare)
    exact = isinstance(to, Deployment)
    if exact:
        _require_enough(goal.target)
    needed = Necessity(goal.start, goal.target, asked, before, places=exact)
    for count in range(most + 1):
        found = sequences(
            fleet, before + count, seed=seed, restarts=restarts, durations=durations, limits=limits
        )
        if not found and not limits.over:
            way = needed.look(count, limits)
            if way is not None and (exact or goal.is_late) and _arrives(goal, asked, way):
                found = [way]
        if found:
            fewest = min(map(len, found))
            done = [
                shortened(goal.start, each, asked, before + count, durations, max_parallel)
                for each in found
                if len(each) <= fewest + _MORE_ACTIONS
            ]
            best = min(done, key=lambda each: (each.milliseconds, len(each.actions)))
            target, kept = arrived(goal.start, goal.target, best.actions)
            stays = goal.kept
            if stays.places:
                stays = replace(stays, count=kept)
            else:
                bound = stays.most, stays.proof
                stays = proved_kept(goal.start, target, kept, bound, limits)
            borrowed = needed.spare(best.gpus - before)
            return checked(goal.start, target, asked, best.actions, borrowed, stays)
        if limits.over:
            raise CmsError("no transition was found in time; expected a longer time limit")
    if most in needed.proofs:
        would_do = _what_would_do(goal, asked, before + most, seed, limits)
        return Impossible((needed.words(most), would_do), Proof.CHECKED, needed.proofs[most])
    reasons = [f"none was found with {most} spare GPU{'s' * (most != 1)}"]
    if most == free:
        reasons.append("the fleet has no more; lower floors would help most")
    if begins := sum(_is_starting(each) for _, each in goal.start.instances()):
        what = "1 instance is" if begins == 1 else f"{begins} instances are"
        reasons.append(f"{what} still starting, and counted only once running: observe again then")
    return Impossible(tuple(reasons), Proof.NONE)


def _is_starting(instance: Instance) -> bool:
    return instance.state is State.STARTING and instance.work is not None


def _what_would_do(
    goal: _Goal, asked: Mapping[str, Floor], most: int, seed: int, limits: Limits
) -> str:
    """Look for floors that are low enough."""
    for lower in _LOWER:
        if limits.over:
            break
        floors = {name: replace(each, rps=each.rps * lower) for name, each in asked.items()}
        fleet = Fleet(goal.start, goal.target, floors, goal.is_late)
        if sequences(fleet, most, seed=seed, restarts=_TRIES, limits=limits):
            return f"with {shown(lower * 100)} % of the floors there is one"
    return "lower floors or more GPUs are needed"


def _arrives(goal: _Goal, floors: Mapping[str, Floor], actions: Sequence[Action]) -> bool:
    """Whether actions end with what is wanted, on as many GPUs of each type.

    Nothing may come on the way that the new limits do not admit, and what is still starting does
    not count, as it does where all that can be reached is looked for.
    """
    old = outdated(goal.start, goal.target)
    if any(each.work in old for action in actions for each in action.adds):
        return False
    for name, floor in floors.items():
        if not floor.rps:
            continue
        has = goal.start.capacity(name)
        for action in actions:
            has -= action.removed_rps(name)
            if has < floor.rps:
                return False
            has += action.added_rps(name)
    there, _ = arrived(goal.start, goal.target, actions)
    ends = (
        (side.kinds(), Counter(card.gpu.key for card in side.used_gpus()))
        for side in (there, goal.target)
    )
    return next(ends) == next(ends)


@dataclass(frozen=True)
class _Goal:
    start: Deployment
    target: Deployment
    kept: Kept
    is_late: bool


def _goal(
    start: Deployment,
    to: Wanted | Deployment,
    as_grouped: bool,
    wishes: Wishes | None,
    limits: Limits,
) -> _Goal | Impossible:
    if isinstance(to, Deployment):
        _require_possible(start, to)
        works = [each.work for _, each in to.instances() if each.work is not None]
        start = recounted(start, to.services, to.rule, works)
        same = in_common(start, to, places=True)
        return _Goal(start, to, Kept(same, same, Proof.CHECKED, places=True), False)
    start = recounted(start, to.services, to.rule, [kind.work for kind in to.counts])
    wishes = wishes_of(to.services) if wishes is None else wishes
    left = None if limits.seconds == inf else limits.left
    placed = place(
        to, start, wishes=wishes, as_grouped=as_grouped, time_limit=left, cancel=limits.cancel
    )
    if isinstance(placed, Unplaceable):
        return Impossible(placed.reasons, placed.proof)
    kept = Kept(placed.kept, placed.most_kept, placed.proof)
    return _Goal(start, placed.deployment, kept, not (wishes or as_grouped))


def _require_enough(target: Deployment) -> None:
    """A target gives what it asks for: that is what floors and the end are held against."""
    for fault in check_deployment(target):
        raise InvalidProblem(
            f"the target gives less than it asks for: {fault}; expected instances that do, or a "
            "lower rate there"
        )


def _require_possible(start: Deployment, target: Deployment) -> None:
    """A target that is to be reached as it stands is of the same GPUs."""
    for what, side in (("start", start), ("target", target)):
        for fault in check_deployment(side):
            if fault.kind != "capacity":
                raise InvalidProblem(f"the {what} cannot be as it is written: {fault}")
    old, new = ({card.name: card for card in side.gpus()} for side in (start, target))
    if alone := sorted(old.keys() ^ new.keys()):
        has, lacks = ("start", "target") if alone[0] in old else ("target", "start")
        more = f" (and {len(alone) - 1} more)" if len(alone) > 1 else ""
        raise InvalidProblem(
            f"GPU {alone[0]} is in the {has} and not in the {lacks}{more}; expected the same GPUs "
            "on both sides, those that stay empty as well"
        )
    for name in old:
        if old[name].gpu.key != new[name].gpu.key:
            raise InvalidProblem(
                f"GPU {name} is {old[name].gpu.key} in the start and {new[name].gpu.key} in the "
                "target; expected the same GPUs"
            )
        if None not in (uuids := (old[name].uuid, new[name].uuid)) and uuids[0] != uuids[1]:
            raise InvalidProblem(
                f"GPU {name} is {uuids[0]} in the start and {uuids[1]} in the target; expected the "
                "same GPUs"
            )
    drivers = {node.name: node.driver for node in target.nodes}
    for node in start.nodes:
        if None not in (node.driver, drivers[node.name]) and node.driver != drivers[node.name]:
            raise InvalidProblem(
                f"node {node.name!r} has driver {node.driver} in the start and "
                f"{drivers[node.name]} in the target; expected the same one"
            )


def checked(
    start: Deployment,
    target: Deployment,
    floors: Mapping[str, Floor],
    actions: Sequence[Action],
    spare: int | Spare,
    kept: Kept,
) -> Transition:
    """Return a transition that has passed the check; one that has not is a defect.

    Of `spare`, a number or what is proved of it, the GPUs borrowed are put in here.
    """
    needed = Spare(spare) if isinstance(spare, int) else spare
    both = {c.name for c in (*start.used_gpus(), *target.used_gpus())}
    borrowed = tuple(sorted({action.name for action in actions if action.adds} - both))
    temporary, _ = temporaries(start, actions)
    done = Transition(
        start,
        target,
        floors,
        tuple(replace(a, is_temporary=at in temporary) for at, a in enumerate(actions)),
        replace(needed, borrowed=borrowed),
        kept,
    )
    faults = check_transition(done)
    if faults:
        raise AlgorithmError("transition", f"it is refused: {'; '.join(map(str, faults[:5]))}")
    return done


def arrived(
    start: Deployment, target: Deployment, actions: Sequence[Action]
) -> tuple[Deployment, int]:
    """Return what is there in the end, and how many instances with work were never interrupted."""
    held = {(c.node, c.index): list(c.instances) for c in start.gpus()}
    modes = {(c.node, c.index): c.mode for c in start.gpus()}
    gone: Counter[tuple[tuple[str, int], Instance]] = Counter()
    for action in actions:
        for each in action.removes:
            held[action.gpu].remove(each)
            gone[action.gpu, each] += 1
        held[action.gpu].extend(action.adds)
        modes[action.gpu] = action.mode or modes[action.gpu]
    kept = 0
    cards: dict[tuple[str, int], FleetGpu] = {}
    for card in start.gpus():
        place = card.node, card.index
        for each in card.instances:
            if gone[place, each]:
                gone[place, each] -= 1
            elif each.is_ours and each.work is not None:
                kept += 1
        runs = tuple(
            replace(each, state=State.RUNNING) if each.state is State.STARTING else each
            for each in held[place]
        )
        cards[place] = replace(card, instances=runs, mode=modes[place])
    return target.with_gpus(cards), kept
