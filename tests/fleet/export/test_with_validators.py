"""Every exported file is what its readers take: asked of validators that did not write it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings

from cms.files.source import Source
from cms.fleet import get_gpu
from cms.fleet.deployment import (
    Deployment,
    FleetGpu,
    FleetNode,
    Mode,
    State,
    check_deployment,
)
from cms.fleet.deployment.export import ExportOptions, export
from cms.fleet.deployment.observation.facts import GpuFacts, InstanceFacts, NodeFacts, Statement
from cms.fleet.deployment.observation.kubernetes import read_kubernetes
from cms.fleet.deployment.observation.merge import merge
from cms.fleet.hardware.yaml_text import read_yaml_or_json
from tests.fleet.bridging import stand_ins
from tests.fleet.deployments import SCENARIOS, deployments, fleet, plan_of, scenario
from tests.fleet.export.cases import MIXED, body
from tests.fleet.export.manifests import applied, documents
from tests.fleet.stand_ins.kubernetes import validators
from tests.fleet.stand_ins.kubernetes.cluster import Cluster, cluster
from tests.fleet.stand_ins.kubernetes.validators import is_label_value
from tests.samples import so_many

S1 = scenario("S1", fleet(a=1, b=1))


def faults_of(deployment: Deployment, text: str, configs: Mapping[str, str]) -> list[str]:
    """What mig-parted has against a file, on nodes that are as its configurations are to say."""
    with TemporaryDirectory() as folder:
        nodes = stand_ins(Path(folder), deployment)
        ran = {
            name: nodes[name].mig_parted(["assert", "-f", "-", "-c", config], text)
            for name, config in configs.items()
        }
    assert ran.keys() == {node.name for node in deployment.nodes if node.gpus}
    return [f"{name}: {each.error}" for name, each in ran.items() if each.code]


def of_mig_parted(deployment: Deployment) -> list[str]:
    files = export(deployment, "mig-parted").files
    rows = body(files["nodes.csv"]).splitlines()[1:]
    return faults_of(deployment, files["mig-parted.yaml"], dict(row.split(",") for row in rows))


def of_the_operator(deployment: Deployment) -> list[str]:
    """The file in the ConfigMap, and the labels that choose from it."""
    files = export(deployment, "gpu-operator").files
    (config,) = documents(files["configmap.yaml"])
    line = r"^kubectl label --overwrite node (\S+) nvidia\.com/mig\.config=(\S+)$"
    chosen = dict(re.findall(line, files["labels.sh"], re.MULTILINE))
    assert all(map(is_label_value, chosen.values()))
    assert "\n  all-disabled:\n" in config["data"]["config.yaml"]
    faults = faults_of(deployment, config["data"]["config.yaml"], chosen)
    return [*validators.manifests(files["configmap.yaml"]), *faults]


def of_slurm(deployment: Deployment) -> list[str]:
    files = export(deployment, "slurm").files
    lines = "".join(text for path, text in files.items() if path.startswith("nodes/"))
    conf = files["cms-slurm.conf"] + lines
    with TemporaryDirectory() as folder:
        return validators.slurm(files["gres.conf"], conf, stand_ins(Path(folder), deployment))


def of_kubernetes(
    deployment: Deployment, target: str = "kubernetes", turned: bool = False
) -> list[str]:
    """What a cluster that is cut so takes at once, and whether each pod gets its instance."""
    written = export(deployment, target, ExportOptions(namespace="default"))
    paths = [path for path in ("device-classes.yaml", "claims.yaml") if path in written.files]
    objects = [each for path in paths for each in documents(written.files[path])]
    objects += applied(written)
    said = validators.manifests("\n---\n".join(map(json.dumps, objects)))
    wanted = Counter(
        (each.work.service, each.profile)
        for _, each in deployment.instances()
        if each.work is not None and each.is_managed and each.state is not State.DRAINING
    )
    is_cut = all(card.mode is Mode.MIG for card in deployment.gpus())
    if said or not is_cut or not all(each.is_whole for _, each in deployment.instances()):
        return said
    with TemporaryDirectory() as folder:
        nodes = {k: n for k, n in stand_ins(Path(folder), deployment).items() if n.cards}
        with cluster(Path(folder), nodes, pace=0, dra_driver=target == "dra") as c:
            c.world.nodes_reversed = c.world.devices_reversed = turned
            c.apply(*objects)
            c.settle()
            services = {
                pod["metadata"]["name"]: pod["metadata"]["labels"]["cms.service"]
                for pod in c.running()
                if "cms.service" in (pod["metadata"].get("labels") or {})
            }
            held = [(name, *at) for name in c.machines for at in c.occupants(name).items()]
            got = Counter(
                (services[pod], profile) for _, (_, profile, _), pod in held if pod in services
            )
            runs = (i.is_managed and i.state is State.RUNNING for _, i in deployment.instances())
            if all(runs) and all(card.instances for card in deployment.gpus()):
                found = seen(c, deployment)
                assert found.kinds() == deployment.kinds()
                if target == "dra":  # which says exactly which
                    works = {(g.node, g.index, i.start) for g, i in found.instances() if i.work}
                    assert works == {(name, gpu, start) for name, (gpu, _, start), _ in held}
    return [] if got == wanted else [f"{got} run of {wanted}"]


def of_dra(deployment: Deployment, turned: bool = False) -> list[str]:
    return of_kubernetes(deployment, "dra", turned)


VALIDATED = {
    "mig-parted": of_mig_parted,
    "gpu-operator": of_the_operator,
    "slurm": of_slurm,
    "kubernetes": of_kubernetes,
    "dra": of_dra,
}


SLOW = {(name, target) for name in SCENARIOS[1:] for target in ("kubernetes", "dra")}


@pytest.mark.parametrize(
    ("name", "target"),
    [
        pytest.param(name, target, marks=pytest.mark.long if (name, target) in SLOW else ())
        for name in SCENARIOS
        for target in VALIDATED
    ],
)
def test_the_files_of_the_scenarios(name: str, target: str) -> None:
    deployment = scenario(name, fleet(a=6, b=6, c=4))
    assert check_deployment(deployment) == ()
    assert VALIDATED[target](deployment) == []


@pytest.mark.parametrize("target", VALIDATED)
def test_shares_whole_gpus_and_types_without_a_number(target: str) -> None:
    """A card whose name says no type to Slurm, and one that is shared under MPS."""
    rtx = get_gpu("rtx-pro-6000-96gb")
    cards = (FleetGpu("b", 0, rtx, Mode.WHOLE), FleetGpu("b", 1, rtx))
    deployment = Deployment((*MIXED.nodes, FleetNode("b", cards)), MIXED.services)
    assert VALIDATED[target](deployment) == []


@pytest.fixture(scope="module", autouse=True)
def _cel_has_raised_its_recursion_limit() -> None:
    """It does so where it is first used, which hypothesis minds in a property."""
    assert of_dra(S1) == []


@pytest.mark.parametrize("target", VALIDATED)
@settings(max_examples=so_many(2, 10))
@given(deployment=deployments(most_nodes=2, most_gpus=2))
def test_the_files_of_any_deployment(target: str, deployment: Deployment) -> None:
    assert VALIDATED[target](deployment) == []


@pytest.mark.parametrize("target", ["kubernetes", "dra"])
@pytest.mark.parametrize(
    "name", ["S1", *(pytest.param(name, marks=pytest.mark.long) for name in SCENARIOS[1:])]
)
def test_every_pod_gets_its_instance_whichever_is_taken_first(name: str, target: str) -> None:
    count = sum(group.count for group in plan_of(name).groups)
    deployment = scenario(name, fleet(node_a=(count + 1) // 2, node_b=count // 2))
    for turned in (False, True) if name != "S1" else (True,):
        assert of_kubernetes(deployment, target, turned) == []


def seen(c: Cluster, meant: Deployment) -> Deployment:
    """What is observed of the cluster, beside a listing of its GPUs where claims say nothing."""
    kinds = ("Node", "Pod", "ResourceSlice", "ResourceClaim")
    items = [each for kind in kinds for each in c.objects(kind)]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    facts = read_kubernetes(read_yaml_or_json(Source("cluster.json", text)), "cluster.json")
    listed = [
        NodeFacts("lgi", Statement(node, "lgi"), gpus=tuple(
            GpuFacts(at, "lgi", mig=Statement("on", "lgi"), instances=tuple(
                InstanceFacts(profile, "lgi", start) for profile, start in layout
            ))
            for at, layout in enumerate(machine.node.layouts())
        ))
        for node, machine in c.machines.items()
    ]  # fmt: skip
    is_dra = any(each.gpus for each in facts)
    return merge([*([] if is_dra else listed), *facts], meant).deployment
