"""The validators accept what the documents show and refuse the planted breaks."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.fleet.stand_ins.kubernetes import validators
from tests.fleet.stand_ins.kubernetes.validators import VERSIONS, documents, schema_faults
from tests.fleet.stand_ins.machines import StandInNode

TEMPLATE = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: slice, namespace: serving}
spec:
  spec:
    devices:
      requests:
      - name: slice
        exactly:
          deviceClassName: mig.nvidia.com
          selectors:
          - cel: {expression: "device.attributes['gpu.nvidia.com'].profile == '2g.20gb'"}
"""
FLAT = TEMPLATE.replace("        exactly:\n", "").replace("          ", "        ")
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: chat, labels: {cms.service: chat}}
spec:
  containers:
  - {name: c, image: i, resources: {limits: {nvidia.com/mig-2g.20gb: 1}}}
"""
SLURM = "GresTypes=gpu\nNodeName=a Gres=gpu:a100_2g.20gb:2,gpu:a100_3g.40gb:1\n"


def slurm(text: str) -> list[str]:
    with TemporaryDirectory() as folder:
        node = StandInNode(Path(folder), ["a100-80gb"])
        node.put(0, [("2g.20gb", 0), ("2g.20gb", 2), ("3g.40gb", 4)])
    return validators.slurm("AutoDetect=nvml\n", text, {"a": node})


@pytest.mark.parametrize(
    ("check", "text", "good", "bad", "message"),
    [
        (validators.manifests, POD, "service: chat", f"service: {'x' * 64}", "at most 63"),
        (validators.manifests, POD, "mig-2g.20gb: 1", "mig-1g.10gb+me: 1", "name of a resource"),
        (validators.manifests, POD, "20gb: 1", "20gb: '0.5'", "not a whole number"),
        (validators.manifests, POD, "name: chat", "name: Chat", "not a name"),
        (validators.manifests, TEMPLATE, TEMPLATE, FLAT, "Additional properties"),
        (slurm, SLURM, "20gb:2", "20gb:3", "beside 2 devices"),
        (slurm, SLURM, ",gpu:a100_3g.40gb:1", "", "not in Gres: nvidia_a100_3g.40gb"),
        (slurm, SLURM, "GresTypes=gpu", "GresTypes=mps", "GresTypes without gpu"),
    ],
)
def test_a_planted_break_is_refused(
    check: Callable[[str], list[str]], text: str, good: str, bad: str, message: str
) -> None:
    assert check(text) == []
    assert good in text
    said = check(text.replace(good, bad))
    assert any(message in fault for fault in said), said


def test_verdicts_on_structure_are_those_of_the_package() -> None:
    package = importlib.import_module("kubernetes_validate")
    for text in (TEMPLATE, FLAT, POD, POD.replace("image", "imag")):
        item = documents(text)[0][0]
        for version in VERSIONS:
            try:
                package.validate(item, version, strict=True)
            except package.ValidationError:
                accepted = False
            else:
                accepted = True
            assert accepted == (schema_faults(item, version) == [])
