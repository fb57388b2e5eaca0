"""For tests: a cluster as described, served, with a kubeconfig and kubectl's environment.

with cluster(tmp_path, {"node-a": ["a100-80gb"] * 2}) as c:
    c.kubectl("label", "node", "node-a", "nvidia.com/mig.config=all-balanced", "--overwrite")
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.stand_ins.kubernetes import dra
from tests.fleet.stand_ins.kubernetes.kinds import BY_NAME, Json
from tests.fleet.stand_ins.kubernetes.nodes import Gpu, Machine, machines
from tests.fleet.stand_ins.kubernetes.server import ApiServer
from tests.fleet.stand_ins.kubernetes.store import OPERATOR, Store, World

KUBECTL = shutil.which("kubectl")
OLDEST = 29  # older ones want OpenAPI v2, in protobuf, before they send anything
needs_kubectl = pytest.mark.skipif(KUBECTL is None, reason="there is no kubectl on the path")


@cache
def _minor() -> int:
    """kubectl's own version, asked for once where it is first needed."""
    command = [str(KUBECTL), "version", "--client", "-o", "json"]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    minor = re.match(r"\d+", json.loads(said.stdout)["clientVersion"]["minor"])
    return int(minor[0]) if minor else 0


_DISABLED = """\
version: v1
mig-configs:
  all-disabled:
  - {devices: all, mig-enabled: false}
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
        if _minor() < OLDEST:
            pytest.skip(f"kubectl 1.{_minor()} is older than 1.{OLDEST}")
        done = subprocess.run(
            [KUBECTL, *arguments], env=self.env, input=given, capture_output=True, text=True,
            timeout=60, check=False,
        )  # fmt: skip
        if (done.returncode != 0) is not fails:
            raise AssertionError(f"kubectl {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done.stderr if fails else done.stdout

    def http(
        self, method: str, path: str, body: Any = None, kind: str = "application/json"
    ) -> tuple[int, Json]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.api.url + path, data, method=method)
        request.add_header("Content-Type", kind)
        # No proxy, whatever the environment says: the server is on the loopback.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=20) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    def get(self, kind: str, name: str, namespace: str = "") -> Json:
        with self.world.store.lock:
            return self.world.store.get(kind, name, namespace or _usual(kind))

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

    def step(self, ticks: int = 1) -> bool:
        return self.api.step(ticks)

    def settle(self) -> int:
        with self.world.store.lock:
            return self.api.settle()

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
        return {(d.gpu, d.profile, d.start): names[uid] for d, uid in users.items()}


def _usual(kind: str) -> str:
    return "default" if BY_NAME[kind].namespaced else ""


@contextmanager
def cluster(
    folder: Path,
    nodes: Mapping[str, Sequence[str | Gpu]],
    *,
    version: str = "1.34",
    pace: int = 1,
    dra_driver: bool = False,
) -> Iterator[Cluster]:
    """Serve a cluster of these nodes until the block ends.

    With every request `pace` ticks pass; with 0 only `step` and `settle` move time. `dra_driver`:
    ResourceSlices instead of the extended resources of the classic device plug-in.
    """
    world = World(Store(version), machines(nodes))
    world.dra = dra_driver
    _populate(world)
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


def _populate(world: World) -> None:
    for name in ("default", "kube-system", OPERATOR):
        metadata: Json = {"name": name}
        world.store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    world.store.create(
        {
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": world.mig_config_map, "namespace": OPERATOR},
            "data": {"config.yaml": _DISABLED},
        }
    )  # fmt: skip
    for machine in world.machines.values():
        cut = any(gpu.mig for gpu in machine.gpus)
        machine.seen = "as-found" if cut else "all-disabled"
        machine.labels["nvidia.com/mig.config"] = machine.seen
        machine.labels["nvidia.com/mig.config.state"] = "success"
        world.store.create(machine.node())
    app = {"app": "nvidia-device-plugin-daemonset"}
    world.store.create(
        {
            "apiVersion": "apps/v1", "kind": "DaemonSet",
            "metadata": {"name": app["app"], "namespace": OPERATOR, "labels": app},
            "spec": {
                "selector": {"matchLabels": app},
                "template": {
                    "metadata": {"labels": app},
                    "spec": {
                        "containers": [{"name": "plugin", "image": "stand-in"}],
                        "nodeSelector": {"nvidia.com/gpu.deploy.device-plugin": "true"},
                    },
                },
            },
        }
    )  # fmt: skip
    if world.dra:
        for kind in ("gpu", "mig"):
            world.store.create(dra.device_class(kind))
