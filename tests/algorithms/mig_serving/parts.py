"""What the tests of MIG-serving's parts start from."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from hypothesis import strategies as st

from algorithms.mig_serving.fast import Candidates, Filled, Services
from algorithms.mig_serving.search import Genetic, MigServingOptions, TreeSearch
from algorithms.tables.integers import Tables
from cms import Problem, reduce
from tests.property.problems import LISTED, problems


class Parts(NamedTuple):
    """The parts of a run on one problem, which share one source of randomness."""

    services: Services
    candidates: Candidates
    search: TreeSearch
    genetic: Genetic


def parts(problem: Problem, seed: int = 0, **options: object) -> Parts:
    chosen = MigServingOptions(**options)  # type: ignore[arg-type]
    services = Services(Tables.of(reduce(problem).problem))
    candidates, random = Candidates(services, chosen), Random(seed)
    search = TreeSearch(services, candidates, chosen, random)
    return Parts(services, candidates, search, Genetic(services, search, chosen, random))


def usable(problem: Problem) -> bool:
    """Whether there is a job to be served, and each can be."""
    tables = Tables.of(reduce(problem).problem)
    return bool(tables.n) and not tables.unservable


#: Problems that MIG-serving's algorithms take.
PROBLEMS: st.SearchStrategy[Problem] = problems((*LISTED, "size-bounded")).filter(usable)


def assert_legal(services: Services, machine: Filled) -> None:
    """No block is handed out that the configuration does not have; jobs get what these give."""
    held = [0] * services.tables.k
    gives: dict[int, int] = {}
    for i, j, number in machine.blocks:
        assert number > 0
        held[i] += number
        gives[j] = gives.get(j, 0) + number * services.supply[j][i]
    row = services.tables.counts[machine.shape]
    assert all(a <= b for a, b in zip(held, row, strict=True))
    assert machine.gives == tuple(sorted(gives.items()))


def assert_serves(services: Services, machines: Sequence[Filled]) -> None:
    """The machines are legal and give every job what it demands, in the problem's own numbers."""
    tables = services.tables
    got = [0] * tables.n
    for machine in machines:
        assert_legal(services, machine)
        for i, j, number in machine.blocks:
            got[j] += number * tables.supply[j][i]
    assert all(a >= d for a, d in zip(got, tables.demands, strict=True))
