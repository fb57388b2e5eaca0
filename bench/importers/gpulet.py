"""Pairs of inference batches under MPS, from tables of the kind that gpulet's measurements are."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from cms.errors import InvalidProblem
from cms.files.source import StrPath
from cms.fleet.colocation.weights import MeasuredPair, Profiles
from cms.fleet.hardware import Gpu
from cms.fleet.serving.gpulet_utilisations import OWN, key_of, read_measurements
from cms.fleet.serving.interference import Interference, Pair
from cms.fleet.serving.operating_point import MPS_PREFIX, OperatingPoint
from cms.fleet.serving.table_guards import refuse_second_row

_FIGURES = ("throughput", "rate", "latency", "seconds", "flag")
_PLACES = 4  # of a slowdown: latencies are measured in three digits


def gpulet_measured_pairs(
    beside: Interference, alone: Iterable[OperatingPoint]
) -> tuple[tuple[MeasuredPair, ...], Profiles]:
    """Turn slowdowns of batches beside others into measured pairs, and profiles of the batches.

    ``beside`` is as :func:`read_gpulet_pairs` reads it: the other batch has the
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


def read_gpulet_table(path: StrPath, *, device: str | Gpu) -> tuple[OperatingPoint, ...]:
    """Read batches that were measured on shares of a GPU: one process each, ``mps:<percent>``.

    Rows are ``model,batch,percent,throughput,X,latency,Y,flag``, without a header: X is in items
    per second, Y in seconds; a flag other than 1 marks what is no measurement. `device` is the GPU
    they were measured on. A FileError has file, line and column. Source: Choi et al., ATC '22.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "table.csv"
    >>> _ = path.write_text("vgg16,8,40,throughput,400,latency,0.02,1\\n")
    >>> print(*read_gpulet_table(path, device="a100-80gb"))
    vgg16 on mps:40, 1 process, batch 8: 400 requests/s at 20 ms
    """
    lines: dict[tuple[str, int, str], int] = {}
    found = []
    words = "throughput", "latency"
    for row, model, size, profile in read_measurements(path, (*OWN, *_FIGURES), *words):
        said = f"{model}, batch {size} on {profile.removeprefix(MPS_PREFIX)} %"
        refuse_second_row(row, lines, (model, size, profile), said, "point")
        rate, seconds = row["rate"].number(above=0), row["seconds"].number(above=0)
        point = OperatingPoint(
            model,
            key_of(device),
            profile,
            1,
            size,
            rate,
            1000 * seconds,
            origin=f"{path}:{row.line}",
        )
        found.append(point)
    return tuple(found)


def read_gpulet_pairs(
    path: StrPath, alone: Iterable[OperatingPoint], *, device: str | Gpu
) -> Interference:
    """Read what batches take beside others: latency over latency alone, to four decimal places.

    Rows are ``model,batch,percent,beside_model,beside_batch,throughput,X,latency,Y,flag``; the
    other model is on the rest of the GPU. `alone` has the same batches alone, as
    :func:`read_gpulet_table` reads them; one that was not measured alone is refused.
    """
    took = {(p.model, p.batch, p.profile): p.latency_ms for p in alone}
    lines: dict[Pair, int] = {}
    found: dict[Pair, Fraction] = {}
    columns = (*OWN, "beside_model", "beside_batch", *_FIGURES)
    words = "throughput", "latency"
    for row, model, size, profile in read_measurements(path, columns, *words, most=99):
        other = row["beside_model"].word(), row["beside_batch"].integer(minimum=1)
        pair = Pair(model, key_of(device), profile, size, *other)
        refuse_second_row(row, lines, pair, str(pair), "pair")
        if (model, size, profile) not in took:
            raise row.error(
                f"{model} on {profile}, batch {size}, was not measured alone",
                expected="an operating point of it, against which it is slowed",
            )
        seconds = row["seconds"].number(above=0)
        found[pair] = round(1000 * seconds / took[model, size, profile], _PLACES)
    return Interference(found)
