"""Activities in whole steps: both certified values are around the true one, and near it."""

from __future__ import annotations

import pytest

from bench.sharing_figures.matching import falling, single_gpus
from cms.errors import InvalidProblem
from cms.fleet.sharing import OfflineClass, OnlineClass, SharingProblem, buckets, share
from tests.samples import few, refusal


@pytest.mark.parametrize("case", few(3, [(s, t) for s in range(20) for t in (1, 2, 5)]))
def test_the_true_value_is_between_two_certified_ones_that_are_near_each_other(
    case: tuple[int, int],
) -> None:
    seed, step = case
    gpus, work = single_gpus(60, 5, seed)
    problem = SharingProblem(online=gpus, offline=work, weights=falling)
    both = buckets(online=gpus, offline=work, weights=falling, step=step)
    up, true, down = share(both.up), share(problem), share(both.down)
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
