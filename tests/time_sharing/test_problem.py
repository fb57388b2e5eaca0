"""Time-shared problems and their parts: what they take and refuse, cycles, images, hashes."""

from __future__ import annotations

import pickle
import random
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cms
from cms import BatchPoint, DutyCycleRule, Mix, PriceFunction, TimeSharedJob, TimeSharedProblem
from cms.checker.kinds import checker_for
from cms.files import lay_out, problem_to_json
from cms.time_sharing.functions import functions_table
from cms.time_sharing.model import undominated
from proofs_checks.checker import parse_document, problem_sha256
from tests.oracle import optimum
from tests.references.mixes import expanded, mixes_on, rates_on, time_shared_toy
from tests.samples import few, refusal

SHAPES = [cms.Configuration({"100": 1}), cms.Configuration({"60": 1, "40": 1})]
JOBS = [
    TimeSharedJob("resnet", 250, "0.108", {"60": [(8, "0.012"), (16, "0.02")], "40": [(8, 0.015)]}),
    TimeSharedJob("vgg", 100, "0.142", {"100": [(4, "0.014")], "60": [(4, "0.02")]}),
]
PROBLEM = TimeSharedProblem(configurations=SHAPES, jobs=JOBS)

toys = st.integers(0, 10**9).map(lambda seed: time_shared_toy(random.Random(seed)))
fractions = st.fractions(Fraction(1, 10), 30, max_denominator=12)
numbers = st.fractions(min_value=0, max_value=9, max_denominator=12)
above_0 = numbers.filter(bool)
functions = st.builds(PriceFunction, numbers, st.lists(st.tuples(above_0, numbers), max_size=4))


# -- jobs, mixes, price functions -------------------------------------------------------------


def test_points_and_mixes_are_exact_sorted_and_equal_however_they_are_written() -> None:
    job = TimeSharedJob("x", 0.5, "1/3", {"b": [(8, 0.1), ("1/2", "0.05")], "idle": []})
    half, eight = (
        BatchPoint(Fraction(1, 2), Fraction(1, 20)),
        BatchPoint(Fraction(8), Fraction(1, 10)),
    )
    assert job.points == {"b": (half, eight)}
    assert (job.demand, job.limit) == (Fraction(1, 2), Fraction(1, 3))
    assert hash(job) == hash(TimeSharedJob("x", "1/2", "1/3", job.points))
    mix = Mix({"b": "4", "a": 0.5})
    assert {mix: 1}[Mix({"a": "1/2", "b": 4})] == 1
    assert (str(mix), repr(mix)) == ("a x 0.5 + b x 4", "Mix(a x 0.5 + b x 4)")
    assert pickle.loads(pickle.dumps((job, mix))) == (job, mix)


@given(lengths=st.lists(fractions, min_size=1, max_size=4), limit=fractions)
def test_both_rules_agree_on_a_job_alone_and_collecting_is_no_easier(
    lengths: list[Fraction], limit: Fraction
) -> None:
    own, cycle = lengths[0], sum(lengths, Fraction(0))
    robin, collect = DutyCycleRule
    assert [rule.admits(own, own, limit) for rule in DutyCycleRule] == [2 * own <= limit] * 2
    assert robin.admits(cycle, own, limit) or not collect.admits(cycle, own, limit)
    for rule in DutyCycleRule:
        assert rule.admits(cycle, own, limit) == (cycle <= rule.longest(own, limit))


@given(st.lists(st.tuples(fractions, fractions), max_size=7, unique_by=lambda pair: pair[0]))
def test_a_point_is_dropped_if_and_only_if_another_is_as_good(
    pairs: list[tuple[Fraction, Fraction]],
) -> None:
    points = [BatchPoint(*pair) for pair in sorted(pairs)]
    assert list(undominated(points)) == [
        p
        for p in points
        if not any(q != p and q.amount >= p.amount and q.length <= p.length for q in points)
    ]


@given(functions, above_0, numbers, numbers)
def test_a_price_function_never_falls_and_is_subadditive(
    function: PriceFunction, demand: Fraction, one: Fraction, two: Fraction
) -> None:
    worth = [function.worth(rate, demand) for rate in (Fraction(0), one, two, one + two)]
    assert worth[0] == 0
    assert max(worth[1:3]) <= worth[3] <= worth[1] + worth[2]
    assert function.worth(demand + one, demand) == function.worth(demand, demand)
    assert function.scaled(two).worth(one, demand) == two * worth[1]


def test_steps_of_one_width_are_one_and_those_of_no_height_are_none() -> None:
    function = PriceFunction(0, [(2, "1/3"), (1, 0), ("4/2", "1/6")])
    assert function.steps == ((Fraction(2), Fraction(1, 2)),)
    assert not PriceFunction(0, [(1, 0)])
    assert functions_table(None) == {}
    assert list(functions_table({"x": PriceFunction("1e-9"), "y": PriceFunction()})) == ["x"]


# -- the problem ------------------------------------------------------------------------------


