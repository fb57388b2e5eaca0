"""What really happens on a shared GPU: a measured table, and what is when SMs run out."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np

from ....errors import InvalidProblem
from ....values.names import nearest
from ...sharing.classes import OfflineClass, OnlineClass, sm_share
from ...sharing.weights import MeasuredPair, by_models
from .fleet import MILLION, Fleet

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Hundredths of a per cent of the SMs.
_ALL = 10_000
#: A share that is none.
_NO_LIMIT = 100


class Truth:
    """Throughput and slowdown of every profile beside every workload, at every share.

    Between two shares that were measured both are on a straight line, which begins at a share of 0
    with no throughput and no slowdown; beyond the largest share they stay as they are. A pair that
    was measured at a share of 100 alone, which is no limit, is the same at every share. Pairs of
    known models that nobody measured cannot run; a model or device that was not measured at all is
    refused.

    Where the online side and the share together want more SMs than there are, each gets its part
    of them: with a demand of d > 100 per cent the throughput is 100 / d times as much, and the
    slowdown d / 100 times. That is a model, and no measurement.
    """

    def __init__(self, fleet: Fleet, pairs: Iterable[MeasuredPair]) -> None:
        table = by_models(pairs)
        _refuse_strangers(fleet, table)
        shape = len(fleet.profiles), len(fleet.work)
        # by profile, workload and share: whether it was measured, and in millionths
        self.runs = np.zeros(shape, dtype=np.bool_)
        self.throughput = np.zeros((*shape, 101), dtype=np.int64)
        self.slowdown = np.full((*shape, 101), MILLION, dtype=np.int64)
        for p, gpus in enumerate(fleet.profiles):
            for k, work in enumerate(fleet.work):
                found = table.get((gpus.model, work.model, gpus.device))
                if found is not None:
                    self.runs[p, k] = True
                    self.throughput[p, k], self.slowdown[p, k] = _lines(found)

    def felt(
        self,
        profile: NDArray[np.int64],
        work: NDArray[np.int64],
        share: NDArray[np.int64],
        activity: NDArray[np.int64],
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return throughput, rounded down, and slowdown, rounded up, on so many GPUs."""
        wanted = np.maximum(activity + 100 * share, _ALL)
        return (
            self.throughput[profile, work, share] * _ALL // wanted,
            -(-self.slowdown[profile, work, share] * wanted // _ALL),
        )


class LineWeights:
    """Weights by measured pairs as :class:`Truth` reads them: on lines between the shares measured.

    :func:`cms.fleet.sharing.table_weights` is more careful: it takes what was measured, and no line
    between. A pair is forbidden if it was not measured, or its slowdown is beyond the limit.
    """

    def __init__(self, pairs: Iterable[MeasuredPair], margin: int, lowest_share: int) -> None:
        self._lines = {models: _lines(found) for models, found in by_models(pairs).items()}
        self._left_at = cache(partial(sm_share, margin=margin, lowest=lowest_share))

    def __call__(self, online: OnlineClass, offline: OfflineClass) -> int | None:
        """Return a pair's weight; None if it is forbidden."""
        lines = self._lines.get((online.model, offline.model, online.device))
        if lines is None:
            return None
        share = self._left_at(online.sm_activity)
        part, slower = int(lines[0][share]), int(lines[1][share])
        if online.slowdown_limit is not None and slower > MILLION * online.slowdown_limit:
            return None
        return part * offline.priority.numerator // offline.priority.denominator


def _lines(measured: dict[int, MeasuredPair]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return both numbers at every share, on straight lines between what was measured."""
    shares = sorted(measured)
    parts = [int(measured[s].offline_throughput * MILLION // 1) for s in shares]
    slower = [int(-(-measured[s].online_slowdown * MILLION // 1)) for s in shares]
    if shares == [_NO_LIMIT]:
        return np.full(101, parts[0]), np.full(101, slower[0])
    at = [0, *shares, 101]
    # Rounded down is a throughput, and up a slowdown.
    return _line(at, [0, *parts, parts[-1]]), -_line(
        at, [-MILLION, *(-s for s in slower), -slower[-1]]
    )


def _line(at: list[int], values: list[int]) -> NDArray[np.int64]:
    """Interpolate at every share in whole numbers, rounded down."""
    every = np.arange(101)
    found = np.zeros(len(every), dtype=np.int64)
    for left, right, low, high in zip(at, at[1:], values, values[1:], strict=False):
        inside = (every >= left) & (every < right)
        part = low * (right - every[inside]) + high * (every[inside] - left)
        found[inside] = part // (right - left)
    return found


def _refuse_strangers(fleet: Fleet, table: Iterable[tuple[str, str, str]]) -> None:
    keys = list(table)
    for place, what, names in (
        (0, "online model", {gpus.model for gpus in fleet.profiles}),
        (1, "offline model", {work.model for work in fleet.work}),
        (2, "device", {gpus.device for gpus in fleet.profiles}),
    ):
        known = sorted({key[place] for key in keys})
        for name in sorted(names.difference(known)):
            if not name:
                raise InvalidProblem(
                    "an online class has no model, and what happens beside it is for measured "
                    "pairs of models to say; give it one, in the column 'model' of its table"
                )
            raise InvalidProblem(
                f"the {what} {name!r} is nowhere in the measured pairs that are the truth"
                f"{nearest(name, known)}"
            )
