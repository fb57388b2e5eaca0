"""For Slurm: nodes are drained, offered for what stays as it is cut, and cut anew.

All that a step does on a node is one part: drain, stop our work, wait until no job runs, shrink the
node's line, have mig-parted cut it, grow the line, resume, start our work.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...export.export import ExportOptions, shell_functions
from ...export.slurm import node_line, offered, throughout
from ...model import FleetNode
from ..model import Transition
from .steps import Part, Step
from .whole_gpus import CUT, PARTED, about_whole_gpus, refuse, refuse_part, whole_alone
from .whole_gpus import tables as cut_tables

__all__ = ["files", "losses", "order", "refuse", "refuse_part", "tables"]

_ON_GPU = r"""
# Does a step's part with a node: scontrol here, mig-parted there. Where nothing is cut, it looks
# whether the GPU is still cut as the step needs it.
on_gpu() {
    case $1,$cuts in
    places,*) parted places && return ;;
    close,no) return 0 ;;
    stands,no | undone,no) return 1 ;;
    *,no) parted 'stand_as wanted' && return ;;
    *)
        (
            goal=wanted other=former
            case $1 in undo | undone) goal=former other=wanted ;; esac
            tries=$patience
            . "$folder/lib/slurm.sh"
            case $1 in
            check) examine && say "would be drained, shrunk, cut, grown and resumed" ;;
            close) examine >/dev/null && close_it ;;
            apply | undo) change ;;
            stands | verify) stand ;;
            undone) must_look && is_cut && ! is_managed ;;
            esac
        )
        ;;
    esac
}
"""

_MORE = r"""
line_of() {
    case $1 in
    shrunk) shrunk_line ;;
    nodes) "${goal}_line" ;;
    esac
}
is_cut() { parted "stand_as $goal" >/dev/null 2>&1; }
cut() {
    parted "change $goal $other" || fail "its GPUs are not cut as they should be; it stays drained"
}

# What a line says of a node beside its GPUs, a word each.
beside() {
    sed '/^#/d' | tr -s ' \t' '\n\n' | grep -vi '^gres=' | LC_ALL=C sort | paste -s -d ' ' -
}

examine() {
    must_look
    [ -f "$conf/cms/$node.conf" ] ||
        fail "there is no $conf/cms/$node.conf, which slurm.conf is to include: cms export" \
            "now.json --to slurm, once"
    has=$(beside <"$conf/cms/$node.conf")
    [ "$has" = "$(line_of nodes | beside)" ] ||
        fail "$conf/cms/$node.conf has: $has and would have: $(line_of nodes | beside)" \
            "([export] slurm_nodes of fleet.toml says what is to stand there)"
    parted "examine $goal $other"
}

# Whether the node is cut, offered so, and in use again.
stand() {
    parted "stand_as $goal" || exit 1
    is_offered nodes || fail "$conf/cms/$node.conf is not what it should be:" "$(line_of nodes)"
    must_look
    ! is_managed || fail "it is cut and offered as it should be, but still drained"
    ! is_invalid || fail "Slurm finds fewer devices there than its line offers: $state, $why"
}
"""


def files(
    transition: Transition, steps: tuple[Step, ...], options: ExportOptions
) -> dict[str, str]:
    """Return the files that all steps share, by path."""
    return {
        "lib/mig-parted.sh": (shell_functions("nvidia-smi") + CUT).lstrip(),
        "lib/slurm.sh": (shell_functions("slurm") + _MORE).lstrip(),
        "lib/on-gpu.sh": (PARTED + _ON_GPU).lstrip(),
    }


def order(options: ExportOptions) -> tuple[str, ...]:
    """Return what has to be done once, before the rest."""
    return (
        "Once, if Slurm does not yet have its nodes' lines from `cms`: `cms export now.json --to "
        "slurm`, whose README says how slurm.conf includes them.",
        "`run.sh` is for the controller, as root: it writes `/etc/slurm/cms/NODE.conf` (or in "
        "`CMS_SLURM_DIR`) and calls `scontrol` and `sinfo`; `nvidia-mig-parted` and `nvidia-smi` "
        "are called on the nodes.",
    )


def losses(transition: Transition) -> Iterator[str]:
    """What these scripts do not say."""
    yield from about_whole_gpus(transition)
    yield (
        "Single GPUs: a node is drained to cut any GPU of it; its jobs, also those of others, are "
        "waited for and never killed."
    )
    yield "Reboots: MIG instances do not survive them; observe and plan again afterwards."


def tables(part: Part, options: ExportOptions) -> dict[str, tuple[str, ...]]:
    """Return the rows of each table of a part's script."""
    found = cut_tables(part, options)
    if not part.repartitions:
        return found
    before, after = (whole_alone(side) for side in (part.befores, part.afters))
    node = FleetNode(part.node, part.afters)
    lines = {
        "wanted": offered(after, options),
        "former": offered(before, options),
        "shrunk": throughout(before, after, options),
    }
    more = {
        f"{name}_line": (node_line(node, counts, options).rstrip("\n"),)
        for name, counts in lines.items()
    }
    return {**found, **more}
