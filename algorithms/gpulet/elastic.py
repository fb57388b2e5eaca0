"""gpulet's options and elastic partitioning; guided self-tuning, which shares no time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, pairwise
from math import ceil, inf
from typing import TYPE_CHECKING, NamedTuple

from cms.errors import UnsupportedProblem
from cms.problem.parts import Configuration
from cms.time_sharing.model import BatchPoint, TimeSharedJob
from cms.values.fields import CheckedFields
from cms.values.numbers import shown

from ..time_sharing.hosting import Loaded, Machine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from cms.time_sharing.problem import TimeSharedProblem

    from ..time_sharing.hosting import Hosting, Rates

#: A whole GPU, in the per cent in which shares are counted.
WHOLE = 100
_SHARE = re.compile(r"(?:mps:)?([1-9][0-9]?|100)")
#: Shares are asked for one by one.
MOST_REQUESTS = 2_000
#: A step to a larger share that gains less than this part does not count.
_LEAST_GAIN = Fraction(1, 20)
#: Batches of a job on a share, which are listed one by one.
_MOST_BATCHES = 10_000


@dataclass(frozen=True)
class PublishedOptions(CheckedFields):
    """Deviations of the published programs, all off unless asked for.

    With the first three a schedule may miss a demand, break a limit or take a batch that was never
    measured. The driver then refuses it, and says which.

    Parameters
    ----------
    dropped_rate : number, default 0
        Jobs with a demand of at most this are not served; 15 requests/s as published.
    limit_slack : number, default 0
        The part by which latency limits are taken longer than they are; 1/20 as published.
    interpolate : bool, default False
        Whether batches between two measured ones count as measured, on a straight line; at most
        10,000 of a job on a share.
    skipped_amount : number, default 0
        A batch that is never used; 32 as published, by a slip in a binary search. 0 is none.
    """

    dropped_rate: Fraction = Fraction(0)
    limit_slack: Fraction = Fraction(0)
    interpolate: bool = False
    skipped_amount: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        self._number("dropped_rate")
        self._number("limit_slack", most=10)
        self._flag("interpolate")
        self._number("skipped_amount")

    def applied(self, problem: TimeSharedProblem) -> TimeSharedProblem:
        """Return the problem as the published program sees it; itself where nothing deviates."""
        if not (self.dropped_rate or self.limit_slack or self.interpolate or self.skipped_amount):
            return problem
        return problem.replace(
            jobs=[
                TimeSharedJob(
                    job.name,
                    job.demand if job.demand > self.dropped_rate else 0,
                    job.limit * (1 + self.limit_slack),
                    self._points(job.points),
                )
                for job in problem.jobs
            ]
        )

    def _points(self, table: Mapping[str, Sequence[BatchPoint]]) -> dict[str, list[BatchPoint]]:
        return {
            block: [
                point
                for point in (_interpolated(own) if self.interpolate else own)
                if point.amount != self.skipped_amount
            ]
            for block, own in table.items()
        }


@dataclass(frozen=True)
class GpuletOptions(PublishedOptions):
    """Options of :class:`~algorithms.gpulet.Gpulet`.

    Parameters
    ----------
    dropped_rate, limit_slack, interpolate, skipped_amount
        As :class:`PublishedOptions` has them.
    enough : number, default 1
        A job is served when this part of its demand is; 17/20 as published. With less than 1 a
        schedule may miss a demand, and is then refused.
    uncut_first : bool, default False
        Whether an uncut GPU is taken before a free share that would leave less, as published.
    short_scan : bool, default False
        Whether the search for the share that pays most stops before the step to the whole GPU, as
        published.
    """

    enough: Fraction = Fraction(1)
    uncut_first: bool = False
    short_scan: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self._number("enough", above=0, most=1)
        self._flag("uncut_first")
        self._flag("short_scan")


def _interpolated(points: Sequence[BatchPoint]) -> list[BatchPoint]:
    """Add a point for every whole amount between two measured ones, on a straight line."""
    added = list(points)
    for low, high in pairwise(points):
        slope = (high.length - low.length) / (high.amount - low.amount)
        first, last = int(low.amount) + 1, ceil(high.amount) - 1
        if len(added) + last - first >= _MOST_BATCHES:
            raise UnsupportedProblem(
                f"batches of {shown(low.amount)} and {shown(high.amount)} were measured, and all "
                f"between them would count; at most {_MOST_BATCHES} of a job on a share do: leave "
                "out interpolate"
            )
        added += [
            BatchPoint(Fraction(amount), low.length + slope * (amount - low.amount))
            for amount in range(first, last + 1)
        ]
    return added


class Shares(NamedTuple):
    """The shares that a GPU can be cut into, by rising size in per cent.

    ``blocks`` has the block of each; ``cuts`` how a GPU is cut to have one: the rest, if any, is
    one share as well.
    """

    blocks: dict[int, str]
    cuts: dict[int, Configuration]

    @classmethod
    def of(cls, problem: TimeSharedProblem) -> Shares:
        """Read the shares off the names of blocks, in a problem that is not refused."""
        cuts, blocks = dict[int, Configuration](), dict[int, str]()
        for shape in problem.listed_configurations:
            for block in shape.blocks:
                if share := share_of(block):
                    cuts.setdefault(share, shape)
                    blocks.setdefault(share, block)
        return cls(dict(sorted(blocks.items())), cuts)


def share_of(block: str) -> int | None:
    """Return the per cent of a GPU that a block's name says; None if it says none."""
    found = _SHARE.fullmatch(block)
    return int(found[1]) if found else None


