"""``cms plan``: from services and operating points to GPUs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import cms.fleet
from cms.values.frozen import FrozenMap
from cms.values.numbers import shown

from . import options, placing
from .command import command
from .fleet_file import limit_groups, read_slowdowns, read_time_sharing
from .options import File, Text, Texts, find_gpu, load_published
from .searching import Search, bounded_beside, lacking, on_fewest, search, spread, sufficient_groups
from .session import Session

if TYPE_CHECKING:
    from cms.fleet.report.page import Page
    from cms.fleet.serving import AvailableGpus
    from cms.fleet.serving.posing import AnyServing


#: Options that go with --current and --compact, and those that do not go with --time-sharing.
_OF_CURRENT, _OF_COMPACT = ("extra_cost", "compact"), ("max_restarts", "free")
_OF_ONE_SERVICE = ("load_curves", "current", "balance")


@dataclass(kw_only=True)
class PlanOptions(options.OptionGroup):
    """Options about services, operating points and GPUs; what is not given is None or empty."""

    services: File = None
    operating_points: File = None
    map: Texts = None
    published: Text = None
    gpu: Texts = None
    max_gpus: Texts = None
    cost: Texts = None
    rule: Text = None
    load_curves: File = None
    rate_margin: str = "0"
    latency_margin: str = "0"
    max_processes: int | None = None
    time_sharing: bool = False
    balance: bool | None = None
    scale: Texts = None
    drop: Texts = None

    def __post_init__(self) -> None:
        self.limits, self.costs = options.limits(self.max_gpus), options.costs(self.cost)
        self.scales, self.columns = options.scales(self.scale), options.columns(self.map)
        self.margins = {
            "rate_margin": options.share(self.rate_margin, "--rate-margin"),
            "latency_margin": options.share(self.latency_margin, "--latency-margin"),
        }

    def pose(self, session: Session, there: cms.fleet.Deployment | None) -> tuple[str, AnyServing]:
        """Build the problem and its title; options override what a scenario says."""
        from cms.fleet.serving.gpus_used import DEFAULT_GPU
        from cms.fleet.serving.measurements import only_device
        from cms.fleet.serving.queueing import DEFAULT_RULE

        parts = [f"{name or 'all rates'} x {shown(times)}" for name, times in self.scales.items()]
        parts += [f"without {name}" for name in dict.fromkeys(self.drop or ())]
        what_if = f" (what if: {', '.join(parts)})" if parts else ""
        if self.published is not None:
            own = load_published(self.published, cms.fleet.Scenario, "plan")
            own = replace(own, rule=self.rule or own.rule)
            return f"{own.name}: {own.title}{what_if}", self._pose(session, there, own)
        if self.services is None or self.operating_points is None:
            files = "--services S.csv and --operating-points P.csv"
            raise options.usage_error(
                f"give {files}, or --published NAME; 'cms init' writes two files to begin with"
            )
        services = cms.fleet.read_services(self.services, self.columns)
        points = cms.fleet.read_operating_points(self.operating_points, self.columns)
        gpus: list[str | cms.fleet.Gpu] = []
        if there is not None and not self.gpu:
            gpus += placing.measured_gpus(there, points)
        if not (gpus or self.gpu):
            gpus = [only_device(points) or DEFAULT_GPU]
        own = cms.fleet.Scenario(
            name="", title="", source="", services=services, operating_points=points,
            gpus=tuple(gpus), rule=self.rule or DEFAULT_RULE,
        )  # fmt: skip
        posed = self._pose(session, there, own)
        for warning in posed.warnings:
            session.warn(warning)
        return self.services.stem + what_if, posed

    def _pose(
        self, session: Session, there: cms.fleet.Deployment | None, own: cms.fleet.Scenario
    ) -> AnyServing:
        scales, dropped = dict(self.scales), self.drop or []
        whole, names = scales.pop("", Fraction(1)), [one.name for one in own.services]
        scale = {name: whole for name in names if name not in dropped} | scales
        settings, wished = session.fleet.plan, session.fleet.placement.min_replicas
        for name in wished:
            options.require_known(name, names, "[placement] min_replicas")
        more = {name: {"min_replicas": str(n)} for name, n in wished.items()}
        services = tuple(
            replace(one, extra=FrozenMap({**one.extra, **more.get(one.name, {})}))
            for one in cms.fleet.changed_services(own.services, scale=scale, drop=dropped)
        )
        how: dict[str, Any] = {
            **self.margins, "limits": self.limits, "costs": self.costs,
            "max_processes": self.max_processes or own.max_processes,
            "routing": settings.routing, "currency": settings.currency,
        }  # fmt: skip
        if settings.replica_share is not None:
            how["replica_share"] = options.share(settings.replica_share, "replica_share")
        given = services, own.operating_points, (gpus := self._gpus(own))
        available: tuple[AvailableGpus, ...] = ()
        if there is not None and not self.time_sharing:
            from cms.fleet.placement import list_available

            how["available"] = available = list_available(there, gpus)
        how["group_limits"] = limit_groups(session.fleet, gpus, self.costs, available)
        if not self.time_sharing:
            curves = None if own.load_curves is None else own.curves_for(own.rule)
            if self.load_curves is not None:
                curves = cms.fleet.read_load_curves(self.load_curves)
            return cms.fleet.build_problem(*given, rule=own.rule, load_curves=curves, **how)
        how |= read_time_sharing(session, self.rule)
        beside, said = read_slowdowns(session)
        shared: AnyServing = cms.fleet.build_problem(*given, **how | beside)
        return replace(shared, warnings=(*shared.warnings, *said))

    def _gpus(self, own: cms.fleet.Scenario) -> list[cms.fleet.Gpu]:
        """The GPUs, looked up or read from the user's own device files."""
        from cms.fleet.hardware.catalogue import is_called

        found = [
            find_gpu(gpu, "--gpu") if isinstance(gpu, str) else gpu for gpu in self.gpu or own.gpus
        ]
        for spelled, given in (("--max-gpus", self.limits), ("--cost", self.costs)):
            for name in given:
                if not any(is_called(gpu, name) for gpu in found):
                    keys = [gpu.key for gpu in found]
                    options.require_known(name, keys, spelled, "is no GPU of this plan")
        return found


