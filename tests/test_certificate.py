"""Certificates: what they prove, by hand and by the definition, and every breach by name."""

from __future__ import annotations

import copy
import itertools
import json
import operator
import pickle
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms import knapsack
from cms.certificate import (
    LARGEST_DEPTH,
    BlockPrices,
    Branch,
    Certificate,
    first_certificate,
    round_up,
)
from cms.errors import InvalidCertificate
from cms.model import AnyConfiguration, Configuration, DemandFunction, Job, MachineType
from cms.model import SizeBoundedConfigurations as SizeBounded
from cms.problem import Problem
from cms.quantity import (
    BlocksOf,
    BlocksOfJob,
    MachinesOf,
    MachinesOfType,
    Quantity,
    quantity_from_json,
)

THIRD = Fraction(1, 3)


def refused(make: Callable[..., object], *arguments: Any, **named: Any) -> str:
    with pytest.raises(InvalidCertificate) as error:
        make(*arguments, **named)
    return str(error.value)


def triple(cost: Any = 1, limit: int | None = None) -> Problem:
    """Machines of three blocks; two jobs that need two each."""
    return Problem(
        configurations=Configuration({"b": 3}),
        jobs=[Job("x", 2, {"b": 1}), Job("y", 2, {"b": 1})],
        machine_types=[MachineType("machine", cost, limit)],
    )


def two_types(limit_of_dear: int | None = None) -> Problem:
    """Two blocks are needed; a cheap machine costs 1 and there is one, a dear one costs 3."""
    return Problem(
        configurations=[Configuration({"b": 1}, "cheap"), Configuration({"b": 1}, "dear")],
        jobs=[Job("x", 2, {"b": 1})],
        machine_types=[MachineType("cheap", 1, 1), MachineType("dear", 3, limit_of_dear)],
    )


# --- prices, by hand ------------------------------------------------------------------------------


def test_prices_prove_what_the_jobs_must_pay() -> None:
    problem = Problem(
        configurations=[Configuration({"7g": 1}), Configuration({"1g": 7})],
        jobs=[Job("bert", 1200, {"1g": 90, "7g": 800}), Job("vgg", 100, {"7g": 500})],
    )
    # bert: 14 x 1/7 = 2, 1 + 5 x 1/7 = 12/7 (800 + 450 >= 1200), 2 x 1 = 2; vgg: 1
    assert BlockPrices({"1g": "1/7", "7g": 1}).bound(problem) == Fraction(19, 7)
    # a block left out has the price 0
    assert BlockPrices({"7g": 1}).bound(problem) == 0 + 1
    assert BlockPrices().bound(problem) == 0
    assert not BlockPrices().proves_infeasible(problem)


@pytest.mark.parametrize("scale", [1, 10**12, 10**30])
def test_huge_demands_are_priced_exactly(scale: int) -> None:
    problem = Problem(
        configurations=Configuration({"p": 1, "q": 1}),
        jobs=[Job("x", 7 * scale, {"p": 7, "q": 2})],
    )
    # p is the better bargain: 7 for 1/2; then 2 for 1/2
    assert BlockPrices({"p": "1/2", "q": "1/2"}).bound(problem) == Fraction(scale, 2)
    assert BlockPrices({"p": 1}).bound(problem) == 0
    # 7 x scale / 2 blocks q, rounded up
    assert BlockPrices({"p": 0, "q": 1}).bound(problem) == 0


def test_thirds_add_up_to_one_exactly() -> None:
    problem = Problem(configurations=Configuration({"b": 3}), jobs=[Job("x", 1, {"b": THIRD})])
    assert BlockPrices({"b": THIRD}).bound(problem) == 1
    message = refused(BlockPrices({"b": "0.33333333333333334"}).bound, problem)
    assert message.startswith("configuration 3 x b is worth 1.00000000000000002 at these prices")
    # three blocks of 333.3333333333333 meet 999.9999999999999, four are needed for 1000
    for demand, blocks in ((999.9999999999999, 3), (1000, 4)):
        long = Problem(
            configurations=Configuration({"b": 1}),
            jobs=[Job("x", demand, {"b": 333.3333333333333})],
        )
        assert BlockPrices({"b": 1}).bound(long) == blocks


def test_limit_prices_make_a_scarce_machine_dear() -> None:
    # b is worth 3 on both types: 3 <= 1 + 2 and 3 <= 3; 2 x 3 for the job, less 1 x 2
    assert BlockPrices({"b": 3}, {"cheap": 2}).bound(two_types()) == 4
    assert BlockPrices({"b": 1}).bound(two_types()) == 2


