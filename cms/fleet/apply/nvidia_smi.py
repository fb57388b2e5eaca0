"""On the node: ``nvidia-smi`` makes an instance at its start, ``nvidia-mig-parted`` whole GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..deployment.export.mig_parted import cut_of, name_of, text_of
from ..deployment.instance import Instance, Mode
from ..deployment.model import FleetGpu
from ..deployment.observation.mig_parted import Cut
from .tool import Job, SmiTool
from .units import Unit, find_place

__all__ = ["FUNCTIONS", "MigParted", "NvidiaSmi", "list_cuts"]

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
    """Instances are created and deleted one by one; what runs beside them goes on."""

    def change(self, unit: Unit) -> str:
        """Run the commands of what is still to be done."""
        lines = [*self._lines(unit, self._seen)]
        return self.on_node(unit.node, FUNCTIONS + "\n".join(lines)).said if lines else ""

    def commands(self, unit: Unit) -> Sequence[str]:
        """Return the calls of :data:`FUNCTIONS`."""
        return [*self._lines(unit, {})]

    def _lines(self, unit: Unit, seen: dict[str, FleetGpu]) -> Iterator[str]:
        for before, after in zip(unit.befores, unit.afters, strict=True):
            removed, added = unit.places(before.index)
            is_cut, held = before.mode is Mode.MIG, seen[before.name].instances if seen else None
            there = removed.keys() if held is None else {find_place(each) for each in held}
            whole = {find_place(each) for each in held or () if each.is_whole}
            if not (is_cut or after.mode is Mode.MIG):
                continue
            for place in sorted((removed.keys() - added.keys()) & there, key=str):
                yield self.line("del", before, removed[place])
            if after.mode is Mode.MIG and (before.is_empty or not is_cut):
                yield f"mig {before.index} Enabled 1"
            for place in sorted(added.keys() - removed.keys() - whole, key=str):
                yield self.line("add", before, added[place])
            if is_cut and after.mode is not Mode.MIG:
                yield f"mig {before.index} Disabled 0"

    def line(self, does: str, card: FleetGpu, each: Instance) -> str:
        """Return a call of `add` or `del`, with this node's name of the profile first."""
        profile = card.gpu.profile(each.profile)
        first = self.job.node(card.node).calls(card.gpu, profile.name)
        names = "|".join(dict.fromkeys((first, profile.name, *profile.other_names)))
        return f"{does} {card.index} '{names}' {each.start}"


class MigParted(NvidiaSmi):
    """GPUs are emptied and cut anew by counts, which `nvidia-smi` shows; it chooses the starts."""

    by_start = False

    def change(self, unit: Unit) -> str:
        """Remove what is half made, which mig-parted does not see, and have the GPUs cut."""
        half = [
            self.line("del", card, each)
            for card in unit.befores
            for each in (self._seen[card.name].instances if card.name in self._seen else ())
            if not each.is_whole
        ]
        lines = "\n".join([*half, *self.commands(unit)])
        return self.on_node(unit.node, FUNCTIONS + lines).said

    def commands(self, unit: Unit) -> Sequence[str]:
        """Return the command, with a configuration that names the unit's GPUs alone."""
        before, after = (list_cuts(self.job, side) for side in (unit.befores, unit.afters))
        if before == after:
            return []
        name = name_of(after)
        return [f"nvidia-mig-parted apply -f - -c {name} <<'END'\n{text_of({name: after})}END"]


def list_cuts(job: Job, cards: Sequence[FleetGpu]) -> dict[int, Cut]:
    """Return how GPUs are cut by index, as their drivers call it; those fixed stay as they are."""
    return {card.index: cut_of(card) for card in job.named(cards) if card.mode is not Mode.FIXED}
