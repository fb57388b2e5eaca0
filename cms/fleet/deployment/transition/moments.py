"""The worst moment of any execution: exact, without walking through all moments.

At a moment some actions have begun, and some of these have ended: all that a begun one waits for,
at least. Let the beginning of an action add to a sum, and its end take from it. The sum is largest
at a moment at which only those have ended that must have; so its maximum is that of

    what the begun ones of a set add - what those take that must have ended by then,

over all sets of actions. Which set that is, a minimum cut says: either what an action adds is given
up, or all that it waits for is paid. Such sums are what a service lacks, and what is on a GPU.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from math import lcm

from ....schedule.faults import Violation
from ...serving.operating_point import mps_share
from ..checking import check_gpu, unable_to_run
from ..instance import Instance, Mode
from ..model import FleetGpu
from ..turns import turn_faults
from .model import Action, Transition, What, slots_of

_NOTHING = Fraction(0)
#: Of the actions that make a moment the worst, the last ones are named.
_MOST_NAMED = 3


def predecessors(actions: Sequence[Action]) -> list[int]:
    """Return, as bits, the positions of all actions that have ended when each one begins."""
    found: list[int] = []
    for action in actions:
        bits = 0
        for before in action.after:
            bits |= found[before] | 1 << before
        found.append(bits)
    return found


def bits_of(bits: int) -> Iterator[int]:
    """Iterate over the positions of the bits that are set, ascending."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


def worst_moment(
    ended: Sequence[int],
    adds: Mapping[int, Fraction | int],
    takes: Mapping[int, Fraction | int],
) -> tuple[Fraction, tuple[int, ...]]:
    """Return the largest value of a sum at any moment of any execution, and such a moment.

    The beginning of an action adds to the sum, and its end takes from it; both are 0 or more. The
    moment is told by the actions that have begun then and add; of all others only those have ended
    that these wait for.

    Examples
    --------
    The second action waits for the first one, so that at most one of them is there.

    >>> worst_moment([0, 0b1], {0: 1, 1: 1}, {0: 1})
    (Fraction(1, 1), (0,))
    """
    adds, takes = ({at: Fraction(n) for at, n in each.items()} for each in (adds, takes))
    begun = [at for at in sorted(adds) if adds[at]]
    taking = sum(1 << at for at, amount in takes.items() if amount)
    # The actions up to each one, with all that they wait for, are a moment; and if it is the last
    # to begin, at most these have begun, and what it waits for has ended.
    most, seen, moment = _NOTHING, _NOTHING, 0
    added, over = _NOTHING, 0
    for number, at in enumerate(begun, 1):
        added += adds[at]
        over |= ended[at] & taking
        most = max(most, added - _sum(takes, ended[at] & taking))
        if (value := added - _sum(takes, over)) > seen:
            seen, moment = value, number
    if seen == most:
        return seen, tuple(begun[:moment])
    waits = {at: ended[at] & taking for at in {*begun, *takes}}
    return _cut({at: adds[at] for at in begun}, takes, waits)


def _sum(amounts: Mapping[int, Fraction], bits: int) -> Fraction:
    return sum((amounts[at] for at in bits_of(bits)), _NOTHING)


def _cut(
    adds: Mapping[int, Fraction], takes: Mapping[int, Fraction], ended: Mapping[int, int]
) -> tuple[Fraction, tuple[int, ...]]:
    """Pay for what is added by what must have ended, as far as that goes: a maximum flow."""
    import networkx as nx

    scale = lcm(*(amount.denominator for amount in (*adds.values(), *takes.values())))
    graph: nx.DiGraph[int | str] = nx.DiGraph()  # what begins is at, and what has ended ~at
    graph.add_edge("adds", "takes", capacity=0)
    for at, amount in takes.items():
        graph.add_edge(~at, "takes", capacity=int(amount * scale))
    for at, amount in adds.items():
        graph.add_edge("adds", at, capacity=int(amount * scale))
    for node in (*adds, *(~at for at in takes)):
        left = ended[max(node, ~node)]
        while left:  # those that the last one has waited for are reached through it
            last = left.bit_length() - 1
            graph.add_edge(node, ~last)
            left &= ~(ended[last] | 1 << last)
    paid, (begun, _) = nx.minimum_cut(graph, "adds", "takes")
    return sum(adds.values()) - Fraction(int(paid), scale), tuple(at for at in adds if at in begun)


def every_moment(ended: Sequence[int], most: int) -> list[tuple[int, int]] | None:
    """Return all sets of begun actions, each with those that must have ended; None if too many.

    Examples
    --------
    >>> every_moment([0, 0b1], 9)
    [(0, 0), (1, 0), (3, 1)]
    >>> every_moment([0, 0, 0], 7) is None
    True
    """
    found = [(0, 0)]
    for at, needed in enumerate(ended):
        found += [(begun | 1 << at, over | needed) for begun, over in found if not needed & ~begun]
        if len(found) > most:
            return None
    return found


# --- what is on each GPU --------------------------------------------------------------------------


def when(actions: Sequence[Action], moment: Sequence[int]) -> str:
    """Say when a moment is: with which actions under way."""
    if not moment:
        return "at the start"
    words = [f"action {at} ({actions[at]})" for at in moment[-_MOST_NAMED:]]
    more = len(moment) - len(words)
    return f"while {', '.join(words)}{f' and {more} more' * (more > 0)} can be under way"


