"""Operating points sorted by model, GPU and profile, with names and units checked on the way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from operator import attrgetter
from typing import TypeAlias

from ...errors import InvalidOption, InvalidProblem
from ...values.names import nearest
from ...values.numbers import shown
from ..hardware import Gpu, get_gpu, list_gpus
from ..hardware.catalogue import find_gpu, is_called, likely_gpus
from .operating_point import OperatingPoint, mps_share
from .service import Service

#: A kind of instance: the GPU's key and the profile.
InstanceKind: TypeAlias = tuple[str, str]
#: The operating points of each model on each kind of instance.
Measured: TypeAlias = Mapping[str, Mapping[InstanceKind, Sequence[OperatingPoint]]]


@dataclass(frozen=True, slots=True)
class Measurements:
    """The points a plan may use, and ``{model: reasons}`` of those that were left out."""

    measured: dict[str, dict[InstanceKind, list[OperatingPoint]]] = field(default_factory=dict)
    elsewhere: dict[str, dict[str, None]] = field(default_factory=dict)


def sort_measurements(
    points: Iterable[OperatingPoint],
    fleet: Sequence[Gpu],
    *,
    mps: bool = True,
    max_processes: int | None = None,
) -> Measurements:
    """Sort operating points by model, GPU and profile; leave out those that may not be used."""
    found = Measurements()
    kinds: dict[tuple[str, str], InstanceKind | None] = {}
    seen: set[tuple[str, InstanceKind | None, int, int]] = set()
    for point in points:
        place = point.device, point.profile
        if place not in kinds:
            kinds[place] = find_instance(point, fleet)
        kind, why = kinds[place], ""
        key = point.model, kind, point.processes, point.batch
        if kind is None:
            why = f"on {point.device}"
        elif key in seen:
            raise point.fault(
                f"there are two operating points of {point.model!r} on {kind[0]}, {point.setting}; "
                "keep one of them"
            )
        elif max_processes is not None and point.processes > max_processes:
            why = f"with more than max_processes = {max_processes}"
        elif not mps and mps_share(point.profile) is not None:
            why = "under MPS shares, which are switched off"
        else:
            found.measured.setdefault(point.model, {}).setdefault(kind, []).append(point)
        if why:
            found.elsewhere.setdefault(point.model, {})[why] = None
        seen.add(key)
    for one in fleet:
        if not any(key == one.key for own in found.measured.values() for key, _ in own):
            raise InvalidProblem(_nothing_on(one.key, kinds, found))
    return found


def find_instance(point: OperatingPoint, fleet: Sequence[Gpu]) -> InstanceKind | None:
    """Return the kind of instance that a point was measured on; None on no GPU of a fleet.

    InvalidProblem if its device, or its profile on a GPU of the fleet, is not known.
    """
    on = next((one for one in fleet if is_measured_on(point, one)), None)
    if on is None:
        _known(point, fleet)
        return None
    is_share = mps_share(point.profile) is not None
    try:
        return on.key, point.profile if is_share else on.profile(point.profile).name
    except InvalidOption as fault:
        raise point.fault(f"an operating point of model {point.model!r}: {fault}") from None


def only_device(points: Iterable[OperatingPoint]) -> Gpu | None:
    """Return the one GPU that points were measured on; None without points.

    InvalidOption, which names them, if there are several; InvalidProblem if a device is not known.
    """
    first = {point.device: point for point in reversed(tuple(points))}
    found = {one.key: one for point in first.values() for one in [_known(point, ())]}
    if len(found) > 1:
        keys = sorted(found)
        raise InvalidOption(
            f"operating points were measured on {len(found)} GPUs: {', '.join(keys)}; say which to "
            f"plan with ({_chosen(keys[:1])}), or with all: {_chosen(keys)}"
        )
    return next(iter(found.values()), None)


def is_measured_on(point: OperatingPoint, one: Gpu) -> bool:
    """Whether a GPU is the device of a point, however that is spelt."""
    known = find_gpu(point.device)
    return is_called(one, point.device) or (known is not None and known.key == one.key)


def _known(point: OperatingPoint, fleet: Sequence[Gpu]) -> Gpu:
    if (found := find_gpu(point.device)) is not None:
        return found
    keys = {one.key: None for one in (*fleet, *list_gpus())}
    guess = likely_gpus(point.device)
    raise point.fault(
        f"operating points were measured on the device {point.device!r}, which is not known"
        f"{f'; {guess} E' if guess else f'{nearest(point.device, keys)}; e'}xpected one of "
        f"{', '.join(keys)} or a product name, or give your own device file"
    )


def _nothing_on(
    key: str, kinds: Mapping[tuple[str, str], InstanceKind | None], found: Measurements
) -> str:
    if not kinds:
        return "there are no operating points; give at least one for each model"
    keys = {kind[0] if kind else get_gpu(device).key: None for (device, _), kind in kinds.items()}
    if key in keys:
        reasons = {reason: None for own in found.elsewhere.values() for reason in own}
        return f"every operating point on {key} was left out: {', '.join(reasons)}"
    return (
        f"nothing was measured on {key}, only on {', '.join(keys)}; plan with these GPUs "
        f"({_chosen(keys)}), or measure {key} too"
    )


def _chosen(keys: Iterable[str]) -> str:
    """How GPUs are chosen on the command line and in Python."""
    return f"{' '.join(f'--gpu {key}' for key in keys)}, in Python gpus={list(keys)}"


def find_points(
    service: Service, known: Measurements, fleet: Sequence[Gpu]
) -> dict[InstanceKind, list[OperatingPoint]]:
    """Return the points of a service's model on the profiles it allows.

    InvalidProblem if there is none: the model, or a profile, is misspelt or was not measured.
    """
    own = known.measured.get(service.model)
    if own is None and service.model in known.elsewhere:
        raise service.fault(
            f"every operating point of model {service.model!r} was left out "
            f"({', '.join(known.elsewhere[service.model])}), and service {service.name!r} runs it"
        )
    if own is None:
        models = {**known.measured, **known.elsewhere}
        raise service.fault(
            f"service {service.name!r} runs the model {service.model!r}, which was not measured"
            f"{nearest(service.model, models)}; there are operating points of {', '.join(models)}"
        )
    if service.allowed_profiles is None:
        return own
    allowed = find_allowed_instances(service, fleet)
    chosen = {where: points for where, points in own.items() if where in allowed}
    if not chosen:
        raise service.fault(
            f"service {service.name!r} allows only {', '.join(service.allowed_profiles)}, and its "
            f"model {service.model!r} was measured on {', '.join(where[1] for where in own)}; "
            "measure it there, or allow one of these"
        )
    return chosen


def find_allowed_instances(service: Service, fleet: Sequence[Gpu]) -> set[InstanceKind]:
    """Return the instances that the allowed profiles of a service mean; without any, none.

    A profile is meant on each GPU that has it, or on that of its ``key:``.
    """
    allowed: set[InstanceKind] = set()
    for name in service.allowed_profiles or ():
        found: list[InstanceKind] = []
        for one in fleet:
            plain = name.removeprefix(f"{one.key}:")
            if plain.startswith("mps:") and mps_share(plain) is not None:
                found.append((one.key, plain))
            named = (each for each in one.profiles if plain in (each.name, *each.other_names))
            found += ((one.key, each.name) for each in named)
        if not found:
            names = dict.fromkeys(each.name for one in fleet for each in one.profiles)
            raise service.fault(
                f"service {service.name!r} allows the profile {name!r}, which none of "
                f"{', '.join(one.key for one in fleet)} has{nearest(name, names)}; expected one of "
                f"{', '.join(names)}"
            )
        allowed.update(found)
    return allowed


# --- signs that numbers stand in the wrong unit: warnings, never corrections ----------------------

# Throughput x latency is near batch x processes, within some ten per cent where a process always
# has a batch in hand; a mistaken unit moves it by a factor of 1000.
_FACTOR_30 = 30  # about the square root of 1000: nearer to a factor of 1000 than to none
_FACTOR_FAR = 5
_LENIENT = 100  # a limit so far above the slowest point is no limit
#: What throughput x latency over batch x processes is multiplied by in other units, in words.
_UNITS = {
    Fraction(1000): "about 1/1000 of batch x processes; latency_ms looks like seconds",
    Fraction(1, 1000): "about 1000 times batch x processes; latency_ms looks like microseconds",
}
_ONE_PROCESS = (
    "throughput x latency is about one batch, however many processes; throughput_rps looks like "
    "that of one process, expected the sum over the instance's processes"
)
_LIMIT_IN_SECONDS = (
    "the latency limit is below every measured latency, and would be ordinary if it were 1000 "
    "times as large; latency_limit_ms looks like seconds"
)
_LIMIT_IN_MICROSECONDS = (
    f"the latency limit is more than {_LENIENT} times every measured latency; latency_limit_ms "
    "looks like microseconds"
)
_SCATTER = Fraction(21, 20)  # repeated measurements differ by a few per cent


def list_points(services: Iterable[Service], known: Measurements) -> list[OperatingPoint]:
    """List the points of models that a service runs."""
    measured = (known.measured[model] for model in dict.fromkeys(each.model for each in services))
    return [point for own in measured for each in own.values() for point in each]


def find_odd_data(
    services: Sequence[Service], known: Measurements, gpus: Sequence[Gpu], *, batches: bool
) -> tuple[str, ...]:
    """Say what looks odd about services and points that are known to go together.

    `batches`: whether to name points whose latency is not what their throughput says.
    """
    points = list_points(services, known)
    measured = {each.model: known.measured[each.model] for each in services}
    found = [*_find_odd_units(points)]
    # latencies in a wrong unit make every limit look wrong: one mistake, one warning
    if not found:
        if batches and (slow := [point for point in points if point.is_slow]):
            why = "a batch takes longer than processes x batch / throughput; the longer time counts"
            found.append(describe_odd(slow, len(points), "operating points", why))
        found += _find_odd_limits(services, measured)
    return (*found, *_find_shrinking(measured, gpus))


def describe_odd(odd: Sequence[object], among: int, what: str, verdict: str) -> str:
    """Say how many things look odd, of how many, why, and which is the first."""
    return f"{len(odd)} of {among} {what}: {verdict}; for example: {odd[0]}"


def _find_odd_units(points: Sequence[OperatingPoint]) -> Iterator[str]:
    found: dict[str, list[OperatingPoint]] = {}
    several: dict[str, list[OperatingPoint]] = {}
    for point in points:
        if verdict := _verdict(_ratio(point)):
            found.setdefault(verdict, []).append(point)
        if point.processes > 1:
            several.setdefault(point.model, []).append(point)
    for own in several.values():
        apart = (abs(_ratio(point) * point.processes - 1) for point in own)
        if len(own) > 1 and all(each <= Fraction(1, 5) for each in apart):
            found.setdefault(_ONE_PROCESS, []).extend(own)
    for verdict, own in found.items():
        models = list(dict.fromkeys(point.model for point in own))
        more = f" and {len(models) - 4} more models" if len(models) > 4 else ""
        which = f"operating points ({', '.join(models[:4])}{more})"
        yield describe_odd(own, len(points), which, verdict)


def _ratio(point: OperatingPoint) -> Fraction:
    return point.latency_ms / point.computed_batch_ms


def _verdict(ratio: Fraction) -> str:
    # exact, since a table may hold 1e399, which no float does
    if 1 <= ratio * _FACTOR_FAR <= _FACTOR_FAR**2:
        return ""
    for factor, said in _UNITS.items():
        if 1 < ratio * factor * _FACTOR_30 < _FACTOR_30**2:
            return f"throughput x latency is {said}"
    return "throughput x latency is far from batch x processes; check both units"


def _find_odd_limits(services: Sequence[Service], measured: Measured) -> Iterator[str]:
    """Name services whose latency limit looks as if it stood in another unit than milliseconds."""
    extremes: dict[str, tuple[Fraction, Fraction]] = {}  # thousands of services may run one model
    for model, own in measured.items():
        latencies = [point.latency_ms for points in own.values() for point in points]
        extremes[model] = min(latencies), max(latencies)
    found: dict[str, list[str]] = {}
    for service in services:
        limit, (fastest, slowest) = service.latency_limit_ms, extremes[service.model]
        of = f"operating point of {service.model}"
        if limit is None:
            continue
        if limit > _LENIENT * slowest:
            verdict, extreme = _LIMIT_IN_MICROSECONDS, f"slowest {of}: {shown(slowest)}"
        elif limit < fastest <= 1000 * limit <= _LENIENT * slowest:
            verdict, extreme = _LIMIT_IN_SECONDS, f"fastest {of}: {shown(fastest)}"
        else:
            continue
        said = f"{service.name}, {shown(limit)} ms, {extreme} ms"
        found.setdefault(verdict, []).append(said)
    for verdict, examples in found.items():
        yield describe_odd(examples, len(services), "services", verdict)


def _find_shrinking(measured: Measured, gpus: Sequence[Gpu]) -> Iterator[str]:
    """Name models that were measured faster on a smaller instance: true, or a shifted column."""
    rate = attrgetter("throughput_rps")
    for (model, own), gpu in product(measured.items(), gpus):
        best = [max(points, key=rate) for (key, _), points in own.items() if key == gpu.key]
        for large in best:
            smaller = (each for each in best if _is_smaller(gpu, each.profile, large.profile))
            small = max(smaller, key=rate, default=large)
            if rate(small) > _SCATTER * rate(large):
                less, more = (
                    f"{shown(rate(each))} requests/s on {each.profile}" for each in (large, small)
                )
                yield (
                    f"model {model} on {gpu.key}: {more} is more than {less}, a larger instance; "
                    "this can be true, check it"
                )


def _is_smaller(gpu: Gpu, small: str, large: str) -> bool:
    """Whether one instance is part of the other: both MIG, or both a share under MPS."""
    shares = mps_share(small), mps_share(large)
    if shares[0] is not None and shares[1] is not None:
        return shares[0] < shares[1]
    if shares != (None, None) or small == large:
        return False
    one, other = gpu.profile(small), gpu.profile(large)
    return one.compute <= other.compute and one.memory <= other.memory
