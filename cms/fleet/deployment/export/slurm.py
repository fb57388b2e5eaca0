"""For Slurm: what each node offers, and a script that shrinks, cuts anew, and grows.

Slurm cuts no GPU: mig-parted does, and a node with fewer devices than its line promises becomes
invalid and is drained. So a node's line is first what stays as it is cut, and grows last.
See https://slurm.schedmd.com/gres.html, "MIG Management".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from ....errors import FileError, InvalidProblem
from ....files.numerals import is_whole
from ....values.frozen import FrozenMap
from ..instance import Mode
from ..model import Deployment, FleetGpu, FleetNode
from . import mig_parted
from .export import Export, ExportOptions, assembled, by_driver, former
from .losses import about_fixed, about_mps, about_nodes, about_others, about_states, about_work
from .mig_parted_file import name_of
from .slurm_script import FUNCTIONS, HEAD, MAIN

__all__ = ["as_seen", "node_line", "offered", "read", "throughout", "write"]

_SLURM, _GRES = "cms-slurm.conf", "gres.conf"
_NODE = re.compile(r"NodeName=(\S+)( .*)?", re.ASCII)


def write(deployment: Deployment, options: ExportOptions) -> Export:
    """Write gres.conf, a line for each node before and after, and the script that leads over."""
    mig_parted.changed_nodes(deployment, options.now)
    today = former(deployment, options.now)
    files = {
        "mig-parted.yaml": mig_parted.configs_text(deployment, options),
        "nodes.csv": mig_parted.node_table(deployment),
        "slurm.sh": HEAD.lstrip() + mig_parted.uuid_table(deployment) + FUNCTIONS + MAIN,
        _SLURM: _slurm_conf(deployment, options),
        _GRES: "".join(line for node in deployment.nodes for line in _gres(node)),
    }
    for node in deployment.nodes:
        if node.gpus:
            after = offered(node.gpus, options)
            stays = Counter[str]()
            if today is not None:
                befores = tuple(today[card.name] for card in node.gpus)
                stays = throughout(befores, node.gpus, options)
            files[f"nodes/{node.name}.conf"] = node_line(node, after, options)
            files[f"shrunk/{node.name}.conf"] = node_line(node, stays, options)
    order = (
        "Once: put the lines of `cms-slurm.conf` into slurm.conf, with an `Include` for each node "
        "in place of its own NodeName line, and `gres.conf` into gres.conf on every node. Where "
        "there is slurmdbd, its line AccountingStorageTRES as well.",
        "Once: compare the types with what `slurmd -G` prints on a node: each must be part of one "
        "that it detects.",
        "`slurm.sh NODE`, node after node: drain, `shrunk/`, mig-parted, `nodes/`, resume. Before "
        "Slurm 23.11, where slurmctld takes more devices only when it starts, say how to start it "
        "again: `CMS_SLURM_RESTART='systemctl restart slurmctld'`.",
        "After a reboot `slurm.sh NODE` again: instances do not survive one, and Slurm drains the "
        "node as it finds less than promised.",
    )
    back = "Export the deployment of before, and run its `slurm.sh NODE`" + (
        f": {', '.join(_back(options.now))}." if options.now is not None else "."
    )
    return assembled(
        "slurm",
        "What each node offers to jobs, by type and number.",
        files,
        _losses(deployment),
        order,
        back,
        ["slurm.sh"],
    )


def _back(now: Deployment) -> list[str]:
    return [
        f"{node.name} was `{name_of(mig_parted.node_cuts(node))}`"
        for node in now.nodes
        if node.gpus
    ]


def _losses(deployment: Deployment) -> tuple[str, ...]:
    cut = any(card.mode is Mode.MIG for card in deployment.gpus())
    return (
        *(
            ("Starts, and which GPU of a node has which instance: Slurm knows sums over a node.",)
            if cut
            else ()
        ),
        "Part of a GPU: mig-parted empties one whose counts change and cuts it anew as a whole.",
        *about_work(deployment),
        *about_mps(
            deployment,
            "each of these GPUs is offered as 100 parts; a job asks for its share with "
            "--gres=mps:40, of one GPU of a node, and a prolog has to start the daemon.",
        ),
        *about_others(deployment, "they are offered to jobs like the rest"),
        *about_fixed(deployment, "they are in no line, so that no job gets them"),
        *about_states(deployment),
        "Types: Slurm compares them as parts of names, so that 1g.10gb also means 1g.10gb+me.",
        *about_nodes(deployment),
    )


def _type(card: FleetGpu, options: ExportOptions) -> str:
    """What the GPU's types begin with: the part of its key that product names begin with, too."""
    first = card.gpu.key.partition("-")[0]
    return options.slurm_types.get(card.gpu.key, first if re.search("[0-9]", first) else "")


