"""For Slurm: what each node offers, before, while and after mig-parted cuts it anew."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from ....errors import InvalidProblem
from ..instance import Mode
from ..model import Deployment, FleetGpu, FleetNode
from . import mig_parted
from .export import Export, ExportOptions, assemble, find_current, render


def write(deployment: Deployment, options: ExportOptions) -> Export:
    """Write gres.conf, and a line for each node while it is cut anew and after.

    A node with fewer devices than its line promises becomes invalid and is drained: its line
    shrinks first and grows last. See https://slurm.schedmd.com/gres.html, "MIG Management".
    """
    files, before = mig_parted.node_files(deployment, options)
    today = find_current(deployment, options.now)
    nodes = [node for node in deployment.nodes if node.gpus]
    total = sum((offered(node.gpus, options) for node in nodes), Counter[str]())
    kinds = sorted({"gpu", *(name.partition(":")[0] for name in total)})
    # where there is no slurmdbd, slurmctld does not start with a TRES of gres
    tracked = sorted({f"gres/{name}" for name in (*kinds, *total)})
    files["cms-slurm.conf"] = render("slurm.conf", kinds=kinds, tracked=tracked, nodes=nodes)
    files["gres.conf"] = render("gres.conf", nodes=nodes)
    for node in nodes:
        stays = Counter[str]()
        if today is not None:
            befores = tuple(today[card.name] for card in node.gpus)
            stays = throughout(befores, node.gpus, options)
        files[f"nodes/{node.name}.conf"] = node_line(node, offered(node.gpus, options), options)
        files[f"shrunk/{node.name}.conf"] = node_line(node, stays, options)
    return assemble("slurm", deployment, options, files, before=before)


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

    One that is cut anew is empty for a while, and stays so where that fails; and MIG goes on or off
    with a reset, which no instance of the node survives.
    """
    pairs = [((b, b.mode is Mode.MIG), (a, a.mode is Mode.MIG))
             for b, a in zip(befores, afters, strict=True)]  # fmt: skip
    resets = any(was_cut is not is_cut and after.gpu.mode_change_needs_reset is not False
                 for (_, was_cut), (after, is_cut) in pairs)  # fmt: skip
    found: Counter[str] = Counter()
    for (before, was_cut), (after, is_cut) in pairs:
        stays = (before.mode, before.counts) == (after.mode, after.counts) and not resets
        if stays or not (was_cut or is_cut):
            found += offered((before,), options) & offered((after,), options)
    return found


def node_line(node: FleetNode, counts: Mapping[str, int], options: ExportOptions) -> str:
    """Write a node's line of slurm.conf; refuse a rest of the line that is none."""
    gres = ",".join(f"{name}:{count}" for name, count in sorted(counts.items()) if count)
    more = options.slurm_nodes.get(node.name, "").strip()
    if "\n" in more or "gres=" in more.lower():
        what = f"the line of {node.name} in slurm.conf would hold {more!r}"
        raise InvalidProblem(f"{what}; expected one line without Gres")
    parts = (f"NodeName={node.name}", f"Gres={gres}" if gres else "", more)
    return " ".join(filter(None, parts)) + "\n"