@command()
def plan(
    session: Session,
    *,
    plan: File = None,
    inputs: PlanOptions,
    nodes: File = None,
    current: File = None,
    extra_cost: Text = None,
    compact: bool = False,
    max_restarts: Text = None,
    free: str = "gpus",
    max_age: str = "15min",
    how: Search,
    picture: File = None,
    output: File = None,
) -> int:
    """Plan the fewest GPUs for services, with a proved bound.

    Give the two tables, or --published NAME. With --nodes and --current the plan is for the GPUs
    that are there, and keeps most of what runs. Rules: capacity, capacity_certified, parvagpu,
    half, plain; with --time-sharing round_robin, collect_then_run.
    """
    given, to = options.given_options(session.context), (output, picture)
    if inputs.time_sharing and "load_curves" not in given:
        inputs.load_curves = None  # of fleet.toml: for instances that serve one service each
    extra = options.number(0 if extra_cost is None else extra_cost, "the cost", "--extra-cost")
    _refuse_opposites(session, inputs)
    with session.reading():
        placer = None
        there = placing.read_gpus_there(session, nodes, current, inputs.gpu, max_age)
        if there is not None:  # placing takes as long as it takes, unless a limit is given
            limit = how.time_limit if "time_limit" in given else None
            dropped = (inputs.drop or []) if plan is None and not compact else None
            placer = placing.Placer(session, there, limit, to, inputs.limits, inputs.costs, dropped)
        elif plan is not None or compact:
            raise options.usage_error("give --nodes nodes.csv, --current now.json, or both")
        made = None if plan is None else cms.fleet.read_plan(plan)
        if plan is None and not compact:
            if current is not None and session.fleet.plan.routing != "weighted":
                why = "it keeps what runs for weighted routing alone, and [plan] routing is equal"
                raise options.usage_error(why, "--current")
            title, serving = inputs.pose(session, there)
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
    wished = wanted and inputs.balance is not False
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

        short = short_of
        if short is not None and short.more_machines:
            # by the keys of GPUs: an empty one holds what one that is taken does
            more = Counter[str]()
            for name, n in short.more_machines.items():
                more[serving.gpu_of(name).key] += n
            short = replace(short, more_machines=FrozenMap(more))
        return plan_page(made, title, shortage=short, growth=grown)

    from cms.fleet.serving import plan_to_json

    session.show(lambda: plan_to_json(made, short_of), view, *to)
    return session.code_of(made.answer)


def _refuse_opposites(session: Session, inputs: PlanOptions) -> None:
    """Refuse options that do not go together."""
    context, values = session.context, session.context.params
    given = {name for name in options.given_options(context) if str(values[name]) != "none"}
    if "published" in given and {"services", "operating_points"} & given:
        raise options.usage_error("give --published or the two files, not both")
    placing_only = "nodes current gpu max_age time_limit picture output"
    if "plan" in given:
        why = f"{values['plan']} is placed as it is; leave it out to plan anew"
        options.refuse_others(context, f"plan max_gpus cost {placing_only}", why)
    if values["compact"]:
        why = "--compact plans nothing new; leave one of them out"
        options.refuse_others(context, f"compact max_restarts free {placing_only}", why)
    first = "--current chooses the instances that run before all; leave out one of them"
    alone = "it is for instances that serve one service each; leave it or --time-sharing out"
    refused = [
        *((name, "current" not in given, "it goes with --current") for name in _OF_CURRENT),
        *((name, "compact" not in given, "it goes with --compact") for name in _OF_COMPACT),
        ("balance", values["balance"] and "current" in given, first),
        *((name, inputs.time_sharing and values[name], alone) for name in _OF_ONE_SERVICE),
    ]
    for name, is_wrong, why in refused:
        if name in given and is_wrong:
            raise options.usage_error(why, options.spelling(name))
