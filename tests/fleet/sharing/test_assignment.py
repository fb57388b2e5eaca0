"""Plans for named GPUs: every row gets what it counts, and a second look finds what is wrong."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.fleet.sharing import (
    Assigned,
    NamedGpus,
    OfflineClass,
    OnlineClass,
    SharingProblem,
    assign,
    assignment_faults,
    share,
)
from cms.fleet.sharing.bucketing import merged
from tests.property.problems import share as share_of_examples


def online(count: int, activity: int, running: str | None) -> OnlineClass:
    return OnlineClass("a30", count=count, sm_activity=activity, running=running)


@st.composite
def fleets(draw: Any) -> tuple[SharingProblem, list[NamedGpus]]:
    kinds = st.tuples(
        st.integers(0, 4), st.sampled_from([10, 50, 95]), st.sampled_from([None, "f0", "f1"])
    )
    rows = [
        NamedGpus(f"n{i}", online(*kind))
        for i, kind in enumerate(draw(st.lists(kinds, min_size=1, max_size=8)))
    ]
    classes = merged([row.online for row in rows])[0]
    weight = st.integers(-1, 9)
    weights = [[draw(weight), draw(weight)] for _ in classes]
    work = [OfflineClass(f"f{k}", count=draw(st.integers(0, 9))) for k in range(2)]
    return SharingProblem(online=classes, offline=work, weights=weights), rows


@share_of_examples(2)
@given(fleets())
def test_rows_get_what_the_plan_has_and_who_runs_already_stays(
    made: tuple[SharingProblem, list[NamedGpus]],
) -> None:
    problem, rows = made
    plan = share(problem).plan
    assigned = assign(problem, plan, rows)
    assert list(assignment_faults(problem, plan, rows, assigned)) == []
    for gpus in problem.online:
        stays = plan.counts.get((gpus.name, gpus.running), 0) if gpus.running else 0
        names = {row.gpu for row in rows if row.online.name == gpus.name}
        assert sum(each.count for each in assigned if each.stays and each.gpu in names) == stays


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda a: [*a, Assigned("x", None, 0, 1, False)], "GPU 'x'"),
        (lambda a: a[1:], "GPU 'n0' has 0 entries"),
        (lambda a: [a[0]._replace(count=1), *a[1:]], "GPU 'n0' has 1 entries"),
        (lambda a: [a[0]._replace(share=79), *a[1:]], "a share of 79 %"),
        (lambda a: [a[0]._replace(stays=True), *a[1:]], "stays: True"),
        (lambda a: [a[0]._replace(workload=None, share=0), *a[1:]], "'f0' on 'a30 10%' has 0 GPUs"),
    ],
)
def test_what_is_wrong_with_an_assignment_is_said(change: Any, words: str) -> None:
    rows = [NamedGpus("n0", online(2, 10, None)), NamedGpus("n1", online(3, 50, "f0"))]
    problem = SharingProblem(
        online=[row.online for row in rows],
        offline=[OfflineClass("f0", count=2)],
        weights=[[9], [5]],
    )
    plan = share(problem).plan
    assigned = list(assign(problem, plan, rows))
    assert list(assignment_faults(problem, plan, rows, assigned)) == []
    faults = [str(fault) for fault in assignment_faults(problem, plan, rows, change(assigned))]
    assert any(words in fault for fault in faults), faults
