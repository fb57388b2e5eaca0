"""Files of published artifacts become points, pairs, profiles and classes; odd ones are refused."""

from __future__ import annotations

import json
import os
from collections import Counter
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bench.importers import (
    gpulet_measured_pairs,
    read_alibaba_usage,
    read_gavel_pairs,
    read_lucid_pairs,
    write_measured_pairs,
)
from bench.importers.gpulet import read_gpulet_pairs, read_gpulet_table
from bench.importers.parvagpu import PARVAGPU_MODELS, read_parvagpu_profiles, read_parvagpu_slo
from cms.errors import FileError, InvalidProblem
from cms.fleet.colocation import write_profiles
from cms.fleet.hardware import get_gpu
from cms.fleet.serving import OperatingPoint, Scenario, build_problem
from instances import published
from tests.fleet.colocation.pairs import GAVEL, GAVEL_PROFILES, gavel
from tests.samples import refusal

A, B, C = "('A (batch size 8)', 1)", "('B', 1)", "('C', 1)"


def throughputs() -> dict[str, Any]:
    own = {
        A: {"null": 4.0, A: [2.0, 2.0], B: [3.0, 1.0], C: [0.0, 0.0]},
        B: {"null": 2.0, A: [1.0, 3.0], B: [1.0, 1.0], C: [2.2, 1.0]},
        C: {"null": 1.5, A: [0.0, 0.0], B: [1.0, 2.2], C: [0.5, 0.5]},
        "('A (batch size 8)', 2)": {"null": 7.0},
    }
    return {"v100": own, "v100_unconsolidated": {A: {"null": 4.0}}}


def written(folder: Path, text: str, name: str = "file") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


def test_throughputs_in_pairs_become_normalised_pairs_in_both_orders(tmp_path: Path) -> None:
    pairs, profiles = read_gavel_pairs(written(tmp_path, json.dumps(throughputs())))
    found = {pair[:2]: pair for pair in pairs}
    # A and C could not run together; on several GPUs, and apart, is another matter
    assert len(found) == len(pairs) == 7
    assert found["B", "A (batch size 8)"][2:] == ("v100", 100, Fraction(3, 4), 2)
    # faster than alone, which is noise, counts as 1
    assert found["C", "B"].offline_throughput == found["B", "C"].online_slowdown == 1
    assert profiles.of("A (batch size 8)", "v100") == {
        "family": "A", "batch": 8, "solo_steps_per_s": 4
    }  # fmt: skip
    assert (profiles.of("B", "v100") or {})["batch"] is None


def test_odd_throughputs_are_refused(tmp_path: Path) -> None:
    for key, value, words in ((B, [1], "has 1 entry"), ("('D', 1)", [1, 1], "'D' beside 'A (b")):
        document = throughputs()
        document["v100"][A][key] = value
        path = written(tmp_path, json.dumps(document))
        assert words in refusal(FileError, read_gavel_pairs, path)


def test_the_shipped_table_is_all_that_ran_mirrored_and_written_again_the_same(
    tmp_path: Path,
) -> None:
    pairs, profiles = gavel()
    assert (len(pairs), len(profiles)) == (1881, 78)
    values = {pair[:3]: pair for pair in pairs}
    for (online, offline, device), pair in values.items():
        assert pair.share == 100
        assert 0 < pair.offline_throughput <= 1
        mirrored = values[offline, online, device]
        assert abs(1 / pair.online_slowdown - mirrored.offline_throughput) < Fraction(1, 1000)
    write_measured_pairs(pairs, tmp_path / "pairs.csv")
    write_profiles(profiles, tmp_path / "profiles.csv")
    assert (tmp_path / "pairs.csv").read_bytes() == GAVEL.read_bytes()
    assert (tmp_path / "profiles.csv").read_bytes() == GAVEL_PROFILES.read_bytes()


LUCID = (
    ",model1,dataset1,gpu_num1,batchsize1,amp1,speed1,model2,dataset2,gpu_num2,batchsize2,amp2,"
    "speed2,gpu_util,gmem_util,gmem\n"
    "0,M,x,1,32,0,0.8,N,y,1,64,1,1.03,60,30,5000\n"
    "1,M,x,1,32,0,0.5,M,x,1,32,0,0.6,90,60,6000\n"
    "2,M,x,2,32,0,0.5,N,y,1,32,0,0.6,90,60,6000\n"
)
ALONE = (
    "model,dataset,batchsize,amp,speed,gpu_util,gmem_util,gmem,label\nM,x,32,0,900,45,20,2600,0\n"
)


