"""The best times to plan again, held against all sets of times."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.fleet.reconciling import NoPath, Start, fewest, shortest


class Table:
    """Windows whose costs grow with the window: the area is a number of GPUs times the length."""

    def __init__(self, needs: list[list[int]], *, bounds: bool) -> None:
        self.count, self.needs, self.bounds = len(needs), needs, bounds
        self.asked: set[tuple[int, int]] = set()

    def gpus(self, a: int, b: int) -> int | None:
        """As many as the sum of the services' highest needs; more than 99 cannot be had."""
        each = [max(column) for column in zip(*self.needs[a:b], strict=True)]
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

    def is_asked(self, a: int, b: int) -> bool:
        return (a, b) in self.asked

    def ask(self, a: int, b: int) -> None:
        self.asked.add((a, b))


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


def cheapest_by_trying_all(needs: list[list[int]], fixed: int) -> tuple[object, ...] | None:
    table, best = Table(needs, bounds=False), None
    for times in all_sets_of_times(table.count):
        windows = list(pairwise(times))
        gpus = [table.gpus(*each) for each in windows]
        if None in gpus:
            continue
        area = sum((g or 0) * (b - a) for g, (a, b) in zip(gpus, windows, strict=True))
        changes = [change(fixed, needs, *x, y[1]) for x, y in pairwise(windows)]
        key = area + sum(changes, NOTHING), len(windows), times[1:]
        best = key if best is None else min(best, key)
    return best


@given(needs_of_services, st.integers(0, 40))
def test_the_shortest_path_is_the_best_of_all_sets_of_times(
    needs: list[list[int]], fixed: int
) -> None:
    expected = cheapest_by_trying_all(needs, fixed)
    table = Table(needs, bounds=True)
    if expected is None:
        with pytest.raises(NoPath):
            shortest(table, FROM_NOTHING, lambda a, b, c: change(fixed, needs, a, b, c))
        return
    found = shortest(table, FROM_NOTHING, lambda a, b, c: change(fixed, needs, a, b, c))
    ends = tuple(b for _, b in found.windows)
    assert (found.cost, len(found.windows), ends) == expected


@given(needs_of_services, st.integers(0, 40))
def test_bounds_of_windows_change_no_answer_and_ask_no_more(
    needs: list[list[int]], fixed: int
) -> None:
    tables = [Table(needs, bounds=bounds) for bounds in (True, False)]
    found = []
    for table in tables:
        try:
            found.append(
                shortest(table, FROM_NOTHING, lambda a, b, c: change(fixed, needs, a, b, c))
            )
        except NoPath as fault:
            found.append(fault.at)  # type: ignore[arg-type]
    assert found[0] == found[1]


beginnings = st.lists(
    st.tuples(st.integers(0, 8), st.integers(0, 90), st.integers(0, 30)), min_size=1, max_size=4
)


def entering(cost: int) -> Callable[[int], Fraction]:
    return lambda b: Fraction(cost * b, 2)


@given(needs_of_services, beginnings, st.integers(0, 40))
def test_of_several_beginnings_the_best_is_taken(
    needs: list[list[int]], begins: list[tuple[int, int, int]], fixed: int
) -> None:
    """Each with what it cost so far, and what it costs to go over to the first window."""
    table, best = Table(needs, bounds=False), None
    starts = []
    for at, cost, enter in {min(at, len(needs)): (at, *rest) for at, *rest in begins}.values():
        at = min(at, len(needs))
        starts.append(Start(at, Fraction(cost), entering(enter)))
        for times in all_sets_of_times(len(needs) - at) if at < len(needs) else [(0,)]:
            ends = [at + each for each in times]
            windows = list(pairwise(ends))
            gpus = [table.gpus(*each) for each in windows]
            if None not in gpus:
                area = sum((g or 0) * (b - a) for g, (a, b) in zip(gpus, windows, strict=True))
                changes = [change(fixed, needs, *x, y[1]) for x, y in pairwise(windows)]
                first = entering(enter)(windows[0][1]) if windows else NOTHING
                whole = cost + first + area + sum(changes, NOTHING)
                best = whole if best is None else min(best, whole)
    again = Table(needs, bounds=True)
    if best is None:
        with pytest.raises(NoPath):
            shortest(again, starts, lambda a, b, c: change(fixed, needs, a, b, c))
        return
    found = shortest(again, starts, lambda a, b, c: change(fixed, needs, a, b, c))
    assert found.cost == best
    assert found.begin in {each.at for each in starts}


@given(needs_of_services, st.integers(1, 8))
def test_with_at_most_so_many_windows_nothing_is_cheaper(needs: list[list[int]], most: int) -> None:
    table, best = Table(needs, bounds=True), None
    for times in all_sets_of_times(table.count):
        windows = list(pairwise(times))
        gpus = [table.gpus(*each) for each in windows]
        if len(windows) <= most and None not in gpus:
            area = sum((g or 0) * (b - a) for g, (a, b) in zip(gpus, windows, strict=True))
            best = area if best is None else min(best, area)
    if best is None:
        with pytest.raises(NoPath):
            fewest(table, most)
    else:
        assert fewest(table, most).cost == best


def test_windows_that_cannot_matter_are_not_planned() -> None:
    table = Table([[5, 5]] * 8, bounds=True)
    assert shortest(table, FROM_NOTHING, lambda a, b, c: Fraction(1)).windows == ((0, 8),)
    assert len(table.asked) < 36


def test_no_path_names_the_first_moment_without_a_plan() -> None:
    with pytest.raises(NoPath, match="from moment 2") as caught:
        shortest(Table([[1, 1], [1, 1], [90, 90]], bounds=True), FROM_NOTHING, lambda *_: NOTHING)
    assert caught.value.at == 2
