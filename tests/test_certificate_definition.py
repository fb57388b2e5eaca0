"""Certificates against their definition: all machines, all options of a job, in rationals."""

from __future__ import annotations

import copy
import itertools
import json
import operator
import pickle
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import partial
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cms.certificate.certificate import BlockPrices, Branch, Certificate
from cms.certificate.quantity import (
    BlocksOf,
    BlocksOfJob,
    MachinesOf,
    MachinesOfType,
    MachinesWith,
    Quantity,
)
from cms.errors import InvalidCertificate
from cms.files import certificate_from_json
from cms.problem.parts import AnyConfiguration, Configuration, DemandFunction, Job, MachineType
from cms.problem.parts import SizeBoundedConfigurations as SizeBounded
from cms.problem.problem import Problem
from tests.samples import refusal

Path = tuple[tuple[Quantity, int, int], ...]


def by_definition(
    certificate: Certificate, problem: Problem, path: Path = ()
) -> tuple[Fraction, bool] | None:
    """Value and whether it proves infeasibility; None if a condition is broken.

    Everything is enumerated: all multisets of a set, all options of a job.
    """
    if isinstance(certificate, Branch):
        q, r = certificate.quantity, certificate.at_most
        below = by_definition(certificate.below, problem, (*path, (q, -1, r)))
        above = by_definition(certificate.above, problem, (*path, (q, 1, r + 1)))
        if below is None or above is None:
            return None
        open_sides = [value for value, infeasible in (below, above) if not infeasible]
        return min(open_sides or [below[0], above[0]]), not open_sides
    assert isinstance(certificate, BlockPrices)
    if len(path) != len(certificate.multipliers):
        return None
    if any(count < most_used(problem, block) for block, count in certificate.proper.items()):
        return None
    conditions = list(zip(path, certificate.multipliers, strict=True))
    limits = {m.name: m.limit for m in problem.machine_types}
    sigma = {name: certificate.limit_prices.get(name, Fraction(0)) for name in limits}
    if any(sigma[name] and limits[name] is None for name in limits):
        return None

    def added(counts: Callable[[Quantity], int | bool]) -> Fraction:
        """Sum of s_b mu_b over the branches, by how often each counts something."""
        return sum((s * mu * counts(q) for (q, s, _), mu in conditions), Fraction(0))

    holds = [True, True]
    for shape in problem.configurations:
        machine = problem.machine_type(shape.machine)
        for content in contents(shape, certificate.proper):
            worth = (certificate.prices.get(b, Fraction(0)) * n for b, n in content.items())
            value = sum(worth, added(partial(machines_count, shape, content)))
            for at, cost in enumerate((machine.cost, Fraction(0))):
                holds[at] &= value <= cost + sigma[machine.name]
    total, lost = Fraction(0), False
    for job in problem.jobs:
        prices = {
            block: certificate.prices.get(block, Fraction(0))
            - added(partial(operator.eq, BlocksOfJob(block, job.name)))
            for block in problem.blocks
        }
        if any(price < 0 for price in prices.values()):
            return None
        least = cheapest(job, prices)
        lost |= least is None
        total += least or 0
    for name, limit in limits.items():
        total -= sigma[name] * (limit or 0)
    total += sum((s * mu * r for (_, s, r), mu in conditions), Fraction(0))
    return (total, lost or (holds[1] and total > 0)) if holds[0] else None


def most_used(problem: Problem, block: str) -> int:
    """The most blocks of a type that serve all jobs where no job can do without one of its own."""
    total = 0
    for job in problem.jobs:
        assert isinstance(job.demand_function, DemandFunction)
        each, number = job.demand_function(block), 0
        while each and number * each < job.demand:
            number += 1
        total += number
    return total


