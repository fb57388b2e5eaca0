"""What ``cms replan`` is asked for: services, GPUs and terms, and rates that are not too old."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cms.errors import FileError

from .catalogue import find_gpu
from .options import duration
from .session import Session

if TYPE_CHECKING:
    from cms.fleet.deployment import Deployment
    from cms.fleet.deployment.transition import Durations
    from cms.fleet.hardware import Gpu
    from cms.fleet.replanner import Forecast, Planner, Rates, ReplanDecision, Terms
    from cms.fleet.serving import OperatingPoint, TimeSharing


@dataclass(frozen=True)
class Asked:
    """What a answer and a trace have in common, read."""

    services: Path
    points: Path
    columns: dict[str, str]
    gpus: list[str] | None
    rule: str | None
    sharing: TimeSharing | None
    costs: dict[str, Fraction]
    margin: Fraction
    time_limit: float | None
    terms: Terms
    forecast: Forecast
    durations: Durations | None
    max_parallel: int | None
    tool: str

    def planner(self, session: Session, rates: Rates, now: Deployment | None) -> Planner:
        """Build the planner of the services, on the GPUs that there are."""
        from cms.fleet.hardware.catalogue import is_called
        from cms.fleet.replanner import Planner, same_services
        from cms.fleet.serving import read_load_curves, read_operating_points, read_services
        from cms.fleet.serving.measurements import only_device

        asked = read_services(self.services, self.columns)
        points = read_operating_points(self.points, self.columns)
        same_services(rates, [each.name for each in asked])
        gpus = [find_gpu(key, "--gpu") for key in self.gpus or ()]
        if not gpus and now is not None:
            gpus = _measured(now, points, self.points)
        elif not gpus:
            gpus = [one for one in [only_device(points)] if one is not None]
        limits = None
        if now is not None:
            there = [card.gpu.key for card in now.gpus()]
            limits = {gpu.key: there.count(gpu.key) for gpu in gpus}
        settled = session.fleet
        for gpu in gpus:
            for name, each in settled.gpus.items():
                if each.max is not None and is_called(gpu, name):
                    limits = limits or {}
                    limits[gpu.key] = min(each.max, limits.get(gpu.key, each.max))
        terms: dict[str, Any] = {"rule": self.rule}
        if self.sharing is None and (curves := session.beside(settled.tables.load_curves)):
            terms["load_curves"] = read_load_curves(curves)
        if (shared := self.sharing) is not None:
            terms = {
                "sharing": "time", "rule": shared.rule, "max_services": shared.max_services,
                "splits": shared.splits, "headroom": shared.headroom,
            }  # fmt: skip
        return Planner(
            asked, points, gpus, margin=self.margin, time_limit=self.time_limit, limits=limits,
            costs=self.costs, max_processes=settled.plan.max_processes,
            cancel=session.interrupts.cancel, **terms,
        )  # fmt: skip


def _measured(now: Deployment, points: Iterable[OperatingPoint], path: Path) -> list[Gpu]:
    """The GPUs there are that something was measured on."""
    from cms.fleet.serving.measurements import is_measured_on

    there = {card.gpu.key: card.gpu for card in now.gpus()}
    known = {point.device: point for point in points}.values()
    found = [one for one in there.values() if any(is_measured_on(each, one) for each in known)]
    if not found:
        devices = ", ".join(sorted({each.device for each in known})) or "none"
        raise FileError(
            path, f"its points were measured on {devices}, and there are {', '.join(there)}",
            expected="points of a GPU that is there",
        )  # fmt: skip
    return found


def refuse_stale_rates(path: Path, rates: Rates, max_age: str) -> None:
    """Refuse rates whose last moment is past, by more than their step and the age allowed.

    One that is to come is refused likewise: clocks disagree, or times lack their zone.
    """
    most = duration(max_age, "--max-age")
    if most is None or not rates.is_clock:
        return
    age = datetime.now(UTC).timestamp() - float(rates.end_s)
    allowed = max(most, timedelta(seconds=float(rates.step_s))).total_seconds()
    if age > allowed:
        raise FileError(
            path, f"the last rates are of {rates.said(rates.count - 1)}, {age / 60:.0f} min ago",
            expected=f"at most {allowed / 60:.0f} min",
            fix="ask for them again, or allow more with --max-age",
        )  # fmt: skip
    if -age > allowed:
        raise FileError(
            path, f"the last rates are of {rates.said(rates.count - 1)}, {-age / 60:.0f} min ahead "
            "of this machine's clock",
            expected="rates up to now",
            fix="give every time its zone, set the clock, or allow it with --max-age",
        )  # fmt: skip


def folder_files(answer: ReplanDecision, asked: Asked) -> dict[str, str]:
    """Return the files of a answer: its transition's folder, and ``decision.json``, why it is so.

    Who goes on gets a folder, too, without steps: what an earlier answer wrote there has been done,
    and must not stay to be run again.
    """
    from cms.files.documents import document_text
    from cms.fleet.deployment.transition.folder import FolderOptions, folder_of
    from cms.fleet.replanner import replan_decision_to_json

    how = FolderOptions(asked.tool, "100 %", asked.durations, asked.max_parallel)
    document = replan_decision_to_json(answer)
    del document["transition"]  # it is beside it
    files = dict(folder_of(answer.way.transition, how).files)
    return files | {"decision.json": document_text(lambda: document, "decision.json")}
