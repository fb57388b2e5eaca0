"""MIG-serving's fast algorithm: open the machine of the highest score, again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cms.errors import UnsupportedProblem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cms.plugin.algorithm import Budget

    from .candidates import Candidates
    from .options import MigServingFastOptions
    from .services import Filled, Services

#: Machines are opened one by one: beyond so many a run takes minutes.
MOST_MACHINES = 20_000


def fast(
    services: Services,
    candidates: Candidates,
    missing: Sequence[int],
    options: MigServingFastOptions,
    budget: Budget | None,
) -> list[Filled] | None:
    """Open machines until nothing is missing.

    Parameters
    ----------
    services : Services
    candidates : Candidates
        Of these services.
    missing : sequence of n ints
        What jobs lack.
    options : MigServingFastOptions
    budget : Budget or None

    Returns
    -------
    list of Filled, or None if stopped

    Raises
    ------
    UnsupportedProblem
        If it would open more than 20,000 machines.

    Examples
    --------
    >>> from cms import Configuration, Job, Problem
    >>> from algorithms.tables.integers import Tables
    >>> from algorithms.mig_serving.candidates import Candidates
    >>> from algorithms.mig_serving.options import MigServingFastOptions
    >>> from algorithms.mig_serving.services import Services
    >>> jobs = [Job("x", 4, {"a": 1}), Job("y", 2, {"a": 1})]
    >>> services = Services.of(
    ...     Tables.of(Problem(configurations=Configuration({"a": 3}), jobs=jobs))
    ... )
    >>> options = MigServingFastOptions()
    >>> candidates = Candidates(services, options)
    >>> machines = fast(services, candidates, services.needs, options, None)
    >>> [machine.blocks for machine in machines]
    [((0, 0, 1), (0, 1, 2)), ((0, 0, 3),)]
    """
    left = np.array(missing, dtype=np.int64)
    capped = options.score == "capped"
    opened: list[Filled] = []
    while (left > 0).any():
        if budget is not None and budget.stopped:
            return None
        jobs = candidates.shortlist(left, capped=capped)
        [machine] = candidates.top(jobs, left, keep=1, capped=capped)
        opened.append(machine)
        if len(opened) > MOST_MACHINES:
            raise UnsupportedProblem(
                f"it would open more than {MOST_MACHINES} machines one by one, because machines "
                "of little use are so much cheaper than others; use auto or greedy"
            )
        for j, amount in machine.gives:
            left[j] -= amount
    return opened
