"""MIG-serving's fast algorithm: open the machine of the highest score, again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cms.algorithm import Budget

    from .candidates import Candidates
    from .options import MigServingFastOptions
    from .services import Filled, Services


def fast(
    services: Services,
    candidates: Candidates,
    missing: Sequence[int],
    options: MigServingFastOptions,
    budget: Budget | None,
) -> list[Filled] | None:
    """Open machines until nothing is missing; None if stopped.

    Parameters
    ----------
    services : Services
    candidates : Candidates
        Of these services.
    missing : sequence of n ints
        What jobs lack.
    options : MigServingFastOptions
    budget : Budget or None

    Examples
    --------
    >>> from cms import Configuration, Job, Problem
    >>> from algorithms.linear.tables import Tables
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
        for j, amount in machine.gives:
            left[j] -= amount
    return opened
