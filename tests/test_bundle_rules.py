"""Jobs with replicas and of equal routing, against enumeration and the independent checker."""

from __future__ import annotations

import copy
import random
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import ceil
from typing import Any, cast

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import cms
from algorithms.branch_and_price.options import options_of
from cms import (
    BlockPrices,
    BlocksOfJob,
    Branch,
    Configuration,
    DemandFunction,
    Job,
    MachineGroup,
    MachineType,
    Problem,
    Replicas,
    Schedule,
    SizeBoundedConfigurations,
    solve,
)
from cms.errors import InvalidProblem, UnsupportedProblem
from cms.files import (
    lay_out,
    problem_from_json,
    problem_to_json,
    solution_from_json,
    solution_to_json,
)
from cms.infeasibility.variants import PARTS, at_share
from cms.knapsack.pricing import cheapest_bundle
from cms.problem.row import BundleRule, Row
from proofs_checks.checker import check_solution, problem_sha256
from proofs_checks.checker.bundles import Rule
from proofs_checks.checker.bundles import cheapest_bundle as checked_bundle
from tests.families import held
from tests.oracle import optimum, serves
from tests.proofs_checks.both import proved, read
from tests.samples import few

RULES = st.builds(
    BundleRule,
    st.integers(0, 3),
    st.sampled_from([Fraction(0), Fraction(1, 6), Fraction(1, 4), Fraction(1, 2), Fraction(1)]),
    st.sampled_from(["weighted", "equal"]),
).map(lambda rule: rule if rule.number else BundleRule(0, Fraction(0), "equal"))


@st.composite
def jobs(draw: st.DrawFn, name: str, blocks: str, *, routing: str | None = None) -> Job:
    supply = {b: draw(st.integers(0, 9)) for b in blocks}
    count = draw(st.integers(0, 3))
    share = draw(st.sampled_from([None, 0, "1/3", 1]))
    replicas = Replicas(count, share) if count and routing != "equal" else None
    how = routing or draw(st.sampled_from(["weighted", "equal"]))
    demand = Fraction(draw(st.sampled_from([0, 10, 16, 21, 24])), 2)
    return Job(name, demand, supply, replicas, how)


@st.composite
def problems(draw: st.DrawFn, routing: str | None = None) -> Problem:
    """Tiny problems: three types of blocks, two of machines, some of them limited."""
    blocks = "abc"
    types = [MachineType("m", 1), MachineType("n", Fraction(draw(st.sampled_from([2, 4, 5])), 2),
             limit=draw(st.sampled_from([None, None, 2])))]  # fmt: skip
    shapes: list[Any] = [
        Configuration({b: draw(st.integers(0, 2)) for b in blocks} | {blocks[at]: 1}, name)
        for at, name in enumerate(draw(st.lists(st.sampled_from("mn"), min_size=1, max_size=3)))
    ]
    if draw(st.booleans()):
        sizes = {b: draw(st.integers(1, 3)) for b in blocks}
        shapes.append(SizeBoundedConfigurations(sizes, 4, "n"))
    wanted = [
        draw(jobs(f"j{at}", blocks, routing=routing)) for at in range(draw(st.integers(1, 3)))
    ]
    problem = Problem(configurations=shapes, machine_types=types, jobs=[
        replace(j, demand_function=DemandFunction({b: j.demand_function(b) for b in held(shapes)}))
        for j in wanted
    ])  # fmt: skip
    note(lay_out(problem_to_json(problem)))
    return problem


def agrees(problem: Problem) -> None:
    """Each exact method finds the oracle's optimum, and both checkers accept what it says."""
    best = optimum(problem)
    document = problem_to_json(problem)
    assert problem_from_json(document) == problem
    assert problem_sha256(read(document)) == problem.sha256
    for method in ("branch_and_price", "cp_sat"):
        found = solve(problem, method, threads=1, time_limit=600)
        assert found.cost == best, method
        assert found.status in ("optimal", "infeasible"), method
        assert not cms.check(problem, found.schedule) or best is None
        assert found.certificate.proves_infeasible(problem) <= (best is None)
        said = solution_to_json(found)
        assert check_solution(read(document), read(said)) == [], method
        assert solution_from_json(said).cost == best


@pytest.mark.parametrize("routing", few(2, ["equal", None, "weighted"]))
@settings(max_examples=max(100, settings().max_examples))
@given(data=st.data())
def test_solve_rules_agrees_with_enumeration(routing: str | None, data: st.DataObject) -> None:
    agrees(data.draw(problems(routing)))


