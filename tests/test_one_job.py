"""What certificates say of one job's choices: held to the optimum with the choice forced.

The oracle solves the problem in which it is: a job that must have blocks demands what these leave,
and a job beside it takes them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms import (
    BlockPrices,
    BlocksOfJob,
    Branch,
    Certificate,
    DemandFunction,
    InvalidCertificate,
    InvalidOption,
    Job,
    Problem,
    solve,
)
from cms.certificate.one_job import Case, Given, OneJob, ProvedLeaves
from cms.problem.rows import Row, reduced
from cms.values.frozen import FrozenMap
from tests.oracle import optimum
from tests.property.certificates import random_certificate
from tests.property.problems import problems, share, supply
from tests.property.test_proper_contents import spacious
from tests.samples import few, mig, refusal, so_many, triple


def forced(problem: Problem, job: str, wanted: Given) -> Problem:
    """The problem in which a job has to be given blocks so."""
    jobs = []
    for each in problem.jobs:
        table = dict(supply(each))
        demand = each.demand
        if each.name == job:
            demand -= sum(
                (table.get(block, Fraction(0)) * n for block, n in wanted.at_least.items()),
                Fraction(0),
            )
            table = {block: gives for block, gives in table.items() if block not in wanted.without}
            jobs += [
                Job(f"{job} on {block}", n, {block: 1}) for block, n in wanted.at_least.items()
            ]
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
    leaves, dearer = ProvedLeaves(problem, certificate), 0
    assert len(leaves) == sum(1 for _ in certificate.leaves())
    found = certificate.judged(problem)
    assert found is not None
    for job in problem.jobs:
        one = leaves.job(job.name)
        if found.infeasible:
            continue
        if all(
            high is None or high >= low for case in one.cases for low, high in case.within.values()
        ):
            assert one.bound == found.value
        else:  # a case of no schedule at all does not count
            assert one.bound is None or one.bound >= found.value
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
    leaves = ProvedLeaves(problem, BlockPrices({"7g": 1, "3g": "1/2", "1g": "1/7", "4g": "1/2"}))
    bert = leaves.job("bert")
    # bert: one of each, 23/14; without 7g three of the others, 27/14; resnet: a 7g
    assert bert.bound == Fraction(23, 14) + 1
    assert bert.bound_if(Given({"3g": 1})) == bert.bound
    assert bert.bound_if(Given({"3g": 4})) == 2 + 1
    assert bert.bound_if(Given(without=frozenset({"7g"}))) == Fraction(27, 14) + 1
    assert bert.bound_if(Given(without=frozenset({"7g", "3g"}))) == 2 + 1
    assert bert.bound_if(Given(without=frozenset(problem.blocks))) is None
    assert (bert.needed("3g"), bert.needed("4g")) == (4, None)


def test_more_than_serves_a_job_by_itself_is_no_question() -> None:
    bert = ProvedLeaves(mig(), BlockPrices()).job("bert")
    said = refusal(InvalidOption, bert.bound_if, Given({"3g": 5}))
    assert said == (
        "at least 5 blocks '3g' are asked about; expected at most 4, which serve the job by "
        "themselves"
    )
    assert "at most 0" in refusal(InvalidOption, bert.bound_if, Given({"4g": 1}))
    with pytest.raises(KeyError):
        ProvedLeaves(mig(), BlockPrices()).job("vgg")


def test_a_case_that_the_branches_rule_out_does_not_count() -> None:
    problem = triple("3/2")
    tree = Branch(
        BlocksOfJob("b", "x"), 1, BlockPrices({"b": "1/2"}, multipliers=[5]),
        BlockPrices({"b": "1/2"}, multipliers=[0]),
    )  # fmt: skip
    with pytest.raises(InvalidCertificate, match="would pay"):
        ProvedLeaves(problem, Branch(tree.quantity, 1, tree.above, tree.below))
    one = ProvedLeaves(problem, tree).job("x")
    assert [case.within for case in one.cases] == [{"b": (0, 1)}, {"b": (2, None)}]
    # below, two blocks at 11/2 each, less 5 for the branch: 6 and 1 for the other job
    assert one.cases[0].rest + 2 * one.cases[0].prices[0] == 7
    assert one.bound == one.bound_if(Given({"b": 2})) == 2
    assert tree.bound(problem) == 2
    assert one.bound_if(Given({"b": 1})) == 2


def test_a_case_counts_up_to_what_its_branches_allow() -> None:
    cases = [
        Case(Fraction(0), (Fraction(1),), FrozenMap({"b": (0, 2)})),
        Case(Fraction(5), (Fraction(1),), FrozenMap({"b": (3, None)})),
    ]
    one = OneJob(["b"], Row(3, (1,), 1), cases)
    assert [one.bound_if(Given({"b": n})) for n in (1, 2, 3)] == [3, 3, 8]
    assert one.bound_if(Given(without=frozenset("b"))) is None
    idle = OneJob(["b"], Row(0, (1,), 1), cases)
    assert idle.bound_if(Given(without=frozenset("b"))) == 0
    assert OneJob(["b"], Row(0, (1,), 1), cases[1:]).bound_if(Given(without=frozenset("b"))) is None


def test_a_proof_of_infeasibility_leaves_no_case_unless_the_job_wants_less() -> None:
    problem = triple(limit=1)
    ray = BlockPrices({"b": 1}, {"machine": 3})
    assert ray.proves_infeasible(problem)
    one = ProvedLeaves(problem, ray).job("x")
    assert one.bound is None
    assert one.bound_at(Row(0, (1,), 1)) == 2 - 3  # what the other job pays, less the limit's price


@share(4)
@given(problems(), st.integers(0, 10**9))
def test_a_changed_row_is_bounded_as_the_changed_problem_is(problem: Problem, seed: int) -> None:
    rng = random.Random(seed)
    certificate = random_certificate(rng, problem)
    leaves = ProvedLeaves(problem, certificate)
    for at, job in enumerate(problem.jobs):
        factor = Fraction(rng.randint(0, 5), 4)
        table = {b: gives * rng.choice([1, 1, 2]) for b, gives in supply(job).items()}
        jobs = [*problem.jobs]
        jobs[at] = Job(job.name, job.demand * factor, DemandFunction(table))
        changed = problem.replace(
            rows=problem.rows.with_rows(
                {
                    at: reduced(
                        job.demand * factor,
                        [table.get(b, Fraction(0)) for b in problem.blocks],
                        "x",
                    )
                }
            )
        )
        row = changed.rows.row(at)
        bound = leaves.job(job.name).bound_at(row)
        least = optimum(
            Problem(
                configurations=problem.configurations,
                jobs=jobs,
                machine_types=problem.machine_types,
            )
        )
        if bound is None:
            assert least is None
        else:
            assert least is None or bound <= least
        try:
            proved = certificate.judged(changed)
        except InvalidCertificate:  # proper counts that no longer are
            assert bound is not None
            assert bound <= 0
            continue
        assert proved is not None
        if not proved.infeasible:
            assert bound is None or bound >= proved.value
