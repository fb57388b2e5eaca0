"""Every exported file is what its readers take: asked of validators that did not write it."""

from __future__ import annotations

import json
import subprocess

import pytest
from hypothesis import given, settings

from cms.fleet import get_gpu
from cms.fleet.deployment import Deployment, FleetGpu, FleetNode, Mode, State, check_deployment
from cms.fleet.deployment.export import ExportOptions, export
from tests.fleet.deployments import deployments
from tests.fleet.export.cases import MIXED, machines
from tests.fleet.export.manifests import applied, documents
from tests.fleet.scenarios import SCENARIOS, fleet, placed
from tests.fleet.stand_ins.kubernetes import validators
from tests.samples import so_many

S1 = placed("S1", fleet(a=1, b=1))


def models(deployment: Deployment) -> dict[str, list[str]]:
    return {node.name: [card.gpu.key for card in node.gpus] for node in deployment.nodes}


def as_json(objects: list[dict[str, object]]) -> str:
    return "\n---\n".join(map(json.dumps, objects))


def of_mig_parted(deployment: Deployment) -> list[str]:
    files = export(deployment, "mig-parted").files
    rows = [line.split(",") for line in files["nodes.csv"].splitlines() if line[:1] not in "#"]
    gpus = {config: models(deployment)[node] for node, config in rows[1:]}
    return validators.mig_parted_config(files["mig-parted.yaml"], gpus)


def of_the_operator(deployment: Deployment) -> list[str]:
    files = export(deployment, "gpu-operator").files
    text, labels = files["configmap.yaml"], files["labels.sh"]
    return validators.gpu_operator(text, labels, models(deployment))


def of_slurm(deployment: Deployment) -> list[str]:
    files = export(deployment, "slurm").files
    lines = "".join(text for path, text in files.items() if path.startswith("nodes/"))
    conf = files["cms-slurm.conf"] + lines
    return validators.slurm(files["gres.conf"], conf, machines(deployment))


def of_kubernetes(deployment: Deployment) -> list[str]:
    made = applied(export(deployment, "kubernetes", ExportOptions(namespace="serving")))
    return validators.manifests(as_json(made))


def of_dra(deployment: Deployment) -> list[str]:
    """The claims are asked for on nodes that are cut so, all at once."""
    written = export(deployment, "dra")
    objects = applied(written)
    for path in ("claims.yaml", "device-classes.yaml"):
        if path in written.files:
            objects += documents(written.files[path])
    text = as_json(objects)
    slices = validators.synthetic_slices(machines(deployment))
    return [*validators.manifests(text), *validators.claims(text, slices)]


def of_nvidia_smi(deployment: Deployment) -> list[str]:
    """What the script's table will have it create, as one command line for each GPU."""
    said = []
    for node in deployment.nodes:
        if not node.gpus:
            continue
        script = export(deployment, "nvidia-smi").files[f"nodes/{node.name}.sh"]
        said += validators.nvidia_smi(script, models(deployment)[node.name])
        rows = script.partition("wanted() {")[2].partition("END'\n")[2].partition("END\n")[0]
        tuples: dict[str, list[str]] = {}
        for index, profile, start, *_ in map(str.split, rows.splitlines()):
            tuples.setdefault(index, []).append(f"{profile}:{start}")
        for index, items in tuples.items():
            line = f"nvidia-smi mig -i {index} -cgi {','.join(items)} -C"
            said += validators.nvidia_smi(line, models(deployment)[node.name])
    return said


VALIDATED = {
    "mig-parted": of_mig_parted,
    "gpu-operator": of_the_operator,
    "slurm": of_slurm,
    "kubernetes": of_kubernetes,
    "dra": of_dra,
    "nvidia-smi": of_nvidia_smi,
}


SLOW = {(name, target) for name in SCENARIOS[1:] for target in ("kubernetes", "dra")}


@pytest.mark.parametrize(
    ("scenario", "target"),
    [
        pytest.param(name, target, marks=pytest.mark.long if (name, target) in SLOW else ())
        for name in SCENARIOS
        for target in VALIDATED
    ],
)
def test_the_files_of_the_scenarios(scenario: str, target: str) -> None:
    deployment = placed(scenario, fleet(a=6, b=6, c=4))
    assert check_deployment(deployment) == ()
    assert VALIDATED[target](deployment) == []


@pytest.mark.parametrize("target", VALIDATED)
def test_shares_whole_gpus_and_types_without_a_number(target: str) -> None:
    """A card whose name says no type to Slurm, and one that is shared under MPS."""
    rtx = get_gpu("rtx-pro-6000-96gb")
    cards = (FleetGpu("b", 0, rtx, Mode.WHOLE), FleetGpu("b", 1, rtx))
    deployment = Deployment((*MIXED.nodes, FleetNode("b", cards)), MIXED.services)
    if target == "dra":
        deployment = Deployment(deployment.nodes[1:], MIXED.services)
    assert VALIDATED[target](deployment) == []


@pytest.fixture(scope="module", autouse=True)
def _cel_has_raised_its_recursion_limit() -> None:
    """It does so where it is first used, which hypothesis minds in a property."""
    assert of_dra(S1) == []


@pytest.mark.parametrize("target", VALIDATED)
@settings(max_examples=so_many(2, 10))
@given(deployment=deployments(most_nodes=2, most_gpus=2))
def test_the_files_of_any_deployment(target: str, deployment: Deployment) -> None:
    if target == "dra":
        # The claims of what shares a GPU or has a whole one, and of what is not there yet, are not
        # of these slices.
        shared = {c.name for c in deployment.gpus() if c.mode is not Mode.MIG}
        cards = {
            (c.node, c.index): c.with_instances(
                ()
                if c.name in shared
                else [i for i in c.instances if i.state is not State.NO_COMPUTE_INSTANCE],
                Mode.MIG,
            )
            for c in deployment.gpus()
        }
        deployment = deployment.with_gpus(cards)
    assert VALIDATED[target](deployment) == []


@pytest.mark.parametrize("target", ["mig-parted", "gpu-operator", "nvidia-smi", "slurm"])
def test_the_shell_can_read_the_scripts_of_the_scenarios(target: str) -> None:
    written = export(placed("S6", fleet(a=8, b=8)), target)
    for path in written.executables:
        text = written.files[path]
        told = subprocess.run(["sh", "-n"], input=text, capture_output=True, text=True, check=False)
        assert (told.returncode, told.stderr) == (0, "")
