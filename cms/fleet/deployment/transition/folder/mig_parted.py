"""For mig-parted: a GPU is emptied and cut anew as a whole; what runs on others lives on."""

from __future__ import annotations

from collections.abc import Iterator

from ...export.export import ExportOptions, shell_functions
from ..model import Transition
from .steps import Step
from .whole_gpus import CUT, PARTED, about_whole_gpus, refuse, refuse_part, tables

__all__ = ["files", "losses", "order", "refuse", "refuse_part", "tables"]

_ON_GPU = r"""
# Runs the node's part of a step there, by on_node of work.sh. Where nothing is cut, it looks
# whether the GPU is still cut as the step needs it.
on_gpu() {
    case $1,$cuts in
    close,yes) parted 'examine wanted former' >/dev/null ;;
    close,no) return 0 ;;
    stands,no | undone,no) return 1 ;;
    places,*) parted places ;;
    *,no) parted 'stand_as wanted' ;;
    check,*) parted 'examine wanted former' ;;
    apply,*) parted 'change wanted former' ;;
    undo,*) parted 'change former wanted' ;;
    undone,*) parted 'stand_as former' ;;
    stands,* | verify,*) parted 'stand_as wanted' ;;
    esac
}
"""


def files(
    transition: Transition, steps: tuple[Step, ...], options: ExportOptions
) -> dict[str, str]:
    """Return the files that all steps share, by path."""
    return {
        "lib/mig-parted.sh": (shell_functions("nvidia-smi") + CUT).lstrip(),
        "lib/on-gpu.sh": (PARTED + _ON_GPU).lstrip(),
    }


def order(options: ExportOptions) -> tuple[str, ...]:
    """Return what has to be done once, before the rest."""
    return ("Once: `nvidia-mig-parted` is to be on the path of each node, beside `nvidia-smi`.",)


def losses(transition: Transition) -> Iterator[str]:
    """What these scripts do not say."""
    yield from about_whole_gpus(transition)
    yield (
        "Part of a GPU: one whose counts change is emptied and cut anew as a whole; instances go "
        "on where the counts stay."
    )
    yield "Reboots: MIG instances do not survive them; observe and plan again afterwards."