def test_prices_that_hold_at_no_cost_prove_that_there_is_no_schedule() -> None:
    ray = BlockPrices({"b": 1}, {"cheap": 1, "dear": 1})
    # at no cost 1 <= 0 + 1 on both types; 2 x 1 less 1 x 1 + 0 x 1 is positive
    problem = two_types(limit_of_dear=0)
    assert (ray.bound(problem), ray.proves_infeasible(problem)) == (1, True)
    # one dear machine is enough: 2 - 1 - 1 = 0 proves nothing
    enough = two_types(limit_of_dear=1)
    assert (ray.bound(enough), ray.proves_infeasible(enough)) == (0, False)
    # positive, but only with the costs
    bound = BlockPrices({"b": 3}, {"cheap": 2})
    assert not bound.proves_infeasible(two_types(limit_of_dear=0))


def test_machines_that_cost_nothing_are_no_proof_by_themselves() -> None:
    problem = triple(cost=0)
    assert BlockPrices().bound(problem) == 0
    assert refused(BlockPrices({"b": 1}).bound, problem) == (
        "configuration 3 x b is worth 3 at these prices, more than its machine's cost 0"
    )
    limited = triple(cost=0, limit=1)
    # 4 x 1/3 less 1 x 1: one machine of three blocks is not enough
    assert BlockPrices({"b": THIRD}, {"machine": 1}).proves_infeasible(limited)


@pytest.mark.parametrize(
    ("demand", "table", "lost"),
    [(1, {}, True), (1, {"b": 0}, True), (0, {}, False), (1, {"b": 1}, False)],
)
def test_a_job_that_nothing_serves_needs_no_prices(
    demand: int, table: dict[str, int], lost: bool
) -> None:
    problem = Problem(
        configurations=Configuration({"b": 1}),
        jobs=[Job("x", demand, table), Job("y", 1, {"b": 1})],
    )
    assert BlockPrices().proves_infeasible(problem) == lost
    assert BlockPrices({"b": 1}).bound(problem) == 1 + (demand and not lost)  # it counts 0


def test_the_fullest_machine_of_a_size_bounded_set_decides() -> None:
    sizes = {"a": 44, "b": 33, "c": 12}
    problem = Problem(
        configurations=SizeBounded(sizes, 132),
        jobs=[Job(block, n, {block: 1}) for block, n in {"a": 2, "b": 3, "c": 6}.items()],
    )
    # prices by size are worth at most 132/132: 2 x 44 + 3 x 33 + 6 x 12 = 259
    by_size = {block: Fraction(size, 132) for block, size in sizes.items()}
    assert BlockPrices(by_size).bound(problem) == Fraction(259, 132)
    # 3 a, 4 b or 11 c fill a machine, a third each; but 2 a + 1 b + 0 c and so on are also there
    dear = BlockPrices({"a": THIRD, "b": "1/4", "c": "1/10"})
    # the fullest: 11 c = 1.1
    assert refused(dear.bound, problem) == (
        "the fullest machine of capacity 132 is worth 1.1 at these prices, more than its "
        "machine's cost 1"
    )
    few = problem.replace(configurations=[SizeBounded(sizes, 132, max_blocks=3)])
    # at most three blocks: 3 a are worth 3 x 1/3
    assert dear.bound(few) == Fraction(2, 3) + Fraction(3, 4) + Fraction(6, 10)


# --- branches, by hand ----------------------------------------------------------------------------


def test_a_branch_on_machines_of_a_type() -> None:
    # at most one machine: 3 x 1 - 3 <= 3/2 holds, 4 - 3 x 1 = 1 ... also at no cost: 3 - 3 <= 0
    proof = Branch(
        MachinesOfType("machine"),
        1,
        below=BlockPrices({"b": 1}, multipliers=[3]),
        above=BlockPrices(multipliers=["3/2"]),  # at least two: 3/2 each
    )
    problem = triple(cost="3/2")
    assert not BlockPrices({"b": "1/2"}).proves_infeasible(problem)
    assert (proof.bound(problem), proof.proves_infeasible(problem)) == (3, False)
    only_one = problem.replace(machine_types=[MachineType("machine", "3/2", 1)])
    # with at most one machine there is no schedule at all, which these prices do not say
    assert not proof.proves_infeasible(only_one)
    ray = Branch(MachinesOfType("machine"), 1, proof.below, BlockPrices({}, {"machine": 1}, [1]))
    limited = triple(cost="3/2", limit=1)
    # above: 1 <= 0 + 1 at no cost, and 1 x 2 - 1 x 1 > 0: two machines are more than there are
    assert (ray.proves_infeasible(limited), ray.bound(limited)) == (True, 1)


