"""Numbers of every magnitude, in every place, for every method: an answer or a reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cms
from cms import Configuration, Job, MachineType, Problem, Proof, Status, solve
from instances.families import generate
from tests.property.problems import share
from tests.references.guarantees import ANY_NUMBERS, VARIANTS, Options, promise, reference
from tests.samples import few, so_many

Exact = int | Fraction

EXACT = ("auto", "cp_sat")
WHOLE = ("count", "limit", "most")
PLACES = ("count", "limit", "cost", "demand", "supply", "most", "capacity", "size")


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
    shape: Configuration | cms.SizeBoundedConfigurations = Configuration({"a": count, "b": 1}, "m")
    if bounded:
        sizes = {"a": given_["size"], "b": 3}
        shape = cms.SizeBoundedConfigurations(sizes, given_["capacity"], "m", most)
    others = [Job(f"y{j}", 4 + j % 3, {"a": 1 + j % 2, "b": 2}) for j in range(jobs - 1)]
    return Problem(
        configurations=[shape, Configuration({"b": 2}, "n"), Configuration({"a": 3}, "n")],
        jobs=[Job("x", given_["demand"], {"a": given_["supply"], "b": 3}), *others],
        machine_types=[MachineType("m", given_["cost"], limit), MachineType("n", 2)],
    )


def checked(problem: Problem, solution: cms.Solution) -> None:
    """A schedule that holds and a bound that is proved, or a proof that there is none."""
    if solution.status is Status.INFEASIBLE:
        assert solution.certificate.proves_infeasible(problem)
        return
    assert solution.schedule.groups
    assert cms.check(problem, solution.schedule) == ()
    assert solution.certificate.bound(problem) <= solution.lower_bound <= (solution.cost or 0)


_ANY = st.builds(
    lambda digits, more, upside: Fraction(10**digits + more) ** (1 if upside else -1),
    st.sampled_from((0, 9, 16, 19, 40, 308, 320, 1000)),
    st.integers(0, 9),
    st.booleans(),
)


@pytest.mark.parametrize("method", sorted(cms.list_algorithms()))
@share(5)
@given(st.data(), st.booleans(), st.integers(1, 3))
def test_a_method_answers_whatever_the_magnitudes_or_says_why_not(
    method: str, data: st.DataObject, bounded: bool, jobs: int
) -> None:
    """Up to three numbers at once: a checked schedule and a proved bound."""
    places = data.draw(st.lists(st.sampled_from(PLACES), min_size=1, max_size=3, unique=True))
    numbers = {place: data.draw(_ANY) for place in places}
    whole = {p: max(1, int(n)) if p in WHOLE else n for p, n in numbers.items()}
    problem = fleet(bounded, whole, jobs)
    try:
        solution = solve(problem, method, time_limit=None, threads=1)
    except cms.UnsupportedProblem:
        assert method != "auto"
    else:
        checked(problem, solution)


# --- guarantees on named numbers ------------------------------------------------------------------


def named(costs: tuple[Exact, ...], *shapes: dict[str, int], **jobs: Any) -> Problem:
    """Each configuration on a machine type of its own; jobs as demand and supply."""
    types = [MachineType(f"m{at}", cost) for at, cost in enumerate(costs)]
    return Problem(
        configurations=[Configuration(s, m.name) for s, m in zip(shapes, types, strict=True)],
        jobs=[Job(name, *row) for name, row in jobs.items()],
        machine_types=types,
    )


def far_apart() -> Iterator[tuple[Problem, int]]:
    """Problems whose numbers no tolerance tells apart, with the least cost of each."""
    for huge in (10**18, 10**30, 10**309, 10**400):
        yield named((1,), {"a": 3}, x=(huge, {"a": 1})), -(-huge // 3)
        # a machine gives 14, used up to the last block
        yield named((1,), {"a": 2, "b": 1}, x=(huge, {"a": "6.5", "b": 1})), -(-huge // 14)
    for many in (10**7, 10**9, 10**11, 10**320):
        jobs = {"x": (7 * many, {"a": 3, "b": 5}), "y": (5, {"b": 2})}
        yield named((1, 1), {"a": many, "b": 1}, {"b": 2}, **jobs), 3
    # a machine dearer than all the others
    rows: dict[str, Any] = {f"x{at}": (100, {"b": 1, "c": 2}) for at in range(4)} | {
        "y": (1, {"e": 1})
    }
    shapes = {"b": 1}, {"b": 1, "e": 1}, {"b": 1, "c": 1, "e": 2}
    yield named((1, 50, 10**11), *shapes, **rows), 449
    # a block of little price by the million counts in the bound
    d, supply = 10**12, {"a": 7, "b": 3}
    rows = {"x": (1000 * d + 3, supply), "y": (5, {"b": 3}), "z": (10**9, {"b": 1, "a": 2})}
    yield named((1, 1), {"a": d, "b": 1}, {"b": d + 7}, **rows), 143
    # a hair beyond six blocks, beside thirds and numbers of thirty digits
    rows = {"x": (10**30, {"a": 10**28 + 1, "b": 1}), "y": (1, {"a": "1/3"})}
    rows |= {"z": (d, {"a": d // 10, "b": 3 * d // 10}), "w": (6 * 2**60 + 1, {"a": 2**60})}
    yield named((1,), {"a": 3, "b": 1}, **rows), 37


FAR_APART = list(far_apart())


def keeps_its_word(problem: Problem, best: int, method: str, options: Options) -> bool:
    """Whether a method takes a problem; what it then answers is held against the optimum."""
    try:
        solution = solve(problem, method, options=options, time_limit=None, threads=1)
    except cms.UnsupportedProblem:
        return False
    assert cms.check(problem, solution.schedule) == ()
    assert solution.cost is not None
    assert solution.lower_bound <= best <= solution.cost, (method, options)
    assert method not in EXACT or solution.cost == best, method
    assert not method.startswith("mig") or solution.cost <= best + 1, method
    promised = promise(problem, method, options)
    if promised is not None:
        value = reference(problem, promised.against, Fraction(best))
        assert solution.cost <= promised.allows(value), (method, options, promised)
    return True


@pytest.mark.parametrize("at", range(len(FAR_APART)))
def test_every_method_keeps_its_word_on_numbers_far_apart(at: int) -> None:
    problem, best = FAR_APART[at]
    for method in (*EXACT, "mig_serving_fast", "mig_serving"):
        assert keeps_its_word(problem, best, method, {}) or method != "auto"
    variants = [
        (method, {**options, **plain})
        for method in ANY_NUMBERS
        for options in VARIANTS[method]
        for plain in ({}, {"plain": True})
    ][at % 4 :: so_many(4, 1)]
    taken = [keeps_its_word(problem, best, *variant) for variant in variants]
    assert sum(taken) > len(taken) // 3


@pytest.mark.parametrize("case", few(3, [(1, 2), (5, 6), (10, 7), (30, 0), (10, 10), (10, 11)]))
def test_huge_and_small_demands_together_are_proved(case: tuple[int, int]) -> None:
    """Millions of machines for some jobs, and a few for others."""
    problem = generate("huge-demands", n=case[0], seed=case[1])
    solution = solve(problem, time_limit=None)
    assert cms.check(problem, solution.schedule) == ()
    assert (solution.status, solution.proof) == (Status.OPTIMAL, Proof.CHECKED)


@pytest.mark.parametrize("variant", ["units", "inflated", "alone"])
@pytest.mark.parametrize("exponent", [450, 520, 600])
def test_no_factor_is_stated_where_floats_do_not_tell_gains_apart(
    exponent: int, variant: str
) -> None:
    jobs = {"x": (10**exponent + 1, {"a": 1000, "b": 1, "c": 1000}), "y": (3, {"a": 2})}
    problem = named((1, 1, 10**60), {"a": 1}, {"b": 1}, {"a": 1, "b": 1, "c": 1}, **jobs)
    options = {"variant": variant, "plain": True}
    checked(problem, solve(problem, "greedy", options=options, time_limit=None))
    assert promise(problem, "greedy", options) is None