@given(
    RULES,
    st.integers(0, 20),
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 9)), min_size=1, max_size=4),
)
def test_prices_and_options_of_rules_agree_with_enumeration(
    rule: BundleRule, demand: int, blocks: list[tuple[int, int]]
) -> None:
    prices, supply = [[*each] for each in zip(*blocks, strict=True)]
    row = Row(demand, tuple(supply), 1, rule)
    replicas = Replicas(rule.number, rule.share) if rule.number else None
    job = Job("j", demand, {}, replicas, rule.routing)
    most = [max(rule.number, ceil(demand / f)) if f and demand else 0 for f in supply]
    every = [
        bundle
        for bundle in product(*(range(n + 1) for n in most))
        if serves(job, list(map(Fraction, supply)), bundle)
    ]
    cost = {b: sum(p * n for p, n in zip(prices, b, strict=True)) for b in every}
    found = cheapest_bundle(prices, row)
    other = checked_bundle(prices, Rule(*rule), demand, supply)
    assert (found and found.value) == other == min(cost.values(), default=None)
    if found is None:
        assert not row.carriers
        return
    assert found.exact
    assert found.option in every
    minimal = {b for b in every if not any(a != b and all(map(int.__le__, a, b)) for a in every)}
    reach = found.value + 5
    listed = options_of(prices, row, reach, 10**6)
    assert listed is not None
    assert len({*listed}) == len(listed)
    assert {*listed} == {b for b in minimal if cost[b] <= reach}
    assert all(row.enough[i] >= n for b in minimal for i, n in enumerate(b))


@given(problems(), st.data())
def test_certificates_of_rules_prove_the_same_to_both_checkers(
    problem: Problem, data: st.DataObject
) -> None:
    shapes = [c for c in problem.configurations if isinstance(c, Configuration)]
    largest = max(
        [sum(c.blocks.values()) for c in shapes]
        + [4 for c in problem.configurations if c not in shapes]
    )
    whole = st.fractions(0, Fraction(1, largest), max_denominator=12)
    general = {block: data.draw(whole) for block in problem.blocks}
    job, block = (
        data.draw(st.sampled_from(problem.job_names)),
        data.draw(st.sampled_from(problem.blocks)),
    )
    more = min(data.draw(whole), general[block])
    tree = Branch(
        BlocksOfJob(block, job), data.draw(st.integers(0, 3)),
        BlockPrices(general, multipliers=[data.draw(whole)]),
        BlockPrices(general, multipliers=[more]),
    )  # fmt: skip
    bound = proved(problem_to_json(problem), tree.to_json())
    best = optimum(problem)
    assert bound is None or best is None or bound <= best
    assert bound is not None or best is None


def duo(replicas: Replicas | None = None, routing: str = "weighted") -> Problem:
    shapes = [Configuration({"1g": 7}), Configuration({"3g": 2}), Configuration({"7g": 1})]
    jobs = [Job("chat", 100, {"1g": 10, "3g": 40, "7g": 110}, replicas, routing)]
    return Problem(configurations=shapes, jobs=jobs)


def test_check_names_the_job_what_it_has_and_what_it_needs() -> None:
    group = MachineGroup(Configuration({"7g": 1}), {("7g", "chat"): 1}, 1)
    small = MachineGroup(Configuration({"1g": 7}), {("1g", "chat"): 1}, 1)
    token = Schedule([group, small])
    assert cms.check(duo(), token) == ()
    (violation,) = cms.check(duo(Replicas(2)), token)
    said = "job 'chat' has 1 blocks that each satisfy 25 of its demand, needs at least 2"
    assert (violation.kind, str(violation)) == ("replicas", said)
    (violation,) = cms.check(duo(routing="equal"), token)
    said = "job 'chat' has 20 of its demand served by 2 blocks in equal shares, needs 100"
    assert (violation.kind, str(violation)) == ("demand", said)
    assert [v.kind for v in cms.check(duo(Replicas(2), "equal"), token)] == ["demand", "replicas"]
    assert cms.check(duo(Replicas(2, 0)), token) == ()


def test_forged_counts_shares_and_routings_are_refused_by_both_checkers() -> None:
    problem = duo(Replicas(2, "2/5"), "equal")
    said = solution_to_json(solve(problem))
    document = problem_to_json(problem)
    assert document["jobs"][0] | {"name": ""} == {
        "name": "", "demand": 100, "demand_function": {"1g": 10, "3g": 40, "7g": 110},
        "replicas": {"count": 2, "share": "0.4"}, "routing": "equal",
    }  # fmt: skip
    assert check_solution(read(document), read(said)) == []
    forged: list[dict[str, Any]] = [
        {"replicas": {"count": 9, "share": "2/5"}, "routing": "equal"},
        {"replicas": {"count": 3, "share": 1}, "routing": "equal"},
        {"routing": "equal"},
    ]
    for keys in forged:
        other = copy.deepcopy(document)
        for key in ("replicas", "routing"):
            other["jobs"][0].pop(key)
        other["jobs"][0] |= keys
        changed = problem_from_json(other)
        assert changed.sha256 != problem.sha256
        assert check_solution(read(other), read(said))  # its SHA-256 is another
        renamed = copy.deepcopy(said) | {"problem_sha256": changed.sha256}
        renamed["certificate"]["problem_sha256"] = changed.sha256
        found = solution_from_json(renamed)
        proves = ceil(found.certificate.bound(changed)) >= found.lower_bound
        assert cms.check(changed, found.schedule) or not proves
        assert check_solution(read(other), read(renamed))


