"""The whole method at the edges of the model, each with its optimum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cms import Configuration, MachineType, Problem, SizeBoundedConfigurations
from tests.algorithms.branch_and_price.parts import single
from tests.algorithms.branch_and_price.proving import of, proved

ONE, PAIR = Configuration({"a": 1}), Configuration({"a": 2, "b": 1})
FREE = (Configuration({"a": 1}, "free"), Configuration({"a": 1}, "paid"))

EDGES: dict[str, tuple[Callable[[], Problem], Any]] = {
    "no jobs": (lambda: Problem(configurations=ONE), 0),
    "no configurations": (lambda: of(jobs={"x": (0, {})}), 0),
    "no configuration for a job": (lambda: of(jobs={"x": (1, {})}), None),
    "one job": (lambda: of(ONE, jobs={"x": (5, {"a": 2})}), 3),
    "one block is enough": (lambda: of(ONE, jobs={"x": (5, {"a": 7})}), 1),
    "demand 0": (lambda: of(ONE, jobs={"x": (0, {"a": 2})}), 0),
    "demand 0 beside others": (
        lambda: of(PAIR, jobs={"x": (0, {"a": 2}), "y": (4, {"b": 1}), "z": (0, {})}),
        4,
    ),
    "demand 0 in a row of long numbers": (
        lambda: of(
            Configuration({"a": 4, "b": 2}),
            jobs={"x": (19, {"a": 4, "b": 4}), "nothing": (0, {"a": 10**30})},
        ),
        1,
    ),
    "a job that one block alone can serve": (
        lambda: of(
            Configuration({"a": 3, "b": 1}),
            Configuration({"a": 4}),
            jobs={"x": (5, {"b": 2}), "y": (9, {"a": 1, "b": 5})},
        ),
        3,
    ),
    "a block that no machine has": (
        lambda: Problem.from_arrays(
            demands=[5], supply=[[1, 9]], configurations=[ONE], blocks=["a", "nowhere"]
        ),
        5,
    ),
    "3 x 1/3": (lambda: of(ONE, jobs={"x": (1, {"a": "1/3"})}), 3),
    "3 x 0.1": (lambda: of(ONE, jobs={"x": (0.3, {"a": 0.1})}), 3),
    "a third and a half": (
        lambda: of(PAIR, jobs={"x": (1, {"a": "1/3", "b": "1/3"}), "y": (1, {"b": "1/2"})}),
        2,
    ),
    "equal ratios": (
        lambda: of(
            PAIR,
            Configuration({"a": 4}),
            jobs={f"x{j}": (100 + j, {"a": 2, "b": 4}) for j in range(9)},
        ),
        118,
    ),
    "free machines": (
        lambda: of(
            *FREE, jobs={"x": (500, {"a": 1})}, types=(MachineType("free", 0), MachineType("paid"))
        ),
        0,
    ),
    "two free machines": (
        lambda: of(
            *FREE,
            jobs={"x": (5, {"a": 1})},
            types=(MachineType("free", 0, 2), MachineType("paid", 3)),
        ),
        9,
    ),
    "limit 0": (
        lambda: of(
            *FREE,
            jobs={"x": (5, {"a": 1})},
            types=(MachineType("free", 0, 0), MachineType("paid", 3)),
        ),
        15,
    ),
    "limit 0 and nothing else": (
        lambda: single({"a": 1}, 5, {"a": 1}, limit=0),
        None,
    ),
    "a limit just kept": (lambda: single({"a": 2}, 5, {"a": 1}, cost="0.7", limit=3), "2.1"),
    "a limit missed by one": (lambda: single({"a": 2}, 5, {"a": 1}, limit=2), None),
    "all of a set too large": (
        lambda: of(SizeBoundedConfigurations({"a": 5, "b": 3}, 2), jobs={"x": (5, {"a": 1})}),
        None,
    ),
    "some of a set too large": (
        lambda: of(
            SizeBoundedConfigurations({"a": 5, "b": 3}, 4), jobs={"x": (5, {"a": 9, "b": 2})}
        ),
        3,
    ),
    "no blocks allowed but one": (
        lambda: of(
            SizeBoundedConfigurations({"a": 1}, 10, max_blocks=1), jobs={"x": (5, {"a": 1})}
        ),
        5,
    ),
}


@pytest.mark.parametrize("name", EDGES)
def test_an_edge_of_the_model_is_solved_and_proved(name: str) -> None:
    make, cost = EDGES[name]
    proved(make(), cost)


def test_blocks_of_a_trillion_on_one_machine() -> None:
    proved(of(Configuration({"a": 10**12}), jobs={"x": (5 * 10**12 + 1, {"a": 1})}), 6)
