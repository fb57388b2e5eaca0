"""Blocks that several jobs share in time: measured points, cycles, and the rules about limits.

A block that serves a *mix* runs a batch of each of its jobs in turn, over and over. A batch is a
point that was measured on this type of block: up to ``amount`` items together take ``length``. So
one round, the cycle, takes the sum D of the lengths, and a job with the amount a gets a / D items
per unit of time. Whether an item is done within its job's latency limit T depends on the cycle:

- ``round_robin``: it waits at most one cycle for its slot, then runs for its own length L: D + L;
- ``collect_then_run``: it is collected for one cycle, and done within the next: 2 D.

The mix is admitted if this is at most T for each of its jobs. A cycle longer than D would give
every job less and take every item longer, so that none is worth considering.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from .reading import ZERO, Fault, as_a, integer, new_name, number, record, show, table_over

_RULES = ("round_robin", "collect_then_run")

#: The amounts of a mix, by the names of its jobs.
Mix = Mapping[str, Fraction]


@dataclass(frozen=True)
class SharedJob:
    """The latency limit of a job, and the length of each amount measured on each block."""

    limit: Fraction
    lengths: dict[str, dict[Fraction, Fraction]]

    def alone(self, block: str) -> Fraction:
        """The most that a block gives the job which it serves alone: D = L, so 2 L <= T."""
        points = self.lengths.get(block, {}).items()
        return max((a / length for a, length in points if 2 * length <= self.limit), default=ZERO)


@dataclass(frozen=True)
class Sharing:
    """The rule, how many jobs a mix may have (None: any number), and the jobs."""

    rule: str
    max_jobs: int | None
    jobs: dict[str, SharedJob]

    def takes(self, cycle: Fraction, length: Fraction) -> Fraction:
        """How long an item may take whose slot of this length is in such a cycle."""
        return cycle + length if self.rule == "round_robin" else 2 * cycle

    def longest(self, length: Fraction, limit: Fraction) -> Fraction:
        """The longest cycle in which an item whose slot has this length meets a limit."""
        return limit - length if self.rule == "round_robin" else limit / 2

    def cycle(self, block: str, mix: Mix) -> Fraction:
        """The length of a mix's cycle; a Fault if a part of it was not measured on the block."""
        return sum((self.length(block, name, amount) for name, amount in mix.items()), ZERO)

    def length(self, block: str, name: str, amount: Fraction) -> Fraction:
        """How long so many items of a job occupy a block."""
        if name not in self.jobs:
            raise Fault(f"there is no job {show(name)} in the problem")
        measured = self.jobs[name].lengths.get(block, {})
        if amount not in measured:
            raise Fault(f"{show(amount)} of job {show(name)} were not measured on {show(block)}")
        return measured[amount]

    def faults(self, block: str, mix: Mix) -> Iterator[str]:
        """What forbids a mix on a block, in words that follow its name."""
        if self.max_jobs is not None and len(mix) > self.max_jobs:
            yield f"has {len(mix)} jobs, more than {self.max_jobs}"
        cycle = self.cycle(block, mix)
        for name, amount in mix.items():
            takes = self.takes(cycle, self.length(block, name, amount))
            if takes > self.jobs[name].limit:
                yield (
                    f"has a duty cycle of {show(cycle)} on {show(block)}, and {show(name)} takes "
                    f"{show(takes)}, {show(takes - self.jobs[name].limit)} more than its limit"
                )

    def rates(self, block: str, mix: Mix) -> dict[str, Fraction]:
        """What a block with this mix gives each job."""
        cycle = self.cycle(block, mix)
        return {name: amount / cycle for name, amount in mix.items()}


def _positive(value: object, *what: object) -> Fraction:
    result = number(value, *what)
    if result == 0:
        raise Fault(f"the number that should be > 0 is 0: {' '.join(map(str, what))}")
    return result


def read_time_sharing(value: object, jobs: dict[str, SharedJob]) -> Sharing:
    """Read ``time_sharing`` of a problem document."""
    fields = record(value, "time_sharing", "rule", "max_jobs")
    if fields["rule"] not in _RULES:
        raise Fault(f"the rule of time_sharing is {show(fields['rule'])}, not one of {_RULES}")
    most = fields.get("max_jobs")
    cap = None if most is None else integer(most, "max_jobs of time_sharing", least=1)
    return Sharing(fields["rule"], cap, jobs)


def read_shared_job(fields: Mapping[str, Any], blocks: Collection[str]) -> SharedJob:
    """Read the limit and the points of a job."""
    name = fields["name"]
    lengths: dict[str, dict[Fraction, Fraction]] = {}
    for block, points in table_over(blocks, fields["points"], "the points of job", name).items():
        found: dict[Fraction, Fraction] = {}
        for point in as_a(list, points, "the points of job", name, "on", block):
            if not isinstance(point, list) or len(point) != 2:
                raise Fault(f"job {show(name)} has the point {show(point)}, not [amount, length]")
            amount = _positive(point[0], "an amount of job", name, "on", block)
            if amount in found:
                raise Fault(
                    f"job {show(name)} has two points of the amount {show(amount)} on {show(block)}"
                )
            found[amount] = _positive(point[1], "a length of job", name, "on", block)
        if found:
            lengths[block] = found
    return SharedJob(_positive(fields["limit"], "the limit of job", name), lengths)


def read_content(value: object, what: str) -> str | tuple[tuple[str, Fraction], ...]:
    """Read what a block serves: a job, or the amounts of a mix, sorted by name."""
    if not isinstance(value, dict):
        return as_a(str, value, f"what a block serves in {what}")
    if not value:
        raise Fault(f"{what} has a mix of no jobs")
    return tuple(
        sorted(
            (new_name(name, f"a job in {what}"), _positive(amount, "the amount of", name))
            for name, amount in value.items()
        )
    )