def test_a_branch_on_all_blocks_of_a_type() -> None:
    proof = Branch(
        BlocksOf("b"),
        3,
        below=BlockPrices({"b": 1}, multipliers=[1]),  # 3 x (1 - 1) <= 0; 4 x 1 - 1 x 3 = 1 > 0
        above=BlockPrices({"b": "1/2"}, multipliers=[0]),  # 3 x 1/2 <= 3/2; 4 x 1/2
    )
    assert proof.bound(triple(cost="3/2")) == 2
    idle = Branch(
        BlocksOf("b"),
        5,
        below=BlockPrices({"b": "1/2"}, multipliers=[0]),
        above=BlockPrices(multipliers=["1/2"]),  # six blocks or more, used or idle: 6 x 1/2
    )
    assert idle.bound(triple(cost="3/2")) == 2
    # the above side by itself: 1/2 x 6 = 3
    assert Branch(BlocksOf("b"), 5, BlockPrices({"b": 1}, multipliers=[1]), idle.above).bound(
        triple(cost="3/2")
    ) == min(4 - 5, 3)


def test_a_branch_on_machines_of_one_configuration() -> None:
    problem = Problem(
        configurations=[Configuration({"b": 3}), Configuration({"b": 1})],
        jobs=[Job("x", 4, {"b": 1})],
    )
    proof = Branch(
        MachinesOf(Configuration({"b": 3})),
        1,
        # at most one of three blocks: 3 x 1 - 2 <= 1 and 1 <= 1; 4 - 2 x 1 = 2
        below=BlockPrices({"b": 1}, multipliers=[2]),
        above=BlockPrices(multipliers=[1]),  # at least two machines: 1 x 2
    )
    assert proof.bound(problem) == 2
    named = Branch(MachinesOf(Configuration({"b": 3}, "machine")), 1, proof.below, proof.above)
    assert named.bound(problem) == 2
    # listed twice, it is one configuration all the same
    twice = problem.replace(configurations=[*problem.configurations, Configuration({"b": 3})])
    assert proof.bound(twice) == 2


def test_a_branch_on_the_blocks_of_a_job() -> None:
    problem = Problem(
        configurations=Configuration({"p": 1, "q": 1}),
        jobs=[Job(name, 2, {"p": 2, "q": 1}) for name in "xy"],
    )
    prices = {"p": "2/3", "q": "1/3"}
    proof = Branch(
        BlocksOfJob("p", "x"),
        0,
        # without p, x pays 2/3 for two q (a p would cost it 2/3 + 1/3); y pays 2/3
        below=BlockPrices(prices, multipliers=["1/3"]),
        # with at least one p, x pays 2/3 - 1/3 for it, and the branch adds 1/3 x 1
        above=BlockPrices(prices, multipliers=["1/3"]),
    )
    assert proof.bound(problem) == Fraction(4, 3)
    too_much = Branch(proof.quantity, 0, proof.below, BlockPrices(prices, multipliers=[1]))
    assert refused(too_much.bound, problem) == (
        "job 'x' would pay -1/3 for the block 'p': multipliers must leave every price >= 0"
    )


def test_branches_may_contradict_each_other() -> None:
    # at most 1 and at least 5 machines: multipliers of any size prove anything there, soundly
    nonsense = Branch(
        MachinesOfType("machine"), 4,
        below=BlockPrices({}, multipliers=[7, 7]),
        above=BlockPrices({}, multipliers=[7, 7]),  # 7 - 7 <= 0; 7 x 5 - 7 x 1 = 28 > 0
    )  # fmt: skip
    tree = Branch(MachinesOfType("machine"), 1, nonsense, above=BlockPrices(multipliers=["1"]))
    # below, below: -7 - 7 <= 1; -7 x 1 - 7 x 4 = -35
    assert tree.bound(triple()) == -35
    assert list(tree.leaves()) == [nonsense.below, nonsense.above, tree.above]


