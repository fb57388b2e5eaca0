"""By ``nvidia-smi``: each instance by itself at its start; what runs beside it goes on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..deployment.instance import Instance, Mode
from ..deployment.model import FleetGpu
from .tool import SmiTool
from .units import Unit

__all__ = ["FUNCTIONS", "NvidiaSmi"]

#: Shell functions that do nothing where nothing is to be done: names are those that drivers use.
FUNCTIONS = r"""
at() { # GPU NAMES START: the number of the GPU instance that is there
    nvidia-smi mig -i "$1" -lgi | tr '|' ' ' | awk -v names="|$2|" -v start="$3" \
        '$2 == "MIG" && index(names, "|" $3 "|") && $6 ~ "^" start ":" { print $5 }'
}
add() { # GPU NAMES START
    id=$(at "$@")
    if [ -n "$id" ]; then nvidia-smi mig -i "$1" -gi "$id" -cci; fi
    for name in $(echo "$2" | tr '|' ' '); do
        if [ -z "$(at "$@")" ]; then nvidia-smi mig -i "$1" -cgi "$name:$3" -C; fi
    done
}
del() { # GPU NAMES START
    id=$(at "$@")
    if [ -n "$id" ]; then
        nvidia-smi mig -i "$1" -gi "$id" -dci
        nvidia-smi mig -i "$1" -gi "$id" -dgi
    fi
}
is_mig() { [ "$(nvidia-smi -i "$1" --query-gpu=mig.mode.current --format=csv,noheader)" = "$2" ]; }
mig() { # GPU Enabled 1, or GPU Disabled 0
    is_mig "$1" "$2" || nvidia-smi -i "$1" -mig "$3"
    is_mig "$1" "$2" || nvidia-smi -i "$1" --gpu-reset
}
""".lstrip()


class NvidiaSmi(SmiTool):
    """Instances are created and deleted one by one."""

    def change(self, unit: Unit) -> str:
        """Run the commands of what is still to be done."""
        lines = [*self._lines(unit, looked=True)]
        return self.job.shell.on(unit.node, FUNCTIONS + "\n".join(lines)).said if lines else ""

    def commands(self, unit: Unit) -> Sequence[str]:
        """Return the calls of :data:`FUNCTIONS`."""
        return [*self._lines(unit, looked=False)]

    def _lines(self, unit: Unit, *, looked: bool) -> Iterator[str]:
        for before, after in zip(unit.befores, unit.afters, strict=True):
            if before.mode is not Mode.MIG and after.mode is not Mode.MIG:
                continue
            seen = self._seen.get(before.name) if looked else None
            held = () if seen is None else seen.instances
            whole = {(i.profile, i.start) for i in held if i.is_whole}
            own = [action for action in unit.actions if action.index == before.index]
            gone, come = (
                {(i.profile, i.start): i for action in own for i in getattr(action, side)}
                for side in ("removes", "adds")
            )
            for at, each in gone.items():
                if at not in come and (seen is None or at in {(i.profile, i.start) for i in held}):
                    yield self.line("del", before, each)
            if after.mode is Mode.MIG and (before.is_empty or before.mode is not Mode.MIG):
                yield f"mig {before.index} Enabled 1"
            for at, each in come.items():
                if at not in gone and at not in whole:
                    yield self.line("add", before, each)
            if before.mode is Mode.MIG and after.mode is not Mode.MIG:
                yield f"mig {before.index} Disabled 0"

    def line(self, does: str, card: FleetGpu, each: Instance) -> str:
        """Return a call of `add` or `del`."""
        return f"{does} {card.index} '{self.names(card, each.profile)}' {each.start}"

    def names(self, card: FleetGpu, name: str) -> str:
        """Return what drivers call a profile, this node's first."""
        profile = card.gpu.profile(name)
        first = self.job.node(card.node).calls(card.gpu, profile.name)
        return "|".join(dict.fromkeys((first, profile.name, *profile.other_names)))
