"""The genetic algorithm around MIG-serving's two phases, and its operators on deployments."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from random import Random

    from cms.plugin.algorithm import Budget

    from .options import MigServingOptions
    from .services import Filled, Services
    from .tree_search import TreeSearch

#: Mutation exchanges the jobs of so many pairs of blocks, where no machine then has more different
#: jobs than are allowed; crossover also merges blocks with this chance. By trial on S1 to S6.
_EXCHANGES, _MERGING = 4, 0.25


class Deployment(NamedTuple):
    """Machines that serve all jobs: a chromosome.

    `spare` is what jobs have too much, in machines that would give it: of equally dear deployments
    the one with more to spare is nearer to doing without a machine.
    """

    machines: tuple[Filled, ...]
    cost: int
    spare: float

    @property
    def fitness(self) -> tuple[int, float]:
        """The less the fitter (ties are ours; MIG-serving is silent about them)."""
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
        """Make a deployment of machines that serve all jobs; machines it can do without go.

        The dearest go first, of equals the first.
        """
        left = self._services.missing(machines)
        kept = []
        prices = self._services.prices
        for machine in sorted(machines, key=lambda machine: (-prices[machine.shape], machine)):
            if all(left[j] + amount <= 0 for j, amount in machine.gives):
                for j, amount in machine.gives:
                    left[j] += amount
            else:
                kept.append(machine)
        spare = sum(-amount / each for amount, each in zip(left, self._each, strict=True))
        return Deployment(tuple(kept), self._services.cost(kept), spare)

    def improvements(
        self, first: Deployment, budget: Budget | None = None
    ) -> Iterator[tuple[Deployment, int]]:
        """Yield better and better deployments, each with the round it was found in.

        Ends after the rounds without gain that the options allow, or when stopped.
        """
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

        Every job keeps its blocks; what changes is who shares a machine with whom, and so what the
        next crossover erases together.
        """
        machines = list(deployment.machines)
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
                i, j, j_other = self._random.choice(pairs)
                after = (
                    self._handed_over(mine, i, j, j_other),
                    self._handed_over(theirs, i, j_other, j),
                )
                # In the last mile a machine may have got one job more.
                most = max(self._options.mixed, len(mine.gives), len(theirs.gives))
                if max(len(machine.gives) for machine in after) <= most:
                    machines[one], machines[other] = after
        return deployment._replace(machines=tuple(machines))

    def crossed(self, parent: Deployment, budget: Budget | None = None) -> Deployment | None:
        """Erase part of a deployment and have the tree search serve what is then missing.

        With some chance blocks of one job on one of the other machines are merged before. None if
        stopped before there is a child.
        """
        machines = list(parent.machines)
        most = max(1, int(len(machines) * self._options.erased))
        for at in sorted(
            self._random.sample(range(len(machines)), self._random.randint(1, most)), reverse=True
        ):
            del machines[at]
        if machines and self._random.random() < _MERGING:
            at = self._random.randrange(len(machines))
            machines[at] = self.merged(machines[at], self._services.missing(machines))
        path = self._search.best(self._services.missing(machines), budget)
        return path and self.deployment([*machines, *path.machines])

    def merged(self, machine: Filled, missing: Sequence[int]) -> Filled:
        """Merge several blocks of one job on a machine into a larger one, if there is a way.

        `missing` is what jobs lack with the machine as it is. The larger block gives the job more
        than any of those merged, and all but it and the other jobs' blocks of the new configuration
        goes where most is missing. The job may end with less than before.
        """
        services = self._services
        ways = []
        for j in {j for _, j, _ in machine.blocks}:
            mine = {i: number for i, job, number in machine.blocks if job == j}
            if sum(mine.values()) < 2:
                continue
            most = max(services.supply[j][i] for i in mine)
            others = [block for block in machine.blocks if block[1] != j]
            for shape, row in enumerate(services.tables.counts):
                free = list(row)
                for i, _, number in others:
                    free[i] -= number
                if min(free) >= 0:
                    ways += [
                        (shape, i, j, others)
                        for i, count in enumerate(free)
                        if count and services.supply[j][i] > most
                    ]
        if not ways:
            return machine
        shape, i, j, others = self._random.choice(sorted(ways))
        blocks = [*others, (i, j, 1)]
        left = list(missing)
        for job, amount in machine.gives:
            left[job] += amount
        for job, amount in services.filled(shape, blocks).gives:
            left[job] -= amount
        return self._filled_up(shape, blocks, left)

    def _filled_up(
        self, shape: int, blocks: Sequence[tuple[int, int, int]], left: list[int]
    ) -> Filled:
        """Hand out the idle blocks of a machine one by one, each where it counts most.

        Not to more different jobs than may be mixed; jobs lack what is left.
        """
        services = self._services
        held = {(i, j): count for i, j, count in blocks}
        free = list(services.tables.counts[shape])
        for i, _, count in blocks:
            free[i] -= count
        while True:
            best, pick = 0.0, None
            there = {j for _, j in held}
            for j, amount in enumerate(left):
                if amount <= 0 or (j not in there and len(there) >= self._options.mixed):
                    continue
                for i, gives in enumerate(services.supply[j]):
                    worth = min(gives, amount) * amount / services.needs[j] ** 2
                    if free[i] and worth > best:
                        best, pick = worth, (i, j)
            if pick is None:
                return services.filled(shape, [(i, j, count) for (i, j), count in held.items()])
            i, j = pick
            held[pick] = held.get(pick, 0) + 1
            free[i] -= 1
            left[j] -= services.supply[j][i]

    def _handed_over(self, machine: Filled, i: int, j: int, to: int) -> Filled:
        """Give one of a job's blocks of a type to another job."""
        blocks = {(type_, job): number for type_, job, number in machine.blocks}
        blocks[i, j] -= 1
        blocks[i, to] = blocks.get((i, to), 0) + 1
        return self._services.filled(
            machine.shape, [(type_, job, number) for (type_, job), number in blocks.items()]
        )
