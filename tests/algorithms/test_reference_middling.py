"""The reference against another solver, on problems too large to enumerate.

The other side is the compact integer program in HiGHS (``tests.references.programs``). Numbers are
small integers, which its floats hold.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from cms import Configuration, Job, MachineType, Problem, Status, check, solve
from cms.fleet import gpu
from tests.references.programs import within

FEW, MANY = 4, 60
#: Of HiGHS, far more than it needs for most of these.
NODES = 20_000


def a100_tables(rng: random.Random) -> Problem:
    """A dozen or two services with arbitrary tables on the shapes of an A100."""
    shapes = [Configuration(shape.blocks) for shape in gpu("a100-80gb").configurations]
    blocks = sorted({block for shape in shapes for block in shape.blocks})
    return Problem(configurations=shapes, jobs=jobs_for(rng, blocks, rng.randint(6, 20)))


def several_types(rng: random.Random) -> Problem:
    """Machine types with costs, one of them limited, sharing their blocks."""
    blocks = [f"b{i}" for i in range(5)]
    types = [
        MachineType("small", rng.randint(2, 4)),
        MachineType("large", rng.randint(4, 8)),
        MachineType("few", 1, rng.randint(1, 4)),
    ]
    shapes = [
        Configuration(
            {b: rng.choice([0, 1, 1, 2]) for b in rng.sample(blocks, 3)} | {"b0": 1}, m.name
        )
        for m in types
        for _ in range(3)
    ]
    used = sorted({block for shape in shapes for block in shape.blocks})
    return Problem(
        configurations=shapes, jobs=jobs_for(rng, used, rng.randint(4, 12)), machine_types=types
    )


def covers_of_sets(rng: random.Random) -> Problem:
    """Jobs that need blocks of their own: the bound by prices often stays below the optimum."""
    blocks = [f"e{i}" for i in range(rng.randint(8, 14))]
    sets = [rng.sample(blocks, rng.randint(2, 4)) for _ in range(2 * len(blocks))]
    shapes = [Configuration(dict.fromkeys(chosen, 1)) for chosen in [*sets, blocks]][:-1]
    used = sorted({block for shape in shapes for block in shape.blocks})
    jobs = [Job(f"j-{b}", rng.randint(1, 3), {b: rng.randint(1, 2)}) for b in used]
    return Problem(configurations=shapes, jobs=jobs)


def jobs_for(rng: random.Random, blocks: list[str], number: int) -> list[Job]:
    jobs = []
    for j in range(number):
        supply = {block: rng.choice([0, rng.randint(5, 60)]) for block in blocks}
        supply["b0" if "b0" in blocks else blocks[-1]] = rng.randint(5, 60)
        jobs.append(Job(f"j{j}", rng.randint(1, 150), supply))
    return jobs


MIDDLING: list[Callable[[random.Random], Problem]] = [a100_tables, several_types, covers_of_sets]


def compare(family: Callable[[random.Random], Problem], numbers: range) -> int:
    """Hold the reference against HiGHS; return on how many problems both ended."""
    both = 0
    for number in numbers:
        problem = family(random.Random(number))
        expected, ended = within(problem, NODES)
        solution = solve(problem, "cp_sat", threads=1, time_limit=None)
        assert check(problem, solution.schedule) == ()
        if ended and solution.status is Status.OPTIMAL:
            assert solution.cost == expected, (family.__name__, number)
            both += 1
        elif ended and expected is not None:
            assert solution.lower_bound <= expected <= (solution.cost or expected)
    return both


@pytest.mark.parametrize("family", MIDDLING)
def test_the_reference_and_another_solver_agree(family: Callable[[random.Random], Problem]) -> None:
    assert compare(family, range(FEW)) >= FEW // 2


@pytest.mark.long
@pytest.mark.parametrize("family", MIDDLING)
def test_the_reference_and_another_solver_agree_on_many_problems(
    family: Callable[[random.Random], Problem], capsys: pytest.CaptureFixture[str]
) -> None:
    both = compare(family, range(FEW, FEW + MANY))
    with capsys.disabled():
        print(f"\n{family.__name__}: {both} of {MANY} ended on both sides, all alike")
    assert both >= MANY // 2
