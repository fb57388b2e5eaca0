"""Giving blocks away at random, without dice (theory 2.1, 2.3).

Of what a job wants, block b brings the part Z_b in [0, 1], drawn independently. Then

    E min(1, sum Z_b)  >=  1 - prod (1 - E Z_b)  >=  (1 - 1/e) min(1, sum E Z_b).

The product in the middle is linear in every single draw. So each block in turn can go where it
lowers the weighted products most: no more of them is left than drawing leaves on average (the
method of conditional expectations), and nothing has to be known of the distribution of the sum.

What a job gets in whole blocks on average is not drawn at all but given; so there are at most as
many draws of a type as jobs, however many blocks a machine has.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cms.plugin.algorithm import Budget

    from ..aggregated.pseudoforest import Edge

#: Parts of blocks below this are the solver's noise.
_NOISE = 1e-9


@dataclass(frozen=True)
class Draws:
    """Blocks that are given, and blocks that are to be drawn.

    Attributes
    ----------
    given : dict
        ``{(block type, job): blocks}``, for certain.
    numbers : dict
        ``{block type: blocks to be drawn}``.
    chances : dict
        ``{block type: {job: chance of each of these blocks}}``; they add up to at most 1.

    Examples
    --------
    >>> half = Fraction(1, 2)
    >>> draws = Draws.of({(0, 0): 2 + half, (0, 1): half}, [4])
    >>> draws.given, draws.numbers, draws.chances
    ({(0, 0): 2}, {0: 1}, {0: {0: 0.5, 1: 0.5}})
    """

    given: dict[Edge, int]
    numbers: dict[int, int]
    chances: dict[int, dict[int, float]]

    @classmethod
    def of(cls, blocks: Mapping[Edge, Fraction | float], held: Sequence[int]) -> Draws:
        """Split the blocks that jobs get on average.

        Parameters
        ----------
        blocks : Mapping[(block type, job), number]
            >= 0; of no type more than there are, but for noise.
        held : sequence of k ints
            Blocks of each type there are.
        """
        given: dict[Edge, int] = {}
        rest: dict[int, dict[int, float]] = {}
        left = list(held)
        for (i, j), number in blocks.items():
            whole = min(floor(number), left[i])
            if whole:
                given[i, j] = whole
                left[i] -= whole
            part = float(min(1, number - whole))
            if part > _NOISE:
                rest.setdefault(i, {})[j] = part
        numbers: dict[int, int] = {}
        chances: dict[int, dict[int, float]] = {}
        for i, parts in rest.items():
            total = sum(parts.values())
            number = min(left[i], ceil(total - _NOISE))
            if number:
                numbers[i] = number
                most = max(total, number)
                chances[i] = {j: part / most for j, part in parts.items()}
        return cls(given, numbers, chances)

    def missing(self, parts: Mapping[Edge, float]) -> dict[int, float]:
        """Return of each job the product of ``1 - E Z_b`` over all blocks; jobs at 1 may lack.

        Parameters
        ----------
        parts : Mapping[(block type, job), float]
            What a block brings to a job.
        """
        missing = self._without_given(parts)
        for i, number in self.numbers.items():
            for j, chance in self.chances[i].items():
                missing[j] = missing.get(j, 1.0) * (1.0 - chance * parts[i, j]) ** number
        return missing

    def _without_given(self, parts: Mapping[Edge, float]) -> dict[int, float]:
        """Return what each job misses beside the blocks given, which count as one variable."""
        got: dict[int, float] = {}
        for (i, j), number in self.given.items():
            # No float holds so many blocks; they are more than enough, or each is nothing.
            amount = min(Fraction(1), number * Fraction(parts[i, j]))
            got[j] = got.get(j, 0.0) + float(amount)
        return {j: max(0.0, 1.0 - amount) for j, amount in got.items()}

    def decided(
        self, parts: Mapping[Edge, float], weights: Mapping[int, float], budget: Budget | None
    ) -> dict[Edge, int]:
        """Decide every draw; returns all blocks given.

        The sum of the jobs' weights times their ``prod (1 - Z_b)`` is no more than it is with
        :meth:`missing`.

        Parameters
        ----------
        parts : Mapping[(block type, job), float]
        weights : Mapping[int, float]
        budget : Budget or None
            If it has ended, further blocks stay idle.

        Examples
        --------
        >>> draws = Draws.of({(0, 0): 0.5, (0, 1): 0.5}, [1])
        >>> draws.decided({(0, 0): 1.0, (0, 1): 0.5}, {0: 1.0, 1: 3.0}, None)
        {(0, 1): 1}
        """
        result = dict(self.given)
        settled = self._without_given(parts)
        types = list(self.numbers)
        for at, i in enumerate(types):
            if budget is not None and budget.stopped:
                break
            mine = self.chances[i]
            # What the draws of later types leave of each job, on average.
            later = {
                j: prod(
                    (1.0 - self.chances[other][j] * parts[other, j]) ** self.numbers[other]
                    for other in types[at + 1 :]
                    if j in self.chances[other]
                )
                for j in mine
            }
            for waiting in range(self.numbers[i] - 1, -1, -1):
                chosen, most = -1, 0.0
                for j, chance in mine.items():
                    part = parts[i, j]
                    gain = weights[j] * settled.get(j, 1.0) * part * later[j]
                    gain *= (1.0 - chance * part) ** waiting
                    if gain > most:
                        chosen, most = j, gain
                if chosen < 0:
                    continue
                result[i, chosen] = result.get((i, chosen), 0) + 1
                settled[chosen] = settled.get(chosen, 1.0) * (1.0 - parts[i, chosen])
        return result
