"""Published forms of measurements become pairs, profiles and classes; odd files are refused.

The files here are made up, of the same forms.
"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

from bench.importers import (
    gpulet_measured_pairs,
    read_alibaba_usage,
    read_gavel_pairs,
    read_lucid_pairs,
    write_measured_pairs,
)
from bench.importers.gpulet import read_gpulet_pairs, read_gpulet_table
from cms.errors import FileError, InvalidProblem
from cms.fleet.colocation import write_profiles
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
    path.write_text(text, "utf-8")
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
