"""``cms replan``: whether to go on with what runs or to change now, for the rates ahead."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cms.errors import FileError, InvalidProblem

from . import options
from .command import command
from .fleet_file import limit_groups, read_time_sharing
from .fleets import read_current, say_impossible
from .options import File, Text, Texts, find_gpu
from .placing import measured_gpus
from .searching import heard
from .session import Exit, Session, report_error

if TYPE_CHECKING:
    from cms.fleet import replanner as room
    from cms.fleet.deployment import Deployment
    from cms.fleet.hardware import Gpu
    from cms.fleet.serving import OperatingPoint

#: A change is planned instance by instance.
_TOOL = "nvidia-smi"


@command()
def replan(
    session: Session,
    services: File = None,
    operating_points: File = None,
    current: File = None,
    rates: File = None,
    trace: File = None,
    gpu: Texts = None,
    cost: Texts = None,
    rule: Text = None,
    rate_margin: str = "5%",
    latency_margin: str = "0",
    time_sharing: bool = False,
    forecast: str = "daily",
    every: str = "1h",
    play: str = "24h",
    time_limit: str = "60",
    max_age: str = "15min",
    output: File = None,
) -> int:
    """Decide to keep what runs or to change, for rates ahead.

    Nothing is remembered from one call to the next: run it as often as you like. What a change
    costs, and how far to look ahead, stands in [replan] of fleet.toml. -o is the transition
    for 'cms apply', one without actions to go on; of a trace, the file of the table.

    Exit code 3: no plan is for the rates ahead, or no transition leads to it; 4: none was found.
    """
    if services is None or operating_points is None:
        raise options.usage_error("give --services S.csv and --operating-points P.csv")
    if (trace is None) == (current is None) or (rates is None) != (current is None):
        raise options.usage_error(
            "give what runs and its rates (--current now.json --rates rates.csv), or --trace "
            "TRACE.csv alone"
        )
    decided = {"current", "rates", "max_age"}
    heeded = session.context.params.keys() - (decided if current is None else {"trace", "play"})
    where = "--current now.json" if current is None else "--trace TRACE.csv"
    options.refuse_others(session.context, " ".join(heeded), f"it goes with {where}")
    settings, way = session.fleet.replan, session.fleet.transition
    if time_sharing and (trace is None or settings.regrouped):
        raise options.usage_error(
            "it goes with --trace TRACE.csv alone, and not with regrouped: no tool is written "
            "for that prepares shares of GPUs, and every change is to the plan as it was made",
            "--time-sharing",
        )
    if time_sharing and session.fleet.time_sharing.interference is not None:
        raise options.usage_error(
            "a trace is played without interference; leave it out", "[time_sharing] interference"
        )
    floors = way.floor != "100%" or way.floors or way.spare is not None
    if current is not None and (floors or way.tool not in (None, _TOOL)):
        session.warn(
            f"a change is by {_TOOL} and keeps 100 % of every service: floors, spare and tool of "
            "[transition] are not heeded here; 'cms apply' to the plan of the hour heeds them"
        )
    if session.fleet.plan.routing != "weighted":
        why = "[plan] routing is equal, and cms replan plans for weighted routing alone"
        raise options.usage_error(f"{why}; give another file to --fleet, or none")
    how: dict[str, Any] = {
        "margin": options.share(rate_margin, "--rate-margin"), "costs": options.costs(cost),
        "time_limit": options.time_limit(time_limit), "cancel": session.interrupts.cancel,
        "max_processes": session.fleet.plan.max_processes,
        "latency_margin": options.share(latency_margin, "--latency-margin"),
    }  # fmt: skip
    with session.reading():
        from cms.fleet import replanner as room
        from cms.fleet.deployment.transition import Impossible, transition_to_json
        from cms.fleet.hardware.catalogue import is_called
        from cms.fleet.placement import list_available
        from cms.fleet.report.catalogue import replan_page
        from cms.fleet.serving import read_load_curves, read_operating_points, read_services

        terms = room.Terms(
            options.seconds(every, "--every"), options.seconds(settings.lead, "lead"),
            options.seconds(settings.horizon, "horizon"),
            options.gpu_hours(settings.replan_cost, "replan_cost"),
            options.gpu_hours(settings.restart_cost, "restart_cost"),
            options.share(settings.hysteresis, "hysteresis"), settings.regrouped,
        )  # fmt: skip
        if time_sharing:
            how |= read_time_sharing(session, rule)
        else:
            curves = session.read_beside(session.fleet.tables.load_curves, read_load_curves)
            how |= {"rule": rule, "load_curves": curves}
        ahead = room.forecast_of(forecast)
        path = trace or rates
        assert path is not None
        known = room.read_rates(path, session.fleet.observation.service_label or "service")
        for warning in (*known.warnings, *known.gaps):
            session.warn(f"{path}: {warning}")
        today = None
        if current is not None:
            today = read_current(session, current, max_age)
            _refuse_stale(path, known, max_age)
        asked = read_services(services, session.columns)
        points = read_operating_points(operating_points, session.columns)
        room.same_services(known, [service.name for service in asked])
        gpus = [find_gpu(key, "--gpu") for key in gpu or ()]
        gpus = gpus or _measured(today, points, operating_points)
        caps = [(name, it.max) for name, it in session.fleet.gpus.items() if it.max is not None]
        own = {one.key: [most for name, most in caps if is_called(one, name)] for one in gpus}
        limits = {key: min(each) for key, each in own.items() if each}
        available = () if today is None else list_available(today, gpus)
        how["group_limits"] = limit_groups(session.fleet, gpus, how["costs"], available)
        planner = room.Planner(asked, points, gpus, limits=limits, available=available, **how)
        if today is None:
            first = known.count - 1 - int(options.seconds(play, "--play") / known.step_s)
            if first < 0:
                what = f"the trace is {known}, shorter than the {play} that are played"
                raise InvalidProblem(f"{what}; expected a longer one, or a shorter --play")
            played = known.of([service.name for service in asked])
            scene = room.Scene(played, first, planner, terms)

    try:
        if today is None:
            return _play(session, scene, ahead, output)
        call = partial(
            room.replan, today, known, planner, ahead, terms, durations=way.durations,
            max_parallel=way.parallel, time_limit=how["time_limit"], cancel=how["cancel"],
        )  # fmt: skip
        found = heard(session, call, doing="deciding")
    except room.NoPath as fault:
        report_error(fault, Exit.INFEASIBLE, as_json=session.json)
        return Exit.INFEASIBLE
    if isinstance(found, Impossible):
        why = "no transition was found" if found.proof == "none" else "there is no transition"
        return say_impossible(session, found, {"decision": None}, f"a change is due, and {why}:")
    document = room.replan_decision_to_json(found)
    session.show(lambda: document, lambda: replan_page(found), None)
    session.write(lambda: transition_to_json(found.way.transition), output)
    return session.code()


def _measured(today: Deployment | None, points: Sequence[OperatingPoint], path: Path) -> list[Gpu]:
    """The GPUs there are that something was measured on; of a trace, the one of all points."""
    from cms.fleet.serving.measurements import only_device

    if today is None:
        return [one for one in [only_device(points)] if one is not None]
    if not (found := measured_gpus(today, points)):
        devices = ", ".join(sorted({each.device for each in points})) or "none"
        what = f"its points were measured on {devices}, and there are {', '.join(today.devices)}"
        raise FileError(path, what, expected="points of a GPU that is there")
    return found


def _refuse_stale(path: Path, rates: room.Rates, max_age: str) -> None:
    """Refuse rates that end longer ago than their step and the age allowed, or in the future."""
    most = options.duration(max_age, "--max-age")
    if most is None or not rates.is_clock:
        return
    age = datetime.now(UTC).timestamp() - float(rates.end_s)
    allowed = max(most, timedelta(seconds=float(rates.step_s))).total_seconds()
    when, expected = "ago", f"at most {allowed / 60:.0f} min"
    fix = "ask for them again, or allow more with --max-age"
    if age < 0:
        when, expected = "ahead of this machine's clock", "rates up to now"
        fix = "give every time its zone, set the clock, or allow it with --max-age"
    if abs(age) > allowed:
        minutes = f"{abs(age) / 60:.0f} min {when}"
        said = f"the last rates are of {rates.said(rates.count - 1)}, {minutes}"
        raise FileError(path, said, expected=expected, fix=fix)


def _play(session: Session, scene: room.Scene, ahead: room.Forecast, output: Path | None) -> int:
    from cms.fleet import replanner as room
    from cms.fleet.report.catalogue import policies_page

    found: list[room.Compared] = []

    def played() -> None:
        names = tuple(name for name in room.contenders(scene) if name != ahead.name)
        durations = session.fleet.transition.durations
        for each in room.compare(scene, ahead, names, durations=durations):
            session.note(f"played: {each.played.policy}")
            found.append(each)
            if session.interrupts.pressed:
                break

    heard(session, played, doing="playing the policies")
    document = {"policies": [each.to_json() for each in found]}
    session.show(lambda: document, lambda: policies_page(scene, found), output)
    return session.code()
