"""Tables of gpulet's kind: small ones of the same form, and the public one where it is at hand."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path

import pytest

from cms.errors import FileError
from cms.fleet.serving import read_gpulet_table
from tests.references.gpulet_table import VARIABLE

ROW = "vgg16,8,40,throughput,400,latency,0.02,1\n"


def table(folder: Path, text: str) -> Path:
    path = folder / "table.csv"
    path.write_text(text)
    return path


def test_rows_become_points_of_one_process_on_a_share(tmp_path: Path) -> None:
    rows = ROW + "vgg16,16,100,throughput,1200.5,latency,0.0133,1\n"
    no_measurement = "vgg16,16,40,throughput,0,latency,0,0\n"
    first, second = read_gpulet_table(table(tmp_path, rows + no_measurement), device="a100-80gb")
    assert (first.profile, first.processes, first.batch) == ("mps:40", 1, 8)
    assert (first.throughput_rps, first.latency_ms) == (400, 20)
    assert (second.profile, second.latency_ms) == ("mps:100", Fraction(133, 10))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (ROW, r"table\.csv:2: a second row for vgg16, batch 8 on 40 %; the first is line 1"),
        (ROW.replace("throughput", "thr"), r"this cell is 'thr', expected the word throughput"),
        (ROW.replace(",40,", ",140,"), r"the share is 140 %, expected 1 to 100"),
        (ROW.replace(",8,", ",4,").replace("0.02", "0"), 'seconds is "0", expected a number > 0'),
        (ROW.replace(",8,40", ",4,40").replace("400", "n"), 'rate is "n", expected a number > 0'),
        ("vgg16,8,40,0.02\n", r"this row has 4 cells, expected 8, one for each of model, batch"),
    ],
)
def test_wrong_rows_are_refused_with_their_place(tmp_path: Path, row: str, message: str) -> None:
    with pytest.raises(FileError, match=message):
        read_gpulet_table(table(tmp_path, ROW + row), device="a100-80gb")


def test_the_public_table_has_420_rows_that_ran() -> None:
    path = os.environ.get(VARIABLE)
    if not path:
        pytest.skip(f"{VARIABLE} names no file: the measured table has no licence to be shipped")
    points = read_gpulet_table(path, device="a100-80gb")
    assert len(points) == 420
    assert {point.batch for point in points} == {1, 2, 4, 8, 16, 32, 64}
