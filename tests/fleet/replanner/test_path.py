"""The best times to plan again, held against all sets of times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import partial
from itertools import combinations, pairwise
from math import ceil
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cms.errors import InvalidOption, InvalidProblem
from cms.fleet.replanner import (
    Daily,
    Known,
    NoPath,
    Path,
    Planner,
    RateForecast,
    Rates,
    Start,
    Windows,
    fewest,
    forecast_of,
    shortest,
)


class Table(Windows):
    """Windows whose costs grow with the window: the area is a number of GPUs times the length."""

    def __init__(self, needs: list[list[int]], *, bounds: bool) -> None:
        self.wanted, self.bounds = needs, bounds
        self.asked = {}

    @property
    def count(self) -> int:
        return len(self.wanted)

    def gpus(self, a: int, b: int) -> int | None:
        """As many as the sum of the services' highest needs; more than 99 cannot be had."""
        each = [max(column) for column in zip(*self.wanted[a:b], strict=True)]
        return None if sum(each) > 99 else sum(each)

    def cost(self, a: int, b: int) -> Fraction | None:
        known = [self.gpus(*part) for part in self.asked if a <= part[0] and part[1] <= b]
        if (a, b) in self.asked:
            known = [self.gpus(a, b)]
        elif not self.bounds:
            known = []
        if None in known:
            return None
        return Fraction(max((each or 0 for each in known), default=0) * (b - a))

    def ask(self, a: int, b: int) -> Any:
        self.asked[a, b] = None  # type: ignore[assignment]


def all_sets_of_times(count: int) -> Iterator[tuple[int, ...]]:
    for size in range(count):
        for inner in combinations(range(1, count), size):
            yield 0, *inner, count


def change(fixed: int, needs: list[list[int]], a: int, b: int, c: int) -> Fraction:
    """A fixed part, and a part that depends on both windows."""
    before, after = (max(sum(row) for row in needs[x:y]) for x, y in ((a, b), (b, c)))
    return Fraction(fixed) + Fraction(max(0, after - before), 3)


needs_of_services = st.integers(1, 8).flatmap(
    lambda n: st.lists(st.lists(st.integers(0, 60), min_size=2, max_size=2), min_size=n, max_size=n)
)
NOTHING = Fraction(0)
FROM_NOTHING = [Start(0, NOTHING, lambda b: NOTHING)]


def entering(cost: int) -> Callable[[int], Fraction]:
    return lambda b: Fraction(cost * b, 2)


Begin = tuple[int, int, int]  # where, what it has cost so far, and what it costs to enter
#: Cost, number of windows, where they end, where they begin.
Best = tuple[Fraction, int, tuple[int, ...], int]


def best_by_trying(
    needs: list[list[int]], begins: Iterable[Begin], fixed: int | None, most: int = 99
) -> Best | None:
    """The cheapest, the fewest, the first of all sets of times; without a fixed part none count."""
    table, found = Table(needs, bounds=False), list[Best]()
    for at, cost, enter in begins:
        for times in all_sets_of_times(len(needs) - at) if at < len(needs) else [(0,)]:
            windows = list(pairwise(at + each for each in times))
            gpus = [table.gpus(*each) for each in windows]
            if None in gpus or len(windows) > most:
                continue
            whole = cost + (entering(enter)(windows[0][1]) if windows else NOTHING)
            whole += sum((g or 0) * (b - a) for g, (a, b) in zip(gpus, windows, strict=True))
            if fixed is not None:
                whole += sum(
                    (change(fixed, needs, *x, y[1]) for x, y in pairwise(windows)), NOTHING
                )
            found.append((whole, len(windows), tuple(b for _, b in windows), at))
    return min(found, default=None)


def told(path: Path) -> Best:
    return path.cost, len(path.windows), tuple(b for _, b in path.windows), path.begin


def is_best(find: Callable[[], Path], expected: Best | None) -> None:
    if expected is None:
        with pytest.raises(NoPath):
            find()
    else:
        assert told(find()) == expected


