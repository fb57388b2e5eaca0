"""Activities in whole steps: both certified values are around the true one, and near it."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from cms.errors import InvalidProblem
from cms.fleet.sharing import OfflineClass, OnlineClass, SharingProblem, buckets, share
from tests.samples import few, refusal


def gpus(activities: list[Fraction]) -> list[OnlineClass]:
    return [
        OnlineClass("gpu", count=1, sm_activity=a, name=f"gpu{i}") for i, a in enumerate(activities)
    ]


def weight(gpu: OnlineClass, work: OfflineClass) -> int | None:
    """What falls with activity: by the share, and by how much the model minds."""
    demand, sensitivity = (int(part) for part in work.model.split("-"))
    share = max(Fraction(0), 90 - gpu.sm_activity)
    fast = min(Fraction(1), share / demand) * (1 - sensitivity * gpu.sm_activity / 10_000)
    return int(10**6 * fast) if share else None


@pytest.mark.parametrize("case", few(3, [(s, t) for s in range(20) for t in (1, 2, 5)]))
def test_the_true_value_is_between_two_certified_ones_that_are_near_each_other(
    case: tuple[int, int],
) -> None:
    seed, step = case
    rng = random.Random(seed)
    activities = [Fraction(int(10_000 * rng.betavariate(2, 6)), 100) for _ in range(60)]
    activities = [a if a == 0 or a >= 1 else Fraction(1) for a in activities]
    work = [
        OfflineClass(f"w{j}", count=15, model=f"{rng.randint(10, 100)}-{rng.randint(0, 60)}")
        for j in range(5)
    ]
    problem = SharingProblem(online=gpus(activities), offline=work, weights=weight)
    both = buckets(online=gpus(activities), offline=work, weights=weight, step=step)
    up, true, down = share(both.up), share(problem), share(both.down)
    assert (up.gap, true.gap, down.gap) == (0, 0, 0)
    assert up.value <= true.value <= down.upper_bound
    # 0.5 to 1.02 % at whole per cent, of 600 GPUs and 10 classes drawn like this
    assert 100 * (down.upper_bound - up.value) <= 2 * step * down.upper_bound
    assert len(both.up.online) < len(problem.online)
    assert sum(each.count for each in both.up.online) == 60


def test_weights_that_rise_with_activity_are_refused_by_name() -> None:
    def rising(gpu: OnlineClass, work: OfflineClass) -> int:
        return int(1000 * gpu.sm_activity)

    words = refusal(
        InvalidProblem,
        lambda: buckets(
            online=gpus([Fraction(41, 2)]), offline=[OfflineClass("w", count=1)], weights=rising
        ),
    )
    assert words == (
        "'w' beside 'gpu 20.5%' is worth 20500, and 21000 with its activity rounded up; roundings "
        "prove nothing where weights rise with activity"
    )


def test_what_differs_in_more_than_its_activity_stays_apart() -> None:
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
    with pytest.raises(InvalidProblem, match="step is 0; expected a whole number >= 1"):
        buckets(online=online, offline=[], weights=lambda *_: 1, step=0)
