"""For the GPU Operator: a ConfigMap for mig-manager, and the labels of the nodes."""

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
    """Write ``configmap.yaml`` and ``labels.sh``."""
    names = {node.name: mig_parted.name_of(mig_parted.node_cuts(node)) for node in deployment.nodes}
    for name in (*names, options.operator_namespace, options.config_map):
        kubernetes_name(name)
    mig_parted.refuse_foreign(deployment, options.now)
    labelled = [node.name for node in deployment.nodes if node.gpus]
    files = {
        _MAP: config_map(mig_parted.configs_text(deployment, options), options),
        _LABELS: "set -eu\n"
        + "".join(
            f"kubectl label --overwrite node {name} nvidia.com/mig.config={names[name]}\n"
            for name in labelled
        ),
    }
    return assemble("gpu-operator", deployment, options, files, [_LABELS], once=once(options))


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
