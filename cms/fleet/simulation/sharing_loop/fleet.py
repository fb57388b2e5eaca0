"""The GPUs and jobs of a problem of sharing one by one, in arrays; all numbers are whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ....errors import InvalidOption
from ....values.numbers import shown
from ...sharing.classes import OfflineClass, OnlineClass
from ...sharing.problem import SharingProblem

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ...sharing.problem import WeightFunction

MILLION = 10**6
#: Ticks an hour.
MINUTE = 60
MOST_GPUS = 10_000
MOST_JOBS = 10**6
#: No limit of a slowdown, and no slowdown either.
UNLIMITED = 2**62
NOBODY = -1


@dataclass(frozen=True, slots=True)
class Fleet:
    """GPUs one by one, and what is alike among them.

    Activities are in hundredths of a per cent, shares in per cent, throughputs and slowdowns in
    millionths of a workload that runs alone.
    """

    profiles: tuple[OnlineClass, ...]  #: What differs in more than activity, and in who runs there
    profile: NDArray[np.int64]
    base: NDArray[np.int64]  #: The activity that its class has
    limit: NDArray[np.int64]  #: Of the slowdown; ``UNLIMITED`` where there is none.
    #: Which online class of the problem a GPU is of; classes stand together.
    of_class: NDArray[np.int64]
    work: tuple[OfflineClass, ...]
    fits: NDArray[np.bool_]  #: Whether the memory of a profile suffices for a workload

    @staticmethod
    def of(problem: SharingProblem) -> Fleet:
        """Take the classes of a problem apart."""
        for what, classes, most in (
            ("GPUs", problem.online, MOST_GPUS), ("workloads", problem.offline, MOST_JOBS),
        ):  # fmt: skip
            total = sum(each.count for each in classes)
            if total > most:
                raise InvalidOption(
                    f"the problem has {shown(total)} {what}; at most {most:,} are simulated, one "
                    "by one; take a share of each class"
                )
        counts = [each.count for each in problem.online]
        profiles: dict[OnlineClass, int] = {}
        places = [profiles.setdefault(_active(each, 0), len(profiles)) for each in problem.online]
        base = [int(-(-each.sm_activity * 100 // 1)) for each in problem.online]
        limits = [
            UNLIMITED if each.slowdown_limit is None else int(each.slowdown_limit * MILLION // 1)
            for each in problem.online
        ]
        fits = SharingProblem(
            online=profiles, offline=problem.offline, margin=0, lowest_share=0,
            weights=np.zeros((len(profiles), len(problem.offline)), dtype=np.int64),
        ).weights == 0  # fmt: skip

        def spread(values: Sequence[int]) -> NDArray[np.int64]:
            return np.repeat(np.array(values, dtype=np.int64), counts)

        return Fleet(
            tuple(profiles), spread(places), spread(base), spread(limits),
            spread(range(len(counts))), problem.offline, fits,
        )  # fmt: skip

    @property
    def gpus(self) -> int:
        """How many GPUs there are."""
        return len(self.profile)


def _active(gpus: OnlineClass, activity: int) -> OnlineClass:
    """Return a class at an activity, whoever runs there."""
    return gpus.again(count=0, sm_activity=activity, running=None)


@dataclass(slots=True)
class Beliefs:
    """The weights that a scheduler goes by, asked for once at each activity that comes up."""

    fleet: Fleet
    weights: WeightFunction
    margin: int
    lowest_share: int
    _rows: dict[int, NDArray[np.int64]] = field(default_factory=dict)

    def rows(self, profile: NDArray[np.int64], activity: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the weights beside GPUs of these profiles at these activities, in per cent.

        The shape is (n, K); -1 where a pair is forbidden.
        """
        wanted, back = np.unique(profile * 101 + activity, return_inverse=True)
        new = [key for key in wanted.tolist() if key not in self._rows]
        if new:
            classes = [_active(self.fleet.profiles[key // 101], key % 101) for key in new]
            posed = SharingProblem(
                online=classes, offline=self.fleet.work, weights=self.weights,
                margin=self.margin, lowest_share=self.lowest_share,
            )  # fmt: skip
            self._rows |= zip(new, posed.weights, strict=True)
        table = np.array([self._rows[key] for key in wanted.tolist()], dtype=np.int64)
        return table.reshape(len(wanted), len(self.fleet.work))[back]
