"""By ``nvidia-mig-parted``: a GPU is emptied and cut anew as a whole, and it chooses the starts."""

from __future__ import annotations

from collections.abc import Sequence

from ..deployment.export.mig_parted import cut_of, name_of, text_of
from ..deployment.instance import Mode
from ..deployment.model import FleetGpu
from ..deployment.observation.mig_parted import Cut
from .nvidia_smi import FUNCTIONS, NvidiaSmi
from .tool import Job
from .units import Unit

__all__ = ["MigParted", "list_cuts"]


class MigParted(NvidiaSmi):
    """GPUs are cut anew by counts, which `nvidia-smi` shows."""

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