HAIR = 10**4000 + 1
#: Arguments that are refused, of a job on the block b, of a mix, a price function and a problem.
JOB: list[dict[str, Any]] = [
    {"name": ""}, {"demand": -1}, {"limit": 0}, {"points": [(1, 1)]}, {"points": {"": []}},
    *({"points": {"b": points}} for points in (
        3, {8: "0.1"}, "ab", [{1, 2}], ["ab"], [7], [(1, 2, 3)], [(0, 1)], [(2, 0)],
        [(1, 1), ("1.0", 2)],
    )),
]  # fmt: skip
MIX: list[Any] = [{}, "ab", {"a": 0}, {"a": True}, {5: 1}]
FUNCTION: list[Any] = [
    (-1,), (0, 5), (0, [(1, 1)] * 1001), (0, [(1, Fraction(1, 10**4299 + o)) for o in (1, 3)]),
    *((0, [step]) for step in ((0, 1), ("-1/2", 1), (1, -1), (1, 2, 3), 5, {1, 2})),
]  # fmt: skip
REFUSED: list[dict[str, Any]] = [
    {"rule": "half"}, {"max_jobs": 0}, {"max_jobs": 1.5}, {"jobs": [cms.Job("x", 1, {})]},
    {"jobs": [JOBS[0], JOBS[0]]}, {"jobs": [TimeSharedJob("x", 1, 1, {"6O": [(1, 1)]})]},
    {"blocks": ["100"]},
    {"jobs": [TimeSharedJob("x", 1, HAIR, {"60": [(Fraction(1, HAIR), Fraction(HAIR, 2))]})]},
]  # fmt: skip


def test_what_makes_no_sense_is_refused() -> None:
    for changed in JOB:
        one: dict[str, Any] = {"name": "x", "demand": 1, "limit": 1, "points": {}} | changed
        refusal(cms.InvalidProblem, TimeSharedJob, **one)
    for amounts in MIX:
        refusal(cms.InvalidSchedule, Mix, amounts)
    for arguments in FUNCTION:
        refusal(cms.InvalidCertificate, PriceFunction, *arguments)
    for table in ([1], {"x": 1}):
        refusal(cms.InvalidCertificate, functions_table, table)
    for changed in REFUSED:
        given_: dict[str, Any] = {"configurations": SHAPES, "jobs": JOBS} | changed
        refusal(cms.InvalidProblem, TimeSharedProblem, **given_)
    with pytest.raises(AttributeError, match="TimeSharedProblem is immutable"):
        PROBLEM.rule = DutyCycleRule.COLLECT_THEN_RUN
    cycles = ("6", {"vgg": 4}), ("60", {"vg": 4}), ("60", {"vgg": 3}), ("40", {"vgg": 4})
    for block, mix in cycles:
        refusal(cms.InvalidSchedule, PROBLEM.duty_cycle, block, Mix(mix))


@given(problem=toys)
def test_cycles_are_those_of_the_definition_and_mixes_have_rivals_of_usable_points(
    problem: TimeSharedProblem,
) -> None:
    for block in problem.blocks:
        usable = problem.usable_points(block)
        for mix, rates in mixes_on(problem, block):
            assert problem.duty_cycle(block, mix).rates == rates
            better = {}
            for name, amount in mix.items():
                point = problem.job(name).point(block, amount)
                assert point is not None
                fits = (p for p in usable[name] if p.length <= point.length)
                better[name] = next(p.amount for p in fits if p.amount >= amount)
            rival = problem.duty_cycle(block, better)
            assert rival.admitted
            assert all(rival.rates[name] >= rate for name, rate in rates.items())
        for job in problem.jobs:
            for point in job.points.get(block, ()):
                alone = Mix({job.name: point.amount})
                admitted = rates_on(problem, block, alone) is not None
                assert problem.duty_cycle(block, alone).admitted is admitted


@given(problem=toys)
def test_without_sharing_a_block_gives_the_best_rate_of_a_job_alone(
    problem: TimeSharedProblem,
) -> None:
    plain = problem.unshared()
    assert (plain.blocks, plain.configurations) == (problem.blocks, problem.configurations)
    for job in plain.jobs:
        for block in plain.blocks:
            rates = [r[job.name] for mix, r in mixes_on(problem, block) if list(mix) == [job.name]]
            assert job.demand_function(block) == max(rates, default=0)
    assert problem.serving_blocks().tolist() == plain.serving_blocks().tolist()
    assert problem.useful_blocks() == plain.useful_blocks()
    assert problem.cost_step == plain.cost_step


@given(problem=toys)
def test_copies_are_equal_and_both_programs_hash_alike(problem: TimeSharedProblem) -> None:
    assert pickle.loads(pickle.dumps(problem)) == problem
    assert problem.replace() == problem
    assert problem.compute_sha256() == problem.sha256
    document = parse_document(lay_out(problem_to_json(problem)))
    assert problem_sha256(document) == problem.sha256


def best_of_image(problem: TimeSharedProblem) -> Fraction | None:
    """The least cost, by the reference algorithm."""
    found = cms.solve(expanded(problem), "cp_sat")
    assert found.status in ("optimal", "infeasible")
    return found.cost


@pytest.mark.parametrize("seed", few(4, range(400)))
def test_what_is_certain_at_first_is_true_of_the_image(seed: int) -> None:
    """Sharing never costs more than going without, nor less than the first bound says."""
    problem = time_shared_toy(random.Random(seed))
    alone = optimum(problem.unshared())
    best = best_of_image(problem)
    first = checker_for(problem).first()
    assert first.certificate.bound(problem) <= first.bound
    if first.infeasible:
        assert best is None
        assert first.certificate.proves_infeasible(problem)
    if first.schedule is not None:
        assert best == 0
    if best is not None:
        assert first.bound <= best
        assert alone is None or best <= alone
    if problem.max_jobs == 1:
        assert best == alone
    if best is None:
        assert first.infeasible or checker_for(problem).limited
