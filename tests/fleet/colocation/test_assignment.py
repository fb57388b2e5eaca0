"""Plans for named GPUs, where who runs already stays; and what whole steps of activity cost."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.colocation_figures.matching import falling, single_gpus
from cms.errors import InvalidProblem
from cms.fleet.colocation import (
    ColocationProblem,
    NamedGpus,
    OfflineClass,
    OnlineClass,
    assign,
    buckets,
    colocate,
)
from cms.fleet.colocation.tables import merge
from tests.property.problems import share as share_of_examples
from tests.samples import few, refusal


@st.composite
def fleets(draw: Any) -> tuple[ColocationProblem, list[NamedGpus]]:
    kinds = st.tuples(
        st.integers(0, 4), st.sampled_from([10, 50, 95]), st.sampled_from([None, "f0", "f1"])
    )
    rows = [
        NamedGpus(f"n{i}", OnlineClass("a30", count=count, sm_activity=activity, running=runs))
        for i, (count, activity, runs) in enumerate(draw(st.lists(kinds, min_size=1, max_size=8)))
    ]
    classes = merge([row.online for row in rows])[0]
    weight = st.integers(-1, 9)
    weights = [[draw(weight), draw(weight)] for _ in classes]
    work = [OfflineClass(f"f{k}", count=draw(st.integers(0, 9))) for k in range(2)]
    return ColocationProblem(online=classes, offline=work, weights=weights), rows


@share_of_examples(2)
@given(fleets())
def test_rows_get_what_the_plan_has_and_who_runs_already_stays(
    made: tuple[ColocationProblem, list[NamedGpus]],
) -> None:
    problem, rows = made
    plan = colocate(problem).plan
    assigned = assign(problem, plan, rows)
    online = {row.gpu: row.online for row in rows}
    gpus: Counter[str] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    stays: Counter[str] = Counter()
    for each in assigned:
        of = online[each.gpu]
        gpus[each.gpu] += each.count
        stays[of.name] += each.count * each.stays
        assert each.stays == (each.workload is not None and each.workload == of.running)
        share_left = problem.shares[problem.online_index[of.name]]
        assert each.share == (share_left if each.workload else 0)
        if each.workload:
            pairs[of.name, each.workload] += each.count
    assert gpus == {row.gpu: row.online.count for row in rows if row.online.count}
    assert pairs == dict(plan.counts)
    for gpus_of in problem.online:
        wanted = plan.counts.get((gpus_of.name, gpus_of.running), 0) if gpus_of.running else 0
        assert stays[gpus_of.name] == wanted


@pytest.mark.parametrize("case", few(3, [(s, t) for s in range(20) for t in (1, 2, 5)]))
def test_the_true_value_is_between_two_certified_ones_that_are_near_each_other(
    case: tuple[int, int],
) -> None:
    seed, step = case
    gpus, work = single_gpus(60, 5, seed)
    problem = ColocationProblem(online=gpus, offline=work, weights=falling)
    both = buckets(online=gpus, offline=work, weights=falling, step=step)
    up, true, down = colocate(both.up), colocate(problem), colocate(both.down)
    assert (up.gap, true.gap, down.gap) == (0, 0, 0)
    assert up.value <= true.value <= down.upper_bound
    # 0.5 to 1.02 % at whole per cent, of 600 GPUs and 10 classes drawn like this
    assert 100 * (down.upper_bound - up.value) <= 2 * step * down.upper_bound
    assert len(both.up.online) < len(problem.online)
    assert sum(each.count for each in both.up.online) == 60


def test_only_activities_are_rounded_and_weights_that_rise_with_them_are_refused() -> None:
    online = [
        OnlineClass("gpu", count=2, sm_activity="20.5"),
        OnlineClass("gpu", count=3, sm_activity="20.7"),
        OnlineClass("gpu", count=4, sm_activity="20.7", model="bert"),
    ]
    both = buckets(online=online, offline=[], weights=lambda *_: 1)
    assert [(each.name, each.count) for each in both.up.online] == [
        ("gpu 21%", 5), ("gpu 21%, bert", 4)
    ]  # fmt: skip
    assert [each.sm_activity for each in both.down.online] == [20, 20]
    work = [OfflineClass("w", count=1)]
    for how, words in (
        ({}, "'w' beside 'gpu 20.5%' is worth 20500, and 21000"),
        ({"step": 0}, "0"),
    ):
        said = refusal(
            InvalidProblem, buckets, online=online, offline=work,
            weights=lambda gpu, _: int(1000 * gpu.sm_activity), **how,
        )  # fmt: skip
        assert words in said
