"""``cms colocate``: offline work beside online services on one GPU, and the predictor of both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from math import isinf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import options
from .command import command
from .options import File, Texts
from .searching import Search, heard, option_values
from .session import Exit, Session, is_pipe

if TYPE_CHECKING:
    from cms.fleet import colocation as room

#: Pairs of classes up to which the price of rounding activities is worked out beside the answer.
_MOST_PAIRS = 100_000


@command()
def match(
    session: Session,
    online: Path,
    offline: Path,
    pairs: File = None,
    predictor: File = None,
    profiles: File = None,
    method: str = "muxflow",
    option: Texts = None,
    time_limit: str = "60",
    seed: int = 0,
    assign: File = None,
    picture: File = None,
    problem: File = None,
    output: File = None,
) -> int:
    """Match offline workloads to GPUs of online services.

    A proof says how much more any matching can be worth. What is kept free, and limits of
    slowdowns, stand in [colocation] of fleet.toml.
    """
    how = Search(method, option, time_limit, seed=seed)
    settings = session.fleet.colocation
    if (pairs is None) == (predictor is None):
        given = ": none is given" if pairs is None else " are both given"
        raise options.usage_error(
            f"--pairs and --predictor{given}; expected one of them: a table of measured pairs, or "
            "a trained predictor"
        )
    if predictor is None and profiles is not None:
        raise options.usage_error("it goes with --predictor", "--profiles")
    with session.reading():
        from cms.fleet import colocation as room
        from cms.fleet.colocation.files import colocation_solution_to_json
        from cms.fleet.colocation.tables import merge, round_to
        from cms.fleet.report.catalogue import predicted_parts
        from cms.fleet.report.colocation import colocation_page, format_bucketing
        from cms.fleet.report.page import Page

        shares: dict[str, Any] = {"margin": settings.margin, "lowest_share": settings.lowest_share}
        measured = () if pairs is None else room.read_measured_pairs(pairs)
        weights: room.TableWeights | room.PredictedWeights = room.table_weights(measured, **shares)
        if predictor is not None:
            weights = read_predicted(session, predictor, profiles, **shares)
        gpus = room.read_named_gpus(online, slowdown_limit=settings.slowdown_limit)
        work = room.read_offline(offline, waiting_scale=settings.waiting_scale)
        rounded = [room.NamedGpus(each.gpu, round_to(each.online, 1, -1)) for each in gpus]

        def pose(gpus: Iterable[room.NamedGpus]) -> room.ColocationProblem:
            online = merge([each.online for each in gpus])[0]
            return room.ColocationProblem(online=online, offline=work, weights=weights, **shares)

        posed = pose(rounded)
    arguments: dict[str, Any] = {
        "method": how.method, "options": option_values(how), "time_limit": how.time_limit,
        "seed": how.seed, "cancel": session.interrupts.cancel,
    }  # fmt: skip
    for words in _warnings(posed, weights, measured):
        session.warn(words)
    solution = heard(session, lambda: room.colocate(posed, **arguments), doing="assigning")

    def price() -> str:
        """Say what it costs that activities are rounded up; nothing where all of them are whole."""
        if all(each.online.sm_activity.denominator == 1 for each in gpus):
            return ""
        if len(gpus) * len(work) > _MOST_PAIRS:
            return f"price of bucketing: not worked out for more than {_MOST_PAIRS} pairs"
        exact = room.colocate(pose(gpus), **arguments | {"method": "muxflow", "options": {}})
        return format_bucketing(solution.value, exact.upper_bound)

    def view() -> Page:
        told: dict[str, Any] = {"reasons": weights}
        if isinstance(weights, room.PredictedWeights):
            told["more"] = predicted_parts(posed, solution, weights)
        else:
            told["known"] = weights
        told["bucketing"] = heard(session, price, doing="pricing the bucketing")
        return colocation_page(posed, solution, **told)

    session.show(lambda: colocation_solution_to_json(posed, solution), view, output, picture)
    if problem is not None:
        room.write_colocation_problem(posed, problem)
    if assign is not None:
        room.write_assignment(room.assign(posed, solution.plan, rounded), assign)
    interrupted = session.interrupts.pressed or solution.stop_reason == "interrupted"
    return Exit.INTERRUPTED if interrupted else Exit.ANSWER


def read_predicted(
    session: Session, predictor: Path, profiles: Path | None, margin: int, lowest_share: int
) -> room.PredictedWeights:
    """Read a predictor; weights go by it, and by the settings."""
    from cms.fleet import colocation as room
    from cms.fleet.colocation.predictor.predictor import LIMITS_BY

    more = None if profiles is None else room.read_profiles(profiles)
    settings = session.fleet.colocation
    return room.PredictedWeights(
        room.read_predictor(predictor), margin=margin, lowest_share=lowest_share,
        lower_end=settings.lower_end, profiles=more, limit_by=settings.limit_by or LIMITS_BY[0],
    )  # fmt: skip


def _warnings(
    problem: room.ColocationProblem,
    weights: room.TableWeights | room.PredictedWeights,
    measured: Sequence[room.MeasuredPair],
) -> Iterator[str]:
    """Say which workloads fit nowhere, which shares are not known, and which limits not kept."""
    from cms.fleet import colocation as room
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
    if isinstance(weights, room.PredictedWeights):
        least, most = weights.predictor.shares
        given = [share for share in problem.shares if share and not least <= share <= most]
        if given:
            trained = f"{least} %" if least == most else f"{least} to {most} %"
            yield (
                f"the predictor was trained on shares of {trained}, and GPUs have {min(given)} to "
                f"{max(given)} % left: what another share costs it cannot know"
            )
    limits = {
        (gpus.model, gpus.device, gpus.slowdown_limit): gpus
        for gpus, share in zip(problem.online, problem.shares, strict=True)
        if share and gpus.slowdown_limit is not None
    }
    for (model, device, limit), gpus in limits.items():
        ends: Sequence[float | Fraction]
        if isinstance(weights, room.PredictedWeights):
            ends = [weights.compared(weights.pair(gpus, work)) for work in problem.offline]
            of = "upper end of a predicted" if weights.limit_by == "upper" else "expected"
            what = f"least {of} slowdown"
        else:
            own = (each for each in measured if (each.online_model, each.device) == (model, device))
            ends, what = [each.online_slowdown for each in own], "least slowdown measured"
        if ends and (end := min(ends)) > limit:
            said = "any" if isinf(end) else f"{end:.2f}" if isinstance(end, float) else decimal(end)
            yield (
                f"the slowdown limit of {model!r} on {device!r} is {decimal(limit)}, and the "
                f"{what} is {said}: nothing is placed there"
            )


# -- the predictor ---------------------------------------------------------------------------------


@command(settings=False)
def train(
    session: Session,
    pairs: Path,
    profiles: File = None,
    probe: Texts = None,
    model: str = "boosting",
    seed: int = 0,
    output: File = None,
    write_profiles: File = None,
) -> int:
    """Train a predictor of how workloads slow each other.

    It says how well the predictor does on pairs that it never saw.

    Pairs are held out in five parts, and models by families (column family of W.csv) or one by one.
    """
    if write_profiles is not None and not probe:
        raise options.usage_error("it goes with --probe", "--write-profiles")
    with session.reading("reading and fitting"):
        from cms.fleet import colocation as room
        from cms.fleet.colocation.predictor import evaluate, train_predictor
        from cms.fleet.colocation.predictor.files import predictor_to_json
        from cms.fleet.report.catalogue import trained_page

        known = room.Profiles({}) if profiles is None else room.read_profiles(profiles)
        measured = room.read_measured_pairs(pairs)
        if probe:
            known, measured = room.probed(known, measured, probe)
        how: dict[str, Any] = {"model": model, "seed": seed}
        report = heard(session, lambda: evaluate(measured, known, **how))
        trained = heard(session, lambda: train_predictor(measured, known, **how))

    document = options.attributes(report, "model seed") | {
        "level": trained.level, "features": len(trained.features),
        "splits": [split._asdict() for split in report.splits],
    }  # fmt: skip
    if is_pipe(output):
        session.print_json(lambda: predictor_to_json(trained))
    else:
        session.show(lambda: document, lambda: trained_page(report, trained), None)
        session.write(lambda: predictor_to_json(trained), output)
    if write_profiles is not None:
        room.write_profiles(known, write_profiles)
    return Exit.ANSWER
