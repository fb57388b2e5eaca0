"""The files of two artifacts, ParvaGPU's and gpulet's: small ones, and their own where they are."""

from __future__ import annotations

import os
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

from bench.importers.gpulet import read_gpulet_table
from bench.importers.parvagpu import PARVAGPU_MODELS, read_parvagpu_profiles, read_parvagpu_slo
from cms.errors import FileError
from cms.fleet.hardware import get_gpu
from cms.fleet.serving import (
    OperatingPoint,
    Scenario,
    build_problem,
)
from instances import published

HEADER = "Mig instance,Batch size,Workload Number,Throughput,Latency\r\n"
#: Where the artifact's ``prof_data`` and ``SLO`` may be found; it is not part of this repository.
ARTIFACT = Path(
    os.environ.get("PARVAGPU_ARTIFACT")
    or Path(__file__).resolve().parents[3] / "shared" / "data" / "parvagpu"
)


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


def test_files_and_folders_become_points_of_what_ran(tmp_path: Path) -> None:
    path = write(tmp_path / "bert.csv", HEADER + "1,1,1,74.408,0.013\r\n7,256,3,281.25,2.731\r\n")
    first, last = read_parvagpu_profiles(path)
    assert first == OperatingPoint("bert", "A100-SXM4-80GB", "1g.10gb", 1, 1, "74.408", 13)
    assert (last.profile, last.processes, last.batch) == ("7g.80gb", 3, 256)
    assert (last.throughput_rps, last.latency_ms) == (Fraction("843.75"), Fraction(2731))
    rows = "1,1,5,0,0\r\n1,2,5,-1,-1\r\n2,1,1,-1,0.1\r\n3,1,1,10,0\r\n4,1,1,10,0.1\r\n"
    path = write(tmp_path / "vgg16.csv", HEADER + rows)
    (point,) = read_parvagpu_profiles(path, device=get_gpu("h200-141gb"))
    assert (point.device, point.profile) == ("h200-141gb", "4g.71gb")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileError, match="no file"):
        read_parvagpu_profiles(tmp_path / "empty")
    for model in ("vgg16", "bert"):
        write(tmp_path / f"{model}.csv", HEADER + "1,1,1,10,0.1")
    assert [point.model for point in read_parvagpu_profiles(tmp_path)] == ["bert", "vgg16"]


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        (HEADER + "5,1,1,10,0.1\r\n", 2, "Mig instance is 5, expected one of 1, 2, 3, 4, 7"),
        (HEADER + "1,1,1,10,0.1\r\n1,1,1,11,0.1\r\n", 3, "the first is line 2"),
        (HEADER + "1,1,0,10,0.1\r\n", 2, "Workload Number is"),
        (HEADER + "1,1,1,10\r\n", 2, "this row has 4 cells"),
        (HEADER.replace(" size", "") + "1,1,1,1,1", 1, "Batch size"),
    ],
)
def test_a_wrong_profile_file_is_refused_with_its_line(
    tmp_path: Path, text: str, line: int, what: str
) -> None:
    with pytest.raises(FileError, match=what) as caught:
        read_parvagpu_profiles(write(tmp_path / "bert.csv", text))
    assert caught.value.line == line


def test_demands_are_columns_of_both_files_and_shares_rows(
    tmp_path: Path,
) -> None:
    rates = write(tmp_path / "rates.csv", "19,353,N/A\r\n46,728,633\r\n")
    limits = write(tmp_path / "limits.csv", "6434,183,N/A\n4294,126,150.5")  # no newline at the end
    models = ("bert", "densenet121", "densenet169")
    first, second = read_parvagpu_slo(rates, limits, models=models)
    assert [service.name for service in first] == ["bert", "densenet121"]
    assert [service.name for service in second] == list(models)
    assert (second[2].rate_rps, second[2].latency_limit_ms) == (Fraction(633), Fraction("150.5"))
    rows = ROW + "vgg16,16,100,throughput,1200.5,latency,0.0133,1\n"
    no_measurement = "vgg16,16,40,throughput,0,latency,0,0\n"
    one, other = read_gpulet_table(table(tmp_path, rows + no_measurement), device="a100-80gb")
    assert (one.profile, one.processes, one.batch) == ("mps:40", 1, 8)
    assert (one.throughput_rps, one.latency_ms) == (400, 20)
    assert (other.profile, other.latency_ms) == ("mps:100", Fraction(133, 10))


