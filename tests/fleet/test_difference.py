"""What has to happen on each GPU for one deployment to become another."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from cms.errors import InvalidProblem
from cms.fleet import gpu
from cms.fleet.deployment import (
    WHOLE,
    Deployment,
    FleetGpu,
    FleetNode,
    Instance,
    Mode,
    Seen,
    State,
    difference,
)
from cms.fleet.serving import RULES
from tests.property.problems import share

from .deployments import SERVICES, deployments, point

A100 = gpu("a100-80gb")
CHAT, CODE = (point(name, A100.key, "3g.40gb") for name in ("chat", "code"))


def on(*instances: Instance, mode: Mode = Mode.MIG, uuid: str | None = None) -> Deployment:
    card = FleetGpu("a", 0, A100, mode, instances, uuid)
    return Deployment((FleetNode("a", (card,)),), SERVICES, RULES["half"])


def held(deployment: Deployment) -> int:
    """How many instances there are: a whole GPU that nothing works on has none."""
    every = (each for _, each in deployment.instances())
    return sum(each.profile != WHOLE or bool(each.work or each.owner) for each in every)


@given(deployments())
def test_nothing_happens_between_equal_deployments(deployment: Deployment) -> None:
    found = difference(deployment, deployment)
    assert found.is_empty
    counts = found.counts
    assert counts.get("kept", 0) + counts.get("foreign", 0) == held(deployment)


@share(4)
@given(deployments(), deployments())
def test_what_is_kept_made_and_gone_adds_up(one: Deployment, other: Deployment) -> None:
    same = [node for node in one.nodes if node.name in {n.name for n in other.nodes}]
    if [[c.gpu.key for c in n.gpus] for n in same] != [
        [c.gpu.key for c in other.node(n.name).gpus] for n in same
    ]:
        return
    found = difference(one, other).counts
    there, then = held(one), held(other)
    stays = sum(found.get(what, 0) for what in ("kept", "restarted", "foreign"))
    assert stays + found.get("deleted", 0) == there
    assert stays + found.get("created", 0) == then
    every = [each for side in (one, other) for _, each in side.instances()]
    if all(each.state in (State.RUNNING, State.STARTING) for each in every):
        # what is hollow is made anew, what drains goes: neither is so the other way round
        back = difference(other, one).counts
        assert back.get("created", 0) == found.get("deleted", 0)


def test_other_work_in_the_same_place_is_a_restart() -> None:
    (found,) = difference(on(Instance("3g.40gb", 4, CHAT)), on(Instance("3g.40gb", 4, CODE))).gpus
    assert [(before.work, after.work) for before, after in found.restarted] == [(CHAT, CODE)]
    assert not found.is_cut_anew


def test_a_hollow_instance_is_made_anew() -> None:
    hollow = on(Instance("3g.40gb", 4, state=State.HOLLOW))
    (found,) = difference(hollow, on(Instance("3g.40gb", 4, CHAT))).gpus
    assert (len(found.deleted), len(found.created), len(found.restarted)) == (1, 1, 0)


def test_shares_of_one_size_are_counted_not_matched_by_place() -> None:
    share = point("chat", A100.key, "mps:40")
    two = on(Instance("mps:40", None, share), Instance("mps:40", None, share), mode=Mode.MPS)
    one = on(Instance("mps:40", None, share), mode=Mode.MPS)
    (found,) = difference(two, one).gpus
    assert (len(found.kept), len(found.deleted)) == (1, 1)


def test_a_mode_that_changes_touches_the_gpu() -> None:
    assert not difference(on(), on(mode=Mode.WHOLE)).is_empty
    cut = on(Instance("3g.40gb", 4))
    assert [each.changes_mode for each in difference(on(mode=Mode.WHOLE), cut).gpus] == [True]


def test_a_gpu_on_which_nothing_is_to_be_keeps_its_mode() -> None:
    assert difference(on(mode=Mode.WHOLE), on()).is_empty
    (left,) = difference(on(Instance("whole"), mode=Mode.WHOLE), on()).gpus
    assert not left.changes_mode


@pytest.mark.parametrize(
    ("now", "then", "says"),
    [
        (on(uuid="GPU-1"), on(uuid="GPU-2"), "GPU with UUID GPU-1 in the one"),
        (on(Instance("3g.40gb")), on(), "starts of the instances on a/0 are not known"),
    ],
)
def test_what_cannot_be_compared(now: Deployment, then: Deployment, says: str) -> None:
    cards = {("a", 0): replace(now.node("a").gpus[0], seen=Seen.UNKNOWN)}
    with pytest.raises(InvalidProblem, match=says):
        difference(now.with_gpus(cards), then)


def test_what_drains_goes_and_is_started_again_where_it_is_to_stay() -> None:
    chat = Instance("3g.40gb", 4, CHAT)
    leaving = replace(chat, state=State.DRAINING)
    (again,) = difference(on(leaving), on(chat)).gpus
    assert (again.kept, again.restarted) == ((), ((leaving, chat),))
    (gone,) = difference(on(leaving), on()).gpus
    assert gone.deleted == (leaving,)
    assert difference(on(leaving), on(leaving)).is_empty
    others = replace(leaving, work=None, owner="pod team-x/a")
    assert difference(on(others), on(replace(others, state=State.RUNNING))).is_empty


def test_a_whole_gpu_without_work_is_empty() -> None:
    assert difference(on(Instance(WHOLE), mode=Mode.WHOLE), on(mode=Mode.WHOLE)).is_empty
