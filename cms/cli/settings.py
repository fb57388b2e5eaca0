"""The settings of ``fleet.toml``, section by section, with what holds where nothing is said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from fractions import Fraction
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from cms.files import fields as f
from cms.files import model as m
from cms.files.source import one_of
from cms.values.names import nearest
from cms.values.numbers import format_exact

from . import options


def _words(check: Callable[[str, str], Any]) -> f.Value:
    """Declare a text, or a number, that an option of the same meaning takes as well."""

    def read(value: Any) -> str:
        is_number = isinstance(value, int | Fraction) and not isinstance(value, bool)
        text = format_exact(Fraction(value)) if is_number else value
        if not isinstance(text, str):
            raise f.refusal("a text or a number")
        try:
            check(text, "")
        except options.UsageError as fault:
            raise f.refusal(what=f"{{}}: {fault}") from None
        return text

    return f.Value(read)


def _one_of(*homes: str) -> f.Value:
    """Declare one of the names in ``module:CONSTANT``, loaded where a file gives one."""

    def read(value: Any) -> str:
        known = [str(each) for home in homes for each in options.load_named(home)]
        if value not in known:
            raise f.refusal(one_of(known), fix=nearest(value, known, lead=""))
        return str(value)

    return f.Value(read)


def _given_to(home: str, name: str) -> f.Value:
    """Declare a text that the function in ``module:FUNCTION`` takes under a name."""
    return _words(lambda text, _: options.load_named(home)(**{name: text}))


_Share = Annotated[str, _words(options.share)]
_Seconds = Annotated[str, _words(options.seconds)]
_GpuHours = Annotated[str, _words(options.gpu_hours)]
_Column = Annotated[str, _one_of("cms.fleet.serving.csv_input:COLUMNS")]
_Rule = Annotated[
    str, _one_of("cms.fleet.serving:RULES", "cms.time_sharing.duty_cycle:DutyCycleRule")
]
_Home = Annotated[str, _one_of("cms.fleet.placement.constraints:DOMAINS")]
_LimitBy = Annotated[str, _one_of("cms.fleet.colocation.predictor.predictor:LIMITS_BY")]
_Survive = Annotated[str, _given_to("cms.fleet.placement:PlacementConstraints", "survive")]
_Forecast = Annotated[str, _given_to("cms.fleet.replanner:forecast_of", "text")]
_Percent = Annotated[int, f.whole(0, 100)]
_DURATIONS = "cms.fleet.deployment.transition.durations:build_durations"


def _read_day(value: Any) -> Any:
    from cms.fleet.simulation.colocation_loop import Terms

    if not isinstance(value, dict):
        raise f.refusal("a table")
    f.refuse_unknown_keys(value, "setting", [each.name for each in fields(Terms)])
    terms = Terms()
    for key, given in value.items():
        with f.blaming(key):
            number = given if isinstance(given, bool) else f.read_number(given)
            whole = isinstance(number, Fraction) and number.denominator == 1
            changed: dict[str, Any] = {key: int(number) if whole else number}
            terms = replace(terms, **changed)
    return terms


def _slowdown(text: str, option: str) -> None:
    if options.number(text, "the factor", option) < 1:
        raise options.usage_error("expected a factor >= 1, such as 1.2", option)


class Gpu(m.Part):
    """A type of GPU that may be planned with."""

    max: Annotated[int, f.whole(0, options.MAX_COUNT)] | None = None
    price_per_hour: f.Exact | None = None
    device: f.Text | None = None


def _read_weights(value: Any) -> dict[str, Fraction]:
    if isinstance(value, list):
        value = dict.fromkeys(map(str, value), 1)
    if not isinstance(value, dict) or not value:
        raise f.refusal("a list of GPUs, or a table of what one of each counts")
    weights = {}
    for key, given in value.items():
        with f.blaming(key):
            weights[key] = f.read_positive(given)
    return weights


class Group(m.Part):
    """A limit on GPUs of several types together: how many there are, or what they may cost."""

    name: Annotated[str, f.name("group")]
    gpus: Annotated[dict[str, Fraction], f.Value(_read_weights)] | None = None
    max: f.Exact | None = None
    max_cost: f.Exact | None = None

    @model_validator(mode="after")
    def _refuse_two_limits(self) -> Self:
        if (self.max is None) == (self.max_cost is None):
            raise f.refusal("either max or max_cost", what="{} limits nothing, or two things")
        return self


class Tables(m.Part):
    """Files, beside this one where their paths are relative."""

    services: f.Text | None = None
    operating_points: f.Text | None = None
    load_curves: f.Text | None = None
    nodes: f.Text | None = None
    map: dict[str, _Column] = Field(default_factory=dict)


class Planning(m.Part):
    """What plans have to keep."""

    rule: _Rule | None = None
    rate_margin: _Share | None = None
    latency_margin: _Share | None = None
    max_processes: f.AtLeastOne | None = None
    balance: f.Flag | None = None
    time_sharing: f.Flag | None = None
    routing: Annotated[str, _one_of("cms.problem.parts:ROUTINGS")] = "weighted"
    replica_share: _Share | None = None
    currency: f.Text = ""


class TimeSharing(m.Part):
    """How services take turns on an instance, with ``time_sharing``."""

    max_services: f.AtLeastOne | None = None
    splits: Annotated[str, _one_of("cms.fleet.serving.gpus_used:SPLITS")] | None = None
    headroom: Annotated[str, _one_of("cms.fleet.serving.time_sharing:HEADROOMS")] | None = None
    batching_overheads: f.Text | None = None
    interference: f.Text | None = None
    utilisations: f.Text | None = None
    classes: f.AtLeastOne | None = None


class Placement(m.Part):
    """Which instances may stand where."""

    min_replicas: dict[str, f.Count] = Field(default_factory=dict)
    spread: dict[str, _Home] = Field(default_factory=dict)
    anti_affinity: tuple[tuple[f.Text, f.Text], ...] = ()
    max_per_gpu: dict[str, f.AtLeastOne] = Field(default_factory=dict)
    survive: _Survive | None = None
    as_grouped: f.Flag = False


class Observation(m.Part):
    """How what runs is observed."""

    service_label: f.Text | None = None
    max_age: Annotated[str, _words(options.duration)] | None = None


class Transition(m.Part):
    """How a fleet is changed."""

    tool: Annotated[str, _one_of("cms.fleet.apply:TOOLS")] | None = None
    floor: _Share = "100%"
    floors: dict[str, _Share] = Field(default_factory=dict)
    spare: Annotated[str, _words(options.spare)] | None = None
    parallel: f.AtLeastOne | None = None
    durations: Annotated[Any, f.Value(lambda value: options.load_named(_DURATIONS)(value))] = None


class Apply(m.Part):
    """How the tools that carry out a change are reached."""

    shell: f.Text = "ssh {node}"
    timeout: _Seconds = "15min"
    pause: _Seconds = "1s"
    drain_flags: f.Text = "--ignore-daemonsets"
    slurm_folder: f.Text = "/etc/slurm"
    slurm_restart: f.Text | None = None


class Work(m.Part):
    """The user's own commands that start and stop work."""

    start: f.Text | None = None
    stop: f.Text | None = None
    ready: f.Text | None = None
    drained: f.Text | None = None
    capacity: f.Text | None = None


