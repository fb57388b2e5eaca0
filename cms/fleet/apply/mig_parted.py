"""By ``nvidia-mig-parted``: a GPU is emptied and cut anew as a whole, and it chooses the starts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ...errors import InvalidProblem
from ..deployment.export.mig_parted import cut_of, name_of, text_of
from ..deployment.instance import Mode
from ..deployment.model import FleetGpu
from ..deployment.observation.mig_parted import Cut
from ..deployment.transition import What
from .nvidia_smi import FUNCTIONS, NvidiaSmi
from .tool import Job
from .units import Unit

__all__ = ["MigParted", "cuts_of", "refuse_parts", "whole_alone"]


class MigParted(NvidiaSmi):
    """GPUs are cut anew by counts, which `nvidia-smi` shows."""

    by_start = False

    def change(self, unit: Unit) -> str:
        """Remove what is half made, which mig-parted does not see, and have the GPUs cut."""
        half = [
            self.line("del", card, each)
            for card in map(self._seen.__getitem__, sorted(unit.gpus))
            for each in card.instances
            if not each.is_whole
        ]
        lines = "\n".join([*half, *self.commands(unit)])
        return self.job.shell.on(unit.node, FUNCTIONS + lines).said

    def commands(self, unit: Unit) -> Sequence[str]:
        """Return the command, with a configuration that names the unit's GPUs alone."""
        return [*self._lines_of(unit)]

    def _lines_of(self, unit: Unit) -> Iterator[str]:
        cuts = cuts_of(name_cards(self.job, unit.afters))
        if cuts != cuts_of(name_cards(self.job, unit.befores)):
            name = name_of(cuts)
            yield f"nvidia-mig-parted apply -f - -c {name} <<'END'\n{text_of({name: cuts})}END"


def name_cards(job: Job, cards: Iterable[FleetGpu]) -> tuple[FleetGpu, ...]:
    """Return GPUs whose profiles have the names that their nodes' drivers know."""
    return tuple(
        replace(
            card,
            instances=tuple(
                replace(i, profile=job.node(card.node).calls(card.gpu, i.profile))
                for i in card.instances
            ),
        )
        for card in cards
    )


def cuts_of(cards: Iterable[FleetGpu]) -> dict[int, Cut]:
    """Return how GPUs are cut, by their whole instances; those that are fixed stay as they are."""
    fit = (card for card in cards if card.mode is not Mode.FIXED)
    return {card.index: cut_of(card) for card in whole_alone(fit)}


def whole_alone(cards: Iterable[FleetGpu]) -> tuple[FleetGpu, ...]:
    """Return GPUs without what has no compute instance: most tools do not find it."""
    return tuple(
        replace(card, instances=tuple(each for each in card.instances if each.is_whole))
        for card in cards
    )


def refuse_parts(units: Iterable[Unit], tool: str) -> None:
    """Refuse what cuts part of a GPU, and instances that nothing tells apart."""
    for unit in units:
        for card in unit.befores:
            works: dict[str, set[object]] = {}
            for each in card.instances if card.mode is Mode.MIG else ():
                if each.start is None:
                    works.setdefault(each.profile, set()).add(each.work)
            for profile in (name for name, found in works.items() if len(found) > 1):
                raise InvalidProblem(
                    f"{card.name} has several {profile} that do different things, and of which the "
                    f"starts are not known; observe node {card.node!r} with: nvidia-smi mig -lgi"
                )
        for action in unit.actions:
            card = next(c for c in unit.befores if c.index == action.index)
            if action.what in (What.CREATE, What.DELETE) and card.mode is Mode.MIG:
                raise InvalidProblem(
                    f"{action}: this cuts part of a GPU, which {tool} cannot; expected a "
                    "transition planned for it (--tool), or the tool nvidia-smi"
                )
