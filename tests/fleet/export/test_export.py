"""What is written for tools: files, what they do not say, and what is refused before."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given

from cms.errors import CmsError, FileError, InvalidProblem
from cms.files.source import Source
from cms.fleet.deployment import (
    Deployment,
    FleetGpu,
    FleetNode,
    Instance,
    Mode,
    StartSource,
    State,
    deployment_from_json,
    deployment_to_json,
)
from cms.fleet.deployment.export import TARGETS, ExportOptions, advertise, export
from cms.fleet.deployment.export.mig_parted import configs_of, merged, name_of, text_of
from cms.fleet.deployment.observation.mig_parted import read_configs
from cms.values.frozen import FrozenMap
from tests.fleet.deployments import SERVICES, deployments
from tests.fleet.export.cases import A30, A100, MIXED, body, card, node, serving
from tests.property.problems import share

OURS = ("mig-parted", "gpu-operator", "slurm")


@pytest.mark.parametrize("target", TARGETS)
@share(6)
@given(deployment=deployments())
def test_what_is_lost_is_said_at_the_head_of_each_file_and_in_the_readme(
    target: str, deployment: Deployment
) -> None:
    written = export(deployment, target)
    assert export(deployment, target) == written
    for path, text in written.files.items():
        assert text.endswith("\n")
        assert "\r" not in text
        if path != "README.md":
            said = re.findall(r"^# Not said here: (.*)$", text, re.MULTILINE)
            assert tuple(said) == written.losses
    readme = written.files["README.md"]
    assert all(f"- {loss}\n" in readme for loss in written.losses)
    assert all(f"{at}. {step}\n" in readme for at, step in enumerate(written.order, 1))
    assert {path for path, text in written.files.items() if text.startswith("#!/bin/sh\n")} == set(
        written.executables
    )
    lost = " ".join(written.losses)
    held = [(card, each) for card, each in deployment.instances()]
    cut = [card for card in deployment.gpus() if card.mode is Mode.MIG]
    rates = {(i.work.service, i.work.supply_rps) for _, i in held if i.work is not None}
    expected = {
        "MPS": any(c.mode is Mode.MPS for c in deployment.gpus()),
        "Services:": bool(deployment.services),
        "Owners:": any(not each.is_managed for _, each in held),
    }
    if target in OURS:
        expected["States:"] = any(each.state is not State.RUNNING for _, each in held)
        expected["Traffic:"] = len(rates) > len({name for name, _ in rates})
    if target in ("mig-parted", "gpu-operator", "dra"):
        expected["Starts:"] = any(len(c.gpu.layouts_of(c.counts)) > 1 for c in cut)
    assert {word: word in lost for word in expected} == expected


# --- pieces that tools read -----------------------------------------------------------------------


def test_a_mig_parted_file_lists_every_index_and_no_zero() -> None:
    other = replace(MIXED.nodes[0], name="b", gpus=tuple(
        replace(card, node="b") for card in MIXED.nodes[0].gpus
    ))  # fmt: skip
    both = Deployment((*MIXED.nodes, other), SERVICES)
    files = export(both, "mig-parted").files  # nodes that are cut alike share a configuration
    assert body(files["nodes.csv"]) == (
        "node,config\nb,cms-7ae23248281d\nnode-a,cms-7ae23248281d\n"
    )
    assert body(files["mig-parted.yaml"]) == (
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
    operator = export(MIXED, "gpu-operator").files
    assert list(operator) == ["README.md", "configmap.yaml", "labels.sh"]
    assert body(operator["configmap.yaml"]).startswith(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: cms-mig-parted-config\n"
        "  namespace: gpu-operator\ndata:\n  config.yaml: |\n    version: v1\n"
    )
    assert body(operator["labels.sh"]) == (
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
    # MIG goes on with a reset, which no instance of the node survives
    kept = card(0, serving("4g.40gb", 0))
    reset = ExportOptions(node(kept, card(1, mode=Mode.WHOLE)))
    shrunk = export(node(kept, card(1)), "slurm", reset).files["shrunk/node-a.conf"]
    assert body(shrunk) == "NodeName=node-a\n"
    types = ExportOptions(slurm_types=FrozenMap({"a100-80gb": ""}))
    assert "Gres=gpu:1,gpu:1g.10gb:1," in export(MIXED, "slurm", types).files["nodes/node-a.conf"]


THEIRS = """\
# ours since 2024
version: v1
mig-configs:
    all-disabled:
      - devices: all          # as in the default file
        mig-enabled: false

    # for training
    train:
      - device-filter: ["0x20B710DE"]
        devices: [0, 1]
        mig-enabled: true
        mig-devices: {
          "1g.10gb": 7,
        }  # seven
