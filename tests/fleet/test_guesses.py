"""What a device plug-in does not tell: nothing is made up of it, and nothing of another's goes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cms.errors import InvalidProblem
from cms.fleet import gpu
from cms.fleet.deployment import (
    WHOLE,
    Deployment,
    FleetGpu,
    FleetNode,
    Instance,
    Kind,
    Mode,
    Placed,
    Seen,
    State,
    Unplaceable,
    difference,
    place,
)
from cms.fleet.deployment.export import ExportOptions, export
from cms.fleet.deployment.labels import point_label
from cms.fleet.deployment.observation.facts import GpuFacts, NodeFacts, PodFacts, Statement
from cms.fleet.deployment.observation.merge import merge
from cms.fleet.deployment.observation.owners import release
from cms.fleet.deployment.verifying import settle_guesses, verify
from cms.fleet.serving import RULES

from .deployments import SERVICES, point, wanted_for

A100, H100 = gpu("a100-80gb"), gpu("h100-80gb")
CHAT, CODE = (point(name, A100.key, "1g.10gb") for name in ("chat", "code"))


def on(*instances: Instance, seen: Seen = Seen.SEEN) -> Deployment:
    card = FleetGpu("a", 0, A100, instances=instances, seen=seen)
    return Deployment((FleetNode("a", (card,)),), SERVICES, RULES["half"])


def guessed(*instances: Instance) -> tuple[Instance, ...]:
    return tuple(replace(each, is_guessed=True) for each in instances)


CHAT_0, CODE_1 = Instance("1g.10gb", 0, CHAT), Instance("1g.10gb", 1, CODE)
CODE_0, CHAT_1 = Instance("1g.10gb", 0, CODE), Instance("1g.10gb", 1, CHAT)
IDLE_0, IDLE_1 = Instance("1g.10gb", 0), Instance("1g.10gb", 1)


def test_what_a_plug_in_does_not_tell_is_no_difference() -> None:
    target = on(CHAT_0, CODE_1)
    seen = settle_guesses(on(*guessed(CODE_0, CHAT_1)), target)
    assert difference(seen, target).is_empty
    assert not verify(on(*guessed(CODE_0, CHAT_1)), target)
    assert len(verify(on(CODE_0, CHAT_1), target)) == 2
    (fault,) = verify(on(*guessed(IDLE_0, CHAT_1)), target)
    assert str(fault) == f"a/0 has 1g.10gb@1 idle, needs {CODE_1}"


@pytest.mark.parametrize(
    ("there", "says"),
    [
        ((CODE, CHAT), None),
        ((None, CHAT), f"a/0 has 1 x 1g.10gb idle, needs 1 x 1g.10gb {CODE}"),
        ((CHAT, CHAT), f"a/0 has 1 x 1g.10gb {CHAT}, needs 1 x 1g.10gb {CODE}"),
    ],
)
def test_where_only_counts_are_known_what_they_do_is_compared(
    there: tuple[object, ...], says: str | None
) -> None:
    held = (Instance("1g.10gb", None, work) for work in there)  # type: ignore[arg-type]
    faults = verify(on(*held, seen=Seen.UNKNOWN), on(CHAT_0, CODE_1))
    assert [*map(str, faults)] == ([] if says is None else [says])


def test_where_only_counts_are_known_it_has_to_run_and_may_be_unknown() -> None:
    starting = Instance("1g.10gb", None, CHAT, state=State.STARTING)
    (fault,) = verify(on(starting, seen=Seen.UNKNOWN), on(CHAT_0))
    assert fault.kind == "state"
    unknown = Instance("1g.10gb", None, owner="unknown")
    assert not verify(on(unknown, unknown, seen=Seen.UNKNOWN), on(CHAT_0, CODE_1))


def test_one_label_stands_for_a_point_of_each_type_of_gpu() -> None:
    faster = replace(CHAT.point, device=H100.key, throughput_rps=CHAT.point.throughput_rps * 2)
    fast = replace(CHAT, point=faster, supply_rps=faster.throughput_rps)
    nodes = (
        FleetNode("a", (FleetGpu("a", 0, A100, instances=(CHAT_0,)),)),
        FleetNode("h", (FleetGpu("h", 0, H100, instances=(replace(CHAT_0, work=fast),)),)),
    )
    known = Deployment(nodes, SERVICES, RULES["half"])
    told = []
    for node, card, work in (("a", A100, CHAT), ("h", H100, fast)):
        mig, product = Statement("on", "k.json"), Statement(card.key, "k.json")
        held = GpuFacts(0, "k.json", product=product, mig=mig, counts={"1g.10gb": 1})
        theirs = (PodFacts(f"p/{node}", "", ("1g.10gb",), "chat", point_label(work)),)
        told.append(NodeFacts("k.json", Statement(node, "k.json"), gpus=(held,), pods=theirs))
    found = merge(told, known).deployment
    assert [each.work for _, each in found.instances()] == [CHAT, fast]


# --- what may be another's ------------------------------------------------------------------------

THEIRS_0 = Instance("1g.10gb", 0, owner="pod team-x/a")
#: Which of the two is theirs, nobody knows.
NOW = on(*guessed(THEIRS_0, CHAT_1))


@pytest.mark.parametrize("target", ["nvidia-smi", "mig-parted", "gpu-operator", "slurm"])
def test_no_script_takes_away_what_may_be_anothers(target: str) -> None:
    with pytest.raises(InvalidProblem, match="pod team-x/a"):
        export(on(THEIRS_0), target, ExportOptions(NOW))
    assert export(on(THEIRS_0, IDLE_1), target, ExportOptions(NOW)).files
    certain = release(NOW, "a/0:1")
    if target == "nvidia-smi":
        assert export(on(THEIRS_0), target, ExportOptions(certain)).files


def put(now: Deployment, **counts: str) -> Placed | Unplaceable:
    """One instance of a service on a profile, on one GPU."""
    kinds = {Kind(A100.key, p, point(name, A100.key, p)): 1 for name, p in counts.items()}
    return place(wanted_for(kinds, {A100.key: 1}), now)


def test_a_plan_leaves_it_cut_and_uses_it() -> None:
    found = put(NOW, code="1g.10gb")
    assert isinstance(found, Placed)
    assert [*map(str, found.deployment.gpus())] == [
        f"a/0 a100-80gb: {THEIRS_0}, {replace(CODE_1, is_guessed=True)}"
    ]
    assert isinstance(put(NOW, chat="7g.80gb"), Unplaceable)
    nothing = put(NOW)
    assert isinstance(nothing, Placed)
    assert [each.place for _, each in nothing.deployment.instances()] == ["1g.10gb@0", "1g.10gb@1"]


def test_new_work_goes_to_what_runs_before_what_is_hollow() -> None:
    """Both stay, since either may be another's; the hollow one starts lower."""
    hollow = Instance("1g.10gb", 1, state=State.HOLLOW)
    found = put(on(*guessed(THEIRS_0, hollow, Instance("1g.10gb", 2))), code="1g.10gb")
    assert isinstance(found, Placed)
    works = [each.place for _, each in found.deployment.instances() if each.work is not None]
    assert works == ["1g.10gb@2"]


def test_a_whole_gpu_that_may_be_anothers_is_not_cut() -> None:
    """Of two whole GPUs a pod of another has one: nobody knows which."""
    gpus = tuple(GpuFacts(index, "k.json", mig=Statement("off", "k.json")) for index in range(2))
    told = NodeFacts(
        "k.json", Statement("a", "k.json"), product=Statement(A100.key, "k.json"), gpus=gpus,
        pods=(PodFacts("team-x/a", "k.json", (WHOLE,), None, None),),
    )  # fmt: skip
    now = merge([told], on()).deployment
    assert [each.is_guessed for _, each in now.instances()] == [True, True]
    assert isinstance(put(now, chat="3g.40gb"), Unplaceable)
    found = put(now, chat=WHOLE)
    assert isinstance(found, Placed)
    first, second = found.deployment.gpus()
    assert (first.mode, second.mode) == (Mode.WHOLE, Mode.WHOLE)
    assert [each.is_guessed for each in second.instances if each.work] == [True]
    without = Deployment((replace(now.nodes[0], gpus=(first, replace(second, instances=()))),))
    assert not verify(now, without)
