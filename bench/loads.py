"""Make the tables of sustainable loads: ``python -m bench.loads certified FILE``, or ``simulated``.

``certified``: the loads are found in floating point, by the exact chain of one process (c = 1) with
batches that all take the same time; each is then proved in integers by
:mod:`proofs_checks.checker.loads`, and lowered by a thousandth until it is. Two minutes of a core.

``simulated``: several processes on one queue; the largest load of a grid at which, and at all lower
ones, the upper end of a 99 % interval of the late share is within what is tolerated, whichever of
:func:`shapes` the times of smaller batches have. One run of a load gives all ratios; loads so near
1 that the run is too short for them are left out. Some eight minutes of a core.
"""

from __future__ import annotations

import argparse
import json
import math
import re
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cms.files.source import write_bytes
from cms.fleet.serving.capacity import digest
from proofs_checks.checker.loads import why_not

if TYPE_CHECKING:
    from numpy.typing import NDArray

LATE_SHARES = (Fraction(1, 1000), Fraction(1, 100), Fraction(1, 20))
BATCHES = tuple(1 << k for k in range(9))
RATIOS = tuple(
    [Fraction(k, 16) for k in range(32, 64)]
    + [Fraction(k, 4) for k in range(16, 32)]
    + [Fraction(k) for k in range(8, 17)]
)
_PARTS = 1000


