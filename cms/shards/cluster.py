"""An engine on a cluster of Dask's distributed scheduler: rows are futures, tasks go to them.

A worker that dies takes neither with it for good: the scheduler has its tasks done and its shards
read elsewhere.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any

from ..errors import ClusterError
from ..running.code import code_digest
from ..running.stopping import Stopped
from .engine import Loaded, Shard, Watch, Work

#: How long to ask for a scheduler before it counts as none.
PATIENCE = "10s"
#: Time between two looks at whether the run is to end.
_LOOK = "50ms"


@contextmanager
def cluster(address: str) -> Iterator[Cluster]:
    """Connect to a cluster, an engine for :func:`cms.open_problem`.

    Parameters
    ----------
    address : str
        The scheduler's; its workers need this version, and the folders under the same paths.

    Raises
    ------
    ClusterError
        If no scheduler answers there, ``distributed`` is not installed, or a worker has other code.

    Examples
    --------
    >>> import cms
    >>> from distributed import LocalCluster
    >>> problem = cms.Problem.from_arrays(demands=[7, 5], supply=[[4], [5]], configurations=[[2]])
    >>> with LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as there:
    ...     with cluster(there.scheduler_address) as workers:
    ...         cms.solve(cms.ShardedProblem.of(problem, size=1, engine=workers)).machine_count
    2
    """
    with connected(address) as client:
        yield Cluster(client)


@contextmanager
def connected(
    address: str, extra: str = "cluster", module: str = "cms.running.code", what: str = "cms"
) -> Iterator[Any]:
    """Yield a client of a scheduler whose workers have the code that is here.

    `extra` installs ``distributed``; `module` has the ``code_digest`` that workers are asked for,
    without which they cannot run `what`.
    """
    try:
        from distributed import Client
    except ImportError:
        raise ClusterError(f"a cluster needs the extra: `pip install '.[{extra}]'`") from None
    # What it logs as an error reaches us as an exception, and is told then.
    for name in ("distributed", "distributed.client", "distributed.core", "tornado.application"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        client: Any = Client(  # type: ignore[no-untyped-call]
            address, timeout=PATIENCE, set_as_default=False
        )
    except (OSError, ValueError) as fault:
        raise ClusterError(f"{address}: no scheduler answers there ({fault})") from None
    with client:
        refuse_other_code(client.run(_digest_there(module), on_error="return"), what)
        yield client


def _digest_there(module: str) -> Callable[[], str]:
    """Return a function that a worker without this package can unpickle, and fail to run."""

    # A function in a function travels by value, not by the name of its module.
    def digest() -> str:
        from importlib import import_module

        found: str = import_module(module).code_digest()
        return found

    return digest


def refuse_other_code(answers: Mapping[str, object], what: str = "cms") -> None:
    """Refuse workers that lack this package or have other code than is here, and say which.

    `answers` are their digests by address, or what they raised.
    """
    bad: defaultdict[str, list[str]] = defaultdict(list)
    for worker, answer in answers.items():
        if isinstance(answer, BaseException):
            bad[f"cannot run {what} ({type(answer).__name__}: {answer})"].append(worker)
        elif answer != code_digest():
            bad[f"has other code than is here ({answer}, not {code_digest()})"].append(worker)
    if bad:
        told = "; ".join(f"worker {', '.join(found)} {why}" for why, found in bad.items())
        raise ClusterError(f"{told}; install this version on every worker")


class Cluster:
    """An engine whose tasks run on the workers of a client's cluster, one thread each."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._held: dict[Shard, Any] = {}
        self.watch: Watch = lambda what, done, of: None

    def map(self, work: Work) -> Iterator[tuple[int, Any]]:
        """Yield what the function returns for each shard, as the workers are done."""
        import distributed

        wait: Any = distributed.wait
        running = {
            self._client.submit(
                _there, work.function, number, shard, self._rows(shard),
                work.columns, work.arguments[number], code_digest(), pure=False,
            ): number
            for number, shard in enumerate(work.shards)
        }  # fmt: skip
        left = set(running)
        try:
            while left:
                if work.stopped():
                    raise Stopped
                try:
                    with self._client.as_current():
                        done, left = wait(left, timeout=_LOOK, return_when="FIRST_COMPLETED")
                except TimeoutError:
                    continue
                for at, future in enumerate(done, len(running) - len(left) - len(done) + 1):
                    number = running[future]
                    found = self._result(future, work.what, work.shards[number])
                    self.watch(work.what, at, len(running))
                    yield number, found
        except CancelledError as fault:
            raise ClusterError(
                f"{work.what}: the scheduler is gone ({type(fault).__name__}); start one again, "
                "and go on from the journal if there is one"
            ) from fault
        finally:
            # of a scheduler that is gone there is nothing to be cancelled
            if self._client.status == "running":
                for future in left:
                    future.cancel()

    def _result(self, future: Any, what: str, shard: Shard) -> Any:
        import distributed

        try:
            return future.result()
        except distributed.KilledWorker as fault:
            told = f"{what} at {shard.name} has killed several workers: {fault}"
            raise ClusterError(told) from fault
        finally:
            if future.status != "finished":
                # read anew by whoever asks next: a file may have been restored
                self._held.pop(shard, None)

    def _rows(self, shard: Shard) -> Any:
        if shard not in self._held:
            self._held[shard] = self._client.submit(shard.read, pure=False)
        return self._held[shard]


def _there(
    function: Callable[..., Any],
    number: int,
    shard: Shard,
    narrow: Any,
    columns: Sequence[int] | None,
    arguments: Sequence[Any],
    digest: str,
) -> Any:
    refuse_other_code({"here": digest})  # one that has joined since
    return function(Loaded(number, shard.first, shard.rows(narrow, columns), 1), *arguments)