@pytest.mark.parametrize(
    ("rates", "limits", "file", "line", "what"),
    [
        ("1,2\n", "1,N/A\n", "limits.csv", 1, "b is N/A here and 2 in the other file"),
        ("1,N/A\n", "1,2\n", "rates.csv", 1, "b is N/A here and 2 in the other file"),
        ("1,2\n3,4\n", "1,2\n", "limits.csv", None, "1 scenarios, expected 2"),
        ("1,2,3\n", "1,2\n", "rates.csv", 1, "this row has 3 cells, expected 2"),
        ("1,2\n", "1,0\n", "limits.csv", 1, "expected a number > 0"),
        ("1,-2\n", "1,1\n", "rates.csv", 1, "expected a number >= 0"),
    ],
)
def test_wrong_demand_files_are_refused_with_the_file_and_line(
    tmp_path: Path, rates: str, limits: str, file: str, line: int | None, what: str
) -> None:
    rate_path = write(tmp_path / "rates.csv", rates)
    limit_path = write(tmp_path / "limits.csv", limits)
    with pytest.raises(FileError, match=what) as caught:
        read_parvagpu_slo(rate_path, limit_path, models=("a", "b"))
    assert (Path(caught.value.path).name, caught.value.line) == (file, line)


@pytest.mark.skipif(
    not (ARTIFACT / "prof_data").is_dir(),
    reason="the ParvaGPU artifact is not here; PARVAGPU_ARTIFACT names its folder",
)
def test_the_scenarios_are_the_same_from_our_tables_and_from_the_artifact() -> None:
    points = read_parvagpu_profiles(ARTIFACT / "prof_data")
    ran = Counter(point.model for point in points)
    assert set(ran) == set(PARVAGPU_MODELS)
    assert (ran["bert"], ran["densenet201"]) == (225 - 11, 225 - 94)
    slo = ARTIFACT / "SLO"
    demands = read_parvagpu_slo(slo / "SLO_req_rate.csv", slo / "SLO_latency.csv")
    assert len(demands) == 6
    for number, services in enumerate(demands, 1):
        scenario: Scenario = published.scenario(f"S{number}")
        assert services == scenario.services
        ours = scenario.build_problem()
        theirs = build_problem(services, points, rule="parvagpu", max_processes=3)
        assert theirs.problem == ours.problem
        assert theirs.problem.sha256 == ours.problem.sha256
        assert theirs.points == ours.points


ROW = "vgg16,8,40,throughput,400,latency,0.02,1\n"


def table(folder: Path, text: str) -> Path:
    path = folder / "table.csv"
    path.write_text(text)
    return path


def test_wrong_rows_are_refused_with_their_place(tmp_path: Path) -> None:
    four = ROW.replace(",8,40", ",4,40")
    for row, message in (
        (ROW, r"table\.csv:2: a second row for vgg16, batch 8 on 40 %; the first is line 1"),
        (ROW.replace("throughput", "thr"), r"this cell is 'thr', expected the word throughput"),
        (ROW.replace(",40,", ",140,"), r"the share is 140 %, expected 1 to 100"),
        (four.replace("0.02", "0"), 'seconds is "0", expected a number > 0'),
        (four.replace("400", "n"), 'rate is "n", expected a number > 0'),
        ("vgg16,8,40,0.02\n", r"this row has 4 cells, expected 8: model, batch"),
    ):
        with pytest.raises(FileError, match=message):
            read_gpulet_table(table(tmp_path, ROW + row), device="a100-80gb")
