"""The problem of sharing GPUs between online services and offline work."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ...errors import InvalidProblem
from ...problem.checking import each_of
from ...values.arrays import read_only
from ...values.frozen import FrozenMap
from ...values.names import nearest
from ...values.numbers import shown, shown_object, whole
from .classes import OfflineClass, OnlineClass, misfit
from .share_rule import checked_percent, sm_share

if TYPE_CHECKING:
    from typing import TypeAlias

    from numpy.typing import ArrayLike, NDArray

    from .plan import SharingPlan

    #: What a workload of a class is worth beside a GPU's online side; None if that is forbidden.
    WeightFunction: TypeAlias = Callable[[OnlineClass, OfflineClass], int | None]

T = TypeVar("T")

#: The weight of a pair that may not be used.
FORBIDDEN = -1


class SharingProblem:
    """Which offline workload runs beside which online service; immutable, hashed by content.

    Every GPU takes at most one workload, and gives it the share that its online side leaves:
    :func:`cms.fleet.sharing.sm_share`. A pair of classes has a weight, what one workload is worth
    there, in millionths of what it does alone times its priority. The weights are to be maximised
    in sum.

    Parameters
    ----------
    online : iterable of OnlineClass
    offline : iterable of OfflineClass
    weights : callable, or array_like of int, shape (G, K)
        Of G online and K offline classes: a function of the two that returns a whole number, or
        None where the pair is forbidden, called once a pair and dropped; or an array, with -1 where
        a pair is forbidden. At most a million times the workload's priority.
    margin : int, default 10
        Kept free on every GPU, in whole per cent.
    lowest_share : int, default 5
        A GPU with a smaller share left takes nobody, in whole per cent.

    Attributes
    ----------
    online, offline : tuple
    weights : numpy.ndarray of int64, shape (G, K), read-only
        -1 where a pair is forbidden: by the weights given, for want of a share or of memory.
    shares : tuple of int
        Of each online class, in whole per cent.

    Raises
    ------
    InvalidProblem
        Naming the class, the pair and the value at fault.

    References
    ----------
    After MuxFlow (arXiv:2303.13803), which matches single GPUs with single workloads.

    Examples
    --------
    >>> problem = SharingProblem(
    ...     online=[OnlineClass("a100-80gb", count=600, sm_activity=23)],
    ...     offline=[OfflineClass("train", count=400), OfflineClass("index", count=900)],
    ...     weights=[[640_000, 550_000]],
    ... )
    >>> problem, problem.shares
    (SharingProblem(600 GPUs in 1 classes, 1300 workloads in 2 classes), (67,))
    """

    __slots__ = ("_cache", "lowest_share", "margin", "offline", "online", "shares", "weights")
    online: tuple[OnlineClass, ...]
    offline: tuple[OfflineClass, ...]
    weights: NDArray[np.int64]
    margin: int
    lowest_share: int
    shares: tuple[int, ...]
    _cache: dict[str, Any]

    def __init__(
        self,
        *,
        online: Iterable[OnlineClass],
        offline: Iterable[OfflineClass],
        weights: WeightFunction | ArrayLike,
        margin: int = 10,
        lowest_share: int = 5,
    ) -> None:
        gpus, work = (
            each_of(online, OnlineClass, "online"),
            each_of(offline, OfflineClass, "offline"),
        )
        _names(gpus, "online")
        names = _names(work, "offline")
        for each in gpus:
            if each.running is not None and each.running not in names:
                raise InvalidProblem(
                    f"online class {each.name!r} runs {each.running!r}, which is no offline class"
                    f"{nearest(each.running, names)}; leave it out, or list it with a count of 0"
                )
        margin = checked_percent(margin, "margin")
        lowest_share = checked_percent(lowest_share, "lowest_share")
        shares = tuple(sm_share(each.sm_activity, margin, lowest_share) for each in gpus)
        closed = _misfits(gpus, work) | (np.array(shares, dtype=np.int64) == 0)[:, None]
        table = _table(weights, gpus, work, closed)
        self._fill(gpus, work, table, margin, lowest_share, shares)

    def _fill(
        self,
        online: tuple[OnlineClass, ...],
        offline: tuple[OfflineClass, ...],
        weights: NDArray[np.int64],
        margin: int,
        lowest_share: int,
        shares: tuple[int, ...],
    ) -> None:
        put = object.__setattr__
        put(self, "online", online)
        put(self, "offline", offline)
        put(self, "weights", read_only(weights.copy()))
        put(self, "margin", margin)
        put(self, "lowest_share", lowest_share)
        put(self, "shares", shares)
        put(self, "_cache", {})

    @classmethod
    def _rebuild(cls, *parts: Any) -> SharingProblem:
        """Put parts together that are known to be valid."""
        problem = cls.__new__(cls)
        problem._fill(*parts)
        return problem

    def _parts(self) -> tuple[Any, ...]:
        numbers = self.margin, self.lowest_share, self.shares
        return self.online, self.offline, self.weights, *numbers

    def __reduce__(self) -> tuple[Any, ...]:
        return SharingProblem._rebuild, self._parts()

    @property
    def online_index(self) -> FrozenMap[str, int]:
        """The place of each online class, by name."""
        return self._cached("online", lambda: _places(self.online))

    @property
    def offline_index(self) -> FrozenMap[str, int]:
        """The place of each offline class, by name."""
        return self._cached("offline", lambda: _places(self.offline))

    def weight(self, online: str, offline: str) -> int | None:
        """Return what a workload is worth beside a GPU's online side; None if that is forbidden.

        Raises
        ------
        KeyError
            If there is no class of that name.
        """
        found = int(self.weights[self.online_index[online], self.offline_index[offline]])
        return None if found == FORBIDDEN else found

    def value(self, plan: SharingPlan) -> int:
        """Return what a plan is worth, valid or not; pairs that are unknown or forbidden: nothing.

        Examples
        --------
        >>> from cms.fleet.sharing import SharingPlan
        >>> problem = SharingProblem(
        ...     online=[OnlineClass("a30", count=2, sm_activity=50, name="gpu")],
        ...     offline=[OfflineClass("train", count=5)],
        ...     weights=[[400_000]],
        ... )
        >>> problem.value(SharingPlan({("gpu", "train"): 2}))
        800000
        """
        rows, columns = self.online_index, self.offline_index
        return sum(
            max(int(self.weights[rows[online], columns[offline]]), 0) * count
            for online, offline, count in plan
            if online in rows and offline in columns
        )

    @property
    def most(self) -> int:
        """What no plan exceeds: every workload where it is worth most."""
        best = self.weights.max(axis=0, initial=0).tolist()
        return sum(w * each.count for w, each in zip(best, self.offline, strict=True))

    @property
    def sha256(self) -> str:
        """SHA-256 of names and canonical reduced rationals; the same for every equal problem."""
        return self._cached("sha256", self.compute_sha256)

    def compute_sha256(self) -> str:
        """Compute ``sha256`` from the data as they are now, as in ``docs/guides/sharing.md``."""
        head = {
            "online": [
                {
                    "name": each.name,
                    "count": each.count,
                    "device": each.device,
                    "sm_activity": str(each.sm_activity),
                    "memory_mib": str(each.memory_mib),
                    "memory_total_mib": _text(each.memory_total_mib),
                    "model": each.model,
                    "slowdown_limit": _text(each.slowdown_limit),
                    "running": each.running,
                }
                for each in self.online
            ],
            "offline": [
                {
                    "name": each.name,
                    "count": each.count,
                    "memory_mib": str(each.memory_mib),
                    "model": each.model,
                    "priority": str(each.priority),
                }
                for each in self.offline
            ],
            "margin": self.margin,
            "lowest_share": self.lowest_share,
        }
        text = json.dumps(head, ensure_ascii=True, separators=(",", ":"), sort_keys=True)
        found = hashlib.sha256(f"cms-sharing-problem-1\n{text}\n".encode())
        found.update(np.ascontiguousarray(self.weights, dtype="<i8").tobytes())
        return found.hexdigest()

    def _cached(self, key: str, make: Callable[[], T]) -> T:
        if key not in self._cache:
            self._cache[key] = make()
        found: T = self._cache[key]
        return found

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a SharingProblem is immutable: {name!r} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a SharingProblem is immutable: {name!r} cannot be deleted")

    def __hash__(self) -> int:
        return hash(self.sha256)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SharingProblem):
            return NotImplemented
        return self is other or self.sha256 == other.sha256

    def __repr__(self) -> str:
        gpus, work = sum(o.count for o in self.online), sum(f.count for f in self.offline)
        return (
            f"SharingProblem({shown(gpus)} GPUs in {len(self.online)} classes, {shown(work)} "
            f"workloads in {len(self.offline)} classes)"
        )


def _text(number: Fraction | None) -> str | None:
    return None if number is None else str(number)


def _names(classes: Sequence[OnlineClass | OfflineClass], side: str) -> tuple[str, ...]:
    names = tuple(each.name for each in classes)
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InvalidProblem(
                f"two {side} classes are called {name!r}; give each a name of its own"
            )
        seen.add(name)
    return names


def _places(classes: Sequence[OnlineClass | OfflineClass]) -> FrozenMap[str, int]:
    return FrozenMap({each.name: place for place, each in enumerate(classes)})


def _misfits(online: Sequence[OnlineClass], offline: Sequence[OfflineClass]) -> NDArray[np.bool_]:
    """Return which pairs memory rules out: few sizes are different, so few pairs are compared."""
    found = np.zeros((len(online), len(offline)), dtype=np.bool_)
    if not any(each.memory_mib for each in offline):
        return found
    needs = {each.memory_mib: each for each in offline}
    columns = [list(needs).index(each.memory_mib) for each in offline]
    known: dict[object, list[bool]] = {}
    for place, gpu in enumerate(online):
        key = gpu.memory_mib, gpu.memory_total_mib
        if key not in known:
            known[key] = [misfit(gpu, each) for each in needs.values()]
        found[place] = np.array(known[key], dtype=np.bool_)[columns]
    return found


def _table(
    weights: Any,
    online: Sequence[OnlineClass],
    offline: Sequence[OfflineClass],
    closed: NDArray[np.bool_],
) -> NDArray[np.int64]:
    shape = len(online), len(offline)
    if callable(weights):
        found = np.full(shape, FORBIDDEN, dtype=np.int64)
        for row, gpu in enumerate(online):
            for column, work in enumerate(offline):
                if not closed[row, column]:
                    weight = weights(gpu, work)
                    if weight is not None:
                        found[row, column] = _checked(weight, gpu, work, least=0)
        return found
    try:
        given = np.array(weights) if shape[0] else np.empty(shape, dtype=np.int64)
    except (TypeError, ValueError) as fault:
        raise InvalidProblem(f"weights is no array: {fault}") from None
    if given.shape != shape:
        raise InvalidProblem(
            f"weights has shape {given.shape}; expected {shape}: a row for each online class, a "
            "column for each offline class"
        )
    most = np.array([each.most_weight for each in offline], dtype=np.int64)
    suspects = np.ones(shape, dtype=np.bool_)
    if given.dtype.kind in "iu":
        suspects = (given < FORBIDDEN) | (given > most)
    for row, column in np.argwhere(suspects):
        _checked(given[row, column], online[row], offline[column], least=FORBIDDEN)
    found = given.astype(np.int64)
    found[closed] = FORBIDDEN
    return found


def _checked(value: object, online: OnlineClass, offline: OfflineClass, least: int) -> int:
    what = f"weight of {offline.name!r} beside {online.name!r}"
    number = whole(value.item() if isinstance(value, np.generic) else value, what, least=least)
    if number > offline.most_weight:
        raise InvalidProblem(
            f"{what} is {shown_object(number)}; expected at most {offline.most_weight}, which is a "
            f"million times its priority: it runs no faster than alone"
        )
    return number
