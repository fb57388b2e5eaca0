"""Problems: the same from objects and from arrays, immutable, hashed by what they mean."""

from __future__ import annotations

import copy
import gc
import hashlib
import json
import pickle
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from itertools import permutations
from math import lcm
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.errors import InvalidProblem
from cms.model import (
    AnyConfiguration,
    Configuration,
    DemandFunction,
    Job,
    MachineType,
    SizeBoundedConfigurations,
)
from cms.names import NumberedNames
from cms.problem import Problem
from cms.rows import Row, Rows
from tests.files.documents import problems

HALVES = Configuration({"half": 2})


def refused(make: Callable[..., object], *arguments: Any, **named: Any) -> str:
    with pytest.raises(InvalidProblem) as error:
        make(*arguments, **named)
    return str(error.value)


def mig() -> Problem:
    return Problem(
        configurations=[
            Configuration({"7g": 1}),
            Configuration({"4g": 1, "3g": 1}),
            Configuration({"1g": 7}),
        ],
        jobs=[
            Job("bert", demand=1200, demand_function={"1g": 90, "3g": "310.5", "7g": 800}),
            Job("resnet", "333.3", lambda block: {"1g": 40, "3g": 150, "7g": 380}.get(block, 0)),
        ],
    )


def mig_from_arrays(blocks: tuple[str, ...] = ("7g", "4g", "3g", "1g")) -> Problem:
    supply: dict[str, dict[str, float]] = {
        "bert": {"7g": 800, "4g": 0, "3g": 310.5, "1g": 90},
        "resnet": {"7g": 380, "4g": 0, "3g": 150, "1g": 40},
    }
    counts: list[dict[str, int]] = [{"7g": 1}, {"4g": 1, "3g": 1}, {"1g": 7}]
    return Problem.from_arrays(
        demands=[1200, 333.3],
        supply=[[table[block] for block in blocks] for table in supply.values()],
        configurations=[[count.get(block, 0) for block in blocks] for count in counts],
        blocks=blocks,
        job_names=list(supply),
    )


# --- what a problem is made of --------------------------------------------------------------------


def test_a_problem_has_the_parts_it_was_given() -> None:
    problem = mig()
    assert problem.blocks == ("7g", "3g", "4g", "1g")  # as they appear, by name within one
    assert problem.machine_types == (MachineType("machine"),)
    assert [shape.machine for shape in problem.configurations] == ["machine"] * 3
    assert problem.configurations[1] == Configuration({"4g": 1, "3g": 1}, "machine")
    assert problem.job_names == ("bert", "resnet")
    assert (problem.n_jobs, len(problem.jobs), len(problem.rows)) == (2, 2, 2)
    assert dict(problem.block_index) == {"7g": 0, "3g": 1, "4g": 2, "1g": 3}
    assert (problem.job_index("bert"), problem.job_index("resnet")) == (0, 1)
    assert problem.machine_type("machine") is problem.machine_types[0]
    # 1200 and 310.5 over 2; 333.3 = 3333 / 10
    assert problem.rows.row(0) == Row(2400, (1600, 621, 0, 180), 2)
    assert problem.rows.row(1) == Row(3333, (3800, 1500, 0, 400), 10)
    assert problem.jobs[1] == Job("resnet", "333.3", {"1g": 40, "3g": 150, "7g": 380})
    assert problem.jobs[-1] == list(problem.jobs)[1] == problem.jobs[1:][0]
    assert problem.cost_step == 1
    assert repr(problem) == "Problem(2 jobs, 4 blocks, 3 configurations, 1 machine types)"
    for name in ("7g", "nobody", "", "j0", None, 5):
        with pytest.raises(KeyError):
            problem.job_index(name)  # type: ignore[arg-type]
        with pytest.raises(KeyError):
            problem.machine_type(name)  # type: ignore[arg-type]
    with pytest.raises(IndexError):
        problem.jobs[2]


