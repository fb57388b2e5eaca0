"""What is foreseen, known or highest in a window, held against sums over plain lists."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cms.errors import InvalidOption, InvalidProblem
from cms.fleet.replanner import Daily, Envelopes, Known, RateForecast, Rates, forecast_of
from cms.values.numbers import exact

STEP = Fraction(21_600)  # four a day
some_days = st.integers(2, 5).flatmap(
    lambda days: st.lists(st.integers(0, 50), min_size=4 * days + 1, max_size=4 * days + 4)
)


def history(rates: list[int | None]) -> Rates:
    return Rates(Fraction(0), STEP, {"a": tuple(None if r is None else Fraction(r) for r in rates)})


def foreseen(
    rates: list[int | None], steps: int, quantile: Fraction, recent: int
) -> list[Fraction]:
    """The same, written down a second time: days as rows, a column an hour."""
    last = len(rates) - 1

    def usual(at: int) -> int | None:
        days = [rates[e] for e in range(last + 1) if e < at and (at - e) % 4 == 0]
        known = sorted(rate for rate in days if rate is not None)
        if not known:
            return None
        enough = [r for r in known if sum(k <= r for k in known) >= quantile * len(known)]
        return min(enough)

    pairs = [(rates[at], usual(at)) for at in range(max(0, last - recent), last + 1)]
    both = [(one, other) for one, other in pairs if one is not None and other is not None]
    now, before = sum(one for one, _ in both), sum(other for _, other in both)
    found = [Fraction(rates[last] or 0)]
    for at in range(last + 1, last + 1 + steps):
        rate = usual(at)
        assert rate is not None
        level = Fraction(now, before) if before else None
        found.append(max(Fraction(rate), found[0]) if level is None else rate * level)
    return found


@given(some_days, st.integers(1, 4), st.sampled_from(["0.5", "0.75", "1", "0.01"]),
       st.integers(0, 5))  # fmt: skip
def test_a_day_is_foreseen_from_days_before_it(
    rates: list[int], steps: int, quantile: str, recent: int
) -> None:
    found = Daily(quantile, recent * STEP).courses(history([*rates]), steps)
    assert list(found.rates_rps["a"]) == foreseen([*rates], steps, exact(quantile, "q"), recent)


@given(some_days, st.data())
def test_gaps_of_earlier_days_count_for_nothing(rates: list[int], data: st.DataObject) -> None:
    holed: list[int | None] = [*rates]
    for at in data.draw(st.sets(st.integers(0, len(rates) - 2), max_size=3)):
        holed[at] = None
    needed = [range((len(rates) + ahead) % 4, len(rates), 4) for ahead in range(2)]
    assume(all(any(holed[at] is not None for at in column) for column in needed))
    found = Daily(recent_s=2 * STEP).courses(history(holed), 2)
    assert list(found.rates_rps["a"]) == foreseen(holed, 2, Fraction(3, 4), 2)


@given(some_days, st.integers(1, 9))
def test_twice_as_busy_lately_is_foreseen_twice_as_busy(rates: list[int], times: int) -> None:
    days = [rate + 1 for rate in rates[: len(rates) // 4 * 4]]
    same = [*days[:4]] * 3
    busier = [*same, *(times * rate for rate in same[:4])]
    found = Daily(recent_s=3 * STEP).courses(history([*busier]), 4).rates_rps["a"]
    assert found[1:] == tuple(Fraction(times * rate) for rate in same[:4])


def test_what_no_day_says_and_steps_that_are_no_part_of_a_day_are_refused() -> None:
    with pytest.raises(InvalidProblem, match="no earlier day says what a has at 86400 s"):
        Daily().courses(history([None, 1, 2, 3]), 1)
    odd = Rates(Fraction(0), Fraction(7000), {"a": (Fraction(1),) * 30})
    with pytest.raises(InvalidProblem, match="no part of a day"):
        Daily().courses(odd, 1)
    with pytest.raises(InvalidProblem, match=r"not known at 64800 s \(no value\), last at 43200"):
        Daily().courses(history([1, 2, 3, None]), 1)
    for quantile in ("0", "1.5"):
        with pytest.raises(InvalidOption, match="expected a number > 0 and <= 1"):
            forecast_of(f"daily:{quantile}")


@given(st.lists(st.integers(0, 9), min_size=2, max_size=9), st.data())
def test_what_is_known_is_the_trace_to_its_end(rates: list[int], data: st.DataObject) -> None:
    trace = history([*rates])
    now = data.draw(st.integers(0, len(rates) - 2))
    steps = data.draw(st.integers(1, 12))
    found = Known(trace).courses(trace.between(0, now), steps).rates_rps["a"]
    assert found == tuple(map(Fraction, rates[now : now + steps + 1]))


@given(
    st.lists(st.integers(0, 30), min_size=3, max_size=13), st.integers(1, 3),
    st.fractions(0, 4, max_denominator=4), st.data(),
)  # fmt: skip
def test_an_envelope_is_the_highest_rate_until_a_successor_stands(
    rates: list[int], every: int, lead: Fraction, data: st.DataObject
) -> None:
    own = tuple(map(Fraction, rates))
    envelopes = Envelopes(RateForecast(Fraction(60), {"a": own}), every, lead, 99)
    assume(envelopes.count >= 1)
    assert envelopes.count == (len(rates) - 1) // every
    b = data.draw(st.integers(1, envelopes.count))
    a = data.draw(st.integers(0, b - 1))
    first, last = a * every, min(b * every + lead, Fraction(len(rates) - 1))

    def line(at: Fraction) -> Fraction:
        low = min(int(at), len(own) - 2)
        return own[low] + (at - low) * (own[low + 1] - own[low])

    quarters = [Fraction(first) + Fraction(n, 4) for n in range(ceil(4 * (last - first)) + 1)]
    highest = max(line(min(at, last)) for at in [*quarters, last])
    assert envelopes.of(a, b) == {"a": max(highest, own[first])}
    assert envelopes.now == {"a": own[0]}
    assert envelopes.of(a, b)["a"] <= envelopes.of(0, envelopes.count)["a"]
    assert envelopes.hours == Fraction(every, 60)
