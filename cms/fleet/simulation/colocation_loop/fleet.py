"""The GPUs and jobs of a problem one by one, and the truth about those that share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ....errors import InvalidOption, InvalidProblem
from ....values.names import nearest
from ....values.numbers import shown
from ...colocation.problem import (
    ColocationProblem,
    OfflineClass,
    OnlineClass,
    WeightFunction,
    sm_share,
)
from ...colocation.weights import MeasuredPair, by_models

Shorts: TypeAlias = NDArray[np.int16]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
MILLION = 10**6
#: Ticks an hour.
MINUTE = 60
MOST_GPUS = 10_000
MOST_JOBS = 10**6
UNLIMITED = 2**62  #: A GPU without a limit of its slowdown
NOBODY = -1


@dataclass(frozen=True, slots=True)
class Fleet:
    """GPUs one by one, by their profiles.

    Activities are in hundredths of a per cent, shares in per cent, throughputs and slowdowns in
    millionths of a workload that runs alone.
    """

    profiles: tuple[OnlineClass, ...]  #: Classes without activity and running workload
    profile: Ints
    base: Ints  #: The activity that its class has
    limit: Ints  #: Of the slowdown
    of_class: Ints  #: A GPU's online class in the problem, ascending
    work: tuple[OfflineClass, ...]
    fits: Bools  #: Whether the memory of a profile suffices for a workload

    @staticmethod
    def of(problem: ColocationProblem) -> Fleet:
        """Take the classes of a problem apart."""
        for what, classes, most in (
            ("GPUs", problem.online, MOST_GPUS), ("workloads", problem.offline, MOST_JOBS),
        ):  # fmt: skip
            total = sum(each.count for each in classes)
            if total > most:
                said = f"the problem has {shown(total)} {what}; at most {most:,} are simulated"
                raise InvalidOption(f"{said}, one by one; take a share of each class")
        profiles: dict[OnlineClass, int] = {}
        rows = []
        for place, each in enumerate(problem.online):
            limit = each.slowdown_limit
            rows.append([
                profiles.setdefault(_active(each, 0), len(profiles)),
                -(-each.sm_activity * 100 // 1),
                UNLIMITED if limit is None else limit * MILLION // 1, place,
            ])  # fmt: skip
        table = np.array(rows, dtype=np.int64).reshape(-1, 4)
        spread = np.repeat(table, [each.count for each in problem.online], axis=0).T.copy()
        profile, base, limits, of_class = spread
        fits = ColocationProblem(
            online=profiles, offline=problem.offline, margin=0, lowest_share=0,
            weights=np.zeros((len(profiles), len(problem.offline)), dtype=np.int64),
        ).weights == 0  # fmt: skip
        return Fleet(tuple(profiles), profile, base, limits, of_class, problem.offline, fits)

    @property
    def gpus(self) -> int:
        """How many GPUs there are."""
        return len(self.profile)


def _active(gpus: OnlineClass, activity: int) -> OnlineClass:
    """Return a class at an activity, without its running workload."""
    return gpus.again(count=0, sm_activity=activity, running=None)


@dataclass(slots=True)
class Beliefs:
    """The weights that a scheduler uses, computed once at each activity."""

    fleet: Fleet
    weights: WeightFunction
    margin: int
    lowest_share: int
    _rows: dict[int, Ints] = field(default_factory=dict)

    def rows(self, profile: Ints, activity: Ints) -> Ints:
        """Return weights by GPUs' profiles and activities in per cent: (n, K), -1 if forbidden."""
        wanted, back = np.unique(profile * 101 + activity, return_inverse=True)
        new = [key for key in wanted.tolist() if key not in self._rows]
        if new:
            classes = [_active(self.fleet.profiles[key // 101], key % 101) for key in new]
            posed = ColocationProblem(
                online=classes, offline=self.fleet.work, weights=self.weights,
                margin=self.margin, lowest_share=self.lowest_share,
            )  # fmt: skip
            self._rows |= zip(new, posed.weights, strict=True)
        table = np.array([self._rows[key] for key in wanted.tolist()], dtype=np.int64)
        return table.reshape(len(wanted), len(self.fleet.work))[back]


#: Hundredths of a per cent of the SMs.
_ALL = 10_000
#: A share that is none.
_NO_LIMIT = 100


class Truth:
    """Throughput and slowdown of every profile beside every workload, at every share.

    Between two shares that were measured both are on a straight line, which begins at a share of 0
    with no throughput and no slowdown; beyond the largest share they stay as they are. A pair that
    was measured at a share of 100 alone, which is no limit, is the same at every share. Unmeasured
    pairs of known models cannot run; a model or device that was not measured at all is refused.

    Where the online side and the share together want more SMs than there are, each gets its part
    of them: with a demand of d > 100 per cent the throughput is 100 / d times as much, and the
    slowdown d / 100 times. That is a model, and no measurement.
    """

    def __init__(self, fleet: Fleet, pairs: Iterable[MeasuredPair]) -> None:
        table = by_models(pairs)
        for place, what, names in (
            (0, "online model", {gpus.model for gpus in fleet.profiles}),
            (1, "offline model", {work.model for work in fleet.work}),
            (2, "device", {gpus.device for gpus in fleet.profiles}),
        ):
            known = sorted({key[place] for key in table})
            for name in sorted(names.difference(known)):
                if not name:
                    said = "an online class has no model, by which pairs are measured"
                    raise InvalidProblem(f"{said}; give it one, in the column 'model' of its table")
                said = f"the {what} {name!r} is nowhere in the measured pairs that are the truth"
                raise InvalidProblem(f"{said}{nearest(name, known)}")
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

    def felt(self, profile: Ints, work: Ints, share: Ints, activity: Ints) -> tuple[Ints, Ints]:
        """Return throughputs, rounded down, and slowdowns, rounded up, of GPUs."""
        wanted = np.maximum(activity + 100 * share, _ALL)
        return (
            self.throughput[profile, work, share] * _ALL // wanted,
            -(-self.slowdown[profile, work, share] * wanted // _ALL),
        )


class LineWeights:
    """Weights by measured pairs as :class:`Truth` reads them: on lines between the shares measured.

    :func:`cms.fleet.colocation.table_weights` is more careful: it interpolates nothing. A pair is
    forbidden if it was not measured, or its slowdown is beyond the limit.
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


def _lines(measured: dict[int, MeasuredPair]) -> tuple[Ints, Ints]:
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


def _line(at: list[int], values: list[int]) -> Ints:
    """Interpolate at every share in whole numbers, rounded down."""
    found = np.zeros(101, dtype=np.int64)
    for left, right, low, high in zip(at, at[1:], values, values[1:], strict=False):
        inside = np.arange(left, right)
        found[inside] = (low * (right - inside) + high * (inside - left)) // (right - left)
    return found