def refuse_other_cuts(problem: TimeSharedProblem) -> None:
    """Refuse what is not one unlimited kind of GPUs, left whole or cut into two shares."""
    if len(problem.machine_types) != 1:
        kinds = ", ".join(machine.name for machine in problem.machine_types)
        raise _refusal(f"there are several machine types ({kinds}), it knows one")
    (machine,) = problem.machine_types
    if machine.limit is not None:
        raise UnsupportedProblem(
            f"machine type {machine.name!r} has a limit of {machine.limit} machines, and it takes "
            "as many as it needs; use auto"
        )
    names: dict[int, str] = {}
    for shape in problem.configurations:
        if not isinstance(shape, Configuration):
            expected = "expected listed ones, of one block or two"
            raise _refusal(f"its configurations are a size-bounded set; {expected}")
        sizes: list[int] = []
        for block, count in shape.blocks.items():
            share = share_of(block)
            if share is None:
                expected = "expected names such as mps:60 or 60"
                raise _refusal(f"the block {block!r} is no share of a GPU; {expected}")
            if names.setdefault(share, block) != block:
                raise _refusal(f"the blocks {names[share]!r} and {block!r} are the same share")
            sizes += [share] * min(count, WHOLE)
        if len(sizes) > 2 or sum(sizes) != WHOLE:
            cut = " + ".join(map(str, sorted(sizes))) or "nothing"
            raise _refusal(
                f"a GPU is cut into {cut}; gpulet leaves it whole or cuts it into two shares of "
                f"{WHOLE} % together"
            )


def _refusal(reason: str) -> UnsupportedProblem:
    return UnsupportedProblem(f"{reason}; use mix_first_fit or auto")


class Gpus:
    """Some GPUs: which shares are free and which are occupied; as many as needed by default."""

    def __init__(self, hosting: Hosting, shares: Shares, number: float = inf) -> None:
        self._hosting, self._shares, self._uncut = hosting, shares, number
        self.machines: list[Machine] = []
        self._sizes = {block: share for share, block in shares.blocks.items()}
        self._free: dict[int, list[Loaded]] = {share: [] for share in shares.blocks}
        self._occupied: dict[int, list[Loaded]] = {share: [] for share in shares.blocks}

    def free(self) -> list[Loaded]:
        """Return all free blocks, largest first."""
        return [loaded for blocks in reversed(self._free.values()) for loaded in blocks]

    def occupied(self) -> Iterator[Loaded]:
        """Iterate over the blocks that serve a job, smallest first."""
        return chain.from_iterable(self._occupied.values())

    def best_fit(self, share: int, rates: Rates, *, uncut_first: bool = False) -> bool:
        """Have a block of at least some size serve some rates, the one that leaves least.

        With ``uncut_first`` a GPU is cut though a free block would do. False if there is no such
        block, and no GPU to cut.
        """
        free = (blocks[0] for size, blocks in self._free.items() if size >= share and blocks)
        if not (uncut_first and self._uncut) and any(self.serve(each, rates) for each in free):
            return True
        if not self._uncut:
            return False
        self._uncut -= 1
        self.machines.append(Machine(self._shares.cuts[share]))
        for loaded in self.machines[-1].blocks:
            self._free[self._sizes[loaded.block]].append(loaded)
        return self.serve(self._free[share][-1], rates)

    def serve(self, loaded: Loaded, rates: Rates) -> bool:
        """Have a free block serve some rates, if it can; whether it does."""
        loaded.hosted = self._hosting.host(loaded.block, rates)
        if loaded.hosted is None:
            return False
        share = self._sizes[loaded.block]
        self._free[share].remove(loaded)
        self._occupied[share].append(loaded)
        return True


