"""From counts to a deployment: which GPU, which instance, which start.

The placement model has decided how many GPUs of a group take which layout and how much is kept. All
choices that are left are made in one fixed order: nodes by name, GPUs by index, services by name;
of starts those that use what is there, then those that leave the longest run of free slices.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import groupby, islice

from ..deployment.checking import has_our_work
from ..deployment.instance import Instance, Kind, Mode, State
from ..deployment.model import Deployment, FleetGpu
from ..hardware import Gpu
from .gpu_group import LayoutOption, Places, is_as_cut, kind_of, layouts_around, place_of
from .placement_model import Decision, PlacementModel
from .program import Limits, Program


@dataclass
class _Filling:
    """What a GPU is to hold."""

    card: FleetGpu
    option: LayoutOption
    kept: Counter[Kind] = field(default_factory=Counter)
    new: Counter[Kind] = field(default_factory=Counter)


def realise(
    fleet: Deployment, model: PlacementModel, decision: Decision
) -> dict[tuple[str, int], FleetGpu]:
    """Return the GPUs that change, by node and index: with new work, or without what they had."""
    cards: dict[tuple[str, int], FleetGpu] = {}
    for each in _list_fillings(model, decision):
        if each.kept or each.new:
            card = each.card
            cards[card.node, card.index] = _fill(each, fleet.in_doubt(card))
    for card in filter(has_our_work, fleet.gpus()):
        cards.setdefault((card.node, card.index), _emptied(card, fleet.in_doubt(card)))
    return cards


def _list_fillings(model: PlacementModel, decision: Decision) -> list[_Filling]:
    """Spread what was chosen over single GPUs and instances over them."""
    values, kinds = decision.values, model.demand.kinds
    free, kept_by_kind = _list_cards(model, decision), model.count_kinds(model.k, values)
    wanted = [n - kept_by_kind[kind] for kind, n in enumerate(model.counts_of(values))]
    every: list[_Filling] = []
    for pool, y, x, k in zip(model.pools, model.y, model.x, model.k, strict=True):
        mine = [
            _Filling(free[at[0]].pop(0), model.option(at))
            for at, v in y.items()
            for _ in range(values[v])
        ]
        mine.sort(key=lambda each: (not each.option.stays, each.card.node, each.card.index))
        kept, new = {kinds[number]: values[v] for number, v in k.items()}, dict[Kind, int]()
        for i, v in x.items():
            own = model.demand.groups[i].kinds
            left = values[v] - sum(values[k[number]] for number in own if number in k)
            for number in own:
                new[kinds[number]] = taken = min(left, wanted[number])
                wanted[number] -= taken
                left -= taken
        if pool.is_even and len(mine) > 1:
            _split(mine, kept, new)
        else:
            _keep(mine, kept, kinds)
            _add(mine, new)
        every += mine
    return every


def _list_cards(model: PlacementModel, decision: Decision) -> list[list[FleetGpu]]:
    """List of each group the GPUs to be used, on as few nodes as possible."""
    if (nodes := decision.nodes) is not None:
        return [
            [
                card
                for name, own in groupby(group.members, lambda card: card.node)
                for card in islice(own, nodes[s, name])
            ]
            for s, group in enumerate(model.groups)
        ]
    wanted = Counter[int]()
    for (s, _), v in (pair for y in model.y for pair in y.items()):
        wanted[s] += decision.values[v]
    whole = (group for s, group in enumerate(model.groups) if wanted[s] == len(group.members))
    used = {card.node for group in whole for card in group.members}
    found: list[list[FleetGpu]] = []
    for s, group in enumerate(model.groups):
        size = Counter(card.node for card in group.members)
        order = sorted(
            group.members, key=lambda c: (c.node not in used, -size[c.node], c.node, c.index)
        )
        found.append(order[: wanted[s]])
        used |= {card.node for card in found[-1]}
    return found


def _keep(contents: Sequence[_Filling], left: dict[Kind, int], kinds: Sequence[Kind]) -> None:
    """Have instances go on where they are: first where nothing else changes."""
    for each in contents:
        for number, most in each.option.keeps:
            if taken := min(most, left.get(kind := kinds[number], 0)):
                each.kept[kind] = taken
                left[kind] -= taken


def _queue_up(new: Mapping[Kind, int]) -> dict[tuple[str, str], list[Kind]]:
    """Return new kinds by GPU type and profile, the first in order at the end."""
    queues: dict[tuple[str, str], list[Kind]] = {}
    for kind in sorted(new, key=lambda kind: kind.order, reverse=True):
        queues.setdefault((kind.gpu, kind.profile), []).extend([kind] * new[kind])
    return queues


def _add(contents: Sequence[_Filling], new: Mapping[Kind, int]) -> None:
    """Put new work where an instance is already, then where there is room."""
    queues = _queue_up(new)
    for is_there in (True, False):
        for each in contents:
            held = Counter(kind.profile for kind in (each.kept + each.new).elements())
            for profile, most in each.option.there if is_there else each.option.counts:
                queue = queues.get((each.card.gpu.key, profile), [])
                while queue and held[profile] < most:
                    each.new[queue.pop()] += 1
                    held[profile] += 1


def _split(contents: Sequence[_Filling], kept: Mapping[Kind, int], new: Mapping[Kind, int]) -> None:
    """Share instances out among GPUs that are to be cut alike.

    Every sum that the program bounds by its number of GPUs (of a service, of a profile, of a kind
    kept) is shared out as evenly as whole numbers can be: each GPU gets its share rounded down or
    up. That this is always possible is the integer decomposition of transport polytopes (Baum and
    Trotter 1978), so that one GPU after the other can be cut off.
    """
    named = (("kept", kept), ("new", new))
    left = {(what, kind): n for what, part in named for kind, n in part.items() if n}
    if not any(n % len(contents) for n in left.values()):
        for each in contents:
            each.kept.update({k: n // len(contents) for k, n in kept.items() if n})
            each.new.update({k: n // len(contents) for k, n in new.items() if n})
        return
    for number, each in enumerate(contents):
        program, share = Program(), len(contents) - number
        sums: defaultdict[tuple[str, object], dict[int, int]] = defaultdict(dict)
        variables = {item: program.variable(n) for item, n in left.items()}
        for (what, kind), v in variables.items():
            names = ("service", kind.work.service), ("profile", kind.profile)
            for name in ((what, kind), *names, ("kind", kind)):
                sums[name][v] = left[what, kind]
        for terms in sums.values():
            low, rest = divmod(sum(terms.values()), share)
            program.between(dict.fromkeys(terms, 1), low, low + bool(rest))
        values = program.maximise({}, Limits()).values
        if values is None:
            raise AssertionError("a transport polytope has no whole point")
        for (what, kind), v in variables.items():
            if n := values[v]:
                (each.kept if what == "kept" else each.new)[kind] += n
                left[what, kind] -= n


# --- one GPU --------------------------------------------------------------------------------------


def _fill(filling: _Filling, fixed: tuple[Instance, ...]) -> FleetGpu:
    """Return a GPU with what it is to hold; what is `fixed` may be another's and stays."""
    card, option = filling.card, filling.option
    if not filling.new and option.stays:
        return replace(card, instances=tuple(_at_work(each) for each in card.instances))
    if option.as_cut:
        return _relabel(filling)
    is_same = card.mode is option.mode and not is_as_cut(card)
    own = [each for each in card.instances if each.is_managed and is_same]
    if option.mode is Mode.MIG:
        return _cut(filling, own, fixed)
    kept, _ = _pick(card, own, filling.kept)
    works = [*filling.new.elements()]
    instances = [*card.foreign, *kept]
    if fixed and not kept:  # a whole GPU that may be another's: what works there changes alone
        instances += [_given(each, kind) for each, kind in zip(fixed, works, strict=True)]
    else:
        instances += [Instance(kind.profile, work=kind.work) for kind in works]
    return card.with_instances(instances, option.mode)


