"""ParvaGPU's profiles and demands, from the files of its artifact.

M. Lee et al., ParvaGPU: Efficient Spatial GPU Sharing for Large-Scale DNN Inference in Cloud
Environments, SC '24 (DOI 10.1109/SC41406.2024.00048); artifact MunQ-Lee/ParvaGPU_SC24 (MIT). Its
units are others: latency in seconds, throughput of *one* process, instance sizes as a number of
compute slices, points that did not run as non-positive numbers.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from cms.errors import FileError
from cms.files.source import StrPath
from cms.files.tables import TableRow, read_headerless, read_table
from cms.fleet.hardware import Gpu, get_gpu
from cms.fleet.serving.operating_point import OperatingPoint
from cms.fleet.serving.service import Service
from cms.fleet.serving.table_guards import refuse_second_row

#: The models of the artifact, in the order of its columns.
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
