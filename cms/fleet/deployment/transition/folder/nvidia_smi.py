"""For ``nvidia-smi``: each instance is cut by itself at its start; what runs beside it lives on."""

from __future__ import annotations

from collections.abc import Iterator

from .....errors import InvalidProblem
from ...export.export import ExportOptions, refuse_doubtful, shell_functions
from ...export.nvidia_smi import gpu_row, instance_rows
from ...guesses import doubtful, in_doubt
from ...instance import Mode, StartSource
from ...model import Deployment, FleetGpu
from ..model import Transition
from .chains import Place
from .steps import Part, Step

__all__ = ["files", "losses", "order", "refuse", "refuse_part", "tables"]

_ON_GPU = r"""
# Runs what the node's part of a step is there, by on_node of work.sh: check, apply, verify, undo
# or places. Nothing is closed for it, but no work stops for another GPU than was meant; what stands
# is seen place by place.
on_gpu() {
    case $1 in stands | undone) return 1 ;; esac
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
        close) echo recognise_all ;;
        check) echo 'examine wanted former' ;;
        apply) echo 'change wanted former' ;;
        verify) echo 'stand_as wanted former' ;;
        undo) echo 'change back wanted && stand_as back wanted' ;;
        places) echo "recognise_all || exit 1
            { wanted; former; } | sort -u | while read -r index profile start size names
            do id=\$(id_of \$index \"\$names\" \$start) || exit 1
            [ -z \"\$id\" ] || echo \"\$index \$profile \$start -\"; done" ;;
        esac
    } | on_node "$node"
}
"""


def files(
    transition: Transition, steps: tuple[Step, ...], options: ExportOptions
) -> dict[str, str]:
    """Return the files that all steps share, by path."""
    return {
        "lib/nvidia-smi.sh": shell_functions("nvidia-smi").lstrip(),
        "lib/on-gpu.sh": _ON_GPU.lstrip(),
    }


def order(options: ExportOptions) -> tuple[str, ...]:
    """Return what has to be done once, before the rest: nothing."""
    return ()


def refuse(start: Deployment, options: ExportOptions) -> None:
    """Refuse a start of which places are not known."""
    for card in start.gpus():
        if card.mode is Mode.MIG and StartSource.UNKNOWN is card.start_source and card.instances:
            raise InvalidProblem(
                f"{card.name} has {', '.join(each.place for each in card.instances)}, of which the "
                "starts are not known, and nvidia-smi is to be given them; observe node "
                f"{card.node!r} with: nvidia-smi mig -lgi"
            )


def refuse_part(transition: Transition, part: Part) -> None:
    """Refuse to delete an instance that may not be ours, or to cut a GPU as a whole."""
    if part.repartitions and (part.removes or part.adds):
        raise InvalidProblem(
            f"{part.where} is to be cut anew as a whole, and nvidia-smi cuts instance by instance; "
            "expected the tool that this was planned for: mig-parted, gpu-operator or slurm"
        )
    doubts = doubtful(transition.start.node(part.node))
    removes, adds = ([place.instance for place in side] for side in (part.removes, part.adds))
    for each in in_doubt(part.card, doubts):
        if each in removes and each not in adds:
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


def tables(part: Part, options: ExportOptions) -> dict[str, tuple[str, ...]]:
    """Return the rows of each table of a part's script: gpus, wanted, former, back, others."""
    card = part.card
    mode, before = part.afters[0].mode, part.befores[0].mode
    if before is mode is not Mode.MIG:
        nothing = dict.fromkeys(("wanted", "former", "back", "others"), ())
        return {**nothing, "gpus": () if card.uuid is None else (gpu_row(card, None, None),)}
    own = {(p.instance.profile, p.instance.start) for p in (*part.adds, *part.removes)}
    rest = tuple(
        place
        for place in part.others
        if place.instance.start is not None
        and (place.instance.profile, place.instance.start) not in own
    )

    def rows(*places: Place) -> tuple[str, ...]:
        instances = tuple(place.instance for place in places)
        held = FleetGpu(card.node, card.index, card.gpu, Mode.MIG, instances)
        every = (*instance_rows(held, ours=True), *instance_rows(held, ours=False))
        return tuple(dict.fromkeys(every))

    return {
        "gpus": (gpu_row(card, mode, before),),
        "wanted": rows(*part.adds),
        "former": rows(*part.removes),
        "back": rows(*part.restored),
        "others": rows(*rest),
    }
