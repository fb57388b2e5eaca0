"""Pairs of inference batches under MPS, from tables of the kind that gpulet's measurements are."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from cms.errors import InvalidProblem
from cms.fleet.colocation.weights import MeasuredPair, Profiles
from cms.fleet.serving.interference import Interference, Pair
from cms.fleet.serving.operating_point import MPS_PREFIX, OperatingPoint

_PLACES = 4


def gpulet_measured_pairs(
    beside: Interference, alone: Iterable[OperatingPoint]
) -> tuple[tuple[MeasuredPair, ...], Profiles]:
    """Turn slowdowns of batches beside others into measured pairs, and profiles of the batches.

    ``beside`` is as :func:`cms.fleet.serving.read_gpulet_pairs` reads it: the other batch has the
    rest. ``alone`` has the same batches alone, on these shares and on all of the GPU (``mps:100``).

    There is a pair wherever both of two batches were measured beside each other. The offline
    throughput is that beside the other, as a part of what the batch does alone on all of the GPU
    (at most 1); the online slowdown is against the same share alone. Models are called as model and
    batch: ``vgg16 8``.
    """
    rates = {(p.model, p.device, p.profile, p.batch): p.throughput_rps for p in alone}
    found = []
    profiles: dict[tuple[str, str], dict[str, Fraction | str | None]] = {}
    for (model, device, profile, batch, beside_model, beside_batch), slower in beside.pairs.items():
        share = int(profile.removeprefix(MPS_PREFIX))
        rest = f"{MPS_PREFIX}{100 - share}"
        back = beside.pairs.get(Pair(beside_model, device, rest, beside_batch, model, batch))
        if back is None:
            continue
        here, whole = (
            _rate(rates, model, device, where, batch) for where in (profile, f"{MPS_PREFIX}100")
        )
        part = round(here / slower / whole, _PLACES)
        name, other = f"{model} {batch}", f"{beside_model} {beside_batch}"
        found.append(MeasuredPair(other, name, device, share, min(part, Fraction(1)), back))
        profiles[name, device] = {
            "family": model, "batch": Fraction(batch), "solo_items_per_s": whole,
        }  # fmt: skip
    return tuple(found), Profiles(profiles)


def _rate(
    rates: dict[tuple[str, str, str, int], Fraction],
    model: str, device: str, profile: str, batch: int,
) -> Fraction:  # fmt: skip
    if (model, device, profile, batch) not in rates:
        raise InvalidProblem(
            f"{model!r} with batches of {batch} was not measured alone on {profile} of {device!r}; "
            "its throughput beside others is a part of that"
        )
    return rates[model, device, profile, batch]
