"""Schedules by diving: jobs decide one by one, then machines, and what is left is priced anew.

The linear program behind the best prices mixes options of jobs and contents of machines. What it
has whole jobs and machines of is kept, or else the option or the content it has most of; it is
solved again for what is left, with options and contents priced for that. First the jobs decide, so
that what they all take stays near what the bound is made of; then the machines for these blocks,
which is cutting stock. A dive that does not end well is followed by others that once or twice took
the second best (limited discrepancy search; Sadykov, Vanderbeck, Pessoa, Tahiri, Uchoa 2019, DOI
10.1287/ijoc.2018.0822).
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations
from math import floor
from operator import mul
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from cms.certificate.certificate import next_below
from cms.knapsack.pricing import cheapest_bundle
from cms.values.arrays import integers

from ..prices.limits import Room
from ..prices.region import Row, configuration_of
from ..prices.taken_options import choices_of
from ..solvers.floats import near
from ..solvers.linear import LinearProgram
from .covers import cover
from .mixture_rounding import Pick, Undecided

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cms.plugin.algorithm import Budget
    from cms.problem.parts import Configuration

    from ..prices.jobs import Jobs
    from ..prices.region import Region
    from ..prices.taken_options import AnyChoices

T = TypeVar("T", bound=tuple[Any, ...])

#: Prices are whole multiples of so small a part of the cheapest machine's cost.
_GRID = 2**30
#: A content is added only if its worth exceeds its cost by more than this.
_GAIN = 1e-6
#: Rounds of pricing after each step, and at first.
_ROUNDS, _FIRST_ROUNDS = 12, 60
#: Contents with no block in common that one round looks for in a set; nodes of the search for the
#: first, which mostly is the best one, and for each of the others.
_CONTENTS, _FIRST_PATIENCE, _PATIENCE = 12, 30_000, 500
#: What the program has so large a part of is kept together with what it has most of ...
_NEARLY = 0.75
#: ... and so is this part of the undecided jobs, or they would take a step each.
_TOGETHER = 8
#: Larger numbers of blocks are beyond what floats can count.
_MOST_IN_FLOATS = 2**40
#: Machines that cost more, in the cheapest machines' cost, are left out: beside longer numbers GLOP
#: may not return.
_HIGHEST = 1e21
#: GLOP's parameters, tried in this order.
_WAYS = (
    "max_number_of_iterations: 20000 use_dual_simplex: false use_preprocessing: false",
    "max_number_of_iterations: 20000 use_dual_simplex: true use_preprocessing: true",
)
#: At which steps dives take the second best: at none, at each of the first, at each two of these.
_DEPTH = 12
_DISCREPANCIES = sorted(
    ((), *((at,) for at in range(_DEPTH)), *combinations(range(_DEPTH), 2)),
    key=lambda steps: (len(steps), sum(steps)),
)
#: Machines for no more blocks are looked through, again once so few of them are left.
_MOST_BLOCKS, _FEWER = 500, 0.8
#: More undecided kinds of jobs are rounded instead.
MOST_UNDECIDED = 2_000


class Dived(NamedTuple):
    """What every job takes, the machines that hold that, and what these cost."""

    cost: Fraction
    machines: Mapping[Row, int]
    choices: AnyChoices

    def schedule(self, jobs: Jobs) -> Any:
        """Put what the jobs take on the machines."""
        machines: Counter[Configuration] = Counter()
        for row, n in self.machines.items():  # a listed one and one of a set may be equal
            machines[configuration_of(jobs.problem, row)] += n
        return self.choices.schedule(jobs, machines)


class Dive:
    """One dive: a program that loses jobs as they decide, and blocks as machines are kept."""

    def __init__(self, diver: Diver, start: Undecided) -> None:
        self._jobs, self._region, self._budget = jobs, region, _ = diver.given
        self._rows, self._covers = diver.rows, diver.covers
        self._decided = start.decided
        self._picked: dict[Pick, int] = {}
        self._kept: dict[Row, int] = {}
        self._cost = Fraction(0)
        self._costs = [near(cost / region.unit) for cost in region.costs]
        self.steps = 0
        self.least: Fraction | None = None
        #: Blocks that are needed and on no machine yet.
        self._left = start.decided.load()
        self._program = LinearProgram()
        # What no machine holds has a price at which any machine is better.
        dear = 100.0 * max([1.0, *(cost for cost in self._costs if cost <= _HIGHEST)])
        self._missing = [self._program.variable(dear) for _ in self._left]
        self._needs = [
            self._program.row([(missing, 1.0)], low=float(left))
            for missing, left in zip(self._missing, self._left, strict=True)
        ]
        # As many machines as there are blocks are always enough.
        most = _MOST_IN_FLOATS if start.open else sum(self._left)
        self._room = Room([it for it in region.limits if it.at_most < most * it.size])
        self._limits = [
            self._program.row([], high=near(limit.at_most, limit.size))
            for limit in self._room.limits
        ]
        # What machines that cost nothing have is worth nothing.
        self._free = {
            i
            for row in region.rows
            if not region.costs[row.machine] and not self._room.counting(row.machine)
            for i, n in enumerate(row.counts)
            if n
        }
        self._listed = [row for row in region.rows if row.shape is not None]
        # The contents that fit what is left, with their variables; what those of sets hold.
        self._columns: dict[Row, int] = {}
        self._sets: list[Row] = []
        self._held: list[tuple[int, ...]] = []
        self._machines: dict[Row, float] = {}
        # The last prices of blocks, and what contents of each type are worth then.
        self._last: tuple[Sequence[int], Sequence[int]] = (), ()
        self._first: tuple[Sequence[int], Sequence[int]] | None = None
        # The kinds that are to choose: how many jobs, their row, and variables of their options.
        self._open = {kind: jobs.weight(kind) for kind in start.open}
        self._choose = {
            kind: self._program.row([], low=float(count)) for kind, count in self._open.items()
        }
        self._options: dict[Pick, int] = {}
        for kind, options in start.open.items():
            for option in options:
                self._add_option(kind, option)
        for row in self._rows:
            self._add(row)

    def run(
        self, skips: frozenset[int], below: Fraction | None, target: Fraction | None = None
    ) -> Dived | None:
        """Dive; None if there is no end, or none that costs less than ``below``.

        With a ``target``, all machines for what is left within that cost are looked through now and
        then: the last ones must waste less than prices alone tell.
        """
        rounds, region = _FIRST_ROUNDS, self._region
        paid = all(region.costs[bounded.machine] for bounded in region.bounded)
        blocks = _MOST_BLOCKS if paid and not self._listed else 0
        while self._open or any(self._left):
            solved = self._priced(rounds)
            rounds = _ROUNDS
            if solved is None:
                return None
            machines, options, least = solved
            if self.least is None:
                self.least = least
            if below is not None and least >= below:
                return None
            if self._open:
                if not self._decide(self._step(options, skips, len(self._open) // _TOGETHER)):
                    return None
                continue
            if target is not None and target >= least and sum(self._left) <= blocks:
                blocks = int(sum(self._left) * _FEWER)
                found, none = self._covered(target)
                if found:
                    break
                step = self._jobs.problem.cost_step
                if none and below is not None and next_below(below, step) <= target:
                    return None
            taken = self._step(machines, skips, 0)
            kept = [self._keep(row, number) for row, number in taken.items()]
            if not any(kept):
                return None
            self._close_improper()
        if below is not None and self._cost >= below:
            return None
        picks = [(kind, option, count) for (kind, option), count in self._picked.items()]
        choices = self._decided.joined(choices_of(picks, len(self._region.blocks)))
        return Dived(self._cost, dict(self._kept), choices)

    def _covered(self, target: Fraction) -> tuple[list[Row], bool]:
        """Keep machines for all that is left, if some are found within a cost."""
        self._first = self._first or self._last
        key = target - self._cost, tuple(self._left), tuple(self._room.left)
        if key not in self._covers:
            # Where prices have not settled the first ones may still tell more.
            told = (self._told(*each, target) for each in (self._last, self._first))
            _, prices, allowed, slack = min(told)
            there = self._region, self._left, prices, allowed, slack, self._room
            found, none = cover(*there, self._budget)
            # A limited type may be counted as worth more than is used of it.
            dear = sum(self._region.costs[row.machine] for row in found) > key[0]
            self._covers[key] = ([], False) if dear else (found, none)
        for row in self._covers[key][0]:
            self._keep(row, 1)
        return self._covers[key]

    def _told(
        self, prices: Sequence[int], worth: Sequence[int], target: Fraction
    ) -> tuple[Fraction, Sequence[int], list[int], int]:
        """Return the slack of :func:`cover` as a part of a cost; and what it is to be given."""
        worth, scale = self._scaled(prices, worth)
        costs = [int(cost * scale) for cost in self._region.costs]
        allowed = list(map(max, costs, worth))
        slack = int((target - self._cost) * scale) - sum(map(mul, prices, self._left))
        pairs = enumerate(zip(allowed, costs, strict=True))
        over = {m: Fraction(most - cost) for m, (most, cost) in pairs}
        slack += floor(self._room.worth(self._room.cheapest_prices(over)))
        return slack / scale, prices, allowed, slack

    def _step(self, values: Mapping[T, float], skips: frozenset[int], more: int) -> dict[T, int]:
        """Return what to keep: all that is whole, or else what there is most of."""
        whole = {key: floor(x + _GAIN) for key, x in values.items() if x >= 1 - _GAIN}
        if whole:
            return whole
        order = sorted(values, key=lambda key: (-values[key], key[:2]))
        self.steps += 1
        if self.steps - 1 in skips:
            order = order[1:2] or order
        else:
            order = [key for at, key in enumerate(order) if at <= more or values[key] >= _NEARLY]
        return dict.fromkeys(order, 1)

    def _decide(self, taken: Mapping[Pick, int]) -> bool:
        """Let jobs take options; say whether any did."""
        before = sum(self._open.values())
        for (kind, option), number in taken.items():
            number = min(number, self._open.get(kind, 0))
            if not number:
                continue
            self._picked[kind, option] = self._picked.get((kind, option), 0) + number
            for i, n in enumerate(option):
                if n:
                    self._left[i] += n * number
                    self._program.set_low(self._needs[i], float(self._left[i]))
            self._open[kind] -= number
            self._program.set_low(self._choose[kind], float(self._open[kind]))
            if not self._open[kind]:
                del self._open[kind]
                for pick in [pick for pick in self._options if pick[0] == kind]:
                    self._program.close(self._options.pop(pick), True)
        if not self._open:
            self._close_improper()
        return sum(self._open.values()) < before

    def _keep(self, row: Row, number: int) -> bool:
        """Keep machines as far as their blocks are still needed; say whether any was."""
        useful = [-(-left // n) for left, n in zip(self._left, row.counts, strict=True) if n]
        number = min(number, max(useful, default=0))
        room = self._room.most(row.machine)
        number = number if room is None else min(number, room)
        if number <= 0:
            return False
        self._room.take(row.machine, number)
        for at, _ in self._room.counting(row.machine):
            left, size = self._room.left[at], self._room.limits[at].size
            self._program.set_high(self._limits[at], near(left, size))
        self._kept[row] = self._kept.get(row, 0) + number
        self._cost += number * self._region.costs[row.machine]
        for i, n in enumerate(row.counts):
            if n and self._left[i]:
                self._left[i] = max(0, self._left[i] - n * number)
                self._program.set_low(self._needs[i], float(self._left[i]))
        return True

    def _wanted(self, row: Row) -> Sequence[int]:
        """Return the blocks of a machine that some job may take."""
        return row.counts if self._open else list(map(min, row.counts, self._left))

    def _add(self, row: Row) -> bool:
        """Add a content, without blocks that are not needed any more."""
        if row.shape is None and not self._open:
            row = row._replace(counts=tuple(map(min, row.counts, self._left)))
        cost = self._costs[row.machine]
        if row in self._columns or not any(row.counts) or cost > _HIGHEST:
            return False
        terms = [(self._needs[i], float(n)) for i, n in enumerate(self._wanted(row)) if n]
        terms += [(self._limits[at], part) for at, part in self._counting(row.machine)]
        self._columns[row] = self._program.column(cost, terms)
        if row.shape is None:
            self._held.append(row.counts)
            self._sets.append(row)
        return True

    def _counting(self, machine: int) -> list[tuple[int, float]]:
        """Return what a machine counts in the program's rows of limits."""
        limits = self._room.limits
        return [(at, near(n, limits[at].size)) for at, n in self._room.counting(machine)]

    def _add_option(self, kind: int, option: tuple[int, ...]) -> bool:
        if (kind, option) in self._options:
            return False
        terms = [(self._needs[i], -float(n)) for i, n in enumerate(option) if n]
        column = self._program.column(0.0, [(self._choose[kind], 1.0), *terms])
        self._options[kind, option] = column
        return True

    def _close_improper(self) -> None:
        """Close contents with blocks that are not needed; those in use go on without these."""
        if not self._sets:
            return
        improper = np.flatnonzero((integers(self._held) > integers(self._left)).any(axis=1))
        gone = [self._sets[at] for at in improper.tolist()]
        for row in gone:
            self._program.close(self._columns.pop(row), True)
        stay = np.delete(np.arange(len(self._held)), improper).tolist()
        self._held = [self._held[at] for at in stay]
        self._sets = [self._sets[at] for at in stay]
        for row in gone:
            if row in self._machines:
                self._add(row)

    def _priced(self, rounds: int) -> tuple[dict[Row, float], dict[Pick, float], Fraction] | None:
        """Solve the program with all that prices bring up; return its values and a bound."""
        while True:
            rounds -= 1
            answer = self._program.solve(self._budget, _WAYS)
            if answer is None:
                return None
            x = answer.values
            self._machines = {row: x[at] for row, at in self._columns.items() if x[at] > _GAIN}
            options = {pick: x[at] for pick, at in self._options.items() if x[at] > _GAIN}
            prices = [
                0 if i in self._free else max(0, int(answer.duals[row] * _GRID))
                for i, row in enumerate(self._needs)
            ]
            limits = [max(0.0, -answer.duals[at]) for at in self._limits]
            dual = {kind: answer.duals[row] for kind, row in self._choose.items()}
            more, worth = self._new_contents(prices, limits)
            self._last = prices, worth
            added, paid = self._new_options(prices, dual)
            if not rounds or not (added or more):
                break
        if any(x[at] > _GAIN for at in self._missing) and not self._open:
            return None  # for want of machines
        return self._machines, options, self._cost + self._at_least(prices, worth, paid)

    def _new_contents(
        self, prices: Sequence[int], limits: Sequence[float]
    ) -> tuple[bool, list[int]]:
        """Price contents; say whether any was added, and what machines are worth at most."""
        added, worth = False, [0] * len(self._costs)
        for bounded in self._region.bounded:
            m = bounded.machine
            cost = self._costs[m] + sum(limits[at] * part for at, part in self._counting(m))
            mine = [prices[i] for i in bounded.columns]
            most = bounded.most if self._open else [self._left[i] for i in bounded.columns]
            for number in range(_CONTENTS):
                patience = _PATIENCE if number else _FIRST_PATIENCE
                found = bounded.packing.fullest(mine, most, patience)
                if not number:
                    worth[m] = max(worth[m], found.ceiling)
                if found.value <= (cost + _GAIN) * _GRID:
                    break
                row = self._region.row_of(bounded, found.content)
                self._rows[row] = None
                added |= self._add(row)
                most = [n if not c else 0 for n, c in zip(most, found.content, strict=True)]
        return added, worth

    def _new_options(self, prices: Sequence[int], dual: Mapping[int, float]) -> tuple[bool, int]:
        """Price options of open kinds; say whether any was added, and what these pay."""
        added, paid = False, 0
        for kind, count in self._open.items():
            best = cheapest_bundle(prices, self._jobs.row(kind))
            if best is not None:
                paid += count * best.value
                if best.value < (dual[kind] - _GAIN) * _GRID:
                    added |= self._add_option(kind, best.option)
        return added, paid

    def _at_least(self, prices: Sequence[int], worth: Sequence[int], paid: int) -> Fraction:
        """Return what is left costs at least, by prices, exactly.

        No machine is worth more than it costs once prices are scaled to that; one that a limit
        counts may be, and the room that is left pays for it.
        """
        worth, scale = self._scaled(prices, worth)
        least = Fraction(sum(map(mul, prices, self._left)) + paid) / scale
        pairs = enumerate(zip(worth, self._region.costs, strict=True))
        over = {m: held / scale - cost for m, (held, cost) in pairs}
        return least - self._room.worth(self._room.cheapest_prices(over))

    def _scaled(self, prices: Sequence[int], worth: Sequence[int]) -> tuple[list[int], Fraction]:
        """Return what machines are worth, listed ones too, and what a cost of 1 counts as."""
        worth, costs = list(worth), self._region.costs
        for row in self._listed:
            held = sum(map(mul, prices, self._wanted(row)))
            worth[row.machine] = max(worth[row.machine], held)
        pairs = enumerate(zip(worth, costs, strict=True))
        ratios = [held / c for m, (held, c) in pairs if c and not self._room.counting(m)]
        return worth, max([_GRID / self._region.unit, *ratios])


