"""What ``cms simulate`` does with a plan of sharing: a day of GPUs that are shared."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cms.errors import CmsError
from cms.values.words import count

from . import options
from .progress import CountProgress
from .searching import heard
from .session import Exit, Session, refuse_two_readers
from .weights import LimitBy, limit_by_option

if TYPE_CHECKING:
    from cms.files import Parsed
    from cms.fleet.report.page import Page
    from cms.fleet.sharing import SharingPlan, SharingProblem
    from cms.fleet.simulation.sharing_loop import SharedDay

__all__ = [
    "KINDS",
    "Activity",
    "Given",
    "Hours",
    "LimitBy",
    "Pairs",
    "Predictor",
    "Problem",
    "Protection",
    "Term",
    "Truth",
    "simulate_day",
]

#: Formats that are replayed here.
KINDS = ("cms-sharing-problem", "cms-sharing-solution")

Hours = Annotated[
    int | None,
    typer.Option("--hours", metavar="N", min=1, help="Of a plan of sharing: how long.  [24]"),
]
Truth = Annotated[
    Path | None,
    typer.Option(
        "--truth", metavar="P.csv",
        help="Of a plan of sharing: measured pairs, which say what happens.",
    ),
]  # fmt: skip
Pairs = Annotated[
    Path | None,
    typer.Option(
        "--pairs", metavar="P.csv",
        help="The pairs that the scheduler goes by.  [default: those of --truth]",
    ),
]  # fmt: skip
Predictor = Annotated[
    Path | None,
    typer.Option(
        "--predictor", metavar="MODEL.json",
        help="In place of --pairs: the scheduler goes by what 'cms predictor train' learnt.",
    ),
]  # fmt: skip
Activity = Annotated[
    Path | None,
    typer.Option(
        "--activity", metavar="TRACE.csv",
        help="SM activities in per cent: time, and a column for each online class or model, or one "
        "called activity.  [default: a sine with noise, by --seed]",
    ),
]  # fmt: skip
Problem = Annotated[
    Path | None,
    typer.Option("--problem", metavar="FILE", help="The problem that share.json is a plan of."),
]
Protection = Annotated[
    str | None,
    typer.Option("--protection", metavar="on|off", help="The monitor of every GPU.  [on]"),
]
Term = Annotated[
    list[str] | None,
    typer.Option(
        "--term", metavar="K=V",
        help="How the day is played: interval, quantile, stay, dead_band, restart, job_hours, "
        "arrivals_per_hour, waiting_scale, tolerated, sample; may be repeated.",
    ),
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Given:
    """What is given for a plan of sharing; what is not given is None."""

    hours: int | None
    truth: Path | None
    pairs: Path | None
    predictor: Path | None
    limit_by: str | None
    activity: Path | None
    problem: Path | None
    protection: str | None
    term: list[str] | None

    def refuse_all(self) -> None:
        """Refuse these options where a plan of instances is replayed.

        Raises
        ------
        UsageError
        """
        named = {
            "--hours": self.hours, "--truth": self.truth, "--pairs": self.pairs,
            "--predictor": self.predictor, "--limit-by": self.limit_by,
            "--activity": self.activity, "--problem": self.problem,
            "--protection": self.protection, "--term": self.term,
        }  # fmt: skip
        for option, value in named.items():
            if value is not None:
                raise options.usage_error(
                    "it is for plans of offline work beside online services (cms share)", option
                )

    def prepared(
        self,
        kind: str,
        path: Path,
        document: Parsed,
        others: Mapping[str, object],
        seed: int,
    ) -> dict[str, Any]:
        """Read what is given, and return the arguments of ``share_day``.

        Raises
        ------
        UsageError, CmsError
        """
        for option, value in others.items():
            if value:
                raise options.usage_error(
                    "it is for plans of instances; a plan of sharing is simulated by the minute",
                    option,
                )
        read = (
            (path, "share.json"), (self.truth, "--truth"), (self.pairs, "--pairs"),
            (self.predictor, "--predictor"), (self.activity, "--activity"),
            (self.problem, "--problem"),
        )  # fmt: skip
        refuse_two_readers(*read)
        return self._arguments(kind, path, document, seed)

    def _arguments(self, kind: str, path: Path, document: Parsed, seed: int) -> dict[str, Any]:
        from cms.fleet.reconciling import read_rates
        from cms.fleet.sharing import PredictedWeights, read_measured_pairs, read_predictor
        from cms.fleet.simulation.sharing_loop import LineWeights, Terms, Traced

        if self.truth is None:
            raise options.usage_error(
                f"{path} is a plan of sharing; what happens is for --truth P.csv to say, a table "
                "of measured pairs as for 'cms share --pairs'"
            )
        limit_by = limit_by_option(self.limit_by, self.predictor)
        problem, plan = self._posed(kind, path, document)
        terms = {**self._terms(), "protection": self._is_protected()}
        if self.hours is not None:
            terms["hours"] = self.hours
        try:
            played = Terms(**terms)
        except CmsError as fault:
            raise options.usage_error(str(fault), "--term") from None
        found: dict[str, Any] = {"problem": problem, "plan": plan, "seed": seed, "terms": played}
        found["truth"] = read_measured_pairs(self.truth)
        if self.predictor is not None:
            if self.pairs is not None:
                raise options.usage_error("it stands in the place of --pairs", "--predictor")
            found["sees"] = PredictedWeights(
                read_predictor(self.predictor), margin=problem.margin,
                lowest_share=problem.lowest_share, limit_by=limit_by,
            )  # fmt: skip
        if self.pairs is not None:
            seen = read_measured_pairs(self.pairs)
            found["sees"] = LineWeights(seen, problem.margin, problem.lowest_share)
        if self.activity is not None:
            found["activity"] = Traced(read_rates(self.activity))
        return found

    def _posed(
        self, kind: str, path: Path, document: Parsed
    ) -> tuple[SharingProblem, SharingPlan | None]:
        from cms.fleet.sharing.files import (
            read_sharing_problem,
            sharing_problem_from_json,
            sharing_solution_from_json,
        )

        if kind == "cms-sharing-problem":
            if self.problem is not None:
                raise options.usage_error(f"{path} is a problem itself", "--problem")
            return sharing_problem_from_json(document), None
        if self.problem is None:
            raise options.usage_error(
                f"{path} says who shares a GPU, and not what there is; --problem FILE does, which "
                "'cms share --problem FILE' has written"
            )
        problem = read_sharing_problem(self.problem)
        return problem, sharing_solution_from_json(document, problem).plan

    def _is_protected(self) -> bool:
        if self.protection not in (None, "on", "off"):
            raise options.usage_error(f"{self.protection!r}: expected on or off", "--protection")
        return self.protection != "off"

    def _terms(self) -> dict[str, Any]:
        from cms.fleet.simulation.sharing_loop import Terms
        from cms.values.names import nearest
        from cms.values.numbers import exact

        given = options.pairs(self.term, "--term", "job_hours=4")
        # What has an option of its own is none of them.
        own = ("hours", "protection")
        known = tuple(term.name for term in fields(Terms) if term.name not in own)
        found: dict[str, Any] = {}
        for key, value in given.items():
            if key not in known:
                raise options.usage_error(
                    f"there is no {key!r}{nearest(key, known)}; expected {', '.join(known)}",
                    "--term",
                )
            try:
                number = exact(value, key)
            except CmsError as fault:
                raise options.usage_error(str(fault), "--term") from None
            found[key] = int(number) if number.denominator == 1 else number
        return found


def simulate_day(session: Session, how: Mapping[str, Any], title: str, output: Path | None) -> int:
    """Simulate a day, print what it was like, and return the exit code."""
    progress = CountProgress(None if session.quiet else sys.stderr, what="minutes")
    try:
        day = heard(
            session, lambda: _played(how, session, progress), patient=lambda: progress.begun
        )
    finally:
        progress.end()
    if day.unmeasured:
        session.warn(
            f"{count(day.unmeasured, 'pair')} of what is there, by model and device, not in the "
            "truth: never run"
        )

    def view() -> Page:
        from cms.fleet.report.simulations import shared_day_page

        return shared_day_page(day, title)

    def make() -> dict[str, Any]:
        from cms.fleet.simulation.sharing_loop.result import shared_day_to_json

        return shared_day_to_json(day)

    session.show(make, view, output)
    if day.stopped:
        return Exit.INTERRUPTED
    return Exit.FAILED if day.verdict == "broken" else Exit.ANSWER


def _played(how: Mapping[str, Any], session: Session, progress: CountProgress) -> SharedDay:
    from cms.fleet.simulation.sharing_loop import share_day

    return share_day(**how, cancel=session.interrupts.cancel, on_progress=progress)
