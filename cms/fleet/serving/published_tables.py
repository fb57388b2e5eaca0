"""Tables of published artifacts: gpulet's measurements, ParvaGPU's profiles and demands.

gpulet: S. Choi et al., Serving Heterogeneous Machine Learning Models on Multi-GPU Servers with
Spatio-Temporal Sharing, USENIX ATC '22. A public re-implementation of its scheduler comes with
tables of batches on shares of a GPU under MPS. They have no header and no licence, and do not name
the GPU: bring your own. Words stand before their values, and a flag other than 1 marks what is no
measurement.

ParvaGPU: M. Lee et al., ParvaGPU: Efficient Spatial GPU Sharing for Large-Scale DNN Inference in
Cloud Environments, SC '24; artifact MunQ-Lee/ParvaGPU_SC24 (MIT). Its units are others: latency in
seconds, throughput of *one* process, instance sizes as a number of compute slices, points that did
not run as non-positive numbers.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path

from ...errors import FileError
from ...files.source import StrPath
from ...files.tables import TableRow, read_headerless, read_table
from ..hardware import Gpu, get_gpu
from .interference import Batch, Interference, Pair, Utilisation
from .operating_point import MPS_PREFIX, OperatingPoint
from .service import Service
from .table_guards import refuse_second_row

_OWN = ("model", "batch", "percent")
_FIGURES = ("throughput", "rate", "latency", "seconds", "flag")
_PLACES = 4  # of a slowdown: latencies are measured in three digits


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
    for row, model, size, profile in _measurements(path, (*_OWN, *_FIGURES), *words):
        said = f"{model}, batch {size} on {profile.removeprefix(MPS_PREFIX)} %"
        refuse_second_row(row, lines, (model, size, profile), said, "point")
        rate, seconds = row["rate"].number(above=0), row["seconds"].number(above=0)
        point = OperatingPoint(
            model, _key(device), profile, 1, size, rate, 1000 * seconds, origin=f"{path}:{row.line}"
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
    columns = (*_OWN, "beside_model", "beside_batch", *_FIGURES)
    words = "throughput", "latency"
    for row, model, size, profile in _measurements(path, columns, *words, most=99):
        other = row["beside_model"].word(), row["beside_batch"].integer(minimum=1)
        pair = Pair(model, _key(device), profile, size, *other)
        refuse_second_row(row, lines, pair, str(pair), "pair")
        if (model, size, profile) not in took:
            raise row.error(
                f"{model} on {profile}, batch {size}, was not measured alone",
                expected="an operating point of it, against which it is slowed",
            )
        seconds = row["seconds"].number(above=0)
        found[pair] = round(1000 * seconds / took[model, size, profile], _PLACES)
    return Interference(found)


def read_gpulet_utilisations(path: StrPath, *, device: str | Gpu) -> dict[Batch, Utilisation]:
    """Read what batches use alone of cache and memory on a GPU.

    Rows are ``model,batch,percent,mem_util,X,l2_util,Y,flag``; X is of the bandwidth of the memory,
    Y of the cache.
    """
    lines: dict[Batch, int] = {}
    found: dict[Batch, Utilisation] = {}
    columns = (*_OWN, "mem_util", "mem", "l2_util", "l2", "flag")
    for row, model, size, profile in _measurements(path, columns, "mem_util", "l2_util"):
        batch = Batch(model, _key(device), profile, size)
        refuse_second_row(row, lines, batch, str(batch), "batch")
        found[batch] = Utilisation(row["l2"].number(), row["mem"].number())
    return found


def _key(device: str | Gpu) -> str:
    return device.key if isinstance(device, Gpu) else device


def _measurements(
    path: StrPath, columns: tuple[str, ...], *words: str, most: int = 100
) -> Iterator[tuple[TableRow, str, int, str]]:
    """Iterate over rows of measurements with their model, batch and profile."""
    for row in read_headerless(path, columns):
        for word in words:
            if row[word].text != word:
                raise row[word].error(
                    f"this cell is {row[word].text or 'empty'!r}",
                    expected=f"the word {word}, after which its value stands",
                )
        if row["flag"].text != "1":
            continue
        model, batch = row["model"].word(), row["batch"].integer(minimum=1)
        share = row["percent"].integer(minimum=1)
        if share > most:
            raise row["percent"].error(
                f"the share is {share} %", expected=f"1 to {most}, in per cent of a GPU"
            )
        yield row, model, batch, f"{MPS_PREFIX}{share}"


#: The models of the SLO files, in the order of their columns.
PARVAGPU_MODELS = (
    "bert", "densenet121", "densenet169", "densenet201", "inceptionv3", "mobilenetv2", "resnet101",
    "resnet152", "resnet50", "vgg16", "vgg19",
)  # fmt: skip
_SIZE, _BATCH, _PROCESSES = "Mig instance", "Batch size", "Workload Number"
_THROUGHPUT, _LATENCY = "Throughput", "Latency"
_DEVICE = "A100-SXM4-80GB"


def read_parvagpu_profiles(
    paths: StrPath | Iterable[StrPath], *, device: str | Gpu = _DEVICE
) -> tuple[OperatingPoint, ...]:
    """Read the profiles of one or several models, without the points that did not run.

    `paths` are files ``<model>.csv`` with the columns ``Mig instance,Batch size,Workload Number,
    Throughput,Latency``, or folders of them (the artifact's ``prof_data``). An instance size is the
    base profile of the `device` with these compute slices. A FileError has file, line and column.
    Source: Lee et al., ParvaGPU, SC '24, DOI 10.1109/SC41406.2024.00048, and its artifact.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "bert.csv"
    >>> columns = "Mig instance,Batch size,Workload Number,Throughput,Latency"
    >>> _ = path.write_text(f"{columns}\\n1,1,2,52.42,0.019\\n1,1,5,0,0\\n")
    >>> print(*read_parvagpu_profiles(path))
    bert on 1g.10gb, 2 processes, batch 1: 104.84 requests/s at 19 ms
    """
    on = device if isinstance(device, Gpu) else get_gpu(device)
    name = on.key if isinstance(device, Gpu) else device
    sizes = {on.profile(profile).compute: profile for profile in on.base_profiles}
    found = []
    for path in _profile_files(paths):
        lines: dict[tuple[str, ...], int] = {}
        for row in read_table(path, [_SIZE, _BATCH, _PROCESSES, _THROUGHPUT, _LATENCY]):
            key = (row[_SIZE].text, row[_BATCH].text, row[_PROCESSES].text)
            said = f"size {key[0]}, batch {key[1]}, {key[2]} processes"
            refuse_second_row(row, lines, key, said, "point")
            if (size := row[_SIZE].integer(minimum=1)) not in sizes:
                known = f"one of {', '.join(map(str, sorted(sizes)))}"
                raise row[_SIZE].error(f"{_SIZE} is {size}", expected=known)
            processes, batch = (row[name].integer(minimum=1) for name in (_PROCESSES, _BATCH))
            throughput, latency = (row[n].number(minimum=None) for n in (_THROUGHPUT, _LATENCY))
            if throughput > 0 and latency > 0:
                point = OperatingPoint(
                    path.stem, name, sizes[size], processes, batch, throughput * processes,
                    latency * 1000, origin=f"{path}:{row.line}",
                )  # fmt: skip
                found.append(point)
    return tuple(found)


def _profile_files(paths: StrPath | Iterable[StrPath]) -> list[Path]:
    given = [paths] if isinstance(paths, str | os.PathLike) else paths
    files: list[Path] = []
    for path in [Path(one) for one in given]:
        if not path.is_dir():
            files.append(path)
            continue
        inside = sorted(path.glob("*.csv"))
        if not inside:
            raise FileError(path, "this folder has no file *.csv", expected="one file a model")
        files += inside
    return files


def read_parvagpu_slo(
    rates: StrPath, latencies: StrPath, *, models: Sequence[str] = PARVAGPU_MODELS
) -> tuple[tuple[Service, ...], ...]:
    """Read the demand scenarios: the services of each.

    `rates` and `latencies` are the artifact's ``SLO_req_rate.csv`` (items per second) and
    ``SLO_latency.csv`` (milliseconds): no header, one line a scenario, one column a model, ``N/A``
    where the scenario does not have it. The artifact itself cuts numbers down to integers (418.5
    becomes 418); here they stay what they are. A FileError has the file and the line.
    Source: as for :func:`read_parvagpu_profiles`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> rates, limits = (pathlib.Path(tempfile.mkdtemp()) / each for each in ("rate", "limit"))
    >>> _ = rates.write_text("19,N/A\\n46,728"), limits.write_text("6434,N/A\\n4294,126.5")
    >>> print(*read_parvagpu_slo(rates, limits, models=["bert", "vgg16"])[1], sep="; ")
    bert: 46 requests/s within 4294 ms; vgg16: 728 requests/s within 126.5 ms
    """
    rate_rows, limit_rows = read_headerless(rates, models), read_headerless(latencies, models)
    if len(rate_rows) != len(limit_rows):
        raise FileError(
            os.fspath(latencies),
            f"the file has {len(limit_rows)} scenarios",
            expected=f"{len(rate_rows)}, as many as {rates}",
        )
    return tuple(
        tuple(_services(rate_row, limit_row))
        for rate_row, limit_row in zip(rate_rows, limit_rows, strict=True)
    )


def _services(rates: TableRow, limits: TableRow) -> Iterator[Service]:
    for model in rates:
        rate, limit = rates[model], limits[model]
        if rate.is_missing != limit.is_missing:
            present, absent = (limit, rate) if rate.is_missing else (rate, limit)
            raise absent.error(
                f"{model} is {absent.text or 'empty'} here and {present.text} in the other file",
                expected="a number in both files, or N/A in both",
            )
        if not rate.is_missing:
            origin = f"{rates.table.source.name}:{rates.line}"
            yield Service(model, model, rate.number(), limit.number(above=0), origin=origin)
