"""What no problem can be made of, and how it is said."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from cms.errors import InvalidProblem
from cms.problem.parts import Configuration, Job, MachineType
from cms.problem.problem import Problem
from tests.samples import refusal

HALVES = Configuration({"half": 2})

refused = partial(refusal, InvalidProblem)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"configurations": None}, "configurations is None; expected a sequence of configurations"),
        ({"configurations": ["a"]}, "configurations contains 'a'; expected Configuration or Size"),
        ({"jobs": None}, "jobs is None; expected a sequence of Job objects"),
        ({"jobs": Job("x", 1, {})}, "jobs is Job(name='x', demand=Fraction(1, 1), demand_function"),
        ({"jobs": [Job("x", 1, {}), Job("x", 2, {})]}, "two jobs are called 'x'; every job needs"),
        (
            {"jobs": [Job("x", 1, {"3G": 1})], "configurations": Configuration({"3g": 1})},
            "job 'x' has a supply for the block '3G', which is in no configuration; nearest: '3g'",
        ),
        (
            {"jobs": [Job("x", 1, {"haf": 1})]},
            "job 'x' has a supply for the block 'haf', which is in no configuration; nearest: "
            "'half'",
        ),
        ({"machine_types": None}, "machine_types is None; expected a sequence of MachineType ob"),
        ({"machine_types": MachineType("m")}, "machine_types is MachineType(name='m', cost=Frac"),
        (
            {"machine_types": [MachineType("m"), MachineType("m", 2)]},
            "two machine types are called 'm'; every machine type needs a name of its own",
        ),
        (
            {"machine_types": [MachineType("m"), MachineType("n")]},
            "configuration Configuration(2 x half) does not say its machine type; write "
            "machine=... with one of m, n",
        ),
        (
            {
                "configurations": Configuration({"a": 1}, "A10"),
                "machine_types": [MachineType("a10")],
            },
            "configuration Configuration(a on A10) belongs to the unknown machine type 'A10'; "
            "known: a10; nearest: 'a10'",
        ),
        (
            {"configurations": Configuration({"a": 1}, "a100")},
            "configuration Configuration(a on a100) belongs to the unknown machine type 'a100'; "
            "known: machine",
        ),
    ],
)  # fmt: skip
def test_a_bad_problem_is_refused(parts: dict[str, Any], message: str) -> None:
    assert refused(Problem, **{"configurations": HALVES, **parts}).startswith(message)


GOOD: dict[str, Any] = {
    "demands": [1, 2],
    "supply": [[1, 0], [2, 3]],
    "configurations": [[1, 0], [0, 2]],
}


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"demands": 5}, "demands has shape (); expected (n,)"),
        ({"demands": [1]}, "supply has shape (2, 2); expected (1, 2): a row a job of demands and"),
        ({"demands": [1, None]}, "demand of job 'j1' is None; expected a finite number"),
        ({"demands": [1, -2], "job_names": np.array(["a", "b"])}, "demand of job 'b' is -2; exp"),
        ({"supply": [1, 2]}, "supply has shape (2,); expected (n, k)"),
        ({"supply": [[1, np.nan], [1, 2]]}, "supply of block 'b1' to job 'j0' is nan; expected"),
        ({"supply": [[1, 0], [2, -3]], "blocks": ["x", "y"]}, "supply of block 'y' to job 'j1' "),
        ({"blocks": ["x"]}, "1 blocks are named, supply has 2 columns"),
        ({"blocks": "xy"}, "block names are the text 'xy'; expected a list of names"),
        ({"job_names": ["x"]}, "1 job names for 2 demands"),
        ({"job_names": "ab"}, "job names are the text 'ab'; expected a list of names"),
        ({"configurations": [[1, 0, 0]]}, "configurations has shape (1, 3); expected (c, 2): a"),
        ({"configurations": [1, 0]}, "configurations has shape (2,); expected (c, 2): a row a con"),
        (
            {"configurations": [np.ones((2, 2)), np.ones((2, 3))]},
            "configurations is no array of counts: could not broadcast input array",
        ),
        ({"configurations": [[1, 0], [0, -1]]}, "configurations[1]: count of block 'b1' in a con"),
        ({"configurations": np.ones((1, 2))}, "configurations[0]: count of block 'b0' in a config"),
        ({"configurations": [[1, 0], [0, 0]]}, "configurations[1]: a configuration has no blocks"),
        (
            {"configurations": [Configuration({"B0": 1})]},
            "configuration Configuration(B0 on machine) has the block 'B0', which is not among the "
            "blocks; nearest: 'b0'",
        ),
        ({"configurations": [Configuration({"b0": 1}), "b1"]}, "configurations contains 'b1'; exp"),
        ({"configuration_machines": ["machine"]}, "1 configuration_machines for 2 configurations"),
        ({"configuration_machines": 7}, "configuration_machines is 7; expected a sequence of str"),
        ({"configuration_machines": ["m", "m"]}, "configuration Configuration(b0 on m) belongs to"),
        (
            {"configurations": [Configuration({"b0": 1})], "configuration_machines": ["machine"]},
            "configuration_machines goes with an array of counts; Configuration objects say their "
            "machine type themselves",
        ),
    ],
)  # fmt: skip
def test_bad_arrays_are_refused(parts: dict[str, Any], message: str) -> None:
    assert refused(Problem.from_arrays, **{**GOOD, **parts}).startswith(message)
