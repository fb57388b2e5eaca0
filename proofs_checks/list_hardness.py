"""Listed configurations are hard even for two jobs and two block types (theory 5).

**Statement.** Take n = k = 2, each block serving one job, configurations (w, W - w) for the w in a
list, and demands (t, m W - t). Then m machines suffice iff m listed numbers, repetition allowed,
sum to exactly t. With a digit for each index, which forces one of two numbers to be taken for it,
subset sum becomes such a question: so the case is NP-hard for binary numbers, and the method that
is polynomial for *all* configurations up to a size can take short lists only.

**Machine-checked.** The equivalence, for all lists of up to 3 numbers below 8, m = 1, 2, 3 and all
t, and for the list 3, 7, 11, 18 with W = 20, m = 3 and t from 9 to 54: OPT by enumeration against
all sums. The digits, for all subset sums of up to 4 numbers up to 5. Then `conic` on such short
lists, and that it refuses one of 102 numbers, with a reason.

**On paper.** That subset sum is NP-hard, and that the digits keep it so.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations, combinations_with_replacement

from cms import solve

from .brute_force import optimum
from .finding import Tally, require, theorem
from .promises import Solver, cost_of, require_refusal, valid
from .tiny import Tiny


def two_numbers(width: int, listed: Sequence[int], machines: int, total: int) -> Tiny:
    """Reduce the question whether so many listed numbers sum to the total."""
    shapes = [[w, width - w] for w in listed]
    return Tiny.of(other_demand(width, machines, total), [[1, 0], [0, 1]], shapes)


def other_demand(width: int, machines: int, total: int) -> tuple[int, int]:
    """Return both demands: together all that the machines hold."""
    return total, machines * width - total


def digits(numbers: Sequence[int], total: int) -> tuple[list[int], int]:
    """Reduce subset sum to a sum of as many listed numbers, repetition allowed.

    Every number is listed twice, taken and skipped, with the same digit for its index. A sum of as
    many numbers has every digit once only if it holds one of each two.
    """
    # Even one number taken over and over does not carry into the digits, nor one digit into others.
    base, unit = len(numbers) + 1, len(numbers) * max(numbers) + 1
    listed = []
    for index, number in enumerate(numbers):
        digit = unit * base**index
        listed += [digit + number, digit]
    wanted = unit * sum(base**index for index in range(len(numbers))) + total
    return listed, wanted


@theorem(
    "Lists are hard",
    "lists of up to 3 numbers below 8, subset sums of up to 4 numbers; conic",
    ratio="OPT / machines, where the sum exists",
    proved="1, an equality",
)
def check(tally: Tally, *, seed: int = 0, cases: int = 250, solver: Solver | None = solve) -> None:
    """Check the hardness of lists; see the top of this file.

    ``cases`` limits the questions asked of short lists, taken in a random order.
    """
    questions = [
        (7, listed, machines, total)
        for number in (1, 2, 3)
        for listed in combinations(range(8), number)
        for machines in (1, 2, 3)
        for total in range(1, 7 * machines)
    ]
    random.Random(seed).shuffle(questions)
    known = [(20, (3, 7, 11, 18), 3, total) for total in range(9, 55)]
    for number, question in enumerate([*known, *questions[:cases]]):
        width, listed, machines, total = question
        with tally.case(f"W = {width}, list {listed}, m = {machines}, t = {total}"):
            # A tenth of them also by conic, and those known where a sum exists and where not.
            asked = solver if number % 10 == 0 or total in (21, 22) else None
            if _require_equivalence(width, listed, machines, total, asked):
                tally.seen(1)
    for number in (1, 2, 3, 4):
        for numbers in combinations_with_replacement(range(1, 6), number):
            tally.check(f"subset sums of {numbers}", _require_digits, numbers)
    if solver is not None:
        with tally.case("conic refuses a long list"):
            problem = two_numbers(101, range(102), 3, 150).problem()
            require_refusal(solver, problem, "conic", "a list of 102 configurations", "list")


def _sums(listed: Sequence[int], machines: int) -> set[int]:
    return {sum(chosen) for chosen in combinations_with_replacement(listed, machines)}


def _require_equivalence(
    width: int, listed: Sequence[int], machines: int, total: int, solver: Solver | None
) -> bool:
    tiny = two_numbers(width, listed, machines, total)
    exists = total in _sums(listed, machines)
    if all(w == 0 for w in listed) or all(w == width for w in listed):
        # One of the jobs has no block at all: no number of machines is enough.
        require(not exists, f"{total} is a sum of {listed}")
        return False
    best = optimum(tiny).cost
    require((best == machines) == exists, f"OPT = {best}, the sum exists: {exists}")
    require(best >= machines, f"OPT = {best} machines hold the blocks of {machines}")
    if solver is not None:
        cost = cost_of(valid(solver, tiny, "conic"))
        require(cost == best, f"conic: cost {cost}, optimum {best}")
    return exists


def _require_digits(numbers: Sequence[int]) -> None:
    subsets = {
        sum(part) for size in range(len(numbers) + 1) for part in combinations(numbers, size)
    }
    for total in range(sum(numbers) + 1):
        listed, wanted = digits(numbers, total)
        exists = wanted in _sums(listed, len(numbers))
        require(
            exists == (total in subsets),
            f"{wanted} is a sum of {len(numbers)} of {listed}: {exists}, unlike {total}",
        )
