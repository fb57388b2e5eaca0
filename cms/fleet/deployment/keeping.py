"""What stays: which GPUs are cut how, so that most of what runs goes on where it is.

Equal GPUs are one whole variable for each thing that can be made of them, and instances that can
stand for each other are counted, not named: any whole solution is a deployment. Kept instances are
where they were, everything else anywhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from .instance import Kind
from .programs import Limits, Program
from .spots import Column, Spot

K = TypeVar("K")

__all__ = ["Chosen", "Crowd", "Demand", "Pool", "KeepingProgram"]

#: Most pairs of equal GPUs and nodes for which the fewest nodes are searched for; beyond, nodes
#: are filled up one by one.
_MOST_PAIRS = 1500


class Crowd(NamedTuple):
    """Kinds on one profile that no wish tells apart."""

    gpu: str
    profile: str
    kinds: tuple[int, ...]
    can_grow: bool = False  # more of them than promised may be placed


@dataclass(frozen=True)
class Demand:
    """What is wanted."""

    kinds: tuple[Kind, ...]
    counts: tuple[int, ...]  # of each kind; 0 for kinds that only a wish can ask for
    gpus: Mapping[str, int]  # of each type that the promise allows
    crowds: tuple[Crowd, ...]  # every kind is in one

    @property
    def numbers(self) -> dict[Kind, int]:
        """The number of each kind."""
        return {kind: number for number, kind in enumerate(self.kinds)}

    def on(self, gpu: str, profile: str) -> int:
        """How many instances of a profile are wanted."""
        pairs = zip(self.kinds, self.counts, strict=True)
        return sum(n for kind, n in pairs if (kind.gpu, kind.profile) == (gpu, profile))


class Pool(NamedTuple):
    """Columns whose instances are as good as each other's."""

    home: str  # a node, a zone, or empty where that does not matter
    columns: tuple[tuple[int, int], ...]  # each by its spot and its place there
    shut: frozenset[int] = frozenset()  # kinds that may not be here
    is_even: bool = False  # its GPUs share instances out evenly: then it has a single column


class Chosen(NamedTuple):
    """What was decided, in counts."""

    pools: Sequence[Pool]
    columns: list[dict[tuple[int, int], int]]  # of each pool: GPUs of each column
    placed: list[dict[int, int]]  # of each pool: instances of each crowd, the kept ones among them
    kept: list[dict[int, int]]  # of each pool: instances of each kind that are kept
    nodes: dict[tuple[int, str], int] | None  # GPUs of a spot that are used on a node
    ended: bool  # the solver says that none keeps more, on as few GPUs

    def kept_of(self, kind: int) -> int:
        """How many of a kind are kept."""
        return sum(kept.get(kind, 0) for kept in self.kept)

    @property
    def most_kept(self) -> int:
        """How many are kept in all."""
        return sum(sum(kept.values()) for kept in self.kept)

    def counts(self, demand: Demand) -> tuple[int, ...]:
        """How many of each kind there are, whatever wishes have added."""
        counts = list(demand.counts)
        for number, crowd in enumerate(demand.crowds):
            if crowd.can_grow:
                (kind,) = crowd.kinds
                counts[kind] = sum(placed.get(number, 0) for placed in self.placed)
        return tuple(counts)


