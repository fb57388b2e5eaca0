"""Which configurations another one beats: against the definition, and in bounded time."""

from __future__ import annotations

import random

import pytest

from cms import Configuration, MachineType, Problem
from cms.presolver import dominance
from cms.presolver.dominance import beaten
from cms.presolver.presolve import presolve
from cms.running.stopping import Stopped
from tests.algorithms.branch_and_price.parts import Counting

BLOCKS = {block: i for i, block in enumerate("abc")}


def never() -> bool:
    return False


def case(seed: int) -> tuple[list[Configuration], list[MachineType]]:
    rng = random.Random(seed)
    types = [
        MachineType(f"m{m}", rng.choice([0, 1, 2]), rng.choice([None, None, 0, 3]))
        for m in range(rng.randint(1, 4))
    ]
    most = rng.choice([2, 3, 10**400])
    shapes = [
        Configuration(
            {b: rng.choice([1, 2, most]) for b in rng.sample("abc", rng.randint(1, 3))},
            rng.choice(types).name,
        )
        for _ in range(rng.randint(0, 14))
    ]
    return shapes, types


def by_definition(shapes: list[Configuration], types: list[MachineType]) -> list[bool]:
    kind = {machine.name: machine for machine in types}

    def beats(one: int, other: int) -> bool:
        rival, mine = kind[shapes[one].machine or ""], kind[shapes[other].machine or ""]
        if rival is not mine and (rival.limit is not None or rival.cost > mine.cost):
            return False
        return all(shapes[one].blocks.get(b, 0) >= shapes[other].blocks.get(b, 0) for b in BLOCKS)

    # Of two that beat each other, the first stays.
    return [
        any(
            one != other and beats(one, other) and (one < other or not beats(other, one))
            for one in range(len(shapes))
        )
        for other in range(len(shapes))
    ]


def test_those_are_beaten_that_the_definition_says() -> None:
    for seed in range(400):
        shapes, types = case(seed)
        assert beaten(shapes, types, BLOCKS, never).tolist() == by_definition(shapes, types), seed


@pytest.mark.parametrize("looks", [0, 1, 2, 3])
def test_reducing_is_left_at_the_look_that_says_so(looks: int) -> None:
    problem = Problem.from_arrays(
        demands=[5, 6], supply=[[7, 1], [1, 9]], configurations=[[1, 2], [2, 2], [3, 1]]
    )
    budget = Counting(looks)
    with pytest.raises(Stopped):
        presolve(problem, lambda: budget.stopped)
    assert budget.asked == looks + 1


def test_of_very_many_only_so_many_pairs_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is found then is beaten all the same, and the largest beat most of the others."""
    rng = random.Random(1)
    shapes = list({Configuration({b: rng.randint(1, 40) for b in "abc"}) for _ in range(3_000)})
    shapes = [Configuration(shape.blocks, "m") for shape in shapes]
    types = [MachineType("m")]
    every = beaten(shapes, types, BLOCKS, never)
    monkeypatch.setattr(dominance, "_IN_ALL", 0)
    some = beaten(shapes, types, BLOCKS, never)
    assert some.sum() < every.sum()
    assert not (some & ~every).any()
    assert some.sum() > every.sum() / 2
