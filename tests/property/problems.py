"""Problems for the property tests: those of ``tests.families``, drawn by number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from hypothesis import note, settings
from hypothesis import strategies as st

from cms import DemandFunction, Job, Problem, Proof, solve
from cms.files import lay_out, problem_to_json
from tests.families import FAMILIES, instance


def share(parts: int) -> settings:
    """Take a part of the short run's examples, of the long run's all.

    What solves many times a case, or is asked of many kinds, takes fewer cases.
    """
    if not settings().derandomize:
        return settings()
    return settings(max_examples=max(1, settings().max_examples // parts))


def problems(families: Sequence[str] = tuple(FAMILIES)) -> st.SearchStrategy[Problem]:
    """Problems of these families, each as often; one on which a test fails is written out."""
    return st.builds(instance, st.sampled_from(families), st.integers(0, 10**6)).map(shown)


#: Seconds for what takes one: if they are not enough, it does not end, on the slowest machine.
PLENTY = 600.0


def proved_optimum(problem: Problem) -> Fraction | None:
    """The least cost, None if there is no schedule; held to the oracle by ``test_differential``."""
    solution = solve(problem, threads=1, time_limit=PLENTY)
    assert solution.proof in (Proof.CHECKED, Proof.SOLVER), source(problem)
    return solution.cost


def rebuilt(problem: Problem, jobs: Iterable[Job]) -> Problem:
    """The same machines with other jobs."""
    names = "configurations", "machine_types", "group_limits"
    return Problem(jobs=jobs, **{name: getattr(problem, name) for name in names})


def supply(job: Job) -> DemandFunction:
    """A job's demand function, which is a table in every problem."""
    assert isinstance(job.demand_function, DemandFunction)
    return job.demand_function


def shown(problem: Problem) -> Problem:
    """Have the problem written out where a test fails; its own name only counts its parts."""
    note(source(problem))
    return problem


def source(problem: Problem) -> str:
    """The document that a problem is read back from."""
    return lay_out(problem_to_json(problem))