# the end
"""


@pytest.mark.parametrize(
    "text",
    [
        THEIRS, f"  {THEIRS}", f"---\n{THEIRS}---\n", '{"version": "v1", "mig-configs": {}}',
        text_of({}),
    ],
)  # fmt: skip
def test_an_existing_file_keeps_what_it_says_and_gains_ours(text: str) -> None:
    options = ExportOptions(merge=Source("theirs.yaml", text))
    written = export(MIXED, "mig-parted", options).files["mig-parted.yaml"]
    both = read_configs(Source("c.yaml", body(written)))
    ours = read_configs(Source("o.yaml", export(MIXED, "mig-parted").files["mig-parted.yaml"]))
    assert both == {**ours, **read_configs(Source("t.yaml", text))}
    assert all(said in written for said in re.findall("# .*", text))
    again = ExportOptions(merge=Source("ours.yaml", written))
    assert export(MIXED, "mig-parted", again).files["mig-parted.yaml"] == written
    operator = export(MIXED, "gpu-operator", options).files["configmap.yaml"]
    assert all(said in operator for said in re.findall("# .*", text))


def test_names_of_configurations_that_mean_two_things_are_refused() -> None:
    cuts = {0: None}
    theirs = text_of({name_of(cuts): {0: FrozenMap({"1g.10gb": 1})}})
    with pytest.raises(FileError, match=f"^c.yaml.*{name_of(cuts)}"):
        merged(Source("c.yaml", theirs), {name_of(cuts): cuts})
    # two of which the hashes begin with the same 48 bits, found among 48 million
    one, two = ({0: FrozenMap({"1g.10gb": count})} for count in (5_758_168, 44_609_950))
    assert list(configs_of([one, dict(one)])) == [name_of(two)]
    with pytest.raises(InvalidProblem, match="5758168.* 44609950.* cms-4fe7713f35a0"):
        configs_of([one, two])


# --- what is refused ------------------------------------------------------------------------------

ALL = tuple(TARGETS)
UNKNOWN = replace(card(0, Instance("2g.20gb")), start_source=StartSource.UNKNOWN)
FOREIGN = card(0, Instance("3g.40gb", 4, owner="pod team-x/a"))
BESIDE = card(0, serving("4g.40gb", 0), Instance("3g.40gb", 4, owner="unknown"))
BAD_NAME = Deployment((FleetNode("a b", (FleetGpu("a b", 0, A100),)),))
OTHER = Deployment((FleetNode("node-a", (FleetGpu("node-a", 0, A30),)),))
REFUSED: dict[str, tuple[Deployment, ExportOptions, tuple[str, ...], str]] = {
    "a start": (node(card(0, Instance("3g.40gb", 2))), ExportOptions(), ALL, "3g.40gb@2"),
    "a name": (BAD_NAME, ExportOptions(), ALL, '"a b"'),
    "a name of Kubernetes": (
        Deployment((FleetNode("Node-A"),)), ExportOptions(), ("gpu-operator",), "'Node-A'",
    ),
    "a namespace": (MIXED, ExportOptions(namespace="Prod"), ("kubernetes", "dra"), "'Prod'"),
    "over a foreign one": (
        node(card(0, serving("4g.40gb", 0))), ExportOptions(node(FOREIGN)), OURS, "pod team-x/a",
    ),
    "beside a foreign one": (
        node(BESIDE), ExportOptions(node(FOREIGN)), OURS, "nvidia-smi",
    ),
    "no GPU today": (node(card(0), card(1)), ExportOptions(node(card(0))), OURS, "node-a/1"),
    "another GPU today": (node(card(0)), ExportOptions(OTHER), OURS, "a30-24gb"),
    "another UUID today": (
        node(replace(card(0), uuid="GPU-9")), ExportOptions(node(replace(card(0), uuid="GPU-0"))),
        OURS, "GPU-0.* GPU-9",
    ),
    "no UUID": (
        node(card(0, serving("3g.40gb", 0))), ExportOptions(pin_gpus=True), ("dra",), "node-a/0",
    ),
    "no numbers": (
        Deployment((replace(MIXED.nodes[0], is_numbered=False),), SERVICES), ExportOptions(), OURS,
        "'node-a'.* nvidia-smi -q -x",
    ),
    "a line of Slurm": (
        MIXED, ExportOptions(slurm_nodes=FrozenMap({"node-a": "Gres=gpu:1"})), ("slurm",),
        "node-a.*'Gres=gpu:1'",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("deployment", "options", "targets", "has"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_is_not_written(
    deployment: Deployment, options: ExportOptions, targets: tuple[str, ...], has: str
) -> None:
    for target in targets:
        with pytest.raises(InvalidProblem, match=has):
            export(deployment, target, options)


def test_what_is_foreign_and_stays_does_not_hinder() -> None:
    assert export(node(UNKNOWN), "mig-parted").files
    for target in OURS:
        taken = node(card(0, serving("3g.40gb", 4)))
        assert export(taken, target, ExportOptions(node(FOREIGN))).files
        assert export(node(FOREIGN), target, ExportOptions(node(FOREIGN))).files


def test_a_name_cannot_end_a_comment_of_a_script() -> None:
    document = deployment_to_json(node(card(0, Instance("3g.40gb", 4, owner="x"))))
    gpu_of = document["nodes"][0]["gpus"][0]
    part = gpu_of["instances"][0]
    names = document["devices"][0]["profiles"][0]
    for holder, key, bad in (
        (part, "owner", ("pod x\ntouch /tmp/x\n#",)),
        (gpu_of, "uuid", ("- off off no", "", "GPU-0\nEND", "GPU-0 x", "off", "$(reboot)")),
        (part, "uuid", ("- off off no", "GPU-0\nEND")),
        (names, "other_names", (["1g\nEND\n}\ntouch /tmp/x"],)),
    ):
        good = holder[key]
        for each in bad:
            holder[key] = each
            with pytest.raises(CmsError, match=f"(?i){key}"):
                deployment_from_json(document)
        holder[key] = good
    deployment_from_json(document)


# --- what is offered ------------------------------------------------------------------------------


def test_nodes_offer_their_instances_by_the_plug_ins_names() -> None:
    (offer,) = advertise(MIXED)
    assert offer.strategy == "mixed"
    assert offer.resources == {
        "nvidia.com/gpu": 1, "nvidia.com/mig-1g.10gb": 1, "nvidia.com/mig-2g.20gb": 1,
        "nvidia.com/mig-3g.40gb": 1, "nvidia.com/mig-4g.40gb": 1,
    }  # fmt: skip
    media = node(card(0, Instance("1g.10gb+me", 0)))
    left = Instance("1g.10gb", 0, owner="unknown", state=State.NO_COMPUTE_INSTANCE)
    for deployment, strategy, resources in (
        (media, "single", {"nvidia.com/mig-1g.10gb.me": 1}),
        (node(card(0, mode=Mode.WHOLE)), "none", {"nvidia.com/gpu": 1}),
        (node(card(0, left)), "mixed", {}),
    ):
        (offer,) = advertise(deployment)
        assert (offer.strategy, offer.resources) == (strategy, resources)


@given(deployment=deployments())
def test_offers_add_up_to_the_instances(deployment: Deployment) -> None:
    for offer, each in zip(advertise(deployment), deployment.nodes, strict=True):
        parts = sum(Fraction(count) for count in offer.resources.values())
        held = [i for c in each.gpus if c.mode is Mode.MIG for i in c.instances]
        offered = [i for i in held if i.is_managed or i.state is not State.NO_COMPUTE_INSTANCE]
        assert parts == len(offered) + sum(c.mode is not Mode.MIG for c in each.gpus)
        assert all(len(name.partition("/")[2]) <= 63 for name in offer.resources)