class Diver:
    """Dives of one problem; the contents that it comes across are kept."""

    def __init__(self, jobs: Jobs, region: Region, budget: Budget) -> None:
        self.given = jobs, region, budget
        self.rows: dict[Row, None] = {}
        # What was found for blocks that are left, so that dives do not look twice.
        self.covers: dict[Any, tuple[list[Row], bool]] = {}
        self.used: dict[Row, None] = {}
        # How often the last dive chose: a dive that takes the second best later on is the same.
        self._choices = _DEPTH

    def dives(
        self, start: Undecided, target: Fraction, below: Fraction | None, which: slice
    ) -> Iterator[Dived]:
        """Yield cheaper and cheaper schedules."""
        jobs, region, budget = self.given
        if start.most_blocks(jobs) > _MOST_IN_FLOATS:
            return
        self.rows.update(dict.fromkeys(row for row in region.rows if any(row.counts)))
        for skips in _DISCREPANCIES[which]:
            if budget.stopped:
                return
            if skips and skips[-1] >= self._choices:
                continue
            dive = Dive(self, start)
            found = dive.run(frozenset(skips), below, target if skips else None)
            if found is not None:
                self._choices = dive.steps
                below = found.cost
                self.used.update(dict.fromkeys(found.machines))
                yield found
            if dive.least is None or dive.least > target:
                return  # what is decided needs more than that, however machines are cut
            if below is not None and below <= target:
                return