def test_a_bound_may_be_negative_and_at_most_may_be_too() -> None:
    proof = Branch(
        MachinesOfType("machine"),
        -(10**30),
        below=BlockPrices(multipliers=[1]),
        above=BlockPrices(multipliers=[0]),
    )
    # fewer than none: -1 <= 0, and 1 x 10**30 > 0 proves that it cannot be
    assert proof.bound(triple()) == 0


# --- by the definition ----------------------------------------------------------------------------

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
        for content in contents(shape):
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


def contents(shape: AnyConfiguration) -> Iterator[dict[str, int]]:
    """What one machine may hold; of a size-bounded set also nothing."""
    if isinstance(shape, Configuration):
        yield dict(shape.blocks)
        return
    ranges = [range(shape.largest_count(block) + 1) for block in shape.sizes]
    for numbers in itertools.product(*ranges):
        content = dict(zip(shape.sizes, numbers, strict=True))
        if shape.allows(content):
            yield content


def machines_count(shape: AnyConfiguration, content: dict[str, int], q: Quantity) -> int:
    """How often one machine with this content counts in a quantity."""
    if isinstance(q, MachinesOfType):
        return int(q.machine == shape.machine)
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


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    costs: st.SearchStrategy[Any] = st.sampled_from([0, 1, Fraction(3, 2), 2])
    limits = st.sampled_from([None, None, 0, 1, 2])
    types = [
        MachineType(name, draw(costs), draw(limits)) for name in draw(st.sampled_from(["m", "mn"]))
    ]
    shapes: list[AnyConfiguration] = []
    blocks = st.dictionaries(st.sampled_from("pqr"), st.integers(1, 3), min_size=1)
    for _ in range(draw(st.integers(1, 3))):
        machine = draw(st.sampled_from(types)).name
        if draw(st.booleans()):
            shapes.append(Configuration(draw(blocks), machine))
        else:
            capacity, most = draw(st.integers(0, 6)), draw(st.none() | st.integers(1, 3))
            shapes.append(SizeBounded(draw(blocks), capacity, machine, most))
    held = [shape.blocks if isinstance(shape, Configuration) else shape.sizes for shape in shapes]
    known = sorted({block for blocks_held in held for block in blocks_held})
    amounts: st.SearchStrategy[Any] = st.sampled_from([0, 1, 2, 3, Fraction(1, 2), Fraction(5, 3)])
    jobs = [
        Job(name, draw(amounts), {block: draw(amounts) for block in known})
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
        return BlockPrices(prices, sigma, [draw(SMALL) for _ in range(above)])
    choices: list[Quantity] = [MachinesOfType(m.name) for m in problem.machine_types]
    choices += [BlocksOf(block) for block in problem.blocks]
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
        assert refused(certificate.bound, problem)
        assert refused(certificate.proves_infeasible, problem)
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
        Certificate.from_json(json.loads(text)),
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


# --- what a certificate may not say ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("certificate", "message"),
    [
        (BlockPrices({"c": 1}), "a price for the block 'c', which the problem does not have"),
        (BlockPrices({"B": 1}), "a price for the block 'B', which the problem does not have; near"),
        (BlockPrices({"c": 0}), "a price for the block 'c', which the problem does not have"),
        (
            BlockPrices({}, {"Dear": 0}),
            "a price for the machine type 'Dear', which the problem does not have; nearest: 'dear'",
        ),
        (
            BlockPrices({}, {"dear": "1/7"}),
            "limit price 1/7 on machine type 'dear', which has no limit",
        ),
        (
            BlockPrices(multipliers=[1]),
            "a leaf below 0 branches has 1 multipliers; expected one for each branch",
        ),
        (
            Branch(BlocksOf("b"), 0, BlockPrices(multipliers=[0]), BlockPrices()),
            "a leaf below 1 branches has 0 multipliers; expected one for each branch",
        ),
        (
            BlockPrices({"b": 2}, {"cheap": 1}),
            None,
        ),
        (
            BlockPrices({"b": "2.5"}, {"cheap": 1}),
            "configuration b on 'cheap' is worth 2.5 at these prices, more than its machine's cost "
            "1 + limit price 1",
        ),
        (
            BlockPrices({"b": 4}, {"cheap": 3}),
            "configuration b on 'dear' is worth 4 at these prices, more than its machine's cost 3",
        ),
    ],
)
def test_a_breach_is_named(certificate: Certificate, message: str | None) -> None:
    if message is None:
        assert certificate.bound(two_types()) == 4 - 1
        return
    assert refused(certificate.bound, two_types()).startswith(message)
    assert refused(certificate.proves_infeasible, two_types()).startswith(message)


