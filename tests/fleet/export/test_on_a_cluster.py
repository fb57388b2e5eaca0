"""Exports on a stand-in cluster: cut by mig-manager, as scripts with the real kubectl ask it to."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from cms.files.source import Source
from cms.fleet.deployment import Deployment, Instance
from cms.fleet.deployment.export import ExportOptions, advertise, export
from cms.fleet.deployment.observation.facts import GpuFacts, InstanceFacts, NodeFacts, Statement
from cms.fleet.deployment.observation.kubernetes import read_kubernetes
from cms.fleet.deployment.observation.merge import merge
from cms.fleet.hardware.yaml_text import read_yaml_or_json
from tests.fleet.bridging import write
from tests.fleet.deployments import SCENARIOS, fleet, plan_of, scenario
from tests.fleet.export.cases import machines
from tests.fleet.export.manifests import applied, documents
from tests.fleet.stand_ins.kubernetes.cluster import Cluster, cluster, needs_kubectl

STATE = "nvidia.com/mig.config.state"


def halves(name: str, *, one: bool = False) -> tuple[Deployment, Deployment]:
    """A scenario on two nodes or one, and a today on which the first GPU is cut otherwise."""
    count = sum(group.count for group in plan_of(name).groups)
    empty = fleet(node_a=count) if one else fleet(node_a=(count + 1) // 2, node_b=count // 2)
    first = next(iter(empty.gpus()))
    old = (Instance("2g.20gb", 0), Instance("2g.20gb", 2), Instance("2g.20gb", 4))
    return scenario(name, empty), empty.with_gpus({(first.node, 0): first.with_instances(old)})


def run(
    c: Cluster, script: Path, word: str = "", more: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    env = {**c.env, "CMS_PAUSE": "0", "CMS_TRIES": "40", **(more or {})}
    return subprocess.run(
        ["sh", str(script), *([word] if word else [])],
        env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def said(done: subprocess.CompletedProcess[str]) -> list[str]:
    """What a script complains of; that DaemonSets' pods stay is no complaint."""
    return [each for each in done.stderr.splitlines() if "ignoring DaemonSet" not in each]


def is_cut(c: Cluster, target: Deployment) -> None:
    for node, offer in zip(target.nodes, advertise(target, "mixed"), strict=True):
        held = [Counter(name for name, _ in gpu.layout) for gpu in c.machines[node.name].gpus]
        assert held == [card.counts for card in node.gpus]
        assert c.allocatable(node.name) == dict(offer.resources)
        assert "unschedulable" not in c.get("Node", node.name)["spec"]
        assert "cms.cordoned" not in c.get("Node", node.name)["metadata"]["labels"]


@needs_kubectl
def test_a_change_that_fails_leaves_the_node_cordoned_and_a_second_one_arrives(
    tmp_path: Path,
) -> None:
    target, now = halves("S1", one=True)
    with cluster(tmp_path, machines(now)) as c:
        c.kubectl("get", "nodes")
        write(tmp_path / "out", export(target, "gpu-operator", ExportOptions(now)))
        script = tmp_path / "out/nodes/node-a.sh"
        c.kubectl("apply", "-f", str(tmp_path / "out/configmap.yaml"))
        done = run(c, script)  # the Operator has not been told of the map
        assert (done.returncode, "mig-manager has failed" in done.stderr) == (1, True), done
        assert "The node stays cordoned" in done.stderr
        node = c.get("Node", "node-a")
        state = node["metadata"]["labels"][STATE]
        assert (node["spec"]["unschedulable"], state) == (True, "failed")
        assert "does not try again by itself" in run(c, script).stderr
        c.world.mig_config_map = "cms-mig-parted-config"  # as the patch of the README has it
        c.set_labels("node-a", {"nvidia.com/mig.config": "all-disabled"})
        c.settle()
        done = run(c, script)
        assert (done.returncode, said(done)) == (0, []), done
        is_cut(c, target)
        before = len(c.api.log)
        assert "nothing to do" in run(c, script, "apply").stdout
        assert {method for method, _ in c.api.log[before:]} == {"GET"}
        for word, reached in (("verify", target), ("undo", now)):
            done = run(c, script, word)
            assert (done.returncode, said(done)) == (0, []), done
            is_cut(c, reached)


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("S1", "kubernetes"),
        ("S1", "dra"),
        *(
            pytest.param(name, target, marks=pytest.mark.long)
            for name in SCENARIOS[1:]
            for target in ("kubernetes", "dra")
        ),
    ],
)
def test_every_pod_of_a_scenario_gets_its_instance(tmp_path: Path, name: str, target: str) -> None:
    deployment, _ = halves(name)
    written = export(deployment, target, ExportOptions(namespace="default"))
    claims = documents(written.files["claims.yaml"]) if target == "dra" else []
    wanted = Counter(
        (instance.work.service, instance.profile)
        for _, instance in deployment.instances()
        if instance.work is not None
    )
    for turned in (False, True) if name != "S1" else (True,):
        with cluster(tmp_path, machines(deployment), pace=0, dra_driver=target == "dra") as c:
            c.world.nodes_reversed = c.world.devices_reversed = turned
            c.apply(*claims, *applied(written))
            c.settle()
            services = {
                pod["metadata"]["name"]: pod["metadata"]["labels"]["cms.service"]
                for pod in c.running()
                if "cms.service" in (pod["metadata"].get("labels") or {})
            }
            got = Counter(
                (services[pod], profile)
                for node in c.machines
                for (_, profile, _), pod in c.occupants(node).items()
                if pod in services
            )
            assert got == wanted
            assert seen(c, deployment).kinds() == deployment.kinds()
            if target == "dra":  # which says exactly which
                held = {(n, i, s) for n in c.machines for i, _, s in c.occupants(n)}
                works = seen(c, deployment).instances()
                assert {(g.node, g.index, i.start) for g, i in works if i.work} == held


def seen(c: Cluster, meant: Deployment) -> Deployment:
    """What is observed of the cluster, beside a listing of its GPUs where claims say nothing."""
    kinds = ("Node", "Pod", "ResourceSlice", "ResourceClaim")
    items = [each for kind in kinds for each in c.objects(kind)]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    facts = read_kubernetes(read_yaml_or_json(Source("cluster.json", text)), "cluster.json")
    listed = [
        NodeFacts("lgi", Statement(node, "lgi"), gpus=tuple(
            GpuFacts(at, "lgi", mig=Statement("on", "lgi"), instances=tuple(
                InstanceFacts(profile, "lgi", start) for profile, start in gpu.layout
            ))
            for at, gpu in enumerate(machine.gpus)
        ))
        for node, machine in c.machines.items()
    ]  # fmt: skip
    is_dra = any(each.gpus for each in facts)
    return merge([*([] if is_dra else listed), *facts], meant).deployment
