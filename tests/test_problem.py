"""Problems and their parts: what they take and refuse, their hash, and that they never change."""

from __future__ import annotations

import copy
import gc
import pickle
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from itertools import permutations
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.errors import InvalidProblem
from cms.files import problem_to_json
from cms.problem.parts import (
    Configuration,
    DemandFunction,
    GroupLimit,
    Job,
    MachineType,
    SizeBoundedConfigurations,
)
from cms.problem.problem import Problem
from cms.problem.row import Row
from cms.problem.rows import Rows
from cms.values.frozen import FrozenMap
from cms.values.names import NumberedNames
from tests.files.documents import problems
from tests.proofs_checks.streaming.folders import LEAF, hashed, leaf_of, rows_of
from tests.samples import mig, mig_from_arrays, refusal

HALVES = Configuration({"half": 2})
REFUSED = (AttributeError, TypeError, ValueError)

refused = partial(refusal, InvalidProblem)

PARTS = [
    FrozenMap({"b": 1, "a": 2}),
    DemandFunction({"b": 1, "a": "1/3"}),
    MachineType("a100", "1.5", 8),
    Configuration({"b": 2, "a": 1}, "a100"),
    SizeBoundedConfigurations({"b": 44, "a": "33.5"}, 132, "a100", 5),
    Job("bert", 1200, {"b": 90, "a": 0}),
]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: type(part).__name__)
def test_a_part_is_equal_to_its_copies_and_cannot_be_changed(part: Any) -> None:
    for twin in (pickle.loads(pickle.dumps(part)), copy.deepcopy(part), copy.copy(part)):
        assert type(twin) is type(part)
        assert twin == part
        assert {twin: 1}[part] == 1
    assert part != "b"
    fields = [name for name in dir(part) if not name.startswith("_") and name != "new"]
    for change in [partial(setattr, part, name, None) for name in [*fields, "new"]]:
        with pytest.raises((AttributeError, TypeError)):
            change()
    for name in fields:
        with pytest.raises((AttributeError, TypeError)):
            delattr(part, name)
    assert not hasattr(part, "__dict__")


@pytest.mark.parametrize(
    "kind", [dict, MappingProxyType, OrderedDict, partial(defaultdict, int), FrozenMap]
)
def test_what_a_part_was_made_of_may_be_any_mapping_and_change_later(kind: Any) -> None:
    table: dict[str, Any] = {np.str_("a"): np.uint8(1), "b": 0}
    made: Any = kind(table)
    parts: list[Any] = [
        Configuration(made, np.str_("m")).blocks,
        SizeBoundedConfigurations(kind({"a": 1}), 3).sizes,
        Job("x", "1/3", made).demand_function,
    ]
    table["a"] = 5
    assert parts == [{"a": 1}, {"a": 1}, {"a": 1, "b": 0}]
    assert {type(name) for part in parts for name in part} == {str}
    assert Configuration({"3g": 1, "1g": 4, "7g": 0}) == Configuration({"1g": 4, "3g": 1})
    assert Configuration({"a": 1}) != Configuration({"a": 1}, "m")
    assert not SizeBoundedConfigurations({"a": 1}, 3, max_blocks=1).allows({"a": 2})
    assert repr(Configuration({"3g": 1, "1g": 4}, "a100")) == "Configuration(4 x 1g + 3g on a100)"
    assert MachineType("h100", cost=0.1, limit=np.int64(0)) == MachineType("h100", "1/10", 0)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        MachineType("m").cost["a"] = 1  # type: ignore[index]


