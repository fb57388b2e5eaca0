"""First fit over mixes: jobs in random orders, machines cut at random, the best of many orders."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import TYPE_CHECKING

from cms.certificate.certificate import round_up
from cms.plugin.algorithm import Named, Support
from cms.time_sharing.problem import TimeSharedProblem
from cms.values.fields import CheckedFields
from cms.values.numbers import shown

from ..integer_problem import MOST_SHAPES, listed
from .hosting import Hosted, Hosting, Loaded, Machine, Saturated, schedule_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cms.plugin.algorithm import Budget, Claim
    from cms.plugin.guarantee import Guarantee

#: Blocks of a machine, which are looked at one by one.
_MOST_BLOCKS = 1_000
#: A job that fills at least two machines more than this has all but these filled at once.
_BY_DRAW = 4
#: No machine is drawn that gives a job less than this part, for its cost, of what the best does.
_LEAST_PART = Fraction(1, 8)
#: A block's whole time, in the units in which parts of it are counted.
_WHOLE = 1 << 40


@dataclass(frozen=True)
class MixFirstFitOptions(CheckedFields):
    """Options of :class:`MixFirstFit`.

    Parameters
    ----------
    orders : int, default 500
        In how many orders the jobs are tried.
    """

    orders: int = 500

    def __post_init__(self) -> None:
        self._whole("orders", least=1, most=10**9)


class MixFirstFit:
    """First fit for services that share blocks in time, in many random orders.

    The jobs come in a random order. Each goes to the first block that can take all of its rate
    beside the rates which that carries; else to the block that can take most of it, and so on with
    the rest; where no block can take anything, a machine is opened, cut in one of its ways at
    random. What a block can take is decided exactly. Each order that ends with a cheaper schedule
    is a claim; none follows one that costs no more than a bound by what jobs get alone. Of a job
    that would fill six machines or more by itself, all but the last four are filled at once, in the
    way that gives it most for their cost.

    Notes
    -----
    **Guarantee.** None is known. The best of several orders is never worse than the first.

    **Running time.** An order asks each open block, for each job, what it can take: O(n B) times 10
    to 60 microseconds. That is 1 ms an order for three jobs, 50 ms for 50 jobs on 12 GPUs.

    References
    ----------
    A method of this package. The problem: Choi, Lee, Kim, Park, Kwon, Huh: Serving Heterogeneous
    Machine Learning Models on Multi-GPU Servers with Spatio-Temporal Sharing, USENIX ATC '22
    (arXiv:2109.01611).

    Examples
    --------
    >>> from cms import solve
    >>> from instances.families.time_sharing import random_mix
    >>> solve(random_mix(3), method="mix_first_fit").machine_count
    2
    """

    name = "mix_first_fit"
    options_type = MixFirstFitOptions
    takes = (TimeSharedProblem,)

    def support(self, problem: TimeSharedProblem, options: MixFirstFitOptions) -> Support:
        """Refuse limits, and sets of configurations or machines too large to go through."""
        reason = refusal(problem)
        return Support(True) if reason is None else Support(False, f"{reason}; use auto")

    def guarantee(
        self, problem: TimeSharedProblem, options: MixFirstFitOptions
    ) -> Guarantee | None:
        """Return None: nothing is proved of it."""
        return None

    def run(
        self, problem: TimeSharedProblem, options: MixFirstFitOptions, budget: Budget
    ) -> Iterator[Claim]:
        """Yield a schedule for each order that saves something."""
        best = None if budget.best is None else budget.best.cost(problem)
        first_fit = FirstFit(Hosting(problem), Random(budget.seed), lambda: budget.stopped)
        for order in range(1, options.orders + 1):
            found = first_fit.order(best)
            if found is not None:
                best, machines = found
                yield Named(schedule_of(machines), f"order {order}")
            if budget.stopped or first_fit.least == best:
                return


def refusal(problem: TimeSharedProblem) -> str | None:
    """Say why first fit does not take a problem, if it does not."""
    for limit in problem.limits:
        most = f"{problem.limit_label(limit)} has a limit of {shown(limit.at_most)}"
        return f"{most}, and it does not count what is left"
    shapes, vast = listed(problem, MOST_SHAPES)
    if vast:
        return (
            f"machine type {min(vast)!r} can be cut in more than {MOST_SHAPES} ways, and one of "
            "them is drawn from a list"
        )
    blocks = max((sum(shape.blocks.values()) for shape in shapes), default=0)
    if blocks > _MOST_BLOCKS:
        return (
            f"a machine has {blocks} blocks, which are looked at one by one; at most "
            f"{_MOST_BLOCKS} are"
        )
    return None


class FirstFit:
    """First fit on one problem, order after order, until ``stopped``; all jobs can be served.

    No schedule costs less than ``least``.
    """

    def __init__(self, hosting: Hosting, random: Random, stopped: Callable[[], bool]) -> None:
        self._hosting, self._random, self._stopped = hosting, random, stopped
        self._shapes, _ = listed(hosting.problem, MOST_SHAPES)
        self._saturated = Saturated(hosting, self._shapes)
        self.least = round_up(self._saturated.least_cost(), hosting.problem.cost_step)

    def order(self, below: Fraction | None = None) -> tuple[Fraction, list[Machine]] | None:
        """Return the cost and machines of a new order; None if it saves nothing, or if stopped."""
        machines, spent = list[Machine](), Fraction(0)
        self._blocks, self._used = list[Loaded](), list[int]()
        for job in sorted(self._saturated.demands, key=lambda _: self._random.random()):
            rest = self._saturated.demands[job]
            while rest > 0:
                if self._stopped() or (below is not None and spent >= below):
                    return None
                taken = self._take(job, rest)
                rest -= taken
                if taken:
                    continue
                at, count = self._drawn(job, rest)
                spent += count * self._saturated.costs[at]
                machines.append(Machine(self._shapes[at], count))
                if count == 1:
                    self._blocks += machines[-1].blocks
                    self._used += [0] * len(machines[-1].blocks)
                    continue
                for loaded in machines[-1].blocks:
                    loaded.hosted = self._hosting.most(loaded.block, {}, job)
                rest -= count * self._saturated.gives[job][at]
        return (spent, machines) if below is None or spent < below else None

    def _drawn(self, job: str, rest: Fraction) -> tuple[int, int]:
        """Return a configuration that serves a job, and how many such machines to open."""
        gives, costs = self._saturated.gives[job], self._saturated.costs
        able = [at for at, give in enumerate(gives) if give]
        free = [at for at in able if not costs[at]]
        # What costs nothing is better than anything that does.
        worths = {at: gives[at] / (costs[at] or 1) for at in free or able}
        best = max(worths, key=worths.__getitem__)
        alone = rest // gives[best] - _BY_DRAW
        if alone > 1:
            return best, int(alone)
        good = [at for at, worth in worths.items() if worth >= worths[best] * _LEAST_PART]
        return good[int(self._random.random() * len(good))], 1

    def _take(self, job: str, rate: Fraction) -> Fraction:
        """Give one block as much of a rate as fits; return how much that is."""
        gives = self._hosting.saturated[job]
        rooms: list[tuple[Fraction, int]] = []
        for at, loaded in enumerate(self._blocks):
            most = gives.get(loaded.block)
            # A job with the rate q, alone at most f, takes q / f of the cycle at least.
            if most is None or self._used[at] >= _WHOLE:
                continue
            room = most * (_WHOLE - self._used[at]) / _WHOLE
            rooms.append((room, -at))
            if rate <= room:
                hosted = self._hosting.host(loaded.block, loaded.with_more(job, rate))
                if hosted is not None:
                    self._load(at, hosted)
                    return rate
        best, chosen = Fraction(0), None
        for room, place in sorted(rooms, reverse=True):
            if room <= best:
                break
            loaded = self._blocks[-place]
            hosted = self._hosting.most(loaded.block, loaded.rates, job)
            if hosted is not None and hosted.rates[job] - loaded.rates.get(job, 0) > best:
                best, chosen = hosted.rates[job] - loaded.rates.get(job, 0), (-place, hosted)
        if chosen is not None:
            self._load(*chosen)
        return best

    def _load(self, at: int, hosted: Hosted) -> None:
        """Have a block serve rates, which take a least share of its cycle, rounded down."""
        loaded, alone = self._blocks[at], self._hosting.saturated
        loaded.hosted = hosted
        parts = (_WHOLE * rate / alone[job][loaded.block] for job, rate in hosted.rates.items())
        self._used[at] = sum(map(int, parts))
