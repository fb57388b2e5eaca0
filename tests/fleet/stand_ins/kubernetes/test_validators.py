"""The validators accept what the documents show and refuse the planted breaks."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest

from tests.fleet.stand_ins.kubernetes import rules, validators
from tests.fleet.stand_ins.kubernetes.nodes import Gpu
from tests.fleet.stand_ins.kubernetes.schemas import VERSIONS, documents, schema_faults

A100 = "a100-80gb"
MODELS = [A100] * 4
CONFIG = """\
version: v1
mig-configs:
  all-disabled:
  - {devices: all, mig-enabled: false}
  cms-7f3a:
  - devices: [0]
    mig-enabled: true
    mig-devices: {"4g.40gb": 1, "3g.40gb": 1}
  - devices: [1, 2]
    mig-enabled: true
    mig-devices: {"2g.20gb": 3, "1g.10gb": 1}
  - {devices: [3], mig-enabled: false}
"""
MAP = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: cms-parted, namespace: gpu-operator}
data:
  config.yaml: |
    %s
""" % CONFIG.replace("\n", "\n    ")  # noqa: UP031
LABEL = "kubectl label --overwrite node a nvidia.com/mig.config=cms-7f3a\n"
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
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: chat, labels: {cms.service: chat}}
spec:
  containers:
  - {name: c, image: i, resources: {limits: {nvidia.com/mig-2g.20gb: 1}}}
