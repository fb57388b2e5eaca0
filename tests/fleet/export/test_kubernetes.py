"""The overlay for Kubernetes: its Deployments, its bases, and what it says that it does not say."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cms.errors import CmsError, FileError, InvalidProblem
from cms.files.source import Source
from cms.fleet import Service, gpu
from cms.fleet.deployment import Deployment, FleetGpu, FleetNode, Instance, Mode, State
from cms.fleet.deployment.export import Export, ExportOptions, dra, export, kubernetes
from cms.fleet.deployment.export.export import bare
from cms.fleet.deployment.export.manifests import Value, dns_label, yaml_of
from cms.fleet.deployment.export.workloads import Asked
from cms.fleet.deployment.labels import label_value, point_label
from cms.fleet.deployment.observation.merging import Merging
from cms.fleet.serving import RULES
from cms.values.frozen import FrozenMap
from tests.fleet.deployments import SERVICES, deployments, point
from tests.fleet.export.cases import A30, A100, MIXED, body, card, node, serving
from tests.fleet.export.manifests import VERSIONS, applied, canonical, documents, env_of, merged
from tests.property.problems import share
from tests.texts import LETTERS

BASE = Source(
    "mine.yaml",
    """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: server, labels: {team: blue}}
spec:
  selector: {matchLabels: {app: server}}
  template:
    metadata: {labels: {app: server}}
    spec:
      containers:
      - name: log
        image: registry/log:1
      - name: model
        image: registry/model:7
        resources:
          limits: {nvidia.com/gpu: 1, memory: 8Gi}
          requests: {nvidia.com/gpu: 1}
