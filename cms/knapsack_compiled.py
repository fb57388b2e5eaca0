"""The compiled, parallel path of the covering knapsack; imported for large problems only."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numba
import numpy as np

from . import knapsack
from .knapsack import WORK_ROWS

_search = numba.njit(cache=True)(knapsack.search)


def _price_rows(
    prices: Any,
    demand: Any,
    supply: Any,
    skip: Any,
    values: Any,
    options: Any,
    node_limit: int,
) -> None:
    """Fill ``values`` (n) and ``options`` (n, k); -1 marks a job no block can serve."""
    n, k = supply.shape
    # A block of rows shares its scratch memory; blocks run in parallel.
    step = 256
    for part in numba.prange((n + step - 1) // step):
        work = np.zeros((WORK_ROWS, k + 1), dtype=np.int64)
        for j in range(part * step, min(n, (part + 1) * step)):
            if skip[j] or demand[j] <= 0:
                continue
            value, _ = _search(prices, supply[j], demand[j], options[j], work, node_limit)
            values[j] = value


# Numba's cache looks at this file's time stamp only; naming the function after the source of the
# search makes a change over there a miss here, too.
_version = hashlib.sha256(Path(knapsack.__file__).read_bytes()).hexdigest()[:12]
_price_rows.__qualname__ += "_" + _version
price_rows = numba.njit(parallel=True, cache=True)(_price_rows)


def use_threads(threads: int | None) -> None:
    """Let the calling thread's next compiled work use this many threads; None means all."""
    most = int(numba.config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]
    numba.set_num_threads(most if threads is None else min(threads, most))
