"""GPUs with the contents that a plan's groups have, matched to a fleet so that most is kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from ...solving.solution import Proof
from ...values.numbers import common_step
from ..deployment.instance import Kind, Work
from ..serving.plan import Plan
from .gpu_group import GpuGroup, LayoutOption
from .infeasibility import PlacementInfeasible
from .placement_model import Demand
from .program import Limits, Program
from .realisation import Filling

__all__ = ["GroupContent", "Match", "list_contents", "match_contents"]


class GroupContent(NamedTuple):
    """What GPUs of a plan's group hold: kinds by their numbers, and profiles."""

    gpu: str
    machine: str
    kinds: Counter[int]
    counts: Counter[str]
    number: int  # of such GPUs


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
) -> Match | PlacementInfeasible | None:
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
            return _explain(groups, contents, fits, program, limits)
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


def _explain(
    groups: Sequence[GpuGroup],
    contents: Sequence[GroupContent],
    fits: Mapping[tuple[int, int], _Fit],
    program: Program,
    limits: Limits,
) -> PlacementInfeasible | None:
    """Say which contents need more GPUs than have room for any (Hall); None if time was up."""
    if limits.over:
        return None
    prices = program.refute(limits)
    every = [*enumerate(contents, len(program.choices))]
    short = [each for at, each in every if prices is None or prices[at]]
    needed = sum(each.number for each in short)
    there = sum(len(groups[s].members) for s in {s for s, c in fits if contents[c] in short})
    held = [
        " + ".join(f"{n} x {name}" for name, n in sorted(each.counts.items())) for each in short
    ]
    some = f"{held[0]} or {len(held) - 1} other contents" if len(held) > 1 else held[0]
    reason = f"{needed} GPUs are needed to hold {some}, and {there} have room for one of these"
    return PlacementInfeasible((reason,), Proof.SOLVER if prices is None else Proof.CHECKED)
