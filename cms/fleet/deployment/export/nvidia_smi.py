"""For ``nvidia-smi``: a script for each node that creates every instance in its place.

The one target that keeps starts, and leaves alone what runs beside a change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ....errors import InvalidProblem
from ..guesses import doubtful, in_doubt
from ..instance import Mode
from ..model import Deployment, FleetGpu, FleetNode
from . import mig_parted
from .export import Export, ExportOptions, find_current, refuse_doubtful, render
from .notes import assemble

__all__ = ["gpu_row", "instance_rows", "write"]

#: How the table of GPUs says that MIG is left as it is.
_LEFT = "-"


def write(deployment: Deployment, options: ExportOptions) -> Export:
    """Write ``nodes/NODE.sh`` for each node, and the mig-parted files for the next reboot."""
    today = find_current(deployment, options.now)
    files = {
        f"nodes/{node.name}.sh": _script(node, today) for node in deployment.nodes if node.gpus
    }
    scripts = tuple(files)
    files["after-reboot/mig-parted.yaml"] = mig_parted.configs_text(deployment, options)
    files["after-reboot/nodes.csv"] = mig_parted.node_table(deployment)
    return assemble("nvidia-smi", deployment, options, files, scripts)


def _script(node: FleetNode, today: Mapping[str, FleetGpu] | None) -> str:
    # those that are fixed may not even answer
    cards = [card for card in node.gpus if card.mode is not Mode.FIXED]
    before = {} if today is None else {card.name: today[card.name] for card in cards}
    doubts = doubtful(FleetNode(node.name, tuple(before.values())))
    for card in cards:
        _refuse_loss(card, before.get(card.name), doubts)
    foreign = {row for c in (*cards, *before.values()) for row in instance_rows(c, ours=False)}
    tables = {
        "gpus": (_gpu_row(card, before.get(card.name)) for card in cards),
        "wanted": (row for card in cards for row in instance_rows(card, ours=True)),
        "former": (row for card in before.values() for row in instance_rows(card, ours=True)),
        "others": sorted(foreign),
    }
    said = {name: "".join(f"{row}\n" for row in rows) for name, rows in tables.items()}
    known = "no" if today is None else "yes"
    return render("nvidia-smi.sh", node=node.name, known=known, **said)


def _refuse_loss(card: FleetGpu, today: FleetGpu | None, doubts: Mapping[str, str]) -> None:
    """Refuse to write over instances that are, or may be, foreign."""
    if today is None:
        return
    there = {(each.profile, each.start) for each in card.instances}
    for each in today.foreign:
        if (each.profile, each.start) not in there:
            raise InvalidProblem(
                f"{card.name} has {each} today, which is not ours; expected it at its place in the "
                "deployment, too"
            )
    for each in in_doubt(today, doubts):
        if (each.profile, each.start) not in there:
            refuse_doubtful(today, each, doubts)


def gpu_row(card: FleetGpu, mode: Mode | None, before: Mode | None) -> str:
    """Return a GPU's row of the table ``gpus``; a mode that is None is left as it is."""
    reset = "no" if card.gpu.mode_change_needs_reset is False else "yes"
    return f"{card.index} {card.uuid or '-'} {_switch(mode)} {_switch(before)} {reset}"


def _gpu_row(card: FleetGpu, today: FleetGpu | None) -> str:
    if not card.leaves_mode:
        return gpu_row(card, card.mode, None if today is None else today.mode)
    # nothing is switched, so the way back switches nothing, but for instances that it creates
    was_cut = today is not None and today.mode is Mode.MIG and not today.is_empty
    return gpu_row(card, None, Mode.MIG if was_cut else None)


def _switch(mode: Mode | None) -> str:
    return _LEFT if mode is None else "on" if mode is Mode.MIG else "off"


def instance_rows(card: FleetGpu, *, ours: bool) -> Iterator[str]:
    """Iterate over the rows of a GPU in the tables of managed instances, or of foreign ones."""
    for each in card.instances if card.mode is Mode.MIG else ():
        if each.is_managed is not ours:
            continue
        if each.start is None:
            raise InvalidProblem(
                f"{card.name} has {each} without a start, which nvidia-smi is to be given; observe "
                "the node again with: nvidia-smi mig -lgi"
            )
        profile = card.gpu.profile(each.profile)
        names = "|".join((profile.name, *profile.other_names))
        yield f"{card.index} {each.profile} {each.start} {profile.memory} {names}"
