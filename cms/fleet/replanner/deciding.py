"""Whether to go on with what runs or to change now, on rates that are foreseen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from .path import NoPath, Path, Start, shortest
from .windows import Planned, Windows


@dataclass(frozen=True)
class Decision:
    """What to do now: go on with what runs (`keeps`), or change to `plan`.

    `plan` is that of the first window. `keep` is the best way that goes on until it begins; None if
    what runs is not enough even until the next moment. `change` is the best way that changes now;
    None if the rates ahead have no plan. Of services that are `short` less runs than is asked for
    now. Going on may cost more than changing by the hysteresis.
    """

    keeps: bool
    keep: Path | None
    change: Path | None
    plan: Planned | None
    short: tuple[str, ...]
    hysteresis: Fraction


def decide(
    windows: Windows,
    has_rps: Mapping[str, Fraction],
    gpu_cost: Fraction,
    hysteresis: Fraction = Fraction(0),
) -> Decision:
    """Decide whether to go on with what runs: so many items per second by service, at a cost.

    It goes on if it is enough at least until the next moment, and the best way that begins with it
    costs at most a margin more than the best way that changes now. Enough is what, with the
    hysteresis on top, covers rates and margin; so with a hysteresis no larger than the margin,
    never less than the rates foreseen. What is short now is replaced whatever that costs. The
    windows' first rates are those observed. NoPath if what runs is not enough and the rates ahead
    have no plan.
    """
    observed = windows.envelopes.now
    short = tuple(name for name, rate in observed.items() if has_rps.get(name, 0) < rate)
    hours = windows.envelopes.hours

    def between(a: int, b: int, c: int) -> Fraction:
        return windows.between(windows.needs(a, b), b, c)

    def start(at: int) -> Start:
        return Start(at, gpu_cost * at * hours, lambda c: windows.between(has_rps, at, c))

    def does(until: int) -> bool:
        needs = windows.needs(0, until).items()
        return all((1 + hysteresis) * has_rps.get(name, 0) >= rate for name, rate in needs)

    change, hole = None, None
    try:
        change = shortest(windows, [start(0)], between)
    except NoPath as fault:
        hole = fault
    lasting = 0  # rates only grow with the window
    while not short and lasting < windows.count and does(lasting + 1):
        lasting += 1
    keep = None
    if lasting:
        try:
            keep = shortest(windows, [start(at) for at in range(1, lasting + 1)], between)
        except NoPath as fault:
            hole = fault
    if keep is None and change is None:
        assert hole is not None
        raise hole
    if change is None:
        return Decision(True, keep, None, None, short, hysteresis)
    keeps = keep is not None and keep.cost <= (1 + hysteresis) * change.cost
    plan = windows.ask(*change.windows[0])
    return Decision(keeps, keep, change, plan, short, hysteresis)
