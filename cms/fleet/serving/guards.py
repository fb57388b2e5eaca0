"""Signs that a table's numbers stand in the wrong unit: warnings, never corrections.

The test behind most of them: a process that always has a batch in hand serves batch / latency
items a second, so throughput x latency is near batch x processes. Measurements scatter around that
by some ten per cent; a mistaken unit moves it by a factor of 1000. Floats are good enough here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from ...numbers import format_exact
from ..hardware import Gpu
from .measurements import Measured
from .operating_point import OperatingPoint, mps_share
from .service import Service

__all__ = ["limit_warnings", "shrinking_warnings", "unit_warnings"]

_FACTOR_30 = 30.0  # about the square root of 1000: nearer to a factor of 1000 than to none
_FACTOR_FAR = 5.0
_LENIENT = 100  # a limit so far above the slowest point is no limit
_SECONDS = (
    "throughput x latency is about 1/1000 of batch x processes; latency_ms looks like seconds"
)
_MICROSECONDS = (
    "throughput x latency is about 1000 times batch x processes; latency_ms looks like microseconds"
)
_ONE_PROCESS = (
    "throughput x latency is about one batch, however many processes; throughput_rps looks like "
    "that of one process, expected the sum over the instance's processes"
)
_OTHER = "throughput x latency is far from batch x processes; check both units"
_SCATTER = Fraction(21, 20)  # repeated measurements differ by a few per cent


def unit_warnings(points: Sequence[OperatingPoint]) -> tuple[str, ...]:
    """Compare throughput x latency with batch x processes.

    Examples
    --------
    >>> seconds = OperatingPoint("bert", "a100-80gb", "1g.10gb", 1, 1, "74.408", "0.013")
    >>> unit_warnings([seconds])[0].split(";")[1]
    ' latency_ms looks like seconds'
    """
    found: dict[str, list[OperatingPoint]] = {}
    by_model: dict[str, list[OperatingPoint]] = {}
    for point in points:
        by_model.setdefault(point.model, []).append(point)
        if verdict := _verdict(_ratio(point)):
            found.setdefault(verdict, []).append(point)
    for own in by_model.values():
        several = [point for point in own if point.processes > 1]
        if len(several) > 1 and all(map(_is_of_one_process, several)):
            found.setdefault(_ONE_PROCESS, []).extend(several)
    return tuple(
        f"{len(own)} of {len(points)} operating points ({_models(own)}): {verdict}; for example: "
        f"{own[0]}"
        for verdict, own in found.items()
    )


def _ratio(point: OperatingPoint) -> float:
    items_in_work = float(point.throughput_rps) * float(point.latency_ms) / 1000
    return items_in_work / (point.batch * point.processes)


def _verdict(ratio: float) -> str:
    if 1 / _FACTOR_FAR <= ratio <= _FACTOR_FAR:
        return ""
    if 1e-3 / _FACTOR_30 < ratio < 1e-3 * _FACTOR_30:
        return _SECONDS
    return _MICROSECONDS if 1e3 / _FACTOR_30 < ratio < 1e3 * _FACTOR_30 else _OTHER


def _is_of_one_process(point: OperatingPoint) -> bool:
    return abs(_ratio(point) * point.processes - 1) <= 0.2


def _models(points: Sequence[OperatingPoint]) -> str:
    names = list(dict.fromkeys(point.model for point in points))
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more models" if len(names) > 4 else "")


def limit_warnings(services: Iterable[Service], measured: Measured) -> tuple[str, ...]:
    """Name services whose latency limit is far above everything that was measured."""
    warnings = []
    for service in services:
        latencies = [point.latency_ms for own in measured[service.model].values() for point in own]
        if service.latency_limit_ms > _LENIENT * max(latencies):
            warnings.append(
                f"service {service.name}: its latency limit of "
                f"{format_exact(service.latency_limit_ms)} ms is more than {_LENIENT} times the "
                f"slowest operating point of {service.model} ({format_exact(max(latencies))} ms); "
                "latency_limit_ms looks like microseconds"
            )
    return tuple(warnings)


def shrinking_warnings(measured: Measured, gpus: Sequence[Gpu]) -> tuple[str, ...]:
    """Name models that were measured faster on a smaller instance than on a larger one.

    It can be true (a library may handle one size badly), and nothing in the package assumes the
    opposite; but it is also what a shifted column looks like.
    """
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
                    if _is_smaller(gpu, small.profile, large.profile)
                    and small.throughput_rps > _SCATTER * large.throughput_rps
                ]
                if smaller:
                    small = max(smaller, key=lambda point: point.throughput_rps)
                    warnings.append(
                        f"model {model} on {gpu.key}: {_rate(small)} is more than {_rate(large)}, "
                        "a larger instance; this can be true, check it"
                    )
    return tuple(warnings)


def _rate(point: OperatingPoint) -> str:
    return f"{format_exact(point.throughput_rps)} items/s on {point.profile}"


def _is_smaller(gpu: Gpu, small: str, large: str) -> bool:
    """Whether one instance is part of the other: both MIG, or both a share under MPS."""
    shares = mps_share(small), mps_share(large)
    if shares[0] is not None and shares[1] is not None:
        return shares[0] < shares[1]
    if shares != (None, None) or small == large:
        return False
    one, other = gpu.profile(small), gpu.profile(large)
    return one.compute <= other.compute and one.memory <= other.memory
