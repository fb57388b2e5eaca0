"""The placement model: which GPUs take which layouts, so that most of what runs is kept.

Equivalent GPUs are one integer variable for each layout that they can take. Instances of one kind
are counted, not named, so that every solution is a deployment: kept instances stay where they are,
all others go anywhere. Counts of instances are given, or variables too.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

from ...problem.parts import GroupLimit
from ...solving.solution import Proof
from ...values.numbers import common_step
from ..deployment.instance import Kind
from ..deployment.wanted import DesiredState
from .gpu_group import GpuCost, GpuGroup, LayoutOption
from .program import Limits, Program

#: Most pairs of groups of GPUs and nodes for which the fewest nodes are searched for; beyond, nodes
#: are filled one by one.
_MOST_PAIRS = 1500
#: How often as long as to stop an instance it takes to start one, and the maximum number of nodes
#: of the search that spreads these over GPUs.
_START, _SPREAD_NODES = 2, 100
#: The weakest first.
_PROOFS = Proof.NONE, Proof.SOLVER, Proof.CHECKED


class KindGroup(NamedTuple):
    """Kinds on one profile that no constraint tells apart."""

    kinds: tuple[int, ...]
    can_grow: bool = False  # more of them than the counts may be placed


@dataclass(frozen=True)
class Demand:
    """What a desired state asks of kinds, which go by their numbers.

    `counts`: Of each kind; of kinds that can grow at least so many. `groups`: Every kind is in one.
    `rates`: What the instances of a service have to supply, in items per second, where counts do
    not say it.
    """

    wanted: DesiredState
    kinds: Sequence[Kind]
    counts: Sequence[int]
    groups: Sequence[KindGroup] = ()
    rates: Mapping[str, Fraction] = field(default_factory=dict)

    @property
    def numbers(self) -> dict[Kind, int]:
        """The number of each kind."""
        return {kind: number for number, kind in enumerate(self.kinds)}

    @cached_property
    def of_service(self) -> dict[str, list[int]]:
        """The kinds of each service that has a rate, by number."""
        own = [kind.work.service for kind in self.kinds]
        return {name: [n for n, one in enumerate(own) if one == name] for name in self.rates}

    def on(self, gpu: str, profile: str) -> int:
        """How many instances of a profile are wanted."""
        pairs = zip(self.kinds, self.counts, strict=True)
        return sum(n for kind, n in pairs if (kind.gpu, kind.profile) == (gpu, profile))

    def price_of(self, group: GpuGroup) -> Fraction:
        """What using a GPU costs: nothing where something stays that is foreign, or may be."""
        if group.is_held:
            return Fraction(0)
        own, prices = group.available, self.wanted.prices
        return prices[own.name] if own.name in prices else own.cost(prices)

    def weight_in(self, limit: GroupLimit, group: GpuGroup) -> Fraction:
        """What using a GPU counts in a limit, which names machine types of the plan."""
        own = group.available.name
        return limit.weights.get(own if own in self.wanted.prices else group.gpu.key, Fraction(0))


class OptionGroup(NamedTuple):
    """Layout options whose instances are as good as each other's."""

    domain: str  # a node, a zone, or empty where that does not matter
    options: tuple[tuple[int, int], ...]  # each by its group and its place there
    excluded: frozenset[int] = frozenset()  # kinds that may not be here
    is_even: bool = False  # its GPUs share instances out evenly: then it has a single option


class Decision(NamedTuple):
    """What was decided: the value of each variable."""

    values: list[int]
    nodes: dict[tuple[int, str], int] | None  # GPUs of a group that are used on a node


class Aim(NamedTuple):
    """An objective that was pursued, and how far."""

    terms: Mapping[int, int]
    value: int
    has_ended: bool  # the solver says that no more is possible
    rows: int  # of the program when it was pursued


