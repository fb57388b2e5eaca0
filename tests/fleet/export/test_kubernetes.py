"""The overlays for Kubernetes: their Deployments, bases and claims."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.errors import FileError, InvalidProblem
from cms.files.source import Source
from cms.fleet import Service, get_gpu
from cms.fleet.deployment import Deployment, FleetGpu, FleetNode, Instance, Mode, State
from cms.fleet.deployment.export import ExportOptions, export
from cms.fleet.deployment.export.export import write_scalar
from cms.fleet.deployment.labels import dns_label, label_value, point_label
from cms.fleet.deployment.observation.pods import MergeContext
from cms.fleet.hardware.yaml_text import read_yaml_or_json
from cms.fleet.serving import RULES
from cms.values.frozen import FrozenMap
from tests.fleet.bridging import write
from tests.fleet.deployments import SERVICES, deployments, point
from tests.fleet.export.cases import A30, A100, MIXED, body, card, node, serving
from tests.fleet.export.manifests import Manifest, applied, canonical, documents, env_of, merged
from tests.property.problems import share
from tests.texts import LETTERS

TARGETS = ("kubernetes", "dra")
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
DNS = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"


def asked(deployment: Deployment, *, nodes: bool, gpus: bool) -> Counter[tuple[str, ...]]:
    """What a cluster is to run, counted instance by instance."""
    found: Counter[tuple[str, ...]] = Counter()
    for card_, each in deployment.instances():
        work = each.work
        if work is None or not each.is_managed or each.state is State.DRAINING:
            continue
        place = card_.name if gpus else card_.node if nodes else ""
        said = work.service, card_.gpu.key, each.profile, work.point.processes, work.point.batch
        found[(*map(str, said), place)] += 1
    return found


@pytest.mark.parametrize("target", TARGETS)
@share(5)
@given(deployment=deployments(most_nodes=2, most_gpus=2), nodes=st.booleans(), gpus=st.booleans())
def test_pods_are_those_of_the_deployment(
    target: str, deployment: Deployment, nodes: bool, gpus: bool
) -> None:
    gpus = gpus and target == "dra"
    written = export(deployment, target, ExportOptions(pin_nodes=nodes, pin_gpus=gpus))
    claims = {}
    if "claims.yaml" in written.files:
        every = documents(written.files["claims.yaml"])
        claims = {each["metadata"]["name"]: each for each in every}
        assert len(claims) == len(every)
        assert all(re.fullmatch(DNS, name) for name in claims)
    uuids = {card.uuid: card.name for card in deployment.gpus()}
    found: Counter[tuple[str, ...]] = Counter()
    made = applied(written)
    for each in made:
        assert re.fullmatch(DNS, each["metadata"]["name"])
        template = each["spec"]["template"]
        labels, pod = template["metadata"]["labels"], template["spec"]
        assert each["spec"]["selector"]["matchLabels"].items() <= labels.items()
        (container,) = pod["containers"]
        env = env_of(container)
        place = pod.get("nodeSelector", {}).get("kubernetes.io/hostname", "")
        profile = env["CMS_PROFILE"]
        if target == "dra":
            assert container["resources"] == {"claims": [{"name": "gpu"}]}
            (held,) = pod["resourceClaims"]
            claim = claims[held.get("resourceClaimName") or held["resourceClaimTemplateName"]]
            kind, expression = request(claim)
            assert (f"'{profile}'" in expression) == (kind == "mig.nvidia.com")
            if gpus:
                place = uuids[re.findall(r"(?:uuid|parentUUID) == '([^']*)'", expression)[0]]
            elif profile.startswith("mps:"):  # they are pinned in any case, all to one claim
                place = place if nodes else ""
        else:
            (resource,) = container["resources"]["limits"]
            part = profile.replace("+", ".")
            names = {"whole": "gpu"} | dict.fromkeys(
                [profile] * profile.startswith("mps:"), "gpu.shared"
            )
            assert resource == f"nvidia.com/{names.get(profile, f'mig-{part}')}"
        keys = ("SERVICE", "GPU", "PROFILE", "PROCESSES", "BATCH")
        found[(*(env[f"CMS_{key}"] for key in keys), place)] += each["spec"]["replicas"]
    assert len({each["metadata"]["name"] for each in made}) == len(made)
    assert found == asked(deployment, nodes=nodes, gpus=gpus)


def request(claim: Manifest) -> tuple[str, str]:
    spec = claim["spec"]["spec"] if claim["kind"] == "ResourceClaimTemplate" else claim["spec"]
    (one,) = spec["devices"]["requests"]
    (selector,) = one["exactly"]["selectors"]
    return str(one["exactly"]["deviceClassName"]), str(selector["cel"]["expression"])


def test_a_patch_sets_count_labels_resources_and_what_to_run() -> None:
    written = export(HALVES, "kubernetes")
    (made,) = applied(written)
    name = "chat-a100-80gb-3g40gb-1x4"
    labels = {"cms.service": "chat", "cms.point": "3g.40gb-1x4", "cms.workload": name}
    spec = made["spec"]
    assert made["metadata"]["labels"] == spec["template"]["metadata"]["labels"] == labels
    assert spec["replicas"] == 2
    # a Deployment that brings a new pod before an old one goes would wait for ever
    assert spec["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}
    (container,) = spec["template"]["spec"]["containers"]
    assert env_of(container)["CMS_MODEL"] == "chat"
    (spread,) = spec["template"]["spec"]["topologySpreadConstraints"]
    assert spread["whenUnsatisfiable"] == "ScheduleAnyway"
    assert container["image"] in written.order[0]
    now = ExportOptions(node(card(0, serving("4g.40gb", 0), serving("3g.40gb", 4))))
    order = " ".join(export(HALVES, "kubernetes", now).order)
    assert "kubectl delete deployment chat-a100-80gb-4g40gb-1x4`" in order
    gone = node(card(0, replace(serving("3g.40gb", 0), state=State.DRAINING)))
    assert applied(export(gone, "kubernetes")) == []


def test_pods_that_share_a_gpu_have_their_percentage_and_one_claim() -> None:
    shares = [
        env_of(each["spec"]["template"]["spec"]["containers"][0])
        for each in applied(export(MIXED, "dra"))
    ]
    found = [env.get("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE") for env in shares]
    assert sorted(filter(None, found)) == ["20", "40"]
    claims = documents(export(MIXED, "dra").files["claims.yaml"])
    (shared,) = [each for each in claims if each["kind"] == "ResourceClaim"]
    assert shared["metadata"]["name"] == "cms-mps-node-a-2"
    (config,) = shared["spec"]["devices"]["config"]
    sharing = config["opaque"]["parameters"]["sharing"]
    assert sharing == {"strategy": "MPS", "mpsConfig": {"defaultActiveThreadPercentage": 40}}
    classes = {
        each["spec"]["extendedResourceName"]: each["metadata"]["name"]
        for each in documents(export(MIXED, "dra").files["device-classes.yaml"])
    }
    assert classes["nvidia.com/mig-3g.40gb"] == "cms-mig-3g-40gb.gpu.nvidia.com"


def test_nodes_are_named_by_their_host_names_and_types_of_gpu_told_apart_by_them() -> None:
    named = FrozenMap({"kubernetes.io/hostname": "ip-10-0-0-1"})
    tied = Deployment((replace(HALVES.nodes[0], labels=named),), SERVICES)
    (made,) = applied(export(tied, "kubernetes", ExportOptions(pin_nodes=True)))
    selector = made["spec"]["template"]["spec"]["nodeSelector"]
    assert selector == {"kubernetes.io/hostname": "ip-10-0-0-1"}
    small = A30.profiles[0].name
    nodes = [
        FleetNode(name, (FleetGpu(name, 0, device, instances=(Instance(profile, 0, what),)),))
        for name, device, profile, what in (
            ("a", A100, "1g.10gb", point("chat", "a100-80gb", "1g.10gb")),
            ("b", get_gpu("h100-80gb"), "1g.10gb", point("chat", "h100-80gb", "1g.10gb")),
            ("c", A30, small, point("chat", A30.key, small)),
        )
    ]
    hosts = {}
    for made in applied(export(Deployment(tuple(nodes), SERVICES), "kubernetes")):
        pod = made["spec"]["template"]["spec"]
        text = json.dumps(pod.get("affinity", {}))
        hosts[env_of(pod["containers"][0])["CMS_GPU"]] = re.findall(r'"values": \["(.)"\]', text)
    assert hosts == {"a100-80gb": ["a"], "h100-80gb": ["b"], "a30-24gb": []}
    both = FleetNode("a", (nodes[0].gpus[0], replace(nodes[1].gpus[0], node="a", index=1)))
    said = export(Deployment((both,), SERVICES), "kubernetes").losses
    assert any(loss.startswith("Types of GPU: a ") for loss in said)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("mode", [Mode.WHOLE, Mode.MPS])
def test_a_gpu_of_another_type_that_nothing_is_on_is_not_taken(target: str, mode: Mode) -> None:
    work = point("chat", A100.key, "whole")
    used = FleetNode(
        "node-a", (FleetGpu("node-a", 0, A100, Mode.WHOLE, (Instance("whole", None, work),)),)
    )
    free = FleetNode("node-b", (FleetGpu("node-b", 0, A30, mode),))
    for nodes, hosts in (((used,), []), ((used, free), ["node-a"])):
        (made,) = applied(export(Deployment(nodes, SERVICES), target))
        assert re.findall(r'"values": \["(.*?)"\]', json.dumps(made)) == hosts


# --- bases ----------------------------------------------------------------------------------------


def test_the_users_deployment_is_patched_where_it_asks_for_a_gpu() -> None:
    written = export(HALVES, "kubernetes", ExportOptions(base=(BASE,), namespace="prod"))
    assert body(written.files["base/chat/deployment.yaml"]) == BASE.text
    (made,) = applied(written)
    log, model = made["spec"]["template"]["spec"]["containers"]
    assert log == {"name": "log", "image": "registry/log:1"}
    limits = {"memory": "8Gi", "nvidia.com/mig-3g.40gb": "1"}
    assert model["resources"] == {"limits": limits, "requests": {}}
    assert made["metadata"]["labels"]["team"] == "blue"
    assert "--base" not in " ".join(written.order)
    own = Source("chat.yaml", BASE.text.replace("name: server,", "name: chat,"))
    written = export(MIXED, "kubernetes", ExportOptions(base=(BASE, own)))
    names = {
        service: documents(written.files[f"base/{service}/deployment.yaml"])[0]["metadata"]["name"]
        for service in ("chat", "code")
    }
    assert names == {"chat": "chat", "code": "server"}
    for bases, place, has in (
        ((own,), "chat.yaml", "'code'"),
        ((own, own), "chat.yaml", "'chat'"),
        ((replace(BASE, text=BASE.text + "---\nkind: Service\n"),), "mine.yaml:18", ""),
        ((replace(BASE, text=BASE.text.replace("t\nm", "s\nm")),), "mine.yaml:2", "Deploymens"),
        ((replace(BASE, text=BASE.text.replace("name: model", "x: 1")),), "mine.yaml:10", "name"),
        ((replace(BASE, text=BASE.text.partition("spec")[0]),), "mine.yaml:1", '"spec"'),
    ):
        with pytest.raises(FileError, match=rf"^{place}.*{has}"):
            export(MIXED, "kubernetes", ExportOptions(base=bases))


# --- names and YAML -------------------------------------------------------------------------------


@given(st.lists(st.text(LETTERS, max_size=80), unique=True, max_size=20))
def test_names_are_names_and_differ(texts: list[str]) -> None:
    names = [dns_label(text) for text in texts]
    assert all(re.fullmatch(DNS, name) for name in names)
    assert len(set(names)) == len(names)


@share(2)
@given(
    st.text(LETTERS, max_size=8)
    | st.sampled_from(
        ["no", "on", "1e3", "0x1", "1:30", "~", "a: b", "- a", "2024-01-01", "\U0001f600"]
    )
)
def test_yaml_says_what_was_meant(text: str) -> None:
    (document,) = read_yaml_or_json(Source("x.yaml", f"a: {write_scalar(text)}\n"))
    assert document.value == {"a": text}


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
    for target in TARGETS:
        made = applied(export(fleet, target))
        pods = [each["spec"]["template"] for each in made]
        names = {env_of(each["spec"]["containers"][0])["CMS_SERVICE"] for each in pods}
        assert names == {service.name for service in services}
        labels = [each["metadata"]["labels"] for each in pods]
        assert len({each["cms.service"] for each in labels}) == 4
        assert all(
            re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", value)
            for each in labels for value in each.values()
        )  # fmt: skip


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
    for target in TARGETS:
        with pytest.raises(InvalidProblem, match=re.escape(repr(names[0]))):
            export(deployment, target)
    label = label_value(names[0])
    asked_for = label, point_label(works[0]), ("3g.40gb",), (A100.key,)
    assert MergeContext(deployment, {}, None).work(*asked_for) is None


# --- outside voices -------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kustomize is run by kubectl alone")
@pytest.mark.parametrize("target", TARGETS)
def test_kustomize_makes_of_it_what_was_meant(target: str, tmp_path: Path) -> None:
    written = export(MIXED, target, ExportOptions(base=(BASE,), namespace="prod"))
    write(tmp_path / target, written)
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
    assert all(each in meant for each in found if each["kind"] != "Deployment")
