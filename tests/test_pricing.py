"""Pricing all jobs: plain, compiled, weighted, in parts, in parallel; and compiled code kept."""

from __future__ import annotations

import errno
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cms.knapsack.pricing
import cms.problem.rows
from cms.knapsack.kinds import kinds
from cms.knapsack.machine_code import compile_functions
from cms.knapsack.pricing import Pricing, cheapest_option, price_jobs
from cms.problem.rows import Rows
from proofs_checks.checker import cheapest_option as second_opinion

Raw = list[tuple[int, list[int]]]


def random_rows(rng: random.Random, n: int, k: int, largest: int) -> Raw:
    """Rows with zeros, equal rows, jobs without a demand and jobs nobody can serve."""
    rows = []
    for _ in range(n):
        supply = [rng.choice([0, rng.randint(1, largest)]) for _ in range(k)]
        demand = rng.choice([0, rng.randint(1, 4 * largest), 10**6 * largest, 10**15])
        rows.append((demand, supply))
    return rows + rows[:2]


def nearly_tied(rng: random.Random, n: int, sizes: Sequence[int], deviation: float) -> Raw:
    rows = []
    for _ in range(n):
        supply = [int(10**5 * size * (1 + deviation * rng.uniform(-1, 1))) for size in sizes]
        rows.append((rng.randint(1, 10 * max(supply)), supply))
    return rows


def as_rows(raw: Raw, k: int) -> Rows:
    return Rows.from_fractions([(Fraction(d), [Fraction(f) for f in fs]) for d, fs in raw], k)


def price(rows: Rows, prices: Sequence[int], **options: object) -> Pricing:
    pricing = price_jobs(rows, prices, want_options=True, **options)  # type: ignore[arg-type]
    assert pricing is not None
    assert pricing.options is not None
    return pricing


def assert_same(one: Pricing, two: Pricing) -> None:
    assert (one.total, one.load, one.unservable) == (two.total, two.load, two.unservable)
    assert one.options is not None
    assert two.options is not None
    assert one.options.tolist() == two.options.tolist()


def both_ways(rows: Rows, prices: Sequence[int], **options: object) -> Pricing:
    """Price plainly and compiled; they must find the same to the last block."""
    plain = price(rows, prices, compiled=False, **options)
    assert_same(plain, price(rows, prices, compiled=True, **options))
    return plain


@pytest.mark.parametrize("seed", range(12))
def test_compiled_and_plain_pricing_find_the_same_options(seed: int) -> None:
    rng = random.Random(seed)
    k = rng.randint(1, 6)
    raw = random_rows(rng, 40, k, rng.choice([5, 20, 60]))
    prices = [rng.choice([0, rng.randint(1, 50), rng.randint(1, 2**20)]) for _ in range(k)]
    own = {j: [price + j for price in prices] for j in (1, 2)}
    singles = [cheapest_option(own.get(j, prices), fs, d) for j, (d, fs) in enumerate(raw)]
    with_own = both_ways(as_rows(raw, k), prices, special=own)
    assert with_own.total == sum(single.value for single in singles if single)
    found = both_ways(as_rows(raw, k), prices)
    singles = [cheapest_option(prices, supply, demand) for demand, supply in raw]
    assert found.unservable == tuple(j for j, single in enumerate(singles) if single is None)
    assert found.total == sum(single.value for single in singles if single)
    # The load is what everybody buys: a supergradient, whose own price is the total.
    assert sum(p * blocks for p, blocks in zip(prices, found.load, strict=True)) == found.total
    assert found.options is not None
    assert found.load == tuple(int(column) for column in found.options.astype(object).sum(axis=0))


@pytest.mark.parametrize("deviation", [0, 1e-6, 1e-3, 1e-2])
@pytest.mark.parametrize("sizes", [(1, 2, 3, 4, 7), (2, 3, 4, 6, 8, 9, 12, 14, 21)], ids=len)
def test_near_ties_are_priced_alike_and_exactly(sizes: tuple[int, ...], deviation: float) -> None:
    rng = random.Random(len(sizes))
    raw = nearly_tied(rng, 12, sizes, deviation)
    prices = [int(2**20 * size / 7 * (1 + deviation * rng.uniform(-1, 1))) for size in sizes]
    found = both_ways(as_rows(raw, len(sizes)), prices)
    assert sum(p * blocks for p, blocks in zip(prices, found.load, strict=True)) == found.total
    if len(sizes) == 5:
        demand, supply = raw[0]
        opinion = second_opinion(
            list(map(Fraction, prices)), list(map(Fraction, supply)), Fraction(demand)
        )
        assert price(as_rows(raw[:1], 5), prices).total == opinion


