"""Rules that give one batch a fixed share of the latency limit, and promise nothing about load."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Annotated, Any, ClassVar, NamedTuple

from pydantic import Field

from ...errors import InvalidOption
from ...files import fields as f
from ...files import model as m
from ...values.numbers import Number, exact, format_exact, shown
from ...values.words import short
from .operating_point import OperatingPoint
from .service import Service


class Breakpoint(NamedTuple):
    """Where a looser latency limit makes a point count for more."""

    limit_ms: Fraction
    above: bool = False  #: whether the limit has to be above that; else that is enough


@dataclass(frozen=True, slots=True, init=False)
class LatencyRule:
    """A batch may take a fixed share of the limit; then the whole throughput counts.

    Examples
    --------
    >>> rule = LatencyRule("cautious", "0.4", strict=True)
    >>> service = Service("chat", "bert", rate_rps=100, latency_limit_ms=40)
    >>> rule.supply(service, OperatingPoint("bert", "a100-80gb", "1g.10gb", 1, 1, "74.408", 13))
    Fraction(9301, 125)
    """

    name: str  #: what plans and messages call it
    share: Fraction  #: of the limit, > 0 and <= 1
    strict: bool  #: whether a batch latency of exactly that share is refused
    source: str = field(compare=False)  #: where the rule is from
    latency_margin: Fraction  #: batches are taken to be slower than measured by this share
    #: Nothing: how long a request waits depends on the load, which the rule does not know.
    promise: ClassVar[None] = None

    def __init__(
        self,
        name: str,
        share: Number,
        *,
        strict: bool,
        source: str = "",
        latency_margin: Number = 0,
    ) -> None:
        put = object.__setattr__
        put(self, "name", name)
        put(self, "share", exact(share, f"the share of rule {name!r}", error=InvalidOption))
        if not 0 < self.share <= 1:
            raise InvalidOption(
                f"the share of rule {name!r} is {shown(self.share)}; expected a number > 0 "
                "and <= 1: the part of the latency limit that one batch may take"
            )
        put(self, "strict", bool(strict))
        put(self, "source", source)
        put(self, "latency_margin", require_margin(latency_margin))

    def admits(self, service: Service, point: OperatingPoint) -> bool:
        """Whether the point's batch latency leaves enough of the service's limit, if it has one."""
        if service.latency_limit_ms is None:
            return True
        allowed, latency = self.share * service.latency_limit_ms, self._latency_ms(point)
        return latency < allowed if self.strict else latency <= allowed

    def supply(self, service: Service, point: OperatingPoint) -> Fraction:
        """The point's throughput, less the margin, if it is admitted, else 0."""
        throughput = point.throughput_rps / (1 + self.latency_margin)
        return throughput if self.admits(service, point) else Fraction(0)

    def find_slowest(self, service: Service, point: OperatingPoint, rate_rps: Fraction) -> Fraction:
        """Return by which factor a batch may at most take longer; see :class:`CapacityRule`."""
        limit = service.latency_limit_ms
        enough = point.throughput_rps / rate_rps
        return enough if limit is None else min(self.share * limit / point.latency_ms, enough)

    def next_limit(self, service: Service, point: OperatingPoint) -> Breakpoint | None:
        """Return the next looser limit at which the point counts for more; None if none is."""
        if self.admits(service, point):
            return None
        return Breakpoint(self._latency_ms(point) / self.share, self.strict)

    def refusal(self, service: Service, point: OperatingPoint) -> str:
        """Compare the point's latency with what the limit allows, and name the limit it needs."""
        limit = service.latency_limit_ms
        if limit is None:
            return NO_LIMIT
        sign = "<" if self.strict else "<="
        allowed = self.share * limit
        product = "" if self.share == 1 else f"{shown(self.share)} x {short(limit)} ms = "
        needed = self._latency_ms(point) / self.share
        relaxed = Fraction(-(-needed * 100 // 1), 100)
        words = "a limit above" if self.strict and relaxed == needed else "a limit of"
        return (
            f"{short(point.latency_ms, math.ceil)} ms{margin_words(self.latency_margin)} is not "
            f"{sign} {product}{short(allowed, math.floor)} ms; {words} {shown(relaxed)} ms would do"
        )

    def to_json(self) -> dict[str, Any]:
        """The rule as a JSON object, with everything a simulator needs to apply it."""
        return LatencyRulePart.from_object(self).to_json()

    def __str__(self) -> str:
        sign = "<" if self.strict else "<="
        share = "" if self.share == 1 else f"{shown(self.share)} x "
        return f"batch latency{margin_words(self.latency_margin)} {sign} {share}the limit"

    def _latency_ms(self, point: OperatingPoint) -> Fraction:
        return point.latency_ms * (1 + self.latency_margin)


class LatencyRulePart(m.Part):
    """A latency rule in a document."""

    MAKES: ClassVar[Any] = LatencyRule
    name: f.Text
    share: Annotated[Fraction, f.Value(f.read_number, format_exact)] = Field(alias="latency_share")
    strict: f.Flag
    source: f.Text = ""
    latency_margin: f.Exact = f.omitted(Fraction(0))


def require_margin(margin: Number) -> Fraction:
    """Return a latency margin exactly; InvalidOption if it is no number >= 0."""
    return exact(margin, "the latency margin", error=InvalidOption)


def margin_words(margin: Fraction) -> str:
    """Say that latencies are taken to be higher than measured: `` + 5 %``; nothing without."""
    return f" + {shown(100 * margin)} %" if margin else ""


#: Of a point that a rule admits, since there is nothing that it could miss.
NO_LIMIT = "the service has no latency limit"


PARVAGPU = LatencyRule("parvagpu", Fraction(9, 20), strict=True, source="ParvaGPU, SC '24")
HALF = LatencyRule("half", Fraction(1, 2), strict=False, source="gpulet, USENIX ATC '22")
PLAIN = LatencyRule("plain", 1, strict=False, source="no allowance for queueing")
