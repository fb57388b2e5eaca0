"""``cms plan``: from services and operating points to GPUs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cms.values.names import nearest
from cms.values.numbers import shown

from . import options, placing
from .catalogue import find_gpu, gpu_keys
from .colocation import Shared, slowdowns, time_sharing
from .fleet_file import FleetFile, with_fleet_file
from .fleets import Current, MaxAge
from .published import load_published, names_of
from .searching import Search, bounded_beside, lacking, search, spread
from .session import Session, refuse_two_readers, session_of

if TYPE_CHECKING:
    from cms.fleet.hardware import Gpu
    from cms.fleet.report.page import Page
    from cms.fleet.serving import LoadCurve, OperatingPoint, QueueingRule, Service
    from cms.fleet.serving.load_curve import PointKey
    from cms.fleet.serving.posing import AnyServing


@dataclass(frozen=True, slots=True)
class _Wishes:
    """The options about GPUs and operating points; what is not given is None or empty."""

    session: Session
    gpus: list[str] | None
    rule: str | None
    max_processes: int | None
    limits: dict[str, int]
    costs: dict[str, Fraction]
    load_curves: Path | None
    rate_margin: Fraction
    shares: bool
    scales: options.Scales
    drop: list[str]
    columns: dict[str, str]

    def what_if(self, services: Iterable[Service]) -> tuple[Service, ...]:
        """Return the services at the rates that are asked about, without those left out."""
        from cms.fleet.what_if.services import changed_services

        given = tuple(services)
        every = {one.name: self.scales.every for one in given if one.name not in self.drop}
        return changed_services(given, scale={**every, **self.scales.own}, drop=self.drop)

    @property
    def said(self) -> str:
        """What is asked about, for the title; nothing if that is nothing."""
        parts = [] if self.scales.every == 1 else [f"all rates x {shown(self.scales.every)}"]
        parts += [f"{name} x {shown(times)}" for name, times in self.scales.own.items()]
        parts += [f"without {name}" for name in dict.fromkeys(self.drop)]
        return f" (what if: {', '.join(parts)})" if parts else ""

    def problem(
        self,
        services: Iterable[Service],
        operating_points: Iterable[OperatingPoint],
        gpus: Iterable[str | Gpu],
        rule: str | QueueingRule,
        max_processes: int | None = None,
        load_curves: Mapping[PointKey, LoadCurve] | None = None,
    ) -> AnyServing:
        """Build the problem. Options and settings override what a scenario says itself."""
        from cms.fleet.serving import build_problem, read_load_curves

        if self.load_curves is not None:
            load_curves = read_load_curves(self.load_curves)
        how: dict[str, Any] = {
            "rate_margin": self.rate_margin, "limits": self.limits, "costs": self.costs,
            "max_processes": self.max_processes or max_processes,
        }  # fmt: skip
        given = services, operating_points, self.fleet(gpus)
        if not self.shares:
            return build_problem(*given, rule=self.rule or rule, load_curves=load_curves, **how)
        terms = time_sharing(self.session, self.rule)
        beside, said = slowdowns(self.session)
        how |= beside | {"splits": terms.splits, "headroom": terms.headroom}
        shared: AnyServing = build_problem(
            *given, sharing="time", rule=terms.rule, max_services=terms.max_services, **how
        )
        return replace(shared, warnings=(*shared.warnings, *said))

    def fleet(self, default: Iterable[str | Gpu]) -> list[Gpu]:
        """The GPUs, looked up or read from the user's own device files."""
        from cms.fleet.hardware.catalogue import is_called

        found = [
            find_gpu(gpu, "--gpu") if isinstance(gpu, str) else gpu for gpu in self.gpus or default
        ]
        for option, given in (("--max-gpus", self.limits), ("--cost", self.costs)):
            for name in given:
                if not any(is_called(gpu, name) for gpu in found):
                    keys = [gpu.key for gpu in found]
                    raise options.usage_error(
                        f"{name!r} is no GPU of this plan{nearest(name, keys)}; expected one of "
                        f"{', '.join(keys)}",
                        option,
                    )
        return found


