"""For the GPU Operator: a ConfigMap for mig-manager, labels, and a script for each node.

The order of a script (cordon, drain, label, wait, uncordon) is the maintainers' own:
https://github.com/NVIDIA/gpu-operator/issues/262.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ....errors import FileError, InvalidProblem
from ....files.source import Source
from ....files.yaml_text import read_yaml_or_json
from ..model import Deployment
from . import mig_parted
from .export import Export, ExportOptions, assembled, word
from .gpu_operator_script import FUNCTIONS, HEAD, MAIN
from .mig_parted_file import name_of

__all__ = ["as_seen", "config_map", "kubernetes_name", "once", "read", "write"]

_MAP, _LABELS = "configmap.yaml", "labels.sh"
_DNS = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", re.ASCII)
_LABEL = re.compile(r"kubectl label --overwrite node (\S+) nvidia\.com/mig\.config=(\S+)")


def write(deployment: Deployment, options: ExportOptions) -> Export:
    """Write ``configmap.yaml``, ``labels.sh`` and a script for each node that is cut anew."""
    names = {node.name: name_of(mig_parted.node_cuts(node)) for node in deployment.nodes}
    for name in (*names, options.operator_namespace, options.config_map):
        kubernetes_name(name)
    changed = mig_parted.changed_nodes(deployment, options.now)
    before = {} if options.now is None else {
        node.name: name_of(mig_parted.node_cuts(node)) for node in options.now.nodes
    }  # fmt: skip
    files = {
        _MAP: config_map(mig_parted.configs_text(deployment, options), options),
        _LABELS: "set -eu\n" + "".join(
            f"kubectl label --overwrite node {node.name} nvidia.com/mig.config={names[node.name]}\n"
            for node in deployment.nodes if node.gpus
        ),
    }  # fmt: skip
    scripts = [f"nodes/{node.name}.sh" for node in changed]
    for node, path in zip(changed, scripts, strict=True):
        said = {"wanted": names[node.name], "former": before.get(node.name, "-")}
        files[path] = HEAD.lstrip() % {"node": node.name, **said} + FUNCTIONS + MAIN
    unchanged = len([node for node in deployment.nodes if node.gpus]) - len(changed)
    order = (
        *once(options),
        "One node after the other: `nodes/NODE.sh`, which cordons, drains, labels, waits and "
        "uncordons."
        + (f" {unchanged} of the nodes are cut so today and have no script." if unchanged else ""),
        f"`{_LABELS}` alone is for nodes that are drained by other means, or have nothing to lose; "
        "mig-manager restarts the device plugin of each node that is labelled.",
    )
    back = (
        "`nodes/NODE.sh undo`, which takes the node through the same steps to its former "
        "configuration."
        if options.now is not None
        else "Label the nodes with the configuration of before, in the same steps; it is not in "
        "these files, as nothing was said of today."
    )
    what = "How mig-manager is to cut the GPUs of each node, as counts."
    said_all = (
        *mig_parted.losses(deployment),
        "Safety: a drain stops all pods of a node, also those of others; mig-manager asks nobody.",
    )
    return assembled(
        "gpu-operator", what, files, said_all, order, back, [*scripts, _LABELS]
    )  # fmt: skip


def kubernetes_name(name: str) -> str:
    """Return a name that Kubernetes takes.

    Raises
    ------
    InvalidProblem
        If it does not.
    """
    if not _DNS.fullmatch(name):
        raise InvalidProblem(
            f"{name!r} is no name of Kubernetes; expected lower-case letters, digits, . and -"
        )
    return word(name, "the name")


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
    body = "".join(f"    {line}" if line.strip() else line for line in configs.splitlines(True))
    return (
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n"
        f"  name: {options.config_map}\n  namespace: {options.operator_namespace}\n"
        f"data:\n  config.yaml: |\n{body}"
    )


def read(files: Mapping[str, str], fleet: Deployment) -> Deployment:
    """Read the files back, as `mig_parted.read` does: from the ConfigMap and the labels.

    Parameters
    ----------
    files : Mapping[str, str]
    fleet : Deployment
        The nodes and their types of GPU.

    Raises
    ------
    FileError
        If a file is wrong, or does not fit the fleet.
    """
    (document,) = read_yaml_or_json(Source(_MAP, files[_MAP]), holds="a ConfigMap")
    if document.at("kind").text() != "ConfigMap":
        raise document.at("kind").wrong('"ConfigMap"')
    configs = document.at("data").at("config.yaml").text()
    named: dict[str, str] = {}
    for line, text in enumerate(files[_LABELS].splitlines(), 1):
        if text.startswith("kubectl"):
            match = _LABEL.fullmatch(text)
            if match is None:
                raise FileError(_LABELS, "this labels no node", line=line)
            named[match[1]] = match[2]
    return mig_parted.read_cuts(Source(f"{_MAP}: config.yaml", configs), named, fleet, _LABELS)


def as_seen(deployment: Deployment) -> Deployment:
    """Return what counts per GPU say, as for mig-parted."""
    return mig_parted.as_seen(deployment)
