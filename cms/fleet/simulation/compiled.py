"""The compiled loop; imported where there is much to do."""

from __future__ import annotations

from typing import Any

from ...knapsack.machine_code import compiled, twins
from . import kernel, state

_FUNCTIONS = ("most", "rise", "sink", "beats", "seed", "replay", "advance")
_twin = twins(vars(kernel), _FUNCTIONS)["advance"]


def _advance(
    state: Any, policy: int, at: Any, tags: Any, first: Any, second: Any, until: int
) -> int:
    return _twin(state, policy, at, tags, first, second, until)  # type: ignore[no-any-return]


advance = compiled(_advance, [__file__, kernel.__file__, state.__file__])
"""What :func:`.kernel.advance` is, in machine code, without holding the interpreter."""
