"""For tests: a cluster of nodes, served, with a kubeconfig and kubectl's environment.

with cluster(tmp_path, {"node-a": StandInNode(tmp_path / "node-a", ["a100-80gb"] * 2)}) as c:
    c.kubectl("label", "node", "node-a", "nvidia.com/mig.config=all-balanced", "--overwrite")
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fleet.stand_ins.kubernetes import dra
from tests.fleet.stand_ins.kubernetes.kinds import BY_NAME, Json
from tests.fleet.stand_ins.kubernetes.nodes import Machine
from tests.fleet.stand_ins.kubernetes.server import ApiServer
from tests.fleet.stand_ins.kubernetes.store import Store, World
from tests.fleet.stand_ins.kubernetes.validators import documents
from tests.fleet.stand_ins.machines import StandInNode

KUBECTL = shutil.which("kubectl")
needs_kubectl = pytest.mark.skipif(KUBECTL is None, reason="there is no kubectl on the path")


#: What is there from the first moment on.
_OBJECTS = """\
{apiVersion: v1, kind: Namespace, metadata: {name: default}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: kube-system}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: gpu-operator}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: default-mig-parted-config, namespace: gpu-operator}
data:
  config.yaml: "{version: v1, mig-configs: {all-disabled: [{devices: all, mig-enabled: false}]}}"
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: nvidia-device-plugin-daemonset, namespace: gpu-operator}
spec:
  selector: {matchLabels: &app {app: nvidia-device-plugin-daemonset}}
  template:
    metadata: {labels: *app}
    spec:
      containers: [{name: plugin, image: stand-in}]
      nodeSelector: {nvidia.com/gpu.deploy.device-plugin: "true"}
"""


@dataclass
class Cluster:
    """A served cluster; `world` is what it really is, `api` what serves it."""

    api: ApiServer
    world: World
    env: dict[str, str]

    @property
    def machines(self) -> dict[str, Machine]:
        return self.world.machines

    def kubectl(self, *arguments: str, fails: bool = False, given: str | None = None) -> str:
        """Run the real kubectl; its output, or its errors where it is to fail."""
        assert KUBECTL is not None, "mark the test with needs_kubectl"
        done = subprocess.run(
            [KUBECTL, *arguments], env=self.env, input=given, capture_output=True, text=True,
            timeout=60, check=False,
        )  # fmt: skip
        if (done.returncode != 0) is not fails:
            raise AssertionError(f"kubectl {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done.stderr if fails else done.stdout

    def get(self, kind: str, name: str) -> Json:
        with self.world.store.lock:
            space = "default" if BY_NAME[kind].namespaced else ""
            return self.world.store.get(kind, name, space)

    def objects(self, kind: str, namespace: str | None = None) -> list[Json]:
        with self.world.store.lock:
            return self.world.store.list(kind, namespace)

    def apply(self, *manifests: Json) -> None:
        """Create objects, or replace the labels, annotations, data and spec of those there are."""
        with self.world.store.lock:
            for manifest in manifests:
                item = json.loads(json.dumps(manifest))
                kind, metadata = item["kind"], item["metadata"]
                if BY_NAME[kind].namespaced:
                    metadata.setdefault("namespace", "default")
                found = self.world.store.find(kind, metadata["name"], metadata.get("namespace", ""))
                if found is None:
                    self.world.store.create(item)
                else:
                    found["metadata"] |= metadata
                    self.world.store.update(found | item | {"metadata": found["metadata"]})

    def set_labels(self, node: str, labels: Mapping[str, str]) -> None:
        with self.world.store.lock:
            item = self.world.store.get("Node", node)
            self.world.store.change(item, lambda n: n["metadata"]["labels"].update(labels))

    def settle(self) -> None:
        with self.world.store.lock:
            self.api.settle()

    def allocatable(self, node: str) -> dict[str, int]:
        """The GPU resources that a node offers, without zeros."""
        amounts = self.get("Node", node)["status"]["allocatable"]
        return {k: int(v) for k, v in amounts.items() if k.startswith("nvidia.com/") and v != "0"}

    def running(self, **labels: str) -> list[Json]:
        return [
            pod
            for pod in self.objects("Pod")
            if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
            if labels.items() <= (pod["metadata"].get("labels") or {}).items()
        ]

    def occupants(self, node: str) -> dict[tuple[int, str | None, int], str]:
        """Who really uses what on a node: (GPU, profile, start) → name of the pod."""
        names = {pod["metadata"]["uid"]: pod["metadata"]["name"] for pod in self.objects("Pod")}
        users = self.machines[node].users
        return {(d.gpu, d.profile, d.start): names[uid] for d, (uid, _) in users.items()}


@contextmanager
def cluster(
    folder: Path,
    nodes: Mapping[str, StandInNode],
    *,
    pace: int = 1,
    dra_driver: bool = False,
) -> Iterator[Cluster]:
    """Serve a cluster of these nodes until the block ends.

    With every request `pace` ticks pass; with 0 only `step` and `settle` move time. `dra_driver`:
    ResourceSlices instead of the extended resources of the classic device plug-in.
    """
    machines = {name: Machine(name, node) for name, node in sorted(nodes.items())}
    world = World(Store("1.34"), machines, dra_driver)
    made = [*documents(_OBJECTS)[0], *(machine.object() for machine in machines.values())]
    made += [dra.device_class(kind) for kind in ("gpu", "mig") if dra_driver]
    for item in json.loads(json.dumps(made)):
        world.store.create(item)
    api = ApiServer(world, pace)
    api.settle()
    with api:
        yield Cluster(api, world, _environment(folder, api.url))


def _environment(folder: Path, url: str) -> dict[str, str]:
    """Only what kubectl needs: nobody's own kubeconfig, no proxy."""
    named = {"name": "stand-in"}
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": "stand-in",
        "clusters": [named | {"cluster": {"server": url}}],
        "users": [named | {"user": {}}],
        "contexts": [named | {"context": {"cluster": "stand-in", "user": "stand-in"}}],
    }  # fmt: skip
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config))
    kept = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(folder)}
    return kept | {"KUBECONFIG": str(path), "KUBECACHEDIR": str(folder / "cache")}
