"""What certificates say of one job's choices: held to the optimum with the choice forced.

The oracle solves the problem in which it is: a job that must have blocks demands what these leave,
and a job beside it takes them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms import (
    BlockPrices,
    BlocksOfJob,
    Branch,
    Certificate,
    Configuration,
    InvalidCertificate,
    Job,
    MachineType,
    MixPrices,
    PriceFunction,
    Problem,
    SizeBoundedConfigurations,
    TimeSharedJob,
    TimeSharedProblem,
    solve,
)
from cms.fleet.what_if import explaining
from cms.fleet.what_if.explaining import Case, Given, OneJob, plain_job, shared_job
from cms.problem.row import Row
from tests.oracle import optimum
from tests.property.certificates import random_certificate
from tests.property.problems import problems, proved_optimum, share, supply
from tests.references.mixes import Output, images, time_shared_toy
from tests.samples import few, mig, so_many, triple
from tests.time_sharing.test_prices import fitted


def spacious(rng: random.Random) -> Problem:
    """A few jobs, and machines that often have room for more than all of them can use."""
    types = [
        MachineType(
            name, rng.choice(["0", "1", "1", "3/2", "2"]), rng.choice([None, None, 0, 1, 2, 3])
        )
        for name in rng.choice(["m", "m", "mn"])
    ]
    sizes = {
        block: rng.choice(["1", "2", "3", "5/2"]) for block in rng.choice(["a", "ab", "ab", "abc"])
    }
    shapes: list[Configuration | SizeBoundedConfigurations] = [
        SizeBoundedConfigurations(
            sizes, rng.randint(2, 9), machine.name, rng.choice([None, None, 3])
        )
        for machine in types
    ]
    if rng.random() < 0.3:
        shapes.append(Configuration({"a": rng.randint(1, 12)}, types[0].name))
    jobs = [
        Job(
            f"j{number}",
            rng.choice(["0", "1", "2", "3", "7/2"]),
            {block: rng.choice(["0", "1", "2", "3/2"]) for block in sizes},
        )
        for number in range(rng.randint(1, 3))
    ]
    return Problem(configurations=shapes, machine_types=types, jobs=jobs)


def forced(problem: Problem, job: str, wanted: Given) -> Problem:
    """The problem in which a job has to be given blocks so."""
    jobs = []
    for each in problem.jobs:
        table, demand = dict(supply(each)), each.demand
        if each.name == job:
            for block, n in wanted.at_least.items():
                demand -= table.get(block, Fraction(0)) * n
                jobs.append(Job(f"{job} on {block}", n, {block: 1}))
            table = {block: gives for block, gives in table.items() if block not in wanted.without}
        jobs.append(Job(each.name, max(demand, Fraction(0)), table))
    return Problem(
        configurations=problem.configurations, jobs=jobs, machine_types=problem.machine_types
    )


def questions(problem: Problem, one: OneJob, job: Job, rng: random.Random) -> Iterator[Given]:
    """One or more of a block, it alone, none of it; and some of two."""
    serving = [block for block in problem.blocks if supply(job)(block)]
    for block in serving:
        others = frozenset(problem.blocks) - {block}
        needed = one.needed(block)
        assert needed is not None
        yield Given(without=frozenset({block}))
        if job.demand:
            yield Given({block: 1})
            yield Given({block: rng.randint(1, needed)}, others)
    if len(serving) > 1 and job.demand:
        yield Given(dict.fromkeys(rng.sample(serving, 2), 1))


def require_bounds(problem: Problem, certificate: Certificate, rng: random.Random) -> int:
    """Ask all about all jobs; return how many choices cost more than the bound."""
    found, dearer = certificate.judged(problem), 0
    assert found is not None
    for job in problem.jobs:
        one = plain_job(problem, certificate, job.name)
        assert one.leaves == sum(1 for _ in certificate.leaves())
        if found.infeasible:
            assert one.bound_if(Given()) is None
            continue
        if all(
            low <= high
            for case in one.cases
            for block, sign, low in case.within
            for other, opposite, high in case.within
            if sign > 0 > opposite and block == other
        ):
            assert one.bound_if(Given()) == found.value == one.bound
        else:  # a case of no schedule at all does not count
            every = one.bound_if(Given())
            assert every is None or every >= found.value
        for wanted in questions(problem, one, job, rng):
            bound, least = one.bound_if(wanted), optimum(forced(problem, job.name, wanted))
            if bound is None:
                assert least is None
            else:
                assert found.value <= bound
                assert least is None or bound <= least
                dearer += found.value < bound
    return dearer


@share(2)
@given(problems(), st.integers(0, 10**9))
def test_no_choice_costs_less_than_its_bound(problem: Problem, seed: int) -> None:
    rng = random.Random(seed)
    require_bounds(problem, random_certificate(rng, problem), rng)
    solution = solve(problem, time_limit=None, threads=1)
    if solution.cost is not None:
        require_bounds(problem, solution.certificate, rng)


@pytest.mark.parametrize("part", few(1, range(10)))
def test_nor_where_leaves_count_on_proper_contents(part: int) -> None:
    dearer = 0
    for number in range(so_many(40, 200)):
        rng = random.Random(f"one job {part} {number}")
        problem = spacious(rng)
        dearer += require_bounds(problem, random_certificate(rng, problem), rng)
    assert dearer


def test_what_is_paid_for_a_choice_is_exact() -> None:
    problem = mig()
    prices = BlockPrices({"7g": 1, "3g": "1/2", "1g": "1/7", "4g": "1/2"})
    bert = plain_job(problem, prices, "bert")
    # bert: one of each, 23/14; without 7g three of the others, 27/14; resnet: a 7g
    assert bert.bound == Fraction(23, 14) + 1
    assert bert.bound_if(Given({"3g": 1})) == bert.bound
    assert bert.bound_if(Given({"3g": 4})) == 2 + 1
    assert bert.bound_if(Given(without=frozenset({"7g"}))) == Fraction(27, 14) + 1
    assert bert.bound_if(Given(without=frozenset({"7g", "3g"}))) == 2 + 1
    assert bert.bound_if(Given(without=frozenset(problem.blocks))) is None
    assert (bert.needed("3g"), bert.needed("4g")) == (4, None)


def test_a_case_that_the_branches_rule_out_does_not_count() -> None:
    problem = triple("3/2")
    tree = Branch(
        BlocksOfJob("b", "x"), 1, BlockPrices({"b": "1/2"}, multipliers=[5]),
        BlockPrices({"b": "1/2"}, multipliers=[0]),
    )  # fmt: skip
    with pytest.raises(InvalidCertificate, match="would pay"):
        plain_job(problem, Branch(tree.quantity, 1, tree.above, tree.below), "x")
    one = plain_job(problem, tree, "x")
    assert [case.within for case in one.cases] == [{("b", -1, 1)}, {("b", 1, 2)}]
    # below, two blocks at 11/2 each, less 5 for the branch: 6 and 1 for the other job
    assert one.cases[0].rest + 2 * one.cases[0].prices[0] == 7
    assert one.bound_if(Given()) == one.bound_if(Given({"b": 2})) == 2
    assert tree.bound(problem) == 2
    assert one.bound_if(Given({"b": 1})) == 2


def test_a_case_counts_up_to_what_its_branches_allow() -> None:
    cases = (
        Case(Fraction(0), (Fraction(1),), frozenset({("b", -1, 2)})),
        Case(Fraction(5), (Fraction(1),), frozenset({("b", 1, 3)})),
    )
    one = OneJob(("b",), Row(3, (1,), 1), Fraction(0), 2, cases)
    assert [one.bound_if(Given({"b": n})) for n in (1, 2, 3)] == [3, 3, 8]
    assert one.bound_if(Given(without=frozenset("b"))) is None
    idle = one._replace(row=Row(0, (1,), 1))
    assert idle.bound_if(Given(without=frozenset("b"))) == 0
    assert idle._replace(cases=cases[1:]).bound_if(Given(without=frozenset("b"))) is None


def is_on(block: str, output: Output, *, alone: bool = False) -> bool:
    """Whether a job gets something on this type of block, and alone if that is asked."""
    return output[2] == block and (output[3] or not alone)


def with_jobs(plain: Problem, jobs: Iterable[Job]) -> Fraction | None:
    configurations, types = plain.configurations, plain.machine_types
    return proved_optimum(Problem(configurations=configurations, jobs=jobs, machine_types=types))


def forced_shared(
    plain: Problem, outputs: dict[str, Output], name: str, must: Callable[[Output], bool]
) -> Fraction | None:
    """The optimum where some block of the job is as said."""
    costs = []
    for output, what in outputs.items():
        if what[0] == name and must(what):
            jobs = [
                Job(job.name, max(Fraction(0), job.demand - what[1] * (job.name == name)),
                    job.demand_function)
                for job in plain.jobs
            ]  # fmt: skip
            costs.append(with_jobs(plain, [*jobs, Job("the one", 1, {output: 1})]))
    return min((cost for cost in costs if cost is not None), default=None)


def only_on(
    plain: Problem, outputs: dict[str, Output], name: str, blocks: Iterable[str]
) -> Fraction | None:
    """The optimum where the job has blocks of these types alone."""
    jobs = []
    for job in plain.jobs:
        table = dict(job.demand_function.items())  # type: ignore[union-attr]
        if job.name == name:
            table = {output: r for output, r in table.items() if outputs[output][2] in blocks}
        jobs.append(Job(job.name, job.demand, table))
    return with_jobs(plain, jobs)


def require_shared_bounds(seed: int) -> int:
    """Ask about every job and block of a toy; return how many choices cost more than the bound."""
    rng = random.Random(f"choices {seed}")
    problem = time_shared_toy(rng)
    solution = solve(problem, time_limit=None, threads=1)
    if solution.cost is None:
        return 0
    plain, outputs = images(problem)
    dearer = 0
    certificates = [solution.certificate, fitted(problem, rng)]
    for certificate in certificates:
        if not isinstance(next(certificate.leaves()), MixPrices):
            continue  # of one job a block
        bound = certificate.bound(problem)
        for job in problem.jobs:
            if not job.demand:
                continue
            found = shared_job(problem, certificate, job.name)
            base = found.bound_if(Given())
            assert base is not None
            assert found.alone is not None
            assert bound <= base <= solution.cost
            for block, alone in found.alone.items():
                every, own = set(problem.blocks), partial(is_on, block)
                for question, least in (
                    ((Given({block: 1}),), forced_shared(plain, outputs, job.name, own)),
                    (
                        (Given({block: 1}), alone),
                        forced_shared(plain, outputs, job.name, partial(own, alone=True)),
                    ),
                    (
                        (Given(without=frozenset({block})),),
                        only_on(plain, outputs, job.name, every - {block}),
                    ),
                    (
                        (Given(without=frozenset(every) - {block}),),
                        only_on(plain, outputs, job.name, {block}),
                    ),
                ):
                    said = found.bound_if(*question)
                    if said is None:
                        assert least is None
                    else:
                        assert said >= base
                        assert least is None or said <= least
                        dearer += said > bound
    return dearer


@pytest.mark.parametrize("part", few(1, range(20)))
def test_no_choice_of_a_shared_job_costs_less_than_its_bound(part: int) -> None:
    assert sum(require_shared_bounds(20 * part + number) for number in range(so_many(3, 20)))


def gpu_or_half() -> TimeSharedProblem:
    points = {"gpu": [(4, 2)], "half": [(4, 6)]}
    return TimeSharedProblem(
        configurations=[Configuration({"gpu": 1}), Configuration({"half": 2})],
        jobs=[TimeSharedJob(name, demand=1, limit=20, points=points) for name in "xy"],
    )


def test_what_is_not_decided_counts_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = gpu_or_half()
    functions = {name: PriceFunction("1/2") for name in "xy"}
    prices = MixPrices({"gpu": 1, "half": "1/2"}, functions=functions)
    half = Given({"half": 1})
    found = shared_job(problem, prices, "x")
    assert found.alone is not None
    assert found.bound_if(half) == Fraction(7, 6)
    assert found.bound_if(Given({"gpu": 1}), found.alone["gpu"]) == Fraction(3, 2)
    assert found.bound_if(half, found.alone["half"]) == Fraction(7, 6)
    monkeypatch.setattr(explaining, "NODE_LIMIT", 0)
    assert shared_job(problem, prices, "x").bound_if(half) == 1
