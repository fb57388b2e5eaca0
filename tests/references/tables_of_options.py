"""What a test knows: that its jobs are few, so that there is a table of their options."""

from __future__ import annotations

from typing import Any

from algorithms.prices.choices import Choices


def told(found: Any) -> Choices:
    """The choices of something rounded or found, or of a task, one by one."""
    choices = getattr(found, "fixed", None) or found.choices
    assert isinstance(choices, Choices)
    return choices