beginnings = st.lists(
    st.tuples(st.integers(0, 8), st.integers(0, 90), st.integers(0, 30)), min_size=1, max_size=4
)


@given(needs_of_services, st.just([(0, 0, 0)]) | beginnings, st.integers(0, 40))
def test_the_shortest_path_is_the_best_of_all_sets_of_times_and_beginnings(
    needs: list[list[int]], drawn: list[Begin], fixed: int
) -> None:
    """Each beginning with what it cost so far, and what it costs to enter the first window.

    Bounds of windows change no answer.
    """
    last = len(needs)
    by_place = {min(at, last): (min(at, last), cost, enter) for at, cost, enter in drawn}
    begins = list(by_place.values())
    starts = [Start(at, Fraction(cost), entering(enter)) for at, cost, enter in begins]
    expected = best_by_trying(needs, begins, fixed)
    for bounds in (True, False):
        table = Table(needs, bounds=bounds)
        is_best(partial(shortest, table, starts, partial(change, fixed, needs)), expected)


@given(needs_of_services, st.integers(1, 8))
def test_with_at_most_so_many_windows_nothing_is_cheaper(needs: list[list[int]], most: int) -> None:
    expected = best_by_trying(needs, [(0, 0, 0)], None, most)
    is_best(lambda: fewest(Table(needs, bounds=True), most), expected)


def test_windows_that_cannot_matter_are_not_planned() -> None:
    table = Table([[5, 5]] * 8, bounds=True)
    assert shortest(table, FROM_NOTHING, lambda a, b, c: Fraction(1)).windows == ((0, 8),)
    assert len(table.asked) < 36


def test_no_path_names_the_first_moment_without_a_plan() -> None:
    with pytest.raises(NoPath, match="from moment 2") as caught:
        shortest(Table([[1, 1], [1, 1], [90, 90]], bounds=True), FROM_NOTHING, lambda *_: NOTHING)
    assert caught.value.at == 2


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
       st.integers(0, 5), st.data())  # fmt: skip
def test_a_day_is_foreseen_from_what_is_known_of_days_before_it(
    rates: list[int], steps: int, quantile: str, recent: int, data: st.DataObject
) -> None:
    holed: list[int | None] = [*rates]
    for at in data.draw(st.sets(st.integers(0, len(rates) - 2), max_size=3)):
        holed[at] = None
    needed = [range((len(rates) + ahead) % 4, len(rates), 4) for ahead in range(steps)]
    assume(all(any(holed[at] is not None for at in column) for column in needed))
    found = Daily(Fraction(quantile), recent * STEP).courses(history(holed), steps)
    assert list(found.rates_rps["a"]) == foreseen(holed, steps, Fraction(quantile), recent)


def test_steps_that_are_no_part_of_a_day_and_rates_not_known_now_are_refused() -> None:
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
    courses = RateForecast(Fraction(60), {"a": own})
    windows = Windows(courses, every, lead, 99, Planner([], [], ["a30-24gb"]))
    assume(windows.count >= 1)
    assert windows.count == (len(rates) - 1) // every
    b = data.draw(st.integers(1, windows.count))
    a = data.draw(st.integers(0, b - 1))
    first, last = a * every, min(b * every + lead, Fraction(len(rates) - 1))

    def line(at: Fraction) -> Fraction:
        low = min(int(at), len(own) - 2)
        return own[low] + (at - low) * (own[low + 1] - own[low])

    quarters = [Fraction(first) + Fraction(n, 4) for n in range(ceil(4 * (last - first)) + 1)]
    highest = max(line(min(at, last)) for at in [*quarters, last])
    assert windows.rates(a, b) == {"a": max(highest, own[first])}
    assert windows.now == {"a": own[0]}
    assert windows.rates(a, b)["a"] <= windows.rates(0, windows.count)["a"]
    assert windows.hours == Fraction(every, 60)
