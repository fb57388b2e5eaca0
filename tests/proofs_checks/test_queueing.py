"""The checker of certified loads, and the facts about batched queues, against planted faults."""

from __future__ import annotations

import heapq
import json
import random
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import pytest

from proofs_checks import queueing
from proofs_checks.checker import loads

CENT = Fraction(1, 100)
ACCEPTED = [(1, "2", 134), (8, "35/16", 608), (32, "9/4", 880), (64, "3", 974)]


@pytest.mark.parametrize(("batch", "ratio", "thousandths"), ACCEPTED)
def test_known_loads_are_proved_and_two_per_cent_more_are_not(
    batch: int, ratio: str, thousandths: int
) -> None:
    load = Fraction(thousandths, 1000)
    assert loads.why_not(batch, Fraction(ratio), CENT, load) == ""
    for too_much in (load * Fraction(102, 100), Fraction(1)):
        assert loads.why_not(batch, Fraction(ratio), CENT, too_much)


def test_what_cannot_be_proved_says_why() -> None:
    assert "the late share is not at most 1/100" in loads.why_not(
        8, Fraction(35, 16), CENT, Fraction(64, 100)
    )
    assert "expected at least 2" in loads.why_not(8, Fraction(31, 16), CENT, Fraction(1, 100))
    assert "the queue grows" in loads.why_not(8, Fraction(9), CENT, Fraction(1))
    assert loads.why_not(8, Fraction(1), CENT, Fraction(0)) == ""


@pytest.mark.parametrize("factor", [0, 0.9, 0.999])
def test_a_guess_that_is_too_low_is_no_bound(factor: float) -> None:
    def low(a: Fraction, b: int, decay: Fraction, m: int) -> Sequence[float]:
        return [factor * each for each in loads.waiting_tail(a, b, decay, m)]

    why = loads.why_not(8, Fraction(35, 16), CENT, Fraction(1, 2), low)
    assert why == "the guess at load 1/2 is no bound"


def test_a_table_is_checked_entry_by_entry(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = {
        "late_shares": ["1/100"], "ratios": ["2", "3"], "batches": [1, 8],
        "thousandths": [[[[134, 506], [319, 825]]]],
    }  # fmt: skip
    path = tmp_path / "table.json"
    path.write_text(json.dumps(table), "utf-8")
    assert loads.main([str(path)]) == 0
    assert len(list(loads.faults(table, raised=Fraction(102, 100)))) == 4
    assert not list(loads.faults(table, every=3))
    table["thousandths"] = [[[[134, 517], [319, 825]]]]
    path.write_text(json.dumps(table), "utf-8")
    assert loads.main([str(path)]) == 1
    assert "batch 8, ratio 2, late share 1/100: at load" in capsys.readouterr().err


@pytest.mark.long
def test_every_entry_of_the_shipped_table_is_proved_and_refused_when_raised() -> None:
    table = list(loads.entries(queueing.certified()))
    assert len(table) == 3 * 57 * 9
    for entry in table:
        assert loads.why_not(*entry) == "", entry
        assert loads.why_not(*entry[:3], queueing.RAISED * entry[3]), entry


@pytest.mark.long
def test_the_facts_hold_on_ten_thousand_paths_poisson_and_others() -> None:
    largest = Fraction(0)
    for number in range(10_000):
        path = queueing.random_path(random.Random(f"long {number}"))
        queueing.require_fact_1(path)
        largest = max(largest, queueing.require_fact_2(path))
    assert Fraction(9, 10) < largest <= 1  # the bound is nearly reached


def lazy(c: int, b: int, times: Sequence[int], arrivals: Sequence[int]) -> queueing.Path:
    """A replay whose batches start late, though a process is idle."""
    free, starts, ends, at = [0] * c, list[int](), list[int](), 0
    while at < len(arrivals):
        start = max(heapq.heappop(free), arrivals[at]) + times[-1]
        fill = min(b, bisect_right(arrivals, start) - at)
        starts += [start] * fill
        ends += [start + times[fill - 1]] * fill
        heapq.heappush(free, ends[-1])
        at += fill
    return queueing.Path(c, b, times, arrivals, starts, ends)


def test_a_replay_that_idles_while_requests_wait_breaks_the_facts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(queueing, "replay", lazy)
    assert not queueing.check(cases=12).ok


def test_a_table_that_promises_too_much_fails_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    table = queueing.certified()
    more = [[[[each + 25 for each in row] for row in rows] for rows in part]
            for part in table["thousandths"]]  # fmt: skip
    monkeypatch.setattr(queueing, "certified", lambda: {**table, "thousandths": more})
    assert not queueing.check(cases=12).ok
