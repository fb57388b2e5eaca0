"""What a suite is: tasks, and the tables made of their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bench.peers import GROUPS
from bench.plots import Plot
from bench.row import RunRow
from bench.rules import BOUNDS, RULES
from bench.tables import Table
from bench.task import FAMILIES, Kind, Source, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the command line can change; every suite has its own defaults.

    Ratios are to the first of the methods. Seeds are instances of each kind, or how often a list of
    instances is drawn anew. ``peer_limit`` and ``peer_share`` are for suites whose peers do not run
    as long, or on as many instances, as the algorithms.
    """

    methods: tuple[str, ...] = ("auto",)
    seeds: int = 1
    time_limit: float = 60.0
    instances: int = 0
    largest: int = 1_000
    peers: tuple[str, ...] = ()
    peer_limit: float = 0.0
    peer_share: float = 1.0
    module: str = FAMILIES
    requests: int = 0
    warm_up: bool = True

    def source(self, family: str, **arguments: Any) -> Source:
        """Return the source of an instance of a family."""
        return Source(family=family, arguments=arguments, module=self.module)

    def sizes(self, sizes: Iterable[int]) -> list[int]:
        """Return those of some numbers of jobs that are no more than the largest wanted."""
        return [n for n in sizes if n <= self.largest]

    def tasks(
        self, kind: Kind, suite: str, source: Source, methods: Iterable[str], **how: Any
    ) -> Iterator[Task]:
        """Yield a task of a kind for each method, without a warm-up unless told otherwise."""
        how = {"time_limit": self.time_limit, "warm_up": False, **how}
        for method in methods:
            yield Task(suite=suite, kind=kind, source=source, method=method, **how)

    def solves(
        self, suite: str, source: Source, methods: Sequence[str] | None = None, **changes: Any
    ) -> Iterator[Task]:
        """Yield a task for each algorithm, or for some."""
        methods = self.methods if methods is None else methods
        how = {"warm_up": self.warm_up, **changes}
        yield from self.tasks(Kind.SOLVE, suite, source, methods, **how)

    def rules(
        self, suite: str, source: Source, names: Sequence[str] = tuple(RULES)
    ) -> Iterator[Task]:
        """Yield a task for each rule of thumb, or for some."""
        yield from self.tasks(Kind.RULE, suite, source, names)

    def bounds(self, suite: str, source: Source) -> Iterator[Task]:
        """Yield a task for each bound that is no algorithm's."""
        yield from self.tasks(Kind.BOUND, suite, source, BOUNDS)

    def asks(self, suite: str, source: Source, limit: float) -> Iterator[Task]:
        """Yield a task for each peer of the groups chosen."""
        peers = (peer for group in self.peers for peer in GROUPS[group])
        yield from self.tasks(Kind.PEER, suite, source, peers, time_limit=limit, fresh=True)


@dataclass(frozen=True, slots=True)
class Suite:
    """A named list of tasks and what is shown of their rows, which come in any order.

    ``contestants`` are what is compared where that is no algorithms of the registry:
    :attr:`Settings.methods` is of these then.
    """

    name: str
    summary: str
    defaults: Settings
    tasks: Callable[[Settings], Iterator[Task]]
    tables: Callable[[Sequence[RunRow], Settings], list[Table]]
    plots: Callable[[Sequence[RunRow], Settings], list[Plot]] = lambda rows, settings: []
    contestants: tuple[str, ...] = ()
