"""``cms share``: offline work beside online services on one GPU, for the most value."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options
from .searching import Search, heard, option_values
from .session import Exit, refuse_two_readers, session_of
from .weights import By, LimitBy, Weights

if TYPE_CHECKING:
    from fractions import Fraction

    from cms.fleet.report.page import Page
    from cms.fleet.sharing import NamedGpus, OfflineClass, SharingProblem, SharingSolution

_Online = Annotated[
    Path, typer.Option("--online", metavar="O.csv", help="GPUs with their online services.")
]
_Offline = Annotated[
    Path, typer.Option("--offline", metavar="F.csv", help="The workloads that want a share.")
]
_Pairs = Annotated[
    Path | None,
    typer.Option("--pairs", metavar="P.csv", help="What was measured of models in pairs."),
]
_Predictor = Annotated[
    Path | None,
    typer.Option(
        "--predictor", metavar="MODEL.json",
        help="In place of --pairs: what 'cms predictor train' learnt of them.",
    ),
]  # fmt: skip
_LowerEnd = Annotated[
    bool,
    typer.Option(
        "--lower-end", help="With --predictor: count the lower ends of predicted throughputs."
    ),
]
_Profiles = Annotated[
    Path | None,
    typer.Option(
        "--profiles", metavar="W.csv",
        help="With --predictor: what is known of models that it was not trained on.",
    ),
]  # fmt: skip
_Margin = Annotated[
    int, typer.Option("--margin", metavar="PERCENT", min=0, max=100, help="Kept free on every GPU.")
]
_Lowest = Annotated[
    int,
    typer.Option(
        "--lowest-share", metavar="PERCENT", min=0, max=100, help="Smaller shares are not given."
    ),
]
_Limit = Annotated[
    str | None,
    typer.Option(
        "--slowdown-limit", metavar="FACTOR", help="Of GPUs whose rows in O.csv have none."
    ),
]
_WaitingScale = Annotated[
    str | None,
    typer.Option(
        "--waiting-scale", metavar="SECONDS",
        help="A workload that has waited so long (waiting_s in F.csv) counts twice, and so on in "
        "quarters.  [default: waiting counts for nothing]",
    ),
]  # fmt: skip
_Problem = Annotated[
    Path | None,
    typer.Option("--problem", metavar="FILE", help="Also write the problem, for 'cms check'."),
]
_Assign = Annotated[
    Path | None,
    typer.Option(
        "--assign", metavar="GPUS.csv",
        help="Also write which workload goes on which GPU of O.csv; who runs already stays.",
    ),
]  # fmt: skip
#: Pairs of classes up to which the price of rounding activities is worked out beside the answer.
_MOST_PAIRS = 100_000


def share(
    context: typer.Context,
    online: _Online,
    offline: _Offline,
    pairs: _Pairs = None,
    predictor: _Predictor = None,
    lower_end: _LowerEnd = False,
    limit_by: LimitBy = None,
    profiles: _Profiles = None,
    margin: _Margin = 10,
    lowest_share: _Lowest = 5,
    slowdown_limit: _Limit = None,
    waiting_scale: _WaitingScale = None,
    method: options.Method = "muxflow",
    option: options.MethodOptions = None,
    time_limit: options.TimeLimit = "60",
    seed: options.Seed = 0,
    assign: _Assign = None,
    picture: options.Picture = None,
    problem: _Problem = None,
    output: options.Output = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Match offline workloads to GPUs of online services.

    A proof says how much more any matching can be worth.
    """
    session = session_of(context)
    output = session.begin(output, json=json, quiet=quiet)
    how = Search.read(method, option, time_limit, "0", seed, None, None)
    read = (
        (online, "--online"), (offline, "--offline"), (pairs, "--pairs"),
        (predictor, "--predictor"), (profiles, "--profiles"),
    )  # fmt: skip
    session.refuse_unwritable(
        (output, "--output"), (problem, "--problem"), (assign, "--assign"), (picture, "--picture")
    )
    refuse_two_readers(*read)
    by = By(pairs, predictor, lower_end, limit_by, profiles)
    by.refuse_the_rest()
    with session.reading():
        weights = by.weights(margin, lowest_share)
        asked = _read(online, offline, weights, margin, lowest_share, slowdown_limit, waiting_scale)
        posed = asked.problem()
    arguments: dict[str, Any] = {
        "method": how.method, "options": option_values(how), "time_limit": how.time_limit,
        "seed": how.seed, "cancel": session.interrupts.cancel,
    }  # fmt: skip
    for words in (*_placeless(posed), *weights.warnings(posed)):
        session.warn(words)
    solution = heard(session, lambda: _shared(posed, arguments), doing="assigning")
    from cms.fleet.sharing.files import sharing_solution_to_json, write_sharing_problem

    def view() -> Page:
        from cms.fleet.report.sharing import sharing_page

        bucketing = heard(
            session, lambda: _bucketing(asked, solution, arguments), doing="pricing the bucketing"
        )
        return sharing_page(
            posed, solution, known=weights.known, bucketing=bucketing, reasons=weights.reasons,
            more=weights.parts(posed, solution),
        )  # fmt: skip

    def make() -> dict[str, Any]:
        return sharing_solution_to_json(posed, solution)

    session.show(make, view, output, picture)
    if problem is not None:
        write_sharing_problem(posed, problem)
    if assign is not None:
        _write_assigned(asked, posed, solution, assign)
    interrupted = session.interrupts.pressed or solution.stop_reason == "interrupted"
    return Exit.INTERRUPTED if interrupted else Exit.ANSWER


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the tables hold."""

    gpus: tuple[NamedGpus, ...]
    offline: tuple[OfflineClass, ...]
    weights: Weights
    margin: int
    lowest_share: int

    def problem(self, sign: int = -1) -> SharingProblem:
        """The problem with activities rounded up, or as they are if the sign is 0."""
        from cms.fleet.sharing import SharingProblem
        from cms.fleet.sharing.tables import merge, round_to

        gpus = [each.online for each in self.gpus]
        return SharingProblem(
            online=merge([round_to(each, 1, sign) for each in gpus] if sign else gpus)[0],
            offline=self.offline, weights=self.weights.function, margin=self.margin,
            lowest_share=self.lowest_share,
        )  # fmt: skip


def _read(
    online: Path, offline: Path, weights: Weights, margin: int, lowest_share: int,
    limit: str | None, waiting_scale: str | None,
) -> _Asked:  # fmt: skip
    from cms.fleet.sharing import read_named_gpus, read_offline

    factor = _number(limit, "the slowdown limit", "--slowdown-limit")
    if factor is not None and factor < 1:
        said = f"it is {limit}; expected a factor >= 1, such as 1.2"
        raise options.usage_error(said, "--slowdown-limit")
    scale = _number(waiting_scale, "the scale of waiting", "--waiting-scale")
    if scale == 0:
        said = f"it is {waiting_scale}; expected seconds > 0, such as 3600"
        raise options.usage_error(said, "--waiting-scale")
    return _Asked(
        read_named_gpus(online, slowdown_limit=factor), read_offline(offline, waiting_scale=scale),
        weights, margin, lowest_share,
    )  # fmt: skip


def _number(given: str | None, what: str, option: str) -> Fraction | None:
    from cms.errors import CmsError
    from cms.values.numbers import exact

    try:
        return None if given is None else exact(given, what)
    except CmsError as fault:
        raise options.usage_error(str(fault), option) from None


def _bucketing(asked: _Asked, solution: SharingSolution, arguments: dict[str, Any]) -> str:
    """Say what it costs that activities are rounded up; nothing where all of them are whole."""
    from cms.fleet.report.sharing import bucketing_words

    activities = {each.online.sm_activity for each in asked.gpus}
    if all(activity.denominator == 1 for activity in activities):
        return ""
    if len(asked.gpus) * len(asked.offline) > _MOST_PAIRS:
        return "price of bucketing: not worked out, with so many GPUs and workloads"
    exact = _shared(asked.problem(0), {**arguments, "method": "muxflow", "options": {}})
    return bucketing_words(solution.value, exact.upper_bound)


def _write_assigned(
    asked: _Asked, problem: SharingProblem, solution: SharingSolution, path: Path
) -> None:
    """Spread the plan over the rows of the table, and write it."""
    from cms.fleet.sharing import NamedGpus, assign, write_assignment
    from cms.fleet.sharing.tables import round_to

    rows = [NamedGpus(each.gpu, round_to(each.online, 1, -1)) for each in asked.gpus]
    write_assignment(assign(problem, solution.plan, rows), path)


def _placeless(problem: SharingProblem) -> Iterable[str]:
    """Say which workloads need more memory than any GPU has left."""
    from cms.values.words import decimal

    left = [
        gpus.memory_total_mib - gpus.memory_mib
        for gpus in problem.online
        if gpus.memory_total_mib is not None
    ]
    for work in problem.offline:
        if left and work.memory_mib > max(left):
            yield (
                f"{work.name!r} needs {decimal(work.memory_mib)} MiB, and no GPU has more than "
                f"{decimal(max(left))} MiB left: it is not placed"
            )


def _shared(problem: SharingProblem, arguments: dict[str, Any]) -> SharingSolution:
    from cms.fleet.sharing import share as solved

    return solved(problem, **arguments)