def layout_faults(transition: Transition) -> Iterator[Violation]:
    """Say what cannot be on a GPU at some moment, or cannot be done there."""
    actions = transition.actions
    ended = predecessors(actions)
    on_gpu: dict[tuple[str, int], list[int]] = {}
    for at, action in enumerate(actions):
        before = on_gpu.setdefault(action.gpu, [])
        # of what came before a repartition, the repartition itself has waited
        last = [b for b in before if actions[b].has_its_gpu][-1:]
        for b in before if action.has_its_gpu else last:
            if not ended[at] >> b & 1:
                has = f"a GPU repartitioned beside another action, {b}"
                yield Violation("wait", f"action {at} ({action})", has, f"a wait for {b}")
                break
        before.append(at)
    for card in transition.start.gpus():
        own = on_gpu.get((card.node, card.index), [])
        yield from _removed_early(card, actions, ended, own)
        yield from _crowded(card, actions, ended, own)
        yield from _come_in_vain(transition, card, own)


def _come_in_vain(
    transition: Transition, card: FleetGpu, own: Sequence[int]
) -> Iterator[Violation]:
    """New instances are offered by the driver, run their work, and wait for a repartition."""
    sides = transition.start, transition.target
    services = {service.name: service for side in sides for service in side.services}.values()
    known = [node.driver for side in sides for node in side.nodes if node.name == card.node]
    driver = next((each for each in known if each is not None), None)
    there = Counter(card.instances)
    for at in own:
        action = transition.actions[at]
        card = replace(card, mode=action.mode or card.mode, instances=action.adds)
        there.update(action.adds)
        there.subtract(action.removes)
        yield from unable_to_run(driver, card, services)
        if action.has_its_gpu:
            yield from turn_faults(card.with_instances((+there).elements()), services)


def _removed_early(
    card: FleetGpu, actions: Sequence[Action], ended: Sequence[int], own: Sequence[int]
) -> Iterator[Violation]:
    """No more of what is equal may go than was there and has come for certain."""
    for each in {each for at in own for each in actions[at].adds}:
        gone, come = (
            {at: n for at in own if (n := getattr(actions[at], part).count(each))}
            for part in ("removes", "adds")
        )
        more, moment = worst_moment(ended, gone, come)
        if more > card.instances.count(each):
            has = f"{each} removed before it is there {when(actions, moment)}"
            yield Violation("wait", card.name, has, "a wait for what adds it")


def _crowded(
    card: FleetGpu, actions: Sequence[Action], ended: Sequence[int], own: Sequence[int]
) -> Iterator[Violation]:
    """What can be on a GPU at once must be legal, from one repartition to the next."""
    there = Counter(map(_bare, card.instances))
    moving: list[int] = []
    for at in own:
        action = actions[at]
        if action.has_its_gpu:
            yield from _at_once(card, there, actions, ended, moving)
            for b in (*moving, at):
                there.update(map(_bare, actions[b].adds))
                there.subtract(map(_bare, actions[b].removes))
            card, moving = replace(card, mode=action.mode or card.mode), []
            yield from _illegal(card, there, actions, (at,))
        elif action.what is not What.RESTART:  # whatever works there: a restart keeps its place
            moving.append(at)
    yield from _at_once(card, there, actions, ended, moving)


def _bare(instance: Instance) -> Instance:
    return Instance(instance.profile, instance.start)


def _illegal(
    card: FleetGpu, there: Counter[Instance], actions: Sequence[Action], moment: Sequence[int]
) -> list[Violation]:
    found = check_gpu(replace(card, instances=tuple((+there).elements())))
    words = when(actions, moment)
    return [Violation("layout", each.where, f"{each.has} {words}", each.needs) for each in found]


def _at_once(
    card: FleetGpu,
    there: Counter[Instance],
    actions: Sequence[Action],
    ended: Sequence[int],
    moving: Sequence[int],
) -> Iterator[Violation]:
    """Say what is illegal at the worst moment of the first rule that is broken."""
    adding = [at for at in moving if actions[at].adds]
    unknown = sum(n for each, n in there.items() if each.start is None)
    for at in adding if card.mode is Mode.MIG else ():
        earlier = [actions[b].removes for b in moving if ended[at] >> b & 1]
        gone = sum(each.start is None for removes in earlier for each in removes)
        if gone < unknown or any(each.start is None for each in actions[at].adds):
            has = "an instance added beside one whose start is not known"
            yield Violation("start", f"action {at} ({actions[at]})", has, "known starts")
    alone = [(at, Counter(map(_bare, actions[at].adds))) for at in adding]
    wrong = [each for at, added in alone for each in _illegal(card, added, actions, (at,))]
    yield from dict.fromkeys(wrong)
    for weight in () if wrong or not adding else _list_weights(card):
        adds, takes = (
            {at: n for at in moving if (n := sum(map(weight, getattr(actions[at], part))))}
            for part in ("adds", "removes")
        )
        more, moment = worst_moment(ended, adds, takes)
        if more > 0:
            over = 0
            for at in moment:
                over |= ended[at]
            full = there.copy()
            for at in moving:
                full.update(map(_bare, actions[at].adds if at in moment or over >> at & 1 else ()))
                full.subtract(map(_bare, actions[at].removes if over >> at & 1 else ()))
            if found := _illegal(card, full, actions, moment):
                yield from found
                return


def _list_weights(card: FleetGpu) -> list[Callable[[Instance], int]]:
    """List what an instance counts for in each of the sums that a GPU limits."""
    if card.mode is not Mode.MIG:
        return [
            lambda each: 1,
            lambda each: (mps_share(each.profile) or 0) if each.start is None else 0,
        ]
    profile = card.gpu.profile
    return [
        *(partial(lambda slot, e: slots_of(card, e) >> slot & 1, slot)
          for slot in range(card.gpu.memory_slices)),
        *(partial(lambda own, e: profile(e.profile) is own, own) for own in card.gpu.profiles),
        lambda each: profile(each.profile).compute,
        lambda each: profile(each.profile).memory,
        lambda each: profile(each.profile).has_media_engines,
    ]  # fmt: skip
