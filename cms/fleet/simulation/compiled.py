"""The compiled loops; imported where there is much to do."""

from __future__ import annotations

from typing import Any

from ...knapsack.machine_code import compiled, twins
from . import alone as single
from . import kernel, state

_FUNCTIONS = ("most", "rise", "sink", "beats", "seed", "replay", "advance")
_twin = twins(vars(kernel), _FUNCTIONS)["advance"]


def _advance(
    state: Any, policy: int, at: Any, tags: Any, first: Any, second: Any, until: int
) -> int:
    return _twin(state, policy, at, tags, first, second, until)  # type: ignore[no-any-return]


advance = compiled(_advance, [__file__, kernel.__file__, state.__file__])
"""What :func:`.kernel.advance` is, in machine code, without holding the interpreter."""


_alone_twin = twins(vars(single), ["alone"])["alone"]


def _alone(times: Any, ends: Any, arrivals: Any, gap: float, found: Any) -> None:
    _alone_twin(times, ends, arrivals, gap, found)


alone = compiled(_alone, [__file__, single.__file__])
"""What :func:`.alone.alone` is, in machine code, without holding the interpreter."""
