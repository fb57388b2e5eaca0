"""Schedules of one machine after the other, where jobs are few and sets of blocks have many types.

Each machine is filled with what is worth most for its size; the machine that gains most for its
cost is opened, as often as it gains the same. After every step the cheapest machine that finishes
all that is left is a schedule. A price search over hundreds of block types takes minutes, in which
this is all there is to improve on.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cms.knapsack.pricing import cheapest_option, common_denominator
from cms.problem.parts import Configuration
from cms.schedule.schedule import Schedule

from ..solvers.floats import near

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from cms.problem.parts import AnyConfiguration
    from cms.problem.problem import Problem

#: Entries of the table of supply up to which it is tried, and steps of one try.
_MOST_ENTRIES, _MOST_STEPS = 20_000, 1_000
#: So many jobs at most are few, and so many block types at least are many: then what jobs are worth
#: is drawn so often, so far from what they cost, and as long as so many entries were looked at.
_FEW_JOBS, _MANY_BLOCKS = 100, 40
_DRAWS, _SPREADS, _WORK = 40, (0.25, 0.5), 20_000_000
#: So many block types serve a job on average: with fewer there is little to choose.
_CHOICES = 5
#: A machine that costs nothing counts as one of this cost.
_LEAST = 1e-100
#: Sizes that floats tell apart.
_LARGEST = 2**50
#: What a look at the table counts as, beside its entries.
_LOOK = 1_000
#: Of blocks that are worth the same for their size the largest is taken.
_LARGER = 1e-9

#: Blocks on one machine, by (block, job).
Filling = dict[tuple[int, int], int]


class _Kind(NamedTuple):
    """One configuration or set: its cost, its blocks' columns and sizes, and how many there are."""

    shape: AnyConfiguration
    cost: Fraction
    limit: int | None
    columns: list[int]
    sizes: list[int]
    room: int
    slots: int | None


