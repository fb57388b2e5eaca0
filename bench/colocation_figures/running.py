"""Figures 9 and 10: the rule of shares, and the monitor."""

from __future__ import annotations

import time
from collections.abc import Iterator

from bench.expected import Line
from cms.fleet.colocation import sm_share
from cms.fleet.published import MonitorTimes, monitor_preset
from cms.fleet.published.muxflow_monitor import TABLE, Cell, StateName
from proofs_checks.finding import Breach
from proofs_checks.monitor import require_monitor

#: States, with their timers, that the shipped monitor has at least, and CPU seconds of the search.
_STATES, _SECONDS = 10**5, 5


def share_figure(lowests: int) -> Iterator[Line]:
    """Figure 9: every activity and margin in whole per cent, and so many lowest shares."""
    breaches = 0
    for lowest in range(lowests):
        table = [[sm_share(a, m, lowest) for m in range(51)] for a in range(101)]
        for a, row in enumerate(table):
            for m, share in enumerate(row):
                good = type(share) is int and (share == 0 or lowest <= share <= 100 - a - m)
                good = good and (a == 0 or share <= table[a - 1][m])
                breaches += not (good and (m == 0 or share <= row[m - 1]))
    of = f"101 activities x 51 margins x {lowests} lowest shares: breaches of the rule"
    yield Line("9", of, "0", f"{breaches}", breaches == 0)


def planted(cell: Cell) -> Iterator[Cell]:
    """Yield two faults for a cell: another state that follows, and another rule of the level."""
    wrong: StateName = "unhealthy" if cell.to != "unhealthy" else "init"
    yield cell._replace(to=wrong)
    yield cell._replace(rises=not cell.rises)


def monitor_figure(times: MonitorTimes | None = None) -> Iterator[Line]:
    """Figure 10: the exhaustive search of a monitor, and faults planted in each cell."""
    shipped = monitor_preset("muxflow-assumed").seconds
    patience = times or shipped
    begun = time.process_time()
    states, slowest = require_monitor(patience)
    cpu = time.process_time() - begun
    wanted = f">= {_STATES:,}" if patience == shipped else "> 0"
    enough = states >= (_STATES if patience == shipped else 1)
    yield Line("10", "states and timers that keep every promise", wanted, f"{states:,}", enough)
    yield Line("10", "search of them, CPU", f"<= {_SECONDS} s", f"{cpu:.1f} s", cpu <= _SECONDS)
    said = f"{float(slowest):.5f}"
    yield Line("10", "slowest recovery / (dwell + cap + 1)", "<= 1", said, slowest <= 1)
    found = 0
    for key, right in TABLE.items():
        for cell in planted(right):
            try:
                require_monitor(patience, {**TABLE, key: cell})
            except Breach:
                found += 1
    all_of = 2 * len(TABLE)
    of = f"faults found of two planted in each of {len(TABLE)} cells"
    yield Line("10", of, f"{all_of}", f"{found}", found == all_of)