class Request(NamedTuple):
    """A share for a job that is to give it some rate there."""

    job: str
    share: int
    rate: Fraction


class Elastic:
    """Elastic partitioning of one problem as the options see it, on any number of GPUs.

    Every job with a demand can be served; UnsupportedProblem if more than 2,000 shares would be
    asked for.
    """

    def __init__(self, hosting: Hosting, shares: Shares, options: GpuletOptions) -> None:
        self._hosting, self._shares, self._options = hosting, shares, options
        jobs = [job for job in reversed(hosting.problem.jobs) if job.demand]
        jobs.sort(key=lambda job: job.demand * job.limit)
        self.demands = {job.name: job.demand for job in jobs}
        self.requests = _requests(hosting, shares, jobs, self.knee)

    def knee(self, job: str) -> int:
        """Return the share from which on a larger one pays less: the top of the steepest step.

        Steps go from one share that serves the job to the next, from nothing to the first. Those
        that gain less than 5 % do not count; of equally steep ones the lowest is taken.
        """
        served = self._hosting.saturated[job]
        blocks = self._shares.blocks.items()
        rates = [(share, served[block]) for share, block in blocks if block in served]
        rates.insert(0, (0, Fraction(0)))
        steepest, knee = Fraction(0), None
        for (low, before), (high, rate) in pairwise(rates):
            if self._options.short_scan and high == WHOLE and knee is not None:
                break
            if rate < before * (1 + _LEAST_GAIN):
                continue
            slope = (rate - before) / (high - low)
            if slope > steepest:
                steepest, knee = slope, high
        assert knee is not None  # the first share that serves the job at all is a step
        return knee

    def place(self, number: int, stopped: Callable[[], bool]) -> Sequence[Machine] | None:
        """Place all requests on `number` GPUs; None if one cannot be placed, or if stopped."""
        gpus = Gpus(self._hosting, self._shares, number)
        bearable = {job: (1 - self._options.enough) * d for job, d in self.demands.items()}
        for request in self.requests:
            if stopped():
                return None
            bearable[request.job] -= self._rest(gpus, request)
            if bearable[request.job] < 0:
                return None
        return gpus.machines

    def _rest(self, gpus: Gpus, request: Request) -> Fraction:
        """Place a request; return the rate that is left."""
        job, rest = request.job, request.rate
        if gpus.best_fit(request.share, {job: rest}, uncut_first=self._options.uncut_first):
            return Fraction(0)
        for loaded in gpus.free():
            most = self._hosting.saturated[job].get(loaded.block)
            if most is None:
                continue
            part = min(rest, most)
            gpus.serve(loaded, {job: part})
            rest -= part
            if not rest:
                return rest
        for loaded in gpus.occupied():
            hosted = self._hosting.host(loaded.block, loaded.with_more(job, rest))
            if hosted is not None:
                loaded.hosted = hosted
                return Fraction(0)
        return rest


def guided_requests(hosting: Hosting, shares: Shares) -> list[Request]:
    """List what the jobs ask for: the largest rate again and again, then what is large enough."""

    def fastest(job: str) -> int:
        served = hosting.saturated[job]
        return max(shares.blocks, key=lambda share: served.get(shares.blocks[share], 0))

    return _requests(hosting, shares, hosting.problem.jobs, fastest)


def _requests(
    hosting: Hosting, shares: Shares, jobs: Iterable[TimeSharedJob], chosen: Callable[[str], int]
) -> list[Request]:
    """List, job by job, its chosen share as often as it is filled, and the least for the rest."""
    requests: list[Request] = []
    for job in jobs:
        if not job.demand:
            continue
        served, share = hosting.saturated[job.name], chosen(job.name)
        most = served[shares.blocks[share]]
        full = ceil(job.demand / most) - 1
        if (number := len(requests) + full + 1) > MOST_REQUESTS:
            raise UnsupportedProblem(
                f"it would ask for {number} shares or more, one by one; at most {MOST_REQUESTS} "
                "are placed; use auto"
            )
        rest = job.demand - full * most
        least = next(each for each, block in shares.blocks.items() if served.get(block, 0) >= rest)
        requests += [*[Request(job.name, share, most)] * full, Request(job.name, least, rest)]
    return requests