"""
CUT = {"a": [Gpu(A100, True, (("2g.20gb", 0), ("2g.20gb", 2), ("3g.40gb", 4)))]}


def test_the_examples_of_the_documents_pass() -> None:
    slices = validators.synthetic_slices(CUT)
    assert validators.manifests(f"{TEMPLATE}---\n{POD}---\n{MAP}---\n{slices}") == []
    assert validators.claims(TEMPLATE, slices, {"slice": 2}) == []


def mig_parted(text: str) -> list[str]:
    return validators.mig_parted_config(text, {"cms-7f3a": MODELS})


def claims(text: str) -> list[str]:
    return validators.claims(text, validators.synthetic_slices(CUT), {"slice": 1})


def slurm(text: str) -> list[str]:
    return validators.slurm(GRES, text, CUT)


def smi(text: str) -> list[str]:
    return validators.nvidia_smi(text, MODELS)


def operator(text: str) -> list[str]:
    """A ConfigMap, and the line that chooses from it."""
    config, lines = text.split("LINES")
    return validators.gpu_operator(config, lines, {"a": MODELS})


GRES = "AutoDetect=nvml\n"
SLURM = """\
GresTypes=gpu
# AccountingStorageTRES=gres/gpu
NodeName=a Gres=gpu:a100_2g.20gb:2,gpu:a100_3g.40gb:1
"""
SMI = "nvidia-smi mig -i 0 -cgi 4g.40gb:0,9:4 -C && nvidia-smi mig -lgi  # ids, too"
OPERATED = f"{MAP}LINES{LABEL}"
FLAT = TEMPLATE.replace("        exactly:\n", "").replace("          ", "        ")


@pytest.mark.parametrize(
    ("check", "text", "good", "bad", "message"),
    [
        (mig_parted, CONFIG, '"3g.40gb": 1', '"3g.40gb": 1, "1g.10gb": 0', "count 0"),
        (mig_parted, CONFIG, "[1, 2]", "[1]", "GPU 2 is listed 0 times"),
        (mig_parted, CONFIG, "[1, 2]", "[1, 2, 3]", "GPU 3 is listed 2 times"),
        (mig_parted, CONFIG, "[1, 2]", "[1, 2, 4]", "there is no GPU 4"),
        (mig_parted, CONFIG, "devices: [0]", "devices: 0", "invalid input for 'devices'"),
        (mig_parted, CONFIG, '"2g.20gb": 3', '"2g.20gb": 4', "no layout of a100-80gb holds"),
        (operator, OPERATED, "config.yaml", "config.yml", "the key must be config.yaml"),
        (operator, OPERATED, "cms-7f3a", "c" * 64, "at most 63"),
        (operator, OPERATED, " --overwrite", "", "no --overwrite"),
        (operator, OPERATED, "config=cms-7f3a", "config=cms-ffff", "not in the ConfigMap"),
        (operator, OPERATED, "[1, 2]", "[1]", "is listed 0 times"),
        (validators.manifests, POD, "service: chat", f"service: {'x' * 64}", "at most 63"),
        (validators.manifests, POD, "mig-2g.20gb: 1", "mig-1g.10gb+me: 1", "name of a resource"),
        (validators.manifests, POD, "20gb: 1", "20gb: '0.5'", "not a whole number"),
        (validators.manifests, TEMPLATE, TEMPLATE, FLAT, "Additional properties"),
        (claims, TEMPLATE, "].profile", "].profil", "no such member"),
        (claims, TEMPLATE, "2g.20gb", "4g.40gb", "no device meets"),
        (claims, TEMPLATE, "profile == '2g.20gb'", "profile", "neither true nor false"),
        (claims, TEMPLATE, "device.a", "(((device.a", "((("),
        (slurm, SLURM, "20gb:2", "20gb:3", "beside 2 devices"),
        (slurm, SLURM, ",gpu:a100_3g.40gb:1", "", "not in Gres: nvidia_a100_3g.40gb"),
        (slurm, SLURM, "GresTypes=gpu", "GresTypes=mps", "GresTypes without gpu"),
        (slurm, SLURM, "# Acc", "Acc", "beside slurmdbd alone"),
        (smi, SMI, "9:4", "9", "has no start"),
        (smi, SMI, "9:4", "9:2", "does not start at 2"),
        (smi, SMI, "9:4", "2g.20gb:2", "has no room"),
        (smi, SMI, "9:4", "3g.20gb:4", "no profile"),
        (smi, SMI, "-i 0", "-i 4", "names none of 4 GPUs"),
        (smi, SMI, "-i 0 ", "", "names none of 4 GPUs"),
        (smi, 'mig -gi "$id" -dgi', 'mig -gi "$id"', "nvidia-smi mig -gi 2", "not looked up"),
    ],
)
def test_a_planted_break_is_refused(
    check: Callable[[str], list[str]], text: str, good: str, bad: str, message: str
) -> None:
    assert check(text) == []
    assert good in text
    said = check(text.replace(good, bad))
    assert any(message in fault for fault in said), said


def test_all_versions_refuse_and_not_all_claims_can_be_met() -> None:
    assert len(validators.manifests(FLAT)) >= len(VERSIONS)
    slices = validators.synthetic_slices(CUT)
    assert validators.claims(TEMPLATE, slices, {"slice": 3}) == [
        "2 of 3 devices can be had at once"
    ]
    any_one = TEMPLATE.replace("profile == '2g.20gb'", "type == 'mig'").replace("slice,", "any,")
    both = validators.claims(f"{TEMPLATE}---\n{any_one}", slices, {"slice": 1, "any": 1})
    assert both == ["claims of different templates want the same devices"]
    assert "unknown key Autodetekt" in validators.slurm("Autodetekt=nvml", SLURM, CUT)[0]


def test_verdicts_on_structure_are_those_of_the_package() -> None:
    theirs = importlib.import_module("kubernetes_validate")
    for text in (TEMPLATE, FLAT, POD, POD.replace("image", "imag"), MAP):
        item = documents(text)[0][0]
        for version in VERSIONS:
            try:
                theirs.validate(item, version, strict=True)
            except theirs.ValidationError:
                accepted = False
            else:
                accepted = True
            assert accepted == (schema_faults(item, version) == [])
    assert schema_faults(documents(TEMPLATE)[0][0], "1.33") == [
        "1.33 has no ResourceClaimTemplate of resource.k8s.io/v1"
    ]


def test_rules_of_names_and_quantities() -> None:
    cases: list[tuple[Callable[[Any], bool], list[Any], list[Any]]] = [
        (rules.dns_label, ["a-1", "a" * 63], ["", "A", "-a", "a" * 64, "a.b", "a\n"]),
        (rules.dns_subdomain, ["a.b-c.1"], ["a_b", "a..b", "a" * 254]),
        (
            rules.qualified_name,
            ["nvidia.com/mig-1g.5gb.me", "app"],
            ["nvidia.com/mig-1g.5gb+me", "NVIDIA.com/gpu", "/gpu", "a/b/c", ""],
        ),
        (rules.label_value, ["", "a_b.C"], ["-a", "a/b", "a" * 64]),
        (rules.quantity, ["1", "0.5", "100m", "20Gi", "1e3", 5], ["", "1 Gi", "20GB", True, None]),
    ]
    for rule, good, bad in cases:
        assert all(rule(each) for each in good), rule
        assert not any(rule(each) for each in bad), rule
