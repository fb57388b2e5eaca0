"""However a problem is cut into shards, and whoever works them out, the answer is the same."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cms import Configuration, MachineType, Problem, Solution, check, solve
from cms.schedule.schedule import Schedule
from cms.shards.counts import Coded
from cms.shards.engine import Here, Loaded, Work
from cms.shards.problem import ShardedProblem
from cms.shards.schedule import ShardedSchedule, busy_machines
from instances.families import generate

#: Two numbers that hashes of rows by sums would take for one, doubled.
ALIKE = [a * 2 + 1 for a in np.random.default_rng(0).integers(1, 2**62, 2).tolist()]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2**64)), max_size=9), st.booleans())
@example([(ALIKE[1], 0), (0, ALIKE[0]), (ALIKE[1], 0)], False)
def test_options_by_their_numbers_are_the_table(rows: list[tuple[int, int]], short: bool) -> None:
    rows = [(a, b % 4) for a, b in rows] if short else rows
    large = max((b for _, b in rows), default=0) >= 2**63
    table = np.array(rows, dtype=object if large else np.int64).reshape(len(rows), 2)
    coded = Coded.of_table(table)
    assert coded.table().tolist() == table.tolist()
    assert len(coded.options) == len(set(rows))
    joined = Coded.joined([coded, coded], 2)
    assert joined.table().tolist() == table.tolist() * 2
    assert len(joined.options) == len(set(rows))


def test_a_table_may_have_more_columns_than_arrays_have_dimensions() -> None:
    table = np.eye(100, dtype=np.int64)
    assert Coded.of_table(table).table().tolist() == table.tolist()


def random_problem(rng: random.Random, n: int, k: int) -> Problem:
    """Jobs that differ, each of which wants something and can have it."""
    demands = rng.sample(range(10, 10_000), n)
    supply = [[rng.choice([0, *range(1, 900)]) for _ in range(k - 1)] + [7 + j] for j in range(n)]
    shapes = [[rng.randint(0, 3) for _ in range(k)] for _ in range(rng.randint(1, 4))]
    shapes.append([0] * (k - 1) + [rng.randint(1, 4)])
    types = [MachineType("a", rng.choice(["1", "2", "3/2"])), MachineType("b", rng.choice([1, 3]))]
    return Problem.from_arrays(
        demands=demands,
        supply=supply,
        configurations=[shape for shape in shapes if any(shape)],
        configuration_machines=[rng.choice("ab") for shape in shapes if any(shape)],
        machine_types=types,
    )


def counts_of(problem: ShardedProblem, schedule: Any) -> NDArray[Any]:
    """The blocks of every job, evaluated shard by shard or added up."""
    if isinstance(schedule, Schedule):
        schedule = ShardedSchedule.of(schedule, problem)
    parts = []
    for number, shard in enumerate(problem.shards):
        loaded = Loaded(number, shard.first, shard.rows(shard.read()))
        parts.append(schedule.counts[number].table(loaded))
    return np.concatenate(parts)


def scheduled(
    problem: ShardedProblem, machines: dict[Configuration, int], table: NDArray[Any]
) -> ShardedSchedule:
    parts = (table[shard.first : shard.first + shard.n_jobs] for shard in problem.shards)
    return ShardedSchedule(machines, tuple(map(Coded.of_table, parts)))


def answer(problem: ShardedProblem, solution: Solution) -> tuple[Any, ...]:
    """All of an answer but how long it took."""
    lines = [(line.cost, line.lower_bound, line.source) for line in solution.history]
    return (
        solution.status, solution.cost, solution.lower_bound, solution.certificate.to_json(),
        solution.schedule.machines, counts_of(problem, solution.schedule).tolist(), lines,
    )  # fmt: skip


def asked(problem: Any) -> Solution:
    solution = solve(problem, time_limit=None, threads=1)
    assert check(problem, solution.schedule) == ()
    return solution


@pytest.mark.parametrize("seed", range(18))
def test_the_answer_does_not_depend_on_the_cut(seed: int) -> None:
    rng = random.Random(seed)
    problem = random_problem(rng, rng.randint(2, 160), rng.randint(1, 5))
    if seed % 3 == 2:  # equal rows, and a job that wants nothing
        rows = problem.rows.take(np.array([rng.randrange(problem.n_jobs) for _ in range(14)]))
        idle = rows.with_rows({3: rows.row(3)._replace(demand=0)})
        problem = problem.replace(rows=idle, job_names=[f"j{j}" for j in range(14)])
    whole = ShardedProblem.of(problem)
    expected = answer(whole, asked(whole))
    for _ in range(2):
        cut = ShardedProblem.of(problem, size=rng.randint(1, problem.n_jobs))
        assert answer(cut, asked(cut)) == expected
    in_memory = asked(problem)
    assert in_memory.lower_bound == expected[2]
    assert in_memory.certificate.to_json() == expected[3] or in_memory.cost != expected[1]
    if in_memory.history[-1].source == expected[-1][-1][-1].replace("branch_and_price", "auto"):
        assert in_memory.cost == expected[1]


class Shuffled(Here):
    """Runs each function twice, in any order, as a cluster may."""

    def map(self, work: Work) -> Iterator[tuple[int, Any]]:
        for _ in range(2):
            found = list(super().map(work))
        random.Random(len(found)).shuffle(found)
        yield from found


def test_shards_in_any_order_and_twice_are_the_same() -> None:
    problem = generate("real-rows", n=1_000, seed=2)
    one, two = (
        ShardedProblem.of(problem, size=230),
        ShardedProblem.of(problem, size=230, engine=Shuffled()),
    )
    assert answer(one, asked(one)) == answer(two, asked(two))


@given(st.integers(0, 10**6))
def test_counts_and_machines_are_a_schedule_where_a_schedule_in_memory_is(seed: int) -> None:
    rng = random.Random(seed)
    problem = random_problem(rng, rng.randint(1, 12), rng.randint(1, 4))
    sharded = ShardedProblem.of(problem, size=rng.randint(1, 5))
    given_blocks = np.array(
        [[rng.randint(0, 3) for _ in problem.blocks] for _ in range(problem.n_jobs)]
    )
    load = given_blocks.sum(axis=0)
    machines: dict[Configuration, int] = {}
    for shape in problem.listed_configurations:
        machines[shape] = rng.randint(1, int(load.sum()) + 1)
    schedule = scheduled(sharded, machines, given_blocks)
    faults = check(sharded, schedule)
    at, blocks = np.nonzero(given_blocks)
    try:
        same = Schedule.from_counts(problem, machines, (at, blocks, given_blocks[at, blocks]))
    except ValueError:
        assert any(fault.kind == "blocks" for fault in faults)
        return
    in_memory = check(problem, same)
    assert [str(fault) for fault in faults] == [str(fault) for fault in in_memory]
    busy = busy_machines(machines, problem.blocks, load.tolist())
    assert busy == same.without_idle_machines().machines
    loaded = schedule.load(sharded)
    assert loaded == same


@pytest.mark.parametrize(
    "table",
    [
        np.array([[2], [-1]]),
        np.array([[2.0], [1.0]]),
        np.array([[2], [1.5]], dtype=object),
        np.array([[2], [None]], dtype=object),
        np.array([[2, 0], [1, 0]]),
    ],
)
def test_counts_that_are_none_are_told(table: NDArray[Any]) -> None:
    problem = Problem.from_arrays(demands=[7, 5], supply=[[4], [5]], configurations=[[2]])
    sharded, pair = ShardedProblem.of(problem), problem.listed_configurations[0]
    (fault,) = check(sharded, scheduled(sharded, {pair: 5}, table))
    assert "other counts of" in str(fault)
