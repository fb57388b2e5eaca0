"""``cms simulate``: whether a plan meets its latency limits when requests come."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cms.errors import CmsError
from cms.values.names import nearest

from . import options, shared_day
from .colocate import Pairs, Predictor, Problem
from .fleet_file import FleetFile, with_fleet_file
from .options import option
from .searching import counted
from .session import Exit, Session, open_document, refuse_two_readers, session_of

if TYPE_CHECKING:
    from cms.fleet.simulation import Arrivals, Simulation

_File = Annotated[
    Path,
    typer.Argument(
        metavar="plan.json",
        help="A plan, or a co-location plan (share.json); '-' is standard input.",
    ),
]


_Arrivals = Annotated[
    list[str] | None,
    option(
        "HOW", "poisson, gamma:CV2, bursts:RATIO,SHARE,SECONDS or a trace FILE.csv; with "
        "'service=' before it for one service; may be repeated; where services share instances in "
        "time, poisson or even.  [default: poisson]",
    ),
]  # fmt: skip
_Routing = Annotated[
    str | None,
    option(
        "NAME", "weighted_random, round_robin, shortest_queue, two_choices, or with equal "
        "weights: equal_random, equal_round_robin, ...  [default: weighted_random, or "
        "equal_random for a plan of equal routing]",
        autocompletion=options.offering_from("cms.fleet.simulation", "ROUTINGS"),
    ),
]  # fmt: skip
_Scale = Annotated[str, option("X", "What if: all rates times X.")]
_Seconds = Annotated[str | None, option("S", "How long each service runs.  [default: see below]")]
_Requests = Annotated[
    int | None,
    option(
        "N", "Requests of each service; with --seconds at most N, where its verdict is open.  "
        "[default: 200,000, or with events 600 seconds]",
        min=1,
    ),
]  # fmt: skip
_Events = Annotated[
    Path | None,
    option(
        "E.csv", "Columns: seconds, what (rate, fail, weight), target (chat, gpu:3, chat:2), "
        "value.",
    ),
]  # fmt: skip
_Surge = Annotated[list[str] | None, option("F@T+S", "All rates times F from second T on, for S.")]
_OnFailure = Annotated[str, option("HOW", "retry what a failure hits once, or lose it.")]

_OF_A_DAY = "activity truth pairs predictor problem"
_CYCLES = "the services of this plan share instances in time, whose duty cycles are replayed"


@with_fleet_file
def simulate(
    context: typer.Context,
    plan: _File,
    arrivals: _Arrivals = None,
    routing: _Routing = None,
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

    Exit code 0: no limit is violated, though some may be undecided; 1: one is violated, or could
    not be replayed, as of a service that counts on a measured load curve.
    """
    session = session_of(context)
    output = session.begin(output, json=json, quiet=quiet)
    session.refuse_unwritable((output, "--output"), (picture, "--picture"))
    refuse_two_readers(
        (plan, "plan.json"), (events, "--events"), (truth, "--truth"), (pairs, "--pairs"),
        (predictor, "--predictor"), (activity, "--activity"), (problem, "--problem"),
    )  # fmt: skip
    how: dict[str, Any] = {"seed": seed, "cancel": session.interrupts.cancel}
    with session.reading():
        from cms.fleet import simulation as room
        from cms.fleet.report.simulations import simulation_page
        from cms.fleet.serving import SharedServing
        from cms.fleet.serving.plan_document import plan_from_json
        from cms.fleet.simulation.events import surge_of
        from cms.fleet.simulation.run import REQUESTS

        kind, document = open_document(plan)
        is_day = kind in shared_day.KINDS
        if is_day:
            why = "it is for plans of instances; a co-location plan is simulated by the minute"
            options.refuse_others(context, f"plan output {_OF_A_DAY}", why)
            tables = truth, pairs, predictor, activity, problem
            how |= shared_day.read_day(session, kind, plan, document, *tables)
        else:
            heeded = " ".join(context.params.keys() - set(_OF_A_DAY.split()))
            why = "it is for plans of offline work beside online services (cms colocate)"
            options.refuse_others(context, heeded, why)
            replayed = plan_from_json(document)
            if replayed.solution.cost is None:
                session.warn("the plan has no schedule, so nothing can be replayed")
                return session.code_of(replayed.answer)
            how["rate"] = scale
            replay: Callable[..., Simulation]
            if isinstance(replayed.serving, SharedServing):
                why = (
                    f"{_CYCLES}, not queues; leave it out (--arrivals poisson or even, --scale, "
                    "--requests and --seed are heeded)"
                )
                options.refuse_others(context, "plan arrivals scale requests picture output", why)
                given = arrivals or ["poisson"]
                if len(given) > 1 or given[0] not in room.CYCLE_ARRIVALS:
                    said = " and ".join(repr(each) for each in given)
                    expected = " or ".join(room.CYCLE_ARRIVALS)
                    raise options.usage_error(
                        f"{said}: {_CYCLES}; expected {expected}, once and for all services",
                        "--arrivals",
                    )
                how |= {"arrivals": given[0], "requests": requests or REQUESTS}
                replay = room.replay_duty_cycles
            else:
                names = [service.name for service in replayed.serving.services]
                how |= {
                    "arrivals": _read_arrivals(session, arrivals, names),
                    "routing": routing, "seconds": seconds, "requests": requests,
                    "events": () if events is None else room.read_events(events),
                    "on_failure": on_failure, "threads": threads,
                }  # fmt: skip
                for each in surge or ():
                    try:
                        how["events"] += surge_of(each)
                    except CmsError as fault:
                        raise options.usage_error(str(fault), "--surge") from None
                replay = room.simulate
    if is_day:
        return shared_day.simulate_day(session, how, plan.name, output)
    found = counted(
        session, "requests", lambda progress: replay(replayed, **how, on_progress=progress)
    )
    for warning in found.warnings:
        session.warn(warning)
    for service in found.services:
        if service.verdict == "undecided" and not found.stopped:
            ended = found.requests is not None and service.requests < found.requests
            more = "a longer trace" if ended and found.seconds is None else "more --requests"
            session.warn(f"{service.name} is undecided: {more} would tell")
    session.show(
        lambda: room.simulation_to_json(found),
        lambda: simulation_page(found, plan.name),
        output,
        picture,
    )
    if found.stopped:
        return Exit.INTERRUPTED
    failed = any(each.verdict in ("violated", "not replayed") for each in found.services)
    return Exit.FAILED if failed else Exit.ANSWER


