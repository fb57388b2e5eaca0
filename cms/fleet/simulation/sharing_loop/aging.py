"""Who has waited longer counts for more: jobs of a class apart, by steps of waiting."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...sharing.classes import OfflineClass
from ...sharing.waiting import WAITING_STEPS, waited_priority
from .fleet import NOBODY

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Aged", "aged"]

#: Steps of waiting that are told apart, so that classes stay few.
_MOST = 10 * WAITING_STEPS


class Aged(NamedTuple):
    """Jobs by class and step of waiting.

    Attributes
    ----------
    work : tuple of OfflineClass
        One for each step of a class that there is, with the priority that goes with it.
    of : numpy.ndarray of int64, shape (L,)
        Which class each of these was.
    steps : numpy.ndarray of int64, shape (L,)
    kind : numpy.ndarray of int64, shape (n,)
        Which of these each job is.
    """

    work: tuple[OfflineClass, ...]
    of: NDArray[np.int64]
    steps: NDArray[np.int64]
    kind: NDArray[np.int64]

    def weights(self, known: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the weights of these, from those of the classes; -1 stays what it is."""
        found = known[:, self.of]
        raised = found * (WAITING_STEPS + self.steps) // WAITING_STEPS
        return np.where(found < 0, found, raised)

    def classes(self, found: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the classes of what is on GPUs; -1 is nobody."""
        return np.where(found == NOBODY, NOBODY, self.of[np.maximum(found, 0)])


def aged(
    work: tuple[OfflineClass, ...], of: NDArray[np.int64], waited: NDArray[np.int64], scale: int
) -> Aged:
    """Tell jobs apart by what they have waited.

    Parameters
    ----------
    work : tuple of OfflineClass
    of : numpy.ndarray of int64, shape (n,)
        The class of each job, of which there is one.
    waited : numpy.ndarray of int64, shape (n,)
        In minutes.
    scale : int
        In minutes, > 0.

    Examples
    --------
    >>> train = OfflineClass("train", count=3)
    >>> found = aged((train,), np.zeros(3, dtype=np.int64), np.array([0, 60, 61]), 60)
    >>> [str(each.priority) for each in found.work], found.kind.tolist()
    (['1', '2'], [0, 1, 1])
    >>> found.weights(np.array([[500_000], [-1]])).tolist()
    [[500000, 1000000], [-1, -1]]
    """
    steps = np.minimum(waited * WAITING_STEPS // scale, _MOST)
    kinds, kind = np.unique(of * (_MOST + 1) + steps, return_inverse=True)
    places, levels = kinds // (_MOST + 1), kinds % (_MOST + 1)
    classes = tuple(
        OfflineClass(
            f"{place}.{step}", count=0,
            priority=waited_priority(work[place].priority, int(step), WAITING_STEPS),
        )
        for place, step in zip(places.tolist(), levels.tolist(), strict=True)
    )  # fmt: skip
    return Aged(classes, places, levels, kind.reshape(-1))
