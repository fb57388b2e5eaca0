"""What rules and bounds see of a problem: one GPU type's services and slices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from cms.errors import InvalidOption, UnsupportedProblem
from cms.fleet import get_gpu
from cms.problem.parts import Configuration
from cms.schedule.schedule import Schedule

if TYPE_CHECKING:
    from cms.certificate.certificate import Certificate
    from cms.problem.problem import Problem

#: Instances that are placed one by one, at most.
MOST_INSTANCES = 100_000


class Rule(NamedTuple):
    """A rule that makes a schedule without looking for a better one, or refuses a problem."""

    name: str
    summary: str
    schedule: Callable[[Problem], Schedule]


class Bound(NamedTuple):
    """A lower bound that is said in a line, as its certificate; it makes no schedule."""

    name: str
    summary: str
    certificate: Callable[[Problem], Certificate]


class Instance(NamedTuple):
    """A MIG instance that serves a job: the block's index, the job's, what it has to deliver."""

    block: int
    job: int
    rate: int


def refuse_limits(problem: Problem) -> None:
    """Refuse limits on machine types, which these rules know nothing of."""
    for machine in problem.machine_types:
        if machine.limit is not None:
            raise UnsupportedProblem(f"machine type {machine.name!r} has a limit, which it ignores")


class Services:
    """The jobs of a problem on one MIG GPU type; shapes are counts of blocks."""

    def __init__(self, problem: Problem) -> None:
        refuse_limits(problem)
        if len(problem.machine_types) != 1:
            raise UnsupportedProblem("it knows one GPU type, not several")
        if problem.size_bounded_configurations:
            raise UnsupportedProblem("it knows MIG layouts, not shares")
        try:
            card = get_gpu(problem.machine_types[0].name)
            self.slices = [card.profile(str(block)).compute for block in problem.blocks]
        except InvalidOption as fault:
            raise UnsupportedProblem(f"it knows MIG alone: {fault}") from None
        self.problem = problem
        self.shapes = [
            tuple(shape.blocks.get(block, 0) for block in problem.blocks)
            for shape in problem.listed_configurations
        ]
        self.demands: list[int] = []
        self.supply: list[dict[int, int]] = []
        for j, name in enumerate(problem.job_names):
            row = problem.rows.row(j)
            useful = {
                i: f
                for i, f in enumerate(row.supply)
                if f and any(shape[i] for shape in self.shapes)
            }
            if row.demand and not useful:
                raise UnsupportedProblem(f"no block serves job {name!r}")
            self.demands.append(row.demand)
            self.supply.append(useful)

    def instances(self, job: int, main: int) -> list[Instance]:
        """Serve a job by instances of one profile, the last as small as will do."""
        supply, demand = self.supply[job], self.demands[job]
        if not demand:
            return []
        full, rest = divmod(demand, supply[main])
        if not rest:
            full, rest = full - 1, supply[main]
        if full > MOST_INSTANCES:
            raise UnsupportedProblem(f"it would place {full} instances one by one")
        last = min((i for i in supply if supply[i] >= rest), key=lambda i: self.slices[i])
        return [Instance(main, job, supply[main])] * full + [Instance(last, job, rest)]

    def schedule(self, gpus: Iterable[Sequence[Instance]]) -> Schedule:
        """Make the schedule of GPUs that have these instances."""
        blocks = self.problem.blocks
        machines: dict[Configuration, int] = {}
        given: dict[tuple[str, str], int] = {}
        for instances in filter(None, gpus):
            held = self.counts(instances)
            shape = next((s for s in self.shapes if fits(held, s)), None)
            if shape is None:
                raise UnsupportedProblem(f"its layout {held} is none of the configurations")
            layout = Configuration(
                {block: count for block, count in zip(blocks, shape, strict=True) if count},
                self.problem.machine_types[0].name,
            )
            machines[layout] = machines.get(layout, 0) + 1
            for instance in instances:
                pair = blocks[instance.block], self.problem.job_names[instance.job]
                given[pair] = given.get(pair, 0) + 1
        return Schedule.from_counts(self.problem, machines, given)

    def counts(self, instances: Sequence[Instance]) -> tuple[int, ...]:
        """Return how many instances of each profile these are."""
        held = [0] * len(self.slices)
        for instance in instances:
            held[instance.block] += 1
        return tuple(held)


class Placement:
    """GPUs that are filled one instance after another; one that was emptied stays, empty."""

    def __init__(self, services: Services, shapes: Sequence[tuple[int, ...]]) -> None:
        self._services = services
        self._legal = set(_parts(shapes))
        self.gpus: list[list[Instance]] = []
        # GPUs with the same instances are alike: the numbers of those with each content.
        self._alike: dict[tuple[int, ...], list[int]] = {}

    def used(self, gpu: Sequence[Instance]) -> int:
        """Return how many slices of a GPU are taken."""
        return self._taken(self._services.counts(gpu))

    def add(self, instances: Iterable[Instance], *, tightest: bool) -> None:
        """Place instances, large ones first, each on a GPU that has room, or on a new one.

        Best fit (the fewest free slices, the first of equals) or first fit.
        """
        slices = self._services.slices
        for instance in sorted(instances, key=lambda one: -slices[one.block]):
            room = [
                (-self._taken(held) if tightest else 0, numbers[0], held)
                for held, numbers in self._alike.items()
                if _with(held, instance.block) in self._legal
            ]
            if room:
                _, number, held = min(room)
                heappop(self._alike[held])  # the least number is the one on top
                if not self._alike[held]:
                    del self._alike[held]
                self.gpus[number].append(instance)
            else:
                number = len(self.gpus)
                self.gpus.append([instance])
            held = self._services.counts(self.gpus[number])
            heappush(self._alike.setdefault(held, []), number)

    def empty(self, number: int) -> list[Instance]:
        """Take everything off a GPU, for good, and return it."""
        instances = self.gpus[number]
        held = self._services.counts(instances)
        numbers = self._alike[held]
        numbers.remove(number)
        heapify(numbers)
        if not numbers:
            del self._alike[held]
        self.gpus[number] = []
        return instances

    def _taken(self, held: tuple[int, ...]) -> int:
        return sum(n * s for n, s in zip(held, self._services.slices, strict=True))


def _with(held: tuple[int, ...], block: int) -> tuple[int, ...]:
    return (*held[:block], held[block] + 1, *held[block + 1 :])


def fits(held: Sequence[int], shape: Sequence[int]) -> bool:
    """Whether a layout has these blocks."""
    return all(a <= b for a, b in zip(held, shape, strict=True))


def _parts(shapes: Iterable[Sequence[int]]) -> Iterator[tuple[int, ...]]:
    for shape in shapes:
        yield from product(*(range(count + 1) for count in shape))