@pytest.mark.parametrize(
    ("quantity", "message"),
    [
        (MachinesOfType("DEAR"), "a branch on the machine type 'DEAR', which the problem does not "
                                 "have; nearest: 'dear'"),
        (BlocksOf("c"), "a branch on the block 'c', which the problem does not have"),
        (BlocksOfJob("c", "x"), "a branch on the block 'c', which the problem does not have"),
        (BlocksOfJob("b", "z"), "a branch on the job 'z', which the problem does not have"),
        (MachinesOf(Configuration({"b": 1})), "a branch on Configuration(b), which is not a listed "
                                              "configuration of the problem"),
        (MachinesOf(Configuration({"b": 2}, "dear")), "a branch on Configuration(2 x b on dear), "),
    ],
)  # fmt: skip
@pytest.mark.parametrize("multiplier", [0, 1])
def test_a_branch_is_on_something_the_problem_has(
    quantity: Quantity, message: str, multiplier: int
) -> None:
    leaf = BlockPrices(multipliers=[multiplier])
    assert refused(Branch(quantity, 0, leaf, leaf).bound, two_types()).startswith(message)


def test_a_branch_is_not_on_a_configuration_that_a_set_has_as_well() -> None:
    shape = Configuration({"b": 2}, "machine")
    problem = Problem(configurations=[shape, SizeBounded({"b": 1}, 2)])
    leaf = BlockPrices(multipliers=[0])
    assert refused(Branch(MachinesOf(shape), 0, leaf, leaf).bound, problem) == (
        "a branch on Configuration(2 x b on machine), which also belongs to a size-bounded set: "
        "branch on its machine type or on blocks instead"
    )
    smaller = problem.replace(configurations=[shape, SizeBounded({"b": 1}, 1)])
    assert Branch(MachinesOf(shape), 0, leaf, leaf).bound(smaller) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (({"b": -1},), "price of block 'b' is -1; expected a number >= 0"),
        (({"b": float("nan")},), "price of block 'b' is nan; expected a finite number"),
        (({"b": "x"},), "price of block 'b': 'x' is not a number"),
        (({"b": None},), "price of block 'b' is None; expected a finite number"),
        (({"b": True},), "price of block 'b' is True; expected a finite number"),
        (({5: 1},), "block name is 5; expected a text that is not empty"),
        (({5: 1, "b": 1},), "block name is 5; expected a text that is not empty"),
        ((["b"],), "the prices of every block are ['b']; expected a mapping of names to numbers"),
        (({}, {"m": -1}), "price of limit of machine type 'm' is -1; expected a number >= 0"),
        (({}, {"m": Decimal("NaN")}), "price of limit of machine type 'm' is Decimal('NaN'); ex"),
        (({}, "m"), "the prices of every limit of machine type are 'm'; expected a mapping"),
        (({}, {}, [-1]), "multiplier is -1; expected a number >= 0"),
        (({}, {}, ["a"]), "multiplier: 'a' is not a number"),
        (({}, {}, "12"), "multipliers is '12'; expected a list of numbers"),
        (({}, {}, 5), "multipliers is 5; expected a list of numbers"),
        (({"b": 10**5000},), "price of block 'b' has more than 4300 digits; round it"),
    ],
)
def test_prices_that_are_none_are_refused(arguments: Any, message: str) -> None:
    assert refused(BlockPrices, *arguments).startswith(message)


def test_prices_may_be_numbers_of_any_kind() -> None:
    multipliers: Any = np.array([1, 2])
    prices = BlockPrices(
        {"a": 0.1, "b": np.float32(0.1), "c": "1/10", "d": Decimal("0.1"), "e": Fraction(1, 10)},
        None,
        multipliers,
    )
    assert set(prices.prices.values()) == {Fraction(1, 10)}
    assert prices.multipliers == (1, 2)
    assert {type(m) for m in prices.multipliers} == {Fraction}


