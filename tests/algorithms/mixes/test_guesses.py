"""Mixes at rough prices: on a grid they are worth what they say, in a list none is dearer."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, product
from random import Random

import numpy as np
import pytest

from algorithms.mixes.block_list import BlockList, guesser_of
from algorithms.mixes.columns import Columns
from algorithms.mixes.knapsack import BlockKnapsack, Guess, Prices
from bench.runs.solving import recheck
from cms import Configuration, TimeSharedJob, TimeSharedProblem, solve
from cms.mixes import problem as problems
from instances.families.time_sharing import random_mix
from tests.samples import few


def block_list(columns: Columns, i: int) -> BlockList:
    found = guesser_of(columns, i)
    assert isinstance(found, BlockList)
    return found


def random_prices(rng: Random, columns: Columns, block: int) -> Prices:
    """Slopes, steps and charges of either sign, some of them 0."""
    jobs = range(len(columns.problem.jobs))
    slopes = [rng.choice([0.0, rng.random(), rng.random()]) for _ in jobs]
    steps = {
        job: [(rng.uniform(0.5, 4), rng.random() / 2) for _ in range(rng.randint(1, 3))]
        for job in jobs
        if rng.random() < 0.4
    }
    lengths = [(job, float(length)) for (job, _), length in columns.lengths(block).items()]
    turns: dict[int, list[tuple[float, float]]] = {}
    for job, length in rng.sample(lengths, min(2, len(lengths))):
        if rng.random() < 0.5:
            turns[job] = [(length * rng.choice([0, 1]), rng.uniform(-1, 1))]
    return Prices(np.array(slopes), steps, turns)


def worth_of(
    columns: Columns, block: int, amounts: dict[int, Fraction], prices: Prices, left: list[float]
) -> float:
    """What a mix is worth, job by job; those of which nothing is left pay nothing."""
    frame = sum(columns.lengths(block)[pick] for pick in amounts.items())
    total = 0.0
    for job, amount in amounts.items():
        if left[job]:
            share = float(amount / (frame * columns.problem.jobs[job].demand)) / left[job]
            total += float(prices.worth(job, np.array([min(share, 1.0)]))[0])
            length = float(columns.lengths(block)[job, amount])
            total += float(prices.charged(job, np.array([length]))[0])
    return total


def all_amounts(columns: Columns, block: int) -> Iterator[dict[int, Fraction]]:
    """All admitted mixes of the points that best mixes are made of."""
    problem, names = columns.problem, columns.problem.job_names
    points: dict[int, list[Fraction]] = {}
    for job, amount in columns.lengths(block):
        points.setdefault(job, []).append(amount)
    for n in range(1, min(problem.max_jobs or len(points), len(points)) + 1):
        for jobs in combinations(points, n):
            for chosen in product(*(points[job] for job in jobs)):
                mix = {names[job]: amount for job, amount in zip(jobs, chosen, strict=True)}
                if problem.frame(problem.blocks[block], mix).admitted:
                    yield dict(zip(jobs, chosen, strict=True))


def require_kept(columns: Columns, block: int, guess: Guess) -> None:
    """The mix is admitted, of points that best mixes are made of, and within the cap."""
    number = columns.number(block, guess.amounts)
    mix, cap = columns.listed[number].mix, columns.problem.max_jobs
    assert columns.problem.frame(columns.problem.blocks[block], mix).admitted
    assert cap is None or len(mix) <= cap


def test_guesses_on_a_grid_are_admitted_and_worth_what_they_say() -> None:
    """Where all of the demands are left, and where some of them are, or nothing."""
    for cap in (None, 2):
        problem = random_mix(4, most=6, max_jobs=cap)
        columns, rng = Columns(problem), Random(f"guesses {cap}")
        for i in range(len(problem.blocks)):
            whole, some = [1.0] * problem.n_jobs, [rng.choice([0, 0.3, 1]) for _ in problem.jobs]
            for parts, given in ((whole, None), (some, np.array(some))):
                prices = random_prices(rng, columns, i)
                guesses = BlockKnapsack(columns, i).guesses(prices, 0.0, 50, given)
                assert guesses
                for guess in guesses:
                    require_kept(columns, i, guess)
                    worth = worth_of(columns, i, guess.amounts, prices, parts)
                    assert guess.worth == pytest.approx(worth)


@pytest.mark.parametrize("seed", few(2, range(40)))
def test_the_dearest_of_all_mixes_is_found_where_all_are_listed(seed: int) -> None:
    """Of each set of jobs, the dearest first."""
    rng = Random(f"listing {seed}")
    rule = rng.choice(["round_robin", "collect_then_run"])
    problem = random_mix(seed, most=4, max_jobs=rng.choice([None, 1, 2, 3]), rule=rule)
    columns, whole = Columns(problem), [1.0] * problem.n_jobs
    for i in range(len(problem.blocks)):
        own, every = block_list(columns, i), list(all_amounts(columns, i))
        for _ in range(3):
            prices = random_prices(rng, columns, i)
            best: dict[frozenset[int], float] = {}
            for mix in every:
                jobs = frozenset(mix)
                best[jobs] = max(best.get(jobs, 0), worth_of(columns, i, mix, prices, whole))
            dearest = max(best.values(), default=0.0)
            found = own.guesses(prices, 0.0, 4)
            assert bool(found) == (dearest > 0)
            if found:
                assert found[0].worth == pytest.approx(dearest)
            assert [g.worth for g in found] == sorted((g.worth for g in found), reverse=True)
            assert len({frozenset(guess.amounts) for guess in found}) == len(found) <= 4
            for guess in found:
                require_kept(columns, i, guess)
                assert guess.worth == pytest.approx(best[frozenset(guess.amounts)])
            assert not own.guesses(prices, dearest + 1e-9, 4)


@pytest.mark.parametrize("scale", [Fraction(1, 10**330), Fraction(1, 10**250), Fraction(10**300)])
def test_turns_of_any_length_are_guessed_and_proved_without_a_warning(scale: Fraction) -> None:
    points = {"a": [(8, 4 * scale), (2, 3 * scale)]}
    jobs = [
        TimeSharedJob("x", 3 * min(scale, 1 / scale), 20 * scale, points),
        TimeSharedJob("y", 3 / scale, 20 * scale, points),
    ]
    problem = TimeSharedProblem(configurations=Configuration({"a": 1}), jobs=jobs)
    columns = Columns(problem)
    found = block_list(columns, 0).guesses(Prices(np.ones(2), {}), 0.0, 9)
    worths = {tuple(sorted(guess.amounts)): guess.worth for guess in found}
    both = 29 / 21 if scale < 1 else 2 / 3
    expected = {(0,): min(1, both), (1,): 2 / 3, (0, 1): both}
    assert worths == pytest.approx(expected)
    solution = solve(problem, time_limit=None)
    assert (solution.status.value, solution.proof.value) == ("optimal", "checked")
    assert recheck(problem, solution) == ("independent", [])


def test_mixes_that_are_too_many_are_guessed_on_a_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(problems, "_LISTED", 5)
    assert isinstance(guesser_of(Columns(random_mix(4)), 0), BlockKnapsack)
