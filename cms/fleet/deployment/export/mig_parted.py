"""For mig-parted: a file of configurations, and which of them each node takes."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import replace

from ....errors import CmsError, FileError, InvalidProblem
from ....files.source import Source
from ..guesses import doubtful, in_doubt
from ..model import Deployment, FleetNode
from .export import (
    Export,
    ExportOptions,
    assembled,
    former,
    projected,
    refuse_doubtful,
    without_head,
)
from .losses import (
    about_fixed,
    about_mps,
    about_nodes,
    about_others,
    about_starts,
    about_states,
    about_work,
)
from .mig_parted_file import (
    Cut,
    configs_of,
    cut_card,
    cut_of,
    cuts_of,
    merged,
    name_of,
    read_configs,
    text_of,
)

__all__ = [
    "CONFIG",
    "as_seen",
    "changed_nodes",
    "configs_text",
    "node_cuts",
    "node_table",
    "read",
    "read_cuts",
    "uuid_table",
    "write",
]

_FILE, _TABLE = "mig-parted.yaml", "nodes.csv"
#: What a node takes, once its GPUs are found to be those that are meant; by ``here``, ``node``,
#: ``fail``, ``ask``, which runs nvidia-smi there, and the table ``uuids``.
CONFIG = r"""
config=$(awk -F, -v node="$node" '$1 "" == node "" { print $2 }' "$here/nodes.csv")
[ -n "$config" ] || fail "it is not in nodes.csv"
uuids | while read -r where gpu uuid; do
    [ "$where" = "$node" ] || continue
    told=$(ask -i "$gpu" --query-gpu=uuid --format=csv,noheader 2>&1 </dev/null)
    printf '%s\n' "$told" | grep -Fqx -e "$uuid" ||
        fail "GPU $gpu is not $uuid, nvidia-smi says: $told. The numbers have changed; observe" \
            "the node again. Nothing was done"
done || exit 1
"""
_HEAD = r"""
# Usage: apply.sh NODE. On that node, as root, after its work has been drained.
# It does nothing where the GPUs are as they should be, and looks again after it has changed them.
set -uf
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd) || exit 1
tool=${MIG_PARTED:-nvidia-mig-parted}
node=${1:?usage: apply.sh NODE}
ask() { "${NVIDIA_SMI:-nvidia-smi}" "$@"; }
fail() {
    printf '%s\n' "$node: $*" >&2
    exit 1
}
"""
_MAIN = """
# That they are not is no failure yet, though the tool calls it a fatal one.
if "$tool" assert -f "$here/mig-parted.yaml" -c "$config" >/dev/null 2>&1; then
    echo "$node: the GPUs are as $config has them"
    exit 0
fi
"$tool" apply -f "$here/mig-parted.yaml" -c "$config"
"$tool" assert -f "$here/mig-parted.yaml" -c "$config" ||
    fail "after 'apply' the GPUs are not as $config has them; what it printed says why. If all" \\
        "orderings failed, run this again: the driver's starts left no room this time. If a GPU" \\
        "is in use by another client and no process shows, restart the telemetry agent (DCGM)" \\
        "and run this again."
