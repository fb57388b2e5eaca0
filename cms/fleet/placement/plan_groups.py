"""The placement model of a plan's groups: a GPU holds together what the plan has on one GPU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ..deployment.instance import Kind, Work
from ..serving.plan import Plan
from .gpu_group import GpuGroup, LayoutOption
from .placement_model import Demand, KindGroup, OptionGroup, PlacementModel

__all__ = ["build_group_model"]


class _Content(NamedTuple):
    """What a GPU of a plan holds: kinds by their numbers, and profiles."""

    kinds: Counter[int]
    counts: Counter[str]


def build_group_model(
    plan: Plan, groups: Sequence[GpuGroup], demand: Demand, *, by_machine: bool
) -> tuple[PlacementModel, tuple[str, ...]]:
    """Build the model, and say which contents have too few GPUs.

    Each way in which a content lies on equivalent GPUs is a pool, whose GPUs hold the same.
    `by_machine`: Whether contents may only lie on GPUs of their own machine types.
    """
    wanted = _count_contents(plan, demand.numbers, by_machine=by_machine)
    options: list[list[LayoutOption]] = [[] for _ in groups]
    pools: list[OptionGroup] = []
    content_of: list[int] = []
    every = frozenset(range(len(demand.kinds)))
    for s, group in enumerate(groups):
        name = group.available.name if by_machine else group.gpu.key
        for c, (machine, content, _) in enumerate(wanted):
            if machine == name and (fit := _best_fit(group, content)) is not None:
                at = s, len(options[s])
                pools.append(OptionGroup(group.domain, (at,), every - {*content.kinds}, True))
                options[s].append(fit)
                content_of.append(c)
    alone = (KindGroup(k.gpu, k.profile, (number,)) for number, k in enumerate(demand.kinds))
    own = [replace(group, options=tuple(fit)) for group, fit in zip(groups, options, strict=True)]
    model = PlacementModel(own, replace(demand, groups=tuple(alone)), pools)
    used: list[dict[int, int]] = [{} for _ in wanted]
    for c, x, y in zip(content_of, model.x, model.y, strict=True):
        (number,) = y.values()
        used[c][number] = 1
        for kind, n in wanted[c][1].kinds.items():
            model.program.equal({x[kind]: 1, number: -n}, 0)
    short = []
    for (machine, content, number), terms in zip(wanted, used, strict=True):
        model.program.equal(terms, number)
        if (there := sum(model.program.highs[v] for v in terms)) < number:
            held = " + ".join(f"{n} x {name}" for name, n in sorted(content.counts.items()))
            need = f"{number} x {machine} are needed to hold {held}"
            short.append(f"{need}, and {there} have room for it")
    return model, tuple(short)


def _count_contents(
    plan: Plan, numbers: Mapping[Kind, int], *, by_machine: bool
) -> list[tuple[str, _Content, int]]:
    """Count GPUs of each type and content, idle instances left out and equal contents together."""
    found: dict[tuple[str, frozenset[tuple[int, int]]], tuple[str, _Content, int]] = {}
    for group in plan.groups:
        kinds: Counter[int] = Counter()
        counts: Counter[str] = Counter()
        for each in group.instances:
            for served in each.serves:
                work = Work(served.service, served.point, served.rate_rps)
                kinds[numbers[Kind(group.gpu, each.profile, work)]] += each.count
                counts[each.profile] += each.count
        if kinds:
            machine = (by_machine and group.machine) or group.gpu
            key = machine, frozenset(kinds.items())
            before = found[key][2] if key in found else 0
            found[key] = machine, _Content(kinds, counts), before + group.count
    return list(found.values())


def _best_fit(group: GpuGroup, content: _Content) -> LayoutOption | None:
    """Return the way in which a content lies on a GPU: what keeps most, then reuses most."""
    return max(_list_fits(group, content), key=_rank, default=None)


def _rank(option: LayoutOption) -> tuple[int, int, bool]:
    return sum(n for _, n in option.keeps), sum(n for _, n in option.there), option.stays


def _list_fits(group: GpuGroup, content: _Content) -> Iterator[LayoutOption]:
    for option in group.options:
        counts = dict(option.counts)
        if option.stays and dict(option.keeps) != dict(content.kinds):
            continue
        if all(counts.get(name, 0) >= n for name, n in content.counts.items()):
            keeps = ((kind, min(n, content.kinds[kind])) for kind, n in option.keeps)
            there = ((name, min(n, content.counts[name])) for name, n in option.there)
            yield option._replace(
                counts=tuple(sorted(content.counts.items())),
                keeps=tuple(pair for pair in keeps if pair[1]),
                there=tuple(pair for pair in there if pair[1]),
            )
