"""Connects to a cluster of Dask's distributed scheduler, and sees that it can run what is here."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any

from .environment import code_digest
from .results import ResultsError

#: How long to ask for a scheduler before it counts as none.
_PATIENCE = "10s"


@contextmanager
def cluster(address: str) -> Iterator[tuple[Executor, Callable[[], bool]]]:
    """Yield an executor that runs on a cluster's workers, and whether the cluster still answers.

    Parameters
    ----------
    address : str
        The scheduler's.

    Raises
    ------
    ResultsError
        If nobody answers there, or a worker cannot run what is here.
    """
    try:
        from distributed import Client
    except ImportError:
        raise ResultsError(
            "--dask needs the extra: `pip install 'configurable-machines[bench]'`"
        ) from None
    # What it logs as an error reaches us as an exception, and is told then.
    for name in ("distributed", "distributed.client", "distributed.core", "tornado.application"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        client: Any = Client(  # type: ignore[no-untyped-call]
            address, timeout=_PATIENCE, set_as_default=False
        )
    except (OSError, ValueError) as fault:
        raise ResultsError(f"--dask {address}: no scheduler answers there ({fault})") from None
    with client:
        refuse_other_code(client.run(digest_there(), on_error="return"))
        # A task whose worker dies runs again elsewhere: the scheduler sees to that.
        yield client.get_executor(pure=False), lambda: client.status not in ("closing", "closed")


def digest_there() -> Callable[[], str]:
    """Return a function that a worker without this package can unpickle, and fail to run.

    Examples
    --------
    >>> digest_there()() == code_digest()
    True
    """

    # A function in a function travels by value, not by the name of its module.
    def digest() -> str:
        from importlib import import_module

        found: str = import_module("bench.environment").code_digest()
        return found

    return digest


def refuse_other_code(answers: Mapping[str, object]) -> None:
    """Refuse workers that lack this package or have other code than is here.

    Parameters
    ----------
    answers : Mapping[str, str or BaseException]
        From a worker's address to what the function of :func:`digest_there` returned or raised.

    Raises
    ------
    ResultsError
        It says which worker, and why.

    Examples
    --------
    >>> refuse_other_code({"tcp://a:1": code_digest()})
    >>> refuse_other_code({"tcp://a:1": code_digest(), "tcp://b:1": "0123456789ab"})
    Traceback (most recent call last):
    ...
    bench.results.ResultsError: --dask: worker tcp://b:1 has other code than is here ...
    """
    bad: defaultdict[str, list[str]] = defaultdict(list)
    for worker, answer in answers.items():
        if isinstance(answer, BaseException):
            bad[f"cannot run bench ({type(answer).__name__}: {answer})"].append(worker)
        elif answer != code_digest():
            bad[f"has other code than is here ({answer}, not {code_digest()})"].append(worker)
    if bad:
        told = "; ".join(f"worker {', '.join(found)} {why}" for why, found in bad.items())
        raise ResultsError(f"--dask: {told}; install this version on every worker")
