"""``cms reconcile``: whether to go on with what runs or to change now, for the rates ahead."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cms.errors import CmsError, InvalidProblem

from . import options, sharing
from .catalogue import gpu_keys
from .fleets import Force, MaxAge, read_fleet, refuse_stale_now
from .rates import Asked, folder_files, gpu_hours, refuse_stale_rates, seconds
from .searching import heard
from .session import Exit, Session, refuse_two_readers, report_error, session_of
from .transition import DurationsFile, MaxParallel

if TYPE_CHECKING:
    from cms.fleet.deployment import Deployment
    from cms.fleet.deployment.transition import Impossible
    from cms.fleet.reconciling import Compared, Planner, Rates, Scene, Tick
    from cms.fleet.report.page import Page


def _forecasts() -> Iterable[str]:
    from cms.fleet.reconciling import FORECASTS

    return FORECASTS


def _rules() -> Iterable[str]:
    from cms.fleet.serving import RULES

    return RULES


_Now = Annotated[
    Path | None,
    typer.Argument(
        metavar="NOW", help="What runs (cms observe); '-' is standard input. Not with --trace."
    ),
]
_Rates = Annotated[
    Path | None,
    typer.Option(
        "--rates", metavar="rates.csv",
        help="Observed rates, now's the last: columns time, service, rate_rps; or the JSON of a "
        "Prometheus range query.",
    ),
]  # fmt: skip
_Trace = Annotated[
    Path | None,
    typer.Option(
        "--trace", metavar="TRACE.csv",
        help="Instead of NOW and --rates: play policies on the end of these rates, and compare.",
    ),
]  # fmt: skip
_Services = Annotated[
    Path | None,
    typer.Option(
        "--services", "-s", metavar="S.csv", help="As for cms plan; its rates count for nothing."
    ),
]
_Points = Annotated[
    Path | None,
    typer.Option("--operating-points", "-p", metavar="P.csv", help="As for cms plan."),
]
_Gpus = Annotated[
    list[str] | None,
    typer.Option(
        "--gpu", "-g", metavar="KEY",
        help="What may be planned with; may be repeated.  [default: what NOW has and points were "
        "measured on; of a trace, what all points were measured on]",
        autocompletion=options.offering(gpu_keys),
    ),
]  # fmt: skip
_Rule = Annotated[
    str | None,
    typer.Option(
        "--rule", metavar="NAME",
        help="What an instance counts for; see cms plan.  [default: capacity; with --sharing, "
        "round_robin]",
        autocompletion=options.offering(_rules),
    ),
]  # fmt: skip
_Costs = Annotated[
    list[str] | None,
    typer.Option(
        "--cost", metavar="KEY=C", help="What one GPU costs (default 1); may be repeated."
    ),
]
_Actuator = Annotated[
    str, typer.Option("--actuator", metavar="TOOL", help="What cuts the GPUs: nvidia-smi.")
]
_Label = Annotated[
    str,
    typer.Option(
        "--service-label", metavar="LABEL", help="Of a Prometheus series, what names its service."
    ),
]
_Forecast = Annotated[
    str,
    typer.Option(
        "--forecast", metavar="NAME",
        help="daily: the same time of earlier days, by the recent level; daily:0.9: a higher "
        "quantile of them; latest: no change.",
        autocompletion=options.offering(_forecasts),
    ),
]  # fmt: skip
_Horizon = Annotated[
    str, typer.Option("--horizon", metavar="TIME", help="How far to look ahead: 4h.")
]
_Every = Annotated[
    str,
    typer.Option("--every", metavar="TIME", help="From one moment to change plans to the next."),
]
_Lead = Annotated[
    str,
    typer.Option(
        "--lead", metavar="TIME", help="What a change may take: plans have room for so much longer."
    ),
]
_Margin = Annotated[
    str, typer.Option("--margin", metavar="SHARE", help="Plan for rates that are so much higher.")
]
_ReplanCost = Annotated[
    str, typer.Option("--replan-cost", metavar="HOURS", help="GPU hours that a change is worth.")
]
_RestartCost = Annotated[
    str,
    typer.Option("--restart-cost", metavar="HOURS", help="GPU hours that a start is worth."),
]
_Hysteresis = Annotated[
    str,
    typer.Option(
        "--hysteresis", metavar="SHARE", help="Going on may cost so much more than changing."
    ),
]
_Play = Annotated[
    str,
    typer.Option(
        "--play", metavar="TIME", help="How much of a trace's end is played; before is history."
    ),
]
_TimeLimit = Annotated[
    str,
    typer.Option(
        "--time-limit", metavar="SECONDS", help="Of each plan, and of the way; 'none' for no limit."
    ),
]
_Regrouped = Annotated[
    bool,
    typer.Option(
        "--regrouped",
        help="Change to the plan as it was made, not to the one on as few GPUs that keeps most.",
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


def reconcile(
    context: typer.Context,
    now: _Now = None,
    rates: _Rates = None,
    trace: _Trace = None,
    services: _Services = None,
    operating_points: _Points = None,
    gpu: _Gpus = None,
    rule: _Rule = None,
    cost: _Costs = None,
    service_label: _Label = "service",
    forecast: _Forecast = "daily",
    horizon: _Horizon = "4h",
    every: _Every = "1h",
    lead: _Lead = "30min",
    margin: _Margin = "5%",
    replan_cost: _ReplanCost = "4",
    restart_cost: _RestartCost = "0.05",
    hysteresis: _Hysteresis = "2%",
    play: _Play = "24h",
    regrouped: _Regrouped = False,
    shared: sharing.Kind = None,
    max_services: sharing.MaxServices = None,
    splits: sharing.Splits = None,
    headroom: sharing.Headroom = None,
    batching_overheads: sharing.Overheads = None,
    actuator: _Actuator = "nvidia-smi",
    durations: DurationsFile = None,
    max_parallel: MaxParallel = None,
    time_limit: _TimeLimit = "60",
    max_age: MaxAge = "15min",
    output: _Folder = None,
    force: Force = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Decide to keep what runs or to change, for rates ahead.

    Nothing is remembered from one call to the next: run it as often as you like.
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
        (now, "NOW"), (rates, "--rates"), (trace, "--trace"), (services, "--services"),
        (operating_points, "--operating-points"), (durations, "--durations"),
        (batching_overheads, "--batching-overheads"),
    )  # fmt: skip
    how = sharing.Sharing(shared, max_services, splits, headroom, batching_overheads)
    how.refuse_the_rest(None, None)
    if shared is not None and (trace is None or regrouped):
        raise options.usage_error(
            "it goes with --trace TRACE.csv alone, and not with --regrouped: no tool is written "
            "for that prepares shares of GPUs, and every change is to the plan as it was made",
            "--sharing",
        )
    if services is None or operating_points is None:
        raise options.usage_error("give --services S.csv and --operating-points P.csv")
    if (trace is None) == (now is None) or (rates is None) != (now is None):
        raise options.usage_error(
            "give what runs and its rates (cms reconcile now.json --rates rates.csv), or --trace "
            "TRACE.csv alone"
        )
    if actuator != "nvidia-smi":
        from cms.fleet.deployment.transition.folder import actuator_of

        actuator_of(actuator)
        raise options.usage_error(
            f"{actuator!r}: a tick is planned instance by instance; expected nvidia-smi, or cms "
            "transition to the plan of the hour",
            "--actuator",
        )
    with session.reading():
        from cms.fleet.deployment.transition import read_durations
        from cms.fleet.reconciling import Terms, forecast_of, read_rates

        terms = Terms(
            seconds(every, "--every"), seconds(lead, "--lead"), seconds(horizon, "--horizon"),
            gpu_hours(replan_cost, "--replan-cost"),
            gpu_hours(restart_cost, "--restart-cost"),
            options.share(hysteresis, "--hysteresis"), regrouped,
        )  # fmt: skip
        asked = Asked(
            services, operating_points, gpu, rule, how, options.costs(cost),
            options.share(margin, "--margin"), options.time_limit(time_limit), terms,
            forecast_of(forecast), None if durations is None else read_durations(durations),
            max_parallel, actuator,
        )  # fmt: skip
        path = trace or rates
        assert path is not None
        known = read_rates(path, service_label)
        for warning in known.warnings:
            session.warn(f"{path}: {warning}")
        for gap in known.gaps:
            session.warn(f"{path}: {gap.said(known.is_clock)}")
    if now is None:
        return _answered(session, lambda: _compare(session, known, asked, play, output))
    with session.reading():
        today = read_fleet(now)
        refuse_stale_now(session, today, max_age)
        if output is not None:
            from cms.fleet.deployment.export import ExportOptions
            from cms.fleet.deployment.transition.folder import actuator_of

            actuator_of(actuator).refuse(today, ExportOptions())
        refuse_stale_rates(path, known, max_age)
        planner = asked.planner(session, known, today)
    return _answered(session, lambda: _tick(session, today, known, planner, asked, (output, force)))


def _answered(session: Session, call: Any) -> int:
    """Call, and give what is nobody's fault its exit code."""
    from cms.fleet.reconciling import NoPath

    try:
        code: int = call()
    except NoPath as fault:
        report_error(fault, Exit.INFEASIBLE, as_json=session.json)
        return Exit.INFEASIBLE
    except CmsError as fault:
        if type(fault) is not CmsError or session.interrupts.pressed:
            raise
        report_error(fault, Exit.NO_SCHEDULE, as_json=session.json)  # time was up
        return Exit.NO_SCHEDULE
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
    from cms.fleet.reconciling import tick_to_json

    found = heard(session, lambda: _decided(session, now, rates, planner, asked), doing="deciding")
    if isinstance(found, Impossible):
        return _refuse(session, found)
    tick, (output, force) = found, to

    def view() -> Page:
        from cms.fleet.report.catalogue import tick_page

        return tick_page(tick)

    session.show(lambda: tick_to_json(tick), view, None)
    if output is not None:
        session.write_folder(folder_files(tick, asked), output, force=force)
    return Exit.ANSWER


def _decided(
    session: Session, now: Deployment, rates: Rates, planner: Planner, asked: Asked
) -> Tick | Impossible:
    from cms.fleet.reconciling import reconcile as decide

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
    from cms.fleet.reconciling import Scene

    with session.reading():
        planner = asked.planner(session, trace, None)
        played = seconds(play, "--play")
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
    from cms.fleet.reconciling import compare, contenders

    found = []
    names = tuple(name for name in contenders(scene) if name != asked.forecast.name)
    for each in compare(scene, asked.forecast, names, durations=asked.durations):
        session.note(f"played: {each.played.policy}")
        found.append(each)
        if session.interrupts.pressed:
            break
    return found