LEAF = BlockPrices(multipliers=[0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("b", 0, LEAF, LEAF), "a branch on 'b'; expected MachinesOfType, MachinesOf, BlocksOf or"),
        ((None, 0, LEAF, LEAF), "a branch on None; expected MachinesOfType"),
        ((BlocksOf("b"), 0.5, LEAF, LEAF), "at_most is 0.5; expected a whole number"),
        ((BlocksOf("b"), "1/3", LEAF, LEAF), "at_most is 1/3; expected a whole number"),
        ((BlocksOf("b"), True, LEAF, LEAF), "at_most is True; expected a finite number"),
        ((BlocksOf("b"), None, LEAF, LEAF), "at_most is None; expected a finite number"),
        ((BlocksOf("b"), 0, None, LEAF), "a branch holds None; expected a certificate"),
        ((BlocksOf("b"), 0, LEAF, {}), "a branch holds {}; expected a certificate"),
    ],
)
def test_branches_that_are_none_are_refused(arguments: Any, message: str) -> None:
    assert refused(Branch, *arguments).startswith(message)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MachinesOfType(5), "a branch on a bad name: machine type name is 5"),  # type: ignore[arg-type]
        (lambda: BlocksOf(""), "a branch on a bad name: block name is ''"),
        (lambda: BlocksOfJob("b", ["x"]), "a branch on a bad name: job name is ['x']"),  # type: ignore[arg-type]
        (lambda: BlocksOfJob(None, "x"), "a branch on a bad name: block name is None"),  # type: ignore[arg-type]
        (lambda: MachinesOf("b"), "a branch on machines of 'b'; expected a Configuration"),  # type: ignore[arg-type]
        (lambda: MachinesOf(SizeBounded({"b": 1}, 1)), "a branch on machines of SizeBounded"),  # type: ignore[arg-type]
    ],
)
def test_quantities_that_are_none_are_refused(make: Callable[[], Quantity], message: str) -> None:
    assert refused(make).startswith(message)


class Everywhere(BlocksOf):
    """A quantity that is known to every problem."""

    def refuse_unknown(self, problem: Problem) -> None:
        pass


