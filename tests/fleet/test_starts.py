"""Where the instances of a plan's GPUs start."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.errors import InvalidSchedule
from cms.fleet.hardware import gpu, gpus
from cms.fleet.report.bars import plan_bars
from cms.fleet.serving.starts import layout_of, placed_instances
from tests.fleet.plans import A100, NASTY, mixed_plan


def test_each_instance_of_a_group_has_a_start_the_first_of_the_group_first() -> None:
    plan = mixed_plan()
    small, halves = (placed_instances(gpu(A100), group) for group in plan.groups)
    served = [[one.service for one in instances.serves] for _, instances in small]
    assert served == [["chat"]] * 4 + [[NASTY]] + [[]] * 2
    assert [str(place) for place, _ in halves] == ["2g.20gb@0", "2g.20gb@2", "3g.40gb@4"]
    assert [[one.service for one in own.serves] for _, own in halves] == [[NASTY], [], ["chat"]]


def test_a_picture_shows_the_instances_where_they_start() -> None:
    plan = mixed_plan()
    placed = {
        tuple((place.profile, place.start) for place, _ in placed_instances(gpu(A100), group))
        for group in plan.groups
    }
    bars = [bar for part in plan_bars(plan) for bar in part.bars]
    drawn = {tuple((box.profile, box.start) for box in bar.boxes if box.profile) for bar in bars}
    assert drawn == placed


@given(st.data())
def test_the_choice_is_a_layout_and_the_same_for_any_order(data: st.DataObject) -> None:
    device = data.draw(st.sampled_from(gpus()))
    counts = dict(data.draw(st.sampled_from(device.multisets())))
    layout = layout_of(device, counts)
    assert device.is_layout(layout)
    assert layout == device.layouts_of(counts)[0]
    assert layout == layout_of(device, dict(data.draw(st.permutations(list(counts.items())))))


def test_what_has_no_place_is_refused_with_the_reason() -> None:
    with pytest.raises(
        InvalidSchedule, match=r"no place: 2 x 4g\.40gb: at most 1 on one a100-80gb"
    ):
        layout_of(gpu(A100), {"4g.40gb": 2})
