"""What was imported, as the tables in CSV that ``cms share`` and ``cms predictor`` read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ....files.csv_records import csv_text
from ....files.source import StrPath, write_bytes
from ....values.numbers import format_exact
from ..profiles import Profiles
from ..tables import PAIR_COLUMNS
from ..weights import MeasuredPair


def write_measured_pairs(pairs: Iterable[MeasuredPair], path: StrPath) -> None:
    """Write measured pairs as a table that :func:`read_measured_pairs` reads.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from fractions import Fraction
    >>> from cms.fleet.sharing import read_measured_pairs
    >>> pairs = (MeasuredPair("bert", "resnet50", "a30", 40, Fraction(11, 20), Fraction(11, 10)),)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "pairs.csv"
    >>> write_measured_pairs(pairs, path)
    >>> read_measured_pairs(path) == pairs
    True
    """
    rows = [
        (*pair[:4], format_exact(pair.offline_throughput), format_exact(pair.online_slowdown))
        for pair in pairs
    ]
    _write([PAIR_COLUMNS, *rows], path)


def write_profiles(profiles: Profiles, path: StrPath) -> None:
    """Write profiles as a table that :func:`read_profiles` reads.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from fractions import Fraction
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "profiles.csv"
    >>> write_profiles(Profiles({("bert", "a30"): {"batch": Fraction(8), "family": "b"}}), path)
    >>> path.read_text().splitlines()
    ['model,device,family,batch', 'bert,a30,b,8']
    """
    columns = (*profiles.words, *profiles.numbers)
    rows: list[Sequence[object]] = [("model", "device", *columns)]
    for key, row in profiles.of_all().items():
        values = (row.get(column) for column in columns)
        rows.append(
            (
                *key,
                *(
                    "" if v is None else v if isinstance(v, str) else format_exact(v)
                    for v in values
                ),
            )
        )
    _write(rows, path)


def _write(rows: Iterable[Sequence[object]], path: StrPath) -> None:
    write_bytes(csv_text(rows).encode(), path)
