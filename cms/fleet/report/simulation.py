"""A simulation for the terminal: a line a service, what broke a limit, and all in one sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

from rich.text import Text

from ...values.words import count, decimal, percent, printable
from .text_table import hanging, table, text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ..simulation import ServiceResult, Simulation

MOST_SERVICES = 40
"""Services of which a report shows all."""
SHOWN_OF_MANY = 20
"""Rows where there are more: those that come nearest to their limits, or go beyond them most."""
_WIDE, _WIDEST = 72, 88  # columns that the table takes, beside long names; with the interval
_OVERLOADED = " (overloaded)"
_STYLES = {
    "kept": "green", "broken": "bold red", "undecided": "yellow", "no limit": "dim",
    "not replayed": "bold red",
}  # fmt: skip


def simulation_report(simulation: Simulation, title: str, width: int) -> list[RenderableType]:
    """Describe a simulation for a person.

    Parameters
    ----------
    simulation : Simulation
    title : str
        What was replayed: the plan's file.
    width : int
        Columns of the terminal.

    Returns
    -------
    list of renderable
        To be printed one after the other with :class:`rich.console.Console`.

    Examples
    --------
    >>> from rich.console import Console
    >>> from cms.fleet.simulation import ModelledInstance, ModelledService, simulate
    >>> instance = ModelledInstance(Fraction(1), processes=1, fill_ns=(10_000_000,) * 4)
    >>> chat = ModelledService("chat", Fraction(250), 40_000_000, Fraction(1, 100), (instance,))
    >>> console = Console(width=90, color_system=None)
    >>> for part in simulation_report(simulate([chat], requests=5000), "chat", 90):
    ...     console.print(part)  # doctest: +NORMALIZE_WHITESPACE
    chat
    service  limit  rate/s  p99 / limit     late    99 % interval  load  fill  verdict
    ──────────────────────────────────────────────────────────────────────────────────
    chat     40 ms     250       64.6 %  0.000 %  0.000 - 0.164 %  62 %   2.5  KEPT
    <BLANKLINE>
    1 of 1 limits kept under Poisson arrivals, weighted random routing, 5,000 requests each
    """
    shown = list(simulation.services)
    if len(shown) > MOST_SERVICES:
        worst = sorted(shown, key=lambda each: -(each.p99_share or 0))
        keep = {each.name for each in worst[:SHOWN_OF_MANY]}
        shown = [each for each in shown if each.name in keep]
    report: list[RenderableType] = [Text(printable(title), style="bold")]
    room = width - max((len(each.name) for each in shown), default=0) + len("service")
    room -= len(_OVERLOADED) * any(each.overloaded for each in shown)
    left_out = {name for name, least in _NEEDS.items() if room < least}
    columns = [name for name in COLUMNS if name not in left_out]
    result = table("service", *(f">{name}" for name in columns), "verdict")
    for each in shown:
        cells = [COLUMNS[name](each) for name in columns]
        verdict = each.verdict.upper() + (_OVERLOADED if each.overloaded else "")
        result.add_row(text(each.name), *cells, Text(verdict, _STYLES[each.verdict]))
    report.append(result)
    if left := len(simulation.services) - len(shown):
        note = f"... and {count(left, 'more service')}, further from their limits (all with --json)"
        report.append(Text(note, "dim"))
    if notes := notes_of(simulation):
        report += [Text(), hanging(*(("-", note) for note in notes))]
    broken = any(each.verdict in ("broken", "not replayed") for each in simulation.services)
    style = "bold red" if broken else "bold green"
    report.append(Text(f"\n{printable(simulation.sentence)}", style))
    return report


def _limit(each: ServiceResult) -> str:
    return "none" if each.limit_ns is None else f"{decimal(Fraction(each.limit_ns, 10**6))} ms"


def _p99(each: ServiceResult) -> str:
    """As a share of the limit; where there is none, in milliseconds."""
    if each.verdict == "not replayed":
        return "-"
    share = each.p99_share
    return f"{each.p99_ns / 10**6:.4g} ms" if share is None else percent(share, up=True)


def _interval(each: ServiceResult) -> str:
    if each.limit_ns is None or each.verdict == "not replayed":
        return "-"
    low, high = (f"{float(end):.3%}".removesuffix("%") for end in each.interval)
    return f"{low} - {high} %"


def _late(each: ServiceResult) -> str:
    if (each.limit_ns is None and not each.late) or each.verdict == "not replayed":
        return "-"
    return f"{float(each.late_share):.3%}".replace("%", " %")


def _load(each: ServiceResult) -> str:
    return "-" if each.load is None else f"{float(each.load):.0%}".replace("%", " %")


COLUMNS: dict[str, Callable[[ServiceResult], str]] = {
    "limit": _limit,
    "rate/s": lambda each: decimal(each.rate_rps),
    "p99 / limit": _p99,
    "late": _late,
    "99 % interval": _interval,
    "load": _load,
    "fill": lambda each: f"{float(each.mean_fill):.1f}",
}
_NEEDS = {"99 % interval": _WIDEST} | dict.fromkeys(("limit", "rate/s", "load", "fill"), _WIDE)


def notes_of(simulation: Simulation) -> list[str]:
    """Say what broke limits, and what each event did."""
    return [*_causes(simulation), *_recoveries(simulation)]


def _causes(simulation: Simulation) -> Iterator[str]:
    for each in simulation.services:
        if each.cause:
            whose = "NOT REPLAYED" if each.verdict == "not replayed" else each.name
            yield f"{whose}: {each.cause}"


def _recoveries(simulation: Simulation) -> Iterator[str]:
    """What each event did to the services that noticed it."""
    for number, event in enumerate(simulation.events):
        noticed = [
            (each.name, one.back_after_seconds)
            for each in simulation.services
            for one in each.recoveries
            if one.event == number and one.back_after_seconds != 0
        ]
        said = [
            f"{name} {'not back before the next event' if back is None else 'back'}"
            + ("" if back is None else f" after {decimal(back)} s")
            for name, back in noticed
        ]
        yield f"{event}: " + (", ".join(said) or "no late share rose above what is tolerated")