class Machinewise:
    """Opens machines for one problem, one after the other.

    Parameters
    ----------
    problem : Problem
        Reduced: every block serves some job.
    stopped : callable
    seed : int, default 0

    Examples
    --------
    >>> from cms import Job, MachineType, Problem, SizeBoundedConfigurations
    >>> sets = [SizeBoundedConfigurations({f"{m}:{s}": s for s in (5, 9)}, 9, m) for m in "ab"]
    >>> supply = {"a:5": 5, "a:9": 9, "b:5": 10, "b:9": 18}
    >>> types = [MachineType("a", cost=4), MachineType("b", cost=7)]
    >>> problem = Problem(configurations=sets, jobs=[Job("x", 27, supply)], machine_types=types)
    >>> [str(each.cost(problem)) for each in Machinewise(problem, lambda: False).schedules(None)]
    ['11']
    """

    def __init__(self, problem: Problem, stopped: Callable[[], bool], seed: int = 0) -> None:
        self._problem, self._stopped, self._seed = problem, stopped, seed
        self._work = 0
        rows = [problem.rows.row(j) for j in range(problem.n_jobs)]
        self._demand = [row.demand for row in rows]
        self._supply = [row.supply for row in rows]
        # As parts of the demand: rows of any length of digits fit into floats.
        self._parts = np.array(
            [[f / row.demand if row.demand else 0.0 for f in row.supply] for row in rows]
        ).reshape(len(rows), len(problem.blocks))
        self._kinds = [*self._read()]

    @staticmethod
    def worth_while(problem: Problem) -> bool:
        """Whether few jobs have many block types to choose from, some of a set."""
        n, k = problem.n_jobs, len(problem.blocks)
        if not (0 < n <= _FEW_JOBS and n * k <= _MOST_ENTRIES) or problem.rows.wide:
            return False
        choices = int((problem.rows.supplies > 0).sum())
        return choices >= _CHOICES * n and bool(problem.size_bounded_configurations)

    def _read(self) -> Iterator[_Kind]:
        index = self._problem.block_index
        for shape in self._problem.configurations:
            machine = self._problem.machine_type(shape.machine)
            if isinstance(shape, Configuration):
                held = [(index[b], n) for b, n in shape.blocks.items() if b in index]
                columns, sizes = [i for i, _ in held], [n for _, n in held]
                yield _Kind(shape, machine.cost, machine.limit, columns, sizes, 0, None)
                continue
            names = [b for b in shape.sizes if b in index and shape.sizes[b] <= shape.capacity]
            numbers = common_denominator([shape.capacity, *(shape.sizes[b] for b in names)])[0]
            columns, slots = [index[b] for b in names], shape.max_blocks
            limit = machine.limit
            if numbers[0] > _LARGEST:
                continue
            yield _Kind(shape, machine.cost, limit, columns, numbers[1:], numbers[0], slots)

    def schedules(self, below: Fraction | None) -> Iterator[Schedule]:
        """Yield cheaper and cheaper schedules, all cheaper than ``below``."""
        names = [machine.name for machine in self._problem.machine_types]
        costs, random = self._costs(), np.random.default_rng(self._seed)
        drawn = []
        if len(self._problem.blocks) >= _MANY_BLOCKS:
            spreads = (_SPREADS[number % len(_SPREADS)] for number in range(_DRAWS))
            drawn = [costs * random.lognormal(0, spread, len(costs)) for spread in spreads]
        for number, weights in enumerate((costs, np.ones(len(costs)), *drawn)):
            if number > 1 and self._work > _WORK:
                return
            for only in (None, *(names if len(names) > 1 and number < 2 else ())):
                chosen = [k for k in self._kinds if only is None or k.shape.machine == only]
                found = self._opened(chosen, weights, below)
                if found is not None:
                    below = found.cost(self._problem)
                    yield found

    def _costs(self) -> NDArray[np.float64]:
        """Return what each job costs at least, were machines bought in parts."""
        best = np.full(len(self._demand), np.inf)
        for kind in self._kinds:
            parts = np.minimum(self._parts[:, kind.columns], 1)
            sizes = [size / kind.room if kind.room else 1 / sum(kind.sizes) for size in kind.sizes]
            with np.errstate(divide="ignore"):
                best = np.minimum(
                    best, (near(kind.cost) * np.array(sizes) / parts).min(axis=1, initial=np.inf)
                )
        return np.where(np.isfinite(best), best, 0.0)

    def _opened(
        self, kinds: Sequence[_Kind], weights: NDArray[np.float64], below: Fraction | None
    ) -> Schedule | None:
        left, cost = list(self._demand), Fraction(0)
        used: dict[str | None, int] = {}
        opened: list[tuple[_Kind, Filling, int]] = []
        best: list[tuple[_Kind, Filling, int]] | None = None
        for _ in range(_MOST_STEPS):
            if self._stopped() or (below is not None and cost >= below):
                break
            for kind in self._kinds:
                total = cost + kind.cost
                room = kind.limit is None or used.get(kind.shape.machine, 0) < kind.limit
                if room and (below is None or total < below):
                    last = self._finish(kind, left)
                    if last is not None:
                        below, best = total, [*opened, (kind, last, 1)]
            choice: tuple[float, _Kind, Filling] | None = None
            for kind in kinds:
                if kind.limit is not None and used.get(kind.shape.machine, 0) >= kind.limit:
                    continue
                filling, gain = self._fill(kind, left, weights)
                ratio = gain / max(near(kind.cost), _LEAST)
                if gain and (choice is None or ratio > choice[0]):
                    choice = ratio, kind, filling
            if choice is None:
                break
            _, kind, filling = choice
            given = self._given(filling)
            number = max(1, min(left[j] // got for j, got in given.items()))
            if kind.limit is not None:
                number = min(number, kind.limit - used.get(kind.shape.machine, 0))
            left = [max(0, d - number * given.get(j, 0)) for j, d in enumerate(left)]
            used[kind.shape.machine] = used.get(kind.shape.machine, 0) + number
            opened.append((kind, filling, number))
            cost += number * kind.cost
            if not any(left):
                if below is None or cost < below:
                    below, best = cost, list(opened)
                break
        return None if best is None else self._schedule(best)

    def _given(self, filling: Filling) -> dict[int, int]:
        given: dict[int, int] = {}
        for (i, j), n in filling.items():
            given[j] = given.get(j, 0) + n * self._supply[j][i]
        return given

    def _fill(
        self, kind: _Kind, left: Sequence[int], weights: NDArray[np.float64]
    ) -> tuple[Filling, float]:
        """Fill a machine; return what it gains, too."""
        filling: Filling = {}
        gain = 0.0
        need = [d / full if full else 0.0 for d, full in zip(left, self._demand, strict=True)]
        missing, remaining = np.array(need), list(left)
        table = self._parts[:, kind.columns]
        sizes = np.array(kind.sizes, dtype=np.float64)
        room, slots, counts = kind.room, kind.slots, list(kind.sizes)
        while slots is None or slots > 0:
            self._work += _LOOK + table.size
            worth = np.minimum(table, missing[:, None]) * weights[:, None]
            if kind.room:
                ratio = np.where(sizes <= room, worth / sizes * (1 + _LARGER * sizes), 0.0)
            else:
                ratio = np.where(np.array(counts) > 0, worth, 0.0)
            at = int(ratio.argmax()) if ratio.size else 0
            if not ratio.size or ratio.flat[at] <= 0:
                break
            j, c = divmod(at, len(kind.columns))
            i, f = kind.columns[c], self._supply[j][kind.columns[c]]
            most = room // kind.sizes[c] if kind.room else counts[c]
            number = max(1, min(most, remaining[j] // f, most if slots is None else slots))
            filling[i, j] = filling.get((i, j), 0) + number
            gain += weights[j] * min(number * f, remaining[j]) / self._demand[j]
            remaining[j] = max(0, remaining[j] - number * f)
            missing[j] = remaining[j] / self._demand[j]
            if kind.room:
                room -= number * kind.sizes[c]
            else:
                counts[c] -= number
            slots = None if slots is None else slots - number
        return filling, gain

    def _finish(self, kind: _Kind, left: Sequence[int]) -> Filling | None:
        """Find a filling that serves all that is left; None if there is none, or none is found."""
        if not kind.room:
            filling, _ = self._fill(kind, left, np.ones(len(left)))
            given = self._given(filling)
            return filling if all(given.get(j, 0) >= d for j, d in enumerate(left)) else None
        wanted = [j for j, d in enumerate(left) if d]
        parts = self._parts[np.ix_(wanted, kind.columns)]
        need = np.array([left[j] / self._demand[j] for j in wanted])
        with np.errstate(divide="ignore"):
            least = (np.array(kind.sizes, dtype=np.float64) / parts).min(axis=1, initial=np.inf)
        if not float((least * need).sum()) <= kind.room * (1 + _LARGER):
            return None
        filling, room, slots = {}, kind.room, kind.slots
        for j in wanted:
            supply = [self._supply[j][i] for i in kind.columns]
            found = cheapest_option(kind.sizes, supply, left[j])
            if found is None:
                return None
            taken = {(kind.columns[c], j): n for c, n in enumerate(found.option) if n}
            room -= sum(size * n for size, n in zip(kind.sizes, found.option, strict=True))
            slots = None if slots is None else slots - sum(found.option)
            if room < 0 or (slots is not None and slots < 0):
                return None
            filling |= taken
        return filling

    def _schedule(self, opened: Sequence[tuple[_Kind, Filling, int]]) -> Schedule:
        problem = self._problem
        machines: dict[Configuration, int] = {}
        given: dict[tuple[str, str], int] = {}
        for kind, filling, number in opened:
            shape = kind.shape
            if not isinstance(shape, Configuration):
                blocks: dict[str, int] = {}
                for (i, _), n in filling.items():
                    blocks[problem.blocks[i]] = blocks.get(problem.blocks[i], 0) + n
                shape = Configuration(blocks, shape.machine)
            machines[shape] = machines.get(shape, 0) + number
            for (i, j), n in filling.items():
                key = problem.blocks[i], problem.job_names[j]
                given[key] = given.get(key, 0) + n * number
        return Schedule.from_counts(problem, machines, given)