def test_configurations_of_both_kinds_stand_side_by_side() -> None:
    shares = SizeBoundedConfigurations({"mps:25": 25, "mps:50": 50}, 100, "shared", 48)
    listed = Configuration({"7g": 1, "mps:25": 1}, "a100")
    problem = Problem(
        configurations=[shares, listed],
        machine_types=[
            MachineType("a100", cost="0.6", limit=3),
            MachineType("shared", cost="0.4"),
            MachineType("spare"),  # a type without a configuration is of no use, and legal
        ],
    )
    assert problem.blocks == ("mps:25", "mps:50", "7g")
    assert problem.listed_configurations == (listed,)
    assert problem.size_bounded_configurations == (shares,)
    assert problem.cost_step == Fraction(1, 5)  # of 3/5, 2/5 and 1


@pytest.mark.parametrize("shapes", [HALVES, [HALVES], (HALVES,), iter([HALVES]), {HALVES: 1}])
def test_one_configuration_may_stand_for_a_list(shapes: Any) -> None:
    problem = Problem(configurations=shapes, jobs=iter([Job("x", 1, {"half": 1})]))
    assert problem.configurations == (Configuration({"half": 2}, "machine"),)
    assert problem.job_names == ("x",)


def test_a_problem_may_have_next_to_nothing() -> None:
    nothing = Problem(configurations=[])
    assert (nothing.blocks, nothing.n_jobs, nothing.cost_step) == ((), 0, 1)
    assert list(nothing.jobs) == []
    hopeless = Problem(configurations=[], jobs=[Job("x", 1, {}), Job("idle", 0, {})])
    assert hopeless.rows.row(0) == Row(1, (), 1)
    assert len({nothing.sha256, hopeless.sha256}) == 2
    one = Problem(configurations=Configuration({"b": 1}), jobs=[Job("x", 0, {"b": 0})])
    assert (one.rows.row(0), one.jobs[0].demand_function) == (Row(0, (0,), 1), {})


def test_jobs_may_be_alike_in_all_but_their_names() -> None:
    problem = Problem(configurations=HALVES, jobs=[Job(n, 1, {"half": "1/3"}) for n in "ab"])
    assert problem.rows.row(0) == problem.rows.row(1) == Row(3, (1,), 3)


def test_a_configuration_may_be_listed_twice() -> None:
    twice = Problem(configurations=[HALVES, HALVES])
    assert len(twice.configurations) == 2
    assert twice != Problem(configurations=[HALVES])


# --- demand functions that are callables ----------------------------------------------------------


def test_a_callable_is_asked_once_a_block_and_dropped() -> None:
    asked: list[str] = []

    def supply(block: str) -> float:
        asked.append(block)
        return {"a": 0.1, "b": 2}[block]

    problem = Problem(configurations=Configuration({"b": 1, "a": 1}), jobs=[Job("x", 1, supply)])
    assert problem.jobs[0].demand_function == {"a": Fraction(1, 10), "b": 2}
    assert type(problem.jobs[0].demand_function) is DemandFunction
    assert problem.sha256 == pickle.loads(pickle.dumps(problem)).sha256
    assert asked == ["a", "b"]


