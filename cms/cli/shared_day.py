"""What ``cms simulate`` does with a co-location plan: a day of GPUs that are shared."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cms.errors import CmsError
from cms.values.words import count

from . import options
from .progress import CountProgress
from .searching import heard
from .session import Exit, Session, refuse_two_readers
from .weights import limit_by

if TYPE_CHECKING:
    from cms.files import Parsed
    from cms.fleet.colocation import ColocationPlan, ColocationProblem
    from cms.fleet.report.page import Page
    from cms.fleet.simulation.colocation_loop import SharedDay

    from .settings import Colocation

#: Formats that are replayed here.
KINDS = ("cms-colocation-problem", "cms-colocation-solution")

Truth = Annotated[
    Path | None,
    typer.Option(
        "--truth", metavar="P.csv",
        help="Of a co-location plan: measured pairs, which say what happens.",
    ),
]  # fmt: skip
Activity = Annotated[
    Path | None,
    typer.Option(
        "--activity", metavar="TRACE.csv",
        help="Of a co-location plan: SM activities in per cent: time, and a column for each online "
        "class or model, or one called activity.  [default: a sine with noise, by --seed]",
    ),
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Given:
    """What is given for a co-location plan; what is not given is None."""

    truth: Path | None
    pairs: Path | None
    predictor: Path | None
    activity: Path | None
    problem: Path | None
    settings: Colocation

    def refuse_all(self) -> None:
        """Refuse these options where a plan of instances is replayed."""
        for field in fields(self):
            if field.name != "settings" and getattr(self, field.name) is not None:
                raise options.usage_error(
                    "it is for plans of offline work beside online services (cms colocate)",
                    f"--{field.name}",
                )

    def prepared(
        self, kind: str, path: Path, document: Parsed, others: Mapping[str, object], seed: int
    ) -> dict[str, Any]:
        """Read what is given, and return the arguments of ``colocation_day``."""
        for option, value in others.items():
            if value:
                raise options.usage_error(
                    "it is for plans of instances; a co-location plan is simulated by the minute",
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
        from cms.fleet.colocation import PredictedWeights, read_measured_pairs, read_predictor
        from cms.fleet.replanner import read_rates
        from cms.fleet.simulation.colocation_loop import LineWeights, Terms, Traced

        if self.truth is None:
            raise options.usage_error(
                f"{path} is a co-location plan; what happens is for --truth P.csv to say, a table "
                "of measured pairs as for 'cms colocate match --pairs'"
            )
        by = limit_by(self.settings, self.predictor)
        problem, plan = self._posed(kind, path, document)
        try:
            played = Terms(**self._terms())
        except CmsError as fault:
            raise options.usage_error(str(fault), "[colocation.day]") from None
        found: dict[str, Any] = {"problem": problem, "plan": plan, "seed": seed, "terms": played}
        found["truth"] = read_measured_pairs(self.truth)
        if self.predictor is not None:
            if self.pairs is not None:
                raise options.usage_error("it stands in the place of --pairs", "--predictor")
            found["sees"] = PredictedWeights(
                read_predictor(self.predictor), margin=problem.margin,
                lowest_share=problem.lowest_share, limit_by=by,
            )  # fmt: skip
        if self.pairs is not None:
            seen = read_measured_pairs(self.pairs)
            found["sees"] = LineWeights(seen, problem.margin, problem.lowest_share)
        if self.activity is not None:
            found["activity"] = Traced(read_rates(self.activity))
        return found

    def _posed(
        self, kind: str, path: Path, document: Parsed
    ) -> tuple[ColocationProblem, ColocationPlan | None]:
        from cms.fleet.colocation.files import (
            colocation_problem_from_json,
            colocation_solution_from_json,
            read_colocation_problem,
        )

        if kind == "cms-colocation-problem":
            if self.problem is not None:
                raise options.usage_error(f"{path} is a problem itself", "--problem")
            return colocation_problem_from_json(document), None
        if self.problem is None:
            raise options.usage_error(
                f"{path} says who shares a GPU, and not what there is; --problem FILE does, which "
                "'cms colocate match --problem FILE' has written"
            )
        problem = read_colocation_problem(self.problem)
        return problem, colocation_solution_from_json(document, problem).plan

    def _terms(self) -> dict[str, Any]:
        from cms.fleet.simulation.colocation_loop import Terms
        from cms.values.names import nearest

        known = tuple(term.name for term in fields(Terms))
        found: dict[str, Any] = {}
        for key, value in self.settings.day.items():
            if key not in known:
                raise options.usage_error(
                    f"there is no {key!r}{nearest(key, known)}; expected {', '.join(known)}",
                    "[colocation.day]",
                )
            is_whole = isinstance(value, Fraction) and value.denominator == 1
            found[key] = int(value) if is_whole else value
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
        from cms.fleet.simulation.colocation_loop.result import shared_day_to_json

        return shared_day_to_json(day)

    session.show(make, view, output)
    if day.stopped:
        return Exit.INTERRUPTED
    return Exit.FAILED if day.verdict == "violated" else Exit.ANSWER


def _played(how: Mapping[str, Any], session: Session, progress: CountProgress) -> SharedDay:
    from cms.fleet.simulation.colocation_loop import colocation_day

    return colocation_day(**how, cancel=session.interrupts.cancel, on_progress=progress)
