"""GPUs with the contents that a plan's groups have, matched to a fleet so that most is kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from ...errors import AlgorithmError
from ...solving.solution import Proof
from ...values.numbers import common_step
from ..deployment.instance import Kind, Work
from ..serving.plan import Plan
from .gpu_group import GpuGroup, LayoutOption
from .placement_model import Demand
from .program import Limits, Program
from .realisation import Filling

__all__ = ["GroupContent", "Match", "Shortage", "list_contents", "match_contents"]


class GroupContent(NamedTuple):
    """What GPUs of a plan's group hold: kinds by their numbers, and profiles."""

    gpu: str
    machine: str
    kinds: Counter[int]
    counts: Counter[str]
    number: int  # of such GPUs


class Shortage(NamedTuple):
    """Contents that need more GPUs than have room for any of them (Hall's condition)."""

    contents: list[GroupContent]
    needed: int
    there: int  # with room for at least one of them


class Match(NamedTuple):
    """Which GPUs get which contents."""

    fillings: list[Filling]
    kept: int
    proof: Proof  # that no matching of the same contents keeps more


class _Fit(NamedTuple):
    """How a content lies on a GPU: what that keeps, reuses and leaves as it is."""

    kept: int
    reused: int
    stays: int
    option: LayoutOption


def list_contents(plan: Plan, numbers: Mapping[Kind, int]) -> list[GroupContent]:
    """Return the contents of a plan's groups, idle instances left out and equal ones together."""
    found: dict[tuple[object, ...], GroupContent] = {}
    for group in plan.groups:
        kinds: Counter[int] = Counter()
        counts: Counter[str] = Counter()
        for each in group.instances:
            for served in each.serves:
                work = Work(served.service, served.point, served.rate_rps)
                kinds[numbers[Kind(group.gpu, each.profile, work)]] += each.count
                counts[each.profile] += each.count
        if kinds:
            machine = group.machine or group.gpu
            key = machine, tuple(sorted(kinds.items()))
            before = found[key].number if key in found else 0
            found[key] = GroupContent(group.gpu, machine, kinds, counts, before + group.count)
    return list(found.values())


def match_contents(
    groups: Sequence[GpuGroup],
    contents: Sequence[GroupContent],
    demand: Demand,
    limits: Limits,
    *,
    by_machine: bool,
) -> Match | Shortage | None:
    """Match contents to GPUs: at the least cost, then most kept, reused, and as it is.

    `by_machine`: Whether only to GPUs of their own machine types. None if time is up. The program
    is a transport, whose relaxation has whole solutions.
    """
    fits: dict[tuple[int, int], _Fit] = {}
    program = Program()
    flow: dict[tuple[int, int], int] = {}
    for s, group in enumerate(groups):
        for c, content in enumerate(contents):
            own = group.available.name if by_machine else group.gpu.key
            if own != (content.machine if by_machine else content.gpu):
                continue
            if (fit := _best_fit(group, content)) is not None:
                fits[s, c] = fit
                flow[s, c] = program.variable(len(group.members))
        if mine := [v for (at, _), v in flow.items() if at == s]:
            program.choose(mine, len(group.members))
    for c, content in enumerate(contents):
        mine = [v for (_, at), v in flow.items() if at == c]
        program.equal(dict.fromkeys(mine, 1), content.number)
    prices = [demand.price_of(group) for group in groups]
    step = common_step(prices) if any(prices) else 1
    saved = [int((max(prices, default=Fraction(0)) - price) / step) for price in prices]
    worth = {v: (saved[s], *fits[s, c][:3]) for (s, c), v in flow.items()}
    best: list[int] | None = None
    kept: tuple[int, Proof] = 0, Proof.CHECKED
    for aim in range(4):  # cost, kept, reused, stays
        terms = {v: n for v, values in worth.items() if (n := values[aim])}
        if best is not None and not terms:
            continue
        found = program.maximise(terms, limits, best)
        if found.values is None:
            return _find_shortage(groups, contents, fits, program, limits)
        best = found.values
        value = sum(n * best[v] for v, n in terms.items())
        if aim == 1 and program.prove(terms, limits, value) != value:
            kept = value, Proof.SOLVER if found.ended else Proof.NONE
        elif aim == 1:
            kept = value, Proof.CHECKED
        program.at_least(terms, value)
    used: set[str] = set()
    fillings: list[Filling] = []
    for s, group in enumerate(groups):
        size = Counter(card.node for card in group.members)
        cards = sorted(
            group.members, key=lambda card: (card.node not in used, -size[card.node], card.node)
        )
        for c, content in enumerate(contents):
            for _ in range((best or [])[flow[s, c]] if (s, c) in flow else 0):
                filling = Filling(cards.pop(0), fits[s, c].option)
                used.add(filling.card.node)
                keeps = {kind: min(n, content.kinds[kind]) for kind, n in filling.option.keeps}
                filling.kept = +Counter(keeps)
                filling.new = content.kinds - filling.kept
                fillings.append(filling)
    return Match(fillings, *kept)


def _best_fit(group: GpuGroup, content: GroupContent) -> _Fit | None:
    found: _Fit | None = None
    for option in group.options:
        counts = dict(option.counts)
        if option.stays and dict(option.keeps) != dict(content.kinds):
            continue
        if any(counts.get(name, 0) < n for name, n in content.counts.items()):
            continue
        kept = sum(min(n, content.kinds[kind]) for kind, n in option.keeps)
        reused = sum(min(n, content.counts[name]) for name, n in option.there)
        fit = _Fit(kept, reused, int(option.stays), option)
        if found is None or fit[:3] > found[:3]:
            found = fit
    return found


def _find_shortage(
    groups: Sequence[GpuGroup],
    contents: Sequence[GroupContent],
    fits: Mapping[tuple[int, int], _Fit],
    program: Program,
    limits: Limits,
) -> Shortage | None:
    """Find contents for which there are too few GPUs: those whose rows have prices in the proof."""
    prices = program.refute(limits)
    if prices is None:
        return None
    short = [c for c in range(len(contents)) if prices[len(program.choices) + c]]
    near = {s for s, c in fits if c in short}
    needed = sum(contents[c].number for c in short)
    there = sum(len(groups[s].members) for s in near)
    if needed <= there:
        raise AlgorithmError("place", f"{needed} contents were not matched to {there} GPUs")
    return Shortage([contents[c] for c in short], needed, there)