def _pick(
    card: FleetGpu, own: Iterable[Instance], counts: Mapping[Kind, int]
) -> tuple[list[Instance], list[Instance]]:
    """Return the first instances of some kinds, a number of each, and the rest."""
    left, found, rest = dict(counts), list[Instance](), list[Instance]()
    for each in own:
        kind = kind_of(card, each)
        if kind is not None and left.get(kind):
            left[kind] -= 1
            found.append(_at_work(each))
        else:
            rest.append(each)
    return found, rest


def _cut(filling: _Filling, own: list[Instance], fixed: tuple[Instance, ...]) -> FleetGpu:
    card, queues = filling.card, _queue_up(filling.new)
    pinned = tuple(map(place_of, card.foreign))
    wanted = Counter(kind.profile for kind in filling.new.elements())
    counts = wanted + Counter(kind.profile for kind in filling.kept.elements())
    at = {place_of(each): each for each in own}
    kept: list[Instance] = []
    stay = (*pinned, *map(place_of, fixed))
    for layout in layouts_around(card.gpu, stay, tuple(sorted(counts))):
        kept, _ = _pick(card, [at[p] for p in layout if p in at], filling.kept)
        open_ = Counter(p.profile for p in layout)
        open_.subtract(profile for profile, _ in pinned)
        if len(kept) == filling.kept.total() and all(open_[p] >= n for p, n in counts.items()):
            break
    going_on = set(map(place_of, kept))
    cut = [each for each in fixed if place_of(each) not in going_on]
    used = []  # what may not be cut anew is used first
    for each in sorted(cut, key=lambda each: not each.is_whole):
        if wanted[each.profile]:
            wanted[each.profile] -= 1
            used.append(place_of(each))
    held = (*pinned, *map(place_of, (*kept, *cut)))
    there = tuple(place for place, each in at.items() if place not in held and each.is_whole)
    idle = tuple(place for place in there if at[place].work is None)
    places, left = starts_beside(card.gpu, tuple(sorted((+wanted).items())), held, there, idle)
    new = []
    for profile, start in (*used, *places):
        kind, before = queues[card.gpu.key, profile].pop(), at.get((profile, start))
        is_there = before is not None and before.is_whole
        new.append(_given(before if is_there else None, kind, start))
    rest = [at[place] for place in left]
    rest += [_idle(each) for each in cut if place_of(each) not in used]
    return card.with_instances((*card.foreign, *kept, *new, *rest), Mode.MIG)


