"""``cms simulate``: whether a plan meets its latency limits when requests come."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cms.errors import CmsError
from cms.values.names import nearest

from . import duty_cycles, options, shared_day
from .colocate import Pairs, Predictor, Problem
from .documents import open_document
from .fleet_file import FleetFile, with_fleet_file
from .progress import CountProgress
from .searching import heard
from .session import Exit, Session, refuse_two_readers, session_of

if TYPE_CHECKING:
    from cms.fleet.report.page import Page
    from cms.fleet.serving import Plan
    from cms.fleet.simulation import Arrivals, Event, Simulation

    from .settings import Traces

_File = Annotated[
    Path,
    typer.Argument(
        metavar="plan.json",
        help="A plan, or a co-location plan (share.json); '-' is standard input.",
    ),
]


def _routings() -> Iterable[str]:
    from cms.fleet.simulation import ROUTINGS

    return ROUTINGS


_Arrivals = Annotated[
    list[str] | None,
    typer.Option(
        "--arrivals", metavar="HOW",
        help="poisson, gamma:CV2, bursts:RATIO,SHARE,SECONDS or a trace FILE.csv; with 'service=' "
        "before it for one service; may be repeated; where services share instances in time, "
        "poisson or even.  [default: poisson]",
    ),
]  # fmt: skip
_Routing = Annotated[
    str,
    typer.Option(
        "--routing", metavar="NAME",
        help="weighted_random, round_robin, shortest_queue, two_choices, or with equal weights: "
        "equal_random, equal_round_robin, ...",
        autocompletion=options.offering(_routings),
    ),
]  # fmt: skip
_Scale = Annotated[str, typer.Option("--scale", metavar="X", help="What if: all rates times X.")]
_Seconds = Annotated[
    str | None,
    typer.Option(
        "--seconds", metavar="S", help="How long each service runs.  [default: see below]"
    ),
]
_Requests = Annotated[
    int | None,
    typer.Option(
        "--requests", metavar="N", min=1,
        help="Requests of each service; with --seconds at most N, where its verdict "
        "is open.  [default: 200,000, or with events 600 seconds]",
    ),
]  # fmt: skip
_Events = Annotated[
    Path | None,
    typer.Option(
        "--events", metavar="E.csv",
        help="Columns: seconds, what (rate, fail, weight), target (chat, gpu:3, chat:2), value.",
    ),
]  # fmt: skip
_Surge = Annotated[
    list[str] | None,
    typer.Option("--surge", metavar="F@T+S", help="All rates times F from second T on, for S."),
]
_OnFailure = Annotated[
    str,
    typer.Option("--on-failure", metavar="HOW", help="retry what a failure hits once, or lose it."),
]


@with_fleet_file
def simulate(
    context: typer.Context,
    plan: _File,
    arrivals: _Arrivals = None,
    routing: _Routing = "weighted_random",
    scale: _Scale = "1",
    seconds: _Seconds = None,
    requests: _Requests = None,
    events: _Events = None,
    surge: _Surge = None,
    on_failure: _OnFailure = "retry",
    activity: shared_day.Activity = None,
    truth: shared_day.Truth = None,
    pairs: Pairs = None,
    predictor: Predictor = None,
    problem: Problem = None,
    fleet: FleetFile = None,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    picture: options.Picture = None,
    output: options.Output = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Replay a plan request by request against its limits.

    Of a co-location plan a day is simulated: activities change, jobs are matched anew every quarter
    of an hour, a monitor takes them away. Columns of traces, and how the day is played, stand in
    [traces] and [colocation.day] of fleet.toml.

    Exit code 0: all limits are met; 1: one is violated, or could not be replayed, as of a service
    that counts on a measured load curve.
    """
    session = session_of(context)
    output = session.begin(output, json=json, quiet=quiet)
    session.refuse_unwritable((output, "--output"), (picture, "--picture"))
    refuse_two_readers((plan, "plan.json"), (events, "--events"))
    with session.reading():
        from cms.fleet.serving import SharedServing
        from cms.fleet.serving.plan_document import plan_from_json
        from cms.fleet.simulation.run import REQUESTS

        day = None
        settings = session.fleet
        sharing = shared_day.Given(truth, pairs, predictor, activity, problem, settings.colocation)
        kind, node = open_document(plan)
        if kind in shared_day.KINDS:
            others = {
                "--arrivals": arrivals, "--routing": routing != "weighted_random",
                "--scale": scale != "1", "--seconds": seconds, "--requests": requests,
                "--events": events, "--surge": surge, "--on-failure": on_failure != "retry",
                "--threads": threads, "--picture": picture,
            }  # fmt: skip
            day = sharing.prepared(kind, plan, node, others, seed)
    if day is not None:
        return shared_day.simulate_day(session, day, plan.name, output)
    with session.reading():
        sharing.refuse_all()
        replayed = plan_from_json(node)
        if replayed.solution.cost is None:
            session.warn("the plan has no schedule, so nothing can be replayed")
            return session.code_of(replayed.answer)
        how: dict[str, Any] = {"rate": scale, "seed": seed, "cancel": session.interrupts.cancel}
        if isinstance(replayed.serving, SharedServing):
            queues = {
                "--seconds": seconds, "--events": events,
                "--surge": surge, "--threads": threads,
                "--routing": routing != "weighted_random", "--on-failure": on_failure != "retry",
            }  # fmt: skip
            how["arrivals"] = duty_cycles.arguments(arrivals, queues)
            how["requests"] = REQUESTS if requests is None else requests
        else:
            how |= {
                "arrivals": _arrivals(arrivals, settings.traces, replayed),
                "routing": routing, "seconds": seconds, "requests": requests,
                "events": _events(events, surge), "on_failure": on_failure, "threads": threads,
            }  # fmt: skip
    found = _replayed(session, replayed, how)
    for warning in found.warnings:
        session.warn(warning)
    for each in found.services:
        if each.verdict == "undecided" and not found.stopped:
            ended = found.requests is not None and each.requests < found.requests
            more = "a longer trace" if ended and found.seconds is None else "more --requests"
            session.warn(f"{each.name} is undecided: {more} would tell")

    def view() -> Page:
        from cms.fleet.report.simulations import simulation_page

        return simulation_page(found, plan.name)

    def document() -> dict[str, Any]:
        from cms.fleet.simulation import simulation_to_json

        return simulation_to_json(found)

    session.show(document, view, output, picture)
    if found.stopped:
        return Exit.INTERRUPTED
    failed = any(each.verdict in ("violated", "not replayed") for each in found.services)
    return Exit.FAILED if failed else Exit.ANSWER


