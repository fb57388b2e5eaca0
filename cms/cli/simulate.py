"""``cms simulate`` and ``cms calibrate``: replays of plans, days of co-location, load curves."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cms.fleet
from cms.errors import CmsError, FileError
from cms.files.source import write_bytes
from cms.values.names import nearest
from cms.values.numbers import shown
from cms.values.words import count

from . import options
from .colocate import read_predicted
from .command import command
from .options import File, Text, Texts, usage_error
from .searching import counted
from .session import Exit, Session, is_pipe, open_document

if TYPE_CHECKING:
    from cms.files import Parsed
    from cms.fleet.simulation import Arrivals, Simulation
    from cms.schedule.contents import Content

#: The options of a day of co-location alone.
_OF_A_DAY = "activity truth pairs predictor problem"
_CYCLES = "the services of this plan share instances in time, whose duty cycles are replayed"


@command()
def simulate(
    session: Session,
    plan: Path,
    arrivals: Texts = None,
    routing: Text = None,
    scale: str = "1",
    seconds: Text = None,
    requests: int | None = None,
    events: File = None,
    surge: Texts = None,
    on_failure: str = "retry",
    activity: File = None,
    truth: File = None,
    pairs: File = None,
    predictor: File = None,
    problem: File = None,
    seed: int = 0,
    threads: int | None = None,
    picture: File = None,
    output: File = None,
) -> int:
    """Replay a plan request by request against its limits.

    Arrivals: poisson, gamma:CV2, bursts:RATIO,SHARE,SECONDS or a trace FILE.csv, after SERVICE= of
    one service; poisson or even where services take turns. Of a share.json a day is simulated.

    Exit code 0: no limit is violated, though some may be undecided; 1: one is violated, or could
    not be replayed, as of a service that counts on a measured load curve.
    """
    how: dict[str, Any] = {"seed": seed, "cancel": session.interrupts.cancel}
    with session.reading():
        from cms.fleet import simulation as room
        from cms.fleet.report.simulations import simulation_page
        from cms.fleet.serving import SharedServing
        from cms.fleet.serving.plan_document import plan_from_json
        from cms.fleet.simulation.events import surge_of
        from cms.fleet.simulation.run import REQUESTS

        kind, document = open_document(plan)
        is_day = kind in ("cms-colocation-problem", "cms-colocation-solution")
        if is_day:
            why = "it is for plans of instances; a co-location plan is simulated by the minute"
            options.refuse_others(session.context, f"plan output {_OF_A_DAY}", why)
            tables = truth, pairs, predictor, activity, problem
            how |= _read_day(session, kind, plan, document, tables)
        else:
            heeded = " ".join(session.context.params.keys() - set(_OF_A_DAY.split()))
            why = "it is for plans of offline work beside online services (cms colocate)"
            options.refuse_others(session.context, heeded, why)
            replayed = _realised(document) if kind == "cms-deployment" else plan_from_json(document)
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
                heeded = "plan arrivals scale requests picture output"
                options.refuse_others(session.context, heeded, why)
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
        return _simulate_day(session, how, plan.name, output)
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
    view = partial(simulation_page, found, plan.name)
    session.show(partial(room.simulation_to_json, found), view, output, picture)
    if found.stopped:
        return Exit.INTERRUPTED
    failed = any(each.verdict in ("violated", "not replayed") for each in found.services)
    return Exit.FAILED if failed else Exit.ANSWER


def _realised(document: Parsed) -> cms.fleet.Plan:
    """Return the plan of a deployment, with the instances that the deployment has."""
    from cms.fleet.deployment import FleetGpu, desired_state
    from cms.fleet.deployment.observation.sources import read_possible
    from cms.fleet.placement.gpu_group import kind_of

    found, path = read_possible(document), document.source.name
    plan = found.plan
    if plan is None:
        raise FileError(path, "this deployment says nothing of rates", expected="a placed plan")
    wanted = desired_state(plan)
    planned = {each.name: each for each in wanted.services}
    for one in found.services:
        for what in ("rate_rps", "latency_limit_ms", "late_share", "queue"):
            given = [getattr(each, what) for each in (one, planned.get(one.name, one))]
            if given[0] != given[1]:
                here, there = (shown(v) if isinstance(v, Fraction) else v or "none" for v in given)
                said = f"service {one.name!r} has {what} {here} here and {there} in its plan"
                raise FileError(path, said, expected="the same", fix="plan anew")
    # what is foreign, idle or broken, so that it cannot serve, is of no kind
    runs = [(card, kind) for card, i in found.instances() if (kind := kind_of(card, i)) is not None]
    if Counter(kind for _, kind in runs) == wanted.counts:
        return plan
    serving = plan.unshared("the simulator of queues")
    blocks = {serving.instance_of(block): block for block in serving.problem.block_index}
    contents: defaultdict[FleetGpu, Counter[tuple[str, Content]]] = defaultdict(Counter)
    for card, kind in runs:
        work, block = kind.work, blocks.get((card.gpu.key, kind.profile), "")
        if work.point not in serving.points.get((work.service, block), ()):
            what = f"{work.service} runs {work.point} on {card.name}, and its plan does not"
            raise FileError(path, what, expected="points of its plan", fix="plan anew")
        contents[card][block, work.service] += 1
    groups = []
    for card, content in contents.items():
        held = Counter(block for block, _ in content.elements())
        groups.append(cms.MachineGroup(cms.Configuration(held, card.gpu.key), content, 1))
    return replace(plan, solution=replace(plan.solution, schedule=cms.Schedule(groups)))


def _read_arrivals(session: Session, texts: list[str] | None, names: Sequence[str]) -> Arrivals:
    """Read how requests arrive, of all services or of single ones."""
    from cms.fleet.simulation import EachItsOwn, Poisson, read_trace
    from cms.fleet.simulation.events import arrivals_of

    traces = session.fleet.traces
    own: dict[str, Arrivals] = {}  # those of all services under an empty name
    for text in texts or ():
        name, equals, value = text.partition("=")
        whose, value = (name, value) if equals and name in names else ("", text)
        found, fault = None, ""
        try:
            found = arrivals_of(value)
        except CmsError as error:
            fault = str(error)
        if equals and name not in names and not Path(text).exists():
            known = f"the services are {', '.join(names)}"
            fault = f"{text!r}: there is no service {name!r}{nearest(name, names)}; {known}"
        elif whose in own:
            fault = f"arrivals of {whose or 'all services'} are there twice; give them once"
        elif not (fault or found or value.endswith(".csv") or Path(value).exists()):
            fault = (
                f"{text!r}: expected poisson, gamma:CV2, bursts:RATIO,SHARE,SECONDS or a file that "
                "ends in .csv, with the name of a service and '=' before it or without; even is "
                "for services that share instances in time"
            )
        if fault:
            raise options.usage_error(fault, "--arrivals")
        columns = traces.time_column, traces.service_column
        own[whose] = found or read_trace(value, *columns, scaled=not traces.as_recorded)
    others = own.pop("", Poisson())
    return EachItsOwn(own, others) if own else others


def _read_day(
    session: Session, kind: str, path: Path, document: Parsed, tables: tuple[Path | None, ...]
) -> dict[str, Any]:
    """Read what a day is simulated from; return the arguments of ``colocation_day``."""
    from cms.fleet.colocation import files, read_measured_pairs
    from cms.fleet.replanner import read_rates
    from cms.fleet.simulation.colocation_loop import LineWeights, Terms, Traced

    truth, pairs, predictor, activity, posed = tables
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
        what = f"{path} says who shares a GPU, and not what there is; give the problem that"
        how = "'cms colocate match --problem FILE' has written: --problem FILE"
        raise options.usage_error(f"{what} {how}")
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


def _simulate_day(session: Session, how: dict[str, Any], title: str, output: Path | None) -> int:
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


@command()
def calibrate(
    session: Session,
    operating_points: File = None,
    max_processes: int | None = None,
    late_share: str = "1%",
    requests: int = 1_000_000,
    seed: int = 0,
    output: File = None,
) -> int:
    """Simulate operating points for 'cms plan --load-curves'.

    Each is run at up to 31 rates. A latency in the table is the upper end of a 99 % interval.
    """
    share = options.share(late_share, "--late-share")
    if operating_points is None:
        raise usage_error("give the table of operating points", "P.csv")
    with session.reading():
        from cms.fleet.serving.document_parts import curves_to_json
        from cms.fleet.serving.load_curve import load_curves_text
        from cms.fleet.simulation.load_curves import load_curves, run_lengths

        measured = cms.fleet.read_operating_points(operating_points, session.columns)
        most = max_processes
        chosen = [each for each in measured if most is None or each.processes <= most]
    each = sum(run_lengths(requests))
    found = counted(
        session,
        "requests",
        lambda progress: load_curves(
            chosen, measured, late_share=share, requests=requests, seed=seed,
            on_progress=lambda done, total: progress(done * each, total * each),
            stopped=lambda: session.interrupts.pressed,
        ),
    )  # fmt: skip
    if session.interrupts.pressed:
        return Exit.INTERRUPTED
    text = load_curves_text(found)
    if session.json:
        session.print_json(lambda: {"load_curves": curves_to_json(found)})
    elif output is None or is_pipe(output):
        session.print_text(text)
    if output is not None and not is_pipe(output):
        write_bytes(text.encode(), output)
    return Exit.ANSWER
