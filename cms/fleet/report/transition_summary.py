"""A transition in a few lines for the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.text import Text

from .text_table import table, text
from .words import decimal

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import RenderableType

    from ..deployment.transition.folder import Summary

__all__ = ["summary_report"]


def summary_report(words: Summary, folder: Path | None) -> Iterator[RenderableType]:
    """Yield what becomes of each service, and the transition in a sentence.

    Parameters
    ----------
    words : Summary
    folder : Path or None
        Where its scripts are written.
    """
    rows = table(
        "service", *(">" + name for name in ("kept", "started", "stopped")), "lowest", "floor"
    )
    for each in words.services:
        floor = "-" if each.floor is None else f"{decimal(each.floor.rps)} ({each.floor.reason})"
        rows.add_row(
            text(each.service), *map(str, (each.kept, each.started, each.stopped)),
            decimal(each.lowest_rps), text(floor),
        )  # fmt: skip
    if words.services:
        yield rows
        yield Text(
            "lowest and floor in items/s; lowest: at no moment of any parallel execution less"
        )
    yield Text(words.assumed)
    where = "nothing is written without -o DIR" if folder is None else f"written to {folder}"
    yield Text(f"\n{words.headline}", "bold")
    yield Text(where)
