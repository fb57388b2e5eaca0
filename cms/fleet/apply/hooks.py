"""Work that the user's own commands start and stop: ``[work]`` of fleet.toml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...errors import CmsError
from ...values.numbers import exact, format_exact
from ..deployment.instance import Instance
from ..deployment.labels import point_label
from ..deployment.transition import Transition
from .tool import ActionFailed, Ran, Shell, Turn
from .units import Seat

#: The commands that there have to be.
HOOKS = ("start", "stop", "ready", "drained")
_ASKED = {"start": "ready", "stop": "drained"}


@dataclass(frozen=True)
class Hooks:
    """Shell commands of the user, run on this machine.

    `commands`: ``start``, ``stop``: Begin and end to serve. ``ready``, ``drained``: Exit with 0 if
    that is so; asked again until they do. ``capacity``, optional: Prints the requests/s that a
    service serves now, or nothing. No work is stopped that takes it below its floor as measured.
    """

    transition: Transition
    commands: Mapping[str, str]
    shell: Shell

    def is_done(self, what: Turn, seat: Seat, place: Instance | None) -> bool:
        """Ask whether it serves, or nothing of it is left."""
        return self._run(_ASKED[what], seat, place).code == 0

    def do(self, what: Turn, seat: Seat, place: Instance | None) -> None:
        """Have it begin, or end where what is measured allows."""
        assert seat.instance.work is not None
        name = seat.instance.work.service
        floor = self.transition.floors.get(name)
        supply = seat.instance.supply_rps
        if what == "stop" and "capacity" in self.commands and floor is not None and supply:
            said = self._run("capacity", seat, place).out.strip()
            try:
                is_low = said and exact(said, f"the capacity of {name}") < floor.rps + supply
            except CmsError as fault:
                raise ActionFailed(f"[work] capacity: {fault}") from None
            if is_low:
                raise ActionFailed(
                    f"{name} has {said} requests/s now; before {seat} stops it needs what that "
                    f"supplies beside its floor of {floor}"
                )
        ran = self._run(what, seat, place)
        if ran.code:
            raise ActionFailed(f"[work] {what} of {seat} ended with {ran.code}: {ran.said}")

    def _run(self, name: str, seat: Seat, place: Instance | None) -> Ran:
        work, card = seat.instance.work, seat.gpu
        assert work is not None
        services = (*self.transition.start.services, *self.transition.target.services)
        models = {service.name: service.model for service in services}
        start, uuid = (seat.instance.start, None) if place is None else (place.start, place.uuid)
        told = {
            "SERVICE": work.service, "MODEL": models[work.service], "POINT": point_label(work),
            "PROCESSES": work.point.processes, "BATCH": work.point.batch,
            "SUPPLY": format_exact(work.supply_rps), "NODE": card.node, "GPU": card.index,
            "GPU_UUID": card.uuid or "", "PROFILE": seat.instance.profile,
            "START": "" if start is None else start, "NUMBER": seat.number, "UUID": uuid or "",
        }  # fmt: skip
        more = {f"CMS_{key}": str(value) for key, value in told.items()}
        return self.shell.here("sh", "-c", self.commands[name], more=more)
