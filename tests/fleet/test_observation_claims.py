"""Claims say exactly who holds what, and what was exported and runs is observed as it was meant."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given

from cms.errors import FileError
from cms.fleet.deployment import WHOLE, Deployment, FleetNode, Mode, State
from cms.fleet.deployment.export import export
from cms.fleet.deployment.export.advertised import resource_of
from cms.fleet.deployment.observation.facts import GpuFacts, InstanceFacts, NodeFacts, Stated
from cms.fleet.deployment.observation.merge import merge
from tests.property.problems import share

from .cluster import (
    CHAT,
    ELSEWHERE,
    HIGH,
    LOW,
    OURS,
    WHOLE_GPU,
    Object,
    claim,
    claiming,
    device,
    known,
    node,
    pod,
    slices,
    told,
)
from .deployments import deployments
from .export.manifests import applied, env_of, pod_of

# --- claims ---------------------------------------------------------------------------------------


def test_claims_say_exactly_which_and_slices_what_there_is() -> None:
    facts = told(
        node("a", {}), slices(LOW, HIGH, WHOLE_GPU), claim("c-1", HIGH["name"]),
        claim("c-2", "gpu-1"), claiming("chat-1", "c-1"),
        claiming("chat-2", "c-2", metadata={"labels": {}}),
        ELSEWHERE,
    )  # fmt: skip
    found = merge(facts, known())
    first, second = found.deployment.gpus()
    assert [(i.start, i.work, i.uuid) for i in first.instances] == [
        (0, None, "MIG-0"), (4, CHAT, "MIG-4"),
    ]  # fmt: skip
    assert (first.uuid, second.uuid, second.mode) == ("GPU-0", "GPU-1", Mode.WHOLE)
    assert [(i.profile, i.owner) for i in second.instances] == [("whole", "pod prod/chat-2")]
    assert found.deployment.nodes[0].driver == "550.54.15"
    assert not found.warnings


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (device("gpu-0", uuid="- off off no"), "UUID of a/0 is '- off off no'"),
        ({**LOW, "attributes": {**LOW["attributes"], "uuid": {"string": "no"}}}, "3g.40gb is 'no'"),
    ],
)
def test_what_is_no_uuid_is_not_taken_for_one(one: Object, said: str) -> None:
    with pytest.raises(FileError, match=said):
        merge(told(node("a", {}), slices(one), ELSEWHERE), known())


def test_of_the_devices_that_a_driver_could_make_those_given_are_there() -> None:
    possible = [
        device(each["name"], True, profile="3g.40gb", parentUUID="GPU-0") for each in (LOW, HIGH)
    ]
    whole = device("gpu-0", True, uuid="GPU-0")
    objects = [node("a", {}), slices(whole, *possible), ELSEWHERE]
    given = [claim("c-1", HIGH["name"]), claiming("chat-1", "c-1")]
    (card,) = merge(told(*objects, *given), known()).deployment.gpus()
    assert [(i.place, i.work) for i in card.instances] == [("3g.40gb@4", CHAT)]
    claims = [claim("c-1", HIGH["name"], pods=("chat-1",))]
    (card,) = merge(told(*objects[:-1], *claims)).deployment.gpus()
    assert [i.place for i in card.instances] == ["3g.40gb@4"], "pods were not asked for"
    with pytest.raises(FileError, match="no claim or pod is told of"):
        told(*objects[:-1])


@pytest.mark.parametrize(("listed_whole", "mode"), [(True, Mode.WHOLE), (False, Mode.MIG)])
def test_a_gpu_that_its_driver_may_cut_and_nobody_holds_is_free(
    listed_whole: bool, mode: Mode
) -> None:
    """An A100 with MIG on is not listed as a whole, since only a reset would switch MIG off."""
    parts = [
        device(each["name"], True, profile="3g.40gb", parentUUID="GPU-0") for each in (LOW, HIGH)
    ]
    whole = [device("gpu-0", True, uuid="GPU-0")] if listed_whole else []
    counters = slices()  # as they come from Kubernetes 1.35 on: apart from the devices
    counters["metadata"]["name"], counters["spec"]["pool"]["resourceSliceCount"] = "counters", 2
    counters["spec"]["sharedCounters"] = [{"name": "gpu-0-counter-set", "counters": {}}]
    objects = [node("a", {}), slices(*whole, *parts, count=2), counters, ELSEWHERE]
    found = merge(told(*objects)).deployment
    (card,) = found.gpus()
    assert (card.mode, card.instances, card.uuid) == (mode, (), "GPU-0")
    assert found.free_gpus() == (card,)
    switched = GpuFacts(0, "L", mig=Stated("on", "L"))
    listing = NodeFacts("L", Stated("a", ""), gpus=(switched,))
    (card,) = merge([*told(*objects), listing]).deployment.gpus()
    assert (card.mode, card.instances) == (Mode.MIG, ())


def test_devices_that_are_kept_from_pods_are_named() -> None:
    lost = {
        **HIGH,
        "taints": [{"key": "gpu.nvidia.com/xid", "value": "79", "effect": "NoSchedule"}],
    }
    fine = {**LOW, "taints": [{"key": "gpu.nvidia.com/unmonitored", "effect": "None"}]}
    found = merge(told(node("a", {}), slices(fine, lost), ELSEWHERE))
    (said,) = [each for each in found.warnings if "taint" in each]
    assert "devices[1]: taint gpu.nvidia.com/xid=79 (NoSchedule)" in said


def test_an_older_generation_of_a_pool_is_passed_over() -> None:
    facts = told(node("a", {}), slices(LOW), slices(LOW, HIGH, generation=2))
    assert len(facts[0].gpus[0].instances or ()) == 2
    with pytest.raises(FileError, match=r"has 2 slices, of which 1 are here"):
        told(node("a", {}), slices(LOW, count=2))


def test_a_claim_without_its_pod_and_one_of_several_pods_are_anothers() -> None:
    objects = [node("a", {}), slices(LOW, HIGH), ELSEWHERE]
    found = merge(told(*objects, claim("c-1", LOW["name"], pods=("gone",))), known())
    assert [i.owner for _, i in found.deployment.instances()] == ["pod prod/gone", None]
    both = [claiming("chat-1", "c-1"), claiming("chat-2", "c-1")]
    found = merge(told(*objects, claim("c-1", LOW["name"]), *both), known())
    assert "pods prod/chat-1, prod/chat-2" in [i.owner for _, i in found.deployment.instances()]
    assert "share it in parts that are not known" in found.warnings[0]


def test_old_names_that_claims_serve_count_once() -> None:
    served = pod(metadata=OURS, status={"extendedResourceClaimStatus": {
        "resourceClaimName": "c-1",
        "requestMappings": [{"containerName": "c", "resourceName": "nvidia.com/mig-3g.40gb",
                             "requestName": "r"}],
    }})  # fmt: skip
    facts = told(node("a", {}), slices(LOW, HIGH), claim("c-1", HIGH["name"]), served, ELSEWHERE)
    assert [each.places for each in facts[0].pods or ()] == [((0, "3g.40gb", 4),)]


# --- there and back -------------------------------------------------------------------------------


def settled(deployment: Deployment) -> Deployment:
    """The same without shares, with everything that works running, and idle whole GPUs empty."""
    cards = {}
    for card in deployment.gpus():
        kept = [
            each if each.state is State.HOLLOW else replace(each, state=State.RUNNING)
            for each in card.instances
            if card.mode is Mode.MIG or (card.mode is Mode.WHOLE and (each.work or each.owner))
        ]
        mode = Mode.WHOLE if card.mode is Mode.MPS else card.mode
        cards[card.node, card.index] = card.with_instances(kept, mode)
    return deployment.with_gpus(cards)


def running(deployment: Deployment, by_claim: bool) -> list[Object]:
    """What a cluster says that runs the exported Deployments where the deployment has them."""
    made = applied(export(deployment, "dra" if by_claim else "kubernetes"))
    kinds = {tuple(sorted(env_of(_server(each)).items())): each for each in made}
    assert len(kinds) == len(made)
    objects: list[Object] = [ELSEWHERE]
    number = 0
    for each in deployment.nodes:
        held = Counter(
            resource_of(i.profile)
            for c in each.gpus if c.mode is Mode.MIG
            for i in c.instances if i.state is not State.HOLLOW
        )  # fmt: skip
        whole = {"nvidia.com/gpu": sum(c.mode is Mode.WHOLE for c in each.gpus)}
        cluster_node = node(each.name)
        cluster_node["status"]["allocatable"] = {} if by_claim else {**held, **whole}
        objects.append(cluster_node)
        listed = []
        for card in each.gpus:
            if card.mode is Mode.WHOLE:
                listed.append(device(f"gpu-{card.index}", uuid=str(card.uuid)))
            for part in card.instances:
                name = f"gpu-{card.index}"
                if part.state is State.HOLLOW:
                    continue
                if card.mode is Mode.MIG:
                    name += f"-mig-{part.profile.replace('.', '')}-0-{part.start}"
                    listed.append(device(name, profile=part.profile, parentUUID=str(card.uuid)))
                if part.work is None and part.owner is None:
                    continue
                number += 1
                new = pod(f"p-{number}", None, each.name)
                if part.work is not None:
                    wanted = {
                        "CMS_SERVICE": part.work.service, "CMS_MODEL": part.work.point.model,
                        "CMS_GPU": card.gpu.key, "CMS_PROFILE": part.profile,
                        "CMS_PROCESSES": str(part.work.point.processes),
                        "CMS_BATCH": str(part.work.point.batch),
                    }  # fmt: skip
                    new = pod_of(kinds[tuple(sorted(wanted.items()))], f"p-{number}", each.name)
                elif not by_claim:
                    of_card = "nvidia.com/gpu"
                    limits = {resource_of(part.profile) if part.start is not None else of_card: "1"}
                    new["spec"]["containers"] = [{"resources": {"limits": limits}}]
                if by_claim:
                    new["status"]["resourceClaimStatuses"] = [
                        {"name": "gpu", "resourceClaimName": f"c-{number}"}
                    ]
                    objects.append(claim(f"c-{number}", name, on=each.name))
                objects.append(new)
        if by_claim:
            objects.append(slices(*listed, on=each.name))
    return objects


def _server(deployment: Object) -> Object:
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return dict(container)


def listings(deployment: Deployment) -> list[NodeFacts]:
    """What nvidia-smi says of the nodes."""
    found = []
    for each in deployment.nodes:
        gpus = []
        for card in each.gpus:
            parts = tuple(
                InstanceFacts(i.profile, "lgi", i.start, is_hollow=i.state is State.HOLLOW)
                for i in (card.instances if card.mode is Mode.MIG else ())
            )
            mode = Stated("on" if card.mode is Mode.MIG else "off", "L")
            gpus.append(GpuFacts(card.index, "L", mig=mode, instances=parts))
        found.append(NodeFacts("lgi", Stated(each.name, "--node"), gpus=tuple(gpus)))
    return found


FLEETS = deployments(most_nodes=2, most_gpus=2, keys=("a100-80gb",))


@share(3)
@given(FLEETS)
def test_what_is_exported_and_runs_is_observed_by_node_and_kind(deployment: Deployment) -> None:
    meant = settled(deployment)
    meant = replace(meant, nodes=tuple(each for each in meant.nodes if each.gpus))
    found = merge([*listings(meant), *told(*running(meant, by_claim=False))], meant).deployment
    assert found.kinds() == meant.kinds()
    for before, after in zip(meant.nodes, found.nodes, strict=True):
        assert [card.layout for card in before.gpus] == [card.layout for card in after.gpus]
        assert held_on(before) == held_on(after)


def held_on(each: FleetNode) -> Counter[object]:
    """What a node's instances do; an uncut GPU that may be another's counts as a free one."""
    return Counter(
        (i.profile, i.work, i.owner is not None)
        for card in each.gpus
        for i in card.instances
        if i.profile != WHOLE or i.work or i.owner
    )


@share(3)
@given(FLEETS)
def test_with_claims_it_is_observed_in_its_very_places(deployment: Deployment) -> None:
    meant = settled(deployment)
    meant = meant.with_gpus({
        (card.node, card.index): card.with_instances(
            i for i in card.instances if i.state is not State.HOLLOW
        )
        for card in meant.gpus()
    })  # fmt: skip
    nodes = [
        replace(each, gpus=tuple(c for c in each.gpus if c.instances or c.mode is Mode.WHOLE))
        for each in meant.nodes
    ]  # of a GPU that is cut into nothing no slice tells
    meant = replace(meant, nodes=tuple(each for each in nodes if each.gpus))
    found = merge(told(*running(meant, by_claim=True)), meant).deployment
    for before, after in zip(meant.gpus(), found.gpus(), strict=True):
        assert (before.name, before.uuid, before.mode) == (after.name, after.uuid, after.mode)
        assert [(i.place, i.work, i.owner is None) for i in before.instances] == [
            (i.place, i.work, i.owner is None) for i in after.instances
        ]
