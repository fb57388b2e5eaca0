"""What stays, at most and where; what a device plug-in does not tell, so that none is guessed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.changes import DRAWN, change_of
from cms.errors import InvalidCertificate, InvalidProblem
from cms.fleet import get_gpu
from cms.fleet.deployment import (
    Deployment,
    DesiredState,
    FleetGpu,
    FleetNode,
    Instance,
    Mode,
    StartSource,
    State,
    difference,
)
from cms.fleet.deployment.export import ExportOptions, export
from cms.fleet.deployment.labels import point_label
from cms.fleet.deployment.observation.facts import GpuFacts, NodeFacts, PodFacts, Statement
from cms.fleet.deployment.observation.merge import merge
from cms.fleet.deployment.verifying import settle_guesses, verify
from cms.fleet.placement import (
    PlacementConstraints,
    PlacementResult,
    place,
)
from cms.fleet.placement.constraint_rows import build_demand
from cms.fleet.placement.gpu_group import group_equivalent_gpus
from cms.fleet.placement.kept_bound import Prices, best_prices, most_kept
from cms.fleet.placement.placement_model import Demand
from cms.fleet.placement.program import Limits
from cms.fleet.serving import RULES
from cms.solving.solution import Proof
from tests.property.problems import share
from tests.references.keeping import most_kept_by_cp_sat
from tests.references.placements import best_placement

from .deployments import SERVICES, deployments, kind, node_of, placed, point, promises, wanted_for

A30, A100 = "a30-24gb", "a100-80gb"
PRICES = st.fractions(0, 2, max_denominator=6)


def works(service: str, profile: str, start: int | None, key: str = A100) -> Instance:
    return Instance(profile, start, point(service, key, profile))


def asked(wanted: str, gpus: int) -> DesiredState:
    """A promise as it is written: ``chat 3g.40gb, sum 4g.40gb``."""
    return wanted_for(Counter(kind(*each.split()) for each in wanted.split(", ")), {A100: gpus})


def shown(found: PlacementResult) -> list[str]:
    return [
        " ".join(f"{e.place}={e.work.service if e.work else '-'}" for e in card.instances)
        for card in found.deployment.gpus()
    ]


def _final(wanted: DesiredState, gpus: dict[str, int]) -> Demand:
    return build_demand(replace(wanted, gpus={A30: 0} | gpus), PlacementConstraints())


@share(3)
@given(st.data())
def test_no_prices_bound_below_the_truth(data: st.DataObject) -> None:
    now = data.draw(deployments(most_nodes=2, most_gpus=1, keys=(A30,)))
    wanted = data.draw(promises(now))
    best = best_placement(now, wanted)
    if best is None:
        return
    final = _final(wanted, placed(wanted, now).gpus)
    groups = group_equivalent_gpus(now, final.numbers)
    blocks = {(kind.gpu, kind.profile): data.draw(PRICES) for kind in final.kinds}
    kinds = {number: data.draw(PRICES) for number in range(len(final.kinds))}
    gpus = {key: data.draw(PRICES) for key in final.wanted.gpus}
    assert most_kept(groups, final, Prices(kinds, blocks, gpus)) >= best[2]
    proved = best_prices(groups, final, Limits())
    assert proved is not None
    assert best[2] <= most_kept(groups, final, proved[0]) == proved[1]


@pytest.mark.parametrize(
    ("gpus", "services", "sigma", "seed"),
    [
        (8, 12, "0.1", 1),
        (10, 20, "0.3", 2),
        *(
            pytest.param(gpus, None, sigma, seed, marks=pytest.mark.long)
            for gpus in (20, 25, 50)
            for sigma in ("0.1", "0.3", "1.0")
            for seed in range(1000, 1004)
        ),
    ],
)
def test_as_much_is_kept_as_by_cp_sat(
    gpus: int, services: int | None, sigma: str, seed: int
) -> None:
    now, wanted = change_of(DRAWN, gpus=gpus, n=services, sigma=sigma, seed=seed)
    found = placed(wanted, now)
    least, most = most_kept_by_cp_sat(now, wanted)
    assert least <= found.kept <= most
    assert services is None or least == most


def test_the_bound_is_what_makes_a_proof() -> None:
    # Both layouts keep one of two: prices say so, without any search.
    held = (works("chat", "3g.40gb", 0), works("chat", "1g.10gb", 4))
    both = asked("chat 3g.40gb, chat 3g.40gb, chat 1g.10gb", 1)
    assert not isinstance(place(both, node_of(held)), PlacementResult)
    found = placed(asked("chat 3g.40gb, chat 3g.40gb", 1), node_of(held))
    assert (found.kept, found.running, found.most_kept) == (1, 2, 1)
    assert found.proof is Proof.CHECKED
    assert str(found).splitlines()[1] == ("1 of 2 running instances kept (maximum, proof checked)")
    now = node_of((works("chat", "1g.10gb", 0), works("code", "1g.10gb", 6)))
    found = placed(asked("chat 1g.10gb, code 1g.10gb, sum 4g.40gb", 1), now)
    assert (found.kept, found.most_kept, found.proof) == (1, 1, Proof.CHECKED)
    with pytest.raises(InvalidCertificate, match="price of 0 is -1; expected no negative"):
        Prices({0: Fraction(-1)}, {}, {})


CHAT_AND_CODE = (works("chat", "3g.40gb", 4), works("code", "2g.20gb", 0))
LEAVING = Instance("3g.40gb", 4, point("chat", A100, "3g.40gb"), state=State.DRAINING)
UNSEEN = works("chat", "2g.20gb", None), works("code", "2g.20gb", None)


@pytest.mark.parametrize(
    ("now", "wanted", "gpus", "then"),
    [  # the longest run stays free
        (node_of((works("chat", "1g.10gb", 5),)), "chat 1g.10gb, code 1g.10gb", 1,
         ["1g.10gb@5=chat 1g.10gb@6=code"]),
        (node_of((LEAVING,)), "chat 3g.40gb", 1, ["3g.40gb@4=chat"]),
        (node_of((Instance("mps:40", owner="x"), works("chat", "mps:50", None)), (), mode=Mode.MPS),
         "chat mps:50, code mps:20", 2, ["mps:40=- mps:50=chat", "mps:20=code"]),
        # where starts are not known a GPU stays as cut, and another is cut
        (node_of((*UNSEEN, Instance("1g.10gb", owner="unknown")), ()), "chat 2g.20gb, sum 3g.40gb",
         2, ["1g.10gb=- 2g.20gb=- 2g.20gb=chat", "3g.40gb@0=sum"]),
    ],
)  # fmt: skip
def test_new_instances_run_at_observed_places_that_leave_the_most_room(
    now: Deployment, wanted: str, gpus: int, then: list[str]
) -> None:
    found = placed(asked(wanted, gpus), now)
    assert (shown(found), found.more_gpus) == (then, {})
    states = {each.state for _, each in found.deployment.instances() if each.work}
    assert states == {State.RUNNING}
    for card in found.deployment.gpus():
        if card.instances and all(each.start is not None for each in card.instances):
            assert card.start_source is StartSource.OBSERVED


def test_old_drivers_and_tools_that_cut_whole_gpus_bound_what_stays() -> None:
    old = FleetNode("a", (FleetGpu("a", 0, get_gpu(A100)),), driver="470.82")
    new = FleetNode("b", (FleetGpu("b", 0, get_gpu(A100)),), driver="550.54")
    found = placed(asked("chat 1g.20gb, code 1g.10gb", 1), Deployment((old, new)))
    assert shown(found) == ["", "1g.20gb@0=chat 1g.10gb@2=code"]
    now = node_of(CHAT_AND_CODE, ())
    for wanted, gpus, kept, then in (
        ("chat 3g.40gb, sum 4g.40gb", 1, 0, None),
        ("chat 3g.40gb, sum 4g.40gb", 2, 1, ["2g.20gb@0=- 3g.40gb@4=chat", "4g.40gb@0=sum"]),
        ("chat 3g.40gb, sum 2g.20gb", 1, 1, ["2g.20gb@0=sum 3g.40gb@4=chat", ""]),
    ):
        some = replace(asked(wanted, gpus), budget=(Fraction(gpus), gpus))
        found = placed(some, now, whole_gpus=True)
        assert (found.kept, then or shown(found)) == (kept, shown(found))


CARD, H100 = get_gpu("a100-80gb"), get_gpu("h100-80gb")
CHAT, CODE = (point(name, CARD.key, "1g.10gb") for name in ("chat", "code"))


def guessed(*instances: Instance) -> tuple[Instance, ...]:
    return tuple(replace(each, is_guessed=True) for each in instances)


CHAT_0, CODE_1 = Instance("1g.10gb", 0, CHAT), Instance("1g.10gb", 1, CODE)
CODE_0, CHAT_1 = Instance("1g.10gb", 0, CODE), Instance("1g.10gb", 1, CHAT)
IDLE_0, IDLE_1 = Instance("1g.10gb", 0), Instance("1g.10gb", 1)


def test_what_a_plug_in_does_not_tell_is_no_difference_if_it_runs() -> None:
    target = node_of((CHAT_0, CODE_1))
    seen = settle_guesses(node_of(guessed(CODE_0, CHAT_1)), target)
    assert difference(seen, target).is_empty
    assert not verify(node_of(guessed(CODE_0, CHAT_1)), target)
    assert len(verify(node_of((CODE_0, CHAT_1)), target)) == 2
    (fault,) = verify(node_of(guessed(IDLE_0, CHAT_1)), target)
    assert str(fault) == f"a/0 has 1g.10gb@1 idle, needs {CODE_1}"
    starting = Instance("1g.10gb", None, CHAT, state=State.STARTING)
    (fault,) = verify(node_of((starting,)), node_of((CHAT_0,)))
    assert fault.kind == "state"
    unknown = Instance("1g.10gb", None, owner="unknown")
    assert not verify(node_of((unknown, unknown)), node_of((CHAT_0, CODE_1)))


def test_one_label_stands_for_a_point_of_each_type_of_gpu() -> None:
    faster = replace(CHAT.point, device=H100.key, throughput_rps=CHAT.point.throughput_rps * 2)
    fast = replace(CHAT, point=faster, supply_rps=faster.throughput_rps)
    nodes = (
        FleetNode("a", (FleetGpu("a", 0, CARD, instances=(CHAT_0,)),)),
        FleetNode("h", (FleetGpu("h", 0, H100, instances=(replace(CHAT_0, work=fast),)),)),
    )
    known = Deployment(nodes, SERVICES, RULES["half"])
    told = []
    for node, card, work in (("a", CARD, CHAT), ("h", H100, fast)):
        mig, product = Statement("on", "k.json"), Statement(card.key, "k.json")
        held = GpuFacts(0, "k.json", product=product, mig=mig, counts={"1g.10gb": 1})
        theirs = (PodFacts(f"p/{node}", "", ("1g.10gb",), "chat", point_label(work)),)
        told.append(NodeFacts("k.json", Statement(node, "k.json"), gpus=(held,), pods=theirs))
    found = merge(told, known).deployment
    assert [each.work for _, each in found.instances()] == [CHAT, fast]


THEIRS_0 = Instance("1g.10gb", 0, owner="pod team-x/a")
#: Which of the two is theirs, nobody knows.
NOW = node_of(guessed(THEIRS_0, CHAT_1))


@pytest.mark.parametrize("target", ["mig-parted", "gpu-operator", "slurm"])
def test_no_script_takes_away_what_may_be_anothers(target: str) -> None:
    with pytest.raises(InvalidProblem, match="pod team-x/a"):
        export(node_of((THEIRS_0,)), target, ExportOptions(NOW))
    assert export(node_of((THEIRS_0, IDLE_1)), target, ExportOptions(NOW)).files