#: Of each: what is made, of what, and the place and value that are named.
BAD_PARTS: list[tuple[Any, tuple[Any, ...], str]] = [
    (MachineType, ("",), "''"),
    (MachineType, ("m", -1), "cost of machine type 'm' is -1"),
    *((MachineType, ("m", 1, limit), f"limit of machine type 'm' is {limit!r}")
      for limit in (-1, 2.0, "2", True)),
    (GroupLimit, ("", {"m": 1}, 1), "''"),
    (GroupLimit, ("g", {}, 1), "weights of group 'g'"),
    (GroupLimit, ("g", {"m": 0}, 1), "weights of group 'g'"),
    (GroupLimit, ("g", {"m": -1}, 1), "weight of machine type 'm' in group 'g' is -1"),
    (GroupLimit, ("g", {"m": 1}, "x"), "at_most of group 'g'"),
    (Configuration, ({},), "no blocks"),
    (Configuration, (["a"],), "['a']"),
    *((Configuration, ({"a": n},), f"count of block 'a' in a configuration is {n}")
      for n in (-1, 1.0, True)),
    (Configuration, ({"a\x9bb": 1},), r"'a\x9bb'"),
    (SizeBoundedConfigurations, ({}, 1), "without a block"),
    (SizeBoundedConfigurations, ({"b": 1, "a": 0}, 1), "size of block 'a' is 0"),
    (SizeBoundedConfigurations, ({"a": 1}, -1), "capacity is -1"),
    (SizeBoundedConfigurations, ({"a": 1}, 1, None, 0), "max_blocks is 0"),
    (Job, ("x\ty", 1, {}), r"'x\ty'"),
    (Job, ("x", -1, {}), "demand of job 'x' is -1"),
    (Job, ("x", 1, None), "demand_function of job 'x' is None"),
    (Job, ("x", 1, {"a": -1}), "supply of block 'a' to job 'x' is -1"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "arguments", "words"), BAD_PARTS)
def test_a_bad_part_is_refused(make: Any, arguments: tuple[Any, ...], words: str) -> None:
    assert words in refused(make, *arguments)


def test_a_problem_has_the_parts_it_was_given() -> None:
    problem = mig()
    assert problem.blocks == ("7g", "3g", "4g", "1g")  # as they appear, by name within one
    assert problem.machine_types == (MachineType("machine"),)
    assert [shape.machine for shape in problem.configurations] == ["machine"] * 3
    assert (problem.n_jobs, len(problem.jobs), len(problem.rows)) == (2, 2, 2)
    assert dict(problem.block_index) == {"7g": 0, "3g": 1, "4g": 2, "1g": 3}
    # 1200 and 310.5 over 2; 333.3 = 3333 / 10
    assert problem.rows.row(0) == Row(2400, (1600, 621, 0, 180), 2)
    assert problem.jobs[1] == Job("resnet", "333.3", {"1g": 40, "3g": 150, "7g": 380})
    assert problem.jobs[-1] == list(problem.jobs)[1] == problem.jobs[1:][0]
    assert repr(problem) == "Problem(2 jobs, 4 blocks, 3 configurations, 1 machine types)"
    assert problem.machine_type(None) is problem.machine_type("machine")
    for name in ("7g", "nobody", "", "j0", None, 5):
        with pytest.raises(KeyError):
            problem.job_index(name)  # type: ignore[arg-type]
        with pytest.raises(KeyError):
            problem.machine_type(name or "")  # type: ignore[arg-type]
    with pytest.raises(IndexError):
        problem.jobs[2]


def test_a_callable_is_asked_once_a_block_and_blamed_if_it_fails() -> None:
    asked: list[str] = []

    def make(function: Callable[[str], Any]) -> Problem:
        return Problem(configurations=Configuration({"a": 1, "b": 1}), jobs=[Job("x", 1, function)])

    def supply(block: str) -> float:
        asked.append(block)
        return {"a": 0.1, "b": 2}[block]

    problem = make(supply)
    assert problem.jobs[0].demand_function == {"a": Fraction(1, 10), "b": 2}
    assert problem.sha256 == pickle.loads(pickle.dumps(problem)).sha256
    assert asked == ["a", "b"]
    said = refused(make, {"a": 1}.__getitem__)
    assert "job 'x'" in said
    assert "block 'b' with KeyError" in said
    for result in (float("nan"), -1, None, "much", True):
        assert "supply of block 'a' to job 'x'" in refused(make, lambda _, result=result: result)
    with pytest.raises(KeyboardInterrupt):  # Ctrl-C is not the callable's fault
        make(lambda block: (_ for _ in ()).throw(KeyboardInterrupt))


