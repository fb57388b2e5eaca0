"""Unmeasured solves at a process's beginning: loading compiled code is not what is measured."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from cms.errors import CmsError
from cms.solving.solve import solve
from instances.families import generate

#: Jobs of the two problems: one on the small path, one on the compiled path.
SIZES = (5, 5_000)
_SECONDS = 10.0
_done: set[tuple[str, str]] = set()


def warm_up(method: str, options: Mapping[str, Any], threads: int) -> None:
    """Solve a small and a large problem, once in a process for each method and its options."""
    key = method, repr(sorted(options.items()))
    if key in _done:
        return
    _done.add(key)
    for n in SIZES:
        # What goes wrong here goes wrong in the measured run too, which says so.
        with suppress(CmsError):
            problem = generate("real-rows", n=n, seed=0, m=5)
            solve(problem, method, options=options, time_limit=_SECONDS, threads=threads)
