"""From counts to a deployment: which GPU, which instance, which start.

The program has decided how many GPUs of a kind become what and how much is kept. Here every choice
that is left is made in one fixed order: nodes by name, GPUs by index, services by name; of starts
those that use what is there, then those that leave the longest run of free slices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from .checking import has_our_work
from .filling import Filling, split
from .guesses import doubtful, in_doubt
from .instance import Instance, Kind, Mode, State
from .keeping import Chosen, Demand
from .model import Deployment, FleetGpu
from .spots import Spot, is_as_cut, kind_of, layouts_around
from .starts import starts_beside

__all__ = ["filled", "fillings", "realise"]


def realise(
    fleet: Deployment, spots: Sequence[Spot], demand: Demand, chosen: Chosen
) -> dict[tuple[str, int], FleetGpu]:
    """Return the GPUs that change, by node and index."""
    return filled(fleet, fillings(spots, demand, chosen), demand.kinds)


def filled(
    fleet: Deployment, contents: Iterable[Filling], kinds: Sequence[Kind]
) -> dict[tuple[str, int], FleetGpu]:
    """Return the GPUs that change: those to be filled, and those that lose their work."""
    cards: dict[tuple[str, int], FleetGpu] = {}
    doubts = {node.name: doubtful(node) for node in fleet.nodes}
    numbers = {kind: number for number, kind in enumerate(kinds)}
    done = set()
    for each in contents:
        if each.kept or each.new:
            card = each.card
            done.add((card.node, card.index))
            fixed = in_doubt(card, doubts[card.node])
            cards[card.node, card.index] = _fill(each, kinds, numbers, fixed)
    for card in fleet.gpus():
        if (card.node, card.index) not in done and has_our_work(card):
            cards[card.node, card.index] = _emptied(card, in_doubt(card, doubts[card.node]))
    return cards


def fillings(spots: Sequence[Spot], demand: Demand, chosen: Chosen) -> list[Filling]:
    """Spread what was chosen over single GPUs and instances over them."""
    free = _cards_in_order(spots, chosen)
    counts = chosen.counts(demand)
    wanted = {kind: n - chosen.kept_of(kind) for kind, n in enumerate(counts)}
    every: list[Filling] = []
    for q, columns in enumerate(chosen.columns):
        mine: list[Filling] = []
        for (s, c), number in columns.items():
            column = spots[s].columns[c]
            mine += [Filling(free[s].pop(0), column) for _ in range(number)]
        mine.sort(key=lambda each: (not each.column.stays, each.card.node, each.card.index))
        new: dict[int, int] = {}
        for i, placed in chosen.placed[q].items():
            crowd = demand.crowds[i]
            left = placed - sum(chosen.kept[q].get(kind, 0) for kind in crowd.kinds)
            for kind in crowd.kinds:
                taken = min(left, wanted[kind])
                if taken:
                    new[kind] = taken
                    wanted[kind] -= taken
                    left -= taken
        if chosen.pools[q].is_even and len(mine) > 1:
            split(mine, chosen.kept[q], new, demand.kinds)
        else:
            _keep(mine, dict(chosen.kept[q]))
            _add(mine, new, demand.kinds)
        every += mine
    return every


def _cards_in_order(spots: Sequence[Spot], chosen: Chosen) -> list[list[FleetGpu]]:
    """Of each spot the GPUs to be used, on as few nodes as possible."""
    wanted = Counter[int]()
    for columns in chosen.columns:
        for (s, _), number in columns.items():
            wanted[s] += number
    found: list[list[FleetGpu]] = []
    if chosen.nodes is not None:
        left = Counter(chosen.nodes)
        for s, spot in enumerate(spots):
            found.append([])
            for card in spot.cards:
                if left[s, card.node]:
                    left[s, card.node] -= 1
                    found[s].append(card)
        return found
    used = {
        c.node for s, spot in enumerate(spots) if wanted[s] == len(spot.cards) for c in spot.cards
    }
    for s, spot in enumerate(spots):
        size = Counter(card.node for card in spot.cards)
        order = sorted(
            spot.cards, key=lambda c: (c.node not in used, -size[c.node], c.node, c.index)
        )
        found.append(order[: wanted[s]])
        used |= {card.node for card in found[-1]}
    return found


def _keep(contents: Sequence[Filling], left: dict[int, int]) -> None:
    """Have instances go on where they are: first where nothing else changes."""
    for each in contents:
        for kind, most in each.column.keeps:
            if taken := min(most, left.get(kind, 0)):
                each.kept[kind] = taken
                left[kind] -= taken


def _add(contents: Sequence[Filling], new: Mapping[int, int], kinds: Sequence[Kind]) -> None:
    """Put new work where an instance is already, then where there is room."""
    wanted: dict[tuple[str, str], list[int]] = {}
    for kind in sorted(new, key=lambda number: kinds[number].order):
        block = kinds[kind].gpu, kinds[kind].profile
        wanted.setdefault(block, []).extend([kind] * new[kind])
    for queue in wanted.values():
        queue.reverse()
    for is_there in (True, False):
        for each in contents:
            held = Counter(kinds[kind].profile for kind in each.kept.elements())
            held.update(kinds[kind].profile for kind in each.new.elements())
            for profile, most in each.column.there if is_there else each.column.counts:
                queue = wanted.get((each.card.gpu.key, profile), [])
                while queue and held[profile] < most:
                    each.new[queue.pop()] += 1
                    held[profile] += 1


# --- one GPU --------------------------------------------------------------------------------------


def _fill(
    filling: Filling,
    kinds: Sequence[Kind],
    numbers: Mapping[Kind, int],
    fixed: tuple[Instance, ...],
) -> FleetGpu:
    card, column = filling.card, filling.column
    if not filling.new and column.stays:
        return replace(card, instances=tuple(_at_work(each) for each in card.instances))
    if column.as_cut:
        return _relabelled(card, filling, kinds, numbers)
    own = [each for each in card.instances if each.is_managed] if card.mode is column.mode else []
    if is_as_cut(card):
        own = []
    if column.mode is Mode.MIG:
        return _cut(card, own, filling, kinds, numbers, fixed)
    kept, _ = _first(card, own, filling.kept, numbers)
    works = [kinds[kind] for kind in filling.new.elements()]
    instances = [*card.foreign, *kept]
    if fixed and not kept:  # a whole GPU that may be another's: what works there changes alone
        instances += [
            replace(each, work=kind.work, state=State.RUNNING)
            for each, kind in zip(fixed, works, strict=True)
        ]
    else:
        instances += [Instance(kind.profile, work=kind.work) for kind in works]
    return card.with_instances(instances, column.mode)


def _at_work(instance: Instance) -> Instance:
    """What is starting now is to run."""
    starts = instance.is_managed and instance.work is not None
    return replace(instance, state=State.RUNNING) if starts else instance


def _first(
    card: FleetGpu, own: Iterable[Instance], counts: Mapping[int, int], numbers: Mapping[Kind, int]
) -> tuple[list[Instance], list[Instance]]:
    """Return the first instances of some kinds, a number of each, and the rest."""
    left = dict(counts)
    found, rest = [], []
    for each in own:
        kind = kind_of(card, each)
        number = -1 if kind is None else numbers.get(kind, -1)
        if left.get(number, 0):
            left[number] -= 1
            found.append(_at_work(each))
        else:
            rest.append(each)
    return found, rest


def _cut(
    card: FleetGpu,
    own: list[Instance],
    filling: Filling,
    kinds: Sequence[Kind],
    numbers: Mapping[Kind, int],
    fixed: tuple[Instance, ...],
) -> FleetGpu:
    pinned = tuple((each.profile, each.start or 0) for each in card.foreign)
    wanted = Counter(kinds[kind].profile for kind in filling.new.elements())
    counts = wanted + Counter(kinds[kind].profile for kind in filling.kept.elements())
    profiles = tuple(sorted(counts))
    at = {(each.profile, each.start or 0): each for each in own}
    kept: list[Instance] = []
    stay = tuple((each.profile, each.start or 0) for each in fixed)
    for layout in layouts_around(card.gpu, (*pinned, *stay), profiles):
        kept, _ = _first(card, [at[p] for p in layout if p in at], filling.kept, numbers)
        open_ = Counter(p.profile for p in layout)
        open_.subtract(profile for profile, _ in pinned)
        if len(kept) == filling.kept.total() and all(open_[p] >= n for p, n in counts.items()):
            break
    going_on = {(each.profile, each.start or 0) for each in kept}
    cut = [each for each in fixed if (each.profile, each.start or 0) not in going_on]
    used = []  # what may not be cut anew is used first
    for each in sorted(cut, key=lambda each: not each.is_whole):
        if wanted[each.profile]:
            wanted[each.profile] -= 1
            used.append((each.profile, each.start or 0))
    around = (*pinned, *((each.profile, each.start or 0) for each in (*kept, *cut)))
    held = {*around}
    there = tuple(place for place, each in at.items() if place not in held and each.is_whole)
    idle = tuple(place for place in there if at[place].work is None)
    places, left = starts_beside(card.gpu, tuple(sorted((+wanted).items())), around, there, idle)
    queues: dict[str, list[Kind]] = {}
    for kind in sorted(
        filling.new.elements(), key=lambda number: kinds[number].order, reverse=True
    ):
        queues.setdefault(kinds[kind].profile, []).append(kinds[kind])
    new = []
    for profile, start in (*used, *places):
        work = queues[profile].pop().work
        before = at.get((profile, start))
        if before is not None and before.is_whole:
            new.append(replace(before, work=work, state=State.RUNNING))
        else:
            new.append(Instance(profile, start, work))
    rest = [at[place] for place in left]
    rest += [_idle(each) for each in cut if (each.profile, each.start or 0) not in used]
    return card.with_instances((*card.foreign, *kept, *new, *rest), Mode.MIG)


def _relabelled(
    card: FleetGpu, filling: Filling, kinds: Sequence[Kind], numbers: Mapping[Kind, int]
) -> FleetGpu:
    """Change the work of instances whose starts are not known; what has no work then idles."""
    own = [each for each in card.instances if each.is_managed]
    queues: dict[str, list[Kind]] = {}
    for kind in filling.new.elements():
        queues.setdefault(kinds[kind].profile, []).append(kinds[kind])
    kept, rest = _first(card, own, filling.kept, numbers)
    done = []
    for each in sorted(rest, key=lambda each: each.work is not None):
        if each.is_whole and queues.get(each.profile):
            done.append(replace(each, work=queues[each.profile].pop().work, state=State.RUNNING))
        else:
            done.append(_idle(each))
    return replace(card, instances=(*card.foreign, *kept, *done))


def _idle(instance: Instance) -> Instance:
    if instance.work is None:
        return instance
    return replace(instance, work=None, state=State.RUNNING)


def _emptied(card: FleetGpu, fixed: tuple[Instance, ...]) -> FleetGpu:
    """Take our work off a GPU; what idled stays, what may be another's, or all without starts."""
    if is_as_cut(card):
        done = (_idle(each) if each.is_managed else each for each in card.instances)
        return replace(card, instances=tuple(done))
    stay = [each for each in card.instances if not each.is_managed or each.work is None]
    stay += [_idle(each) for each in fixed if each.work is not None]
    return card.with_instances(stay)