def contents(shape: AnyConfiguration, proper: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """What one machine may hold; of a size-bounded set also nothing, and no more than is proper."""
    if isinstance(shape, Configuration):
        yield dict(shape.blocks)
        return
    ranges = [range(shape.largest_count(block) + 1) for block in shape.sizes]
    for numbers in itertools.product(*ranges):
        content = dict(zip(shape.sizes, numbers, strict=True))
        if shape.allows(content) and all(content.get(b, 0) <= n for b, n in proper.items()):
            yield content


def machines_count(shape: AnyConfiguration, content: dict[str, int], q: Quantity) -> int:
    """How often one machine with this content counts in a quantity."""
    if isinstance(q, MachinesOfType):
        return q.weights.get(shape.machine or "", 0)
    if isinstance(q, MachinesWith):
        least = q.content.blocks.items()
        return int(q.content.machine == shape.machine
                   and all(content.get(block, 0) >= n for block, n in least))  # fmt: skip
    if isinstance(q, MachinesOf):
        return int(isinstance(shape, Configuration) and q.configuration.blocks == shape.blocks
                   and q.configuration.machine in (None, shape.machine))  # fmt: skip
    return content.get(q.block, 0) if isinstance(q, BlocksOf) else 0


def cheapest(job: Job, prices: dict[str, Fraction]) -> Fraction | None:
    assert isinstance(job.demand_function, DemandFunction)
    if not job.demand:
        return Fraction(0)
    supply = {block: f for block, f in job.demand_function.items() if f}
    ranges = [range(int(-(-job.demand // f)) + 1) for f in supply.values()]
    costs = [
        sum((prices[block] * n for block, n in zip(supply, option, strict=True)), Fraction(0))
        for option in itertools.product(*ranges)
        if sum(f * n for f, n in zip(supply.values(), option, strict=True)) >= job.demand
    ]
    return min(costs, default=None)


SMALL = st.fractions(0, 2, max_denominator=4)
COSTS: st.SearchStrategy[Any] = st.sampled_from([0, 1, Fraction(3, 2), 2])
LIMITS = st.sampled_from([None, None, 0, 1, 2])
BLOCKS = st.dictionaries(st.sampled_from("pqr"), st.integers(1, 3), min_size=1)
AMOUNTS: st.SearchStrategy[Any] = st.sampled_from([0, 1, 2, 3, Fraction(1, 2), Fraction(5, 3)])


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    types = [
        MachineType(name, draw(COSTS), draw(LIMITS)) for name in draw(st.sampled_from(["m", "mn"]))
    ]
    shapes: list[AnyConfiguration] = []
    for _ in range(draw(st.integers(1, 3))):
        machine = draw(st.sampled_from(types)).name
        if draw(st.booleans()):
            shapes.append(Configuration(draw(BLOCKS), machine))
        else:
            capacity, most = draw(st.integers(0, 6)), draw(st.none() | st.integers(1, 3))
            shapes.append(SizeBounded(draw(BLOCKS), capacity, machine, most))
    held = [shape.blocks if isinstance(shape, Configuration) else shape.sizes for shape in shapes]
    known = sorted({block for blocks_held in held for block in blocks_held})
    jobs = [
        Job(name, draw(AMOUNTS), {block: draw(AMOUNTS) for block in known})
        for name in draw(st.sampled_from(["", "x", "xy"]))
    ]
    return Problem(configurations=shapes, jobs=jobs, machine_types=types)


@st.composite
def trees(draw: st.DrawFn, problem: Problem, above: int = 0) -> Certificate:
    """Trees of at most three levels with prices that often hold, now and then not."""
    if above == 2 or draw(st.integers(0, 2)) == 0:
        priced = [block for block in problem.blocks if draw(st.booleans())]
        prices = {block: draw(SMALL) / draw(st.sampled_from([1, 2, 8])) for block in priced}
        sigma = {m.name: draw(SMALL) for m in problem.machine_types if m.limit is not None}
        counts = {
            block: most_used(problem, block) + draw(st.sampled_from([0, 0, 0, 1, 5]))
            for block in problem.blocks
            if draw(st.booleans())
        }
        if counts and not draw(st.integers(0, 9)):
            counts[draw(st.sampled_from(sorted(counts)))] = 0
        return BlockPrices(prices, sigma, [draw(SMALL) for _ in range(above)], counts)
    choices: list[Quantity] = [MachinesOfType(m.name) for m in problem.machine_types]
    names = [m.name for m in problem.machine_types]
    choices.append(MachinesOfType({name: draw(st.integers(1, 3)) for name in names}))
    choices += [BlocksOf(block) for block in problem.blocks]
    if problem.blocks:
        some = st.dictionaries(
            st.sampled_from(problem.blocks), st.integers(1, 3), min_size=1, max_size=2
        )
        choices += [MachinesWith(Configuration(draw(some), name)) for name in names]
    choices += [BlocksOfJob(block, job) for block in problem.blocks for job in problem.job_names]
    choices += [
        MachinesOf(shape)
        for shape in problem.listed_configurations
        if not any(
            bounded.machine == shape.machine and bounded.allows(shape.blocks)
            for bounded in problem.size_bounded_configurations
        )
    ]
    return Branch(
        draw(st.sampled_from(choices)),
        draw(st.integers(-1, 3)),
        draw(trees(problem, above + 1)),
        draw(trees(problem, above + 1)),
    )


CASES = problems().flatmap(lambda problem: st.tuples(st.just(problem), trees(problem)))


@given(CASES)
def test_a_tree_proves_what_the_definition_says(case: tuple[Problem, Certificate]) -> None:
    problem, certificate = case
    expected = by_definition(certificate, problem)
    if expected is None:
        assert refusal(InvalidCertificate, certificate.bound, problem)
        assert refusal(InvalidCertificate, certificate.proves_infeasible, problem)
    else:
        found = certificate.bound(problem), certificate.proves_infeasible(problem)
        assert found == expected


@given(CASES)
def test_a_certificate_survives_json_pickle_and_copies(
    case: tuple[Problem, Certificate],
) -> None:
    _, certificate = case
    text = json.dumps(certificate.to_json())
    assert "." not in text.replace('"', "") or "/" in text or '"' in text  # no JSON float
    for twin in (
        certificate_from_json(json.loads(text)),
        pickle.loads(pickle.dumps(certificate)),
        copy.deepcopy(certificate),
    ):
        assert twin == certificate
        assert hash(twin) == hash(certificate)
        assert twin.to_json() == certificate.to_json()


def test_the_definition_accepts_a_fair_share_of_the_trees() -> None:
    verdicts: list[bool] = []

    @given(CASES)
    def collect(case: tuple[Problem, Certificate]) -> None:
        verdicts.append(by_definition(case[1], case[0]) is not None)

    collect()
    assert 0.1 < sum(verdicts) / len(verdicts) < 0.9