def offered(cards: tuple[FleetGpu, ...], options: ExportOptions) -> Counter[str]:
    """Count what a node offers, by name and type: ``gpu:a100_3g.40gb``, ``mps``."""
    found: Counter[str] = Counter()
    for card in cards:
        if card.mode is Mode.FIXED:
            continue
        device = _type(card, options)
        for profile, count in card.counts.items() if card.mode is Mode.MIG else ():
            found[f"gpu:{device}_{profile}" if device else f"gpu:{profile}"] += count
        if card.mode is not Mode.MIG:
            found[f"gpu:{device}" if device else "gpu"] += 1
        if card.mode is Mode.MPS:
            found["mps"] += 100
    return found


def throughout(
    befores: tuple[FleetGpu, ...], afters: tuple[FleetGpu, ...], options: ExportOptions
) -> Counter[str]:
    """Count what a node offers also while GPUs of it are cut anew: what is on the others.

    A GPU that is cut anew is empty for a while, and stays so where that fails. A node that is found
    with less than its line promises becomes invalid; and MIG goes on or off with a reset, which no
    instance of the node survives.
    """
    pairs = list(zip(befores, afters, strict=True))
    resets = any(
        (before.mode is Mode.MIG) is not (after.mode is Mode.MIG)
        and after.gpu.mode_change_needs_reset is not False
        for before, after in pairs
    )
    found: Counter[str] = Counter()
    for before, after in pairs:
        is_cut = before.mode is Mode.MIG or after.mode is Mode.MIG
        stays = (before.mode, before.counts) == (after.mode, after.counts) and not resets
        if stays or not is_cut:
            found += offered((before,), options) & offered((after,), options)
    return found


def node_line(node: FleetNode, counts: Mapping[str, int], options: ExportOptions) -> str:
    """Write a node's line of slurm.conf.

    Raises
    ------
    InvalidProblem
        If the rest of it, as it is told, is no such rest.
    """
    gres = ",".join(f"{name}:{count}" for name, count in sorted(counts.items()) if count)
    more = options.slurm_nodes.get(node.name, "").strip()
    if "\n" in more or "gres=" in more.lower():
        raise InvalidProblem(
            f"the line of {node.name} in slurm.conf would hold {more!r}; expected one line "
            "without Gres"
        )
    parts = [
        f"NodeName={node.name}",
        *([f"Gres={gres}"] if gres else []),
        *([more] if more else []),
    ]
    return " ".join(parts) + "\n"


def _slurm_conf(deployment: Deployment, options: ExportOptions) -> str:
    counts: Counter[str] = Counter()
    for node in deployment.nodes:
        counts += offered(node.gpus, options)
    kinds = sorted({"gpu", *(name.partition(":")[0] for name in counts)})
    tracked = sorted({f"gres/{name}" for name in (*kinds, *counts)})
    # where there is no slurmdbd, slurmctld does not start with a TRES of gres
    tres = f"# With slurmdbd alone: AccountingStorageTRES={','.join(tracked)}\n"
    return f"GresTypes={','.join(kinds)}\n{tres}" + "".join(
        f"Include cms/{node.name}.conf\n" for node in deployment.nodes if node.gpus
    )


def _gres(node: FleetNode) -> list[str]:
    if not node.gpus:
        return []
    shared = [card for card in node.gpus if card.mode is Mode.MPS]
    return [
        f"NodeName={node.name} AutoDetect=nvml\n",
        *(f"NodeName={node.name} Name=mps Count=100 File=/dev/nvidia{c.index}\n" for c in shared),
    ]


def read(files: Mapping[str, str], fleet: Deployment) -> FrozenMap[str, FrozenMap[str, int]]:
    """Read what each node offers from its line.

    Parameters
    ----------
    files : Mapping[str, str]
        ``{path: text}``, as `Export` has them.
    fleet : Deployment
        The nodes.

    Returns
    -------
    FrozenMap
        ``{node: {"gpu:a100_3g.40gb": count}}``.

    Raises
    ------
    FileError
        If a node has no line, or it is none.
    """
    found = {}
    for node in fleet.nodes:
        path = f"nodes/{node.name}.conf"
        if not node.gpus:
            found[node.name] = FrozenMap[str, int]()
        elif path not in files:
            raise FileError(path, "there is no such file", expected="one for each node")
        else:
            found[node.name] = _offer_of(node.name, path, files[path])
    return FrozenMap(found)


def _offer_of(node: str, path: str, text: str) -> FrozenMap[str, int]:
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    match = _NODE.fullmatch(lines[0]) if len(lines) == 1 else None
    if match is None or match[1] != node:
        raise FileError(path, "this is not the line of the node", expected=f"NodeName={node} ...")
    gres = next((w for w in (match[2] or "").split() if w.startswith("Gres=")), "Gres=")
    offered = {}
    for part in filter(None, gres.removeprefix("Gres=").split(",")):
        name, _, count = part.rpartition(":")
        if not (name and is_whole(count)):
            raise FileError(path, f"Gres has {part!r}", expected="name:type:count")
        offered[name] = int(count)
    return FrozenMap(offered)


def as_seen(deployment: Deployment) -> FrozenMap[str, FrozenMap[str, int]]:
    """Return what Slurm sees of a deployment: sums over each node, by the types' usual names."""
    return FrozenMap(
        {
            node.name: FrozenMap(offered(node.gpus, ExportOptions()))
            for node in by_driver(deployment).nodes
        }
    )
