"""The files of the ParvaGPU artifact: profiles of eleven models and six demand scenarios.

M. Lee et al., ParvaGPU: Efficient Spatial GPU Sharing for Large-Scale DNN Inference in Cloud
Environments, SC '24; artifact MunQ-Lee/ParvaGPU_SC24 (MIT).

Its units differ from ours: latency in seconds, throughput of *one* process, instance sizes as a
number of compute slices, points that did not run as non-positive numbers.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ...errors import FileError
from ...files.source import StrPath
from ...files.tables import Cell, TableRow, read_headerless, read_table
from ..hardware import Gpu, get_gpu
from .operating_point import OperatingPoint
from .service import Service
from .table_guards import refuse_second_row

#: The models of the SLO files, in the order of their columns.
PARVAGPU_MODELS = (
    "bert",
    "densenet121",
    "densenet169",
    "densenet201",
    "inceptionv3",
    "mobilenetv2",
    "resnet101",
    "resnet152",
    "resnet50",
    "vgg16",
    "vgg19",
)
_SIZE, _BATCH, _PROCESSES = "Mig instance", "Batch size", "Workload Number"
_THROUGHPUT, _LATENCY = "Throughput", "Latency"
_DEVICE = "A100-SXM4-80GB"


def read_parvagpu_profiles(
    paths: StrPath | Iterable[StrPath], *, device: str | Gpu = _DEVICE
) -> tuple[OperatingPoint, ...]:
    """Read the profiles of one or several models, without the points that did not run.

    Parameters
    ----------
    paths : path or iterable of paths
        Files ``<model>.csv``, or a folder of them (the artifact's ``prof_data``). The columns are
        ``Mig instance,Batch size,Workload Number,Throughput,Latency``. A FileError has file, line
        and column.
    device : str or Gpu, default the A100-80GB of the artifact
        The GPU they were measured on; an instance size stands for its base profile with so many
        compute slices.
    """
    on = device if isinstance(device, Gpu) else get_gpu(device)
    name = on.key if isinstance(device, Gpu) else device
    sizes = {on.profile(profile).compute: profile for profile in on.base_profiles}
    return tuple(point for path in _profile_files(paths) for point in _points(path, name, sizes))


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


def _points(path: Path, device: str, sizes: dict[int, str]) -> Iterator[OperatingPoint]:
    lines: dict[tuple[str, ...], int] = {}
    for row in read_table(path, [_SIZE, _BATCH, _PROCESSES, _THROUGHPUT, _LATENCY]):
        key = (row[_SIZE].text, row[_BATCH].text, row[_PROCESSES].text)
        said = f"size {key[0]}, batch {key[1]}, {key[2]} processes"
        refuse_second_row(row, lines, key, said, "point")
        profile = _profile(row[_SIZE], sizes)
        processes, batch = row[_PROCESSES].integer(minimum=1), row[_BATCH].integer(minimum=1)
        throughput, latency = (row[name].number(minimum=None) for name in (_THROUGHPUT, _LATENCY))
        if throughput > 0 and latency > 0:
            yield OperatingPoint(
                path.stem, device, profile, processes, batch, throughput * processes,
                latency * 1000, origin=f"{path}:{row.line}",
            )  # fmt: skip


def _profile(cell: Cell, sizes: dict[int, str]) -> str:
    size = cell.integer(minimum=1)
    if size not in sizes:
        raise cell.error(
            f"{_SIZE} is {size}", expected=f"one of {', '.join(map(str, sorted(sizes)))}"
        )
    return sizes[size]


def read_parvagpu_slo(
    rates: StrPath, latencies: StrPath, *, models: Sequence[str] = PARVAGPU_MODELS
) -> tuple[tuple[Service, ...], ...]:
    """Read the demand scenarios: the services of each.

    Parameters
    ----------
    rates, latencies : path
        The artifact's ``SLO_req_rate.csv`` (items per second) and ``SLO_latency.csv``
        (milliseconds): no header, one line a scenario, one column a model, ``N/A`` where the
        scenario does not have it. The artifact itself cuts numbers down to integers (418.5
        becomes 418); here they stay what they are. A FileError has the file and the line.
    models : sequence of str
        The models of the columns.
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
