"""Lucid's table of pairs of training jobs. Its licence forbids commercial use: bring your own."""

from __future__ import annotations

from fractions import Fraction

from cms.files.source import Source, StrPath, read_source
from cms.files.tables import TableRow, read_table
from cms.fleet.colocation.weights import MeasuredPair, Profiles

_JOB = ("model", "dataset", "batchsize", "amp")
_SIDES = tuple(f"{name}{side}" for side in (1, 2) for name in (*_JOB, "gpu_num", "speed"))
_COUNTERS = ("gpu_util", "gmem_util", "gmem")
_WHOLE = 100
_PLACES = 4


def read_lucid_pairs(
    path: StrPath, alone: StrPath | None = None, *, device: str
) -> tuple[tuple[MeasuredPair, ...], Profiles]:
    """Read pairs from a table in the form of Lucid's ``colocate_info.csv``.

    Its columns ``model1,dataset1,gpu_num1,batchsize1,amp1,speed1``, and the same with 2, are two
    jobs on one GPU and their speeds as parts of those alone. Rows of several GPUs are left aside.
    ``alone`` is a table like ``single_data.csv``; the GPU no table names.

    Pairs are both orders of every row, at a share of 100, since none was set. Speeds above 1, which
    are noise, count as 1; a job beside itself has the speed that stands first. Profiles have the
    family (model and data set), batch, mixed precision (0, 1), and what ``alone`` says.

    References
    ----------
    Q. Hu et al., Lucid: A Non-intrusive, Scalable and Interpretable Scheduler for Deep Learning
    Training Jobs, ASPLOS '23; S-Lab-System-Group/Lucid, S-Lab License 1.0 (non-commercial).
    """
    pairs: dict[tuple[str, str], MeasuredPair] = {}
    profiles: dict[tuple[str, str], dict[str, Fraction | str | None]] = {}
    lines: dict[tuple[str, str], int] = {}
    for row in read_table(_named(path), _SIDES):
        if any(row[f"gpu_num{side}"].integer() != 1 for side in (1, 2)):
            continue
        names = [_job(row, str(side), device, profiles) for side in (1, 2)]
        speeds = [min(row[f"speed{side}"].number(above=0), Fraction(1)) for side in (1, 2)]
        first, second = names
        for key in {(first, second), (second, first)}:
            if key in lines:
                raise row.error(
                    f"a second row for {first} and {second}; the first is line {lines[key]}",
                    expected="one row a pair",
                    fix="keep one of them",
                )
        for one, other in ((0, 1), (1, 0)):
            key = names[one], names[other]
            if key not in lines:
                lines[key] = row.line
                slower = round(1 / speeds[other], _PLACES)
                pairs[key] = MeasuredPair(key[1], key[0], device, _WHOLE, speeds[one], slower)
    if alone is not None:
        for row in read_table(_named(alone), (*_JOB, "speed", *_COUNTERS)):
            name = _job(row, "", device, profiles)
            profiles[name, device] |= {c: row[c].number() for c in ("speed", *_COUNTERS)}
    return tuple(pairs.values()), Profiles(profiles)


def _named(path: StrPath) -> Source:
    """Name the first column, which numbers the rows and has no name."""
    source = read_source(path, holds="a CSV table")
    text = source.text or ""
    return Source(source.name, f"row{text}") if text.startswith(",") else source


def _job(
    row: TableRow, side: str, device: str,
    profiles: dict[tuple[str, str], dict[str, Fraction | str | None]],
) -> str:  # fmt: skip
    family = f"{row[f'model{side}'].word()} {row[f'dataset{side}'].word()}"
    batch, mixed = row[f"batchsize{side}"].integer(minimum=1), row[f"amp{side}"].integer()
    name = f"{family} {batch}{' amp' if mixed else ''}"
    own: dict[str, Fraction | str | None] = {
        "family": family,
        "batch": Fraction(batch),
        "amp": Fraction(mixed),
    }
    profiles.setdefault((name, device), {}).update(own)
    return name