@lru_cache(maxsize=64)
def waiting_tail(a: float, b: int, decay: float, m: int) -> NDArray[np.float64]:
    """Compute P(W >= w) for w = 1...m; as the checker's own, by numpy."""
    size = 1 << max(32, m, math.ceil(120 / decay)).bit_length()
    angles = 2 * np.pi * np.arange(size) / size
    circle = np.exp(decay / 2 + 1j * angles)
    logs = -np.log(1 - np.exp(a * (circle - 1) - b * (decay / 2 + 1j * angles)))
    plus = np.fft.fft(logs).real / size
    plus[size // 2 :] = 0
    plus[0] = -np.sum(plus[1:] * np.exp(-decay / 2 * np.arange(1, size)))
    waits = np.exp(np.fft.ifft(plus) * size)
    tails = np.fft.fft((waits - 1) / (circle - 1)).real / size
    found: NDArray[np.float64] = tails[:m] * np.exp(-decay / 2 * np.arange(m))
    return found


def late_share(a: float, b: int, ratio: float | Fraction) -> float:
    """Compute the late share: a < b requests arrive in a batch time, the limit is a ratio >= 2."""
    (share,) = _late_shares(a, b, (Fraction(ratio),))
    return float(share)


def _late_shares(a: float, b: int, ratios: Iterable[Fraction]) -> list[float]:
    decay = _decay(a, b)
    reach = (int(max(ratios)) + 1) * b
    tail = np.concatenate([[1.0], waiting_tail(a, b, decay, reach + 1)])
    waiting = tail[:-1] - tail[1:]
    cycle = a + waiting[0] * math.exp(-a)
    found = []
    whole = _poisson_tails(a, reach + b + 2)
    for ratio in ratios:
        k, part = int(ratio) - 2, float(ratio % 1)
        first = (k + 1) * b - np.arange((k + 2) * b)
        short = _poisson_tails(a * (1 - part), reach + b + 2)
        late = _integral(short, 1 - part, a, first)
        late += _integral(whole, 1, a, first + b) - _integral(short, 1 - part, a, first + b)
        expected = waiting[: len(late)] @ late + tail[len(late)]
        found.append(a * expected / cycle)
    return found


def _decay(a: float, b: int) -> float:
    low, high = 0.0, 1.0
    while a * math.expm1(high) < b * high:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if a * math.expm1(middle) < b * middle else (low, middle)
    return low


def _integral(
    tails: NDArray[np.float64], x: float, a: float, n: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The integral of P(N(t) >= n) over t from 0 to x, given P(Poisson(ax) >= n)."""
    at = np.maximum(n, 0)
    return np.where(n <= 0, x, x * tails[at] - n / a * tails[at + 1])


def _poisson_tails(mean: float, size: int) -> NDArray[np.float64]:
    if mean == 0:
        return np.array([1.0, *[0.0] * (size - 1)])
    size = max(size, int(mean + 20 * math.sqrt(mean) + 60))
    j = np.arange(size)
    logs = j * math.log(mean) - mean - np.concatenate([[0.0], np.cumsum(np.log(j[1:]))])
    return np.cumsum(np.exp(logs)[::-1])[::-1]


def largest_load(b: int, ratio: Fraction, share: Fraction) -> Fraction:
    """Find the largest load in thousandths that is proved; 0 if there is none."""
    low, high = 0, _PARTS
    while high - low > 1:
        middle = (low + high) // 2
        (late,) = _late_shares(middle * b / _PARTS, b, (ratio,))
        low, high = (middle, high) if late <= share else (low, middle)
    while low and why_not(b, ratio, share, Fraction(low, _PARTS), _guess):
        low -= 1
    return Fraction(low, _PARTS)


def _guess(a: Fraction, b: int, decay: Fraction, m: int) -> list[float]:
    return [float(tail) for tail in waiting_tail(float(a), b, float(decay), m)]


def certified_table() -> dict[str, Any]:
    """Compute the table ``certified.json`` as a document."""
    rows = [
        [[[int(largest_load(b, ratio, share) * _PARTS) for b in BATCHES] for ratio in RATIOS]]
        for share in LATE_SHARES
    ]
    how = (
        "the exact chain of one process, batches of one length, Poisson arrivals; each "
        "entry proved in integers (proofs_checks/checker/loads.py)"
    )
    return _document("certified", how, [1], rows)


def _document(
    kind: str, how: str, processes: list[int], thousandths: list[Any], **more: object
) -> dict[str, Any]:
    table = {
        "kind": kind,
        "made": f"python -m bench.loads {kind}",
        "how": how,
        **more,
        "late_shares": [str(share) for share in LATE_SHARES],
        "ratios": [str(ratio) for ratio in RATIOS],
        "processes": processes,
        "batches": list(BATCHES),
        "thousandths": thousandths,
    }
    return {**table, "sha256": digest(table)}


#: Processes and loads of the simulated table.
PROCESSES = (2, 3, 4, 5, 8, 16)
LOADS = tuple([k * 20 for k in range(5, 45)] + [k * 10 for k in range(90, 100)])
_PARTS_OF_A_RUN = 20
#: A batch time and a sixteenth of it, which the ratios are multiples of, in nanoseconds.
_BATCH_NS, _SIXTEENTH = 1 << 30, 26
#: A queue forgets its past in some 2 / (1 - load)^2 requests, and not before its processes have
#: worked off a batch each. A run of fewer than so many such lengths says nothing.
_TELLING = 500
#: Shorter runs, as parts of the whole one, settle what is far from the tolerated share, and tell
#: which shapes are the worst.
_FIRST_TRIES = (30, 10, 1)
_SURELY_WITHIN = 0.7
#: T(0+) / T(b) of affine batch times, the most harmful first: processes fall into step where a
#: batch that is not full takes a few per cent less.
_AFFINE = (0.97, 0.99, 0.9, 1.0, 0.95, 0.98, 0.995, 0.998, 0.75, 0.5, 0.25, 0.0)
_SHAPES: dict[str, tuple[tuple[float, ...], Callable[..., NDArray[np.float64]]]] = {
    "affine from": (_AFFINE, lambda low, fills: low + (1 - low) * fills),
    "flat to half a batch, then affine from": (
        (0.97, 0.75, 0.25), lambda low, fills: low + (1 - low) * np.maximum(2 * fills - 1, 0)
    ),
    "affine to half a batch, then flat, from": (
        (0.9, 0.5), lambda low, fills: np.minimum(low + (1 - low) * 2 * fills, 1)
    ),
    "flat but for a full batch at": ((0.97,), lambda low, fills: np.where(fills < 1, low, 1.0)),
}  # fmt: skip


def shapes(batch: int) -> list[list[int]]:
    """Return batch times T(1), ..., T(batch) that the table holds for, in nanoseconds.

    Affine ones, padded ones and all that take no time when they are nearly empty among them, and
    those that are flat for half a batch, or but for a full one: between them are the measured ones.
    """
    fills = np.arange(1, batch + 1) / batch
    found = [of(low, fills) for lows, of in _SHAPES.values() for low in lows]
    times = [tuple(np.ceil(each * _BATCH_NS).astype(int).tolist()) for each in found]
    return [list(each) for each in dict.fromkeys(times)]


def simulated_table(requests: int, seed: int = 0) -> dict[str, Any]:
    """Compute the table ``simulated.json`` as a document."""
    unit = np.cumsum(np.random.Generator(np.random.PCG64(seed)).exponential(size=requests))
    figures = np.zeros((len(LATE_SHARES), len(PROCESSES), len(RATIOS), len(BATCHES)), np.int64)
    for at, processes in enumerate(PROCESSES):
        for nth, batch in enumerate(BATCHES):
            figures[:, at, :, nth] = simulated_loads(processes, batch, unit)
    how = (
        "processes on one queue, Poisson arrivals; the largest load of a grid whose late "
        "share, and that of all lower loads, is within the tolerated one by the upper end of a "
        "99 % interval for all shapes of batch times; a thirtieth or a tenth of the requests "
        "decides where it shows at most 0.7 of the tolerated share, or more than all of it, and "
        "picks the shapes that are worst where it does not; loads r beyond requests = "
        "500 max(1 / (1 - r)^2, processes x batch) are left out"
    )
    kinds = {name: lows for name, (lows, _) in _SHAPES.items()}
    found = figures.tolist()
    facts = {"requests": requests, "seed": seed, "shapes": kinds}
    return _document("simulated", how, list(PROCESSES), found, **facts)


def simulated_loads(processes: int, batch: int, unit: NDArray[np.float64]) -> NDArray[np.int64]:
    """Find the loads of an instance, in thousandths, by late share and ratio."""
    best = np.zeros((len(LATE_SHARES), len(RATIOS)), dtype=np.int64)
    open_still = np.ones(best.shape, dtype=np.bool_)
    room = np.empty(len(unit), dtype=np.int64)
    for load in LOADS:
        if _lengths(len(unit), load, processes * batch) < 1:
            break
        _close(open_still, processes, batch, load, unit, room)
        if not open_still.any():
            break
        best[open_still] = load
    return best


def _lengths(requests: int, load: int, slots: int) -> float:
    """How many times as long a run is as it takes to tell."""
    return requests / (_TELLING * max((_PARTS / (_PARTS - load)) ** 2, slots))


def _close(
    open_still: NDArray[np.bool_],
    processes: int,
    batch: int,
    load: int,
    unit: NDArray[np.float64],
    room: NDArray[np.int64],
) -> None:
    """Mark where more may be late than is tolerated."""
    from cms.fleet.simulation.compiled import alone
    from cms.fleet.simulation.load_curves import latencies

    shares = np.array([[float(share)] for share in LATE_SHARES])
    gap = _BATCH_NS * _PARTS / (load * processes * batch)
    tries = [len(unit) // part for part in _FIRST_TRIES]
    first = next(size for size in tries if _lengths(size, load, processes * batch) >= 1)

    def run(shape: list[int], requests: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        found = latencies(shape, processes, unit[:requests], gap, alone, room)
        return _late(found, 1 + 1 / math.sqrt(_lengths(requests, load, processes * batch)))

    kinds = shapes(batch)
    means, highs = map(np.array, zip(*[run(shape, first) for shape in kinds], strict=True))
    if first < len(unit):
        open_still &= means.max(axis=0) <= shares
        unsure = (open_still & (highs.max(axis=0) > _SURELY_WITHIN * shares)).any(axis=0)
        worst = np.unique(means.argmax(axis=0)[unsure])
        highs = np.array([run(kinds[at], len(unit))[1] for at in worst])
    for high in highs:
        open_still &= high <= shares


def _late(
    found: NDArray[np.int64], wider: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The late shares by ratio, and the upper ends of their 99 % intervals; writes over `found`."""
    from cms.fleet.simulation.statistics import student

    each = len(found) // _PARTS_OF_A_RUN
    limits = [int(16 * ratio) for ratio in RATIOS]
    # a latency exceeds a limit of k sixteenths if this is k or more
    found -= 1
    found >>= _SIXTEENTH
    np.minimum(found, limits[-1], out=found)
    exceed = np.empty((_PARTS_OF_A_RUN, len(limits)))
    for part in range(_PARTS_OF_A_RUN):
        counts = np.bincount(found[part * each : (part + 1) * each], minlength=limits[-1] + 1)
        exceed[part] = counts[::-1].cumsum()[::-1][limits] / each
    mean: NDArray[np.float64] = exceed.mean(axis=0)
    spread = wider * student(_PARTS_OF_A_RUN - 1) / math.sqrt(_PARTS_OF_A_RUN)
    return mean, mean + spread * exceed.std(axis=0, ddof=1)


def main() -> None:
    """Write a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.loads", description=__doc__)
    parser.add_argument("table", choices=["certified", "simulated"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--requests", type=int, default=10**7, help="of each simulated run")
    options = parser.parse_args()
    certified = options.table == "certified"
    table = certified_table() if certified else simulated_table(options.requests)
    text = json.dumps(table, indent=1)
    # a row of numbers is a line
    number = r"(?:\d+|\"[\d/.]+\")"
    rows = rf"\[\s*({number}(?:,\s*{number})*)\s*\]"
    text = re.sub(rows, lambda found: f"[{' '.join(found[1].split())}]", text)
    write_bytes(f"{text}\n".encode(), options.file)


if __name__ == "__main__":
    main()
