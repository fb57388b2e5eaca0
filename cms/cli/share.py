"""``cms share``: offline work beside online services on one GPU, for the most value."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options
from .searching import Search, heard, option_values
from .session import Exit, refuse_two_readers, refuse_unwritable, session_of
from .weights import By, Weights

if TYPE_CHECKING:
    from rich.console import RenderableType

    from cms.fleet.sharing import SharingProblem, SharingSolution

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
    int,
    typer.Option("--margin", metavar="PERCENT", min=0, max=100, help="Kept free on every GPU."),
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
_Problem = Annotated[
    Path | None,
    typer.Option("--problem", metavar="FILE", help="Also write the problem, for 'cms check'."),
]


def share(
    context: typer.Context,
    online: _Online,
    offline: _Offline,
    pairs: _Pairs = None,
    predictor: _Predictor = None,
    lower_end: _LowerEnd = False,
    profiles: _Profiles = None,
    margin: _Margin = 10,
    lowest_share: _Lowest = 5,
    slowdown_limit: _Limit = None,
    method: options.Method = "muxflow",
    option: options.MethodOptions = None,
    time_limit: options.TimeLimit = "60",
    seed: options.Seed = 0,
    problem: _Problem = None,
    output: options.Output = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Find which workload runs beside which service, with a proof that no plan is worth more."""
    session = session_of(context)
    output = session.begin(output, json=json, quiet=quiet)
    how = Search.read(method, option, time_limit, "0", seed, None, None)
    refuse_unwritable((output, "--output"), (problem, "--problem"))
    refuse_two_readers(
        (online, "--online"), (offline, "--offline"), (pairs, "--pairs"),
        (predictor, "--predictor"), (profiles, "--profiles"),
    )  # fmt: skip
    by = By(pairs, predictor, lower_end, profiles)
    by.refuse_the_rest()
    with session.interrupts.abortable():
        weights = by.weights(margin, lowest_share)
        posed = _posed(online, offline, weights, margin, lowest_share, slowdown_limit)
    arguments: dict[str, Any] = {
        "method": how.method, "options": option_values(how), "time_limit": how.time_limit,
        "seed": how.seed, "cancel": session.interrupts.cancel,
    }  # fmt: skip
    for words in (*_placeless(posed), *weights.warnings(posed)):
        session.warn(words)
    solution = heard(session, lambda: _shared(posed, arguments))
    from cms.fleet.sharing.files import sharing_solution_to_json, write_sharing_problem

    def report() -> Iterable[RenderableType]:
        from cms.fleet.report.sharing import sharing_report

        return [*sharing_report(posed, solution), *weights.report(posed, solution)]

    def make() -> dict[str, Any]:
        return sharing_solution_to_json(posed, solution)

    session.show(make, report, lambda: "", output, None)
    if problem is not None:
        write_sharing_problem(posed, problem)
    interrupted = session.interrupts.pressed or solution.stop_reason == "interrupted"
    return Exit.INTERRUPTED if interrupted else Exit.ANSWER


def _posed(
    online: Path, offline: Path, weights: Weights, margin: int, lowest_share: int, limit: str | None
) -> SharingProblem:
    from cms.errors import CmsError
    from cms.fleet.sharing import SharingProblem, read_offline, read_online
    from cms.values.numbers import exact

    try:
        factor = None if limit is None else exact(limit, "the slowdown limit")
    except CmsError as fault:
        raise options.usage_error(str(fault), "--slowdown-limit") from None
    if factor is not None and factor < 1:
        said = f"it is {limit}; expected a factor >= 1, such as 1.2"
        raise options.usage_error(said, "--slowdown-limit")
    return SharingProblem(
        online=read_online(online, slowdown_limit=factor),
        offline=read_offline(offline),
        weights=weights.function,
        margin=margin,
        lowest_share=lowest_share,
    )


def _placeless(problem: SharingProblem) -> Iterable[str]:
    """Say which workloads need more memory than any GPU has left."""
    from cms.fleet.report.words import decimal

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
