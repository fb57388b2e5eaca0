"""Numbers of every magnitude, in every place, for every method: an answer or a reason."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.prices.master import block_sizes
from algorithms.prices.region import Region
from algorithms.solvers.floats import LARGEST_FLOAT, near, near_table, recognised
from cms import (
    Configuration,
    Job,
    MachineType,
    Problem,
    Proof,
    SizeBoundedConfigurations,
    Solution,
    Status,
    UnsupportedProblem,
    algorithms,
    check,
    solve,
)
from tests.property.problems import share
from tests.samples import few, spread

Exact = int | Fraction

#: A double ends at 10**308, an int64 at 2**63, and a Python number that is read at 10**4300.
MAGNITUDES = (10**4000, 2**63 - 1, 10**30, 10**309)
WHOLE = ("count", "limit", "most")
LISTED, BOUNDED = ("count", "limit", "cost", "demand", "supply"), ("most", "capacity", "size")
PLACES = (*LISTED, *BOUNDED)


def fleet(bounded: bool, numbers: Mapping[str, Exact], jobs: int = 1) -> Problem:
    """One or some small jobs on machines of two types; some numbers are others."""
    given_ = {"count": 2, "cost": 3, "demand": 5, "supply": 2, "capacity": 7, "size": 2} | dict(
        numbers
    )
    limit, most = numbers.get("limit"), numbers.get("most", 4)
    assert limit is None or isinstance(limit, int)
    assert isinstance(most, int)
    count = given_["count"]
    assert isinstance(count, int)
    shape: Configuration | SizeBoundedConfigurations = Configuration({"a": count, "b": 1}, "m")
    if bounded:
        sizes = {"a": given_["size"], "b": 3}
        shape = SizeBoundedConfigurations(sizes, given_["capacity"], "m", most)
    others = [Job(f"y{j}", 4 + j % 3, {"a": 1 + j % 2, "b": 2}) for j in range(jobs - 1)]
    return Problem(
        configurations=[shape, Configuration({"b": 2}, "n"), Configuration({"a": 3}, "n")],
        jobs=[Job("x", given_["demand"], {"a": given_["supply"], "b": 3}), *others],
        machine_types=[MachineType("m", given_["cost"], limit), MachineType("n", 2)],
    )


def only(numbers: Mapping[str, Exact]) -> Problem:
    """A single size-bounded set, without limits."""
    shape = SizeBoundedConfigurations(
        {"a": numbers.get("size", 2), "b": 3}, numbers.get("capacity", 7)
    )
    job = Job("x", numbers.get("demand", 5), {"a": numbers.get("supply", 2), "b": 3})
    return Problem(configurations=shape, jobs=[job])


def checked(problem: Problem, solution: Solution) -> None:
    """A schedule that holds and a bound that is proved, or a proof that there is none."""
    if solution.status is Status.INFEASIBLE:
        assert solution.certificate.proves_infeasible(problem)
        return
    assert solution.schedule.groups
    assert check(problem, solution.schedule) == ()
    assert solution.certificate.bound(problem) <= solution.lower_bound <= (solution.cost or 0)


@pytest.mark.parametrize(
    ("method", "place"),
    [
        pytest.param(method, place, marks=[pytest.mark.long] if (i + j) % 4 else [])
        for i, method in enumerate(sorted(algorithms()))
        for j, place in enumerate(PLACES)
    ],
)
@pytest.mark.parametrize("number", few(1, [10**310, 2**64]), ids=lambda n: f"{len(str(n))} digits")
def test_no_method_breaks_on_a_number_of_any_magnitude(
    number: int, method: str, place: str
) -> None:
    values: list[Exact] = [number] if place in WHOLE else [number, Fraction(1, number)]
    for value in values:
        problems = [fleet(place in BOUNDED, {place: value})]
        if place not in WHOLE:
            problems.append(only({place: value}))
        for problem in problems:
            try:
                solution = solve(problem, method, time_limit=None, threads=1)
            except UnsupportedProblem:
                assert method != "auto"
            else:
                checked(problem, solution)


@pytest.mark.parametrize(
    "number", few(1, MAGNITUDES), ids=lambda number: f"10**{len(str(number)) - 1}"
)
@pytest.mark.parametrize("place", spread(4, [place for place in PLACES if place != "demand"]))
def test_auto_ends_small_problems_of_any_magnitude_with_a_proof(place: str, number: int) -> None:
    """All places but the demand: of 10**18 machines the last one may stay open."""
    for jobs in (1, 6):
        solution = solve(fleet(place in BOUNDED, {place: number}, jobs), threads=1)
        assert solution.status is Status.OPTIMAL
        assert solution.proof is not Proof.NONE


_ANY = st.builds(
    lambda digits, more, upside: Fraction(10**digits + more) ** (1 if upside else -1),
    st.sampled_from((0, 9, 16, 19, 40, 308, 320, 1000)),
    st.integers(0, 9),
    st.booleans(),
)


@share(4)
@given(st.data(), st.booleans(), st.integers(1, 3))
def test_auto_answers_whatever_the_magnitudes(
    data: st.DataObject, bounded: bool, jobs: int
) -> None:
    """Up to three numbers at once: a checked schedule and a proved bound."""
    places = data.draw(st.lists(st.sampled_from(PLACES), min_size=1, max_size=3, unique=True))
    numbers = {place: data.draw(_ANY) for place in places}
    whole = {p: max(1, int(n)) if p in WHOLE else n for p, n in numbers.items()}
    problem = fleet(bounded, whole, jobs)
    checked(problem, solve(problem, time_limit=None, threads=1))


# --- the parts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("sign", [1, -1])
def test_numbers_beyond_the_floats_are_cut_and_tiny_ones_are_nothing(sign: int) -> None:
    huge = 10**400
    assert near(sign * huge) == near(Fraction(sign * huge, 3)) == sign * LARGEST_FLOAT
    assert near(sign * huge, huge) == sign
    assert near(Fraction(sign, huge)) == 0
    assert near_table([[sign * huge, 1]]).tolist() == [[sign * LARGEST_FLOAT, 1]]


def test_a_number_no_float_holds_is_not_recognised_as_nothing() -> None:
    assert recognised([Fraction(1, 3), Fraction(1, 10**400)]) is None
    assert recognised([Fraction(1, 3), Fraction(0)]) == ([1, 0], 3)


def test_a_limit_that_never_binds_has_no_price() -> None:
    def limits(limit: int) -> list[int | None]:
        return Region(fleet(False, {"demand": 10**10, "limit": limit})).limits

    enough = sum(fleet(False, {"demand": 10**10}).useful_blocks())
    assert limits(enough) == [None, None]
    assert limits(enough - 1) == [enough - 1, None]


def test_blocks_count_in_machines_where_these_have_very_many() -> None:
    assert block_sizes(Region(fleet(False, {"count": 10**400}))) == [10**400, 1]
    assert block_sizes(Region(fleet(True, {"capacity": 9**9, "most": 9**9}))) == [1, 1]


def test_costs_sixteen_digits_apart_are_told_apart() -> None:
    problem = Problem(
        configurations=[Configuration({"a": 2}, "m"), Configuration({"b": 3}, "n")],
        jobs=[Job("x", 100, {"a": 7, "b": 3}), Job("y", 99, {"b": 5})],
        machine_types=[MachineType("m", Fraction(1, 10**8)), MachineType("n", 10**8)],
    )
    solution = solve(problem, threads=1)
    # Below branches floats do not tell them apart; CP-SAT does.
    assert (solution.status, solution.proof) == (Status.OPTIMAL, Proof.SOLVER)