class Turncoat(Configuration):
    """A configuration that is equal to any other."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


def test_a_quantity_of_ones_own_could_lie_and_is_refused() -> None:
    assert refused(Branch, Everywhere("b"), 0, LEAF, LEAF).startswith("a branch on ")
    assert refused(MachinesOf, Turncoat({"b": 3})).startswith("a branch on machines of ")


# --- JSON -----------------------------------------------------------------------------------------


def test_a_tree_in_json_is_plain_to_read() -> None:
    tree = Branch(
        MachinesOf(Configuration({"3g": 2, "1g": 1}, "a100")),
        3,
        BlockPrices({"1g": "1/7", "3g": 0.5}, {"a100": 2}, [0]),
        Branch(BlocksOfJob("3g", "bert"), -1, BlockPrices(multipliers=[1, "0.25"]), BlockPrices()),
    )
    assert tree.to_json() == {
        "branch": {"machines_of": {"machine": "a100", "blocks": {"1g": 1, "3g": 2}}},
        "at_most": 3,
        "below": {
            "prices": {"1g": "1/7", "3g": "0.5"},
            "limit_prices": {"a100": 2},
            "multipliers": [0],
        },
        "above": {
            "branch": {"blocks_of_job": {"block": "3g", "job": "bert"}},
            "at_most": -1,
            "below": {"prices": {}, "limit_prices": {}, "multipliers": [1, "0.25"]},
            "above": {"prices": {}, "limit_prices": {}, "multipliers": []},
        },
    }
    assert BlocksOf("3g").to_json() == {"blocks_of": "3g"}
    assert MachinesOfType("a100").to_json() == {"machines_of_type": "a100"}


GOOD: dict[str, Any] = {"branch": {"blocks_of": "b"}, "at_most": 0, "below": {}, "above": {}}


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (None, "a certificate is None; expected an object"),
        ([], "a certificate is []; expected an object"),
        ("prices", "a certificate is 'prices'; expected an object"),
        ({"price": {}}, "a certificate has the unknown entry 'price'; nearest: 'prices'"),
        ({"prices": []}, "prices is []; expected an object of numbers"),
        ({"prices": None}, "prices is None; expected an object of numbers"),
        ({"prices": {"b": [1]}}, "price of block 'b' is [1]; expected a finite number"),
        ({"prices": {"": 1}}, "block name is ''; expected a text that is not empty"),
        ({"limit_prices": 5}, "limit_prices is 5; expected an object of numbers"),
        ({"multipliers": {}}, "multipliers is {}; expected a list of numbers"),
        ({"multipliers": "12"}, "multipliers is '12'; expected a list of numbers"),
        ({"multipliers": [None]}, "multiplier is None; expected a finite number"),
        ({"branch": {"blocks_of": "b"}}, "a branch lacks above, at_most, below"),
        ({**GOOD, "prices": {}}, "a certificate has the unknown entry 'prices'"),
        ({**GOOD, "at_most": 1.5}, "at_most is 1.5; expected a whole number"),
        ({**GOOD, "at_most": []}, "at_most is []; expected a finite number"),
        ({**GOOD, "below": 7}, "a certificate is 7; expected an object"),
        ({**GOOD, "branch": "b"}, "a branch on 'b'; expected one of machines_of_type, machines_of"),
        ({**GOOD, "branch": {}}, "a branch on {}; expected one of machines_of_type"),
        ({**GOOD, "branch": {"blocks_of": 5}}, "a branch on {'blocks_of': 5}; expected one of"),
        ({**GOOD, "branch": {"blocks_of": ""}}, "a branch on a bad name: block name is ''"),
        (
            {**GOOD, "branch": {"blocks_of": "b", "machines_of_type": "m"}},
            "a branch on {'blocks_of': 'b', 'machines_of_type': 'm'}; expected one of",
        ),
        ({**GOOD, "branch": {"jobs_of": "b"}}, "a branch on {'jobs_of': 'b'}; expected one of"),
        ({**GOOD, "branch": {"blocks_of_job": {"block": "b"}}}, "a branch on {'blocks_of_job': {"),
        (
            {**GOOD, "branch": {"blocks_of_job": {"block": "b", "job": "x", "z": 1}}},
            "a branch on {'blocks_of_job': {",
        ),
        ({**GOOD, "branch": {"machines_of": {}}}, "a branch on a bad configuration: a configurat"),
        (
            {**GOOD, "branch": {"machines_of": {"blocks": {"b": -1}}}},
            "a branch on a bad configuration: count of block 'b' in a configuration is -1",
        ),
        (
            {**GOOD, "branch": {"machines_of": {"blocks": ["b"]}}},
            "a branch on a bad configuration: a configuration is ['b']",
        ),
        (
            {**GOOD, "branch": {"machines_of": {"blocks": {"b": 1}, "machine": 5}}},
            "a branch on a bad configuration: machine type name is 5",
        ),
        (
            {**GOOD, "branch": {"machines_of": {"blocks": {"b": 1}, "type": "m"}}},
            "a branch on {'machines_of': ",
        ),
    ],
)
def test_json_that_is_no_tree_is_refused(tree: Any, message: str) -> None:
    assert refused(Certificate.from_json, tree).startswith(message)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["prices", "limit_prices", "multipliers", "branch", "at_most", "below", "above",
                 "blocks_of", "machines_of", "blocks_of_job", "block", "job", "machine", "blocks"]
            ),
            inner, max_size=4,
        ),
        max_leaves=12,
    )
)  # fmt: skip
def test_any_json_is_a_tree_or_is_refused_as_a_certificate(value: Any) -> None:
    for read in (Certificate.from_json, quantity_from_json):
        try:
            thing = read(value)
        except InvalidCertificate:
            continue
        assert read(json.loads(json.dumps(thing.to_json()))) == thing


# --- depth ----------------------------------------------------------------------------------------


def chain(depth: int) -> Certificate:
    """A branch above a branch above a branch; each leaf with its multipliers."""
    tree: Certificate = BlockPrices(multipliers=[0] * depth)
    for above in range(depth - 1, -1, -1):
        tree = Branch(
            MachinesOfType("machine"), 0, BlockPrices(multipliers=[0] * (above + 1)), tree
        )
    return tree


def test_the_deepest_tree_allowed_can_be_used_in_every_way() -> None:
    tree = chain(LARGEST_DEPTH)
    assert isinstance(tree, Branch)
    assert tree.depth == LARGEST_DEPTH
    assert len(list(tree.leaves())) == LARGEST_DEPTH + 1
    assert tree.bound(triple()) == 0
    for twin in (
        pickle.loads(pickle.dumps(tree)),
        Certificate.from_json(json.loads(json.dumps(tree.to_json()))),
    ):
        assert twin == tree
        assert hash(twin) == hash(tree)
    assert repr(tree)


def test_a_deeper_tree_is_refused() -> None:
    message = f"a certificate has more than {LARGEST_DEPTH} branches above one another"
    assert refused(chain, LARGEST_DEPTH + 1) == message
    value: dict[str, Any] = {}
    for _ in range(LARGEST_DEPTH + 1):
        value = {**GOOD, "above": value}
    assert refused(Certificate.from_json, value) == message


# --- what cannot be changed -----------------------------------------------------------------------


@pytest.mark.parametrize("certificate", [BlockPrices({"b": 1}, {"m": 1}, [1]), chain(1)], ids=repr)
def test_a_certificate_cannot_be_changed(certificate: Any) -> None:
    before = certificate.to_json()
    for name in ("prices", "limit_prices", "multipliers", "quantity", "below", "depth", "new"):
        with pytest.raises((AttributeError, TypeError)):
            setattr(certificate, name, None)
        with pytest.raises((AttributeError, TypeError)):
            delattr(certificate, name)
    for leaf in certificate.leaves():
        with pytest.raises((AttributeError, TypeError)):
            leaf.prices["b"] = 5
    before["prices" if "prices" in before else "below"] = None
    assert certificate.to_json() != before


def test_the_prices_given_may_change_later() -> None:
    prices = {"b": 1}
    certificate = BlockPrices(prices)
    prices["b"] = 5
    assert certificate.prices == {"b": 1}
    assert certificate == BlockPrices({"b": "1"}, {}, ())
    assert certificate != BlockPrices({"b": 1, "c": 0})


# --- what is certain before any work; rounding ----------------------------------------------------


def test_the_first_certificate_sees_blocks_that_no_machine_can_have() -> None:
    problem = Problem(
        configurations=[
            Configuration({"here": 1}),
            SizeBounded({"small": 1, "giant": 3}, capacity=2),
        ],
        jobs=[Job("x", 1, {"here": 1, "giant": 1})],
    )
    first = first_certificate(problem)
    assert first == BlockPrices({"giant": 1})
    assert (first.bound(problem), first.proves_infeasible(problem)) == (0, False)
    lost = Problem(configurations=problem.configurations, jobs=[Job("x", 5, {"giant": 2})])
    # three giants that nobody has
    assert (first.bound(lost), first.proves_infeasible(lost)) == (3, True)
    nowhere = Problem.from_arrays(
        demands=[1], supply=[[0, 1]], configurations=Configuration({"a": 1}), blocks=["a", "z"]
    )
    assert first_certificate(nowhere).proves_infeasible(nowhere)
    assert first_certificate(Problem(configurations=[])) == BlockPrices()


@pytest.mark.parametrize(
    ("bound", "step", "rounded"),
    [
        (Fraction(176, 15), Fraction(1), Fraction(12)),
        (Fraction(12), Fraction(1), Fraction(12)),
        (Fraction(5, 4), Fraction(1, 2), Fraction(3, 2)),
        (Fraction(1, 10**30), Fraction(1, 3), Fraction(1, 3)),
        (Fraction(0), Fraction(5), Fraction(0)),
        (Fraction(-7, 2), Fraction(1), Fraction(-3)),
        (Fraction(7, 2), Fraction(0), Fraction(7, 2)),  # all machines are free: nothing to round to
    ],
)
def test_a_bound_is_rounded_up_to_what_schedules_can_cost(
    bound: Fraction, step: Fraction, rounded: Fraction
) -> None:
    assert round_up(bound, step) == rounded


# --- many jobs ------------------------------------------------------------------------------------


def test_jobs_too_far_from_their_blocks_are_priced_exactly_among_many() -> None:
    n = knapsack.COMPILED_FROM
    demands, supply = [7] * n, [[2, 3]] * n
    demands[5], supply[5] = 10**30 + 1, [10, 1]
    demands[6], supply[6] = 10**30, [0, 0]
    problem = Problem.from_arrays(demands=demands, supply=supply, configurations=[[1, 1]])
    prices = BlockPrices({"b0": "1/2", "b1": "1/2"})
    # 7 takes 3 blocks (3 + 3 + 2); 10**30 + 1 takes 10**29 of ten and one more
    assert prices.bound(problem) == Fraction(3 * (n - 2) + 10**29 + 1, 2)
    assert prices.proves_infeasible(problem)
    pricing = knapsack.price_jobs(problem.rows, [1, 1], want_options=True)
    assert pricing is not None
    assert pricing.unservable == (6,)
    assert pricing.options is not None
    assert pricing.options[5].tolist() in ([10**29, 1], [10**29 + 1, 0])
