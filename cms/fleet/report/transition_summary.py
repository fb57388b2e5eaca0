"""A transition in a few lines for the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.text import Text

from ...values.words import count
from .text_table import table, text
from .transition_words import short

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import RenderableType

    from ..deployment import Deployment, Wanted
    from ..deployment.transition import Transition
    from ..deployment.transition.folder import Summary

__all__ = ["summary_report", "whole_gpus_report"]

#: So many instances are named, and the rest counted.
_NAMED = 5


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
        floor = (
            "-" if each.floor is None else f"{short(each.floor.rps, up=True)} ({each.floor.reason})"
        )
        rows.add_row(
            text(each.service), *map(str, (each.kept, each.started, each.stopped)),
            short(each.lowest_rps, up=False), text(floor),
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


def whole_gpus_report(
    found: Transition, to: Wanted | Deployment, actuator: str
) -> Iterator[RenderableType]:
    """Yield what cutting whole GPUs costs beside cutting parts of them.

    Parameters
    ----------
    found : Transition
    to : Wanted or Deployment
        What it was planned for.
    actuator : str
        What it was planned with.
    """
    from ..deployment.transition import saved_by_parts

    spare = found.spare
    if spare.least:
        needed = count(spare.least, "spare GPU")
        yield Text(f"{actuator} needs {needed} at least: {spare.reason}")
    saved = saved_by_parts(found, to)
    if saved:
        named = ", ".join(f"{card.name} {each}" for card, each in saved[:_NAMED])
        more = f" and {len(saved) - _NAMED} more" if len(saved) > _NAMED else ""
        yield Text(
            f"{count(len(saved), 'instance')} that only --actuator nvidia-smi would keep, as it "
            f"cuts parts of GPUs: {named}{more}"
        )
