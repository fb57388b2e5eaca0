"""Every moment of every execution: floors, layouts and GPUs in use, at their worst."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from .fleet import rules, supplies
from .reading import ZERO, show
from .sequence import Replay, Stretch, Use
from .transition import Transition
from .turns import turn_faults
from .waits import moments, worst

#: So many moments are looked at one by one.
_MOMENTS = 4096


def _positive(amounts: Iterable[tuple[int, Fraction]]) -> dict[int, Fraction]:
    return {at: amount for at, amount in amounts if amount}


def lowest_capacities(of: Transition) -> dict[str, tuple[Fraction, tuple[int, ...]]]:
    """Find, of each service with a floor, the lowest capacity at any moment, and when that is."""
    first = supplies((e for card in of.start.cards.values() for e in card.held), of.points)
    removed = [supplies(action.removes, of.points) for action in of.actions]
    added = [supplies(action.adds, of.points) for action in of.actions]
    for at, action in enumerate(of.actions):
        for name in removed[at].keys() & added[at].keys() if action.what == "switch" else ():
            # at every moment all of the one or all of the other
            both = min(removed[at][name], added[at][name])
            removed[at][name] -= both
            added[at][name] -= both
    found = {}
    for name in of.floors:
        gains = _positive((at, each[name]) for at, each in enumerate(removed) if name in each)
        losses = _positive((at, each[name]) for at, each in enumerate(added) if name in each)
        lost, moment = worst(gains, losses, {at: of.before[at] for at in gains})
        found[name] = first[name] - lost, moment
    return found


def floor_faults(of: Transition, lowest: Mapping[str, tuple[Fraction, Sequence[int]]]) -> list[str]:
    """Say which services can be below their floor."""
    return [
        f"service {show(name)} can fall to {show(low)} requests/s, below its floor of "
        f"{show(of.floors[name])}{_when(moment)}"
        for name, (low, moment) in lowest.items()
        if low < of.floors[name]
    ]


def _when(moment: Sequence[int]) -> str:
    if not moment:
        return ", before anything is done"
    shown = ", ".join(map(str, moment[:8])) + (", ..." if len(moment) > 8 else "")
    return f", once of those that remove {shown} have begun"


def removal_faults(of: Transition, replay: Replay) -> list[str]:
    """No more of what is equal on a GPU is removed than was there and has come."""
    faults = []
    for name, card in of.start.cards.items():
        own = replay.on_card[name]
        come = {each for at in own for each in of.actions[at].adds}
        for each in sorted(come & {e for at in own for e in of.actions[at].removes}, key=str):
            gains, losses = (
                _positive((at, Fraction(getattr(of.actions[at], part).count(each))) for at in own)
                for part in ("removes", "adds")
            )
            more, moment = worst(gains, losses, {at: of.before[at] for at in gains})
            if more > card.held.count(each):
                when = ", ".join(map(str, moment))
                faults.append(f"on {name} {each} can be removed by {when} before it is there")
    return faults


def layout_faults(of: Transition, replay: Replay) -> list[str]:
    """Every rule of every GPU, at any moment between two repartitions."""
    faults = []
    services = {**of.start.services, **of.target.services}
    for name, stretches in replay.stretches.items():
        card = of.start.cards[name]
        for stretch in stretches:
            moving = [at for at in stretch.actions if of.actions[at].what != "restart"]
            if not moving and not stretch.first:
                continue
            for rule in rules(card.device, stretch.mode, stretch.first):
                gains, losses = (
                    _positive(
                        (at, sum(map(rule.weight, getattr(of.actions[at], part)), ZERO))
                        for at in moving
                    )
                    for part in ("adds", "removes")
                )
                more, moment = worst(gains, losses, {at: of.before[at] for at in gains})
                total = sum(map(rule.weight, stretch.first), ZERO) + more
                if total > rule.most:
                    when = f" once {', '.join(map(str, moment))} have begun" if moment else ""
                    faults.append(
                        f"on {name} {rule.words} can be {show(total)}{when}, at most "
                        f"{show(rule.most)} may be"
                    )
            faults += _beside_unknown(of, replay, name, stretch)
            if stretch.mode == "mps":
                faults += turn_faults(name, stretch.first, of.points, services)
    return faults


def _beside_unknown(of: Transition, replay: Replay, name: str, stretch: Stretch) -> list[str]:
    """Nothing is added beside an instance of which nobody knows where it is."""
    unknown = sum(e.start is None for e in stretch.first) if stretch.mode == "mig" else 0
    faults = []
    for at in stretch.actions if unknown else ():
        gone = sum(
            each.instance.start is None
            for other in stretch.actions
            if of.before[at] >> other & 1 and of.actions[other].what != "restart"
            for each in replay.removed[other]
        )
        if of.actions[at].what == "create" and gone < unknown:
            faults.append(f"action {at} adds to {name} beside an instance with no known start")
    return faults


def most_in_use(of: Transition, replay: Replay) -> int:
    """Bound the number of GPUs in use at any moment; exact if there are few moments.

    A use of a GPU begins with any of its additions and has ended when all of its actions have. A
    use ends for certain, and another can begin, where all that adds later waits for all before it.
    """
    rough = min(_uses(of, replay, split=split) for split in (True, False))
    one_by_one = [_in_use(of, replay, (2 << at) - 1, (1 << at) - 1) for at in range(len(of.after))]
    if rough == max(one_by_one, default=of.start.in_use):
        return rough
    every = moments(of.before, _MOMENTS)
    if every is None:
        return rough
    return max(_in_use(of, replay, begun, ended) for begun, ended in every)


def _uses(of: Transition, replay: Replay, *, split: bool) -> int:
    """Bound it with each use for itself, or with all uses of a GPU as one."""
    uses = []
    for own in replay.uses.values():
        every = [at for use in own for at in use.actions]
        uses += own if split or not own else [Use(own[0].from_start, every, own[-1].ends)]
    gains, before = {}, {}
    done = [(each, sum(1 << at for at in use.actions)) for each, use in enumerate(uses)]
    done = [(each, needed) for each, needed in done if uses[each].ends]
    for each, use in enumerate(uses):
        if not use.from_start:
            gains[each] = Fraction(1)
            # whichever addition begins first: what all of them wait for has ended for certain
            ended = -1
            for at in use.actions:
                if of.actions[at].adds:
                    ended &= of.before[at]
            before[each] = sum(1 << other for other, needed in done if needed & ~ended == 0)
    more, _ = worst(gains, {each: Fraction(1) for each, _ in done}, before)
    return int(more) + sum(use.from_start for use in uses)


def _in_use(of: Transition, replay: Replay, begun: int, ended: int) -> int:
    """Count the GPUs in use at one moment."""
    total = 0
    for name, card in of.start.cards.items():
        there = len(card.held)
        for at in replay.on_card[name]:
            action = of.actions[at]
            there += len(action.adds) * (begun >> at & 1) - len(action.removes) * (ended >> at & 1)
        total += there > 0
    return total