@pytest.mark.parametrize("seed", range(8))
def test_images_of_many_rows_that_do_not_fit_err_on_the_safe_side(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cms.problem.rows, "FEW", 3)
    rng = random.Random(seed)
    k = rng.randint(1, 4)
    unit = rng.choice([2**45, 2**62, 10**25])
    raw = [
        (
            rng.randint(0, 40) * unit + rng.randint(0, 9),
            [rng.choice([0, 1, 3, 8]) * unit + rng.choice([0, 1, 2]) for _ in range(k)],
        )
        for _ in range(20)
    ]
    raw.append((10**70, [1] * k))  # far beyond its best block
    rows = as_rows(raw, k)
    prices = [rng.randint(0, 1000) for _ in range(k)]
    special = {3: [2 * price + 1 for price in prices]}
    exact = price(rows, prices, compiled=False, special=special)
    monkeypatch.setattr(cms.knapsack.pricing, "COMPILED_FROM", 1)
    outer = price(rows, prices, special=special)
    assert outer.total <= exact.total
    assert outer.unservable == exact.unservable
    assert outer.options is not None
    for j, (demand, supply) in enumerate(raw):
        if j not in outer.unservable:
            option = [int(n) for n in outer.options[j]]
            assert sum(f * n for f, n in zip(supply, option, strict=True)) >= demand, j
    without = cms.knapsack.pricing.price_jobs(rows, prices, special=special)
    assert without is not None
    assert (without.total, without.load) == (outer.total, outer.load)