def test_a_callable_that_fails_is_blamed_with_its_job_and_block() -> None:
    def make(function: Callable[[str], Any]) -> Problem:
        return Problem(configurations=Configuration({"a": 1, "b": 1}), jobs=[Job("x", 1, function)])

    assert refused(make, {"a": 1}.__getitem__) == (
        "demand_function of job 'x' fails for block 'b' with KeyError: 'b'; return 0 for a block "
        "it cannot use"
    )
    with pytest.raises(InvalidProblem) as error:
        make(lambda block: 1 / 0)
    assert isinstance(error.value.__cause__, ZeroDivisionError)
    results: dict[Any, str] = {
        float("nan"): "supply of block 'a' to job 'x' is nan; expected a finite number",
        -1: "supply of block 'a' to job 'x' is -1; expected a number >= 0",
        None: "supply of block 'a' to job 'x' is None; expected a finite number",
        "much": "supply of block 'a' to job 'x': 'much' is not a number",
        True: "supply of block 'a' to job 'x' is True; expected a finite number",
    }
    for result, message in results.items():
        assert refused(make, lambda block, result=result: result).startswith(message)
    with pytest.raises(KeyboardInterrupt):  # Ctrl-C is not the callable's fault
        make(lambda block: (_ for _ in ()).throw(KeyboardInterrupt))


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"configurations": None}, "configurations is None; expected a sequence of configurations"),
        ({"configurations": 5}, "configurations is 5; expected a sequence of configurations"),
        ({"configurations": ["a"]}, "configurations contains 'a'; expected Configuration or Size"),
        ({"configurations": {"a": 1}}, "configurations contains 'a'; expected Configuration or"),
        ({"jobs": None}, "jobs is None; expected a sequence of Job objects"),
        ({"jobs": Job("x", 1, {})}, "jobs is Job(name='x', demand=Fraction(1, 1), demand_function"),
        ({"jobs": ["x"]}, "jobs contains 'x'; expected Job objects"),
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
        ({"machine_types": ["m"]}, "machine_types contains 'm'; expected MachineType objects"),
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
        ({"demands": [[1], [2]]}, "demands has shape (2, 1); expected (n,)"),
        ({"demands": [1]}, "supply has shape (2, 2); expected (1, 2): a row a job of demands and"),
        ({"demands": [1, None]}, "demand of job 'j1' is None; expected a finite number"),
        ({"demands": [1, -2], "job_names": np.array(["a", "b"])}, "demand of job 'b' is -2; exp"),
        ({"supply": [1, 2]}, "supply has shape (2,); expected (n, k)"),
        ({"supply": None}, "supply has shape (); expected (n, k)"),
        ({"supply": [[1], [1, 2]]}, "supply is no array: setting an array element with a sequ"),
        ({"supply": [[1, np.nan], [1, 2]]}, "supply of block 'b1' to job 'j0' is nan; expected"),
        ({"supply": [[1, 0], [2, -3]], "blocks": ["x", "y"]}, "supply of block 'y' to job 'j1' "),
        ({"blocks": ["x"]}, "1 blocks are named, supply has 2 columns"),
        ({"blocks": ["x", "x"]}, "two blocks are called 'x'; every block needs a name of its own"),
        ({"blocks": "xy"}, "block names are the text 'xy'; expected a list of names"),
        ({"blocks": 2}, "block names are 2; expected a list of names"),
        ({"job_names": ["x"]}, "1 job names for 2 demands"),
        ({"job_names": ["x", "x"]}, "two jobs are called 'x'; every job needs a name of its own"),
        ({"job_names": "ab"}, "job names are the text 'ab'; expected a list of names"),
        ({"job_names": [1, 2]}, "job name is 1; expected a text that is not empty"),
        ({"configurations": [[1, 0, 0]]}, "configurations has shape (1, 3); expected (c, 2): a"),
        ({"configurations": [1, 0]}, "configurations has shape (2,); expected (c, 2): a row a con"),
        ({"configurations": 5}, "configurations has shape (); expected (c, 2): a row a configur"),
        ({"configurations": [[1], [1, 2]]}, "configurations has shape (2,); expected (c, 2): a r"),
        (
            {"configurations": [np.ones((2, 2)), np.ones((2, 3))]},
            "configurations is no array of counts: could not broadcast input array",
        ),
        ({"configurations": [[1, 0], [0, -1]]}, "configurations[1]: count of block 'b1' in a con"),
        ({"configurations": [[1, 0], [0, 0.5]]}, "configurations[1]: count of block 'b1' in a con"),
        ({"configurations": np.ones((1, 2))}, "configurations[0]: count of block 'b0' in a config"),
        ({"configurations": np.ones((1, 2), bool)}, "configurations[0]: count of block 'b0' in a "),
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
        ({"machine_types": ["m"]}, "machine_types contains 'm'; expected MachineType objects"),
    ],
)  # fmt: skip
def test_bad_arrays_are_refused(parts: dict[str, Any], message: str) -> None:
    assert refused(Problem.from_arrays, **{**GOOD, **parts}).startswith(message)


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


