"""What a plan may say of latencies, and under which conditions it says so."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ...values.numbers import shown

#: Where requests wait: in one queue of the instance, or in one of each of its processes.
QUEUES = ("instance", "process")
_WAIT = {"instance": "each", "process": "a process"}


@dataclass(frozen=True, slots=True)
class Promise:
    """What a plan promises of every service.

    Examples
    --------
    >>> print(Promise(Fraction(1, 100), "instance", Fraction(1, 10)))
    99 % of the requests within their limit, at up to 10 % more than the rates given, if they \
    arrive as a Poisson stream and instances get shares like their supplies and have one queue each
    """

    late_share: Fraction  #: of the requests that may miss the limit; a service's own goes before it
    queue: str  #: where requests wait, of :data:`QUEUES`; a service's own word goes before it
    rate_margin: Fraction = Fraction(0)  #: rates may be higher than the services' by this share
    arrivals: str = "poisson"  #: how requests arrive
    #: How they are spread over a service's instances: by the weights in the plan, their supplies.
    routing: str = "weighted"

    def __str__(self) -> str:
        most = f"{shown(100 * self.rate_margin)} % more than " if self.rate_margin else ""
        return (
            f"{shown(100 * (1 - self.late_share))} % of the requests within their limit, at up to "
            f"{most}the rates given, if they arrive as a Poisson stream and instances get shares "
            f"like their supplies and have one queue {_WAIT[self.queue]}"
        )