def _relabel(filling: _Filling) -> FleetGpu:
    """Change the work of instances whose starts are not known; what has no work then idles."""
    card, queues = filling.card, _queue_up(filling.new)
    own = (each for each in card.instances if each.is_managed)
    kept, rest = _pick(card, own, filling.kept)
    done = []
    for each in sorted(rest, key=lambda each: each.work is not None):
        queue = queues.get((card.gpu.key, each.profile), []) if each.is_whole else []
        done.append(_given(each, queue.pop()) if queue else _idle(each))
    return replace(card, instances=(*card.foreign, *kept, *done))


def _given(before: Instance | None, kind: Kind, start: int | None = None) -> Instance:
    """Return an instance with the work of a kind: one that is there, or a new one."""
    if before is None:
        return Instance(kind.profile, start, kind.work)
    return replace(before, work=kind.work, state=State.RUNNING)


def _at_work(instance: Instance) -> Instance:
    """What is starting now is to run."""
    starts = instance.is_managed and instance.work is not None
    return replace(instance, state=State.RUNNING) if starts else instance


def _idle(instance: Instance) -> Instance:
    if instance.work is None:
        return instance
    return replace(instance, work=None, state=State.RUNNING)


def _emptied(card: FleetGpu, fixed: tuple[Instance, ...]) -> FleetGpu:
    """Take work off a GPU; what idled stays, what may be another's, or all without starts."""
    if is_as_cut(card):
        done = (_idle(each) if each.is_managed else each for each in card.instances)
        return replace(card, instances=tuple(done))
    stay = [each for each in card.instances if not each.is_managed or each.work is None]
    stay += [_idle(each) for each in fixed if each.work is not None]
    return card.with_instances(stay)


@lru_cache(65536)
def starts_beside(
    gpu: Gpu, counts: tuple[tuple[str, int], ...], around: Places, there: Places, idle: Places
) -> tuple[Places, Places]:
    """Choose the starts of new instances on a GPU in use, and say which idle instances stay.

    Most of them where an instance is, then most idle ones left, then the longest run of free
    slices, then the first in order. `around` must stay, what is `there` may be used again or go,
    and of that `idle` may stay as well.
    """
    best: tuple[tuple[int, int, int], Places, Places] | None = None
    for layout in gpu.layouts_of(dict(counts), around=around):
        reused = sum(place in there for place in layout)
        held = [*around, *layout]
        stay = []
        for place in idle:
            if place not in layout and gpu.is_layout([*held, place]):
                held.append(place)
                stay.append(place)
        score = reused, len(stay), _free_run(gpu, held)
        if best is None or score > best[0]:
            best = score, tuple((p.profile, p.start) for p in layout), tuple(stay)
    if best is None:
        raise AssertionError(f"no starts for {dict(counts)} beside {around} on {gpu.key}")
    return best[1], best[2]


def _free_run(gpu: Gpu, held: Iterable[tuple[str, int]]) -> int:
    """Return the length of the longest run of free slices."""
    free = bytearray(b"." * gpu.memory_slices)
    for profile, start in held:
        n = gpu.profile(profile).memory
        free[start : start + n] = b"#" * n
    return max(map(len, free.split(b"#")))
