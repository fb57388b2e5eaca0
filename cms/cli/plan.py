"""``cms plan``: from services and operating points to GPUs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

import cms.fleet
from cms.values.frozen import FrozenMap
from cms.values.numbers import shown

from . import options, placing
from .catalogue import find_gpu, load_published
from .command import command
from .fleet_file import limit_groups, read_slowdowns, read_time_sharing
from .options import File, Text, Texts
from .searching import Search, bounded_beside, lacking, on_fewest, search, spread, sufficient_groups
from .session import Session

if TYPE_CHECKING:
    from cms.fleet.report.page import Page
    from cms.fleet.serving.gpus_used import AvailableGpus
    from cms.fleet.serving.load_curve import PointKey
    from cms.fleet.serving.posing import AnyServing


@command()
def plan(
    session: Session,
    plan: File = None,
    services: File = None,
    operating_points: File = None,
    map: Texts = None,
    published: Text = None,
    gpu: Texts = None,
    max_gpus: Texts = None,
    cost: Texts = None,
    rule: Text = None,
    load_curves: File = None,
    rate_margin: str = "0",
    latency_margin: str = "0",
    max_processes: int | None = None,
    time_sharing: bool = False,
    balance: bool | None = None,
    scale: Texts = None,
    drop: Texts = None,
    nodes: File = None,
    current: File = None,
    extra_cost: Text = None,
    compact: bool = False,
    max_restarts: Text = None,
    free: str = "gpus",
    max_age: str = "15min",
    method: str = "auto",
    option: Texts = None,
    time_limit: str = "60",
    gap: str = "0",
    seed: int = 0,
    threads: int | None = None,
    start: File = None,
    picture: File = None,
    output: File = None,
) -> int:
    """Plan the fewest GPUs for services, with a proved bound.

    Give the two tables, or --published NAME. With --nodes and --current the plan is for the GPUs
    that are there, and keeps most of what runs. Rules: capacity, capacity_certified, parvagpu,
    half, plain; with --time-sharing round_robin, collect_then_run.
    """
    given, to = options.given_options(session.context), (output, picture)
    if time_sharing and "load_curves" not in given:
        load_curves = None  # of fleet.toml: for instances that serve one service each
    how = Search(method, option, time_limit, gap, seed, threads, start)
    wishes = _Wishes(
        session, gpu, rule, max_processes, options.limits(max_gpus), options.costs(cost),
        load_curves, options.share(rate_margin, "--rate-margin"),
        options.share(latency_margin, "--latency-margin"), time_sharing,
        options.scales(scale), drop or [], options.columns(map),
    )  # fmt: skip
    extra = Fraction(0)
    if extra_cost is not None:
        extra = options.number(extra_cost, "the cost", "--extra-cost")
    _refuse_opposites(session.context, shared=time_sharing)
    with session.reading():
        placer = None
        there = placing.read_gpus_there(session, nodes, current, gpu, max_age)
        if there is not None:  # placing takes as long as it takes, unless a limit is given
            limit = how.time_limit if "time_limit" in given else None
            prices = wishes.limits, wishes.costs
            dropped = wishes.drop if plan is None and not compact else None
            placer = placing.Placer(session, there, limit, to, *prices, dropped)
            wishes = replace(wishes, there=there)
        elif plan is not None or compact:
            raise options.usage_error("give --nodes nodes.csv, --current now.json, or both")
        made = None if plan is None else cms.fleet.read_plan(plan)
        if plan is None and not compact:
            if current is not None and session.fleet.plan.routing != "weighted":
                why = "it keeps what runs for weighted routing alone, and [plan] routing is equal"
                raise options.usage_error(why, "--current")
            title, serving = wishes.read(services, operating_points, published)
    if placer is not None and compact and current is not None:
        return placer.compact(max_restarts, free, current.name)
    if placer is not None and made is not None and plan is not None:
        return placer.place(made, plan.name)
    own = session.fleet.placement.model_dump(exclude_defaults=True, exclude={"min_replicas"})
    if placer is None and own:
        session.warn(f"[placement] {', '.join(own)}: heeded with --nodes or --current alone")
    solution = search(session, serving.problem, how, counted="GPUs")
    from cms.fleet.serving import NeighbourServing, ServingProblem

    solution = on_fewest(session, serving, solution, how)
    outer = None
    if isinstance(serving, NeighbourServing):
        outer = bounded_beside(session, serving, solution, how)
    if placer is not None and solution.cost is None:
        said = "; it is of the operating points of the table, and what runs was not counted"
        none = "the plan has no schedule, so nothing can be placed"
        session.warn(none + said * (current is not None))
        placer, to = None, (None, None)
    is_regrouped = placer is not None and not session.fleet.placement.as_grouped
    if placer is not None and is_regrouped and current is not None:
        return placer.place_plan(cms.fleet.Plan(serving, solution), title, extra, how)
    wanted = session.json or not session.quiet or to != (None, None)
    short_of = lacking(session, serving.problem, solution, how) if wanted else None
    for line in sufficient_groups(session, serving, solution, how) if wanted else ():
        session.note(line)
    grown = None
    wished = wanted and balance is not False
    if wished and isinstance(serving, ServingProblem) and serving.promise is not None:
        solution, grown = spread(session, serving.problem, solution, how)
    if wanted and not isinstance(serving, NeighbourServing):  # there it matters what is beside what
        solution = cms.simplify_schedule(serving.problem, solution)
    made = cms.fleet.Plan(serving, solution, outer)
    if placer is not None:
        if is_regrouped:
            return placer.place_plan(made, title, extra, how)
        return placer.place(made, title)

    def view() -> Page:
        from cms.fleet.report.plans import plan_page

        short = short_of and _of_empty_gpus(serving, short_of)
        return plan_page(made, title, shortage=short, growth=grown)

    from cms.fleet.serving import plan_to_json

    session.show(lambda: plan_to_json(made, short_of), view, *to)
    return session.code_of(made.answer)


def _of_empty_gpus(serving: AnyServing, short_of: cms.Shortage) -> cms.Shortage:
    """Say which GPUs would do, by their keys: an empty one holds what one that is taken does."""
    if not short_of.more_machines:
        return short_of
    more = Counter[str]()
    for name, n in short_of.more_machines.items():
        more[serving.gpu_of(name).key] += n
    return replace(short_of, more_machines=FrozenMap(more))


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
    latency_margin: Fraction
    shares: bool
    scales: dict[str, Fraction]
    drop: list[str]
    columns: dict[str, str]
    there: cms.fleet.Deployment | None = None

    def read(
        self, services: Path | None, operating_points: Path | None, published: str | None
    ) -> tuple[str, AnyServing]:
        """Build the problem and its title; options override what a scenario says."""
        from cms.fleet.serving.gpus_used import DEFAULT_GPU
        from cms.fleet.serving.measurements import only_device
        from cms.fleet.serving.queueing import DEFAULT_RULE

        if published is not None:
            own = load_published(published, cms.fleet.Scenario, "plan")
            rule, curves = self.rule or own.rule, own.curves_for(self.rule or own.rule)
            most = self.max_processes or own.max_processes
            posed = self._pose(own.services, own.operating_points, own.gpus, rule, most, curves)
            return f"{own.name}: {own.title}{self._said}", posed
        if services is None or operating_points is None:
            files = "--services S.csv and --operating-points P.csv"
            raise options.usage_error(
                f"give {files}, or --published NAME; 'cms init' writes two files to begin with"
            )
        asked = cms.fleet.read_services(services, self.columns)
        points = cms.fleet.read_operating_points(operating_points, self.columns)
        gpus: list[cms.fleet.Gpu | str] = []
        if self.there is not None and not self.gpus:
            gpus += placing.measured_gpus(self.there, points)
        if not (gpus or self.gpus):
            gpus = [only_device(points) or DEFAULT_GPU]
        posed = self._pose(asked, points, gpus, self.rule or DEFAULT_RULE, self.max_processes)
        for warning in posed.warnings:
            self.session.warn(warning)
        return services.stem + self._said, posed

    @property
    def _said(self) -> str:
        """What is asked about, for the title; nothing if that is nothing."""
        scales = self.scales.items()
        parts = [f"{name or 'all rates'} x {shown(times)}" for name, times in scales]
        parts += [f"without {name}" for name in dict.fromkeys(self.drop)]
        return f" (what if: {', '.join(parts)})" if parts else ""

    def _pose(
        self,
        services: Iterable[cms.fleet.Service],
        points: Iterable[cms.fleet.OperatingPoint],
        gpus: Iterable[str | cms.fleet.Gpu],
        rule: str | cms.fleet.QueueingRule,
        max_processes: int | None,
        load_curves: Mapping[PointKey, cms.fleet.LoadCurve] | None = None,
    ) -> AnyServing:
        every, own = list(services), dict(self.scales)
        whole = own.pop("", Fraction(1))
        scale = {one.name: whole for one in every if one.name not in self.drop} | own
        changed = cms.fleet.changed_services(every, scale=scale, drop=self.drop)
        if self.load_curves is not None:
            load_curves = cms.fleet.read_load_curves(self.load_curves)
        settings, wished = self.session.fleet.plan, self.session.fleet.placement.min_replicas
        for name in wished:
            options.require_known(name, [one.name for one in every], "[placement] min_replicas")
        more = {name: {"min_replicas": str(n)} for name, n in wished.items()}
        changed = tuple(
            replace(one, extra=FrozenMap({**one.extra, **more.get(one.name, {})}))
            for one in changed
        )
        how: dict[str, Any] = {
            "rate_margin": self.rate_margin, "latency_margin": self.latency_margin,
            "limits": self.limits, "costs": self.costs, "max_processes": max_processes,
            "routing": settings.routing, "currency": settings.currency,
        }  # fmt: skip
        if settings.replica_share is not None:
            how["replica_share"] = options.share(settings.replica_share, "replica_share")
        given = changed, points, self._gpus(gpus)
        available: tuple[AvailableGpus, ...] = ()
        if self.there is not None and not self.shares:
            from cms.fleet.placement import list_available

            how["available"] = available = list_available(self.there, given[2])
        how["group_limits"] = limit_groups(self.session.fleet, given[2], self.costs, available)
        if not self.shares:
            return cms.fleet.build_problem(*given, rule=rule, load_curves=load_curves, **how)
        terms = read_time_sharing(self.session, self.rule)
        beside, said = read_slowdowns(self.session)
        how |= beside | {"splits": terms.splits, "headroom": terms.headroom}
        shared: AnyServing = cms.fleet.build_problem(
            *given, sharing="time", rule=terms.rule, max_services=terms.max_services, **how
        )
        return replace(shared, warnings=(*shared.warnings, *said))

    def _gpus(self, default: Iterable[str | cms.fleet.Gpu]) -> list[cms.fleet.Gpu]:
        """The GPUs, looked up or read from the user's own device files."""
        from cms.fleet.hardware.catalogue import is_called

        found = [
            find_gpu(gpu, "--gpu") if isinstance(gpu, str) else gpu for gpu in self.gpus or default
        ]
        for spelled, given in (("--max-gpus", self.limits), ("--cost", self.costs)):
            for name in given:
                if not any(is_called(gpu, name) for gpu in found):
                    keys = [gpu.key for gpu in found]
                    options.require_known(name, keys, spelled, "is no GPU of this plan")
        return found


