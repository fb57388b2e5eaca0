"""Plans for named GPUs: every row gets what it counts, and who runs already stays."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cms.fleet.sharing import NamedGpus, OfflineClass, OnlineClass, SharingProblem, assign, share
from cms.fleet.sharing.bucketing import merged
from tests.property.problems import share as share_of_examples


@st.composite
def fleets(draw: Any) -> tuple[SharingProblem, list[NamedGpus]]:
    kinds = st.tuples(
        st.integers(0, 4), st.sampled_from([10, 50, 95]), st.sampled_from([None, "f0", "f1"])
    )
    rows = [
        NamedGpus(f"n{i}", OnlineClass("a30", count=count, sm_activity=activity, running=runs))
        for i, (count, activity, runs) in enumerate(draw(st.lists(kinds, min_size=1, max_size=8)))
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
