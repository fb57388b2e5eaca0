"""What is written for tools: read back, it is what the tool can know, and the rest is said."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given

from cms.errors import CmsError, FileError, InvalidOption, InvalidProblem
from cms.files.source import Source
from cms.fleet.deployment import (
    Deployment,
    FleetGpu,
    FleetNode,
    Instance,
    Mode,
    Seen,
    State,
    deployment_from_json,
    deployment_to_json,
)
from cms.fleet.deployment.export import TARGETS, ExportOptions, advertise, export
from cms.fleet.deployment.export.export import assembled, bare
from cms.fleet.deployment.export.mig_parted_file import read_configs
from cms.values.frozen import FrozenMap
from tests.fleet.deployments import SERVICES, deployments
from tests.fleet.export.cases import A30, A100, MIXED, body, card, node, serving
from tests.property.problems import share

OURS = ("mig-parted", "gpu-operator", "nvidia-smi", "slurm")


# --- what is read back ----------------------------------------------------------------------------


@pytest.mark.parametrize("target", OURS)
@share(5)
@given(deployment=deployments())
def test_what_is_written_is_read_back_as_the_target_sees_it(
    target: str, deployment: Deployment
) -> None:
    written = export(deployment, target)
    tool = TARGETS[target]
    assert tool.read(written.files, bare(deployment)) == tool.as_seen(deployment)
    assert export(deployment, target) == written
    for path, text in written.files.items():
        assert text.endswith("\n")
        assert "\r" not in text
        if path != "README.md":
            said = re.findall(r"^# Not said here: (.*)$", text, re.MULTILINE)
            assert tuple(said) == written.losses
    assert all(f"- {loss}\n" in written.files["README.md"] for loss in written.losses)
    assert {path for path, text in written.files.items() if text.startswith("#!/bin/sh\n")} == set(
        written.executables
    )
    if target == "mig-parted":
        configs = read_configs(Source("c.yaml", written.files["mig-parted.yaml"]))
        assert all(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", name) for name in configs)
        assert len(set(map(frozenset, configs.values()))) == len(configs)


@given(deployment=deployments())
def test_a_projection_is_its_own_projection_and_what_is_lost_is_said(
    deployment: Deployment,
) -> None:
    for target in ("mig-parted", "gpu-operator", "nvidia-smi"):
        seen = TARGETS[target].as_seen(deployment)
        assert isinstance(seen, Deployment)
        assert TARGETS[target].as_seen(seen) == seen
        said = " ".join(export(deployment, target).losses)
        there, left = list(deployment.gpus()), list(seen.gpus())
        held = [each for _, each in deployment.instances()]
        assert ("Starts:" in said) == any(c.seen is Seen.UNKNOWN for c in left)
        assert ("MPS" in said) == any(c.mode is Mode.MPS for c in there)
        assert ("Services:" in said) == bool(deployment.services)
        assert ("Owners:" in said) == any(not each.is_ours for each in held)
        assert ("States:" in said) == any(each.state is not State.RUNNING for each in held)
        rates = {(i.work.service, i.work.supply_rps) for i in held if i.work is not None}
        assert ("Traffic:" in said) == (len(rates) > len({name for name, _ in rates}))


def test_counts_are_read_with_starts_where_one_layout_alone_has_them() -> None:
    seen = TARGETS["mig-parted"].as_seen(MIXED)
    assert isinstance(seen, Deployment)
    known, unknown, whole, empty = seen.gpus()
    assert (known.seen, known.layout) == (Seen.ONLY_ONE, (("4g.40gb", 0), ("3g.40gb", 4)))
    assert (unknown.seen, unknown.layout) == (Seen.UNKNOWN, ())
    assert unknown.counts == {"1g.10gb": 1, "2g.20gb": 1}
    assert (whole.mode, whole.instances) == (Mode.WHOLE, ())
    assert (empty.mode, empty.instances) == (Mode.MIG, ())


def test_slurm_sees_sums_over_a_node() -> None:
    assert TARGETS["slurm"].as_seen(MIXED) == {
        "node-a": {
            "gpu:a100": 1,
            "gpu:a100_1g.10gb": 1,
            "gpu:a100_2g.20gb": 1,
            "gpu:a100_3g.40gb": 1,
            "gpu:a100_4g.40gb": 1,
            "mps": 100,
        }
    }


# --- golden pieces --------------------------------------------------------------------------------


def test_a_mig_parted_file_lists_every_index_and_no_zero() -> None:
    assert body(export(MIXED, "mig-parted").files["mig-parted.yaml"]) == (
        "version: v1\n"
        "mig-configs:\n"
        "  all-disabled:\n"
        "  - devices: all\n"
        "    mig-enabled: false\n"
        "  cms-7ae23248281d:\n"
        "  - devices: [0]\n"
        "    mig-enabled: true\n"
        '    mig-devices: {"3g.40gb": 1, "4g.40gb": 1}\n'
        "  - devices: [1]\n"
        "    mig-enabled: true\n"
        '    mig-devices: {"1g.10gb": 1, "2g.20gb": 1}\n'
        "  - devices: [2]\n"
        "    mig-enabled: false\n"
        "  - devices: [3]\n"
        "    mig-enabled: true\n"
        "    mig-devices: {}\n"
    )


def test_nodes_that_are_cut_alike_share_a_configuration() -> None:
    cut = (serving("4g.40gb", 0), serving("3g.40gb", 4))
    nodes = tuple(
        FleetNode(name, (FleetGpu(name, 0, A100, instances=cut),)) for name in ("b", "a", "c")
    )
    files = export(Deployment(nodes, SERVICES), "mig-parted").files
    assert len(read_configs(Source("c.yaml", files["mig-parted.yaml"]))) == 2
    table = body(files["nodes.csv"]).splitlines()
    assert [row.partition(",")[0] for row in table] == ["node", "a", "b", "c"]
    assert len({row.partition(",")[2] for row in table[1:]}) == 1


def test_the_operators_files_are_a_config_map_labels_and_a_script_a_node() -> None:
    written = export(MIXED, "gpu-operator")
    assert list(written.files) == ["README.md", "configmap.yaml", "labels.sh", "nodes/node-a.sh"]
    assert body(written.files["configmap.yaml"]).startswith(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: cms-mig-parted-config\n"
        "  namespace: gpu-operator\ndata:\n  config.yaml: |\n    version: v1\n"
    )
    assert body(written.files["labels.sh"]) == (
        "set -eu\nkubectl label --overwrite node node-a nvidia.com/mig.config=cms-7ae23248281d\n"
    )


def test_slurms_lines_shrink_to_what_stays_as_it_is_cut() -> None:
    now = node(
        card(0, serving("4g.40gb", 0), serving("2g.20gb", 4)),
        card(1, serving("1g.10gb", 2), Instance("2g.20gb", 4, owner="pod team-x/a")),
        card(2, mode=Mode.WHOLE),
        card(3),
    )
    options = ExportOptions(now, slurm_nodes=FrozenMap({"node-a": "CPUs=64"}))
    files = export(MIXED, "slurm", options).files
    assert body(files["shrunk/node-a.conf"]) == (
        "NodeName=node-a Gres=gpu:a100:1,gpu:a100_1g.10gb:1,gpu:a100_2g.20gb:1 CPUs=64\n"
    )
    assert body(files["nodes/node-a.conf"]) == (
        "NodeName=node-a Gres=gpu:a100:1,gpu:a100_1g.10gb:1,gpu:a100_2g.20gb:1,"
        "gpu:a100_3g.40gb:1,gpu:a100_4g.40gb:1,mps:100 CPUs=64\n"
    )
    assert body(files["gres.conf"]) == (
        "NodeName=node-a AutoDetect=nvml\nNodeName=node-a Name=mps Count=100 File=/dev/nvidia2\n"
    )
    assert body(files["cms-slurm.conf"]) == (
        "GresTypes=gpu,mps\n"
        "# With slurmdbd alone: AccountingStorageTRES=gres/gpu,gres/gpu:a100,"
        "gres/gpu:a100_1g.10gb,gres/gpu:a100_2g.20gb,"
        "gres/gpu:a100_3g.40gb,gres/gpu:a100_4g.40gb,gres/mps\n"
        "Include cms/node-a.conf\n"
    )
    types = ExportOptions(slurm_types=FrozenMap({"a100-80gb": ""}))
    assert "Gres=gpu:1,gpu:1g.10gb:1," in export(MIXED, "slurm", types).files["nodes/node-a.conf"]


def test_the_losses_of_counts_name_what_is_lost() -> None:
    losses = export(MIXED, "mig-parted").losses
    assert losses[0].startswith("Starts: the driver chooses them; 1 GPU can be cut in several ways")
    assert "Services: what 5 of the instances do (chat, code): models" in " ".join(losses)
    assert "instances of different capacity serve chat, code." in " ".join(losses)
    assert "Shares under MPS of node-a/2 (they are unequal on node-a/2): MIG is off" in " ".join(
        losses
    )
    assert "node-a/1 2g.20gb@4 of pod team-x/a" in " ".join(losses)
    assert "--gres=mps:40" in " ".join(export(MIXED, "slurm").losses)
    assert "a drain stops all pods" in export(MIXED, "gpu-operator").losses[-1]
    assert not any(
        loss.startswith(("Starts", "Part of")) for loss in export(MIXED, "nvidia-smi").losses
    )


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize("target", OURS)
def test_what_cannot_be_is_not_written(target: str) -> None:
    with pytest.raises(InvalidProblem, match=r"node-a/0 has 3g\.40gb@2, needs a start among 0, 4"):
        export(node(card(0, Instance("3g.40gb", 2))), target)
    bad = Deployment((FleetNode("a b", (FleetGpu("a b", 0, A100),)),))
    with pytest.raises(InvalidProblem, match='node "a b" cannot stand in a script'):
        export(bad, target)
    with pytest.raises(InvalidProblem, match="UUID of node-a/0"):
        export(node(replace(card(0), uuid="$(reboot)")), target)


def test_a_target_that_is_not_there_is_named() -> None:
    with pytest.raises(InvalidOption, match="nearest: 'mig-parted'"):
        export(MIXED, "mig-partd")


def test_nvidia_smi_is_not_written_for_starts_that_nobody_knows() -> None:
    unknown = replace(card(0, Instance("2g.20gb")), seen=Seen.UNKNOWN)
    assert export(node(unknown), "mig-parted").losses
    with pytest.raises(InvalidProblem, match="observe the node again with: nvidia-smi mig -lgi"):
        export(node(unknown), "nvidia-smi")
    with pytest.raises(InvalidProblem, match="without a start"):
        export(node(card(0)), "nvidia-smi", ExportOptions(node(unknown)))


@pytest.mark.parametrize("target", OURS)
def test_what_is_not_ours_stays_where_it_is(target: str) -> None:
    now = node(card(0, Instance("3g.40gb", 4, owner="pod team-x/a")))
    with pytest.raises(InvalidProblem, match="not ours"):
        export(node(card(0, serving("4g.40gb", 0))), target, ExportOptions(now))
    taken = node(card(0, serving("3g.40gb", 4)))
    written = export(taken, target, ExportOptions(now))
    tool = TARGETS[target]
    assert tool.read(written.files, bare(taken)) == tool.as_seen(taken)
    beside = node(card(0, serving("4g.40gb", 0), Instance("3g.40gb", 4, owner="unknown")))
    if target == "nvidia-smi":
        assert export(beside, target, ExportOptions(now)).executables
    else:  # which would cut the GPU anew as a whole
        with pytest.raises(InvalidProblem, match="write it for nvidia-smi"):
            export(beside, target, ExportOptions(now))
        assert export(now, target, ExportOptions(now)).files


@pytest.mark.parametrize("target", OURS)
def test_today_must_have_the_same_gpus(target: str) -> None:
    with pytest.raises(InvalidProblem, match="node-a/1 is not in the deployment of today"):
        export(node(card(0), card(1)), target, ExportOptions(node(card(0))))
    other = Deployment((FleetNode("node-a", (FleetGpu("node-a", 0, A30),)),))
    with pytest.raises(InvalidProblem, match="expected the same GPUs in both"):
        export(node(card(0)), target, ExportOptions(other))


def test_a_node_that_is_cut_so_today_has_no_script() -> None:
    written = export(MIXED, "gpu-operator", ExportOptions(MIXED))
    assert "nodes/node-a.sh" not in written.files
    assert "1 of the nodes are cut so today" in written.order[2]
    assert "nodes/NODE.sh undo" in written.files["README.md"]


def test_names_of_kubernetes_are_lower_case() -> None:
    with pytest.raises(InvalidProblem, match="no name of Kubernetes"):
        export(Deployment((FleetNode("Node-A"),)), "gpu-operator")


@pytest.mark.parametrize("target", OURS)
def test_files_that_do_not_fit_the_fleet_are_refused(target: str) -> None:
    read, files = TARGETS[target].read, dict(export(MIXED, target).files)
    other = Deployment((FleetNode("node-b", (FleetGpu("node-b", 0, A100),)),))
    with pytest.raises(FileError, match="node-b"):
        read(files, other)
    if target != "slurm":
        with pytest.raises(FileError):
            read(files, node(card(0), card(1), card(2)))


# --- what is offered ------------------------------------------------------------------------------


def test_nodes_offer_their_instances_by_the_plug_ins_names() -> None:
    (offer,) = advertise(MIXED)
    assert offer.strategy == "mixed"
    assert offer.resources == {
        "nvidia.com/gpu": 1,
        "nvidia.com/mig-1g.10gb": 1,
        "nvidia.com/mig-2g.20gb": 1,
        "nvidia.com/mig-3g.40gb": 1,
        "nvidia.com/mig-4g.40gb": 1,
    }
    media = node(card(0, Instance("1g.10gb+me", 0)))
    (offer,) = advertise(media)
    assert (offer.strategy, offer.resources) == ("single", {"nvidia.com/mig-1g.10gb.me": 1})
    assert advertise(media, "single")[0].resources == {"nvidia.com/gpu": 1}
    assert advertise(MIXED, "single")[0].resources == {}
    assert advertise(MIXED, "none")[0].resources == {"nvidia.com/gpu": 4}
    assert advertise(node(card(0, mode=Mode.WHOLE)))[0].strategy == "none"
    left = Instance("1g.10gb", 0, owner="unknown", state=State.HOLLOW)
    assert advertise(node(card(0, left)))[0].resources == {}
    with pytest.raises(InvalidOption, match="one of mixed, single, none"):
        advertise(MIXED, "both")


@given(deployment=deployments())
def test_offers_add_up_to_the_instances(deployment: Deployment) -> None:
    for offer, each in zip(advertise(deployment), deployment.nodes, strict=True):
        parts = sum(Fraction(count) for count in offer.resources.values())
        hollow = [
            i
            for c in each.gpus
            for i in c.instances
            if c.mode is Mode.MIG and not i.is_ours and i.state is State.HOLLOW
        ]
        whole = sum(1 for c in each.gpus if c.mode is not Mode.MIG)
        cut = sum(len(c.instances) for c in each.gpus if c.mode is Mode.MIG)
        assert parts == whole + cut - len(hollow)
        assert all(len(name.partition("/")[2]) <= 63 for name in offer.resources)


def test_faults_of_readers_are_ours() -> None:
    with pytest.raises(CmsError):
        TARGETS["nvidia-smi"].read({}, MIXED)


def test_a_name_cannot_end_a_comment_of_a_script() -> None:
    for field in ("owner", "uuid"):
        with pytest.raises(InvalidProblem, match=f"(?i){field}"):
            Instance("3g.40gb", 4, **{field: "pod x\ntouch /tmp/x\n#"})  # type: ignore[arg-type]
    document = deployment_to_json(node(card(0, Instance("3g.40gb", 4, owner="x"))))
    document["nodes"][0]["gpus"][0]["instances"][0]["owner"] = "pod x\ntouch /tmp/x\n#"
    with pytest.raises(FileError, match="owner"):
        deployment_from_json(document)
    document["nodes"][0]["gpus"][0]["instances"][0]["owner"] = None
    for part in (gpu_of := document["nodes"][0]["gpus"][0], gpu_of["instances"][0]):
        for uuid in ("- off off no", "", "GPU-0\nEND", "GPU-0 x", "off", "$(reboot)"):
            part["uuid"] = uuid
            with pytest.raises(FileError, match="uuid"):
                deployment_from_json(document)
            with pytest.raises(InvalidProblem, match="UUID"):
                replace(card(0), uuid=uuid if uuid != "off" else "-")
        part["uuid"] = None
    document["devices"][0]["profiles"][0]["other_names"] = ["1g\nEND\n}\ntouch /tmp/x"]
    with pytest.raises(FileError, match="other_names"):
        deployment_from_json(document)
    loss = assembled("slurm", "A file.", {"a.conf": ""}, ["a\nb\u2028c"], (), "").losses
    assert loss == ("a b c",)
