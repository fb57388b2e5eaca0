"""What is wrong with a schedule if every batch is as slow as what is beside it makes it: exactly.

It knows the pairs and the points, and nothing of classes or of what was allowed for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

from ...errors import InvalidSchedule
from ...problem.parts import Block, Configuration
from ...schedule.contents import Mix, shown_content
from ...schedule.faults import Violation
from ...schedule.schedule import MachineGroup, Schedule
from ...time_sharing.duty_cycle import DutyCycle, duty_cycle_of
from ...time_sharing.model import BatchPoint
from ...values.numbers import shown
from .interference import Slowdowns
from .neighbours import Kind, NeighbourServing, find_pair, kind_of, plain_block
from .time_sharing import SharedServing


class Held(NamedTuple):
    """A share of a GPU, a block of the problem without interference, and the mix it serves."""

    block: Block
    mix: Mix

    def __str__(self) -> str:
        return f"{shown_content(self.mix)} on {self.block}"


def neighbour_faults(serving: NeighbourServing, schedule: Schedule) -> tuple[Violation, ...]:
    """Say where a schedule violates a limit or a demand beside its neighbours.

    A slot takes its length without interference times the largest factor that a batch of the mix on
    the other share causes, or 1 if that share idles. What blocks say of classes is left aside.
    InvalidSchedule or InvalidProblem if a block holds no mix, or a point or pair was not measured.

    Examples
    --------
    >>> from cms.fleet.serving import Interference, OperatingPoint, Pair, Service, build_problem
    >>> points = [OperatingPoint("m", "a100-80gb", "mps:50", 1, 8, 800, 10)]
    >>> table = Interference({Pair("m", "a100-80gb", "mps:50", 8, "m", 8): "1.5"})
    >>> terms = {"sharing": "time", "interference": table}
    >>> serving = build_problem([Service("a", "m", 1200, 60)], points, **terms)
    >>> both = {("mps:50", Mix({"a": 8})): 2}
    >>> schedule = Schedule([MachineGroup(Configuration({"mps:50": 2}, "a100-80gb"), both, 1)])
    >>> print(*neighbour_faults(serving, schedule))
    job 'a' has 3200/3 of its demand served, needs 1200
    """
    problem = serving.solo.problem
    served = dict.fromkeys(problem.job_names, Fraction(0))
    slowdowns = {one.key: serving.interference.on(one) for one in serving.gpus}
    found = []
    for g, group in enumerate(schedule.groups):
        machine = slowdowns[serving.gpu_of(group.configuration.machine).key]
        for held, other in _held(group):
            cycle = duty_cycle_beside(serving, machine, held, other)
            near = "nothing" if other is None else str(other)
            has = f"{held} beside {near}, in a duty cycle of {shown(cycle.length)}"
            for name, slack in cycle.slack.items():
                if slack < 0:
                    needs = f"{shown(-slack)} less for the limit of {name!r}"
                    found.append(Violation("cycle", f"group {g}", has, needs))
            for name, rate in cycle.rates.items():
                served[name] += rate * group.count
    for job in problem.jobs:
        if served[job.name] < job.demand:
            has = f"{shown(served[job.name])} of its demand served"
            found.append(Violation("demand", f"job {job.name!r}", has, shown(job.demand)))
    return tuple(found)


def duty_cycle_beside(
    serving: NeighbourServing, slowdowns: Slowdowns, held: Held, other: Held | None
) -> DutyCycle:
    """Return the cycle of a mix on a share, beside another mix on the rest of its GPU, or nothing.

    InvalidSchedule if a point was not measured, InvalidProblem if a pair was not.
    """
    solo, profile = serving.solo, serving.solo.profile_of(held.block)
    kinds = [] if other is None else [_kind(solo, other, name) for name in other.mix]
    points = {}
    for name, amount in held.mix.items():
        model, batch = _kind(solo, held, name)
        factors = [slowdowns.factor(model, profile, batch, *kind) for kind in kinds]
        alone = solo.problem.job(name).point(held.block, amount)
        assert alone is not None  # it has a kind
        points[name] = BatchPoint(amount, alone.length * max(factors, default=Fraction(1)))
    limits = {name: solo.problem.job(name).limit for name in points}
    return duty_cycle_of(solo.problem.rule, points, limits)


def _kind(solo: SharedServing, held: Held, name: str) -> Kind:
    if name not in solo.problem.job_names:
        raise InvalidSchedule(f"{held} has the service {name!r}, which the plan does not have")
    try:
        return kind_of(solo, name, held.block, held.mix[name])
    except KeyError:
        raise InvalidSchedule(
            f"{held} takes {shown(held.mix[name])} of {name!r} at a time, which was not measured "
            "there"
        ) from None


def _held(group: MachineGroup) -> Iterator[tuple[Held, Held | None]]:
    """Iterate over what the shares of one machine hold, and what is beside each."""
    held = []
    for (block, content), count in group.assignment.items():
        if not isinstance(content, Mix):
            raise InvalidSchedule(f"block {block!r} is given to {content!r}; expected a Mix")
        held += [Held(plain_block(block), content)] * count
    plain = Counter[Block]()
    for block, count in group.configuration.blocks.items():
        plain[plain_block(block)] += count
    if find_pair(Configuration(plain)) is None:
        yield from ((one, None) for one in held)
    elif len(held) <= 2:
        yield from zip(held, reversed(held) if len(held) == 2 else [None], strict=True)
    else:
        raise InvalidSchedule(f"a GPU in two has {len(held)} shares: {', '.join(map(str, held))}")