def test_numbers_that_mean_the_same_make_the_same_problem() -> None:
    def make(demand: Any, supply: Any) -> Problem:
        return Problem(configurations=HALVES, jobs=[Job("x", demand, {"half": supply})])

    same = [
        make(d, f) for d, f in [(1, 0.5), ("1.0", "1/2"), ("3/3", np.float32(0.5)), (1.0, ".5")]
    ]
    assert len(set(same)) == 1
    assert make(1, "0.3333333333333333") != make(1, "1/3")


@pytest.mark.parametrize(
    "kind", [np.int8, np.uint64, np.float32, np.float64, np.longdouble, object]
)
def test_the_kind_of_the_arrays_does_not_matter(kind: Any) -> None:
    problem = Problem.from_arrays(
        demands=np.array([5, 7], dtype=kind),
        supply=np.array([[1, 2, 3], [4, 5, 6]], dtype=kind)[:, ::2],
        configurations=np.array([[1, 0], [3, 2]], dtype=np.uint16),
    )
    assert problem == Problem.from_arrays(
        demands=[5, 7], supply=[[1, 3], [4, 6]], configurations=[[1, 0], [3, 2]]
    )
    assert problem.jobs[1] == Job("j1", 7, {"b0": 4, "b1": 6})
    assert [str(shape) for shape in problem.configurations] == ["b0", "3 x b0 + 2 x b1"]


def test_arrays_may_be_combined_with_configurations_of_any_kind() -> None:
    types = [MachineType("m"), MachineType("n", 2)]
    shapes: list[AnyConfiguration] = [
        Configuration({"b1": 1}, "m"),
        SizeBoundedConfigurations({"b0": 1}, 3, "n"),
    ]
    ways: list[Any] = [shapes, tuple(shapes), iter(shapes)]
    for given_shapes in ways:
        problem = Problem.from_arrays(
            demands=[1], supply=[[1, 2]], configurations=given_shapes, machine_types=types
        )
        assert problem.configurations == tuple(shapes)
    one = Problem.from_arrays(
        demands=[1], supply=[[1]], configurations=SizeBoundedConfigurations({"b0": 1}, 3)
    )
    assert one.size_bounded_configurations[0].machine == "machine"
    named = Problem.from_arrays(
        demands=[1],
        supply=[[1, 2]],
        configurations=[[0, 1], [1, 0]],
        configuration_machines=["n", "m"],
        machine_types=types,
    )
    assert [shape.machine for shape in named.configurations] == ["n", "m"]


def test_a_block_may_be_in_no_configuration_when_it_is_named() -> None:
    problem = Problem.from_arrays(
        demands=[1], supply=[[0, 5]], configurations=Configuration({"here": 1}),
        blocks=["here", "nowhere"],
    )  # fmt: skip
    assert problem.blocks == ("here", "nowhere")
    assert problem.jobs[0].demand_function == {"nowhere": 5}


@pytest.mark.parametrize("empty", [[], np.empty((0, 2), dtype=int), np.empty((0, 2)), ()])
def test_arrays_may_be_empty(empty: Any) -> None:
    problem = Problem.from_arrays(
        demands=np.array([]), supply=np.empty((0, 2)), configurations=empty
    )
    assert (problem.n_jobs, problem.blocks, problem.configurations) == (0, ("b0", "b1"), ())
    assert problem.job_names == NumberedNames("j", 0)
    assert problem == pickle.loads(pickle.dumps(problem))


# --- the hash -------------------------------------------------------------------------------------


