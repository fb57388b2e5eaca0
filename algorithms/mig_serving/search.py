"""MIG-serving's optimiser: Monte Carlo tree search, and a genetic algorithm around it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import log, sqrt
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from .fast import ByScores, MigServingFastOptions, Run, fitting

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cms.plugin.algorithm import Budget, Claim
    from cms.problem.problem import Problem

    from .fast import Candidates, Filled, Services

#: Lists of machines that are remembered, times the machines of each; beyond, all are forgotten.
_MOST_POOLED = 100_000
#: Mutation exchanges the jobs of this many pairs of blocks, if no machine then has more different
#: jobs than are allowed; crossover also merges blocks with this chance. By trial on S1 to S6.
_EXCHANGES, _MERGING = 4, 0.25


@dataclass(frozen=True)
class MigServingOptions(MigServingFastOptions):
    """Options of :class:`~algorithms.mig_serving.MigServing`.

    Figures are MIG-serving's, as remembered, or by trial.

    Parameters
    ----------
    score, mixed, last_mile
        As :class:`MigServingFastOptions` has them; the search's score is capped.
    rounds_without_gain : int, default 10
        How many rounds that save nothing end the genetic algorithm.
    population : int, default 8
        Deployments kept from round to round, the fittest; each has one child a round.
    erased : number, default 1/4
        Crossover erases at least one machine and at most this part of them.
    playouts : int, default 20
        Of each tree search.
    drawn : int, default 5
        Unfinished jobs, drawn at random, that the children of a node serve.
    children : int, default 10
        The machines of the highest scores that a node is cut to.
    buckets : int, default 10
        Steps in which a playout sees how much of a demand is missing.
    backup : {"minimum", "mean"}, default "minimum"
        What a node knows of the playouts below it.
    """

    rounds_without_gain: int = 10
    population: int = 8
    erased: Fraction = Fraction(1, 4)
    playouts: int = 20
    drawn: int = 5
    children: int = 10
    buckets: int = 10
    backup: str = "minimum"

    def __post_init__(self) -> None:
        super().__post_init__()
        most = {"rounds_without_gain": 10**9, "population": 1_000, "playouts": 10**6}
        most |= {"drawn": 8, "children": 1_000, "buckets": 200}
        for name, largest in most.items():
            self._whole(name, least=1, most=largest)
        self._number("erased", most=1)
        self._one_of("backup", ("minimum", "mean"))


class Path(NamedTuple):
    """Machines that serve all that was missing, and what they cost in steps."""

    machines: list[Filled]
    cost: int


class _Node:
    """A state of the search: what is missing once the machines on the way to it are open."""

    __slots__ = ("best", "edges", "missing", "most", "nodes", "spent", "total", "visits")

    def __init__(self, missing: list[int], spent: int) -> None:
        self.missing, self.spent = missing, spent
        self.edges: list[Filled] | None = None
        self.nodes: list[_Node] = []
        self.visits = self.total = self.best = self.most = 0


class TreeSearch:
    """Looks for the cheapest machines that serve what is missing.

    A node is what jobs lack, an edge a machine that is opened; a node's edges are the machines of
    the highest scores for unfinished jobs, drawn at random.
    """

    def __init__(
        self, services: Services, candidates: Candidates, options: MigServingOptions, random: Random
    ) -> None:
        self._services, self._candidates = services, candidates
        self._options, self._random = options, random
        self._drawn = fitting(services.tables.counts, options.drawn, options.mixed + 1)
        self._pools: dict[bytes, list[Filled]] = {}

    def best(self, missing: Sequence[int], budget: Budget | None = None) -> Path | None:
        """Return the cheapest solution of all playouts; None if stopped before the first ended."""
        root = _Node(list(missing), 0)
        best: Path | None = None
        for _ in range(self._options.playouts):
            machines, way = self._descend(root)
            rest = self.playout(way[-1].missing, budget)
            if rest is None:
                break
            cost = way[-1].spent + rest.cost
            if best is None or cost < best.cost:
                best = Path(machines + rest.machines, cost)
            for node in way:
                node.visits += 1
                node.total += cost
                node.best = cost if node.visits == 1 else min(node.best, cost)
                node.most = max(node.most, cost)
        return best

    def playout(self, missing: Sequence[int], budget: Budget | None = None) -> Path | None:
        """Open machines at random until nothing is missing, of those good there; None if stopped.

        These are worked out once for all states that agree on what is missing, in this many steps.
        """
        left, opened = list(missing), []
        needs, steps = self._services.needs, self._options.buckets
        levels = bytearray(
            -(-amount * steps // need) if amount > 0 else 0
            for amount, need in zip(left, needs, strict=True)
        )
        while any(levels):
            if budget is not None and budget.stopped:
                return None
            known = bytes(levels)
            if known not in self._pools:
                if len(self._pools) * self._options.children > _MOST_POOLED:
                    self._pools.clear()
                self._pools[known] = self._good(left)
            machine = self._random.choice(self._pools[known])
            opened.append(machine)
            machine.serve(left)
            for j, _ in machine.gives:
                levels[j] = -(-left[j] * steps // needs[j]) if left[j] > 0 else 0
        return Path(opened, self._services.cost(opened))

    def _descend(self, root: _Node) -> tuple[list[Filled], list[_Node]]:
        """Walk down to a node never visited, or where nothing is missing."""
        node, machines, way = root, [], [root]
        while node.visits:
            if node.edges is None:
                node.edges = self._good(node.missing)
            if not node.edges:
                break
            at = len(node.nodes)
            if at < len(node.edges):
                left = list(node.missing)
                node.edges[at].serve(left)
                spent = node.spent + self._services.prices[node.edges[at].shape]
                node.nodes.append(_Node(left, spent))
            else:
                at = self._promising(node, root)
            machines.append(node.edges[at])
            node = node.nodes[at]
            way.append(node)
        return machines, way

    def _promising(self, node: _Node, root: _Node) -> int:
        """Choose the child with the least lower confidence bound of its cost (UCB).

        Costs, whole numbers of any size, count as parts of the range seen, 0 the least.
        """
        spread, span = sqrt(log(node.visits)), (root.most - root.best) or 1

        def bound(at: int) -> float:
            after = node.nodes[at]
            part = (after.best - root.best) / span
            if self._options.backup == "mean":
                part = (after.total - after.visits * root.best) / (after.visits * span)
            return part - spread / sqrt(after.visits)

        return min(range(len(node.nodes)), key=bound)

    def _good(self, missing: Sequence[int]) -> list[Filled]:
        """Return the machines of the highest scores for some unfinished jobs, drawn at random."""
        unfinished = [j for j, amount in enumerate(missing) if amount > 0]
        if not unfinished:
            return []
        drawn = sorted(self._random.sample(unfinished, min(self._drawn, len(unfinished))))
        return self._candidates.top(drawn, missing, keep=self._options.children)


class Deployment(NamedTuple):
    """Machines that serve all jobs: a chromosome.

    `spare` is what jobs have too much, in machines: with more of it one is nearer to superfluous.
    """

    machines: tuple[Filled, ...]
    cost: int
    spare: float

    @property
    def fitness(self) -> tuple[int, float]:
        """The less the fitter (how ties are broken is chosen here; MIG-serving does not say)."""
        return self.cost, -self.spare


class Genetic:
    """Improves a deployment from round to round."""

    def __init__(
        self, services: Services, search: TreeSearch, options: MigServingOptions, random: Random
    ) -> None:
        self._services, self._search = services, search
        self._options, self._random = options, random
        self._each = [
            need / float(alone) for need, alone in zip(services.needs, services.alone, strict=True)
        ]

    def deployment(self, machines: Sequence[Filled]) -> Deployment:
        """Make a deployment of machines; those it can do without go, the dearest first."""
        left = self._services.missing(machines)
        kept = []
        prices = self._services.prices
        for machine in sorted(machines, key=lambda machine: (-prices[machine.shape], machine)):
            if all(left[j] + amount <= 0 for j, amount in machine.gives):
                machine.serve(left, -1)
            else:
                kept.append(machine)
        spare = sum(-amount / each for amount, each in zip(left, self._each, strict=True))
        return Deployment(tuple(kept), self._services.cost(kept), spare)

    def improvements(
        self, first: Deployment, budget: Budget | None = None
    ) -> Iterator[tuple[Deployment, int]]:
        """Yield better and better deployments, each with the round it was found in."""
        best, population = first, [first]
        idle = turn = 0
        while idle < self._options.rounds_without_gain:
            turn, idle = turn + 1, idle + 1
            children = []
            for at in range(self._options.population):
                parent = self.mutated(population[at % len(population)])
                child = self.crossed(parent, budget)
                if child is None:
                    return
                children.append(child)
                if child.cost < best.cost:
                    best, idle = child, 0
                    yield best, turn
            # The fittest of parents and children; of equals the older.
            everyone = dict.fromkeys([*population, *children])
            population = sorted(everyone, key=lambda one: one.fitness)[: self._options.population]

    def mutated(self, deployment: Deployment) -> Deployment:
        """Exchange the jobs of equal blocks on different machines, some pairs at random.

        What changes is which jobs share a machine, and so what the next crossover erases together.
        """
        machines = list(deployment.machines)
        filled = self._services.filled
        for _ in range(_EXCHANGES if len(machines) > 1 else 0):
            one, other = self._random.sample(range(len(machines)), 2)
            mine, theirs = machines[one], machines[other]
            pairs = [
                (i, j, j_other)
                for i, j, _ in mine.blocks
                for i_other, j_other, _ in theirs.blocks
                if i == i_other and j != j_other
            ]
            if pairs:
                i, j, k = self._random.choice(pairs)
                after = (
                    filled(mine.shape, [*mine.blocks, (i, j, -1), (i, k, 1)]),
                    filled(theirs.shape, [*theirs.blocks, (i, k, -1), (i, j, 1)]),
                )
                # In the last mile a machine may have got one job more.
                most = max(self._options.mixed, len(mine.gives), len(theirs.gives))
                if max(len(machine.gives) for machine in after) <= most:
                    machines[one], machines[other] = after
        return deployment._replace(machines=tuple(machines))

    def crossed(self, parent: Deployment, budget: Budget | None = None) -> Deployment | None:
        """Erase part of a deployment, perhaps merge blocks, and serve what is then missing."""
        every, random = parent.machines, self._random
        most = max(1, int(len(every) * self._options.erased))
        erased = random.sample(range(len(every)), random.randint(1, most))
        machines = [machine for at, machine in enumerate(every) if at not in erased]
        if machines and random.random() < _MERGING:
            at = random.randrange(len(machines))
            machines[at] = self.merged(machines[at], self._services.missing(machines))
        path = self._search.best(self._services.missing(machines), budget)
        return path and self.deployment([*machines, *path.machines])

    def merged(self, machine: Filled, missing: Sequence[int]) -> Filled:
        """Merge several blocks of one job on a machine into a larger one, if there is a way.

        `missing` is what jobs lack with the machine as it is. Blocks that are then idle go one by
        one where they count most, to no more different jobs than may be mixed.
        """
        services = self._services
        ways = []
        for j, _ in machine.gives:
            mine = [(i, number) for i, job, number in machine.blocks if job == j]
            if sum(number for _, number in mine) < 2:
                continue
            most = max(services.supply[j][i] for i, _ in mine)
            others = [block for block in machine.blocks if block[1] != j]
            for shape in range(services.tables.c):
                free = services.free(shape, others)
                if min(free) >= 0:
                    ways += [
                        (shape, i, j, others)
                        for i, count in enumerate(free)
                        if count and services.supply[j][i] > most
                    ]
        if not ways:
            return machine
        shape, i, j, others = self._random.choice(sorted(ways))
        blocks, left = [*others, (i, j, 1)], list(missing)
        machine.serve(left, -1)
        services.filled(shape, blocks).serve(left)
        free = services.free(shape, blocks)
        while True:
            there = {j for _, j, _ in blocks}
            best, pick = 0.0, None
            for j, amount in enumerate(left):
                if amount <= 0 or (j not in there and len(there) >= self._options.mixed):
                    continue
                for i, gives in enumerate(services.supply[j]):
                    worth = min(gives, amount) * amount / services.needs[j] ** 2
                    if free[i] and worth > best:
                        best, pick = worth, (i, j)
            if pick is None:
                return services.filled(shape, blocks)
            i, j = pick
            blocks = [*blocks, (i, j, 1)]
            free[i] -= 1
            left[j] -= services.supply[j][i]


class MigServing(ByScores):
    """MIG-serving's optimiser: its fast algorithm, then a genetic one around a tree search.

    The fast deployment is the first of a population. In every round each has a child: *mutation*
    exchanges the jobs of equal blocks on different machines; *crossover* erases some machines and
    has a Monte Carlo tree search serve what is then missing, with some chance after merging blocks
    of a job into a larger one. The fittest stay: the cheapest, of equals those with most to spare.

    Notes
    -----
    **Guarantee.** None: the source states none. It is never worse than ``mig_serving_fast`` with
    the same options, whose schedule is its first.

    **Running time.** A round has population x playouts random completions, each a step a machine
    that was erased; some 100 machines take seconds a round.

    References
    ----------
    As for :class:`MigServingFast`.

    Examples
    --------
    >>> from cms import Configuration, Job, Problem, solve
    >>> problem = Problem(
    ...     configurations=[Configuration({"4g": 1, "3g": 1}), Configuration({"1g": 7})],
    ...     jobs=[
    ...         Job("bert", 1200, {"1g": 90, "3g": "310.5", "4g": 420}),
    ...         Job("vgg", 300, {"1g": 45, "3g": 140, "4g": 180}),
    ...     ],
    ... )
    >>> solve(problem, method="mig_serving").machine_count
    3
    """

    name = "mig_serving"
    options_type = MigServingOptions

    def run(self, problem: Problem, options: MigServingOptions, budget: Budget) -> Iterator[Claim]:
        """Yield the fast schedule, then better and better ones."""
        run = Run(problem, options)
        machines = run.fast(budget)
        if machines is None:
            return
        yield run.claim(machines, "fast algorithm")
        if not machines:
            return
        random = Random(budget.seed)
        search = TreeSearch(run.services, run.candidates, options, random)
        genetic = Genetic(run.services, search, options, random)
        first = genetic.deployment(machines)
        if len(first.machines) < len(machines):
            yield run.claim(first.machines, "fast algorithm, what can go left out")
        for deployment, turn in genetic.improvements(first, budget):
            yield run.claim(deployment.machines, f"genetic algorithm, round {turn}")
