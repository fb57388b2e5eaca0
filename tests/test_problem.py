"""Problems: what they are made of, that they never change, and that jobs cost no object each."""

from __future__ import annotations

import copy
import gc
import pickle
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.errors import InvalidProblem
from cms.problem.parts import (
    Configuration,
    DemandFunction,
    Job,
    MachineType,
    SizeBoundedConfigurations,
)
from cms.problem.problem import Problem
from cms.problem.rows import Row, Rows
from cms.values.names import NumberedNames
from tests.files.documents import problems
from tests.samples import mig, mig_from_arrays, refusal

HALVES = Configuration({"half": 2})

refused = partial(refusal, InvalidProblem)


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
    assert problem.machine_type(None) is problem.machine_types[0]
    for name in ("7g", "nobody", "", "j0", None, 5):
        with pytest.raises(KeyError):
            problem.job_index(name)  # type: ignore[arg-type]
        with pytest.raises(KeyError):
            problem.machine_type(name or "")  # type: ignore[arg-type]
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


def test_a_problem_may_have_next_to_nothing() -> None:
    nothing = Problem(configurations=[])
    assert (nothing.blocks, nothing.n_jobs, nothing.cost_step) == ((), 0, 1)
    assert list(nothing.jobs) == []
    hopeless = Problem(configurations=[], jobs=[Job("x", 1, {}), Job("idle", 0, {})])
    assert hopeless.rows.row(0) == Row(1, (), 1)
    assert len({nothing.sha256, hopeless.sha256}) == 2
    one = Problem(configurations=Configuration({"b": 1}), jobs=[Job("x", 0, {"b": 0})])
    assert (one.rows.row(0), one.jobs[0].demand_function) == (Row(0, (0,), 1), {})


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


# --- millions of jobs -----------------------------------------------------------------------------


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
        assert (problem.n_jobs, len(problem.jobs)) == (n, n)
        assert problem.job_index("j99999") == 99_999
    assert len(gc.get_objects()) - before < 1000
    assert problem.job_names == NumberedNames("j", n)
    stored = sum(
        array.nbytes
        for array in (problem.rows.demands, problem.rows.supplies, problem.rows.denominators)
    )
    assert stored == 4 * 8 * n  # demand, two supplies, denominator
    last = problem.jobs[-1]
    assert (last.name, last.demand) == ("j99999", Fraction(str(demands[-1])))
    assert [job.name for job in problem.jobs[5:8]] == ["j5", "j6", "j7"]