Services = Annotated[
    Path | None,
    typer.Option(
        "--services",
        "-s",
        metavar="S.csv",
        help="Columns: service, model, rate_rps and, if there are limits, latency_limit_ms.",
    ),
]
Points = Annotated[
    Path | None,
    typer.Option(
        "--operating-points", "-p", metavar="P.csv",
        help="Columns: model, device, profile, processes, batch, throughput_rps, latency_ms.",
    ),
]  # fmt: skip


def _scenarios() -> Iterable[str]:
    from cms.fleet.serving import Scenario

    return names_of(Scenario)


def _rules() -> Iterable[str]:
    from cms.fleet.serving import RULES

    return RULES


Published = Annotated[
    str | None,
    typer.Option(
        "--published", metavar="NAME", help="A published scenario, with its own rule: S1 to S6.",
        autocompletion=options.offering(_scenarios),
    ),
]  # fmt: skip
_Plan = Annotated[
    Path | None,
    typer.Argument(metavar="plan.json", help="A plan that is to be placed as it is."),
]
Gpus = Annotated[
    list[str] | None,
    typer.Option(
        "--gpu", "-g", metavar="KEY",
        help="A GPU of 'cms gpus' or your own device file; may be repeated.  [default: the one "
        "that all points were measured on]",
        autocompletion=options.offering(gpu_keys),
    ),
]  # fmt: skip
Rule = Annotated[
    str | None,
    typer.Option(
        "--rule", metavar="NAME",
        help="What an instance counts for: capacity (the rate it sustains within the limit), "
        "capacity_certified; or if a batch keeps a share of the limit: parvagpu (< 0.45 x), half, "
        "plain. With --time-sharing, others.  [default: capacity]",
        autocompletion=options.offering(_rules),
    ),
]  # fmt: skip
LoadCurves = Annotated[
    Path | None,
    typer.Option(
        "--load-curves", metavar="C.csv",
        help="Latencies of the operating points at several rates; they go before the table of the "
        "rule capacity.",
    ),
]  # fmt: skip
RateMargin = Annotated[
    str,
    typer.Option("--rate-margin", metavar="SHARE", help="Plan for higher rates: 10%, or 0.1."),
]
_Balance = Annotated[
    bool | None,
    typer.Option(
        "--balance/--no-balance",
        help="Spend the GPUs' slack on letting all rates grow alike, under a rule that keeps "
        "limits at the planned rates; not with --current, which keeps what runs.  [default: "
        "balance]",
    ),
]  # fmt: skip
_Scale = Annotated[
    list[str] | None,
    typer.Option(
        "--scale", metavar="[SERVICE=]X",
        help="What if: all rates times X, or the rate of one service times its own; repeatable.",
    ),
]  # fmt: skip
_Drop = Annotated[
    list[str] | None,
    typer.Option("--drop", metavar="SERVICE", help="What if: without it; may be repeated."),
]
_MaxGpus = Annotated[
    list[str] | None,
    typer.Option(
        "--max-gpus", metavar="KEY=N", help="How many there are of a GPU; may be repeated."
    ),
]
MaxProcesses = Annotated[
    int | None,
    typer.Option("--max-processes", metavar="N", min=1, help="At most N processes in an instance."),
]
Costs = Annotated[
    list[str] | None,
    typer.Option(
        "--cost", metavar="KEY=C", help="What one GPU costs (default 1); may be repeated."
    ),
]


