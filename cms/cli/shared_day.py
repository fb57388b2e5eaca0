"""``cms simulate`` of a co-location plan: a day of GPUs that are shared."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cms.values.words import count

from . import options
from .colocate import read_predicted
from .options import option
from .searching import counted
from .session import Exit, Session

if TYPE_CHECKING:
    from cms.files import Parsed

#: Formats that are replayed here.
KINDS = ("cms-colocation-problem", "cms-colocation-solution")

Truth = Annotated[
    Path | None, option("P.csv", "Of a co-location plan: measured pairs, which say what happens.")
]
Activity = Annotated[
    Path | None,
    option(
        "TRACE.csv", "Of a co-location plan: SM activities in per cent: time, and a column for "
        "each online class or model, or one called activity.  [default: a sine with noise, by "
        "--seed]",
    ),
]  # fmt: skip


def read_day(
    session: Session,
    kind: str,
    path: Path,
    document: Parsed,
    truth: Path | None,
    pairs: Path | None,
    predictor: Path | None,
    activity: Path | None,
    posed: Path | None,
) -> dict[str, Any]:
    """Read what a day is simulated from; return the arguments of ``colocation_day``."""
    from cms.fleet.colocation import files, read_measured_pairs
    from cms.fleet.replanner import read_rates
    from cms.fleet.simulation.colocation_loop import LineWeights, Terms, Traced

    if truth is None:
        raise options.usage_error(
            f"{path} is a co-location plan; what happens is for --truth P.csv to say, a table "
            "of measured pairs as for 'cms colocate match --pairs'"
        )
    if predictor is not None and pairs is not None:
        raise options.usage_error("it stands in the place of --pairs", "--predictor")
    is_problem = kind == "cms-colocation-problem"
    if is_problem and posed is not None:
        raise options.usage_error(f"{path} is a problem itself", "--problem")
    if not is_problem and posed is None:
        raise options.usage_error(
            f"{path} says who shares a GPU, and not what there is; give the problem that "
            "'cms colocate match --problem FILE' has written: --problem FILE"
        )
    found: dict[str, Any] = {"terms": session.fleet.colocation.day or Terms()}
    if posed is None:
        problem = files.colocation_problem_from_json(document)
    else:
        problem = files.read_colocation_problem(posed)
        found["plan"] = files.colocation_solution_from_json(document, problem).plan
    found |= {"problem": problem, "truth": read_measured_pairs(truth)}
    shares = problem.margin, problem.lowest_share
    if predictor is not None:
        found["sees"] = read_predicted(session, predictor, None, *shares)
    if pairs is not None:
        found["sees"] = LineWeights(read_measured_pairs(pairs), *shares)
    if activity is not None:
        found["activity"] = Traced(read_rates(activity))
    return found


def simulate_day(session: Session, how: dict[str, Any], title: str, output: Path | None) -> int:
    """Simulate a day, print what it was like, and return the exit code."""
    from cms.fleet.report.simulations import shared_day_page
    from cms.fleet.simulation.colocation_loop import colocation_day
    from cms.fleet.simulation.colocation_loop.day import shared_day_to_json

    day = counted(session, "minutes", lambda progress: colocation_day(**how, on_progress=progress))
    if day.unmeasured:
        session.warn(
            f"{count(day.unmeasured, 'pair')} of models on a device not in --truth: "
            "these workloads never run together"
        )
    session.show(lambda: shared_day_to_json(day), lambda: shared_day_page(day, title), output)
    if day.stopped:
        return Exit.INTERRUPTED
    return Exit.FAILED if day.verdict == "violated" else Exit.ANSWER
