"""The GPU catalogue and the list of algorithms, for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from ...values.words import printable
from .text_table import hanging, table, text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ...plugin.registry import AlgorithmDetails
    from ..hardware import Evidence, Gpu, Layout


def gpus_report(gpus: Sequence[Gpu]) -> list[RenderableType]:
    """List GPUs, one a line.

    Examples
    --------
    >>> from rich.console import Console
    >>> from cms.fleet.hardware import gpu
    >>> Console(width=100, color_system=None).print(*gpus_report([gpu("a30-24gb")]))
    key ...
    a30-24gb ...
    ...
    """
    listed = table("key", "architecture", ">slices", "profiles")
    for gpu in gpus:
        listed.add_row(
            text(gpu.key),
            text(gpu.architecture),
            f"{gpu.compute_slices} + {gpu.memory_slices}",
            text(" ".join(gpu.base_profiles)),
        )
    note = "\nslices: compute + memory; 'cms gpus NAME' shows placements and sources"
    return [listed, Text(note, "dim")]


def gpu_report(gpu: Gpu) -> list[RenderableType]:
    """Show one GPU: profiles with their starts, configurations, and where the figures are from."""
    head = Text(printable(gpu.key), "bold")
    head.append(
        f" ({printable(gpu.architecture)}): {gpu.compute_slices} compute and {gpu.memory_slices} "
        f"memory slices, file version {gpu.version}\n",
        "not bold",
    )
    if gpu.aliases:
        head.append(f"also called {printable(', '.join(gpu.aliases))}\n", "not bold")
    profiles = table("profile", ">id", ">compute", ">memory", "starts", ">most", ">SMs", "since")
    for one in gpu.profiles:
        profiles.add_row(
            text(one.name),
            _known(one.id),
            str(one.compute),
            str(one.memory),
            ", ".join(map(str, one.starts)),
            str(one.max),
            _known(one.sms),
            text(one.since_driver or ""),
        )
    shapes = gpu.configurations
    placed = ((str(shape), _starts(gpu.place(shape.blocks) or ())) for shape in shapes)
    sources = (
        (f"[{one.evidence}]", f"{', '.join(one.fields)}: {_cited(one)}") for one in gpu.sources
    )
    return [
        head,
        profiles,
        Text(f"\n{len(shapes)} maximal configurations of the plain profiles, and starts", "bold"),
        hanging(*placed),
        Text("\nSources", "bold"),
        hanging(*sources),
    ]


def _starts(layout: Layout) -> str:
    """Write a layout with the starts of each profile together: ``1g@0,1 3g@4``."""
    starts: dict[str, list[str]] = {}
    for placement in sorted(layout, key=lambda placement: placement.start):
        starts.setdefault(placement.profile, []).append(str(placement.start))
    return " ".join(f"{profile}@{','.join(own)}" for profile, own in starts.items())


def _cited(evidence: Evidence) -> str:
    return ", ".join(filter(None, (evidence.source, evidence.driver, evidence.date)))


def algorithms_report(found: Sequence[AlgorithmDetails]) -> list[RenderableType]:
    """List algorithms with their options; a third party's is marked.

    Examples
    --------
    >>> from rich.console import Console
    >>> from cms.plugin.registry import AlgorithmDetails
    >>> one = AlgorithmDetails("swap", "my-plugin", False, "Swaps blocks.", {"rounds": 3})
    >>> Console(width=80, color_system=None).print(*algorithms_report([one]))
    swap (of my-plugin)
      Swaps blocks.
      --option rounds=3
    """
    report: list[RenderableType] = []
    for one in found:
        head = Text(printable(one.name), "bold")
        if not one.trusted:
            head.append(f" (of {printable(one.distribution)})", "not bold")
        options = (("", f"--option {name}={value}") for name, value in one.options.items())
        report += [head, hanging(("", one.summary), *options)]
    return report


def _known(value: int | None) -> str:
    return "?" if value is None else str(value)
