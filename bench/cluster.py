"""Connects to a cluster of Dask's distributed scheduler, and sees that it can run what is here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager

from cms.errors import ClusterError
from cms.shards.cluster import connected

from .results import ResultsError


@contextmanager
def cluster(address: str) -> Iterator[tuple[Executor, Callable[[], bool]]]:
    """Yield an executor that runs on a cluster's workers, and whether the cluster still answers."""
    with ExitStack() as stack:
        try:
            client = stack.enter_context(connected(address, "bench", "bench.environment", "bench"))
        except ClusterError as fault:
            raise ResultsError(f"--dask: {fault}") from None
        # A task whose worker dies runs again elsewhere: the scheduler sees to that.
        yield client.get_executor(pure=False), lambda: client.status not in ("closing", "closed")
