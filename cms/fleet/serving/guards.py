"""Signs that a table's numbers stand in the wrong unit: warnings, never corrections.

Throughput x latency is near batch x processes, within some ten per cent where a process always has
a batch in hand; a mistaken unit moves it by a factor of 1000.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from ...values.numbers import shown
from ..hardware import Gpu
from .measurements import Measured
from .operating_point import OperatingPoint, mps_share
from .service import Service

_FACTOR_30 = 30  # about the square root of 1000: nearer to a factor of 1000 than to none
_FACTOR_FAR = 5
_LENIENT = 100  # a limit so far above the slowest point is no limit
#: What throughput x latency over batch x processes is in other units, in words.
_UNITS = {
    Fraction(1, 1000): ("1/1000 of", "seconds"),
    Fraction(1000): ("1000 times", "microseconds"),
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


def unit_warnings(points: Sequence[OperatingPoint]) -> tuple[str, ...]:
    """Compare throughput x latency with batch x processes."""
    found: dict[str, list[OperatingPoint]] = {}
    by_model: dict[str, list[OperatingPoint]] = {}
    for point in points:
        by_model.setdefault(point.model, []).append(point)
        if verdict := _verdict(_ratio(point)):
            found.setdefault(verdict, []).append(point)
    for own in by_model.values():
        several = [point for point in own if point.processes > 1]
        apart = (abs(_ratio(point) * point.processes - 1) for point in several)
        if len(several) > 1 and all(each <= Fraction(1, 5) for each in apart):
            found.setdefault(_ONE_PROCESS, []).extend(several)
    warnings = []
    for verdict, own in found.items():
        models = list(dict.fromkeys(point.model for point in own))
        more = f" and {len(models) - 4} more models" if len(models) > 4 else ""
        warnings.append(
            f"{len(own)} of {len(points)} operating points ({', '.join(models[:4])}{more}): "
            f"{verdict}; for example: {own[0]}"
        )
    return tuple(warnings)


def _ratio(point: OperatingPoint) -> Fraction:
    # exact, since a table may hold 1e399, which no float does
    items_in_work = point.throughput_rps * point.latency_ms / 1000
    return items_in_work / (point.batch * point.processes)


def _verdict(ratio: Fraction) -> str:
    if 1 <= ratio * _FACTOR_FAR <= _FACTOR_FAR**2:
        return ""
    for factor, (part, unit) in _UNITS.items():
        if 1 < ratio / factor * _FACTOR_30 < _FACTOR_30**2:
            said = f"throughput x latency is about {part} batch x processes"
            return f"{said}; latency_ms looks like {unit}"
    return "throughput x latency is far from batch x processes; check both units"


def batch_time_warnings(points: Iterable[OperatingPoint]) -> tuple[str, ...]:
    """Name points whose latency is clearly longer than their throughput says."""
    all_points = tuple(points)
    slow = [point for point in all_points if point.is_slow]
    if not slow:
        return ()
    return (
        f"{len(slow)} of {len(all_points)} operating points: a batch takes longer than processes x "
        f"batch / throughput; the longer time counts; for example: {slow[0]}",
    )


def limit_warnings(services: Sequence[Service], measured: Measured) -> tuple[str, ...]:
    """Name services whose latency limit looks as if it stood in another unit than milliseconds."""
    found: dict[str, list[str]] = {}
    extremes: dict[str, tuple[Fraction, Fraction]] = {}
    for service in services:
        if service.latency_limit_ms is None:
            continue
        if service.model not in extremes:  # thousands of services may run one model
            own = measured[service.model].values()
            latencies = [point.latency_ms for points in own for point in points]
            extremes[service.model] = min(latencies), max(latencies)
        limit, (fastest, slowest) = service.latency_limit_ms, extremes[service.model]
        if limit > _LENIENT * slowest:
            verdict, which, extreme = _LIMIT_IN_MICROSECONDS, "slowest", slowest
        elif limit < fastest and fastest <= 1000 * limit <= _LENIENT * slowest:
            verdict, which, extreme = _LIMIT_IN_SECONDS, "fastest", fastest
        else:
            continue
        example = (
            f"{service.name}, {shown(limit)} ms, {which} operating point of {service.model}: "
            f"{shown(extreme)} ms"
        )
        found.setdefault(verdict, []).append(example)
    return tuple(
        f"{len(own)} of {len(services)} services: {verdict}; for example: {own[0]}"
        for verdict, own in found.items()
    )


def shrinking_warnings(measured: Measured, gpus: Sequence[Gpu]) -> tuple[str, ...]:
    """Name models that were measured faster on a smaller instance: true, or a shifted column."""
    warnings = []
    for model, own in measured.items():
        for gpu in gpus:
            best = {
                profile: max(points, key=lambda point: point.throughput_rps)
                for (key, profile), points in own.items()
                if key == gpu.key
            }
            for large in best.values():
                smaller = [
                    small
                    for small in best.values()
                    if small.throughput_rps > _SCATTER * large.throughput_rps
                    and _is_smaller(gpu, small.profile, large.profile)
                ]
                if smaller:
                    small = max(smaller, key=lambda point: point.throughput_rps)
                    warnings.append(
                        f"model {model} on {gpu.key}: {_rate(small)} is more than {_rate(large)}, "
                        "a larger instance; this can be true, check it"
                    )
    return tuple(warnings)


def _rate(point: OperatingPoint) -> str:
    return f"{shown(point.throughput_rps)} requests/s on {point.profile}"


def _is_smaller(gpu: Gpu, small: str, large: str) -> bool:
    """Whether one instance is part of the other: both MIG, or both a share under MPS."""
    shares = mps_share(small), mps_share(large)
    if shares[0] is not None and shares[1] is not None:
        return shares[0] < shares[1]
    if shares != (None, None) or small == large:
        return False
    one, other = gpu.profile(small), gpu.profile(large)
    return one.compute <= other.compute and one.memory <= other.memory
