"""The cycle in which a block serves a mix: one slot for each of its jobs, over and over.

A longer cycle than the sum of the slots gives every job less and is admitted no sooner.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from fractions import Fraction
from typing import NamedTuple, TypeVar

from ..values.frozen import FrozenMap
from .model import BatchPoint

# Lengths of time: in the problem's unit, or as whole multiples of a smaller one.
Time = TypeVar("Time", int, Fraction)


class DutyCycleRule(StrEnum):
    """When a mix meets every latency limit: a closed list, which both checkers know by name.

    A job alone needs twice its length under either rule.

    Attributes
    ----------
    ROUND_ROBIN
        DutyCycle + own length <= limit: a request waits at most one cycle for its slot, then runs
        (Nexus: Shen et al., SOSP 2019, doi:10.1145/3341301.3359658).
    COLLECT_THEN_RUN
        2 cycles <= limit: batches are gathered for one cycle, then run in any order (gpulet: Choi
        et al., USENIX ATC 2022).

    Notes
    -----
    For arrivals of which any window of one cycle has at most the mix's amounts.

    Examples
    --------
    >>> DutyCycleRule("round_robin").admits(Fraction(10), Fraction(4), limit=Fraction(14))
    True
    >>> DutyCycleRule("collect_then_run").admits(Fraction(10), Fraction(4), limit=Fraction(14))
    False
    """

    ROUND_ROBIN = "round_robin"
    COLLECT_THEN_RUN = "collect_then_run"

    def needed(self, cycle: Time, length: Time) -> Time:
        """Compute the least latency limit that a slot of this length keeps in such a cycle."""
        return cycle + length if self is DutyCycleRule.ROUND_ROBIN else 2 * cycle

    def admits(self, cycle: Time, length: Time, limit: Time) -> bool:
        """Whether a job with this limit may have a slot of this length in such a cycle."""
        return self.needed(cycle, length) <= limit

    def longest(self, length: Fraction, limit: Fraction) -> Fraction:
        """Compute the longest cycle in which a slot of this length meets a limit; it may be < 0."""
        return limit - length if self is DutyCycleRule.ROUND_ROBIN else limit / 2


class DutyCycle(NamedTuple):
    """What one block does in turn, over and over.

    Attributes
    ----------
    length : Fraction
        The sum of the mix's lengths.
    rates : FrozenMap of Fraction
        Of each job, amount / cycle: what the block gives of its demand.
    slack : FrozenMap of Fraction
        Of each job, its limit less what the rule needs; below 0 the mix is not admitted.
    """

    length: Fraction
    rates: FrozenMap[str, Fraction]
    slack: FrozenMap[str, Fraction]

    @property
    def admitted(self) -> bool:
        """Whether every job's limit is met."""
        return all(slack >= 0 for slack in self.slack.values())


def duty_cycle_of(
    rule: DutyCycleRule, points: Mapping[str, BatchPoint], limits: Mapping[str, Fraction]
) -> DutyCycle:
    """Build the cycle of a non-empty mix from the points of its jobs, admitted or not."""
    length = sum((point.length for point in points.values()), Fraction(0))
    rates = {job: point.amount / length for job, point in points.items()}
    slack = {job: limits[job] - rule.needed(length, point.length) for job, point in points.items()}
    return DutyCycle(length, FrozenMap(rates), FrozenMap(slack))
