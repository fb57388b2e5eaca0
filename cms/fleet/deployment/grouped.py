"""GPUs with the contents that a plan's groups have, matched to a fleet by what they keep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...errors import AlgorithmError
from ..serving.plan import Plan
from .filling import Filling
from .instance import Kind, Work
from .programs import best_transport
from .spots import Column, Spot

__all__ = ["Content", "Lacking", "Match", "contents_of", "match_contents"]


class Content(NamedTuple):
    """What GPUs of a group hold: kinds by their numbers, and profiles."""

    gpu: str
    kinds: Counter[int]
    counts: Counter[str]
    number: int  # of such GPUs


class Lacking(NamedTuple):
    """Contents that need more GPUs than have room for any of them (Hall's condition)."""

    contents: list[Content]
    needed: int
    there: int  # with room for one of them at least


class Match(NamedTuple):
    """Which GPUs get which contents."""

    fillings: list[Filling]
    kept: int
    is_best: bool  # no matching of the same contents keeps more; found by looking for one
    lacking: Lacking | None = None  # then the rest is empty


class _Fit(NamedTuple):
    """How a content lies on a GPU: what that keeps, reuses and leaves as it is."""

    kept: int
    reused: int
    stays: int
    column: Column


def contents_of(plan: Plan, numbers: Mapping[Kind, int]) -> list[Content]:
    """Return the contents of a plan's groups, idle instances left out and equal ones together."""
    found: dict[tuple[object, ...], Content] = {}
    for group in plan.groups:
        kinds: Counter[int] = Counter()
        counts: Counter[str] = Counter()
        for each in group.instances:
            for served in each.serves:
                work = Work(served.service, served.point, served.rate_rps)
                kinds[numbers[Kind(group.gpu, each.profile, work)]] += each.count
                counts[each.profile] += each.count
        if kinds:
            key = group.gpu, tuple(sorted(kinds.items()))
            before = found[key].number if key in found else 0
            found[key] = Content(group.gpu, kinds, counts, before + group.count)
    return list(found.values())


def match_contents(spots: Sequence[Spot], contents: Sequence[Content]) -> Match:
    """Match contents to GPUs so that most is kept, then most reused, then most left as it is."""
    fits: dict[tuple[int, int], _Fit] = {}
    for s, spot in enumerate(spots):
        for c, content in enumerate(contents):
            if content.gpu == spot.gpu.key and (fit := _best_fit(spot, content)) is not None:
                fits[s, c] = fit
    flow = best_transport(
        [len(spot.cards) for spot in spots],
        [content.number for content in contents],
        # sums over fewer than 2^18 GPUs of a lower aim never outweigh one of a higher
        {at: (fit.kept << 40) + (fit.reused << 18) + fit.stays for at, fit in fits.items()},
    )
    if (lacking := _lacking(spots, contents, fits, flow)) is not None:
        return Match([], 0, False, lacking)
    taken: list[list[tuple[int, int]]] = [[] for _ in spots]
    for (s, c), number in sorted(flow.items()):
        taken[s].append((c, number))
    used: set[str] = set()
    fillings: list[Filling] = []
    for s, spot in enumerate(spots):
        size = Counter(card.node for card in spot.cards)
        cards = sorted(
            spot.cards, key=lambda card: (card.node not in used, -size[card.node], card.node)
        )
        for c, number in taken[s]:
            for _ in range(number):
                filling = Filling(cards.pop(0), fits[s, c].column)
                used.add(filling.card.node)
                for kind, n in filling.column.keeps:
                    if taken_over := min(n, contents[c].kinds[kind]):
                        filling.kept[kind] = taken_over
                filling.new = contents[c].kinds - filling.kept
                fillings.append(filling)
    kept = sum(n * fits[pair].kept for pair, n in flow.items())
    return Match(fillings, kept, _is_best(spots, contents, fits, flow))


def _best_fit(spot: Spot, content: Content) -> _Fit | None:
    found: _Fit | None = None
    for column in spot.columns:
        counts = dict(column.counts)
        if column.stays and dict(column.keeps) != dict(content.kinds):
            continue
        if any(counts.get(name, 0) < n for name, n in content.counts.items()):
            continue
        kept = sum(min(n, content.kinds[kind]) for kind, n in column.keeps)
        reused = sum(min(n, content.counts[name]) for name, n in column.there)
        fit = _Fit(kept, reused, int(column.stays), column)
        if found is None or fit[:3] > found[:3]:
            found = fit
    return found


def _lacking(
    spots: Sequence[Spot],
    contents: Sequence[Content],
    fits: Mapping[tuple[int, int], _Fit],
    flow: Mapping[tuple[int, int], int],
) -> Lacking | None:
    """Find contents for which there are too few GPUs: all that could give way to one left over."""
    placed: Counter[int] = Counter()
    for (_, c), number in flow.items():
        placed[c] += number
    left = [c for c, content in enumerate(contents) if placed[c] < content.number]
    if not left:
        return None
    found, near = {left[0]}, set[int]()
    queue = [left[0]]
    while queue:
        c = queue.pop()
        for s in range(len(spots)):
            if (s, c) in fits and s not in near:
                near.add(s)
                more = {other for (at, other), n in flow.items() if at == s and n} - found
                found |= more
                queue += more
    there = sum(len(spots[s].cards) for s in near)
    needed = sum(contents[c].number for c in found)
    if needed <= there:
        raise AlgorithmError("place", f"{needed} contents were not matched to {there} GPUs")
    return Lacking([contents[c] for c in (left[0], *sorted(found - {left[0]}))], needed, there)


def _is_best(
    spots: Sequence[Spot],
    contents: Sequence[Content],
    fits: Mapping[tuple[int, int], _Fit],
    flow: Mapping[tuple[int, int], int],
) -> bool:
    """Whether no cycle of changes keeps more (Bellman and Ford, on what is kept alone).

    A GPU that is not used is one more content, which keeps nothing.
    """
    idle = len(contents)
    ways = {pair: fit.kept for pair, fit in fits.items()} | {
        (s, idle): 0 for s in range(len(spots))
    }
    used = dict(flow)
    for s, spot in enumerate(spots):
        rest = len(spot.cards) - sum(n for (at, _), n in flow.items() if at == s)
        if rest:
            used[s, idle] = rest
    rank = [0] * (len(spots) + idle + 1)
    for _ in range(len(rank) + 1):
        changed = False
        for (s, c), kept in ways.items():
            at = len(spots) + c
            if rank[s] + kept > rank[at]:  # one GPU of the spot could get this content
                rank[at], changed = rank[s] + kept, True
            if used.get((s, c)) and rank[at] - kept > rank[s]:  # and give this one away
                rank[s], changed = rank[at] - kept, True
        if not changed:
            return True
    return False
