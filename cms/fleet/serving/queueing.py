"""The queueing rule: what one instance may be counted for, so that requests are in time.

It decides the number of GPUs, so it has a name that every plan says; a user may bring another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

from ...errors import InvalidOption
from ...values.names import nearest
from ...values.numbers import Number, shown
from .capacity import CAPACITY, CERTIFIED, CapacityRule, Evidence
from .latency_rule import HALF, PARVAGPU, PLAIN, LatencyRule, require_margin
from .load_curve import LoadCurve, PointKey
from .operating_point import OperatingPoint
from .service import Promise, Service

DEFAULT_RULE = "capacity"


@runtime_checkable
class QueueingRule(Protocol):
    """What turns an operating point into supply.

    Implement it to bring another one.

    Examples
    --------
    >>> isinstance(RULES["half"], QueueingRule)
    True
    """

    @property
    def name(self) -> str:
        """What plans and messages call it."""
        ...

    @property
    def promise(self) -> Promise | None:
        """What a plan by this rule may say of latencies; None if that is nothing."""
        ...

    def supply(self, service: Service, point: OperatingPoint) -> Fraction:
        """Items per second of the service that one instance at this point counts for.

        0 if the point does not meet the service's limit. Without a limit (None), what the
        instance works off.
        """
        ...

    def refusal(self, service: Service, point: OperatingPoint) -> str:
        """Why a point is refused and which limit would admit it: ``18 ms ...; a limit of ...``."""
        ...

    def to_json(self) -> dict[str, Any]:
        """The rule as a JSON object with at least its ``name``."""
        ...


#: The known rules, by name.
#:
#: ``capacity`` (the default): the largest rate that one instance sustains within the limit, by the
#: point's load curve if there is one, else by a table. ``capacity_certified``: the same, by the
#: table whose entries are proved.
#:
#: ``parvagpu``: latency < 0.45 x limit. Half the limit is for queueing, the other half keeps a
#: margin of 10 %: M. Lee et al., ParvaGPU, SC '24, as its scheduler computes it. ``half``: latency
#: <= limit / 2. A request that just missed a batch is served in the next, two batch times in all:
#: gpulet (S. Choi et al., USENIX ATC '22). ``plain``: latency <= limit, for measurements that
#: already include the waiting, and for comparison.
RULES: Mapping[str, QueueingRule] = MappingProxyType(
    {rule.name: rule for rule in (CAPACITY, CERTIFIED, PARVAGPU, HALF, PLAIN)}
)


def queueing_rule(rule: str | QueueingRule) -> QueueingRule:
    """Find a rule by its name, or return an object that is a rule; refuse any other."""
    if isinstance(rule, str):
        if rule in RULES:
            return RULES[rule]
        known = "; ".join(f"{name} ({found})" for name, found in RULES.items())
        raise InvalidOption(
            f"there is no queueing rule {rule!r}; expected one of: {known}{nearest(rule, RULES)}"
        )
    if isinstance(rule, QueueingRule):
        return rule
    raise InvalidOption(
        f"the queueing rule is {rule!r}; expected a name ({', '.join(RULES)}) or an object with "
        "name, promise, supply, refusal and to_json"
    )


def evidence_of(rule: QueueingRule, service: Service, point: OperatingPoint) -> Evidence | None:
    """Return what a supply rests on: None if the rule knows nothing of load, or without a limit."""
    if not isinstance(rule, CapacityRule) or service.latency_limit_ms is None:
        return None
    return rule.evidence(service, point)


def with_latency_margin(rule: QueueingRule, margin: Number) -> QueueingRule:
    """Return a rule that takes batches to be slower than measured by a share; 0 changes nothing."""
    if not (share := require_margin(margin)):
        return rule
    if not isinstance(rule, CapacityRule | LatencyRule):
        raise InvalidOption(
            f"the latency margin is {shown(share)}, which the rule {rule.name!r} does not know; "
            "leave it out, or let the rule count with slower batches itself"
        )
    return replace(rule, latency_margin=share)


def with_curves(rule: QueueingRule, curves: Mapping[PointKey, LoadCurve] | None) -> QueueingRule:
    """Return a rule with load curves, if there are any; refuse them if it does not ask for them."""
    if curves is None:
        return rule
    if not isinstance(rule, CapacityRule):
        raise InvalidOption(
            f"load curves are given, which the rule {rule.name!r} does not ask for; leave them "
            "out, or take the rule 'capacity'"
        )
    return rule.with_curves(curves)
