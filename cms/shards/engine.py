"""Shards, consecutive jobs that are kept together, and engines, which run functions on them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from ..running.stopping import look, never

if TYPE_CHECKING:
    from ..problem.rows import Row, Rows

#: Jobs of a shard, but for the last one.
SHARD = 2**20


@dataclass(frozen=True)
class Shard(ABC):
    """Consecutive jobs; small itself, and picklable, wherever their rows are.

    `name` is what errors call it. `leaves` are the digests of its leaves as whoever wrote it states
    them; None if no worker did.
    """

    first: int
    n_jobs: int
    name: str
    leaves: tuple[bytes, ...] | None

    @abstractmethod
    def read(self) -> Any:
        """Bring its rows here, in as few bytes as they need: an argument of :meth:`rows`."""

    def rows(self, narrow: Any, columns: Sequence[int] | None = None) -> Rows:
        """Return the exact rows, of what was read; of some blocks with supply cut at the demand."""
        rows = self.all_rows(narrow)
        return rows if columns is None else rows.select(np.arange(len(rows)), columns, cut=True)

    @abstractmethod
    def all_rows(self, narrow: Any) -> Rows:
        """Return the exact rows of all blocks."""

    @abstractmethod
    def row(self, job: int) -> Row:
        """Return a single job's row; jobs count from the first of the shard."""


class Loaded(NamedTuple):
    """A shard in memory: what a function of an engine gets.

    It may use `threads` threads, all cores if None; if `stopped` says so, it returns None.
    """

    number: int
    first: int
    rows: Rows
    threads: int | None = None
    stopped: Callable[[], bool] = never


@dataclass(frozen=True)
class MemoryShard(Shard):
    """Consecutive jobs of rows that are in memory."""

    of: Rows

    def read(self) -> None:
        """There is nothing to be brought."""

    def all_rows(self, narrow: None) -> Rows:
        """Return the exact rows of all blocks."""
        del narrow
        return self.of.part(self.first, self.first + self.n_jobs)

    def row(self, job: int) -> Row:
        """Return a single job's row."""
        return self.of.row(self.first + job)


#: Called with what is done, how many shards are through, and of how many.
Watch = Callable[[str, int, int], object]


class Work(NamedTuple):
    """What is to be done on shards: a function, with arguments of its own for each of them.

    Of `columns` see :meth:`Shard.rows`.
    """

    function: Callable[..., Any]
    shards: Sequence[Shard]
    arguments: Sequence[Sequence[Any]]
    what: str
    stopped: Callable[[], bool] = never
    columns: Sequence[int] | None = None


class Engine(Protocol):
    """Runs pure functions on shards."""

    #: Told of every shard that is through.
    watch: Watch

    def map(self, work: Work) -> Iterator[tuple[int, Any]]:
        """Yield what the function returns for each shard, once each, in any order."""
        ...


class Here:
    """Runs everything in this process, shard by shard; the next one is read meanwhile."""

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads
        self.watch: Watch = lambda what, done, of: None

    def map(self, work: Work) -> Iterator[tuple[int, Any]]:
        """Yield what the function returns for each shard, in their order."""
        shards, read = work.shards, [shard.read for shard in work.shards]
        with ThreadPoolExecutor(1, "cms reading ahead") as reader:
            ahead = [reader.submit(each) for each in read[:1]]
            for number, shard in enumerate(shards):
                look(work.stopped)
                narrow = ahead.pop().result()
                ahead += [reader.submit(each) for each in read[number + 1 : number + 2]]
                rows = shard.rows(narrow, work.columns)
                del narrow
                loaded = Loaded(number, shard.first, rows, self.threads, work.stopped)
                found = work.function(loaded, *work.arguments[number])
                del rows, loaded
                look(work.stopped)
                self.watch(work.what, number + 1, len(shards))
                yield number, found