def test_pairs_with_normalised_speeds_are_read_with_their_counters(tmp_path: Path) -> None:
    alone = written(tmp_path, ALONE, "alone")
    pairs, profiles = read_lucid_pairs(written(tmp_path, LUCID), alone, device="rtx3090")
    assert [(*pair[:2], *map(str, pair[4:])) for pair in pairs] == [
        ("N y 64 amp", "M x 32", "4/5", "1"),
        ("M x 32", "N y 64 amp", "1", "5/4"),
        ("M x 32", "M x 32", "1/2", "16667/10000"),
    ]
    assert profiles.of("M x 32", "rtx3090") == {
        "family": "M x", "batch": 32, "amp": 0, "speed": 900, "gpu_util": 45, "gmem_util": 20,
        "gmem": 2600,
    }  # fmt: skip
    twice = LUCID + "3,N,y,1,64,1,0.7,M,x,1,32,0,0.8,1,1,1\n"
    said = refusal(FileError, read_lucid_pairs, written(tmp_path, twice), device="g")
    assert "file:5" in said


def test_tables_of_batches_under_mps_become_pairs_where_both_sides_were_measured(
    tmp_path: Path,
) -> None:
    solo = "".join(
        f"{model},{batch},{share},throughput,{rate},latency,{seconds},1\n"
        for model, batch, share, rate, seconds in (
            ("v", 8, 100, 500, 0.016), ("v", 8, 40, 400, 0.02), ("r", 4, 100, 300, 0.013),
            ("r", 4, 60, 200, 0.02), ("r", 4, 40, 150, 0.026),
        )
    )  # fmt: skip
    beside = (
        "v,8,40,r,4,throughput,1,latency,0.025,1\n"
        "r,4,60,v,8,throughput,1,latency,0.022,1\n"
        "r,4,40,v,8,throughput,1,latency,0.03,1\n"  # the other side of it is not there
    )
    points = read_gpulet_table(written(tmp_path, solo), device="a100-80gb")
    table = read_gpulet_pairs(written(tmp_path, beside, "beside"), points, device="a100-80gb")
    pairs, profiles = gpulet_measured_pairs(table, points)
    assert {(*pair[:2], pair.share, *map(str, pair[4:])) for pair in pairs} == {
        ("r 4", "v 8", 40, "16/25", "11/10"),
        ("v 8", "r 4", 60, "6061/10000", "5/4"),
    }
    assert (profiles.of("v 8", "a100-80gb") or {})["family"] == "v"
    rest = [point for point in points if point.profile != "mps:100"]
    assert "mps:100" in refusal(InvalidProblem, gpulet_measured_pairs, table, rest)


USAGE = (
    "pod_id,gpu_spec_public,priority_class,job_type_public,model_type_public,gpu_request,"
    "avg_gpu_sm_util,avg_gpu_mem_gib,day,hour\n"
    + "".join(f"p1,G1,HP,online_inference,rec,1,{10 + hour},9,0,{hour}\n" for hour in range(20))
    + "p2,G1,HP,online_inference,rec,1,27.5,9,0,0\n"
    + "p3,G1,HP,online_inference,rec,0.5,90,9,0,0\np4,G1,HP,training,cv,1,90,9,0,0\n"
    + "p5,G2,LP,training,cv,1,90,9,0,0\np5,G2,LP,training,cv,1,90,11,0,1\n"
    + "p6,G2,LP,training,cv,0.5,9,1,0,0\np7,G1,LP,offline_inference,,1,9,1,0,0\n"
    + "p8,G1,LP,training,cv,8,9,1,0,0\n"
)
TOTAL = {"G1": 81920, "G2": 24576}


def test_usage_by_pod_and_hour_becomes_classes_or_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, USAGE)
    online, offline = read_alibaba_usage(path, memory_total_mib=TOTAL)
    # 19 of 20 hours of p1 are at most 28 %; p2 is rounded up to that
    assert [(each.name, each.count) for each in online] == [("G1 28%, rec, 9216 MiB", 2)]
    assert [(each.name, each.count, each.memory_mib) for each in offline] == [
        ("training cv", 2, 11 * 1024), ("offline_inference unknown", 1, 1024)
    ]  # fmt: skip
    most = read_alibaba_usage(path, memory_total_mib=TOTAL, quantile=1)[0]
    assert [each.sm_activity for each in most] == [29, 28]
    one = {"G2": 1}
    assert "'G1'" in refusal(InvalidProblem, read_alibaba_usage, path, memory_total_mib=one)
    how: Any = {"memory_total_mib": TOTAL, "utilisation": "fraction"}
    assert "avg_gpu_sm_util" in refusal(FileError, read_alibaba_usage, path, **how)


HEADER = "Mig instance,Batch size,Workload Number,Throughput,Latency\r\n"
#: Where the artifact's ``prof_data`` and ``SLO`` may be found; it is not part of this repository.
ARTIFACT = Path(
    os.environ.get("PARVAGPU_ARTIFACT")
    or Path(__file__).resolve().parents[3] / "shared" / "data" / "parvagpu"
)


