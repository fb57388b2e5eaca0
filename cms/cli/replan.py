"""``cms replan``: whether to go on with what runs or to change now, for the rates ahead."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cms.errors import InvalidProblem

from . import options
from .apply import MaxParallel, Tool
from .colocation import Shared, time_sharing
from .fleet_file import FleetFile, with_fleet_file
from .fleets import Current, Force, MaxAge, read_current
from .plan import Costs, Gpus, Points, RateMargin, Rule, Services
from .rates import Asked, folder_files, refuse_stale_rates
from .searching import heard
from .session import Exit, Session, refuse_two_readers, report_error, session_of

if TYPE_CHECKING:
    from cms.fleet.deployment import Deployment
    from cms.fleet.deployment.transition import Impossible
    from cms.fleet.replanner import Compared, Planner, Rates, ReplanDecision, Scene
    from cms.fleet.report.page import Page


def _forecasts() -> Iterable[str]:
    from cms.fleet.replanner import FORECASTS

    return FORECASTS


_Rates = Annotated[
    Path | None,
    typer.Option(
        "--rates", metavar="rates.csv",
        help="Observed rates up to now: columns time, service, rate_rps; or the JSON of a "
        "Prometheus range query.",
    ),
]  # fmt: skip
_Trace = Annotated[
    Path | None,
    typer.Option(
        "--trace", metavar="TRACE.csv",
        help="Instead of --current and --rates: play policies on the end of these rates.",
    ),
]  # fmt: skip
_Forecast = Annotated[
    str,
    typer.Option(
        "--forecast", metavar="NAME",
        help="daily: the same time of earlier days, by the recent level; daily:0.9: a higher "
        "quantile of them; latest: no change.",
        autocompletion=options.offering(_forecasts),
    ),
]  # fmt: skip
_Every = Annotated[
    str,
    typer.Option("--every", metavar="TIME", help="From one moment to change plans to the next."),
]
_Play = Annotated[
    str,
    typer.Option(
        "--play", metavar="TIME", help="How much of a trace's end is played; before is history."
    ),
]
_Folder = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="DIR",
        help="The transition's folder to write, one without steps to go on; of a trace, the file "
        "of the table. '-' prints the answer as JSON.",
    ),
]  # fmt: skip


@with_fleet_file
def replan(
    context: typer.Context,
    services: Services = None,
    operating_points: Points = None,
    current: Current = None,
    rates: _Rates = None,
    trace: _Trace = None,
    fleet: FleetFile = None,
    gpu: Gpus = None,
    cost: Costs = None,
    rule: Rule = None,
    rate_margin: RateMargin = "5%",
    shared: Shared = False,
    forecast: _Forecast = "daily",
    every: _Every = "1h",
    play: _Play = "24h",
    tool: Tool = "nvidia-smi",
    max_parallel: MaxParallel = None,
    time_limit: options.TimeLimit = "60",
    max_age: MaxAge = "15min",
    output: _Folder = None,
    force: Force = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Decide to keep what runs or to change, for rates ahead.

    Nothing is remembered from one call to the next: run it as often as you like. What a change
    costs, and how far to look ahead, stands in [replan] of fleet.toml.

    Exit code 3: no plan is for the rates ahead, or no transition leads to it; 4: none was found.
    """
    session = session_of(context)
    output = session.begin(output, json=json, quiet=quiet)
    if trace is not None:
        session.refuse_unwritable((output, "--output"))
    elif output is not None:
        from cms.fleet.deployment.written_folder import refuse_folder

        refuse_folder(output, force=force)
    refuse_two_readers(
        (current, "--current"), (rates, "--rates"), (trace, "--trace"), (services, "--services"),
        (operating_points, "--operating-points"),
    )  # fmt: skip
    settings = session.fleet.replan
    if shared and (trace is None or settings.regrouped):
        raise options.usage_error(
            "it goes with --trace TRACE.csv alone, and not with regrouped: no tool is written "
            "for that prepares shares of GPUs, and every change is to the plan as it was made",
            "--time-sharing",
        )
    if shared and session.fleet.time_sharing.interference is not None:
        raise options.usage_error(
            "a trace is played without interference; leave it out", "[time_sharing] interference"
        )
    way = session.fleet.transition
    if current is not None and (way.floor != "100%" or way.floors or way.spare is not None):
        session.warn("a change keeps 100 % of every service: floors and spare are not heeded here")
    if services is None or operating_points is None:
        raise options.usage_error("give --services S.csv and --operating-points P.csv")
    if (trace is None) == (current is None) or (rates is None) != (current is None):
        raise options.usage_error(
            "give what runs and its rates (--current now.json --rates rates.csv), or --trace "
            "TRACE.csv alone"
        )
    if tool != "nvidia-smi":
        from cms.fleet.deployment.transition.folder import tool_writer

        tool_writer(tool)
        raise options.usage_error(
            f"{tool!r}: a change is planned instance by instance; expected nvidia-smi, or 'cms "
            "apply' to the plan of the hour",
            "--tool",
        )
    with session.reading():
        from cms.fleet.replanner import Terms, forecast_of, read_rates

        terms = Terms(
            options.seconds(every, "--every"), options.seconds(settings.lead, "lead"),
            options.seconds(settings.horizon, "horizon"),
            options.gpu_hours(settings.replan_cost, "replan_cost"),
            options.gpu_hours(settings.restart_cost, "restart_cost"),
            options.share(settings.hysteresis, "hysteresis"), settings.regrouped,
        )  # fmt: skip
        asked = Asked(
            services, operating_points, session.columns, gpu, rule,
            time_sharing(session, rule) if shared else None, options.costs(cost),
            options.share(rate_margin, "--rate-margin"),
            options.time_limit(time_limit), terms, forecast_of(forecast),
            session.fleet.transition.durations, max_parallel, tool,
        )  # fmt: skip
        path = trace or rates
        assert path is not None
        known = read_rates(path, session.fleet.observation.service_label or "service")
        for warning in known.warnings:
            session.warn(f"{path}: {warning}")
        for gap in known.gaps:
            session.warn(f"{path}: {gap.said(known.is_clock)}")
    if current is None:
        return _answered(session, lambda: _compare(session, known, asked, play, output))
    with session.reading():
        today = read_current(session, current, max_age)
        if output is not None:
            from cms.fleet.deployment.export import ExportOptions
            from cms.fleet.deployment.transition.folder import tool_writer

            tool_writer(tool).refuse(today, ExportOptions())
        refuse_stale_rates(path, known, max_age)
        planner = asked.planner(session, known, today)
    return _answered(session, lambda: _tick(session, today, known, planner, asked, (output, force)))


