"""The validators accept what the documents show and refuse the planted breaks."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.fleet.stand_ins.kubernetes import geometry, rules, validators
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
    assert validators.manifests(f"{TEMPLATE}---\n{POD}---\n{MAP}") == []
    assert validators.mig_parted_config(CONFIG, {"cms-7f3a": MODELS}) == []
    assert validators.gpu_operator(MAP, LABEL, {"a": MODELS}) == []
    slices = validators.synthetic_slices(CUT)
    assert validators.manifests(slices) == []
    assert validators.claims(TEMPLATE, slices, {"slice": 2}) == []


BREAKS = {
    "zero count": ("mig-parted", '"3g.40gb": 1', '"3g.40gb": 1, "1g.10gb": 0', "count 0"),
    "missing index": ("mig-parted", "[1, 2]", "[1]", "GPU 2 is listed 0 times"),
    "bare index": ("mig-parted", "devices: [0]", "devices: 0", "invalid input for 'devices'"),
    "unplaceable": ("mig-parted", '"2g.20gb": 3', '"2g.20gb": 4', "no layout of a100-80gb holds"),
    "wrong key": ("operator", "config.yaml", "config.yml", "the key must be config.yaml"),
    "long name": ("operator", "cms-7f3a", "c" * 64, "at most 63"),
    "long label": ("manifest", "cms.service: chat", f"cms.service: {'x' * 64}", "at most 63"),
    "plus": ("manifest", "mig-2g.20gb: 1", "mig-1g.10gb+me: 1", "not the name of a resource"),
    "v1beta1": ("claim shape", "exactly:\n  ", "x:\n  ", "Additional properties"),
    "attribute": ("claims", "].profile", "].profil", "no such member"),
    "start": ("nvidia-smi", "3g.40gb:4", "3g.40gb:2", "does not start at 2"),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_planted_break_is_refused(name: str) -> None:
    format_, good, bad, message = BREAKS[name]

    def broken(text: str) -> str:
        assert good in text
        return text.replace(good, bad)

    if format_ == "mig-parted":
        said = validators.mig_parted_config(broken(CONFIG), {"cms-7f3a": MODELS})
    elif format_ == "operator":
        said = validators.gpu_operator(broken(MAP), LABEL.replace(good, bad), {"a": MODELS})
    elif format_ == "manifest":
        said = validators.manifests(broken(POD))
    elif format_ == "claim shape":
        flat = TEMPLATE.replace("        exactly:\n", "").replace("          ", "        ")
        said = validators.manifests(flat)
        assert len(said) >= len(VERSIONS)  # by every version
    elif format_ == "claims":
        said = validators.claims(broken(TEMPLATE), validators.synthetic_slices(CUT), {"slice": 1})
    else:
        said = validators.nvidia_smi(broken("nvidia-smi mig -i 0 -cgi 3g.40gb:4 -C"), MODELS)
    assert any(message in fault for fault in said), said


@pytest.mark.parametrize(
    ("good", "bad", "message"),
    [
        ("version: v1", "version: v2", "unknown version: v2"),
        ("version: v1", "version: v1\nextra: 1", "unexpected field: extra"),
        ('"3g.40gb": 1', '"3g.40g": 1', "invalid format for '3g.40g'"),
        ("[1, 2]", "[1, 2, 3]", "GPU 3 is listed 2 times"),
        ("[1, 2]", "[1, 2, 4]", "there is no GPU 4"),
        ("mig-enabled: false}\n  cms", "mig-enabled: false, mig-devices: {1g.10gb: 1}}\n  cms",
         "when 'mig-enabled' is false"),
        ("version: v1", "version: 'v1", "unmarshal error"),
    ],
)  # fmt: skip
def test_other_faults_of_mig_parted_files(good: str, bad: str, message: str) -> None:
    said = validators.mig_parted_config(CONFIG.replace(good, bad), {"cms-7f3a": MODELS})
    assert any(message in fault for fault in said), said


def test_faults_of_label_lines() -> None:
    def said(script: str) -> str:
        return " ".join(validators.gpu_operator(MAP, script, {"a": MODELS}))

    assert "no --overwrite" in said("kubectl label node a nvidia.com/mig.config=cms-7f3a")
    assert "not in the ConfigMap" in said(LABEL.replace("7f3a", "ffff"))
    assert "is listed 0 times" in " ".join(
        validators.gpu_operator(MAP, LABEL, {"a": [*MODELS, A100]})
    )


def test_verdicts_on_structure_are_those_of_the_package() -> None:
    theirs = importlib.import_module("kubernetes_validate")
    flat = TEMPLATE.replace("        exactly:\n", "").replace("          ", "        ")
    for text in (TEMPLATE, flat, POD, POD.replace("image", "imag"), MAP):
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
    for wrong in ("'0.5'", "-1", "1Ki"):
        pod = documents(POD.replace("20gb: 1", f"20gb: {wrong}"))[0][0]
        assert any("not a whole number" in fault for fault in rules.rule_faults(pod))


def any_of(*profiles: str, name: str = "any") -> str:
    wanted = [
        {
            "name": f"p{number}", "deviceClassName": "mig.nvidia.com",
            "selectors": [{"cel": {
                "expression": f"device.attributes['gpu.nvidia.com'].profile == '{profile}'"}}],
        }
        for number, profile in enumerate(profiles)
    ]  # fmt: skip
    return json.dumps({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
        "metadata": {"name": name},
        "spec": {"spec": {"devices": {"requests": [{"name": "r", "firstAvailable": wanted}]}}},
    })  # fmt: skip


def test_claims_that_cannot_all_be_met() -> None:
    slices = validators.synthetic_slices(CUT)
    assert validators.claims(TEMPLATE, slices, {"slice": 3}) == [
        "2 of 3 devices can be had at once"
    ]
    other = TEMPLATE.replace("2g.20gb", "4g.40gb")
    assert any("no device meets" in one for one in validators.claims(other, slices, {"slice": 1}))
    number = TEMPLATE.replace("profile == '2g.20gb'", "profile")
    said = validators.claims(number, slices, {"slice": 1})
    assert "neither true nor false" in said[0]
    said = validators.claims(TEMPLATE.replace("device.a", "(((device.a"), slices, {"slice": 1})
    assert "(((" in said[0]


def test_the_worst_order_of_claims_with_a_choice() -> None:
    # One who would take either takes the only 3g if he comes first.
    text = "\n---\n".join([any_of("3g.40gb", "2g.20gb"), any_of("3g.40gb", name="only")])
    slices = validators.synthetic_slices(CUT)
    counts = {"any": 1, "only": 1}
    assert validators.worst_first_fit(text, slices, counts) == 1
    assert validators.claims(text, slices, counts) == [
        "in the worst order only 1 of 2 claims are met"
    ]
    kinder = {"any": 2, "only": 0}
    assert validators.worst_first_fit(text, slices, kinder) == 2


GRES = "AutoDetect=nvml\n"
SLURM = """\
GresTypes=gpu
# AccountingStorageTRES=gres/gpu
NodeName=a Gres=gpu:a100_2g.20gb:2,gpu:a100_3g.40gb:1
"""


def test_slurm() -> None:
    assert validators.slurm(GRES, SLURM, CUT) == []
    for text, bad, message in [
        (SLURM, SLURM.replace("20gb:2", "20gb:3"), "beside 2 devices"),
        (SLURM, SLURM.replace(",gpu:a100_3g.40gb:1", ""), "not in Gres: nvidia_a100_3g.40gb"),
        (SLURM, SLURM.replace("GresTypes=gpu", "GresTypes=mps"), "GresTypes without gpu"),
        (SLURM, SLURM.replace("# Acc", "Acc"), "beside slurmdbd alone"),
    ]:
        assert text != bad
        assert any(message in fault for fault in validators.slurm(GRES, bad, CUT)), message
    assert "unknown key Autodetekt" in validators.slurm("Autodetekt=nvml", SLURM, CUT)[0]


def test_command_lines_of_nvidia_smi() -> None:
    def said(line: str) -> str:
        return " ".join(validators.nvidia_smi(line, MODELS))

    assert said("nvidia-smi mig -i 0 -cgi 4g.40gb:0,3g.40gb:4 -C && nvidia-smi mig -lgi") == ""
    assert said("nvidia-smi mig -i 0 -cgi 9:4,19:0 -C  # ids, too") == ""
    assert "has no start" in said("nvidia-smi mig -i 0 -cgi 3g.40gb -C")
    assert "has no room" in said("nvidia-smi mig -i 0 -cgi 4g.40gb:0,2g.20gb:2 -C")
    assert "no profile" in said("nvidia-smi mig -i 0 -cgi 3g.20gb:0 -C")
    assert "names none of 4 GPUs" in said("nvidia-smi mig -i 4 -cgi 3g.40gb:0 -C")
    assert "names none of 4 GPUs" in said("nvidia-smi mig -cgi 3g.40gb:0 -C")
    assert "not looked up" in said("nvidia-smi mig -i 0 -gi 2 -dgi")
    assert said('nvidia-smi mig -i 0 -gi "$id" -dgi') == ""


def test_counts_are_placed_or_refused() -> None:
    placed = geometry.place(A100, {"4g.40gb": 1, "3g.40gb": 1})
    assert placed == (("3g.40gb", 4), ("4g.40gb", 0))
    assert geometry.place("a100-40gb", {"1g.10gb": 4, "1g.5gb": 3}) is None
    assert geometry.place(A100, {"1g.18gb": 1}) is None
    assert geometry.place(A100, {"1g.10gb": 10**9}) is None
    assert geometry.place(A100, {}) == ()