echo "$node: the GPUs are as $config has them"
"""


def node_cuts(node: FleetNode) -> dict[int, Cut]:
    """Return how each GPU of a node is cut."""
    return {card.index: cut_of(card) for card in node.gpus}


def _nodes(deployment: Deployment | None) -> Iterator[tuple[str, dict[int, Cut]]]:
    for node in () if deployment is None else deployment.nodes:
        if node.gpus:
            yield node.name, node_cuts(node)


def configs_text(deployment: Deployment, options: ExportOptions) -> str:
    """Write the configurations of all nodes, and those of today, so that there is a way back.

    Raises
    ------
    InvalidProblem
        If two different layouts have one name.
    """
    configs = configs_of(cuts for each in (deployment, options.now) for _, cuts in _nodes(each))
    return text_of(configs) if options.merge is None else merged(options.merge, configs)


def node_table(deployment: Deployment) -> str:
    """Write which configuration each node takes, as CSV."""
    rows = [f"{node},{name_of(cuts)}\n" for node, cuts in _nodes(deployment)]
    return "node,config\n" + "".join(rows)


def uuid_table(deployment: Deployment) -> str:
    """Write the table ``uuids`` of a script: the GPUs of which it is known which are meant."""
    known = (card for card in deployment.gpus() if card.uuid is not None)
    rows = "".join(f"{card.node} {card.index} {card.uuid}\n" for card in known)
    return f"uuids() {{ cat <<'END'\n{rows}END\n}}\n"


def changed_nodes(deployment: Deployment, now: Deployment | None) -> list[FleetNode]:
    """Return the nodes with GPUs that have to be cut anew: all of them, if today is not known.

    Raises
    ------
    InvalidProblem
        If a GPU would be cut anew on which something stands that is not ours.
    """
    today = former(deployment, now)
    if today is None:
        return [node for node in deployment.nodes if node.gpus]
    found = []
    for node in deployment.nodes:
        doubts = doubtful(FleetNode(node.name, tuple(today[card.name] for card in node.gpus)))
        changed = [card for card in node.gpus if cut_of(card) != cut_of(today[card.name])]
        for card in changed:
            if today[card.name].pinned:
                raise InvalidProblem(
                    f"{card.name} has {today[card.name].pinned[0]}, which is not ours, and would "
                    "be cut anew as a whole; write it for nvidia-smi, or leave its counts alone"
                )
            for each in in_doubt(today[card.name], doubts):
                refuse_doubtful(today[card.name], each, doubts)
        if changed:
            found.append(node)
    return found


def losses(deployment: Deployment) -> tuple[str, ...]:
    """Say what counts per GPU do not."""
    return (
        *about_starts(deployment),
        "Part of a GPU: one whose counts change is emptied and cut anew as a whole; what runs on "
        "it stops, also where its own instance stays.",
        *about_work(deployment),
        *about_mps(
            deployment,
            "MIG is off there and nothing shares the GPU; a device plugin's sharing.mps gives "
            "equal shares alone, others take CUDA_MPS_ACTIVE_THREAD_PERCENTAGE in each client.",
        ),
        *about_others(deployment, "they are in the counts, and stop where these change"),
        *about_fixed(deployment, "they are listed as they are, since `assert` asks for all"),
        *about_states(deployment),
        *about_nodes(deployment),
    )


def _about_uuids(deployment: Deployment) -> Iterator[str]:
    if any(card.uuid is None for card in deployment.gpus()):
        yield "UUIDs that are not known: these GPUs are meant by their index, whatever is there."


def write(deployment: Deployment, options: ExportOptions) -> Export:
    """Write ``mig-parted.yaml``, ``nodes.csv`` and ``apply.sh``."""
    changed_nodes(deployment, options.now)
    files = {
        _FILE: configs_text(deployment, options),
        _TABLE: node_table(deployment),
        "apply.sh": _HEAD.lstrip() + uuid_table(deployment) + CONFIG + _MAIN,
    }
    order = (
        "Drain each node whose GPUs change: mig-parted stops what runs on them and asks nobody.",
        "Copy the folder to each node and run `apply.sh NODE` there as root; it can be run again.",
        "Run `apply.sh NODE` after each reboot: MIG mode survives one, instances do not.",
    )
    back = (
        "`nvidia-mig-parted apply -f mig-parted.yaml -c CONFIG` with the configuration of before: "
        + _back(deployment, options.now)
    )
    what = "How the GPUs of each node are cut, as counts."
    said = (*losses(deployment), *_about_uuids(deployment))
    return assembled("mig-parted", what, files, said, order, back, ["apply.sh"])


def _back(deployment: Deployment, now: Deployment | None) -> str:
    if now is None:
        return "it is not in the file, as nothing was said of today; `all-disabled` turns MIG off."
    names = {node.name for node in deployment.nodes}
    before = [f"{node}: `{name_of(cuts)}`" for node, cuts in _nodes(now) if node in names]
    return ", ".join(before) + "."


def read(files: Mapping[str, str], fleet: Deployment) -> Deployment:
    """Read the files back: GPUs with counts, and with starts where one layout alone has these.

    Parameters
    ----------
    files : Mapping[str, str]
        ``{path: text}``, as `Export` has them.
    fleet : Deployment
        The nodes and their types of GPU.

    Raises
    ------
    FileError
        If a file is missing or wrong, or does not fit the fleet.
    """
    rows = csv.DictReader(without_head(files[_TABLE]).splitlines(), ("node", "config"), "")
    named = {row["node"]: row["config"] for row in rows if row["config"] != "config"}
    return read_cuts(Source(_FILE, files[_FILE]), named, fleet, _TABLE)


def read_cuts(
    source: Source, named: Mapping[str, str], fleet: Deployment, where: str
) -> Deployment:
    """Return a fleet cut by a mig-parted file, given which configuration each node takes.

    Parameters
    ----------
    source : Source
        The mig-parted file.
    named : Mapping[str, str]
        ``{node: configuration}``.
    fleet : Deployment
    where : str
        The file from which `named` was read, for errors.
    """
    configs = read_configs(source)
    cards = {}
    for node in fleet.nodes:
        if not node.gpus:
            continue
        if node.name not in named:
            raise FileError(where, f"there is no node {node.name!r}", expected="every node")
        if named[node.name] not in configs:
            raise FileError(
                source.name, f"there is no configuration {named[node.name]!r} of {node.name}"
            )
        for index, cut in cuts_of(configs[named[node.name]], node, source.name).items():
            cards[node.name, index] = cut
    for name in named:
        if name not in {node.name for node in fleet.nodes}:
            raise FileError(where, f"node {name!r} is not in the fleet")
    try:
        return projected(fleet, lambda card: cut_card(card, cards[card.node, card.index]))
    except FileError:
        raise
    except CmsError as fault:
        raise FileError(source.name, str(fault)) from None


def as_seen(deployment: Deployment) -> Deployment:
    """Return what counts per GPU say: no services, and starts where there is no choice."""
    return projected(deployment, lambda card: cut_card(replace(card, instances=()), cut_of(card)))
