"""gpulet's scheduler and the two it is compared with: space and time, time alone, space alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import ceil
from typing import TYPE_CHECKING, Any

from cms.errors import UnsupportedProblem
from cms.plugin.algorithm import Named, Support
from cms.time_sharing.problem import TimeSharedProblem

from ..time_sharing.hosting import Hosting, Saturated, schedule_of
from .elastic import (
    WHOLE,
    Elastic,
    GpuletOptions,
    Gpus,
    PublishedOptions,
    Shares,
    guided_requests,
    refuse_other_cuts,
)
from .sbp import SquishyBinPacking

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cms.plugin.algorithm import Budget, Claim
    from cms.plugin.guarantee import Guarantee

    from ..time_sharing.hosting import Machine

__all__ = ["Gpulet", "GpuletGuided", "GpuletOptions", "GpuletSbp", "PublishedOptions"]


class _OnShares(ABC):
    """What all three take, and that nothing is proved of them."""

    takes = (TimeSharedProblem,)

    def support(self, problem: TimeSharedProblem, options: PublishedOptions) -> Support:
        """Refuse limits, other cuts than in two, and more shares than are placed one by one."""
        try:
            refuse_other_cuts(problem)
            seen = _Seen(problem, options)
            if not seen.unservable:
                self._count(seen, options)
        except UnsupportedProblem as refusal:
            return Support(False, str(refusal))
        return Support(True)

    def guarantee(self, problem: TimeSharedProblem, options: PublishedOptions) -> Guarantee | None:
        """Return None: nothing is proved of it."""
        return None

    def run(
        self, problem: TimeSharedProblem, options: PublishedOptions, budget: Budget
    ) -> Iterator[Claim]:
        """Yield one schedule; none if a job cannot be served, or if stopped."""
        seen = _Seen(problem, options)
        machines = None if seen.unservable else self._machines(seen, options, budget)
        if machines is not None:
            yield Named(schedule_of(machines), self._part)

    _part: str

    @abstractmethod
    def _machines(self, seen: _Seen, options: Any, budget: Budget) -> Sequence[Machine] | None:
        """Return the machines of a schedule; None if there is none, or if stopped."""

    def _count(self, seen: _Seen, options: Any) -> None:
        """Raise UnsupportedProblem if the problem is too large."""
        del seen, options  # any size


class Gpulet(_OnShares):
    """gpulet: elastic partitioning, shares that services have to themselves or share in time.

    Services come by rising rate times limit. Each asks for shares at the knee of its curve of rate
    by share until less is left than one gives, and for the smallest share that serves the rest. A
    request goes to the free share that leaves least, or a GPU is cut for it into what it asks for
    and the rest. Where there is none, it is spread over the free shares, the largest first; what
    is then left shares the smallest occupied share in time that can carry it. It fails if none can,
    and is tried with one GPU more: from a lower bound upwards, since the scheduler itself does not
    look for few GPUs. The batches are those of the shortest cycle that keeps all rates.

    Notes
    -----
    **Guarantee.** None: the source states none. On random mixes it takes a third more GPUs than
    are needed.

    **Running time.** One pass over the requests for each number of GPUs that is tried; a request
    asks each occupied share at most once, 10 microseconds each. Some hundred services take seconds,
    and more than 2,000 requests are refused.

    References
    ----------
    Choi, Lee, Kim, Park, Kwon, Huh: Serving Heterogeneous Machine Learning Models on Multi-GPU
    Servers with Spatio-Temporal Sharing, USENIX ATC '22, 199-216 (arXiv:2109.01611), sections 4.1
    to 4.3. Rebuilt from its description; where the published program does otherwise, an option
    says so. It models no interference, and does not merge two partly used shares of one service.

    Examples
    --------
    >>> from cms import solve
    >>> from instances.families.time_sharing import random_mix
    >>> solve(random_mix(3), method="gpulet").machine_count
    2
    """

    name = "gpulet"
    options_type = GpuletOptions

    _part = "elastic partitioning"

    def _machines(
        self, seen: _Seen, options: GpuletOptions, budget: Budget
    ) -> Sequence[Machine] | None:
        """Place all on the smallest number of GPUs with which it succeeds."""
        elastic = Elastic(seen.hosting, seen.shares, options)
        # Each request could have a GPU to itself: one a request is enough.
        most = len(elastic.requests)
        for number in range(min(most, seen.least(budget)), most + 1):
            machines = elastic.place(number, lambda: budget.stopped)
            if machines is not None or budget.stopped:
                return machines
        return None

    def _count(self, seen: _Seen, options: GpuletOptions) -> None:
        Elastic(seen.hosting, seen.shares, options)


class GpuletSbp(_OnShares):
    """Squishy bin packing: services share whole GPUs in time, none is cut.

    Each service fills as many GPUs as it can. What is left of it takes the largest batch that
    fills, waits for its turn and runs within the limit; the time in which it fills is its duty
    cycle. By falling occupancy these rests are merged: two sets of services get the shorter of
    their cycles and new batches, and go together where all turns fit into the cycle and all limits
    are kept; of several the GPU that is fullest then. A batch that could not fill in time runs
    unfilled, as seldom as the rule lets it (the source does not say).

    Notes
    -----
    **Guarantee.** None. More demand can take fewer GPUs: a rest of higher rate has a shorter cycle,
    with which it may fit where the longer one did not. So bisection over a rate is not valid.

    **Running time.** O(r^2) merges for r services with a rest, 50 microseconds each.

    References
    ----------
    Shen, Chen, Jin, Zhao, Kong, Philipose, Krishnamurthy, Sundaram: Nexus: A GPU Cluster Engine for
    Accelerating DNN-Based Video Analysis, SOSP '19, doi:10.1145/3341301.3359658; the baseline
    "temporal" of gpulet (USENIX ATC '22). Rebuilt from its description.
    """

    name = "gpulet_sbp"
    options_type = PublishedOptions

    _part = "squishy bin packing"

    def _machines(
        self, seen: _Seen, options: PublishedOptions, budget: Budget
    ) -> Sequence[Machine] | None:
        """Pack all; None as well if a whole GPU cannot serve some job."""
        block, served = seen.shares.blocks.get(WHOLE), seen.hosting.saturated
        if block is None or any(
            job.demand and block not in served[job.name] for job in seen.problem.jobs
        ):
            return None
        packing = SquishyBinPacking(seen.hosting, seen.shares.cuts[WHOLE])
        return packing.machines(lambda: budget.stopped)


class GpuletGuided(_OnShares):
    """Guided self-tuning: each service has shares to itself, as large as its rate asks for.

    A service takes the share that gives it most until a share is enough for the rest, then the
    smallest of those. The shares are packed by size, the largest first, each where it leaves least,
    into GPUs that are whole or cut in two.

    Notes
    -----
    **Guarantee.** None: a service of a small rate has a share that it hardly uses.

    **Running time.** Milliseconds; more than 2,000 shares are refused.

    References
    ----------
    Dhakal, Kulkarni, Ramakrishnan: GSLICE: Controlled Spatial Sharing of GPUs for a Scalable
    Inference Platform, SoCC '20, doi:10.1145/3419111.3421284; here with the rates known, as the
    baseline "guided self-tuning" of gpulet (USENIX ATC '22). Rebuilt from its
    description.
    """

    name = "gpulet_guided"
    options_type = PublishedOptions

    _part = "guided self-tuning"

    def _machines(
        self, seen: _Seen, options: PublishedOptions, budget: Budget
    ) -> Sequence[Machine] | None:
        gpus, requests = Gpus(seen.hosting, seen.shares), guided_requests(seen.hosting, seen.shares)
        for request in sorted(requests, key=lambda one: -one.share):
            if budget.stopped:
                return None
            gpus.best_fit(request.share, {request.job: request.rate})
        return gpus.machines

    def _count(self, seen: _Seen, options: PublishedOptions) -> None:
        guided_requests(seen.hosting, seen.shares)


class _Seen:
    """A problem as an algorithm with these options sees it."""

    def __init__(self, problem: TimeSharedProblem, options: PublishedOptions) -> None:
        self.problem = options.applied(problem)
        self.hosting, self.shares = Hosting(self.problem), Shares.of(self.problem)
        self._saturated = Saturated(self.hosting, self.problem.listed_configurations)
        self.unservable = self._saturated.unservable

    def least(self, budget: Budget) -> int:
        """Return a number of GPUs below which there is no schedule."""
        (machine,) = self.problem.machine_types
        if not machine.cost:
            return 0
        return ceil(max(budget.lower_bound, self._saturated.least_cost()) / machine.cost)
