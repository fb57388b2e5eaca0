"""For the GPU Operator: a ConfigMap for mig-manager, labels, and a script for each node.

The order of a script (cordon, drain, label, wait, uncordon) is the maintainers' own:
https://github.com/NVIDIA/gpu-operator/issues/262.
"""

from __future__ import annotations

import re

from ....errors import InvalidProblem
from ..model import Deployment
from . import mig_parted
from .export import Export, ExportOptions, render, require_word
from .notes import assemble

__all__ = ["config_map", "kubernetes_name", "once", "write"]

_MAP, _LABELS = "configmap.yaml", "labels.sh"
_DNS = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", re.ASCII)


def write(deployment: Deployment, options: ExportOptions) -> Export:
    """Write ``configmap.yaml``, ``labels.sh`` and a script for each node that is cut anew."""
    names, before = (
        {node.name: mig_parted.name_of(mig_parted.node_cuts(node)) for node in each.nodes}
        for each in (deployment, options.now or Deployment(()))
    )
    for name in (*names, options.operator_namespace, options.config_map):
        kubernetes_name(name)
    changed = mig_parted.changed_nodes(deployment, options.now)
    labelled = [node.name for node in deployment.nodes if node.gpus]
    files = {
        _MAP: config_map(mig_parted.configs_text(deployment, options), options),
        _LABELS: "set -eu\n"
        + "".join(
            f"kubectl label --overwrite node {name} nvidia.com/mig.config={names[name]}\n"
            for name in labelled
        ),
    }
    scripts = [f"nodes/{node.name}.sh" for node in changed]
    for node, path in zip(changed, scripts, strict=True):
        wanted, former = names[node.name], before.get(node.name, "-")
        files[path] = render("gpu-operator.sh", node=node.name, wanted=wanted, former=former)
    unchanged, scripts = len(labelled) - len(changed), [*scripts, _LABELS]
    return assemble(
        "gpu-operator", deployment, options, files, scripts, once=once(options), unchanged=unchanged
    )


def kubernetes_name(name: str) -> str:
    """Return a name that Kubernetes takes; else raise InvalidProblem."""
    if not _DNS.fullmatch(name):
        raise InvalidProblem(
            f"{name!r} is no name of Kubernetes; expected lower-case letters, digits, . and -"
        )
    return require_word(name, "the name")


def once(options: ExportOptions) -> tuple[str, ...]:
    """Say how the GPU Operator comes to know the configurations."""
    patch = (
        f'{{"spec": {{"migManager": {{"config": {{"name": "{options.config_map}"}}}}, '
        '"mig": {"strategy": "mixed"}}}'
    )
    return (
        f"`kubectl apply -f {_MAP}`",
        f"`kubectl patch clusterpolicies.nvidia.com/cluster-policy --type merge -p '{patch}'`: "
        "the Operator takes the map in place of its own, wholly.",
    )


def config_map(configs: str, options: ExportOptions) -> str:
    """Write the ConfigMap that holds a mig-parted file."""
    return render("configmap.yaml", configs=configs.rstrip("\n"), options=options)