def sha256_by_definition(problem: Problem) -> str:
    """The bytes of docs/files.md, from the public face of a problem."""
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
    text = "cms-problem-1\n" + json.dumps(head, separators=(",", ":"), sort_keys=True) + "\n"
    data = text.encode() + "".join(job.name + "\n" for job in problem.jobs).encode() + b"\n"
    late = ""
    for j, job in enumerate(problem.jobs):
        assert isinstance(job.demand_function, DemandFunction)
        numbers = [job.demand, *(job.demand_function(block) for block in blocks)]
        q = lcm(*(number.denominator for number in numbers))
        row = [q, *(int(q * number) for number in numbers)]
        if max(row) < 2**63:
            data += struct.pack(f"<{len(row)}q", *row)
        else:
            data += bytes(8 * len(row))
            late += ":".join(map(str, [j, *row])) + "\n"
    return hashlib.sha256(data + late.encode()).hexdigest()


@given(problems())
def test_the_hash_is_taken_over_the_bytes_that_the_documents_define(problem: Problem) -> None:
    assert problem.sha256 == sha256_by_definition(problem)
    assert problem.compute_sha256() == problem.sha256


def test_the_hash_does_not_depend_on_the_process() -> None:
    code = (
        "from cms import *;"
        "print(Problem(configurations=[Configuration({'b': 1, 'a': 2}), SizeBoundedConfigurations("
        "{'c': 2, 'a': '1/3'}, 7)], jobs=[Job('x', '1/3', {'a': 2, 'c': 10**30})]).sha256)"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, check=True,
            capture_output=True, text=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(seen) == 1


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


# --- what cannot be changed -----------------------------------------------------------------------


def changes(problem: Problem) -> Iterator[Callable[[], object]]:
    for name in ("blocks", "configurations", "machine_types", "job_names", "rows", "jobs", "new",
                 "sha256", "block_index"):  # fmt: skip
        yield partial(setattr, problem, name, None)
    for name in ("blocks", "rows", "job_names"):
        yield partial(delattr, problem, name)
    yield partial(setattr, problem.rows, "demands", None)
    yield partial(problem.rows.demands.setflags, write=True)
    yield partial(problem.rows.supplies.__setitem__, (0, 0), 99)
    yield lambda: problem.block_index.update(a=1)  # type: ignore[attr-defined]
    yield lambda: problem.job_names.append("z")  # type: ignore[attr-defined]
    yield lambda: problem.jobs.append("z")  # type: ignore[attr-defined]
    yield lambda: problem.configurations[0].blocks.update(z=1)  # type: ignore[union-attr]


@pytest.mark.parametrize("make", [mig, mig_from_arrays])
def test_a_problem_cannot_be_changed(make: Callable[[], Problem]) -> None:
    problem = make()
    before = problem.sha256
    for twin in (problem, pickle.loads(pickle.dumps(problem)), copy.deepcopy(problem)):
        for change in changes(twin):
            with pytest.raises((AttributeError, TypeError, ValueError)):
                change()
        assert twin.compute_sha256() == before
    with pytest.raises(
        AttributeError, match="a Problem is immutable: 'rows' cannot be set; use re"
    ):
        problem.rows = None  # type: ignore[assignment]


def test_the_arrays_it_was_made_of_may_change_later() -> None:
    demands, supply = np.array([5.5, 6]), np.array([[1, 2], [3, 4]])
    counts, names, blocks = np.array([[1, 1]]), ["x", "y"], ["p", "q"]
    problem = Problem.from_arrays(
        demands=demands, supply=supply, configurations=counts, job_names=names, blocks=blocks
    )
    before = problem.compute_sha256()
    for array in (demands, supply, counts):
        array[:] = 99
    names[0] = blocks[0] = "changed"
    assert problem.compute_sha256() == before


@given(problems())
def test_a_problem_equals_its_copies_and_hashes_alike(problem: Problem) -> None:
    for twin in (
        pickle.loads(pickle.dumps(problem)),
        pickle.loads(pickle.dumps(problem, protocol=2)),
        copy.deepcopy(problem),
        problem.replace(),
        Problem(
            configurations=problem.configurations,
            jobs=problem.jobs,
            machine_types=problem.machine_types,
        ),
    ):
        assert twin == problem
        assert hash(twin) == hash(problem)
        assert {twin, problem} == {problem}
        assert list(twin.jobs) == list(problem.jobs)
    assert problem != "problem"
    assert problem != problem.replace(machine_types=[*problem.machine_types, MachineType("1 more")])


# --- replacing parts ------------------------------------------------------------------------------


@given(problems(), st.integers(0, 5))
def test_replace_exchanges_one_part_and_keeps_the_others(problem: Problem, limit: int) -> None:
    types = [MachineType(m.name, m.cost, limit) for m in problem.machine_types]
    limited = problem.replace(machine_types=types)
    assert limited.machine_types == tuple(types)
    assert limited.configurations == problem.configurations
    assert limited.rows is problem.rows
    assert limited.replace(machine_types=problem.machine_types) == problem
    fewer = problem.replace(configurations=problem.configurations[1:])
    assert fewer.blocks == problem.blocks  # even those that are on no machine now
    assert fewer.configurations == problem.configurations[1:]
    assert fewer.replace(configurations=problem.configurations) == problem
    none = problem.replace(rows=Rows.from_fractions([], len(problem.blocks)), job_names=[])
    assert (none.n_jobs, none.configurations) == (0, problem.configurations)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (
            {"configurations": [Configuration({"5g": 1})]},
            "configuration Configuration(5g on machine) has the block '5g', which is not among the "
            "blocks",
        ),
        (
            {"configurations": [Configuration({"1G": 1})]},
            "configuration Configuration(1G on machine) has the block '1G', which is not among the "
            "blocks; nearest: '1g'",
        ),
        ({"machine_types": [MachineType("a")]}, "configuration Configuration(7g on machine) belo"),
        ({"job_names": ["one"]}, "2 rows of 4 blocks do not fit 1 job names and 4 blocks"),
        ({"job_names": ["one", "one"]}, "two jobs are called 'one'"),
        ({"job_names": "ab"}, "job names are the text 'ab'"),
        ({"rows": [(1, [1])]}, "rows is [(1, [1])]; expected Rows"),
        (
            {"rows": Rows.from_arrays([1, 2], [[1], [2]], "ab", "x")},
            "2 rows of 1 blocks do not fit 2 job names and 4 blocks",
        ),
    ],
)
def test_replace_refuses_what_does_not_fit(parts: dict[str, Any], message: str) -> None:
    assert refused(mig().replace, **parts).startswith(message)


