"""For ``nvidia-smi``: a script for each node that creates every instance in its place.

The one target that keeps starts, and leaves alone what runs beside a change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from ....errors import FileError, InvalidProblem
from ..guesses import doubtful, in_doubt
from ..instance import UNKNOWN_OWNER, Instance, Mode
from ..model import Deployment, FleetGpu, FleetNode
from . import mig_parted
from .export import Export, ExportOptions, assembled, former, projected, refuse_doubtful
from .losses import (
    about_fixed,
    about_mps,
    about_nodes,
    about_others,
    about_states,
    about_work,
    some,
)
from .nvidia_smi_script import FUNCTIONS, HEAD, MAIN

__all__ = ["as_seen", "gpu_row", "instance_rows", "read", "write"]

#: What the table of GPUs says of MIG that is left as it is.
_LEFT = "-"


def write(deployment: Deployment, options: ExportOptions) -> Export:
    """Write ``nodes/NODE.sh`` for each node, and the mig-parted files for the next reboot.

    Raises
    ------
    InvalidProblem
        If a start is not known, or something that is not ours would have to go.
    """
    today = former(deployment, options.now)
    files: dict[str, str] = {}
    for node in deployment.nodes:
        if node.gpus:
            files[f"nodes/{node.name}.sh"] = _script(node, today)
    scripts = tuple(files)
    files["after-reboot/mig-parted.yaml"] = mig_parted.configs_text(deployment, options)
    files["after-reboot/nodes.csv"] = mig_parted.node_table(deployment)
    order = (
        "`nodes/NODE.sh check` on each node, as root: it says what would be done, and what is in "
        "the way.",
        "Drain the work of the instances that would be destroyed; nothing is forced.",
        "`nodes/NODE.sh`, which applies and verifies; run it again after whatever stopped it.",
        "After a reboot, which instances do not survive: `nodes/NODE.sh` again. Where that cannot "
        "be, `nvidia-mig-parted apply` with the files in `after-reboot/` restores the counts, at "
        "starts of the driver's choice.",
    )
    back = (
        "`nodes/NODE.sh undo`: back to what stood before, with the same care."
        if today is not None
        else "What stood before was not known: these scripts only add instances, and destroy none. "
        "Write them again with the deployment of today to be able to go back."
    )
    return assembled(
        "nvidia-smi",
        "Every instance of each node in its place.",
        files,
        _losses(deployment),
        order,
        back,
        scripts,
    )


def _losses(deployment: Deployment) -> tuple[str, ...]:
    return (
        *about_work(deployment),
        *about_mps(
            deployment,
            "MIG is off there; the MPS daemon is not started, and each client's share is its own "
            "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE.",
        ),
        *_about_modes(deployment),
        *about_others(deployment, "they are left alone"),
        *about_fixed(deployment, "the scripts do not look at them"),
        *about_states(deployment),
        *about_nodes(deployment),
    )


def _about_modes(deployment: Deployment) -> Iterator[str]:
    left = [card.name for card in deployment.gpus() if card.leaves_mode]
    if left:
        yield (
            f"MIG of GPUs with nothing on them: it is left as it is, on or off, on {some(left)}; "
            "the files in after-reboot/, which have to say it of every GPU, have it on."
        )


def _script(node: FleetNode, today: Mapping[str, FleetGpu] | None) -> str:
    node = replace(node, gpus=_planned(node))
    before = {} if today is None else {card.name: today[card.name] for card in node.gpus}
    doubts = doubtful(FleetNode(node.name, tuple(before.values())))
    for card in node.gpus:
        _refuse_loss(card, before.get(card.name), doubts)
    tables = {
        "gpus": (_gpu_row(card, before.get(card.name)) for card in node.gpus),
        "wanted": (row for card in node.gpus for row in instance_rows(card, ours=True)),
        "former": (row for card in before.values() for row in instance_rows(card, ours=True)),
        "others": _others([*node.gpus, *before.values()]),
    }
    said = {name: "".join(f"{row}\n" for row in rows) for name, rows in tables.items()}
    head = HEAD.lstrip() % {"node": node.name, "known": "no" if today is None else "yes", **said}
    return head + FUNCTIONS + MAIN


def _planned(node: FleetNode) -> tuple[FleetGpu, ...]:
    """Return the GPUs that a script may look at: those that are fixed may not even answer."""
    return tuple(card for card in node.gpus if card.mode is not Mode.FIXED)


def _refuse_loss(card: FleetGpu, today: FleetGpu | None, doubts: Mapping[str, str]) -> None:
    """Refuse to write over what is not ours, or may not be; the script knows the former alone."""
    if today is None:
        return
    there = {(each.profile, each.start) for each in card.instances}
    for each in today.pinned:
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


def _others(cards: Iterable[FleetGpu]) -> list[str]:
    return sorted({row for card in cards for row in instance_rows(card, ours=False)})


def instance_rows(card: FleetGpu, *, ours: bool) -> Iterator[str]:
    """Iterate over the rows of a GPU in the tables of instances, of ours or of others'.

    Raises
    ------
    InvalidProblem
        If a start is not known.
    """
    for each in card.instances if card.mode is Mode.MIG else ():
        if each.is_ours is not ours:
            continue
        if each.start is None:
            raise InvalidProblem(
                f"{card.name} has {each} without a start, which nvidia-smi is to be given; observe "
                f"the node again with: nvidia-smi mig -lgi"
            )
        profile = card.gpu.profile(each.profile)
        names = "|".join((profile.name, *profile.other_names))
        yield f"{card.index} {each.profile} {each.start} {profile.memory} {names}"


def read(files: Mapping[str, str], fleet: Deployment) -> Deployment:
    """Read the tables of the scripts back: modes, profiles and starts.

    Parameters
    ----------
    files : Mapping[str, str]
        ``{path: text}``, as `Export` has them.
    fleet : Deployment
        The nodes and their types of GPU.

    Raises
    ------
    FileError
        If a script is missing, has lost a table, or does not fit the fleet.
    """
    found: dict[str, FleetGpu] = {}
    for node in fleet.nodes:
        if node.gpus:
            path = f"nodes/{node.name}.sh"
            if path not in files:
                raise FileError(path, "there is no such file", expected="a script for each node")
            found |= {card.name: card for card in _read_node(node, path, files[path])}
    return projected(fleet, lambda card: found[card.name])


def _read_node(node: FleetNode, path: str, text: str) -> Iterator[FleetGpu]:
    modes = {int(row[0]): row[2] for row in _table(path, text, "gpus", 5)}
    placed: dict[int, list[Instance]] = {}
    for name, owner in (("wanted", None), ("others", UNKNOWN_OWNER)):
        for index, profile, start, _, _ in _table(path, text, name, 5):
            held = placed.setdefault(int(index), [])
            # Whose today and ours then: it stays where it is, and no way back removes it.
            if all((each.profile, each.start) != (profile, int(start)) for each in held):
                held.append(Instance(profile, int(start), owner=owner))
    cards = _planned(node)
    if modes.keys() != {card.index for card in cards} or not placed.keys() <= modes.keys():
        listed = ", ".join(map(str, sorted(modes)))
        raise FileError(path, f"it is for the GPUs {listed}", expected=f"those of {node.name}")
    for card in cards:
        mode = Mode.WHOLE if modes[card.index] == "off" else Mode.MIG
        yield FleetGpu(node.name, card.index, card.gpu, mode, tuple(placed.get(card.index, ())))


def _table(path: str, text: str, name: str, columns: int) -> Iterator[list[str]]:
    _, found, rest = f"\n{text}".partition(f"\n{name}() {{ cat <<'END'\n")
    body, ended, _ = f"\n{rest}\n".partition("\nEND\n")
    if not (found and ended):
        raise FileError(path, f"it has no table {name!r}", expected="a script as it was written")
    for row in body.splitlines()[1:]:
        fields = row.split()
        if len(fields) != columns:
            raise FileError(path, f"table {name!r} has the row {row!r}", expected="5 words")
        yield fields


def as_seen(deployment: Deployment) -> Deployment:
    """Return what the scripts say: every instance in its place, and what is not ours as such."""
    return projected(deployment, _seen)


def _seen(card: FleetGpu) -> FleetGpu:
    if card.mode is not Mode.MIG:
        return replace(card, mode=Mode.WHOLE, instances=())
    seen = (
        Instance(each.profile, each.start, owner=None if each.is_ours else UNKNOWN_OWNER)
        for each in card.instances
    )
    return card.with_instances(seen)
