"""Jobs that have decided what to take, and those that a fractional schedule leaves undecided."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..prices.choices import choices_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from ..prices.choices import Choices
    from ..prices.fraction import Fractional
    from ..prices.jobs import Jobs
    from ..prices.search import PriceSearch

#: A kind of jobs and one of its options.
Pick = tuple[int, tuple[int, ...]]


class Undecided(NamedTuple):
    """Jobs that have an option already, and options of the kinds that are still to choose."""

    decided: Mapping[Pick, int]
    open: Mapping[int, tuple[tuple[int, ...], ...]]

    @classmethod
    def of(cls, search: PriceSearch, mixture: Fractional) -> Undecided:
        """Read off a fractional schedule which kinds it mixes options of."""
        decided: dict[Pick, int] = {}
        choosing: dict[int, tuple[tuple[int, ...], ...]] = {}
        for group, shares in enumerate(mixture.shares):
            part = search.kinds_of_group(group)
            kinds = range(part.start, part.stop)
            passes = (search.options[number][part].tolist() for number, _ in shares)
            for kind, *options in zip(kinds, *passes, strict=True):
                distinct = tuple(dict.fromkeys(map(tuple, options)))
                if len(distinct) > 1:
                    choosing[kind] = distinct
                else:
                    decided[kind, distinct[0]] = search.jobs.weight(kind)
        return cls(decided, choosing)

    @classmethod
    def of_amounts(cls, options: Mapping[Pick, float], jobs: Jobs) -> Undecided:
        """Read off how many jobs of a kind take an option which kinds mix these."""
        taken: dict[int, list[tuple[int, ...]]] = {}
        for kind, option in options:
            taken.setdefault(kind, []).append(option)
        decided = {(k, each[0]): jobs.weight(k) for k, each in taken.items() if len(each) == 1}
        return cls(decided, {k: tuple(each) for k, each in taken.items() if len(each) > 1})

    @classmethod
    def of_blocks(cls, load: Sequence[int]) -> Undecided:
        """Leave nothing open but the machines for some blocks, whoever takes these."""
        return cls.none(choices_of([(0, tuple(load), 1)], len(load)))

    @classmethod
    def none(cls, choices: Choices) -> Undecided:
        """Leave nothing open."""
        columns = (choices.kinds.tolist(), choices.options.tolist(), choices.counts.tolist())
        decided: dict[Pick, int] = {}
        for kind, option, count in zip(*columns, strict=True):
            decided[kind, tuple(option)] = decided.get((kind, tuple(option)), 0) + count
        return cls(decided, {})

    def most_blocks(self, weights: NDArray[np.int64]) -> int:
        """Return how many blocks all jobs together may take, at most."""
        taken = sum(sum(option) * count for (_, option), count in self.decided.items())
        for kind, options in self.open.items():
            taken += max(map(sum, options)) * int(weights[kind])
        return taken