ONE, TWO, CAP = Job("x", 1, {}), MachineType("m"), GroupLimit("m", {"m": 1}, 1)
BAD: list[tuple[dict[str, Any], str]] = [
    ({"configurations": None}, "configurations is None"),
    ({"configurations": ["a"]}, "configurations contains 'a'"),
    ({"jobs": ONE}, "jobs is Job(name='x'"),
    ({"jobs": [ONE, ONE]}, "two jobs are called 'x'"),
    ({"jobs": [Job("x", 1, {"haf": 1})]}, "job 'x' has a supply for the block 'haf'"),
    ({"machine_types": TWO}, "machine_types is MachineType(name='m'"),
    ({"machine_types": [TWO, TWO]}, "two machine types are called 'm'"),
    ({"machine_types": [TWO, MachineType("n")]}, "one of m, n"),
    ({"configurations": Configuration({"a": 1}, "A")}, "unknown machine type 'A'"),
    ({"group_limits": CAP}, "group_limits is GroupLimit(name='m'"),
    ({"group_limits": [CAP]}, "unknown machine type 'm'"),
    ({"machine_types": [TWO], "group_limits": [CAP]}, "group 'm' is called like a machine type"),
    ({"group_limits": [GroupLimit("g", {"machine": n}, 1) for n in (1, 2)]}, "two groups are call"),
]
BAD_ARRAYS: list[tuple[dict[str, Any], str]] = [
    ({"demands": [1]}, "(2, 2)"),
    ({"demands": [1, -2], "job_names": np.array(["a", "b"])}, "demand of job 'b' is -2"),
    ({"blocks": ["x"]}, "1 blocks are named"),
    ({"job_names": ["x"]}, "1 job names for 2 demands"),
    ({"configurations": [[1, 0, 0]]}, "(1, 3)"),
    ({"configurations": [np.ones((2, 2)), np.ones((2, 3))]}, "no array of counts"),
    ({"configurations": [[1, 0], [0, -1]]}, "configurations[1]: count of block 'b1'"),
    ({"configurations": np.ones((1, 2))}, "configurations[0]: count of block 'b0'"),
    ({"configurations": [Configuration({"B0": 1})]}, "'B0'"),
    ({"configurations": [Configuration({"b0": 1}), "b1"]}, "configurations contains 'b1'"),
    ({"configuration_machines": ["machine"]}, "1 configuration_machines for 2 configurations"),
    ({"configuration_machines": ["m", "m"]}, "unknown machine type 'm'"),
    ({"configurations": [Configuration({"b0": 1})], "configuration_machines": ["machine"]},
     "configuration_machines"),
]  # fmt: skip


@pytest.mark.parametrize(("parts", "words"), BAD)
def test_a_bad_problem_is_refused(parts: dict[str, Any], words: str) -> None:
    assert words in refused(Problem, **{"configurations": HALVES, **parts})


@pytest.mark.parametrize(("parts", "words"), BAD_ARRAYS)
def test_bad_arrays_are_refused(parts: dict[str, Any], words: str) -> None:
    good = {"demands": [1, 2], "supply": [[1, 0], [2, 3]], "configurations": [[1, 0], [0, 2]]}
    assert words in refused(Problem.from_arrays, **{**good, **parts})