def _answered(session: Session, call: Any) -> int:
    """Call, and give what is proved impossible its exit code."""
    from cms.fleet.replanner import NoPath

    try:
        code: int = call()
    except NoPath as fault:
        report_error(fault, Exit.INFEASIBLE, as_json=session.json)
        return Exit.INFEASIBLE
    return Exit.INTERRUPTED if session.interrupts.pressed else code


def _tick(
    session: Session,
    now: Deployment,
    rates: Rates,
    planner: Planner,
    asked: Asked,
    to: tuple[Path | None, bool],
) -> int:
    from cms.fleet.deployment.transition import Impossible
    from cms.fleet.replanner import replan_decision_to_json

    found = heard(session, lambda: _decided(session, now, rates, planner, asked), doing="deciding")
    if isinstance(found, Impossible):
        return _refuse(session, found)
    answer, (output, force) = found, to

    def view() -> Page:
        from cms.fleet.report.catalogue import replan_page

        return replan_page(answer)

    session.show(lambda: replan_decision_to_json(answer), view, None)
    if output is not None:
        session.write_folder(folder_files(answer, asked), output, force=force)
    return Exit.ANSWER


def _decided(
    session: Session, now: Deployment, rates: Rates, planner: Planner, asked: Asked
) -> ReplanDecision | Impossible:
    from cms.fleet.replanner import replan as decide

    return decide(
        now, rates, planner, asked.forecast, asked.terms, durations=asked.durations,
        max_parallel=asked.max_parallel, time_limit=asked.time_limit,
        cancel=session.interrupts.cancel,
    )  # fmt: skip


def _refuse(session: Session, found: Impossible) -> int:
    """Say why what runs cannot be left as it has to be; nothing is written."""
    document = {"decision": None, "proof": found.proof.value, "reasons": list(found.reasons)}
    if session.json:
        session.print_json(lambda: document)
    elif not session.quiet:
        from cms.fleet.report.proofs import refusal_page

        what = "a change is due, and no transition was found"
        if found.proof != "none":
            what = "a change is due, and there is no transition"
        session.print_page(refusal_page(f"{what}:", found.reasons))
    return Exit.NO_SCHEDULE if found.proof == "none" else Exit.INFEASIBLE


def _compare(session: Session, trace: Rates, asked: Asked, play: str, output: Path | None) -> int:
    from cms.fleet.replanner import Scene

    with session.reading():
        planner = asked.planner(session, trace, None)
        played = options.seconds(play, "--play")
        first = trace.count - 1 - int(played / trace.step_s)
        if first < 0:
            raise InvalidProblem(
                f"the trace is {trace}, shorter than the {play} that are played; expected a longer "
                "one, or a shorter --play"
            )
        own = trace.of([each.name for each in planner.services])
        scene = Scene(own, first, planner, asked.terms)
    found = heard(session, lambda: _played(session, scene, asked), doing="playing the policies")

    def view() -> Page:
        from cms.fleet.report.catalogue import policies_page

        return policies_page(scene, found)

    def document() -> dict[str, Any]:
        return {"policies": [each.to_json() for each in found]}

    session.show(document, view, output)
    return Exit.ANSWER


def _played(session: Session, scene: Scene, asked: Asked) -> list[Compared]:
    from cms.fleet.replanner import compare, contenders

    found = []
    names = tuple(name for name in contenders(scene) if name != asked.forecast.name)
    for each in compare(scene, asked.forecast, names, durations=asked.durations):
        session.note(f"played: {each.played.policy}")
        found.append(each)
        if session.interrupts.pressed:
            break
    return found