def _read_arrivals(session: Session, texts: list[str] | None, names: Sequence[str]) -> Arrivals:
    """Read how requests arrive, of all services or of single ones."""
    from cms.fleet.simulation import EachItsOwn, Poisson, read_trace
    from cms.fleet.simulation.events import arrivals_of

    traces = session.fleet.traces
    own: dict[str, Arrivals] = {}  # those of all services under an empty name
    for text in texts or ():
        name, equals, value = text.partition("=")
        if equals and name not in names and not Path(text).exists():
            raise options.usage_error(
                f"{text!r}: there is no service {name!r}{nearest(name, names)}; the services are "
                f"{', '.join(names)}",
                "--arrivals",
            )
        whose, value = (name, value) if equals and name in names else ("", text)
        if whose in own:
            raise options.usage_error(
                f"arrivals of {whose or 'all services'} are there twice; give them once",
                "--arrivals",
            )
        try:
            found = arrivals_of(value)
        except CmsError as fault:
            raise options.usage_error(str(fault), "--arrivals") from None
        if found is None and not value.endswith(".csv") and not Path(value).exists():
            raise options.usage_error(
                f"{text!r}: expected poisson, gamma:CV2, bursts:RATIO,SHARE,SECONDS or a file that "
                "ends in .csv, with the name of a service and '=' before it or without; even is "
                "for services that share instances in time",
                "--arrivals",
            )
        columns = traces.time_column, traces.service_column
        own[whose] = found or read_trace(value, *columns, scaled=not traces.as_recorded)
    others = own.pop("", Poisson())
    return EachItsOwn(own, others) if own else others