def changes(problem: Problem) -> Iterator[Callable[[], object]]:
    for name in ("blocks", "configurations", "machine_types", "group_limits", "job_names", "rows",
                 "jobs", "new", "sha256", "block_index"):  # fmt: skip
        yield partial(setattr, problem, name, None)
    for name in ("blocks", "rows", "job_names"):
        yield partial(delattr, problem, name)
    yield partial(setattr, problem.rows, "demands", None)
    yield partial(problem.rows.demands.setflags, write=True)
    yield partial(problem.rows.supplies.__setitem__, (0, 0), 99)
    yield lambda: problem.block_index.update(a=1)  # type: ignore[attr-defined]
    yield lambda: problem.job_names.append("z")  # type: ignore[attr-defined]
    yield lambda: problem.configurations[0].blocks.update(z=1)  # type: ignore[union-attr]


@pytest.mark.parametrize("make", [mig, mig_from_arrays])
def test_a_problem_cannot_be_changed(make: Callable[[], Problem]) -> None:
    problem = make()
    before = problem.sha256
    for twin in (problem, pickle.loads(pickle.dumps(problem)), copy.deepcopy(problem)):
        for change in changes(twin):
            with pytest.raises(REFUSED):
                change()
        assert twin.compute_sha256() == before


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


@given(problems(), st.integers(0, 5))
def test_a_problem_equals_its_copies_and_is_another_with_a_part_replaced(
    problem: Problem, limit: int
) -> None:
    names = "configurations", "machine_types", "group_limits"
    parts = {name: getattr(problem, name) for name in names}
    for twin in (
        pickle.loads(pickle.dumps(problem)),
        pickle.loads(pickle.dumps(problem, protocol=2)),
        copy.deepcopy(problem),
        problem.replace(),
        Problem(jobs=problem.jobs, **parts),
    ):
        assert twin == problem
        assert {twin, problem} == {problem}
        assert list(twin.jobs) == list(problem.jobs)
    types = [MachineType(m.name, m.cost, limit) for m in problem.machine_types]
    limited = problem.replace(machine_types=[*types, MachineType("1 more")])
    assert limited != problem
    assert (limited.configurations, limited.rows) == (problem.configurations, problem.rows)
    assert limited.replace(machine_types=problem.machine_types) == problem
    one = GroupLimit("1 more", {types[0].name: 1}, limit)
    assert problem.replace(group_limits=[*problem.group_limits, one]) != problem
    fewer = problem.replace(configurations=problem.configurations[1:])
    assert fewer.blocks == problem.blocks  # even those that are on no machine now
    none = problem.replace(rows=Rows.from_fractions([], len(problem.blocks)), job_names=[])
    assert (none.n_jobs, none.configurations) == (0, problem.configurations)


def test_many_jobs_cost_no_python_object_each(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 10**5
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
        assert problem.job_index("j99999") == 99_999
    assert len(gc.get_objects()) - before < 1000
    assert problem.job_names == NumberedNames("j", n)
    rows = problem.rows
    stored = sum(array.nbytes for array in (rows.demands, rows.supplies, rows.denominators))
    assert stored == 4 * 8 * n  # demand, two supplies, denominator
    assert problem.jobs[-1].demand == Fraction(str(demands[-1]))


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
    """The bytes of docs/reference/files.md, from what a file says of a problem."""
    document = problem_to_json(problem)
    rows, blocks = rows_of(document), document["blocks"]
    leaves = [
        leaf_of(rows[at : at + LEAF], blocks, at, problem.job_names[at : at + LEAF])
        for at in range(0, len(rows), LEAF)
    ]
    return hashed(document, leaves)


@given(problems())
def test_the_hash_is_taken_over_the_bytes_that_the_documents_define(problem: Problem) -> None:
    assert problem.sha256 == sha256_by_definition(problem)
    assert problem.compute_sha256() == problem.sha256


def test_numbered_names_are_hashed_as_any_others() -> None:
    for n in (1_000, 66_001):  # in a leaf, and in two
        parts: dict[str, Any] = {"demands": [1] * n, "supply": [[2]] * n, "configurations": [[1]]}
        named = Problem.from_arrays(**parts, job_names=[f"j{j}" for j in range(n)])
        assert Problem.from_arrays(**parts).sha256 == named.sha256
