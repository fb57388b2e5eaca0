"""The best times to plan again, held against all sets of times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import partial
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.fleet.replanner import NoPath, Path, Start, fewest, shortest


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
