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
from .mig_parted_file import name_of

__all__ = ["as_seen", "read", "write"]

_MAP, _LABELS = "configmap.yaml", "labels.sh"
_DNS = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", re.ASCII)
_LABEL = re.compile(r"kubectl label --overwrite node (\S+) nvidia\.com/mig\.config=(\S+)")

_SCRIPT = r"""
# Usage: %(node)s.sh [apply|verify|undo]. Run it from where kubectl reaches the cluster.
# It stops at the first thing that fails, says so, and can be run again: what is done stays done.
set -u
node='%(node)s'
wanted='%(wanted)s'
former='%(former)s'
drain_flags=${CMS_DRAIN_FLAGS---ignore-daemonsets --timeout=600s}
tries=${CMS_TRIES:-240}
pause=${CMS_PAUSE:-5}

say() { echo "$node: $*"; }
fail() {
    echo "$node: $*" >&2
    exit 1
}

# A field of the node, by JSONPath; empty if it is not there.
field() {
    kubectl get node "$node" -o "jsonpath={$1}" </dev/null ||
        fail "kubectl could not read it; nothing was changed by this step"
}
config() { field '.metadata.labels.nvidia\.com/mig\.config'; }
state() { field '.metadata.labels.nvidia\.com/mig\.config\.state'; }
ours() { field '.metadata.labels.cms\.cordoned'; }
closed() { field '.spec.unschedulable'; }

# Whether mig-manager says that the node is cut as $1.
is_cut() {
    is_config=$(config) || exit 1
    is_state=$(state) || exit 1
    [ "$is_config" = "$1" ] && [ "$is_state" = success ]
}

# Opens the node again if a run of this script closed it.
open_again() {
    is_ours=$(ours) || exit 1
    is_closed=$(closed) || exit 1
    if [ "$is_ours" = yes ]; then
        kubectl uncordon "$node" </dev/null ||
            fail "it is cut as it should be, but still cordoned: kubectl uncordon $node"
        kubectl label node "$node" cms.cordoned- </dev/null >/dev/null ||
            fail "it is in use again; remove its label: kubectl label node $node cms.cordoned-"
    elif [ "$is_closed" = true ]; then
        say "somebody else has cordoned it, so it stays so"
    fi
}

change() {
    if is_cut "$1"; then
        say "it is cut as $1 has it; nothing to do"
        open_again
        return 0
    fi
    is_closed=$(closed) || exit 1
    if [ "$is_closed" != true ]; then
        kubectl label --overwrite node "$node" cms.cordoned=yes </dev/null >/dev/null ||
            fail "kubectl could not label it; nothing has changed"
        kubectl cordon "$node" </dev/null || fail "kubectl could not cordon it; nothing has changed"
    fi
    # shellcheck disable=SC2086 # several words on purpose
    kubectl drain "$node" $drain_flags </dev/null ||
        fail "it could not be drained and stays cordoned. Pods with emptyDir data go with" \
            "CMS_DRAIN_FLAGS='--ignore-daemonsets --delete-emptydir-data'." \
            "To give up: kubectl uncordon $node; kubectl label node $node cms.cordoned-"
    is_config=$(config) || exit 1
    is_state=$(state) || exit 1
    if [ "$is_config" = "$1" ] && [ "$is_state" = failed ]; then
        fail "mig-manager has failed with $1 and does not try again by itself. Read its log, then" \
            "give it another label first: kubectl label --overwrite node $node" \
            "nvidia.com/mig.config=all-disabled"
    fi
    if [ "$is_config" != "$1" ]; then
        # The old state goes with the old label: it must not be taken for the answer.
        kubectl label --overwrite node "$node" "nvidia.com/mig.config=$1" \
            nvidia.com/mig.config.state- </dev/null >/dev/null ||
            fail "kubectl could not label it; it is drained and cordoned, its GPUs are as before"
    fi
    await "$1"
    open_again
}

await() {
    tried=0
    while [ "$tried" -lt "$tries" ]; do
        is_state=$(state) || exit 1
        case $is_state in
        success)
            say "it is cut as $1 has it"
            return 0
            ;;
        failed)
            fail "mig-manager has failed with $1 (its log says why; a GPU in use by another" \
                "client may be held by the telemetry agent, DCGM). The node stays cordoned."
            ;;
        esac
        sleep "$pause"
        tried=$((tried + 1))
    done
    fail "mig-manager has not said success after $tries looks (its last word: '$is_state')." \
        "The node stays cordoned; run this again to go on waiting."
}

apply() { change "$wanted"; }

verify() {
    is_cut "$wanted" ||
        fail "its label is '$is_config' and its state '$is_state', not $wanted and success"
    say "it is cut as $wanted has it"
}

undo() {
    [ "$former" != - ] || fail "what stood before was not known when this was written"
    change "$former"
}

case ${1-} in
"") apply && verify ;;
apply | verify | undo) "$1" ;;
*)
    echo "usage: %(node)s.sh [apply|verify|undo]" >&2
    exit 2
    ;;
esac
"""


def write(deployment: Deployment, options: ExportOptions) -> Export:
    """Write ``configmap.yaml``, ``labels.sh`` and a script for each node that is cut anew."""
    names = {node.name: name_of(mig_parted.node_cuts(node)) for node in deployment.nodes}
    for name in (*names, options.operator_namespace, options.config_map):
        if not _DNS.fullmatch(name):
            raise InvalidProblem(
                f"{name!r} is no name of Kubernetes; expected lower-case letters, digits, . and -"
            )
        word(name, "the name")
    changed = mig_parted.changed_nodes(deployment, options.now)
    before = {} if options.now is None else {
        node.name: name_of(mig_parted.node_cuts(node)) for node in options.now.nodes
    }  # fmt: skip
    files = {
        _MAP: _config_map(mig_parted.configs_text(deployment, options), options),
        _LABELS: "set -eu\n" + "".join(
            f"kubectl label --overwrite node {node.name} nvidia.com/mig.config={names[node.name]}\n"
            for node in deployment.nodes if node.gpus
        ),
    }  # fmt: skip
    scripts = [f"nodes/{node.name}.sh" for node in changed]
    for node, path in zip(changed, scripts, strict=True):
        said = {"wanted": names[node.name], "former": before.get(node.name, "-")}
        files[path] = _SCRIPT.lstrip("\n") % {"node": node.name, **said}
    patch = (
        f'{{"spec": {{"migManager": {{"config": {{"name": "{options.config_map}"}}}}, '
        '"mig": {"strategy": "mixed"}}}'
    )
    unchanged = len([node for node in deployment.nodes if node.gpus]) - len(changed)
    order = (
        f"`kubectl apply -f {_MAP}`",
        f"`kubectl patch clusterpolicies.nvidia.com/cluster-policy --type merge -p '{patch}'`: "
        "the Operator takes the map in place of its own, wholly.",
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


def _config_map(configs: str, options: ExportOptions) -> str:
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
