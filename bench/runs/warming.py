"""Unmeasured solves at a process's beginning: loading compiled code is not what is measured."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from cms.errors import CmsError
from cms.fleet import get_gpu
from cms.problem.parts import Configuration
from cms.problem.problem import Problem
from cms.solving.solve import solve

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Jobs of the two problems: one on the small path, one on the compiled path.
SIZES = (5, 5_000)
_SECONDS = 10.0
_done: set[tuple[str, str]] = set()


@cache
def warming_problem(n: int) -> Problem:
    """Return a problem of n different jobs on the configurations of an A100."""
    shapes = [Configuration(shape.blocks) for shape in get_gpu("a100-80gb").configurations]
    blocks = sorted({block for shape in shapes for block in shape.blocks})
    random = np.random.default_rng(n)
    slices = np.array([1.0, 2.0, 3.0, 4.0, 7.0])
    scale: NDArray[Any] = random.uniform(50, 500, (n, 1))
    supply = np.round(scale * slices ** random.uniform(0.7, 1.2, (n, 1)), 1)
    demands = np.round(supply[:, -1] * random.lognormal(-2, 1, n), 1)
    return Problem.from_arrays(demands=demands, supply=supply, configurations=shapes, blocks=blocks)


def warm_up(method: str, options: Mapping[str, Any], threads: int) -> None:
    """Solve a small and a large problem, once in a process for each method and its options."""
    key = method, repr(sorted(options.items()))
    if key in _done:
        return
    _done.add(key)
    for n in SIZES:
        # What goes wrong here goes wrong in the measured run too, which says so.
        with suppress(CmsError):
            solve(warming_problem(n), method, options=options, time_limit=_SECONDS, threads=threads)
