"""What a replay says of a service: the counts as a record, why a limit broke, when it was back."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from ...values.numbers import shown
from .events import Script
from .model import SECOND, ModelledService
from .replay import Outcome
from .result import Recovery, ServiceResult, Timeline
from .routing import Routing
from .statistics import NEVER_ENOUGH, Tally, Verdict

if TYPE_CHECKING:
    from numpy.typing import NDArray

# The late share is back when so many spans of time in a row are fine, each of at least so many
# requests on average.
_GOOD_CELLS, _JUDGED_REQUESTS = 3, 20


def result_of(
    service: ModelledService, script: Script, routing: Routing, found: Outcome
) -> ServiceResult:
    """Say what became of a service's requests."""
    tally, state = found.tally, found.state
    verdict = tally.verdict(service.late_share)
    open_ended = verdict in (Verdict.BROKEN, Verdict.NO_LIMIT)
    processes = sum(station.processes for station in script.stations)
    return ServiceResult(
        **_asked(service), **counted(tally, found.lasted_ns), retried=found.retried,
        interval=tally.interval(),
        load=None if service.load is None else short(*service.load.as_integer_ratio()),
        utilisation=short(int(state.busy.sum()), processes * found.lasted_ns),
        mean_fill=short(int(state.taken.sum()), int(state.batches.sum())),
        deepest_queue=int(state.deepest.max(initial=0)), verdict=verdict,
        overloaded=open_ended and tally.overloaded(service.late_share),
        cause=_CAUSES[verdict](service, script, routing, found) if verdict in _CAUSES else "",
        recoveries=tuple(_recoveries(service, script, found)),
        timeline=_timeline(tally.cells, tally.cell_ns) if script.marks else None,
    )  # fmt: skip


def left_out(service: ModelledService) -> ServiceResult:
    """Say of a service that it was not replayed, and why."""
    return ServiceResult(
        **_asked(service), verdict=Verdict.NOT_REPLAYED, cause=service.not_replayed
    )


def _asked(service: ModelledService) -> dict[str, Any]:
    return {
        "name": service.name, "rate_rps": service.rate, "limit_ns": service.limit_ns,
        "tolerated": service.late_share, "instances": len(service.instances),
    }  # fmt: skip


def counted(tally: Tally, lasted_ns: int) -> dict[str, Any]:
    """Return the counts and latencies of a tally as a service's record has them."""
    quantiles = {f"p{n}_ns": tally.quantile(Fraction(n, 100)) for n in (50, 90, 99)}
    return {
        "seconds": Fraction(lasted_ns, SECOND), "requests": tally.requests, "late": tally.late,
        "lost": tally.lost, "mean_ns": tally.total_ns // (tally.requests - tally.lost or 1),
        **quantiles, "max_ns": tally.largest,
    }  # fmt: skip


def short(part: int, whole: int) -> Fraction:
    """Return a ratio to six places: what is measured has no more."""
    return Fraction(round(Fraction(part, whole or 1) * 10**6), 10**6)


def _cause(service: ModelledService, script: Script, routing: Routing, found: Outcome) -> str:
    """Say why a limit was broken, where the loads tell."""
    if not service.instances:
        return "no instance serves it"
    if found.tally.lost:
        return f"{found.tally.lost:,} requests were lost"
    load = service.load
    if load is not None and load >= 1:
        return works_off(service.rate / load)
    if routing.equal and len({each.weight for each in service.instances}) > 1:
        work = found.state.busy / [one.processes for one in script.stations]
        worst = int(np.argmax(work))
        given = Fraction(int(found.state.taken[worst]), int(found.state.taken.sum()) or 1)
        supply = script.stations[worst].weight / sum(one.weight for one in script.stations)
        at = script.stations[worst].instance
        return (
            f"equal weights for unlike instances: instance {at} got {_percent(given)} of the "
            f"requests and has {_percent(supply)} of the supply"
        )
    return ""


def _too_few(service: ModelledService, script: Script, routing: Routing, found: Outcome) -> str:
    """Say how many requests would tell, if these are too few for the load."""
    tally, load = found.tally, service.load
    if load is not None and tally.needed == NEVER_ENOUGH > tally.requests:
        return _cause(service, script, routing, found)
    return tells_too_little(tally, load)


def works_off(most: Fraction) -> str:
    """Say how many requests a second a service's instances work off."""
    return f"its instances work off {shown(round(most, 1))} requests/s at most"


def tells_too_little(tally: Tally, load: Fraction | None) -> str:
    """Say how many requests would tell; empty where there were as many."""
    if load is None or tally.requests >= tally.needed:
        return ""
    if tally.needed == NEVER_ENOUGH:
        return "at full load no number of requests tells"
    step = 10 ** (len(str(tally.needed)) - 2)
    wanted = -(-tally.needed // step) * step
    return (
        f"{tally.requests:,} requests tell too little at {float(100 * load):.1f} % load; "
        f"--requests {wanted} would do"
    )


def _not_served(service: ModelledService, script: Script, routing: Routing, found: Outcome) -> str:
    """Say what keeps a service without a limit from being served at its rate."""
    lost = found.tally.lost or (service.rate and not service.instances)
    too_much = service.load is not None and service.load >= 1
    return _cause(service, script, routing, found) if lost or too_much else ""


_CAUSES = {
    Verdict.BROKEN: _cause, Verdict.UNDECIDED: _too_few, Verdict.NO_LIMIT: _not_served,
}  # fmt: skip


def _percent(share: Fraction) -> str:
    return f"{float(share):.0%}".replace("%", " %")


def _recoveries(service: ModelledService, script: Script, found: Outcome) -> list[Recovery]:
    """When each event's effect on the late share was over."""
    cells, cell_ns = _spans(found.tally.cells, found.tally.cell_ns)
    allowed = float(service.late_share) * cells[0]
    bad = cells[1] > allowed + 3 * np.sqrt(allowed)
    found_back = []
    ends = [at for at, _ in script.marks[1:]] + [cell_ns * len(bad)]
    for (at, number), end in zip(script.marks, ends, strict=False):
        first, last = at // cell_ns, min(-(-end // cell_ns), len(bad))
        after = _back(bad[first:last])
        passed = (first + after) * cell_ns - at if after else 0
        back = None if after is None else Fraction(passed, SECOND)
        found_back.append(Recovery(number, Fraction(at, SECOND), back))
    return found_back


def _spans(cells: NDArray[np.int64], cell_ns: int) -> tuple[NDArray[np.int64], int]:
    """Put cells together until a share of their requests says something."""
    requests, number = int(cells[0].sum()), cells.shape[1]
    together = max(-(-_JUDGED_REQUESTS * number // max(requests, 1)), 1)
    edges = np.arange(0, number, together)
    return (np.add.reduceat(cells, edges, axis=1) if number else cells), cell_ns * together


def _back(bad: NDArray[np.bool_]) -> int | None:
    """After how many cells the first three good ones in a row begin, once one was bad."""
    if not bad.any():
        return 0
    for at in range(int(np.argmax(bad)) + 1, len(bad) - _GOOD_CELLS + 1):
        if not bad[at : at + _GOOD_CELLS].any():
            return at
    return None


def _timeline(cells: NDArray[np.int64], cell_ns: int) -> Timeline:
    requests, late, seconds, rests = (row.tolist() for row in cells)
    means = [
        (whole * SECOND + rest) // (number or 1)
        for whole, rest, number in zip(seconds, rests, requests, strict=True)
    ]
    return Timeline(cell_ns, tuple(requests), tuple(late), tuple(means))