def test_a_job_with_a_rule_is_refused_where_nothing_is_proved_of_it() -> None:
    for method in ("greedy", "lp_rounding", "ptas", "conic", "mig_serving", "mig_serving_fast"):
        with pytest.raises(UnsupportedProblem, match="job 'chat' has replicas or equal routing"):
            solve(duo(Replicas(2)), method)
    with pytest.raises(InvalidProblem, match="which shards do not hold"):
        cms.ShardedProblem.of(duo(routing="equal"))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Replicas(0), "count of replicas is 0"),
        (lambda: Replicas(65), "65 replicas of a share of 1/130 each; expected at most 64"),
        (lambda: Replicas(2, "3/2"), "2 replicas of a share of 1.5 each; expected at most"),
        (lambda: Job("a", 1, {}, cast("Any", 2)), "replicas of job 'a' is 2; expected Replicas"),
        (lambda: Job("a", 1, {}, None, "fair"), "routing of job 'a' is 'fair'; expected"),
    ],
)
def test_bad_rules_are_refused(make: Any, said: str) -> None:
    with pytest.raises(InvalidProblem, match=said):
        make()


def test_a_problem_without_a_bundle_says_which_blocks_would_serve_it() -> None:
    problem = Problem(
        configurations=[Configuration({"1g": 7})],
        jobs=[Job("chat", 100, {"1g": 10}, Replicas(2, "1/2"))],
    )
    found = solve(problem)
    assert (found.status, found.proof) == ("infeasible", "checked")
    assert check_solution(read(problem_to_json(problem)), read(solution_to_json(found))) == []
    assert solve(duo(Replicas(3, "1/2"))).cost == 3


@given(problems(), st.integers(1, 3 * PARTS))
def test_a_share_of_demands_keeps_the_rules_exactly(problem: Problem, parts: int) -> None:
    scaled = at_share(problem, parts)
    for before, after in zip(problem.jobs, scaled.jobs, strict=True):
        assert (before.replicas, before.routing) == (after.replicas, after.routing)
        if before.replicas or before.routing == "equal":
            assert after.demand == before.demand * Fraction(parts, PARTS)


@pytest.mark.long
@given(st.integers(0, 10**6))
def test_exact_methods_agree_on_fleets_with_rules(seed: int) -> None:
    """On MIG layouts and shares: rounding, dives, programs and branches have a turn."""
    rng = random.Random(seed)
    if rng.random() < 0.5:
        sizes = {f"{size}": size for size in rng.sample(range(5, 101, 5), rng.randint(4, 10))}
        gains = {block: size / 10 for block, size in sizes.items()}
        shapes: list[Any] = [SizeBoundedConfigurations(sizes, 100, "a", rng.choice([None, 4]))]
    else:
        gains = {"1": 1, "2": 2, "3": 3, "4": 4, "7": 7}
        cuts = ({"1": 7}, {"2": 3, "1": 1}, {"3": 2}, {"4": 1, "3": 1}, {"4": 1, "2": 1, "1": 1})
        shapes = [Configuration(cut, "a") for cut in (*cuts, {"7": 1}, {"3": 1, "2": 2})]
        shapes += [Configuration(cut, "b") for cut in ({"1": 4}, {"2": 2}, {"4": 1})]
    types = [MachineType("a", 1), MachineType("b", "0.4", rng.choice([None, 4]))]
    jobs = []
    for j in range(rng.randint(4, 14)):
        power, base, demand = rng.uniform(0.6, 1.2), rng.uniform(10, 60), rng.randint(10, 900)
        supply = {b: round(base * gain**power) for b, gain in gains.items()}
        count = rng.choice([0, 0, 1, 2, 3])
        share = None if count and max(supply.values()) * 2 * count >= demand else 0
        replicas = Replicas(count, share) if count else None
        jobs.append(Job(f"j{j}", demand, supply, replicas, rng.choice(["weighted", "equal"])))
    problem = Problem(configurations=shapes, machine_types=types, jobs=jobs)
    document = read(problem_to_json(problem))
    proved_costs = set()
    for method in ("branch_and_price", "cp_sat"):
        found = solve(problem, method, threads=1, time_limit=20)
        assert check_solution(document, read(solution_to_json(found))) == []
        proved_costs |= {found.cost} if found.status in ("optimal", "infeasible") else set()
    assert len(proved_costs) <= 1
