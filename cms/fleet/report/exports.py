"""What exporters wrote, and what nodes will offer, for the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.text import Text

from ...values.words import count
from ..deployment.export import advertise
from .fleet_bars import names
from .text_table import hanging, table, text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ..deployment.export import Export
    from ..deployment.model import Deployment

__all__ = ["export_report", "offers_report"]

_MOST = 40


def export_report(name: str, export: Export) -> Iterator[RenderableType]:
    """Yield what a target's files are, what they cannot say, and the order of their use."""
    files = sorted(export.files)
    shown = ", ".join(files[:6]) + (f" and {len(files) - 6} more" if len(files) > 6 else "")
    yield Text(f"\n{name}", "bold").append(f": {shown}", "not bold")
    if export.losses:
        yield Text("not said in these files", "yellow")
        yield hanging(*(("-", loss) for loss in export.losses))
    else:
        yield Text("nothing is lost")
    yield Text("in this order")
    yield hanging(*((f"{number}.", step) for number, step in enumerate(export.order, 1)))


def offers_report(deployment: Deployment) -> Iterator[RenderableType]:
    """Yield what each node will offer; nodes that offer the same are one line."""
    alike: dict[tuple[tuple[str, int], ...], list[str]] = {}
    needs: set[str] = set()
    for offer in advertise(deployment):
        needs.add(offer.strategy)
        alike.setdefault(tuple(sorted(offer.resources.items())), []).append(offer.node)
    strategy = "mixed" if "mixed" in needs or len(needs) > 1 else next(iter(needs), "none")
    yield Text("\nWhat nodes will offer", "bold").append(
        f" (MIG strategy mixed; {strategy} is the least that shows all)", "not bold"
    )
    rows = table("nodes", "resources")
    for resources, nodes in list(alike.items())[:_MOST]:
        named = names((node, 0) for node in nodes).replace("/0", "")
        offered = ", ".join(f"{name}: {number}" for name, number in resources) or "nothing"
        rows.add_row(text(named), text(offered))
    yield rows
    if (more := len(alike) - _MOST) > 0:
        yield Text(f"... and {count(more, 'more kind')} of nodes", "dim")
