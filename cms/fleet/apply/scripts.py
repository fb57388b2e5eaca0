"""The same changes as plain scripts, for nodes that cannot be reached: a file a step and node."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator

from ...errors import UnsupportedProblem
from ..deployment.instance import Mode
from ..deployment.model import FleetGpu
from .nvidia_smi import FUNCTIONS, NvidiaSmi
from .slurm import Slurm
from .tool import Tool
from .units import Unit

__all__ = ["write_scripts"]

_HEAD = """\
#!/bin/sh
# Step {step} on {node}, as root there: once the steps before it have ended on all nodes.
# It may be run again; it stops at a GPU that holds something else than before or after it.
set -u
"""
_LOOK = r"""
look() { # GPU: its instances by profile and start, those without a compute instance marked
    { nvidia-smi mig -i "$1" -lci; nvidia-smi mig -i "$1" -lgi; } | tr '|' ' ' | awk '
        $3 == "MIG" { whole[$2] }
        $2 == "MIG" { split($6, at, ":"); print $3 (%s) ($5 in whole ? "" : ",half") }
    ' | LC_ALL=C sort | paste -s -d ' ' -
}
expect() { # GPU, then what it may hold
    gpu=$1 has=$(look "$1")
    shift
    for each in "$@"; do [ "$has" != "$each" ] || return 0; done
    echo "GPU $gpu holds '$has', expected '$1'${2+ or '$2'}: nothing more is done" >&2
    exit 1
}
"""


def write_scripts(units: Iterable[Unit], tool: Tool) -> dict[str, str]:
    """Return the scripts by file name: ``01-node-a.sh``.

    Each compares every GPU that it changes before and after with what it is to hold. Work is for
    the user to stop before and to start after, as the comments say.
    """
    if not isinstance(tool, NvidiaSmi) or isinstance(tool, Slurm):
        raise UnsupportedProblem(
            "scripts are for tools that run on the nodes, nvidia-smi and mig-parted; kubectl and "
            "scontrol reach all nodes from here: leave out --print"
        )
    steps: dict[tuple[int, str], list[Unit]] = {}
    for unit in units:
        steps.setdefault((unit.step, unit.node), []).append(unit)
    return {
        f"{step:02}-{node}.sh": _HEAD.format(step=step, node=node) + "".join(_body(own, tool))
        for (step, node), own in steps.items()
    }


def _body(units: list[Unit], tool: NvidiaSmi) -> Iterator[str]:
    before: dict[int, FleetGpu] = {}
    after: dict[int, FleetGpu] = {}
    for unit in units:
        yield from (f"# {' '.join(str(action).split())}\n" for action in unit.actions)
        yield from (f"# before: stop {seat}\n" for seat in unit.stops)
        yield from (f"# after: start {seat}\n" for seat in unit.starts)
        for first, last in zip(unit.befores, unit.afters, strict=True):
            before.setdefault(first.index, first)
            after[last.index] = last
    yield FUNCTIONS
    yield _LOOK % ('"@" at[1]' if tool.by_start else '""')
    changed = [i for i, card in before.items() if Mode.MIG in (card.mode, after[i].mode)]
    for index in changed:
        holds = dict.fromkeys(_held(tool, side[index]) for side in (before, after))
        yield f"expect {index} {shlex.join(holds)}\n"
    yield from (f"{line}\n" for unit in units for line in tool.commands(unit))
    yield from (f"expect {i} {shlex.join([_held(tool, after[i])])}\n" for i in changed)


def _held(tool: NvidiaSmi, card: FleetGpu) -> str:
    node = tool.job.node(card.node)
    held: Iterable[str] = (
        node.calls(card.gpu, each.profile)
        + (f"@{each.start}" if tool.by_start else "")
        + ("" if each.is_whole else ",half")
        for each in (card.instances if card.mode is Mode.MIG else ())
    )
    return " ".join(sorted(held))
