"""``cms colocate match``: offline work beside online services on one GPU, for the most value."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cms.values.numbers import shown

from . import options
from .fleet_file import FleetFile, with_fleet_file
from .searching import Search, heard, option_values
from .session import Exit, refuse_two_readers, session_of
from .weights import By, Weights

if TYPE_CHECKING:
    from cms.fleet.colocation import ColocationProblem, ColocationSolution, NamedGpus, OfflineClass
    from cms.fleet.report.page import Page

    from .settings import Colocation

_Online = Annotated[
    Path, typer.Option("--online", metavar="O.csv", help="GPUs with their online services.")
]
_Offline = Annotated[
    Path, typer.Option("--offline", metavar="F.csv", help="The workloads that want a share.")
]
Pairs = Annotated[
    Path | None,
    typer.Option("--pairs", metavar="P.csv", help="What was measured of models in pairs."),
]
Predictor = Annotated[
    Path | None,
    typer.Option(
        "--predictor", metavar="MODEL.json",
        help="In place of --pairs: what 'cms colocate train' learnt of them.",
    ),
]  # fmt: skip
_Profiles = Annotated[
    Path | None,
    typer.Option(
        "--profiles", metavar="W.csv",
        help="With --predictor: what is known of models that it was not trained on.",
    ),
]  # fmt: skip
Problem = Annotated[
    Path | None,
    typer.Option(
        "--problem", metavar="FILE",
        help="The problem that share.json is a plan of: 'colocate match' writes it.",
    ),
]  # fmt: skip
_Assign = Annotated[
    Path | None,
    typer.Option(
        "--assign", metavar="GPUS.csv",
        help="Also write which workload goes on which GPU of O.csv; who runs already stays.",
    ),
]  # fmt: skip
#: Pairs of classes up to which the price of rounding activities is worked out beside the answer.
_MOST_PAIRS = 100_000


@with_fleet_file
def match(
    context: typer.Context,
    online: _Online,
    offline: _Offline,
    pairs: Pairs = None,
    predictor: Predictor = None,
    profiles: _Profiles = None,
    fleet: FleetFile = None,
    method: options.Method = "muxflow",
    option: options.MethodOptions = None,
    time_limit: options.TimeLimit = "60",
    seed: options.Seed = 0,
    assign: _Assign = None,
    picture: options.Picture = None,
    problem: Problem = None,
    output: options.Output = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Match offline workloads to GPUs of online services.

    A proof says how much more any matching can be worth. What is kept free, and limits of
    slowdowns, stand in [colocation] of fleet.toml.
    """
    session = session_of(context)
    output = session.begin(output, json=json, quiet=quiet)
    how = Search(method, option, time_limit, seed=seed)
    read = (
        (online, "--online"), (offline, "--offline"), (pairs, "--pairs"),
        (predictor, "--predictor"), (profiles, "--profiles"),
    )  # fmt: skip
    session.refuse_unwritable(
        (output, "--output"), (problem, "--problem"), (assign, "--assign"), (picture, "--picture")
    )
    refuse_two_readers(*read)
    by = By(pairs, predictor, profiles, session.fleet.colocation)
    by.refuse_the_rest()
    with session.reading():
        weights = by.weights()
        asked = _read(online, offline, weights, session.fleet.colocation)
        posed = asked.problem()
    arguments: dict[str, Any] = {
        "method": how.method, "options": option_values(how), "time_limit": how.time_limit,
        "seed": how.seed, "cancel": session.interrupts.cancel,
    }  # fmt: skip
    for words in (*_placeless(posed), *weights.warnings(posed)):
        session.warn(words)
    solution = heard(session, lambda: _shared(posed, arguments), doing="assigning")
    from cms.fleet.colocation.files import colocation_solution_to_json, write_colocation_problem

    def view() -> Page:
        from cms.fleet.report.colocation import colocation_page

        bucketing = heard(
            session, lambda: _bucketing(asked, solution, arguments), doing="pricing the bucketing"
        )
        return colocation_page(
            posed, solution, known=weights.known, bucketing=bucketing, reasons=weights.reasons,
            more=weights.parts(posed, solution),
        )  # fmt: skip

    def make() -> dict[str, Any]:
        return colocation_solution_to_json(posed, solution)

    session.show(make, view, output, picture)
    if problem is not None:
        write_colocation_problem(posed, problem)
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

    def problem(self, sign: int = -1) -> ColocationProblem:
        """The problem with activities rounded up, or as they are if the sign is 0."""
        from cms.fleet.colocation import ColocationProblem
        from cms.fleet.colocation.tables import merge, round_to

        gpus = [each.online for each in self.gpus]
        return ColocationProblem(
            online=merge([round_to(each, 1, sign) for each in gpus] if sign else gpus)[0],
            offline=self.offline, weights=self.weights.function, margin=self.margin,
            lowest_share=self.lowest_share,
        )  # fmt: skip


def _read(online: Path, offline: Path, weights: Weights, settings: Colocation) -> _Asked:
    from cms.fleet.colocation import read_named_gpus, read_offline

    factor = settings.slowdown_limit
    if factor is not None and factor < 1:
        said = f"it is {shown(factor)}; expected a factor >= 1, such as 1.2"
        raise options.usage_error(said, "[colocation] slowdown_limit")
    return _Asked(
        read_named_gpus(online, slowdown_limit=factor),
        read_offline(offline, waiting_scale=settings.waiting_scale),
        weights, settings.margin, settings.lowest_share,
    )  # fmt: skip


def _bucketing(asked: _Asked, solution: ColocationSolution, arguments: dict[str, Any]) -> str:
    """Say what it costs that activities are rounded up; nothing where all of them are whole."""
    from cms.fleet.report.colocation import bucketing_words

    activities = {each.online.sm_activity for each in asked.gpus}
    if all(activity.denominator == 1 for activity in activities):
        return ""
    if len(asked.gpus) * len(asked.offline) > _MOST_PAIRS:
        return f"price of bucketing: not worked out for more than {_MOST_PAIRS} pairs"
    exact = _shared(asked.problem(0), {**arguments, "method": "muxflow", "options": {}})
    return bucketing_words(solution.value, exact.upper_bound)


def _write_assigned(
    asked: _Asked, problem: ColocationProblem, solution: ColocationSolution, path: Path
) -> None:
    """Spread the plan over the rows of the table, and write it."""
    from cms.fleet.colocation import NamedGpus, assign, write_assignment
    from cms.fleet.colocation.tables import round_to

    rows = [NamedGpus(each.gpu, round_to(each.online, 1, -1)) for each in asked.gpus]
    write_assignment(assign(problem, solution.plan, rows), path)


def _placeless(problem: ColocationProblem) -> Iterable[str]:
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


def _shared(problem: ColocationProblem, arguments: dict[str, Any]) -> ColocationSolution:
    from cms.fleet.colocation import colocate as solved

    return solved(problem, **arguments)
