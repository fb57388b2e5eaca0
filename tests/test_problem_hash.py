"""Problems are hashed by what they mean: from objects and from arrays, in any order of blocks."""

from __future__ import annotations

import hashlib
import json
import struct
from fractions import Fraction
from itertools import permutations
from math import lcm
from typing import Any

import pytest
from hypothesis import given

from cms.problem.parts import (
    Configuration,
    DemandFunction,
    Job,
    MachineType,
    SizeBoundedConfigurations,
)
from cms.problem.problem import Problem
from tests.files.documents import problems
from tests.samples import mig, mig_from_arrays

# --- objects and arrays give the same problem -----------------------------------------------------


def test_the_same_problem_by_hand_and_from_arrays_in_any_order_of_the_blocks() -> None:
    by_hand = mig()
    for blocks in permutations(("7g", "4g", "3g", "1g")):
        problem = mig_from_arrays(blocks)
        assert problem.blocks == blocks
        assert problem == by_hand
        assert hash(problem) == hash(by_hand)
        assert problem.sha256 == by_hand.sha256
        assert {problem: 1}[by_hand] == 1


@pytest.mark.parametrize(
    ("demand", "supply"),
    [
        (10**12, 1),
        (10**30, 10**18),
        (1, Fraction(1, 3)),
        (999.9999999999999, 333.3333333333333),
        (1, 0.0123456789012345),
        (0, 0),
        (0.0, -0.0),
        (5e-324, 1e308),
        (2**63, 1),
        ("1e3", "1/7"),
    ],
    ids=repr,
)
def test_difficult_numbers_are_the_same_by_hand_and_from_arrays(demand: Any, supply: Any) -> None:
    by_hand = Problem(
        configurations=Configuration({"b0": 1}),
        jobs=[Job("j0", demand, {"b0": supply}), Job("j1", 1, {"b0": 1})],
    )
    arrays = Problem.from_arrays(demands=[demand, 1], supply=[[supply], [1]], configurations=[[1]])
    assert arrays == by_hand
    assert arrays.rows.wide == by_hand.rows.wide
    table = {"b0": supply} if supply else {}
    assert arrays.jobs[0] == by_hand.jobs[0] == Job("j0", demand, table)


# --- the hash -------------------------------------------------------------------------------------


def sha256_by_definition(problem: Problem) -> str:
    """The bytes of docs/reference/files.md, from the public face of a problem."""
    blocks = sorted(problem.blocks)
    shapes: list[dict[str, Any]] = []
    for shape in problem.configurations:
        if isinstance(shape, Configuration):
            shapes.append({"machine": shape.machine, "blocks": dict(shape.blocks)})
        else:
            sizes = {block: str(size) for block, size in shape.sizes.items()}
            bounds = {"capacity": str(shape.capacity), "max_blocks": shape.max_blocks}
            shapes.append({"machine": shape.machine, "sizes": sizes, **bounds})
    types = [{"name": m.name, "cost": str(m.cost), "limit": m.limit} for m in problem.machine_types]
    head = {"blocks": blocks, "configurations": shapes, "machine_types": types}
    text = "cms-problem-2\n" + json.dumps(head, separators=(",", ":"), sort_keys=True) + "\n"
    data = text.encode()
    for begin in range(0, problem.n_jobs, 65_536):
        mine = problem.jobs[begin : begin + 65_536]
        names, table, late = "", b"", ""
        for j, job in enumerate(mine, begin):
            assert isinstance(job.demand_function, DemandFunction)
            numbers = [job.demand, *(job.demand_function(block) for block in blocks)]
            q = lcm(*(number.denominator for number in numbers))
            row = [q, *(int(q * number) for number in numbers)]
            names += job.name + "\n"
            if max(row) < 2**63:
                table += struct.pack(f"<{len(row)}q", *row)
            else:
                table += bytes(8 * len(row))
                late += ":".join(map(str, [j, *row])) + "\n"
        data += hashlib.sha256(names.encode() + b"\n" + table + late.encode()).digest()
    return hashlib.sha256(data).hexdigest()


@given(problems())
def test_the_hash_is_taken_over_the_bytes_that_the_documents_define(problem: Problem) -> None:
    assert problem.sha256 == sha256_by_definition(problem)
    assert problem.compute_sha256() == problem.sha256


def test_whatever_changes_the_meaning_changes_the_hash() -> None:
    def make(**parts: Any) -> Problem:
        given_parts: dict[str, Any] = {
            "configurations": [Configuration({"a": 1, "b": 1}, "m"), Configuration({"b": 2}, "m")],
            "jobs": [Job("x", 1, {"a": 1}), Job("y", 1, {"a": 1})],
            "machine_types": [MachineType("m", 1, 3)],
        }
        return Problem(**{**given_parts, **parts})

    a, b = make().configurations
    shares = [SizeBoundedConfigurations({"a": 1, "b": 1}, 2, "m", most) for most in (None, 2, 3)]
    different = [
        make(),
        make(configurations=[b, a]),
        make(configurations=[a, b, b]),
        make(configurations=[a, Configuration({"b": 3}, "m")]),
        *(make(configurations=[share]) for share in shares),
        make(configurations=[SizeBoundedConfigurations({"a": 1, "b": 2}, 2, "m")]),
        make(configurations=[SizeBoundedConfigurations({"a": 1, "b": 1}, 3, "m")]),
        make(machine_types=[MachineType("m", 2, 3)]),
        make(machine_types=[MachineType("m", 1, 4)]),
        make(machine_types=[MachineType("m", 1)]),
        make(machine_types=[MachineType("m", 1, 3), MachineType("n")]),
        make(jobs=[]),
        make(jobs=[Job("y", 1, {"a": 1}), Job("x", 1, {"a": 1})]),
        make(jobs=[Job("x", 1, {"a": 1}), Job("z", 1, {"a": 1})]),
        make(jobs=[Job("x", 2, {"a": 1}), Job("y", 1, {"a": 1})]),
        make(jobs=[Job("x", 2, {"a": 2}), Job("y", 1, {"a": 1})]),
        make(jobs=[Job("x", 1, {"b": 1}), Job("y", 1, {"a": 1})]),
        make(jobs=[Job("xy", 1, {"a": 1})]),
        make(jobs=[Job("x", 10**30, {"a": 1}), Job("y", 1, {"a": 1})]),
        make(jobs=[Job("x", 10**30, {"a": 2}), Job("y", 1, {"a": 1})]),
    ]
    assert len({problem.sha256 for problem in different}) == len(different)
    assert len(set(different)) == len(different)
