"""The compiled path of the packing knapsack; imported where its plain search comes to no end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import packing_search
from .machine_code import compiled, twins

_fill = twins(vars(packing_search), ("at_most", "fill"), ("at_most",))["fill"]


def _filled(
    worth: Any,
    weight: Any,
    most: Any,
    volumes: Any,
    values: Any,
    lightest: Any,
    dearest: Any,
    room: int,
    slots: int,
    patience: int,
    counts: Any,
    best: Any,
) -> tuple[int, int, int]:
    return _fill(  # type: ignore[no-any-return]
        worth,
        weight,
        most,
        volumes,
        values,
        lightest,
        dearest,
        room,
        slots,
        patience,
        counts,
        best,
    )


_compiled_fill = compiled(_filled, [__file__, packing_search.__file__])


def filled(
    *arguments: Sequence[int] | int,
) -> tuple[int, int, list[int]]:
    """Do what :func:`packing_search.fill` does, with integers of less than 62 bits.

    Parameters
    ----------
    *arguments
        Its first ten.

    Returns
    -------
    value, ceiling : int
    content : list of int

    Examples
    --------
    >>> filled([5, 3], [3, 2], [2, 9], [0, 6, 24], [0, 10, 37], [2, 2], [5, 3], 8, -1, 100)
    (13, 13, [2, 1])
    """
    arrays = [
        np.array(each, dtype=np.int64) if isinstance(each, list | tuple) else each
        for each in arguments
    ]
    best = np.zeros(len(arrays[0]), dtype=np.int64)  # type: ignore[arg-type]
    value, ceiling, _ = _compiled_fill(*arrays, np.zeros_like(best), best)
    return int(value), int(ceiling), best.tolist()
