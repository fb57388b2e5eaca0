"""Weights by measured pairs: what was measured, at the shares it was measured at; nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import cache, partial
from typing import NamedTuple

from ...errors import InvalidProblem
from ...values.names import nearest
from .classes import FULL_WEIGHT, OfflineClass, OnlineClass, sm_share


class MeasuredPair(NamedTuple):
    """What was measured of an offline model beside an online one."""

    online_model: str
    offline_model: str
    device: str
    share: int  #: Of the SMs that the offline side had, in whole per cent, 1 to 100
    offline_throughput: Fraction  #: Of what it does alone on the device, 0 to 1
    online_slowdown: Fraction  #: How many times longer the online side took, > 0


def by_models(
    pairs: Iterable[MeasuredPair],
) -> dict[tuple[str, str, str], dict[int, MeasuredPair]]:
    """Return what was measured by online model, offline model and device, then by share."""
    table: dict[tuple[str, str, str], dict[int, MeasuredPair]] = {}
    for pair in pairs:
        measured = table.setdefault(pair[:3], {})
        if pair.share in measured:
            raise InvalidProblem(
                f"{pair.offline_model!r} beside {pair.online_model!r} on {pair.device!r} is there "
                f"twice at a share of {pair.share}; keep one"
            )
        measured[pair.share] = pair
    return table


class Slowdown(NamedTuple):
    """How many times slower an online side is beside a workload."""

    #: What is expected; and what is compared with the limit, which is no less.
    expected: Fraction
    upper: Fraction


class TableWeights:
    """What :func:`table_weights` returns: a weight of a pair of classes, and why there is none."""

    def __init__(self, pairs: Iterable[MeasuredPair], margin: int, lowest_share: int) -> None:
        self._table = by_models(pairs)
        # There may be a million pairs of classes, of few activities; fractions are slow.
        self._left_at = cache(partial(sm_share, margin=margin, lowest=lowest_share))

    def __call__(self, online: OnlineClass, offline: OfflineClass) -> int | None:
        """Return a pair's weight; None if it is forbidden."""
        measured, left = self._measured(online, offline)
        below = [share for share in measured if share <= left]
        if not below:
            return None
        if online.slowdown_limit is not None:
            above = [share for share in measured if share >= left]
            if not above or measured[min(above)].online_slowdown > online.slowdown_limit:
                return None
        part, priority = measured[max(below)].offline_throughput, offline.priority
        return (FULL_WEIGHT * part.numerator * priority.numerator) // (
            part.denominator * priority.denominator
        )

    def why(self, online: OnlineClass, offline: OfflineClass) -> str:
        """Say why a pair is forbidden, if the table forbids it; an empty text if it does not."""
        if self(online, offline) is not None:
            return ""
        measured, left = self._measured(online, offline)
        if all(share > left for share in measured):
            return "measured at larger shares only"
        if all(share < left for share in measured):
            return "with a limit, measured at smaller shares only"
        return "slowed down beyond the limit"

    def slowdown(self, online: OnlineClass, offline: OfflineClass) -> Slowdown | None:
        """Return the slowdown on a straight line between the shares measured, and at the next one.

        None where nothing was measured at a share as large as the one left.
        """
        measured, left = self._measured(online, offline)
        above = [share for share in measured if share >= left]
        if not above:
            return None
        high = min(above)
        low = max((share for share in measured if share <= left), default=high)
        first, last = measured[low].online_slowdown, measured[high].online_slowdown
        part = Fraction(left - low, high - low) if high > low else 0
        on_line = first + (last - first) * part
        return Slowdown(on_line, max(on_line, last))

    def _measured(
        self, online: OnlineClass, offline: OfflineClass
    ) -> tuple[dict[int, MeasuredPair], int]:
        """Return what was measured of a pair by share, and the share that is left."""
        measured = self._table.get((online.model, offline.model, online.device))
        if measured is None:
            raise InvalidProblem(_unmeasured(self._table, online, offline))
        return measured, self._left_at(online.sm_activity)


def table_weights(
    pairs: Iterable[MeasuredPair], *, margin: int = 10, lowest_share: int = 5
) -> TableWeights:
    """Return weights by a table of measured pairs, which forbid what is too slow.

    A workload counts for what was measured at the largest share that is not above the one left on
    the GPU, times its priority, rounded down. A pair is forbidden if nothing was measured at so
    small a share, or if the online side has a limit and was slowed down beyond it at the smallest
    share measured that is not below the one left, or there is none as large. Of models that were
    never measured beside each other on the device nothing is guessed: the weights raise
    InvalidProblem. Margin and lowest share are those of the problem.
    """
    return TableWeights(pairs, margin, lowest_share)


def _unmeasured(
    table: Iterable[tuple[str, str, str]], online: OnlineClass, offline: OfflineClass
) -> str:
    """Say which pair is missing, and which name may have been meant."""
    hint = ""
    if not online.model:
        hint = "; give the online side a model, in the column 'model' of its table"
    names = (
        (online.model, "online model"),
        (offline.model, "offline model"),
        (online.device, "device"),
    )
    for (name, what), column in zip(names, zip(*table, strict=True), strict=False):
        if not hint and name not in column:
            hint = f"; no {what} {name!r} was measured{nearest(name, sorted({*column}))}"
    return (
        f"offline class {offline.name!r} ({offline.model}) was never measured beside online class "
        f"{online.name!r} ({online.model or 'no model'}) on {online.device!r}{hint}"
    )
