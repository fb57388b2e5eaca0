"""Rounding: every job is served, by an option or a box, and all of them stay near the mixture."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from algorithms.branch_and_price.rounding import _FAR, MOST_BOXES, Rounded, rounded
from algorithms.prices.fraction import Fractional
from algorithms.prices.search import PriceSearch, fractional
from cms import Configuration, Job, Problem
from instances.families import generate
from tests.algorithms.branch_and_price.parts import bought, reduced, searched
from tests.families import FAMILIES, instance
from tests.references.tables_of_options import told
from tests.samples import so_many, spread

CROWDS = ["real-rows", "near-ties", "sparse", "size-bounded", "equal-jobs", "random-configurations"]


def options_of(search: PriceSearch, mixture: Fractional) -> list[dict[tuple[int, ...], Fraction]]:
    """For each kind its options in the mixture, with their weights."""
    found: list[dict[tuple[int, ...], Fraction]] = [{} for _ in range(len(search.jobs))]
    for group, shares in enumerate(mixture.shares):
        part = search.kinds_of_group(group)
        for kind in range(part.start, part.stop):
            for number, weight in shares:
                option = tuple(search.options[number][kind].tolist())
                found[kind][option] = found[kind].get(option, Fraction(0)) + weight
    return found


def examine(
    search: PriceSearch, mixture: Fractional, result: Rounded, *, boxes: bool = True
) -> None:
    """All jobs of every kind are there, each with an option of its kind's, or in a box.

    Without boxes one between options far apart may take a mixture of them, rounded up.
    """
    jobs, choices = search.jobs, told(result)
    allowed = options_of(search, mixture)
    placed = np.zeros(len(jobs), dtype=np.int64)
    for kind, option, count in zip(*choices, strict=True):
        if tuple(option.tolist()) not in allowed[kind]:
            assert not boxes
            columns = [*zip(*allowed[kind], strict=True)]
            assert max(max(column) - min(column) for column in columns) > _FAR
            pairs = zip(columns, option.tolist(), strict=True)
            assert all(min(column) <= blocks <= max(column) for column, blocks in pairs)
        row = jobs.rows.row(int(kind))
        given = sum(f * n for f, n in zip(row.supply, option.tolist(), strict=True))
        assert given >= row.demand
        assert count > 0
        placed[kind] += count
    for box in result.boxes:
        placed[box.kind] += 1
        for i, (low, high) in enumerate(zip(box.lows, box.highs, strict=True)):
            blocks = [option[i] for option in allowed[box.kind]]
            assert 0 <= low <= high
            assert low <= max(blocks)
            assert min(blocks) <= high
    assert (placed == jobs.weights).all()


@pytest.mark.parametrize("family", spread(6, FAMILIES))
def test_every_job_has_an_option_or_a_box(family: str) -> None:
    for number in range(so_many(5, 15)):
        jobs = reduced(instance(family, number))
        lost = any(not any(jobs.rows.row(kind).supply) for kind in range(len(jobs)))
        if not len(jobs) or lost:
            continue
        search = searched(jobs.problem)
        mixture = fractional(search)
        for most in (0, 1, MOST_BOXES):
            result = rounded(search, mixture, number, most_boxes=most)
            assert len(result.boxes) <= most
            examine(search, mixture, result, boxes=most > 0)


@pytest.mark.parametrize("name", spread(2, CROWDS))
def test_what_all_jobs_take_stays_near_the_mixture(name: str) -> None:
    """No more than a few blocks off, however many jobs there are (an observation, theory 6.6)."""
    search = searched(generate(name, n=800, seed=3))
    mixture = fractional(search)
    wanted = bought(search, mixture)
    for seed in range(so_many(1, 3)):
        result = rounded(search, mixture, seed)
        examine(search, mixture, result)
        load = np.array(result.choices.load())
        for box in result.boxes:
            load = load + (np.array(box.lows) + np.array(box.highs)) // 2
        off = [abs(int(a) - float(b)) for a, b in zip(load, wanted, strict=True)]
        # Boxes are known to half their width at zero, the diffusion to a few options.
        assert max(off) <= 12 + 13 * len(result.boxes), (name, seed, off)


def far_apart(demand: int, jobs: int) -> PriceSearch:
    return searched(
        Problem(
            configurations=Configuration({"a": 2, "b": 1}),
            jobs=[Job(f"x{j}", demand, {"a": "6.5", "b": 1}) for j in range(jobs)],
        )
    )


@pytest.mark.parametrize("demand", [10**4, 10**9, 10**12, 10**17])
def test_a_job_between_options_far_apart_is_left_in_a_box(demand: int) -> None:
    search = far_apart(demand, 1)
    mixture = fractional(search)
    result = rounded(search, mixture, 0)
    examine(search, mixture, result)
    (box,) = result.boxes
    need = bought(search, mixture)
    assert all(low <= n <= high for low, n, high in zip(box.lows, need, box.highs, strict=True))
    assert all(high - low <= 24 for low, high in zip(box.lows, box.highs, strict=True))
    alone = rounded(search, mixture, 0, most_boxes=0)
    examine(search, mixture, alone, boxes=False)
    assert alone.boxes == ()
