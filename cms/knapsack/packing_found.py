"""What a search for the most valuable content of a machine finds."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class Found(NamedTuple):
    """In integers: what the content is worth, and what none is worth more than."""

    value: int
    ceiling: int
    content: Sequence[int]