# --- millions of jobs -----------------------------------------------------------------------------


def test_a_million_jobs_cost_no_python_object_each(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 10**6
    rng = np.random.default_rng(0)
    demands, supply = rng.integers(1, 10**6, n) / 100, rng.integers(0, 1000, (n, 2))

    def refuse(*_: object) -> None:
        raise AssertionError("a Job was made")

    gc.collect()
    before = len(gc.get_objects())
    with monkeypatch.context() as patched:
        patched.setattr(Job, "__init__", refuse)
        problem = Problem.from_arrays(
            demands=demands, supply=supply, configurations=[[7, 0], [1, 3]]
        )
        assert len(problem.sha256) == 64
        assert (problem.n_jobs, len(problem.jobs)) == (n, n)
        assert problem.job_index("j999999") == 999_999
    assert len(gc.get_objects()) - before < 1000
    assert problem.job_names == NumberedNames("j", n)
    stored = sum(
        array.nbytes
        for array in (problem.rows.demands, problem.rows.supplies, problem.rows.denominators)
    )
    assert stored == 4 * 8 * n  # demand, two supplies, denominator
    last = problem.jobs[-1]
    assert (last.name, last.demand) == ("j999999", Fraction(str(demands[-1])))
    assert [job.name for job in problem.jobs[5:8]] == ["j5", "j6", "j7"]


def test_many_jobs_may_have_names_of_their_own() -> None:
    n = 300_000
    names = [f"service {i}" for i in range(n)]
    problem = Problem.from_arrays(
        demands=np.ones(n, dtype=np.int8), supply=np.ones((n, 1), dtype=np.int8),
        configurations=[[1]], job_names=names,
    )  # fmt: skip
    assert problem.job_index("service 299999") == 299_999
    assert problem.jobs[7] == Job("service 7", 1, {"b0": 1})
