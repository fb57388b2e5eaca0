"""Published demand scenarios, with the fewest GPUs that serve them.

S1 to S6 are the scenarios of the ParvaGPU paper on its measurements of an A100-80GB: M. Lee et al.,
ParvaGPU: Efficient Spatial GPU Sharing for Large-Scale DNN Inference in Cloud Environments, SC '24,
artifact MunQ-Lee/ParvaGPU_SC24 (MIT; the notice is in ``THIRD_PARTY.md``). Its latency rule and at
most 3 processes in an instance. The optima are proved: each is the exact bound LP_DW below, rounded
up, and is reached.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cache, partial
from pathlib import Path

from cms.files.tables import read_table
from cms.fleet.serving.csv_input import read_operating_points
from cms.fleet.serving.load_curve import LoadCurve, PointKey, read_load_curves
from cms.fleet.serving.scenario import Scenario
from cms.fleet.serving.service import Service
from cms.values.frozen import FrozenMap
from cms.values.numbers import format_exact

__all__ = ["scenario"]

_DATA = Path(__file__).parent / "data"
_ARTIFACT = "M. Lee et al., ParvaGPU, SC '24 (artifact MunQ-Lee/ParvaGPU_SC24, MIT)"
_SOURCE = f"{_ARTIFACT}; the optimum was computed and proved for this project"
#: The fewest GPUs, and the exact value of LP_DW.
_KNOWN = {
    "S1": (2, Fraction(10, 7)),
    "S2": (3, Fraction(20, 7)),
    "S3": (5, Fraction(30, 7)),
    "S4": (7, Fraction(44, 7)),
    "S5": (12, Fraction(176, 15)),
    "S6": (16, Fraction(333, 22)),
}


@cache
def scenario(name: str) -> Scenario:
    """Return one of the scenarios S1 to S6; KeyError if there is none of this name."""
    optimum, bound = _KNOWN[name]
    services = _services()[name]
    rate = sum((service.rate_rps for service in services), Fraction(0))
    return Scenario(
        name=name,
        title=f"{len(services)} models, {format_exact(rate)} requests/s in all",
        source=_SOURCE,
        services=services,
        operating_points=_operating_points(),
        rule="parvagpu",
        load_curves=load_curves,
        max_processes=3,
        optimum=Fraction(optimum),
        bounds=FrozenMap({"LP_DW": bound}),
    )


def __getattr__(name: str) -> Scenario:
    # an entry point asks for the attribute S5; the files are read then
    if name in _KNOWN:
        return globals().setdefault(name, scenario(name))  # type: ignore[no-any-return]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_operating_points = cache(partial(read_operating_points, _DATA / "a100_operating_points.csv"))


@cache
def load_curves() -> Mapping[PointKey, LoadCurve]:
    """Return the load curves of the operating points, simulated by ``cms calibrate``.

    They are not the artifact's: the rules of the paper's scheduler ask for none.
    """
    return read_load_curves(_DATA / "a100_load_curves.csv")


@cache
def _services() -> dict[str, tuple[Service, ...]]:
    columns = ("scenario", "model", "rate_rps", "latency_slo_ms")
    found: dict[str, tuple[Service, ...]] = dict.fromkeys(_KNOWN, ())
    for row in read_table(_DATA / "parvagpu_scenarios.csv", columns):
        name = row["model"].word()
        rate, limit = row["rate_rps"].number(), row["latency_slo_ms"].number(above=0)
        found[row["scenario"].word()] += (Service(name, name, rate, limit),)
    return found