class PlacementModel:
    """The integer program: its variables by what they mean."""

    def __init__(
        self, groups: Sequence[GpuGroup], demand: Demand, pools: Sequence[OptionGroup]
    ) -> None:
        self.groups, self.demand, self.pools = groups, demand, pools
        self.program = Program()
        self.aims: dict[str, Aim] = {}
        self.is_exact = True  # no rate was rounded in a row: bounds are those of what is asked
        self.certified = Fraction(0)  # what a certificate says that GPUs cost at least
        # of each pool: GPUs by option, instances by kind group, kept ones by kind
        self.y: list[dict[tuple[int, int], int]] = []
        self.x: list[dict[int, int]] = []
        self.k: list[dict[int, int]] = []
        self.r: list[int] = []  # instances that are there and get work, kept or not
        for pool in self.pools:
            self._add_pool(pool)
        self._add_demand()
        self._add_gpus()
        self.kept = {v: 1 for k in self.k for v in k.values()}
        used = {v: groups[s] for y in self.y for (s, _), v in y.items() if not groups[s].is_held}
        self.used = dict.fromkeys(used, 1)  # GPUs on which nothing stays that is foreign
        here = (each.kind for group in groups for each in group.instances for _ in group.members)
        self.running = Counter(kind for kind in here if kind >= 0)  # instances that can be kept
        #: What GPUs cost, in whole steps of `cost_step`.
        prices = {v: price for v, group in used.items() if (price := demand.price_of(group))}
        self.cost_step = common_step(prices.values()) or Fraction(1)
        self.cost = {v: int(price / self.cost_step) for v, price in prices.items()}

    def branch(self) -> PlacementModel:
        """Return the same model, to which rows can be added."""
        other = copy(self)
        other.program, other.aims = self.program.copy(), {}
        return other

    def option(self, at: tuple[int, int]) -> LayoutOption:
        """Return an option."""
        return self.groups[at[0]].options[at[1]]

    def _add_pool(self, pool: OptionGroup) -> None:
        program, demand = self.program, self.demand
        y = {at: program.variable(len(self.groups[at[0]].members)) for at in pool.options}
        # by profile of a GPU, or by kind: how many each option has
        room, there, keeps, stays = (defaultdict[Any, dict[int, int]](dict) for _ in range(4))
        for at, v in y.items():
            key, option = self.groups[at[0]].gpu.key, self.option(at)
            for profile, n in option.counts:
                room[key, profile][v] = n
            for profile, n in option.there:
                there[key, profile][v] = n
            for kind, n in option.keeps:
                if kind not in pool.excluded:
                    keeps[kind][v] = n
                if option.stays:
                    stays[kind][v] = n
        x: dict[int, int] = {}
        on: defaultdict[tuple[str, str], dict[int, int]] = defaultdict(dict)
        for i, group in enumerate(demand.groups):
            first = demand.kinds[group.kinds[0]]
            block = first.gpu, first.profile
            if block in room and not pool.excluded.issuperset(group.kinds):
                most = self._reach(room[block])
                x[i] = program.variable(most if group.can_grow else min(self._wanted(group), most))
                on[block][x[i]] = 1
        group_of = {kind: demand.groups[i] for i in x for kind in demand.groups[i].kinds}
        k: dict[int, int] = {}
        for kind, terms in keeps.items():
            if kind in group_of:
                most = self._reach(terms)
                grows = group_of[kind].can_grow
                k[kind] = program.variable(most if grows else min(most, demand.counts[kind]))
                program.at_most({k[kind]: 1} | _negative(terms), 0)
        for kind, terms in stays.items():  # what stays as it is keeps all it has
            program.at_most(terms | ({k[kind]: -1} if kind in k else {}), 0)
        for i, v in x.items():
            if own := {k[kind]: 1 for kind in demand.groups[i].kinds if kind in k}:
                program.at_most(own | {v: -1}, 0)
        for block, terms in on.items():
            program.at_most(terms | _negative(room[block]), 0)
            if block in there:  # what is there and is used for something, kept or not
                r = program.variable(self._reach(there[block]))
                program.at_most({r: 1} | _negative(terms), 0)
                program.at_most({r: 1} | _negative(there[block]), 0)
                self.r.append(r)
        self.y.append(y)
        self.x.append(x)
        self.k.append(k)

    def _wanted(self, group: KindGroup) -> int:
        return sum(self.demand.counts[kind] for kind in group.kinds)

    def _add_demand(self) -> None:
        first = len(self.program.rows)
        for i, group in enumerate(self.demand.groups):
            terms = {x[i]: 1 for x in self.x if i in x}
            if group.can_grow:
                self.program.at_least(terms, self._wanted(group))
                continue
            self.program.equal(terms, self._wanted(group))
            for kind in group.kinds:
                kept = {k[kind]: 1 for k in self.k if kind in k}
                if len(kept) > 1:
                    self.program.at_most(kept, self.demand.counts[kind])
        self._asked = range(first, len(self.program.rows))

    def _add_gpus(self) -> None:
        of: defaultdict[int, dict[int, int]] = defaultdict(dict)
        by_type: defaultdict[str, dict[int, int]] = defaultdict(dict)
        for y in self.y:
            for (s, _), v in y.items():
                of[s][v] = by_type[self.groups[s].gpu.key][v] = 1
        for s, variables in of.items():
            self.program.choose(variables, len(self.groups[s].members))
        for key, cap in self.demand.wanted.max_gpus.items():
            if key in by_type:
                self.program.at_most(by_type[key], cap)
        for limit in self.demand.wanted.group_limits:
            step = common_step(limit.weights.values())
            weights = {s: int(self.demand.weight_in(limit, self.groups[s]) / step) for s in of}
            counted = {v: weights[s] for s, own in of.items() for v in own if weights[s]}
            self.program.at_most(counted, int(limit.at_most // step))

    def bound_placed(self, limits: Limits) -> int | None:
        """Bound how many of the instances wanted have a place at once.

        None if time is up, and where rates were rounded in rows, which then ask for too much.
        """
        if not self.is_exact:
            return None
        some = self.program.copy()
        for at in self._asked:
            some.rows[at] = some.rows[at]._replace(low=0)
        return some.prove({v: 1 for x in self.x for v in x.values()}, limits, 0)

    # --- what a solution has ----------------------------------------------------------------------

    def kept_in(self, values: Sequence[int]) -> int:
        """Return how many instances a solution keeps."""
        return _sum(self.kept, values)

    def cost_of(self, values: Sequence[int]) -> GpuCost:
        """Return what the GPUs of a solution cost, and how many are used that are not held."""
        return GpuCost(_sum(self.cost, values) * self.cost_step, _sum(self.used, values))

    def count_kinds(
        self, parts: Sequence[Mapping[int, int]], values: Sequence[int]
    ) -> Counter[int]:
        """Return how many a solution has by the keys of some parts: `x`, or `k`."""
        return sum((Counter({key: values[v] for key, v in of.items()}) for of in parts), Counter())

    def counts_of(self, values: Sequence[int]) -> list[int]:
        """Return how many of each kind there are, with those that constraints have added."""
        counts, placed = [*self.demand.counts], self.count_kinds(self.x, values)
        for number, group in enumerate(self.demand.groups):
            if group.can_grow:
                counts[group.kinds[0]] = placed[number]
        return counts

    # --- one aim after the other ------------------------------------------------------------------

    def pursue(
        self,
        name: str,
        terms: Mapping[int, int],
        limits: Limits,
        best: list[int] | None,
        nodes: int | None = None,
    ) -> list[int] | None:
        """Make a sum as large as possible and hold it; returns None if nothing is found."""
        rows = len(self.program.rows)
        ended, found = True, best
        if best is None or self._reach(terms) > _sum(terms, best):
            found, ended = self.program.maximise(terms, limits, best, nodes)
        value = 0 if found is None else _sum(terms, found)
        self.aims[name] = Aim(terms, value, ended, rows)
        if found is not None:
            self.program.at_least(terms, value)
        return found

    def _reach(self, terms: Mapping[int, int]) -> int:
        return sum(n * self.program.highs[v] for v, n in terms.items() if n > 0)

    def find_least(
        self, limits: Limits, best: list[int] | None = None, nodes: int | None = None
    ) -> list[int] | None:
        """Find the least cost, and of that the fewest GPUs that are not held."""
        best = self.pursue("cost", _negative(self.cost), limits, best, nodes)
        if best is None or self.has_one_price:
            return best
        return self.pursue("gpus", _negative(self.used), limits, best, nodes)

    def solve(self, limits: Limits, budget: tuple[Fraction, int] | None = None) -> Decision | None:
        """Pursue all aims in their order; None if nothing is found.

        Least cost and fewest GPUs, or no more than a `budget` of both; fewest instances beyond the
        counts; most kept; then those of `finish`.
        """
        best = None
        if budget is not None:
            self.allow(budget)
        elif (best := self.find_least(limits)) is None:
            return None
        grown = {x[i]: -1 for x in self.x for i in x if self.demand.groups[i].can_grow}
        if grown or best is None:
            best = self.pursue("grown", grown, limits, best)
        if best is not None:
            best = self.pursue("kept", self.kept, limits, best)
        return None if best is None else self.finish(limits, best)

    @property
    def has_ended(self) -> bool:
        """Whether the solver says of each aim that no more is possible."""
        return all(aim.has_ended for aim in self.aims.values())

    @property
    def has_one_price(self) -> bool:
        """Whether the fewest GPUs cost least."""
        return len(self.cost) == len(self.used) and len({*self.cost.values()}) <= 1

    def allow(self, budget: tuple[Fraction, int]) -> None:
        """Add rows: what GPUs cost, and how many are used, at most."""
        self.program.at_most(self.cost, int(budget[0] // self.cost_step))
        self.program.at_most(self.used, budget[1])

    def finish(self, limits: Limits, best: list[int]) -> Decision:
        """Restart most of the rest in place, on fewest GPUs touched, then on fewest nodes.

        Then what starts and stops is spread over GPUs: on one it happens one by one. Where starts
        are not known, or whole GPUs are cut, it does not.
        """
        touched: dict[int, int] = {}
        crowded: dict[int, int] = {}
        for at, v in (pair for y in self.y for pair in y.items()):
            option, group = self.option(at), self.groups[at[0]]
            touched[v] = 1 if option.stays else -all(not each.works for each in group.instances)
            if not option.stays:
                there, kept = len(group.instances), sum(n for _, n in option.keeps)
                new = sum(n for _, n in option.counts) - kept
                crowded[v] = there**2 - (_START * new + there - kept) ** 2
        for name, terms in (("reused", dict.fromkeys(self.r, 1)), ("touched", touched)):
            best = self.pursue(name, terms, limits, best) or best
        found: list[int] | None = best
        has_nodes = "nodes" in vars(self)  # `best` knows them, and aims may have counted them
        taken = self.nodes[1] if has_nodes else {}
        pairs = {(s, card.node) for s, group in enumerate(self.groups) for card in group.members}
        if len(pairs) <= _MOST_PAIRS:
            used, taken = self.nodes
            start = len(used) * (len(used) + 1) // 2 + 1
            cost = {v: -(start + rank) for rank, v in enumerate(used.values())}
            found = self.pursue("nodes", cost, limits, best if has_nodes else None)
        if found is not None:
            if any(option.as_cut for group in self.groups for option in group.options):
                crowded = {}
            best = self.pursue("crowded", crowded, limits, found, _SPREAD_NODES) or found
        is_known = taken and found is not None
        return Decision(best, {pair: best[v] for pair, v in taken.items()} if is_known else None)

    @cached_property
    def nodes(self) -> tuple[dict[str, int], dict[tuple[int, str], int]]:
        """Variables: whether a node is used, by name, and GPUs of each group on each node."""
        program = self.program
        there = Counter(
            (s, card.node) for s, group in enumerate(self.groups) for card in group.members
        )
        used = {name: program.variable(1) for name in sorted({node for _, node in there})}
        taken = {pair: program.variable(n) for pair, n in there.items()}
        for (s, node), v in taken.items():
            program.at_most({v: 1, used[node]: -there[s, node]}, 0)
        for s in range(len(self.groups)):
            mine = {v: 1 for (group, _), v in taken.items() if group == s}
            options = {v: -1 for y in self.y for (group, _), v in y.items() if group == s}
            program.equal(mine | options, 0)
        return used, taken

    # --- what is proved ---------------------------------------------------------------------------

    def price_least(self, limits: Limits, nodes: int | None = None) -> tuple[GpuCost, bool] | None:
        """Find the least cost on the fewest GPUs, and whether both are proved."""
        best = self.find_least(limits, nodes=nodes)
        if best is None:
            return None
        return self.cost_of(best), self.prove_least(limits)[0] is Proof.CHECKED

    def prove_least(self, limits: Limits) -> tuple[Proof, Fraction]:
        """Return the weakest proof of the least cost and the fewest GPUs, and the cost's bound."""
        proofs, least = [], self.certified
        for name in self.aims.keys() & {"cost", "gpus"}:
            bound, proof = self.prove(name, limits)
            proofs.append(proof)
            least = max(least, -bound * self.cost_step) if name == "cost" else least
        # a budget says what to spend
        return min(proofs, key=_PROOFS.index, default=Proof.NONE), least

    def prove(self, name: str, limits: Limits) -> tuple[int, Proof]:
        """Return the least bound on an aim that is proved, and whether the aim's value meets it."""
        aim = self.aims[name]
        bound = self._reach(aim.terms)
        if name == "kept":  # no more of a kind than run, nor than are wanted
            growing = {k for group in self.demand.groups if group.can_grow for k in group.kinds}
            run, counts = self.running.items(), self.demand.counts
            bound = sum(n if kind in growing else min(n, counts[kind]) for kind, n in run)
        if bound > aim.value and self.is_exact:
            proved = self.program.prove(aim.terms, limits, aim.value, aim.rows)
            bound = bound if proved is None else min(bound, proved)
        if bound <= aim.value:
            return aim.value, Proof.CHECKED
        return bound, Proof.SOLVER if aim.has_ended and self.is_exact else Proof.NONE


def _sum(terms: Mapping[int, int], values: Sequence[int]) -> int:
    return sum(n * values[v] for v, n in terms.items())


def _negative(terms: Mapping[int, int]) -> dict[int, int]:
    return {v: -n for v, n in terms.items()}