class Export(m.Part):
    """What the files of partitioning tools say beside the deployment."""

    operator_namespace: f.Text = "gpu-operator"
    config_map: f.Text = "cms-mig-parted-config"
    merge: f.Text | None = None
    base: tuple[f.Text, ...] = ()
    namespace: f.Text | None = None
    gateway: f.Text | None = None
    pin_nodes: f.Flag = False
    pin_gpus: f.Flag = False
    slurm_types: dict[str, f.Text] = Field(default_factory=dict)
    slurm_nodes: dict[str, f.Text] = Field(default_factory=dict)


class Replanning(m.Part):
    """When a change of plans is worth what it costs."""

    forecast: _Forecast | None = None
    every: _Seconds | None = None
    horizon: _Seconds = "4h"
    lead: _Seconds = "30min"
    replan_cost: _GpuHours = "4"
    restart_cost: _GpuHours = "0.05"
    hysteresis: _Share = "2%"
    regrouped: f.Flag = False


class Traces(m.Part):
    """How recorded arrivals are read."""

    time_column: f.Text | None = None
    service_column: f.Text | None = None
    as_recorded: f.Flag = False


class Colocation(m.Part):
    """Offline workloads beside online services, and how a day of them is played."""

    margin: _Percent = 10
    lowest_share: _Percent = 5
    slowdown_limit: Annotated[str, _words(_slowdown)] | None = None
    waiting_scale: f.Positive | None = None
    lower_end: f.Flag = False
    limit_by: _LimitBy | None = None
    day: Annotated[Any, f.Value(_read_day)] = None


class Fleet(m.Part):
    """All settings; what a file leaves out is as it stands here."""

    gpus: dict[str, Gpu] = Field(default_factory=dict)
    group: tuple[Group, ...] = ()
    tables: Tables = Tables()
    plan: Planning = Planning()
    time_sharing: TimeSharing = TimeSharing()
    placement: Placement = Placement()
    observation: Observation = Observation()
    transition: Transition = Transition()
    apply: Apply = Apply()
    work: Work = Work()
    export: Export = Export()
    replan: Replanning = Replanning()
    traces: Traces = Traces()
    colocation: Colocation = Colocation()

    @model_validator(mode="after")
    def _refuse_equal_groups(self) -> Self:
        f.refuse_twice([each.name for each in self.group], "group", "group")
        return self
