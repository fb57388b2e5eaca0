"""Problems are hashed by what they mean: from objects and from arrays, in any order of blocks."""

from __future__ import annotations

import hashlib
import json
import struct
from itertools import permutations
from math import lcm
from typing import Any

from hypothesis import given

from cms.problem.parts import Configuration, DemandFunction
from cms.problem.problem import Problem
from tests.files.documents import problems
from tests.samples import mig, mig_from_arrays


def test_the_same_problem_by_hand_and_from_arrays_in_any_order_of_the_blocks() -> None:
    by_hand = mig()
    for blocks in permutations(("7g", "4g", "3g", "1g")):
        problem = mig_from_arrays(blocks)
        assert problem.blocks == blocks
        assert problem == by_hand
        assert hash(problem) == hash(by_hand)
        assert problem.sha256 == by_hand.sha256
        assert {problem: 1}[by_hand] == 1


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


def test_numbered_names_are_hashed_as_any_others() -> None:
    for n in (1_000, 66_001):  # in a leaf, and in two
        parts: dict[str, Any] = {"demands": [1] * n, "supply": [[2]] * n, "configurations": [[1]]}
        named = Problem.from_arrays(**parts, job_names=[f"j{j}" for j in range(n)])
        assert Problem.from_arrays(**parts).sha256 == named.sha256
