"""Models as plain numbers: what they predict is computed here, by numpy alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: The child of a node that has none.
LEAF = -1
#: Rows times trees that are walked at once.
_AT_ONCE = 2**22


@dataclass(frozen=True, slots=True, eq=False)
class Layers:
    """Matrices one after the other, with max(0, x) between them; one is a linear model."""

    #: The last has one output. Without inputs the model is a constant.
    matrices: tuple[NDArray[np.float64], ...]
    added: tuple[NDArray[np.float64], ...]

    def predict(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a number for each row."""
        found = features
        last = len(self.matrices) - 1
        for at, (matrix, added) in enumerate(zip(self.matrices, self.added, strict=True)):
            # Not a product of matrices: that is a library of its own, with threads of its own.
            found = np.einsum("ri,io->ro", found, matrix, optimize=False) + added
            if at < last:
                found = np.maximum(found, 0.0)
        return found[:, 0]


@dataclass(frozen=True, slots=True, eq=False)
class Trees:
    """A sum of decision trees, their nodes one after the other."""

    start: float  #: What the trees' values are added to
    roots: NDArray[np.int64]  #: The first node of each tree
    #: At a node, a row whose feature is at most the threshold goes left; -1 at leaves.
    feature: NDArray[np.int64]
    threshold: NDArray[np.float64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    value: NDArray[np.float64]

    def predict(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a number for each row."""
        step = max(1, _AT_ONCE // max(1, len(self.roots)))
        # As they were grown: features are rounded to 32 bits, thresholds are not.
        rows = features.astype(np.float32)
        parts = [self._walk(rows[at : at + step]) for at in range(0, len(rows), step)]
        return np.concatenate(parts) if parts else np.empty(0)

    def _walk(self, rows: NDArray[np.float32]) -> NDArray[np.float64]:
        nodes = np.repeat(self.roots[None, :], len(rows), axis=0)
        at = np.arange(len(rows))[:, None]
        while (inner := self.left[nodes] != LEAF).any():
            goes_left = rows[at, np.maximum(self.feature[nodes], 0)] <= self.threshold[nodes]
            children = np.where(goes_left, self.left[nodes], self.right[nodes])
            nodes = np.where(inner, children, nodes)
        found = np.full(len(rows), self.start)
        for tree in self.value[nodes].T:  # one after the other: the same sum on every machine
            found += tree
        return found


Model: TypeAlias = Layers | Trees