def test_files_and_folders_become_points_of_what_ran(tmp_path: Path) -> None:
    path = written(tmp_path, HEADER + "1,1,1,74.408,0.013\r\n7,256,3,281.25,2.731\r\n", "bert.csv")
    first, last = read_parvagpu_profiles(path)
    assert first == OperatingPoint("bert", "A100-SXM4-80GB", "1g.10gb", 1, 1, "74.408", 13)
    assert (last.profile, last.processes, last.batch) == ("7g.80gb", 3, 256)
    assert (last.throughput_rps, last.latency_ms) == (Fraction("843.75"), Fraction(2731))
    rows = "1,1,5,0,0\r\n1,2,5,-1,-1\r\n2,1,1,-1,0.1\r\n3,1,1,10,0\r\n4,1,1,10,0.1\r\n"
    path = written(tmp_path, HEADER + rows, "vgg16.csv")
    (point,) = read_parvagpu_profiles(path, device=get_gpu("h200-141gb"))
    assert (point.device, point.profile) == ("h200-141gb", "4g.71gb")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileError, match="no file"):
        read_parvagpu_profiles(tmp_path / "empty")
    for model in ("vgg16", "bert"):
        written(tmp_path, HEADER + "1,1,1,10,0.1", f"{model}.csv")
    assert [point.model for point in read_parvagpu_profiles(tmp_path)] == ["bert", "vgg16"]


def test_demands_are_columns_of_both_files_and_shares_rows(tmp_path: Path) -> None:
    rates = written(tmp_path, "19,353,N/A\r\n46,728,633\r\n", "rates.csv")
    limits = written(tmp_path, "6434,183,N/A\n4294,126,150.5", "limits.csv")  # no newline last
    models = ("bert", "densenet121", "densenet169")
    first, second = read_parvagpu_slo(rates, limits, models=models)
    assert [service.name for service in first] == ["bert", "densenet121"]
    assert [service.name for service in second] == list(models)
    assert (second[2].rate_rps, second[2].latency_limit_ms) == (Fraction(633), Fraction("150.5"))
    rows = ROW + "vgg16,16,100,throughput,1200.5,latency,0.0133,1\n"
    no_measurement = "vgg16,16,40,throughput,0,latency,0,0\n"
    one, other = read_gpulet_table(written(tmp_path, rows + no_measurement), device="a100-80gb")
    assert (one.profile, one.processes, one.batch) == ("mps:40", 1, 8)
    assert (one.throughput_rps, one.latency_ms) == (400, 20)
    assert (other.profile, other.latency_ms) == ("mps:100", Fraction(133, 10))


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
FOUR = ROW.replace(",8,40", ",4,40")
#: Files, the one that is refused, the line, and words of the fault.
REFUSED: list[tuple[dict[str, str], str, int | None, str]] = [
    *(({"bert.csv": text}, "bert.csv", line, what) for text, line, what in (
        (HEADER + "5,1,1,10,0.1\r\n", 2, "Mig instance is 5, expected one of 1, 2, 3, 4, 7"),
        (HEADER + "1,1,1,10,0.1\r\n1,1,1,11,0.1\r\n", 3, "the first is line 2"),
        (HEADER + "1,1,0,10,0.1\r\n", 2, "Workload Number is"),
        (HEADER + "1,1,1,10\r\n", 2, "this row has 4 cells"),
        (HEADER.replace(" size", "") + "1,1,1,1,1", 1, "Batch size"),
    )),
    *(({"rates": one, "limits": two}, file, line, what) for one, two, file, line, what in (
        ("1,2\n", "1,N/A\n", "limits", 1, "b is N/A here and 2 in the other file"),
        ("1,N/A\n", "1,2\n", "rates", 1, "b is N/A here and 2 in the other file"),
        ("1,2\n3,4\n", "1,2\n", "limits", None, "1 scenarios, expected 2"),
        ("1,2,3\n", "1,2\n", "rates", 1, "this row has 3 cells, expected 2"),
        ("1,2\n", "1,0\n", "limits", 1, "expected a number > 0"),
        ("1,-2\n", "1,1\n", "rates", 1, "expected a number >= 0"),
    )),
    *(({"table": ROW + row}, "table", 2, what) for row, what in (
        (ROW, "a second row for vgg16, batch 8 on 40 %; the first is line 1"),
        (ROW.replace("throughput", "thr"), "this cell is 'thr', expected the word throughput"),
        (ROW.replace(",40,", ",140,"), "the share is 140 %, expected 1 to 100"),
        (FOUR.replace("0.02", "0"), 'seconds is "0", expected a number > 0'),
        (FOUR.replace("400", "n"), 'rate is "n", expected a number > 0'),
        ("vgg16,8,40,0.02\n", "this row has 4 cells, expected 8: model, batch"),
    )),
]  # fmt: skip


@pytest.mark.parametrize(("files", "file", "line", "what"), REFUSED)
def test_wrong_files_are_refused_with_their_place(
    tmp_path: Path, files: dict[str, str], file: str, line: int | None, what: str
) -> None:
    paths = [written(tmp_path, text, name) for name, text in files.items()]
    read: Any = {
        "bert.csv": read_parvagpu_profiles,
        "table": partial(read_gpulet_table, device="a100-80gb"),
    }.get(file, partial(read_parvagpu_slo, models=("a", "b")))
    with pytest.raises(FileError) as caught:
        read(*paths)
    assert what in str(caught.value)
    assert (Path(caught.value.path).name, caught.value.line) == (file, line)
