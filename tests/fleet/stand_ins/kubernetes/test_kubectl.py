"""The real kubectl against the stand-in: every command that exported scripts use."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.stand_ins.kubernetes.cluster import Cluster, cluster, needs_kubectl
from tests.fleet.stand_ins.kubernetes.test_controllers import (
    A100,
    CONFIG,
    MIXED,
    config_map,
    deployment,
)

pytestmark = needs_kubectl

STATE = r"{.metadata.labels.nvidia\.com/mig\.config\.state}"
WAIT = ("wait", "node/a", f"--for=jsonpath={STATE}=success", "--timeout=30s")


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Cluster]:
    with cluster(tmp_path, {"a": [A100, A100], "b": [A100]}) as made:
        made.apply(config_map())
        yield made


def kustomized(folder: Path, *manifests: object) -> str:
    folder.mkdir(exist_ok=True)
    names = [f"{number}.json" for number, _ in enumerate(manifests)]
    for name, manifest in zip(names, manifests, strict=True):
        (folder / name).write_text(json.dumps(manifest))
    (folder / "kustomization.yaml").write_text(json.dumps({"resources": names}))
    return str(folder)


def test_cordon_drain_label_wait_uncordon(fleet: Cluster) -> None:
    """The recipe of the GPU Operator's maintainers, as a script would have it."""
    fleet.apply(deployment("chat", 3, {"nvidia.com/gpu": 1}))
    fleet.settle()
    fleet.kubectl("cordon", "a")
    assert "DaemonSet" in fleet.kubectl("drain", "a", "--timeout=10s", fails=True)
    fleet.kubectl("drain", "a", "--ignore-daemonsets", "--timeout=10s")
    assert fleet.occupants("a") == {}
    # The old answer is removed with the new question: it would be taken for the new one.
    answer, asked = "nvidia.com/mig.config.state", "nvidia.com/mig.config=mixed"
    fleet.kubectl("label", "node", "a", "--overwrite", asked, f"{answer}-")
    fleet.kubectl(*WAIT)
    fleet.kubectl("uncordon", "a")
    fleet.settle()
    offered = {"nvidia.com/gpu": 1, "nvidia.com/mig-2g.20gb": 2, "nvidia.com/mig-3g.40gb": 1}
    node = json.loads(fleet.kubectl("get", "node", "a", "-o", "json"))
    amounts = node["status"]["allocatable"]
    assert {k: int(n) for k, n in amounts.items() if "nvidia" in k} == offered
    assert "unschedulable" not in node["spec"]
    assert len(fleet.running(app="chat")) == 2


def test_the_old_answer_stands_until_mig_manager_looks(fleet: Cluster) -> None:
    fleet.api.pace = 0
    fleet.kubectl("label", "node", "a", "--overwrite", "nvidia.com/mig.config=mixed")
    fleet.kubectl(*WAIT)
    assert fleet.allocatable("a") == {"nvidia.com/gpu": 2}


def test_a_wait_ends_when_the_change_fails(fleet: Cluster) -> None:
    fleet.kubectl("label", "node", "a", "--overwrite", "nvidia.com/mig.config=too-much")
    fleet.kubectl(*(word.replace("success", "failed") for word in WAIT))


def test_apply_scale_delete(fleet: Cluster, tmp_path: Path) -> None:
    chat = deployment("chat", 1, {"nvidia.com/gpu": 1})
    folder = kustomized(tmp_path / "k", chat, config_map(CONFIG.replace("mixed", "other")))
    apply = ("apply", "--server-side", "-k", folder)
    fleet.kubectl(*apply, fails=True)  # the ConfigMap is somebody else's
    fleet.kubectl(*apply, "--force-conflicts")
    fleet.kubectl("rollout", "status", "deployment/chat", "--timeout=20s")
    assert len(fleet.running(app="chat")) == 1
    fleet.kubectl("scale", "deployment/chat", "--replicas=2")
    assert fleet.get("Deployment", "chat")["spec"]["replicas"] == 2
    said = fleet.kubectl(*apply, fails=True)
    assert 'conflict with "kubectl" with subresource "scale" using apps/v1: .spec.replicas' in said
    fleet.kubectl("delete", "deployment", "chat", "--timeout=20s")
    fleet.settle()
    assert fleet.running(app="chat") == []


def test_apply_on_the_client_side(fleet: Cluster) -> None:
    def apply(replicas: int, *more: str, fails: bool = False, **spec: Any) -> str:
        manifest = deployment("chat", replicas, {"nvidia.com/gpu": 1}, **spec)
        return fleet.kubectl("apply", "-f", "-", *more, given=json.dumps(manifest), fails=fails)

    assert "created" in apply(1)
    assert "unchanged" in apply(1)
    assert "configured" in apply(2, priorityClassName="high")
    template = fleet.get("Deployment", "chat")["spec"]["template"]["spec"]
    assert template["priorityClassName"] == "high"
    apply(2)
    template = fleet.get("Deployment", "chat")["spec"]["template"]["spec"]
    assert "priorityClassName" not in template  # removed, since no longer applied
    assert "strict decoding error" in apply(2, fails=True, priorityClass="high")
    # Stricter than a real server, which would leave the unknown field out.
    assert "strict decoding error" in apply(2, "--validate=false", fails=True, priorityClass="high")


def test_claims_with_kubectl(tmp_path: Path) -> None:
    exactly = {
        "deviceClassName": "mig.nvidia.com",
        "selectors": [
            {"cel": {"expression": "device.attributes['gpu.nvidia.com'].profile == '3g.40gb'"}}
        ],
    }
    template = {
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
        "metadata": {"name": "t"},
        "spec": {"spec": {"devices": {"requests": [{"name": "slice", "exactly": exactly}]}}},
    }  # fmt: skip
    claims = [{"name": "slice", "resourceClaimTemplateName": "t"}]
    with cluster(tmp_path, {"a": [MIXED]}, dra_driver=True, version="1.36") as c:
        chat = deployment("chat", 1, resourceClaims=claims)
        c.kubectl("apply", "--server-side", "-k", kustomized(tmp_path / "k", template, chat))
        c.kubectl("wait", "deployment/chat", "--for=condition=Available", "--timeout=20s")
        listed = json.loads(c.kubectl("get", "resourceclaims,resourceslices", "-o", "json"))
        found = {each["kind"]: each for each in listed["items"]}
        results = found["ResourceClaim"]["status"]["allocation"]["devices"]["results"]
        assert [each["device"] for each in results] == ["gpu-0-mig-3g40gb-9-4"]
        assert len(found["ResourceSlice"]["spec"]["devices"]) == 3