@with_fleet_file
def plan(
    context: typer.Context,
    plan: _Plan = None,
    services: Services = None,
    operating_points: Points = None,
    map: options.Map = None,
    published: Published = None,
    fleet: FleetFile = None,
    gpu: Gpus = None,
    max_gpus: _MaxGpus = None,
    cost: Costs = None,
    rule: Rule = None,
    load_curves: LoadCurves = None,
    rate_margin: RateMargin = "0",
    max_processes: MaxProcesses = None,
    shared: Shared = False,
    balance: _Balance = None,
    scale: _Scale = None,
    drop: _Drop = None,
    nodes: placing.Nodes = None,
    current: Current = None,
    extra_gpus: placing.ExtraGpus = None,
    compact: placing.Compact = False,
    max_restarts: placing.MaxRestarts = None,
    free: placing.Free = "gpus",
    max_age: MaxAge = "15min",
    method: options.Method = "auto",
    option: options.MethodOptions = None,
    time_limit: options.TimeLimit = "60",
    gap: options.Gap = "0",
    seed: options.Seed = 0,
    threads: options.Threads = None,
    start: options.Start = None,
    picture: options.Picture = None,
    output: options.Output = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Plan the fewest GPUs for services, with a proved bound.

    Give the two tables, or --published NAME. With --nodes the plan is placed on these GPUs; with
    --current it is, of all plans on as few GPUs, the one that keeps most of what runs.
    """
    session = session_of(context)
    output = session.begin(output, json=json, quiet=quiet)
    if shared and "load_curves" not in options.given_options(context):
        load_curves = None  # of fleet.toml: for instances that serve one service each
    how = Search.read(method, option, time_limit, gap, seed, threads, start)
    wishes = _Wishes(
        session, gpu, rule, max_processes, options.limits(max_gpus), options.costs(cost),
        load_curves, options.share(rate_margin, "--rate-margin"), shared, options.scales(scale),
        drop or [], options.columns(map),
    )  # fmt: skip
    session.refuse_unwritable((output, "--output"), (picture, "--picture"))
    refuse_two_readers(
        (plan, "plan.json"), (services, "--services"), (operating_points, "--operating-points"),
        (load_curves, "--load-curves"), (start, "--start"), (current, "--current"),
        (nodes, "--nodes"),
    )  # fmt: skip
    _refuse_opposites(context, plan, published, shared=shared)
    to, title = (output, picture), ""
    with session.reading():
        there = placing.read_gpus_there(session, nodes, current, gpu, max_age)
        if (plan is not None or compact) and there is None:
            raise options.usage_error("give --nodes nodes.csv, --current now.json, or both")
        made = None
        if plan is not None:
            from cms.fleet.serving import read_plan

            made = read_plan(plan)
        elif published is not None:
            title, serving = _scenario(published, wishes)
        elif not compact:
            title, serving = _from_files(services, operating_points, wishes)
            for warning in serving.warnings:
                session.warn(warning)
    if compact and current is not None:
        assert there is not None
        seconds = _placing_time(context, how)
        return placing.compact_fleet(session, there, max_restarts, free, seconds, current.name, to)
    if made is not None and plan is not None:
        assert there is not None
        return placing.place_plan(session, made, there, plan.name, _placing_time(context, how), to)
    solution = search(
        session, serving.problem, how, counted="GPUs", report="cms.fleet.report.plans"
    )
    from cms.fleet.serving import NeighbourServing, Plan, ServingProblem, plan_to_json
    from cms.simplification.simplify import simplify_schedule

    outer = None
    if isinstance(serving, NeighbourServing):
        outer = bounded_beside(session, serving, solution, how)
    if there is not None and solution.cost is None:
        session.warn("the plan has no schedule, so nothing can be placed")
        to = None, None
    elif there is not None and current is not None:
        near = {"extra_gpus": extra_gpus or 0, "time_limit": how.time_limit, "seed": seed}
        return placing.plan_nearest(session, there, Plan(serving, solution), title, near, to)
    wanted = session.json or not quiet or to != (None, None)
    short_of = lacking(session, serving.problem, solution, how) if wanted else None
    grown = None
    wished = wanted and balance is not False
    if wished and isinstance(serving, ServingProblem) and serving.promise is not None:
        solution, grown = spread(session, serving.problem, solution, how)
    if wanted and not isinstance(serving, NeighbourServing):  # there it matters what is beside what
        solution = simplify_schedule(serving.problem, solution)
    made = Plan(serving, solution, outer)
    if there is not None and solution.cost is not None:
        return placing.place_plan(session, made, there, title, _placing_time(context, how), to)

    def view() -> Page:
        from cms.fleet.report.plans import plan_page

        return plan_page(made, title, shortage=short_of, growth=grown)

    session.show(lambda: plan_to_json(made, short_of), view, *to)
    return session.code_of(made.answer)


def _placing_time(context: typer.Context, how: Search) -> float | None:
    """Return the time that placing may take: as long as it takes, unless a limit is given."""
    source = context.get_parameter_source("time_limit")
    return None if source is None or source.name == "DEFAULT" else how.time_limit


def _refuse_opposites(
    context: typer.Context, plan: Path | None, published: str | None, *, shared: bool
) -> None:
    """Refuse options that do not go together."""
    given = options.given_options(context)
    inputs = {"services", "operating_points"} & given
    if published is not None and inputs:
        raise options.usage_error("give --published or the two files, not both")
    placing_only = "nodes current gpu max_age time_limit picture output"
    if plan is not None:
        why = f"{plan} is placed as it is; leave it out to plan anew"
        options.refuse_others(context, f"plan {placing_only}", why)
    if context.params["compact"]:
        why = "--compact plans nothing new; leave one of them out"
        options.refuse_others(context, f"compact max_restarts free {placing_only}", why)
    for name, other in (
        ("extra_gpus", "current"), ("compact", "current"), ("max_restarts", "compact"),
        ("free", "compact"),
    ):  # fmt: skip
        if name in given and other not in given:
            option = "--" + name.replace("_", "-")
            raise options.usage_error(f"it goes with --{other}", option)
    if context.params["balance"] and ("current" in given or shared):
        other = "--current chooses the instances" if "current" in given else "it is for instances"
        raise options.usage_error(
            f"{other} that {'run before all' if 'current' in given else 'serve one service each'}; "
            "leave out one of them",
            "--balance",
        )
    for name in ("load_curves", "current"):
        if shared and name in given:
            raise options.usage_error(
                "it is for instances that serve one service each; leave it or --time-sharing out",
                "--" + name.replace("_", "-"),
            )


def _from_files(
    services: Path | None, operating_points: Path | None, wishes: _Wishes
) -> tuple[str, AnyServing]:
    from cms.fleet.serving import read_operating_points, read_services
    from cms.fleet.serving.gpus_used import DEFAULT_GPU
    from cms.fleet.serving.measurements import only_device
    from cms.fleet.serving.queueing import DEFAULT_RULE

    if services is None or operating_points is None:
        files = "--services S.csv and --operating-points P.csv"
        raise options.usage_error(
            f"give {files}, or --published NAME; 'cms init' writes two files to begin with"
        )
    asked = read_services(services, wishes.columns)
    points = read_operating_points(operating_points, wishes.columns)
    gpus = [] if wishes.gpus else [only_device(points) or DEFAULT_GPU]
    posed = wishes.problem(wishes.what_if(asked), points, gpus, DEFAULT_RULE)
    return services.stem + wishes.said, posed


def _scenario(name: str, wishes: _Wishes) -> tuple[str, AnyServing]:
    """Build a published scenario; what the user wishes replaces what it says itself."""
    from cms.fleet.serving import Scenario

    scenario = load_published(name, Scenario, "plan")
    serving = wishes.problem(
        wishes.what_if(scenario.services),
        scenario.operating_points,
        scenario.gpus,
        scenario.rule,
        scenario.max_processes,
        scenario.curves_for(wishes.rule or scenario.rule),
    )
    return f"{scenario.name}: {scenario.title}{wishes.said}", serving
