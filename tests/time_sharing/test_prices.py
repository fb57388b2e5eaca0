"""Certificates about mixes: both checkers say what the definition says, of random leaves and trees.

The definition here: every admitted mix, one by one, against the price of its block.
"""

from __future__ import annotations

import pickle
import random
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest

import cms
from cms import BlockPrices, MixPrices, PriceFunction, TimeSharedJob, TimeSharedProblem
from cms.files import certificate_from_json, problem_to_json
from cms.time_sharing import prices as prices_module
from proofs_checks.offered import random_number
from tests.proofs_checks.both import proved, refused
from tests.references.mixes import mixes_on, time_shared_toy
from tests.samples import few, refusal, so_many

#: By block and job.
Charges = Mapping[tuple[str, str], Fraction]
ONE_PER_CENT, ZERO = Fraction(101, 100), Fraction(0)


def random_functions(rng: random.Random, problem: TimeSharedProblem) -> dict[str, PriceFunction]:
    return {
        job.name: PriceFunction(
            random_number(rng) * rng.randint(0, 3),
            [
                (rng.choice([Fraction(rng.randint(1, 6)) / job.demand, random_number(rng)]), h)
                for h in [random_number(rng) for _ in range(rng.choice([0, 0, 1, 2]))]
            ],
        )
        for job in problem.jobs
        if job.demand and rng.random() < 0.9
    }


def least_prices(
    problem: TimeSharedProblem, functions: Mapping[str, PriceFunction], charges: Charges
) -> dict[str, Fraction]:
    """The least price of each block, at which no mix on it is worth more."""
    demands, prices = {job.name: job.demand for job in problem.jobs}, dict[str, Fraction]()
    for block in problem.blocks:
        prices[block] = Fraction(0)
        for mix, rates in mixes_on(problem, block):
            value = sum((c for (on, j), c in charges.items() if on == block and j in mix), ZERO)
            for job, rate in rates.items():
                value += functions.get(job, PriceFunction()).worth(rate, demands[job])
            prices[block] = max(prices[block], value)
    return prices


def paid(problem: TimeSharedProblem, functions: Mapping[str, PriceFunction]) -> Fraction:
    demands = {job.name: job.demand for job in problem.jobs}
    return sum((f.worth(demands[name], demands[name]) for name, f in functions.items()), ZERO)


def scale_of(problem: TimeSharedProblem, prices: Mapping[str, Fraction]) -> Fraction:
    """What prices are to be multiplied by so that no machine is worth more than its cost."""
    factors = [
        problem.machine_type(shape.machine).cost / value
        for shape in problem.listed_configurations
        if (value := sum((prices[b] * n for b, n in shape.blocks.items()), Fraction(0)))
    ]
    return min(factors, default=Fraction(1))


def leaf_of(
    problem: TimeSharedProblem, functions: Mapping[str, PriceFunction], prices: Mapping[str, Any]
) -> tuple[MixPrices, Fraction]:
    """A leaf scaled as far as its prices go, and the scale."""
    scale = scale_of(problem, prices)
    scaled = {job: function.scaled(scale) for job, function in functions.items()}
    return MixPrices({b: scale * p for b, p in prices.items()}, functions=scaled), scale


def fitted(problem: TimeSharedProblem, rng: random.Random) -> MixPrices:
    """Random functions, block prices as low as they may be, scaled as far as they go."""
    functions = random_functions(rng, problem)
    return leaf_of(problem, functions, least_prices(problem, functions, {}))[0]


def require_one_bound(seed: int) -> None:
    """Both checkers and the definition say one thing of a leaf that just holds."""
    rng = random.Random(f"prices {seed}")
    problem = time_shared_toy(rng)
    leaf = fitted(problem, rng)
    document = problem_to_json(problem)
    bound = proved(document, leaf.to_json())
    lost = any(
        job.demand and not any(job.name in problem.usable_points(b) for b in problem.blocks)
        for job in problem.jobs
    )
    if bound is None:
        assert lost or not any(leaf.prices.values())
        return
    assert bound == paid(problem, leaf.functions)
    # A price lower by 1 %, or a function higher by 1 %: refused wherever a mix is then worth more.
    for block, price in leaf.prices.items():
        if price:
            lower = MixPrices(
                {**leaf.prices, block: price / ONE_PER_CENT}, functions=leaf.functions
            )
            assert "is worth" in refused(document, lower.to_json())
        # One higher by 1 %: refused where a machine is then worth more than it costs.
        prices = {**leaf.prices, block: price * ONE_PER_CENT}
        raised = MixPrices(prices, functions=leaf.functions)
        if scale_of(problem, {b: prices.get(b, ZERO) for b in problem.blocks}) < 1:
            assert "more than its machine's cost" in refused(document, raised.to_json())
    for job, function in leaf.functions.items():
        functions = {**leaf.functions, job: function.scaled(ONE_PER_CENT)}
        raised, now = (
            MixPrices(leaf.prices, functions=functions),
            least_prices(problem, functions, {}),
        )
        if any(now[block] > leaf.prices.get(block, 0) for block in now):
            assert "is worth" in refused(document, raised.to_json())
        else:
            assert proved(document, raised.to_json()) is not None


@pytest.mark.parametrize("part", few(1, range(250)))
def test_both_checkers_say_what_the_definition_says_of_a_leaf(part: int) -> None:
    for number in range(8):
        require_one_bound(8 * part + number)


