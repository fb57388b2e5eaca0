"""Engines: what runs a pure function on every shard of a problem, here or on a cluster.

A function gets a :class:`Loaded` shard and arguments that a network can carry, as it can what the
function returns. What a journal keeps is plain: whole numbers, texts, None, and lists of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol

from ..running.stopping import look, never
from .shard import Loaded, Shard

#: Called with what is done, how many shards are through, and of how many.
Watch = Callable[[str, int, int], object]
#: A function's arguments for the shard of a number.
Arguments = Callable[[int], Sequence[Any]]


def nobody(what: str, done: int, of: int) -> None:
    """Watch nothing."""
    del what, done, of


class Work(NamedTuple):
    """What is to be done on shards."""

    function: Callable[..., Any]
    shards: Sequence[Shard]
    arguments: Arguments
    what: str
    kept: bool = False
    stopped: Callable[[], bool] = never


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
        self.watch: Watch = nobody

    def map(self, work: Work) -> Iterator[tuple[int, Any]]:
        """Yield what the function returns for each shard, in their order."""
        shards, read = work.shards, [shard.read for shard in work.shards]
        with ThreadPoolExecutor(1, "cms reading ahead") as reader:
            ahead = [reader.submit(each) for each in read[:1]]
            for number, shard in enumerate(shards):
                look(work.stopped)
                narrow = ahead.pop().result()
                ahead += [reader.submit(each) for each in read[number + 1 : number + 2]]
                rows = shard.rows(narrow)
                del narrow
                loaded = Loaded(number, shard.first, rows, self.threads, work.stopped)
                found = work.function(loaded, *work.arguments(number))
                del rows, loaded
                look(work.stopped)
                self.watch(work.what, number + 1, len(shards))
                yield number, found
