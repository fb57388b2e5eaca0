"""A first schedule, never late; trees that end at the optimum, every claim checked twice."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import pytest

import cms
from algorithms.branch_and_price import BranchAndPrice
from algorithms.branch_and_price.first import first_schedule
from algorithms.branch_and_price.tree import branch_and_price
from algorithms.prices import jobs as prices
from cms import Certificate, Configuration, Job, MachineType, Problem, Schedule, check
from cms.certificate.certificate import first_certificate, round_up
from cms.files import problem_to_json
from cms.plugin.algorithm import Named, NoOptions
from instances import hard
from instances.families import generate
from tests.algorithms.branch_and_price.parts import Counting, Unlimited
from tests.families import FAMILIES, instance
from tests.oracle import optimum
from tests.proofs_checks import both
from tests.samples import no_round_up, so_many, spread


def found(problem: Problem) -> Any:
    """The first schedule, checked; None if there is none."""
    schedule = first_schedule(problem, lambda: False)
    if schedule is not None:
        assert check(problem, schedule) == ()
    return schedule


@pytest.mark.parametrize("family", spread(8, FAMILIES))
def test_small_problems_have_one_wherever_they_have_any_but_for_tight_limits(family: str) -> None:
    for number in range(6):
        problem = instance(family, number)
        schedule, best = found(problem), optimum(problem)
        if best is None or not problem.limits:
            assert (schedule is None) == (best is None), (family, number)


def claims(problem: Problem, budget: Unlimited) -> Iterator[Any]:
    return BranchAndPrice().run(problem, NoOptions(), budget)


def test_auto_waits_for_no_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("prices were asked for")

    monkeypatch.setattr(prices, "price_jobs", refuse)
    for family in ("mixed-fleet", "size-bounded"):
        problem = generate(family, n=60, seed=1)
        claim = next(claims(problem, Unlimited()))
        assert type(claim) is Named
        assert claim.part == "first schedule"
        assert isinstance(claim.claim, Schedule)
        assert check(problem, claim.claim) == ()


@pytest.mark.parametrize("family", ["mixed-fleet", "size-bounded-mixed", "huge-demands"])
def test_auto_ends_at_whatever_look_it_is_stopped(family: str) -> None:
    problem = generate(family, n=60, seed=3)
    for looks in (0, 1, 2, 3, 5, 8, 13, 21, 34, 55):
        budget = Counting(looks)
        for _ in claims(problem, budget):
            pass
        assert budget.asked <= looks + 40, looks


def test_a_job_that_takes_what_each_of_many_machines_has_can_be_stopped() -> None:
    """It is one job: what is asked between jobs alone would be asked once."""
    blocks = [f"b{i}" for i in range(200)]
    problem = Problem(
        configurations=[Configuration({block: 1}, block) for block in blocks],
        jobs=[Job("x", 150, dict.fromkeys(blocks, 1))],
        machine_types=[MachineType(block, limit=1) for block in blocks],
    )
    looks = itertools.count()
    schedule = first_schedule(problem, lambda: next(looks) < 0)
    assert schedule is not None
    assert schedule.machine_count == 150
    assert next(looks) >= 150
    budget = iter([False] * 50)
    assert first_schedule(problem, lambda: next(budget, True)) is None


class Proof(NamedTuple):
    """What a run came to: the best bound, rounded up, and the last of either claim."""

    bound: Fraction
    certificate: Certificate | None
    schedule: Schedule | None
    claims: list[Certificate | Schedule]


def proof(problem: Problem, cost: Fraction | int | None, *, most_nodes: int = 4_000) -> Proof:
    """Run ``branch_and_price`` and check every claim."""
    claims, bound, best, certificate = [], Fraction(0), None, None
    given = None if cost is None else Fraction(cost)
    for claim in branch_and_price(problem, Unlimited(), given, node_limit=most_nodes):
        claims.append(claim)
        if isinstance(claim, Schedule):
            assert cms.check(problem, claim) == ()
            assert best is None or claim.cost(problem) < best.cost(problem)
            assert given is None or claim.cost(problem) < given
            best = claim
            continue
        now = round_up(claim.bound(problem), problem.cost_step)
        assert now > bound, "a certificate that says nothing new"
        bound, certificate = now, claim
    if certificate is not None:
        both.proved(problem_to_json(problem), certificate.to_json())
    return Proof(bound, certificate, best, claims)


def quantities(certificate: Certificate | None) -> list[object]:
    """What a tree branches on."""
    if not isinstance(certificate, cms.Branch):
        return []
    below, above = quantities(certificate.below), quantities(certificate.above)
    return [certificate.quantity, *below, *above]


def drawn() -> Iterator[tuple[str, Problem]]:
    """Problems of every family."""
    for family in ("costs", "machine_types", *FAMILIES)[: so_many(5, len(FAMILIES) + 2)]:
        for number in range(1000, 1006):
            yield f"{family} {number}", instance(family, number)


@pytest.mark.parametrize(("name", "problem"), [*drawn()])
def test_small_problems_are_proved_or_shown_to_have_no_schedule(
    name: str, problem: Problem
) -> None:
    if first_certificate(problem).proves_infeasible(problem):
        return  # the driver knows
    best = optimum(problem)
    if best is not None and problem.cost_step:
        assert proof(problem, best).bound == best
        assert proof(problem, best + 1).bound <= best
    for claim in branch_and_price(problem, Unlimited(), None, node_limit=4_000):
        if isinstance(claim, Schedule):
            assert cms.check(problem, claim) == ()
        else:
            assert best is None
            assert both.proved(problem_to_json(problem), claim.to_json()) is None


def test_machines_of_a_size_bounded_set_are_told_apart_by_what_they_have() -> None:
    # cutting stock without round-up: of totals all are whole, of machines with some blocks not
    found = proof(no_round_up(), Fraction(6))
    assert found.bound == 6
    assert isinstance(found.certificate, cms.Branch)


def test_a_sum_of_machines_closes_what_machines_of_one_type_would_not() -> None:
    # All five dear machines hold 100 jobs. For 901 more 3 m + 4 o is 450.5 in parts, or else 451,
    # of which each costs 3/10: 135.15 or 135.3, however many machines of each type there are.
    rooms = {"m": 6, "o": 8, "dear": 20}
    problem = Problem(
        configurations=[
            cms.SizeBoundedConfigurations({f"1{m}": 1}, n, m) for m, n in rooms.items()
        ],
        machine_types=[
            MachineType("m", "0.9"),
            MachineType("o", "1.2"),
            MachineType("dear", "1.3", limit=5),
        ],
        jobs=[Job(str(number), 1, {"1m": 1, "1o": 1, "1dear": 1}) for number in range(1001)],
    )
    found = proof(problem, Fraction("141.8"), most_nodes=60)
    assert found.bound == Fraction("141.8")
    (quantity,) = quantities(found.certificate)
    assert isinstance(quantity, cms.MachinesOfType)
    assert (quantity.weights["m"], quantity.weights["o"]) == (3, 4)


def test_blocks_of_a_job_are_branched_on_where_all_totals_are_whole() -> None:
    problem = generate("mixed-fleet", n=20, seed=1, types=5, limits="tight")
    found = proof(problem, 25)
    assert found.bound == 25
    assert any(isinstance(each, cms.BlocksOfJob) for each in quantities(found.certificate))


@pytest.mark.parametrize("fewer", [False, True])
def test_equal_jobs_by_the_hundred_are_proved(fewer: bool) -> None:
    problem = generate("cluster-fleet", n=200, seed=1, kinds=4, types=2, blocks=12)
    claims = [*branch_and_price(problem, Unlimited(), Fraction(199), node_limit=500, fewer=fewer)]
    schedules = [claim for claim in claims if isinstance(claim, Schedule)]
    trees = [claim for claim in claims if isinstance(claim, Certificate)]
    assert all(cms.check(problem, schedule) == () for schedule in schedules)
    assert min(schedule.cost(problem) for schedule in schedules) == 198
    bound = both.proved(problem_to_json(problem), trees[-1].to_json())
    assert bound is not None
    assert 0 <= 198 - bound < problem.cost_step
    if fewer:
        assert all(isinstance(each, cms.MachinesOfType) for each in quantities(trees[-1]))


def test_configurations_that_others_beat_and_machines_of_no_cost_stay() -> None:
    # below a branch on blocks a machine with fewer of them may be worth more
    shapes = [Configuration({a: 1, b: 1}, "dear") for a, b in ("xy", "yz", "xz")]
    beaten = [Configuration({block: 1}, "dear") for block in "xyz"]
    problem = Problem(
        configurations=[
            *shapes,
            *beaten,
            beaten[0],
            Configuration({"x": 1, "useless": 3}, "dear"),
            Configuration({"a": 2}, "free"),
            Configuration({"x": 1, "y": 1, "z": 2}, "odd"),
        ],
        machine_types=[MachineType("dear", 2), MachineType("free", 0), MachineType("odd", 5)],
        jobs=[
            *(Job(name, 5, {name: 1}) for name in "xyz"),
            Job("j", 7, {"a": 2}),
            Job("idle", 0, {"x": 1}),
        ],
    )
    found = proof(problem, 18)
    assert found.bound == 16
    assert isinstance(found.certificate, cms.Branch)
    assert cms.MachinesOfType("free") not in quantities(found.certificate)


def test_a_node_that_only_floats_close_is_split() -> None:
    # costs differ by less than prices on a grid can prove: such a node must not come again for ever
    tiny = Fraction(1, 5 * 10**8)
    types = MachineType("m", 2, 1), MachineType("n", 7 + tiny, 8), MachineType("o", 25 + tiny)
    held = zip([2, 3, 1], [6, 7, 2], types, strict=True)
    sets = [cms.SizeBoundedConfigurations({"a": size}, room, m.name) for size, room, m in held]
    jobs = [Job(str(number), 5, {"a": 4}) for number in range(8)]
    problem = Problem(configurations=sets, jobs=jobs, machine_types=types)
    assert cms.solve(problem, time_limit=None).stop_reason == "finished"


def test_a_depth_that_certificates_cannot_have_is_not_reached(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("algorithms.branch_and_price.tree.LARGEST_DEPTH", 3)
    found = proof(hard.SET_COVER_F2_4.make(), 4)
    assert found.bound < 4
    for claim in found.claims:
        assert isinstance(claim, Certificate)
        assert all(len(leaf.multipliers) <= 3 for leaf in claim.leaves())
