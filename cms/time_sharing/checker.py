"""The checker of problems whose blocks are shared in time, in exact arithmetic."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from ..certificate.certificate import BlockPrices, Branch, first_certificate, round_up
from ..checker.kinds import InitialBounds, JobChecker, MachineChecker
from ..errors import InvalidSchedule
from ..problem.parts import Block
from ..schedule.contents import Mix, shown_content
from ..schedule.faults import Violation
from ..values.frozen import FrozenMap
from ..values.names import nearest
from ..values.numbers import shown
from .functions import PriceFunction
from .prices import MixPrices
from .problem import TimeSharedProblem, measured

if TYPE_CHECKING:
    from ..schedule.columns import Columns

#: A violation that does not say yet where it is: its kind, what it has, what it needs.
_Fault = tuple[str, str, str]


class _Judged(NamedTuple):
    """What is wrong with a content of a block, and what the block gives each job even so.

    A mix that violates a limit or the cap still has a cycle; one of an unknown job, or of an amount
    that was not measured, has none and serves no job.
    """

    faults: tuple[_Fault, ...]
    rates: FrozenMap[str, Fraction]


def _judge(problem: TimeSharedProblem, block: Block, content: Any) -> _Judged:
    """Judge one content of a block that the problem has."""
    if type(content) is not Mix:
        has = f"the job {content!r} on block {block!r}"
        needs = f"a mix: Mix({{{content!r}: amount}}) for a job alone"
        return _Judged((("content", has, needs),), FrozenMap())
    faults = [*_faults(problem, block, content)]
    try:
        cycle = problem.duty_cycle(block, content)
    except InvalidSchedule:  # it has no cycle, for a reason that is among the faults
        return _Judged(tuple(faults), FrozenMap())
    mix = shown_content(content)
    in_cycle = f"{mix} on block {block!r} in a duty cycle of {shown(cycle.length)}"
    for name, slack in cycle.slack.items():
        if slack < 0:
            limit = problem.job(name).limit
            has = f"{in_cycle}, in which job {name!r} takes {shown(limit - slack)}"
            needs = f"at most its limit {shown(limit)}, which is {shown(-slack)} less"
            faults.append(("cycle", has, needs))
    return _Judged(tuple(faults), cycle.rates)


def _faults(problem: TimeSharedProblem, block: Block, mix: Mix) -> Iterator[_Fault]:
    """Iterate over what is wrong with a mix but for latency limits."""
    most, known, said = problem.max_jobs, problem.job_names, shown_content(mix)
    if most is not None and len(mix) > most:
        yield "content", f"{said} of {len(mix)} jobs", f"at most {shown(most)} jobs in a mix"
    for name in mix:
        if name not in known:
            needs = f"jobs of the problem{nearest(name, known)}"
            yield "content", f"{said} with the unknown job {name!r}", needs
    for name, amount in mix.items():
        if name in known and not problem.job(name).point(block, amount):
            has = f"{shown(amount)} of job {name!r} in {said} on block {block!r}"
            yield "point", has, f"an amount that was {measured(problem.job(name), block)}"


class MixChecker(MachineChecker[TimeSharedProblem]):
    """Judges what is claimed about a :class:`cms.TimeSharedProblem`: every block serves a mix."""

    certificates: tuple[type, ...] = (MixPrices, Branch)

    def __init__(self, problem: TimeSharedProblem) -> None:
        super().__init__(problem)
        if problem.max_jobs == 1:  # then prices of blocks alone prove bounds as well
            self.certificates = (MixPrices, BlockPrices, Branch)

    def content_faults(self, columns: Columns) -> Iterator[Violation]:
        """Iterate over mixes that break a rule, and over jobs whose demand is not met."""
        problem = self.problem
        judged: dict[tuple[int, int], _Judged] = {}
        served = dict.fromkeys(problem.job_names, Fraction(0))
        starts = columns.entry_start.tolist()
        for g, machines in enumerate(columns.group_count.tolist()):
            for e in range(starts[g], starts[g + 1]):
                i, j = int(columns.entry_block[e]), int(columns.entry_content[e])
                block = columns.blocks[i]
                if block not in problem.block_index:
                    continue  # a fault of its own
                if (i, j) not in judged:
                    judged[i, j] = _judge(problem, block, columns.contents[j])
                found = judged[i, j]
                for kind, has, needs in found.faults:
                    yield Violation(kind, f"group {g}", has, needs)
                # A group or entry with a count below 1 is a fault of its own and serves no job.
                blocks = max(int(columns.entry_count[e]), 0) * max(machines, 0)
                for name, rate in found.rates.items():
                    served[name] += rate * blocks
        for job in problem.jobs:
            if served[job.name] < job.demand:
                yield Violation(
                    "demand",
                    f"job {job.name!r}",
                    f"{shown(served[job.name])} of its demand served",
                    shown(job.demand),
                )

    def first(self) -> InitialBounds:
        """Return prices of 0, or what shows that a job is lost: no machine has a block for it.

        Then its demand is worth 1, as those blocks are. What is admitted in some mix is alone.
        """
        first = JobChecker(self.problem.unshared()).first()
        if not first.infeasible:
            return InitialBounds(MixPrices(), Fraction(0), schedule=first.schedule)
        unheld = first_certificate(self.problem).prices
        served = {
            job
            for block in self.problem.blocks
            if block not in unheld
            for job in self.problem.usable_points(block)
        }
        lost = next(j.name for j in self.problem.jobs if j.demand and j.name not in served)
        proof = MixPrices(unheld, functions={lost: PriceFunction(1)})
        bound = round_up(proof.bound(self.problem), self.step)
        return InitialBounds(proof, bound, infeasible=proof.proves_infeasible(self.problem))
