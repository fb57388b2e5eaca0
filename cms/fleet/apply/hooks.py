"""Work that the user's own commands start and stop: ``[work]`` of fleet.toml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from ...errors import CmsError
from ...values.numbers import exact, format_exact
from ..deployment.instance import Instance
from ..deployment.labels import point_label
from ..deployment.transition import Transition
from .shell import ActionFailed, run_command
from .units import Seat

__all__ = ["HOOKS", "Hooks"]

#: The commands that there have to be.
HOOKS = ("start", "stop", "ready", "drained")


@dataclass(frozen=True)
class Hooks:
    """Shell commands of the user, run on this machine.

    `commands`: ``start``, ``stop``: Begin and end to serve. ``ready``, ``drained``: Exit with 0 if
    that is so; asked again until they do. ``capacity``, optional: Prints the requests/s that a
    service serves now, or nothing. No work is stopped that takes it below its floor as measured.
    """

    transition: Transition
    commands: Mapping[str, str]
    timeout_s: float

    def is_drained(self, seat: Seat, place: Instance | None) -> bool:
        """Ask whether nothing of it is left."""
        return self._run("drained", seat, place)[0] == 0

    def is_ready(self, seat: Seat, place: Instance | None) -> bool:
        """Ask whether it serves."""
        return self._run("ready", seat, place)[0] == 0

    def start(self, seat: Seat, place: Instance | None) -> None:
        """Have it begin."""
        self._act("start", seat, place)

    def stop(self, seat: Seat, place: Instance | None) -> None:
        """Have it end, where what is measured allows."""
        assert seat.instance.work is not None
        name = seat.instance.work.service
        floor = self.transition.floors.get(name)
        if "capacity" in self.commands and floor is not None and seat.instance.supply_rps:
            said = self._run("capacity", seat, place)[1].strip()
            if said and _number(said, name) < floor.rps + seat.instance.supply_rps:
                raise ActionFailed(
                    f"{name} has {said} requests/s now; before {seat} stops it needs what that "
                    f"supplies beside its floor of {floor}"
                )
        self._act("stop", seat, place)

    def _act(self, what: str, seat: Seat, place: Instance | None) -> None:
        code, said = self._run(what, seat, place)
        if code:
            raise ActionFailed(f"[work] {what} of {seat} ended with {code}: {said}")

    def _run(self, what: str, seat: Seat, place: Instance | None) -> tuple[int, str]:
        words = ["sh", "-c", self.commands[what]]
        ran = run_command(words, self.timeout_s, more=self._about(seat, place))
        return ran.code, ran.out if ran.code == 0 else ran.said

    def _about(self, seat: Seat, place: Instance | None) -> dict[str, str]:
        work, card = seat.instance.work, seat.gpu
        assert work is not None
        models = {
            service.name: service.model
            for side in (self.transition.start, self.transition.target)
            for service in side.services
        }
        start = seat.instance.start if place is None else place.start
        told = {
            "SERVICE": work.service, "MODEL": models[work.service], "POINT": point_label(work),
            "PROCESSES": work.point.processes, "BATCH": work.point.batch,
            "SUPPLY": format_exact(work.supply_rps), "NODE": card.node, "GPU": card.index,
            "GPU_UUID": card.uuid or "", "PROFILE": seat.instance.profile,
            "START": "" if start is None else start, "NUMBER": seat.number,
            "UUID": "" if place is None else place.uuid or "",
        }  # fmt: skip
        return {f"CMS_{name}": str(value) for name, value in told.items()}


def _number(said: str, service: str) -> Fraction:
    try:
        return exact(said, f"the capacity of {service}")
    except CmsError as fault:
        raise ActionFailed(f"[work] capacity: {fault}") from None