def _replayed(session: Session, plan: Plan, how: dict[str, Any]) -> Simulation:
    """Simulate in a thread of its own, so that this one hears Ctrl-C also while code compiles."""
    from cms.fleet.serving import SharedServing
    from cms.fleet.simulation import replay_duty_cycles
    from cms.fleet.simulation import simulate as replay_queues

    replay = replay_duty_cycles if isinstance(plan.serving, SharedServing) else replay_queues
    progress = CountProgress(None if session.quiet else sys.stderr)
    try:
        return heard(
            session,
            lambda: replay(plan, **how, on_progress=progress),
            patient=lambda: progress.begun,
        )
    finally:
        progress.end()


def _events(path: Path | None, surges: list[str] | None) -> tuple[Event, ...]:
    from cms.fleet.simulation import read_events
    from cms.fleet.simulation.events import surge_of

    found = () if path is None else read_events(path)
    for surge in surges or ():
        try:
            found += surge_of(surge)
        except CmsError as fault:
            raise options.usage_error(str(fault), "--surge") from None
    return found


def _arrivals(texts: list[str] | None, traces: Traces, plan: Plan) -> Arrivals:
    from cms.fleet.simulation import EachItsOwn, Poisson, read_trace
    from cms.fleet.simulation.events import arrivals_of

    names = [service.name for service in plan.serving.services]
    own: dict[str, Arrivals] = {}
    others: Arrivals = Poisson()
    given: set[str | None] = set()
    for text in texts or ():
        name, equals, value = text.partition("=")
        if equals and name not in names and not Path(text).exists():
            raise options.usage_error(
                f"{text!r}: there is no service {name!r}{nearest(name, names)}; the services are "
                f"{', '.join(names)}",
                "--arrivals",
            )
        whose, value = (name, value) if equals and name in names else (None, text)
        try:
            found = arrivals_of(value)
        except CmsError as fault:
            raise options.usage_error(str(fault), "--arrivals") from None
        if found is None:
            duty_cycles.refuse_even(value)
            if not value.endswith(".csv") and not Path(value).exists():
                raise options.usage_error(
                    f"{text!r}: expected poisson, gamma:CV2, bursts:RATIO,SHARE,SECONDS or a file "
                    "that ends in .csv, with the name of a service and '=' before it or without",
                    "--arrivals",
                )
            columns = traces.time_column, traces.service_column
            found = read_trace(value, *columns, scaled=not traces.as_recorded)
        if whose in given:
            raise options.usage_error(
                f"arrivals of {whose or 'all services'} are there twice; give them once",
                "--arrivals",
            )
        given.add(whose)
        if whose is None:
            others = found
        else:
            own[whose] = found
    return EachItsOwn(own, others) if own else others