def require_one_tree(seed: int) -> None:
    """Below branches on a job's blocks, mixes with it are worth more or less."""
    rng = random.Random(f"trees {seed}")
    problem = time_shared_toy(rng)
    block, job = rng.choice(problem.blocks), rng.choice(problem.jobs).name
    functions = random_functions(rng, problem)
    leaves, values = [], []
    limit = rng.randint(0, 2)
    for sign, r in ((-1, limit), (1, limit + 1)):
        multiplier = random_number(rng) * rng.randint(0, 2)
        prices = least_prices(problem, functions, {(block, job): sign * multiplier})
        leaf, scale = leaf_of(problem, functions, prices)
        more = [scale * multiplier]
        leaves.append(MixPrices(leaf.prices, multipliers=more, functions=leaf.functions))
        values.append(scale * (paid(problem, functions) + sign * multiplier * r))
    quantity = cms.BlocksOfJob(block, job)
    tree = cms.Branch(quantity, limit, *leaves)
    bound = proved(problem_to_json(problem), tree.to_json())
    if bound is not None:
        assert bound in values
    # Without what the branch adds, the price of some block is too low, or was not needed.
    price = leaves[1].prices.get(block, ZERO)
    charges = {(block, job): leaves[1].multipliers[0]}
    if 0 < price == least_prices(problem, leaves[1].functions, charges)[block]:
        cheap = {**leaves[1].prices, block: price / ONE_PER_CENT}
        forged = MixPrices(cheap, multipliers=leaves[1].multipliers, functions=leaves[1].functions)
        wrong = cms.Branch(quantity, limit, leaves[0], forged)
        assert "is worth" in refused(problem_to_json(problem), wrong.to_json())


def test_branches_on_the_blocks_of_a_job_charge_the_mixes_that_have_it() -> None:
    for seed in range(so_many(30, 1000)):
        require_one_tree(seed)


# -- one problem, by hand -----------------------------------------------------------------------

SHAPES = [cms.Configuration({"100": 1}), cms.Configuration({"60": 1, "40": 1})]
JOBS = [
    TimeSharedJob("resnet", 600, "0.1", {"60": [(8, "0.012"), (16, "0.02")], "40": [(8, 0.015)]}),
    TimeSharedJob("vgg", 100, "0.14", {"100": [(4, "0.014")], "60": [(4, "0.02")]}),
    TimeSharedJob("idle", 0, "0.14", {"60": [(4, "0.02")]}),
]
PROBLEM = TimeSharedProblem(configurations=SHAPES, jobs=JOBS)
DOCUMENT = problem_to_json(PROBLEM)
HOLDS: dict[str, Any] = {
    "prices": {"100": 1, "60": "3/5", "40": "2/5"},
    "functions": {"resnet": {"slope": "1/4"}, "vgg": {"slope": "1/10", "steps": [["0.01", 0.1]]}},
}


def test_a_leaf_and_its_copies_are_equal() -> None:
    leaf = certificate_from_json(HOLDS)
    assert isinstance(leaf, MixPrices)
    for copy in (pickle.loads(pickle.dumps(leaf)), certificate_from_json(leaf.to_json())):
        assert (type(copy), copy, hash(copy)) == (MixPrices, leaf, hash(leaf))


@pytest.mark.parametrize(
    ("functions", "place"),
    [
        ({"rasnet": {"slope": 1}}, "rasnet"),
        ({"idle": {"slope": 1}}, "idle"),
        ({"vgg": {"slope": -1}}, "vgg.slope"),
        ({"vgg": {}}, "vgg"),
        ({"vgg": {"slope": 1, "steps": [[0, 1]]}}, "times"),
        ({"vgg": {"slope": 1, "steps": [[1, -1]]}}, "vgg.steps[0][1]"),
        ({"vgg": {"slope": 1, "steps": [[1]]}}, "vgg.steps[0]"),
        ({"vgg": 1}, "vgg"),
        ([], "functions"),
    ],
)
def test_forged_functions_are_refused_by_name(functions: Any, place: str) -> None:
    assert place in refused(DOCUMENT, {**HOLDS, "functions": functions})


def test_prices_of_blocks_alone_hold_where_a_mix_is_of_one_job() -> None:
    leaf = {"prices": HOLDS["prices"]}
    assert "block prices alone prove nothing" in refused(DOCUMENT, leaf)
    alone = TimeSharedProblem(configurations=SHAPES, jobs=JOBS, max_jobs=1)
    assert proved(problem_to_json(alone), leaf) == BlockPrices(leaf["prices"]).bound(
        alone.unshared()
    )
    assert BlockPrices in cms.checker_for(alone).certificates
    assert BlockPrices not in cms.checker_for(PROBLEM).certificates


def test_limits_of_machines_have_prices_and_may_show_that_there_is_no_schedule() -> None:
    limited = PROBLEM.replace(machine_types=[cms.MachineType("machine", limit=0)])
    ray = {
        "prices": HOLDS["prices"],
        "limit_prices": {"machine": 1},
        "functions": HOLDS["functions"],
    }
    assert proved(problem_to_json(limited), ray) is None
    assert proved(problem_to_json(limited), HOLDS) == Fraction(9, 20)


def test_what_is_not_decided_does_not_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prices_module, "NODE_LIMIT", 0)
    message = refusal(cms.InvalidCertificate, certificate_from_json(HOLDS).bound, PROBLEM)
    assert "was not decided within 1 steps" in message


def test_a_check_can_be_stopped() -> None:
    steps = {f"j{at:02}": PriceFunction(0, [("1/9", 1)]) for at in range(30)}
    jobs = [
        TimeSharedJob(name, 1, 900, {"a": [(2, 20 + at), (9, 41 + at)]})
        for at, name in enumerate(steps)
    ]
    problem = TimeSharedProblem(
        configurations=cms.Configuration({"a": 1}),
        jobs=jobs,
        machine_types=[cms.MachineType("machine", cost=26)],
    )
    asked = iter([False])
    leaf = MixPrices({"a": 26}, functions=steps)
    assert leaf.judged(problem, stopped=lambda: next(asked, True)) is None