def _refuse_opposites(context: typer.Context, *, shared: bool) -> None:
    """Refuse options that do not go together."""
    values = context.params
    given = {name for name in options.given_options(context) if str(values[name]) != "none"}

    def refuse(name: str, why: str) -> None:
        raise options.usage_error(why, options.spelling(name))

    if "published" in given and {"services", "operating_points"} & given:
        raise options.usage_error("give --published or the two files, not both")
    placing_only = "nodes current gpu max_age time_limit picture output"
    if "plan" in given:
        why = f"{values['plan']} is placed as it is; leave it out to plan anew"
        options.refuse_others(context, f"plan max_gpus cost {placing_only}", why)
    if values["compact"]:
        why = "--compact plans nothing new; leave one of them out"
        options.refuse_others(context, f"compact max_restarts free {placing_only}", why)
    for name, other in (
        ("extra_cost", "current"), ("compact", "current"), ("max_restarts", "compact"),
        ("free", "compact"),
    ):  # fmt: skip
        if name in given and other not in given:
            refuse(name, f"it goes with --{other}")
    if values["balance"] and "current" in given:
        why = "--current chooses the instances that run before all; leave out one of them"
        refuse("balance", why)
    for name in ("load_curves", "current", "balance"):
        if shared and name in given and values[name]:
            refuse(
                name,
                "it is for instances that serve one service each; leave it or --time-sharing out",
            )
