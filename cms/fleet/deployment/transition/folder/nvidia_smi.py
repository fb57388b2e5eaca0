"""For ``nvidia-smi``: each instance is cut by itself at its start; what runs beside it lives on."""

from __future__ import annotations

from collections.abc import Iterator

from .....errors import InvalidProblem
from ...export.export import refuse_doubtful
from ...export.nvidia_smi import gpu_row, instance_rows
from ...export.nvidia_smi_script import FUNCTIONS
from ...guesses import doubtful, in_doubt
from ...instance import Mode, Seen
from ...model import Deployment, FleetGpu
from ..model import Transition
from .steps import Part

__all__ = ["library", "losses", "refuse", "refuse_guesses", "tables"]

_ON_GPU = r"""
# Runs what the node's part of a step is there, by on_node of work.sh: check, apply, verify, undo
# or places.
on_gpu() {
    [ -n "$(gpus)" ] || return 0 # nothing is cut on this GPU
    {
        echo "node='$node' CMS_TRIES=$tries CMS_PAUSE=$pause"
        for table in gpus wanted former back others; do
            echo "$table() { cat <<'END'"
            "$table"
            echo END
            echo '}'
        done
        cat "$folder/lib/nvidia-smi.sh"
        case $1 in
        check) echo 'examine wanted former' ;;
        apply) echo 'change wanted former' ;;
        verify) echo 'stand_as wanted former' ;;
        undo) echo 'change back wanted && stand_as back wanted' ;;
        places) echo "{ wanted; former; } | sort -u | while read -r index profile start size names
            do id=\$(id_of \$index \"\$names\" \$start) || exit 1
            [ -z \"\$id\" ] || echo \"\$profile \$start\"; done" ;;
        esac
    } | on_node "$node"
}
"""


def library() -> dict[str, str]:
    """Return the files that all steps share, by path."""
    return {"lib/nvidia-smi.sh": FUNCTIONS.lstrip(), "lib/on-gpu.sh": _ON_GPU.lstrip()}


def refuse(start: Deployment) -> None:
    """Refuse a start of which places are not known.

    Raises
    ------
    InvalidProblem
        With the command that would tell.
    """
    for card in start.gpus():
        if card.mode is Mode.MIG and Seen.UNKNOWN is card.seen and card.instances:
            raise InvalidProblem(
                f"{card.name} has {', '.join(each.place for each in card.instances)}, of which the "
                "starts are not known, and nvidia-smi is to be given them; observe node "
                f"{card.node!r} with: nvidia-smi mig -lgi"
            )


def refuse_guesses(transition: Transition, part: Part) -> None:
    """Refuse to have an instance go that may be another's."""
    doubts = doubtful(transition.start.node(part.card.node))
    for each in in_doubt(part.card, doubts):
        if each in part.removes and each not in part.adds:
            refuse_doubtful(part.card, each, doubts)


def losses(transition: Transition) -> Iterator[str]:
    """What these scripts do not say."""
    yield (
        "Work: starting, draining and stopping it is yours to say, in work.sh; nvidia-smi knows no "
        "services."
    )
    shared = [card.name for card in transition.target.gpus() if card.mode is Mode.MPS]
    if shared:
        yield f"Shares under MPS of {', '.join(shared[:5])}: the daemon and its clients are yours."
    yield "Reboots: MIG instances do not survive them; observe and plan again afterwards."


def tables(part: Part) -> dict[str, tuple[str, ...]]:
    """Return the rows of each table of a part's script: gpus, wanted, former, back, others."""
    card = part.card
    changes_mode = part.mode is not part.mode_before
    if not changes_mode and part.mode is not Mode.MIG:
        return dict.fromkeys(("gpus", "wanted", "former", "back", "others"), ())
    own = {(each.profile, each.start) for each in (*part.adds, *part.removes)}
    rest = tuple(
        each
        for each in part.others
        if each.start is not None and (each.profile, each.start) not in own
    )

    def rows(*instances: object) -> tuple[str, ...]:
        held = FleetGpu(card.node, card.index, card.gpu, Mode.MIG, instances)  # type: ignore[arg-type]
        every = (*instance_rows(held, ours=True), *instance_rows(held, ours=False))
        return tuple(dict.fromkeys(every))

    return {
        "gpus": (gpu_row(card, part.mode, part.mode_before),),
        "wanted": rows(*part.adds),
        "former": rows(*part.removes),
        "back": rows(*part.restored),
        "others": rows(*rest),
    }