class KeepingProgram:
    """The program: its variables by what they mean."""

    def __init__(self, spots: Sequence[Spot], demand: Demand, pools: Sequence[Pool]) -> None:
        self.spots, self.demand, self.pools = spots, demand, pools
        self.program = Program()
        # of each pool: GPUs by column, instances by crowd, kept ones by kind
        self.y: list[dict[tuple[int, int], int]] = []
        self.x: list[dict[int, int]] = []
        self.k: list[dict[int, int]] = []
        self.r: list[int] = []  # instances that are there and get work, kept or not
        self.more: dict[str, int] = {}  # GPUs of a type beyond what the promise allows
        for pool in self.pools:
            self._pool(pool)
        self._demand()
        self._gpus()

    def column(self, at: tuple[int, int]) -> Column:
        """Return a column."""
        return self.spots[at[0]].columns[at[1]]

    def _pool(self, pool: Pool) -> None:
        program, demand = self.program, self.demand
        y = {at: program.variable(len(self.spots[at[0]].cards)) for at in pool.columns}
        room: dict[tuple[str, str], dict[int, int]] = {}
        there: dict[tuple[str, str], dict[int, int]] = {}
        keeps: dict[int, dict[int, int]] = {}
        stays: dict[int, dict[int, int]] = {}
        for at, number in y.items():
            key, column = self.spots[at[0]].gpu.key, self.column(at)
            for profile, count in column.counts:
                room.setdefault((key, profile), {})[number] = count
            for profile, count in column.there:
                there.setdefault((key, profile), {})[number] = count
            for kind, count in column.keeps:
                if kind not in pool.shut:
                    keeps.setdefault(kind, {})[number] = count
                if column.stays:
                    stays.setdefault(kind, {})[number] = count
        most = {block: self._most(terms) for block, terms in room.items()}
        x: dict[int, int] = {}
        on: dict[tuple[str, str], dict[int, int]] = {}
        for i, crowd in enumerate(demand.crowds):
            block = crowd.gpu, crowd.profile
            if block in room and not pool.shut.issuperset(crowd.kinds):
                high = most[block] if crowd.can_grow else self._wanted(crowd)
                x[i] = program.variable(min(high, most[block]))
                on.setdefault(block, {})[x[i]] = 1
        crowd_of = {kind: i for i in x for kind in demand.crowds[i].kinds}
        k: dict[int, int] = {}
        for kind, terms in keeps.items():
            if kind in crowd_of:
                high = self._most(terms)
                if not demand.crowds[crowd_of[kind]].can_grow:
                    high = min(high, demand.counts[kind])
                k[kind] = program.variable(high)
                program.at_most({k[kind]: 1} | {v: -n for v, n in terms.items()}, 0)
        for kind, terms in stays.items():  # what stays as it is keeps all it has
            kept = {k[kind]: -1} if kind in k else {}
            program.at_most(terms | kept, 0)
        for i, number in x.items():
            own = {k[kind]: 1 for kind in demand.crowds[i].kinds if kind in k}
            if own:
                program.at_most(own | {number: -1}, 0)
        for block, terms in on.items():
            program.at_most(terms | {v: -n for v, n in room[block].items()}, 0)
            if block in there:  # what is there and is used for something, kept or not
                r = program.variable(self._most(there[block]))
                program.at_most({r: 1} | dict.fromkeys(terms, -1), 0)
                program.at_most({r: 1} | {v: -n for v, n in there[block].items()}, 0)
                self.r.append(r)
        self.y.append(y)
        self.x.append(x)
        self.k.append(k)

    def _most(self, terms: Mapping[int, int]) -> int:
        return sum(n * self.program.highs[v] for v, n in terms.items())

    def _wanted(self, crowd: Crowd) -> int:
        return sum(self.demand.counts[kind] for kind in crowd.kinds)

    def _demand(self) -> None:
        for i, crowd in enumerate(self.demand.crowds):
            terms = {x[i]: 1 for x in self.x if i in x}
            if crowd.can_grow:
                self.program.at_least(terms, self._wanted(crowd))
            else:
                self.program.equal(terms, self._wanted(crowd))
                for kind in crowd.kinds:
                    kept = {k[kind]: 1 for k in self.k if kind in k}
                    if len(kept) > 1:
                        self.program.at_most(kept, self.demand.counts[kind])

    def _gpus(self) -> None:
        of: dict[int, dict[int, int]] = {}
        for y in self.y:
            for (spot, _), number in y.items():
                of.setdefault(spot, {})[number] = 1
        used: dict[str, dict[int, int]] = {}
        for spot, terms in of.items():
            cards = self.spots[spot].cards
            if len(terms) > 1:
                self.program.at_most(terms, len(cards))
            used.setdefault(self.spots[spot].gpu.key, {}).update(terms)
        for key, terms in sorted(used.items()):
            allowed = self.demand.gpus.get(key, 0)
            if (beyond := self._most(terms) - allowed) > 0:
                self.more[key] = self.program.variable(beyond)
                self.program.at_most(terms | {self.more[key]: -1}, allowed)

    # --- one aim after the other ------------------------------------------------------------------

    def fewest_more(self, limits: Limits) -> int | None:
        """Return the fewest GPUs beyond the promise's; None if there is nothing, or no time."""
        best, _ = self._aim(dict.fromkeys(self.more.values(), -1), limits, None)
        return None if best is None else sum(best[v] for v in self.more.values())

    def solve(self, limits: Limits) -> tuple[Chosen | None, bool]:
        """Pursue the aims in their order; returns also whether the solver came to its end.

        Fewest GPUs beyond the promise's; fewest instances beyond it; most kept; most of the rest
        where an instance is already; fewest GPUs touched; fewest nodes.
        """
        grown = {x[i]: -1 for x in self.x for i in x if self.demand.crowds[i].can_grow}
        kept = {v: 1 for k in self.k for v in k.values()}
        touched: dict[int, int] = {}
        for y in self.y:
            for at, v in y.items():
                cost = -1 if self.column(at).stays else int(not self.spots[at[0]].works)
                if cost:
                    touched[v] = -cost
        best, ended = self._aim(dict.fromkeys(self.more.values(), -1), limits, None)
        if best is None:
            return None, ended
        for v in self.more.values():
            self.program.equal({v: 1}, best[v])
        all_ended = ended
        for terms in (grown, kept, dict.fromkeys(self.r, 1), touched):
            if terms:
                found, ended = self._aim(terms, limits, best)
                best = best if found is None else found
                all_ended &= ended or terms not in (grown, kept)
                self.program.at_least(terms, sum(n * best[v] for v, n in terms.items()))
        nodes, best = self._nodes(limits, best)
        return self.read(best, nodes, all_ended), True

    def _aim(
        self, terms: Mapping[int, int], limits: Limits, best: list[int] | None
    ) -> tuple[list[int] | None, bool]:
        if best is not None:
            reach = sum(max(0, n) * self.program.highs[v] for v, n in terms.items())
            if sum(n * best[v] for v, n in terms.items()) == reach:
                return best, True
        found = self.program.maximise(terms, limits, best)
        return found.values, found.ended

    def _nodes(
        self, limits: Limits, best: list[int]
    ) -> tuple[dict[tuple[int, str], int] | None, list[int]]:
        """Have the fewest nodes used, and of equal ones the first by name."""
        pairs = {(s, card.node) for s, spot in enumerate(self.spots) for card in spot.cards}
        if len(pairs) > _MOST_PAIRS:
            return None, best
        used, taken = self.count_nodes()
        start = len(used) * (len(used) + 1) // 2 + 1
        cost = {v: -(start + rank) for rank, v in enumerate(used.values())}
        found = self.program.maximise(cost, limits)
        if found.values is None:
            return None, best
        return {(s, node): found.values[v] for (s, node), v in taken.items()}, found.values

    def count_nodes(self) -> tuple[dict[str, int], dict[tuple[int, str], int]]:
        """Add variables: whether a node is used, by name, and GPUs of each spot on each node."""
        program = self.program
        there = Counter((s, card.node) for s, spot in enumerate(self.spots) for card in spot.cards)
        used = {name: program.variable(1) for name in sorted({node for _, node in there})}
        taken = {pair: program.variable(n) for pair, n in there.items()}
        for (s, node), v in taken.items():
            program.at_most({v: 1, used[node]: -there[s, node]}, 0)
        for s in range(len(self.spots)):
            mine = {v: 1 for (spot, _), v in taken.items() if spot == s}
            columns = {v: -1 for y in self.y for (spot, _), v in y.items() if spot == s}
            program.equal(mine | columns, 0)
        return used, taken

    def read(
        self, best: Sequence[int], nodes: dict[tuple[int, str], int] | None, ended: bool
    ) -> Chosen:
        """Return a solution as what it decides."""
        return Chosen(
            self.pools,
            [_positive(y, best) for y in self.y],
            [_positive(x, best) for x in self.x],
            [_positive(k, best) for k in self.k],
            None if nodes is None else {pair: n for pair, n in nodes.items() if n},
            ended,
        )


def _positive(variables: Mapping[K, int], best: Sequence[int]) -> dict[K, int]:
    return {key: best[v] for key, v in variables.items() if best[v]}
