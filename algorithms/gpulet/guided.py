"""Guided self-tuning: every job gets shares of its own, none is shared in time."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from .elastic import MOST_REQUESTS, Request, too_many_shares
from .gpus import Gpus, Shares

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..mixes.hosting import Hosting
    from ..mixes.machines import Machine


def guided_requests(hosting: Hosting, shares: Shares) -> list[Request]:
    """List what the jobs ask for: the largest rate again and again, then what is large enough."""
    requests: list[Request] = []
    for job in hosting.problem.jobs:
        if not job.demand:
            continue
        rates = {
            share: hosting.saturated[job.name][block]
            for share, block in shares.blocks.items()
            if block in hosting.saturated[job.name]
        }
        fastest = max(rates, key=rates.__getitem__)
        full = ceil(job.demand / rates[fastest]) - 1
        if len(requests) + full >= MOST_REQUESTS:
            raise too_many_shares(len(requests) + full)
        requests += [Request(job.name, fastest, rates[fastest])] * full
        rest = job.demand - full * rates[fastest]
        least = next(share for share, rate in rates.items() if rate >= rest)
        requests.append(Request(job.name, least, rest))
    return requests


def guided(
    hosting: Hosting, shares: Shares, stopped: Callable[[], bool]
) -> Sequence[Machine] | None:
    """Place each request where it leaves least, the largest first; None if stopped."""
    gpus = Gpus(hosting, shares)
    for request in sorted(guided_requests(hosting, shares), key=lambda one: -one.share):
        if stopped():
            return None
        gpus.best_fit(request.share, {request.job: request.rate})
    return gpus.machines