""",
)
HALVES = node(card(0, serving("3g.40gb", 0), serving("3g.40gb", 4)))


@share(5)
@given(deployment=deployments(most_nodes=2, most_gpus=2), pin=st.booleans())
def test_what_is_written_is_read_back_as_the_target_sees_it(
    deployment: Deployment, pin: bool
) -> None:
    options = ExportOptions(pin_nodes=pin)
    written = export(deployment, "kubernetes", options)
    seen = kubernetes.as_seen(deployment, pin_nodes=pin)
    assert kubernetes.read(written.files, bare(deployment)) == seen
    assert export(deployment, "kubernetes", options) == written
    assert sum(seen.values()) == sum(
        each.work is not None and each.is_ours and each.state is not State.DRAINING
        for _, each in deployment.instances()
    )
    made = applied(written)
    names = [each["metadata"]["name"] for each in made]
    assert len(set(names)) == len(names) == len(seen)
    for each in made:
        assert re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", each["metadata"]["name"])
        labels = each["spec"]["template"]["metadata"]["labels"]
        assert each["spec"]["selector"]["matchLabels"].items() <= labels.items()
        limits = each["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
        assert all(re.fullmatch(r"nvidia\.com/[a-z0-9.-]{1,63}", name) for name in limits)
        assert ("nodeSelector" in each["spec"]["template"]["spec"]) == pin
    for path, text in written.files.items():
        assert text.endswith("\n")
        if path != "README.md":
            said = re.findall(r"^# Not said here: (.*)$", text, re.MULTILINE)
            assert tuple(said) == written.losses


def test_a_patch_sets_count_labels_resources_and_what_to_run() -> None:
    written = export(HALVES, "kubernetes")
    assert body(written.files["kustomization.yaml"]) == (
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n"
        "- workloads/chat-a100-80gb-3g40gb-1x4\n"
    )
    (made,) = applied(written)
    labels = {
        "cms.service": "chat",
        "cms.point": "3g.40gb-1x4",
        "cms.workload": "chat-a100-80gb-3g40gb-1x4",
    }
    spec = made["spec"]
    assert made["metadata"]["labels"] == spec["template"]["metadata"]["labels"] == labels
    assert spec["replicas"] == 2
    # a Deployment that brings a new pod before an old one goes would wait for ever
    assert spec["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}
    (container,) = spec["template"]["spec"]["containers"]
    assert container["resources"] == {"limits": {"nvidia.com/mig-3g.40gb": "1"}}
    assert env_of(container) == {
        "CMS_SERVICE": "chat",
        "CMS_MODEL": "chat",
        "CMS_GPU": "a100-80gb",
        "CMS_PROFILE": "3g.40gb",
        "CMS_PROCESSES": "1",
        "CMS_BATCH": "4",
    }
    (spread,) = spec["template"]["spec"]["topologySpreadConstraints"]
    assert spread["whenUnsatisfiable"] == "ScheduleAnyway"
    assert "replace-this-image" in container["image"]
    assert "in place of `example.invalid/replace-this-image`" in written.order[0]


def test_every_kind_of_instance_has_its_resource() -> None:
    media = card(0, serving("1g.10gb+me", 0))
    whole = card(1, replace(serving("7g.80gb", 0), profile="whole", start=None), mode=Mode.WHOLE)
    shared = card(2, serving("mps:40", None), mode=Mode.MPS)
    containers = [
        each["spec"]["template"]["spec"]["containers"][0]
        for each in applied(export(node(media, whole, shared), "kubernetes"))
    ]
    assert sorted(next(iter(each["resources"]["limits"])) for each in containers) == [
        "nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb.me",
    ]  # fmt: skip
    shares = [env_of(each).get("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE") for each in containers]
    assert sorted(filter(None, shares)) == ["40"]


def test_nodes_are_named_by_their_host_names() -> None:
    named = FrozenMap({"kubernetes.io/hostname": "ip-10-0-0-1"})
    fleet = Deployment((replace(HALVES.nodes[0], labels=named),), SERVICES)
    written = export(fleet, "kubernetes", ExportOptions(pin_nodes=True))
    (made,) = applied(written)
    pod = made["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {"kubernetes.io/hostname": "ip-10-0-0-1"}
    (asked,) = kubernetes.read(written.files, bare(fleet))
    assert asked == Asked("chat", "a100-80gb", "3g.40gb", 1, 4, "node-a")


def test_a_profile_of_two_types_of_gpu_is_asked_for_where_its_type_is() -> None:
    small = A30.profiles[0].name
    work = point("chat", "a100-80gb", "1g.10gb")
    nodes = [
        FleetNode(name, (FleetGpu(name, 0, device, instances=(Instance(profile, 0, what),)),))
        for name, device, profile, what in (
            ("a", A100, "1g.10gb", work),
            ("b", gpu("h100-80gb"), "1g.10gb", point("chat", "h100-80gb", "1g.10gb")),
            ("c", A30, small, point("chat", A30.key, small)),
        )
    ]
    written = export(Deployment(tuple(nodes), SERVICES), "kubernetes")
    hosts = {}
    for made in applied(written):
        pod = made["spec"]["template"]["spec"]
        terms = pod.get("affinity", {}).get("nodeAffinity", {})
        text = json.dumps(terms)
        hosts[env_of(pod["containers"][0])["CMS_GPU"]] = re.findall(r'"values": \["(.)"\]', text)
    assert hosts == {"a100-80gb": ["a"], "h100-80gb": ["b"], "a30-24gb": []}
    both = FleetNode("a", (nodes[0].gpus[0], replace(nodes[1].gpus[0], node="a", index=1)))
    said = export(Deployment((both,), SERVICES), "kubernetes").losses
    assert any(loss.startswith("Types of GPU: a has one profile on GPUs") for loss in said)


# --- bases ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["kubernetes", "dra"])
@pytest.mark.parametrize("mode", [Mode.WHOLE, Mode.MPS])
def test_a_gpu_of_another_type_that_nothing_is_on_is_not_taken(target: str, mode: Mode) -> None:
    work = point("chat", A100.key, "mps:40")
    whole = Instance("whole", None, replace(work, point=replace(work.point, profile="whole")))
    used = FleetNode("node-a", (FleetGpu("node-a", 0, A100, Mode.WHOLE, (whole,)),))
    free = FleetNode("node-b", (FleetGpu("node-b", 0, A30, mode),))
    for nodes, hosts in (((used,), None), ((used, free), ["node-a"])):
        written = export(Deployment(nodes, SERVICES), target)
        (patch,) = (text for path, text in written.files.items() if path.endswith("patch.yaml"))
        assert ("nodeAffinity" in patch) == (hosts is not None)
        assert (re.findall(r"values:\n +- (.*)", patch) or None) == hosts


def test_the_users_deployment_is_patched_where_it_asks_for_a_gpu() -> None:
    written = export(HALVES, "kubernetes", ExportOptions(base=(BASE,), namespace="prod"))
    assert body(written.files["base/chat/deployment.yaml"]) == BASE.text
    assert "namespace:" in written.files["kustomization.yaml"]
    (made,) = applied(written)
    log, model = made["spec"]["template"]["spec"]["containers"]
    assert log == {"name": "log", "image": "registry/log:1"}
    limits = {"memory": "8Gi", "nvidia.com/mig-3g.40gb": "1"}
    assert model["resources"] == {"limits": limits, "requests": {}}
    assert made["metadata"]["labels"]["team"] == "blue"
    assert "--base" not in " ".join(written.order)


def test_a_service_takes_its_own_base_before_the_one_for_all() -> None:
    own = Source("chat.yaml", (BASE.text or "").replace("name: server,", "name: chat,"))
    written = export(MIXED, "kubernetes", ExportOptions(base=(BASE, own)))
    names = {
        service: documents(written.files[f"base/{service}/deployment.yaml"])[0]["metadata"]["name"]
        for service in ("chat", "code")
    }
    assert names == {"chat": "chat", "code": "server"}
    with pytest.raises(FileError, match="none is of service 'code'"):
        export(MIXED, "kubernetes", ExportOptions(base=(own,)))
    with pytest.raises(FileError, match="second base of service 'chat'"):
        export(MIXED, "kubernetes", ExportOptions(base=(own, own)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ((BASE.text or "") + "---\nkind: Service\n", "one Deployment a file"),
        ((BASE.text or "").replace("Deployment", "StatefulSet"), 'kind is "StatefulSet"'),
        ("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n", "has no"),
    ],
)
def test_a_base_that_is_none_is_refused(text: str, message: str) -> None:
    with pytest.raises(FileError, match=message):
        export(HALVES, "kubernetes", ExportOptions(base=(Source("mine.yaml", text),)))


def test_a_namespace_is_a_name() -> None:
    with pytest.raises(InvalidProblem, match="namespace is 'Prod'"):
        export(HALVES, "kubernetes", ExportOptions(namespace="Prod"))


# --- losses and order -----------------------------------------------------------------------------


def test_equal_parts_of_unequal_pods_are_counted_out() -> None:
    services = tuple(replace(s, rate_rps=Fraction(50)) for s in SERVICES)
    uneven = node(card(0, serving("4g.40gb", 0)), card(1, serving("1g.10gb", 2)))
    uneven = replace(uneven, services=services)
    (said,) = [s for s in export(uneven, "kubernetes").losses if s.startswith("Traffic")]
    assert "they supply 12, 33 items/s" in said
    assert "24 of their 45 items/s" in said
    assert "too little for the 50 asked for" in said
    assert not any(s.startswith("Traffic") for s in export(HALVES, "kubernetes").losses)


def test_what_is_drained_is_not_asked_for_and_others_are_not_spared() -> None:
    draining = replace(serving("3g.40gb", 0), state=State.DRAINING)
    written = export(node(card(0, draining, Instance("3g.40gb", 4, owner="pod x/y"))), "kubernetes")
    assert applied(written) == []
    assert written.order[-1] == "Nothing is to run: there is nothing to apply."
    said = " ".join(written.losses)
    assert "what is drained is not asked for: node-a/0 3g.40gb@0" in said
    assert "no pod is told to spare them: node-a/0 3g.40gb@4 of pod x/y" in said


def test_what_runs_today_and_is_not_wanted_is_named() -> None:
    now = node(card(0, serving("4g.40gb", 0), serving("3g.40gb", 4)))
    order = " ".join(export(HALVES, "kubernetes", ExportOptions(now)).order)
    assert "kubectl delete deployment chat-a100-80gb-4g40gb-1x4`" in order
    assert "cms.workload" in " ".join(export(HALVES, "kubernetes").order)


# --- names and YAML -------------------------------------------------------------------------------


@given(st.lists(st.text(LETTERS, max_size=80), unique=True, max_size=20))
def test_names_are_names_and_differ(texts: list[str]) -> None:
    names = [dns_label(text) for text in texts]
    assert all(re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", name) for name in names)
    assert len(set(names)) == len(names)


VALUES: st.SearchStrategy[Value] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(LETTERS, max_size=8)
    | st.sampled_from(["no", "on", "1e3", "0x1", "1:30", "~", "a: b", "- a", "2024-01-01"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(LETTERS, max_size=6), inner),
    max_leaves=6,
)  # fmt: skip


@share(3)
@example({"\U0001f600": "\U00010000"})
@given(st.dictionaries(st.text(LETTERS, max_size=6), VALUES, min_size=1))
def test_yaml_says_what_was_meant(value: dict[str, Value]) -> None:
    assert documents(yaml_of(dict(value))) == [value]


def test_services_of_any_name_have_manifests() -> None:
    services = tuple(
        Service(name, "chat", 1, 10) for name in ("Chat", "chat", "Übersetzer 2", "x" * 80)
    )
    work = point("chat", "a100-80gb", "7g.80gb")
    cards = [
        card(index, Instance("7g.80gb", 0, replace(work, service=service.name)))
        for index, service in enumerate(services)
    ]
    fleet = Deployment((FleetNode("node-a", tuple(cards)),), services)
    for target, tool in (("kubernetes", kubernetes), ("dra", dra)):
        written = export(fleet, target)
        read = tool.read(written.files, bare(fleet))
        assert {asked.service for asked in read} == {service.name for service in services}
        labels = [each["spec"]["template"]["metadata"]["labels"] for each in applied(written)]
        assert len({each["cms.service"] for each in labels}) == 4
        assert all(
            re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", value)
            for each in labels for value in each.values()
        )  # fmt: skip


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("nvidia.com/mig-3g.40gb", "nvidia.com/mig-4g.40gb", "is asked for, expected"),
        ("value: a100-80gb", "value: h100-80gb", "expected a GPU of the fleet"),
        ("value: chat", "value: code", "as CMS_SERVICE has it"),
        ("CMS_BATCH", "BATCH", "it has no CMS_BATCH"),
        ("replicas: 2", "replicas: 0", "whole number >= 1"),
        ('value: "3g.40gb"', 'value: "9g.40gb"', "9g.40gb"),
    ],
)
def test_patches_that_were_changed_are_refused_with_their_line(
    old: str, new: str, message: str
) -> None:
    files = dict(export(HALVES, "kubernetes").files)
    path = "workloads/chat-a100-80gb-3g40gb-1x4/patch.yaml"
    assert old in files[path]
    files[path] = files[path].replace(old, new)
    with pytest.raises(FileError, match=message) as fault:
        kubernetes.read(files, bare(HALVES))
    assert str(fault.value).startswith(path + ":")
    del files[path]
    with pytest.raises(FileError, match="there is no such file"):
        kubernetes.read(files, bare(HALVES))


@pytest.mark.parametrize("target", ["kubernetes", "dra"])
def test_what_cannot_be_is_not_written(target: str) -> None:
    with pytest.raises(CmsError, match=r"node-a/0 has 3g\.40gb@2, needs a start among 0, 4"):
        export(node(card(0, Instance("3g.40gb", 2))), target)


# --- outside voices -------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["kubernetes", "dra"])
def test_what_is_applied_has_the_published_schemas(target: str) -> None:
    written = export(MIXED, target, ExportOptions(pin_nodes=True, pin_gpus=False))
    made = applied(written) + applied(export(HALVES, target, ExportOptions(base=(BASE,))))
    for path in ("claims.yaml", "device-classes.yaml"):
        made += documents(written.files[path]) if path in written.files else []
    assert len(Counter(each["kind"] for each in made)) == (1 if target == "kubernetes" else 4)
    for version in VERSIONS:
        for each in made:
            kubernetes_validate.validate(each, version, strict=True)


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kustomize is run by kubectl alone")
def test_kustomize_makes_of_it_what_was_meant(tmp_path: Path) -> None:
    for target in ("kubernetes", "dra"):
        written = export(MIXED, target, ExportOptions(base=(BASE,), namespace="prod"))
        _write(tmp_path / target, written)
        command = ["kubectl", "kustomize", str(tmp_path / target)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        found = documents(done.stdout)
        claims = documents(written.files["claims.yaml"]) if target == "dra" else []
        meant = [
            merged(each, {"metadata": {"namespace": "prod"}}) for each in applied(written) + claims
        ]
        own = [each for each in found if each["kind"] == "Deployment"]
        assert canonical(own) == canonical(each for each in meant if each["kind"] == "Deployment")
        assert len(found) == len(meant)
        for each in found:
            if each["kind"] != "Deployment":
                assert each in meant


def _write(folder: Path, written: Export) -> None:
    for path, text in written.files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def collision() -> tuple[str, str]:
    """Two names that one label stands for: its hash has 24 bits, so some 5,000 names will do."""
    seen: dict[str, str] = {}
    for number in range(100_000):
        name = "chat " + "".join("äöü"[number // 3**digit % 3] for digit in range(11))
        if (other := seen.setdefault(label_value(name), name)) != name:
            return other, name
    raise AssertionError("no two names have one label")


@pytest.mark.parametrize("names", [collision(), ("chat ä", label_value("chat ä"))])
def test_services_that_a_label_cannot_tell_apart_are_refused(names: tuple[str, str]) -> None:
    services = [replace(SERVICES[0], name=name) for name in names]
    works = [replace(point("chat", "a100-80gb", "3g.40gb"), service=name) for name in names]
    held = tuple(Instance("3g.40gb", 4 * at, work) for at, work in enumerate(works))
    cards = (FleetGpu("a", 0, A100, instances=held),)
    deployment = Deployment((FleetNode("a", cards),), tuple(services), RULES["half"])
    for target in ("kubernetes", "dra"):
        with pytest.raises(InvalidProblem, match="would both .* rename one of them"):
            export(deployment, target)
    merging = Merging(deployment, {}, None)
    label = label_value(names[0])
    asked = label, point_label(works[0]), ("3g.40gb",), (A100.key,)
    assert merging.work(*asked) is None
