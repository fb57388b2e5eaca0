"""Faults planted in MIG-serving's parts: the tests beside this one see every one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
from hypothesis import Phase, settings

import algorithms.mig_serving as mig_serving
import algorithms.mig_serving.candidates as candidates
from algorithms.mig_serving.candidates import Candidates
from algorithms.mig_serving.fast import fast
from algorithms.mig_serving.genetic import Deployment, Genetic
from algorithms.mig_serving.patterns import patterns
from algorithms.mig_serving.services import Filled, Services
from algorithms.mig_serving.tree_search import Path, TreeSearch
from cms.errors import CmsError
from tests.algorithms.mig_serving import (
    test_candidates,
    test_genetic,
    test_mig_serving,
    test_tree_search,
)

_playout, _deployment = TreeSearch.playout, Genetic.deployment
_missing, _patterns, _fast = Services.missing, patterns, fast
_handed_over, _top = Genetic._handed_over, Candidates.top


def playout_without_the_last(self: TreeSearch, *args: Any) -> Path | None:
    path = _playout(self, *args)
    return path and Path(path.machines[:-1], path.cost)


def cost_without_the_last(self: TreeSearch, *args: Any) -> Path | None:
    path = _playout(self, *args)
    return path and path._replace(cost=max(0, path.cost - 1))


def one_machine_more_can_go(self: Genetic, machines: Sequence[Filled]) -> Deployment:
    made = _deployment(self, machines)
    return made._replace(machines=made.machines[1:])


def one_unit_less_is_missing(self: Services, machines: Iterable[Filled]) -> list[int]:
    return [amount - 1 for amount in _missing(self, machines)]


def hands_over_and_keeps(self: Genetic, machine: Filled, i: int, j: int, to: int) -> Filled:
    given = {(type_, job): number for type_, job, number in machine.blocks}
    given[i, to] = given.get((i, to), 0) + 1
    return self._services.filled(machine.shape, [(*edge, x) for edge, x in given.items()])


def ways_without_the_last(*args: Any) -> Any:
    rows = _patterns(*args)
    return rows._replace(shapes=rows.shapes[:-1], counts=rows.counts[:-1])


def worst_first(self: Candidates, *args: Any, keep: int, **options: Any) -> list[Filled]:
    return _top(self, *args, keep=1000, **options)[::-1][:keep]


def known_by_the_minimum(self: TreeSearch, node: Any, root: Any) -> float:
    return float((node.best - root.best) / (root.most - root.best))


def works_a_pool_out_anew(self: TreeSearch, levels: bytes, missing: Sequence[int]) -> list[Filled]:
    return self._good(missing)


def way_down(backup: str, exploration: int, chosen: int) -> Callable[[], object]:
    return lambda: test_tree_search.test_the_way_down_weighs_costs_and_visits(
        backup, exploration, chosen
    )


def pools() -> None:
    with pytest.MonkeyPatch.context() as patch:
        test_tree_search.test_a_pool_is_worked_out_once(patch)


FAULTS: list[tuple[object, str, Callable[..., object], Callable[[], object]]] = [
    (
        TreeSearch,
        "playout",
        playout_without_the_last,
        test_tree_search.test_a_playout_never_undercounts,
    ),
    (
        TreeSearch,
        "playout",
        cost_without_the_last,
        test_tree_search.test_a_playout_never_undercounts,
    ),
    (Genetic, "deployment", one_machine_more_can_go, test_genetic.test_crossover_serves_all_jobs),
    (Services, "missing", one_unit_less_is_missing, test_genetic.test_crossover_serves_all_jobs),
    (
        Genetic,
        "_handed_over",
        hands_over_and_keeps,
        test_genetic.test_mutation_keeps_every_jobs_blocks,
    ),
    (
        candidates,
        "patterns",
        ways_without_the_last,
        test_candidates.test_the_best_machine_is_the_best_of_all,
    ),
    (Candidates, "top", worst_first, test_candidates.test_the_best_machine_is_the_best_of_all),
    (TreeSearch, "_promising", lambda *_: 0, way_down("minimum", 0, 1)),
    (TreeSearch, "_promising", lambda *_: 1, way_down("minimum", 100, 2)),
    (TreeSearch, "_part", known_by_the_minimum, way_down("mean", 0, 0)),
    (TreeSearch, "_pool", works_a_pool_out_anew, pools),
    (
        mig_serving,
        "fast",
        lambda *args: (_fast(*args) or [])[1:],
        test_mig_serving.test_schedules_are_between_the_optimum_and_the_fast_ones,
    ),
]


#: That a fault is seen is enough: the smallest case in which it is would take seconds.
UNSHRUNK = settings(phases=(Phase.explicit, Phase.generate))


@pytest.mark.parametrize(
    ("where", "name", "fault", "check"), FAULTS, ids=[fault[2].__name__ for fault in FAULTS]
)
def test_a_planted_fault_is_seen(
    where: object,
    name: str,
    fault: Callable[..., object],
    check: Callable[[], object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(where, name, fault)
    monkeypatch.setattr(check, "_hypothesis_internal_use_settings", UNSHRUNK, raising=False)
    # Hypothesis tells several failures of one test as a group.
    with pytest.raises((AssertionError, CmsError, ValueError, IndexError, ExceptionGroup)):
        check()