@pytest.mark.parametrize("seed", range(10))
def test_compiled_code_does_not_overflow_at_the_edge_of_62_bits(seed: int) -> None:
    rng = random.Random(seed)
    raw: Raw = []
    for _ in range(60):
        bits = rng.randint(20, 41)
        supply = [rng.randint(2 ** (bits // 2), 2 ** (bits // 2 + 1)) for _ in range(4)]
        raw.append((rng.randint(2**bits, 2 ** (bits + 1)), supply))
    both_ways(as_rows(raw, 4), [rng.randint(2**20, 2**22) for _ in range(4)])
    both_ways(as_rows([(2**62 + d, fs) for d, fs in raw], 4), [3, 4, 5, 6])
    # a few dozen blocks of 40 bits at prices of 20; a demand of very many blocks of 35 bits
    blocks = [[2**40 + rng.randint(0, 2**40) for _ in range(4)] for _ in range(9)]
    both_ways(as_rows([(2**46 + 1, fs) for fs in blocks], 4), [2**20 + 7 * i for i in range(4)])
    # as many blocks as are searched one by one, of 25 bits, at prices of 30
    wide = [[2**24 + rng.randint(0, 2**24) for _ in range(4)] for _ in range(99)]
    near = [(rng.randint(2**33, 2**34), fs) for fs in wide]
    both_ways(as_rows(near, 4), [2**30 + rng.randint(0, 2**30) for _ in range(4)])
    both_ways(as_rows([(2**60, [f >> 5 for f in fs]) for fs in blocks], 4), [5, 6, 7, 8])
    both_ways(as_rows([(d, [2**40 * f for f in fs]) for d, fs in raw], 4), [3, 4, 5, 2**21])


@pytest.mark.parametrize("compiled", [False, True])
@given(
    st.lists(
        st.tuples(
            st.integers(0, 400) | st.just(10**30),
            st.lists(st.integers(0, 90) | st.just(10**25), min_size=3, max_size=3),
            st.integers(1, 5),
        ),
        min_size=1,
        max_size=8,
    ),
    st.lists(st.integers(0, 30), min_size=3, max_size=3),
    st.randoms(use_true_random=False),
)
def test_kinds_with_weights_are_priced_like_all_their_jobs(
    compiled: bool, lines: list[tuple[int, list[int], int]], prices: list[int], rng: random.Random
) -> None:
    raw = [(d, fs) for d, fs, times in lines for _ in range(times)]
    rng.shuffle(raw)
    rows = as_rows(raw, 3)
    found = kinds(rows)
    assert len(found.rows) <= len(lines)
    every = price(rows, prices, compiled=compiled)
    weighted = price(found.rows, prices, weights=found.weights, compiled=compiled)
    assert (weighted.total, weighted.load) == (every.total, every.load)
    assert weighted.options is not None
    options = weighted.options[found.kind_of]
    assert (options.astype(object) @ np.array(prices, dtype=object)).sum() == every.total
    unservable = np.isin(found.kind_of, weighted.unservable)
    assert np.flatnonzero(unservable).tolist() == list(every.unservable)


def test_large_weights_do_not_overflow() -> None:
    raw: Raw = [(10**18, [1]), (5, [2])]
    weights = np.array([2**31 - 2, 1])
    found = both_ways(as_rows(raw, 1), [3], weights=weights)
    assert found.total == (2**31 - 2) * 3 * 10**18 + 9
    assert found.load == ((2**31 - 2) * 10**18 + 3,)


@pytest.mark.parametrize("threads", [1, 2, 5, None])
def test_the_number_of_threads_changes_nothing(
    threads: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cms.knapsack.pricing, "_SHARD", 16)
    monkeypatch.setattr(cms.knapsack.pricing, "_EFFORT", 20)
    rng = random.Random(4)
    raw = random_rows(rng, 300, 4, 50) + nearly_tied(rng, 100, (1, 2, 3, 4), 1e-3)
    rows, prices = as_rows(raw, 4), [2**20, 2**21 + 1, 3 * 2**20, 2**22 - 1]
    weights = np.arange(len(raw))
    one = price(rows, prices, weights=weights, compiled=False)
    assert_same(one, price(rows, prices, weights=weights, compiled=True, threads=threads))


@pytest.mark.parametrize("threads", [1, 3])
def test_pricing_stops_when_it_is_told_to(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cms.knapsack.pricing, "_SHARD", 2)
    rows = as_rows([(5, [2])] * 9, 1)
    asked: list[int] = []

    def stopped() -> bool:
        asked.append(1)
        return len(asked) > 2

    for compiled in (False, True):
        asked.clear()
        assert price_jobs(rows, [1], stopped=stopped, compiled=compiled, threads=threads) is None
        found = price_jobs(rows, [1], stopped=lambda: False, compiled=compiled, threads=threads)
        assert found is not None
        assert found.total == 27


@pytest.mark.parametrize("compiled", [False, True])
def test_a_pass_is_undisturbed_until_it_has_taken_so_much(
    compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cms.knapsack.pricing, "_SHARD", 2)
    monkeypatch.setattr(cms.knapsack.pricing, "_QUICKER", 1)
    raw = nearly_tied(random.Random(4), 60, (1, 2, 3, 4), 1e-3)
    rows, prices = as_rows(raw, 4), [2**20, 2**21 + 1, 3 * 2**20, 2**22 - 1]
    # Its own prices, and it is priced on Python integers: what that takes counts as well.
    special = {0: prices}
    more: dict[str, Any] = {"special": special, "compiled": compiled, "threads": 1}
    whole = price_jobs(rows, prices, **more)
    asked: list[int] = []

    def stopped() -> bool:
        asked.append(1)
        return True

    def found(undisturbed: int) -> Pricing | None:
        asked.clear()
        return price_jobs(rows, prices, stopped=stopped, undisturbed=undisturbed, **more)

    assert found(10**9) == whole
    assert not asked
    assert found(0) is None
    assert found(100) is None
    assert asked == [1]


def test_an_error_in_a_thread_is_an_error_of_the_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cms.knapsack.pricing, "_SHARD", 2)

    def stopped() -> bool:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        price_jobs(as_rows([(5, [2])] * 9, 1), [1], stopped=stopped, compiled=True, threads=2)


def test_few_jobs_are_priced_without_importing_a_compiler() -> None:
    code = (
        "import sys, numpy as np; from cms.problem.rows import Rows\n"
        "from cms.knapsack.pricing import price_jobs\n"
        "rows = Rows.from_arrays(np.full(99, 7), np.full((99, 2), 3), ['x'] * 99, 'ab')\n"
        "assert price_jobs(rows, [2, 3]).total == 99 * 6\n"
        "assert 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


SOURCE = "def double(n):\n    return 2 * n\n\n\ndef triple(n):\n    return double(n) + n\n"


class Process:
    """What a process finds: a source file, and the folders it may write."""

    def __init__(self, file: Path) -> None:
        self.file = file
        file.parent.mkdir(exist_ok=True)
        file.write_text(SOURCE)
        # numba's own last resort is in the home of whoever runs the tests
        (file.parent / "__pycache__").write_text("a file where a folder is wanted")

    def hits(self) -> int:
        """Call a function of the file in a new process; how often it was found compiled."""
        scope: dict[str, Any] = {"__name__": "builtins"}  # numba imports the module it loads from
        exec(compile(self.file.read_text(), str(self.file), "exec"), scope)
        (function,) = compile_functions(scope, ["double", "triple"], ["triple"])
        assert function(14) == scope["triple"](14) == 42
        assert function(2**40) == 3 * 2**40
        return sum(function.stats.cache_hits.values())  # type: ignore[attr-defined]


@pytest.fixture
def process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Process:
    """One that may write to the folder "kept" only, whoever runs the tests."""
    monkeypatch.setattr(numba.core.config, "CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "package" / "__pycache__" / "below"))
    return Process(tmp_path / "package" / "module.py")


def test_compiled_code_is_kept_for_the_next_process(process: Process) -> None:
    assert [process.hits(), process.hits()] == [0, 1]
    times = process.file.stat()
    process.file.write_text(SOURCE.replace("2 * n", "n + n"))
    os.utime(process.file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert [process.hits(), process.hits()] == [0, 1]


def test_where_no_folder_can_be_written_code_is_compiled_without_one(
    process: Process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numba.core.config, "CACHE_DIR", str(tmp_path / "package/module.py/below"))
    assert [process.hits(), process.hits()] == [0, 0]


def test_a_full_disk_costs_the_next_process_time_and_nobody_an_answer(
    process: Process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", full)
        assert process.hits() == 0
    assert not [path for path in (tmp_path / "kept").rglob("*") if path.is_file()]
    assert [process.hits(), process.hits()] == [0, 1]


@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_files_that_end_early_are_as_if_there_were_none(
    process: Process, tmp_path: Path, kind: str
) -> None:
    process.hits()
    (file,) = (tmp_path / "kept").rglob(f"*.{kind}")
    file.write_bytes(file.read_bytes()[:50])
    assert process.hits() == 0
