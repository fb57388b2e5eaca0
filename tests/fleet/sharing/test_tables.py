"""Tables become classes and weights; what is odd in them is refused where it stands."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from cms.errors import FileError, InvalidProblem
from cms.fleet.sharing import (
    MeasuredPair,
    OfflineClass,
    OnlineClass,
    SharingProblem,
    read_measured_pairs,
    read_offline,
    read_online,
    share,
    table_weights,
)
from tests.samples import refusal

ONLINE = (
    "gpu,device,sm_activity,memory_used_mib,memory_total_mib,model,slowdown_limit,rack\n"
    "n1/0,a30,20.2,9000,24576,bert,1.2,r1\n"
    "n1/1,a30,20.9,9000,24576,bert,1.2,r2\n"
    "n2/0,a30,60,9000,24576,bert,,r2\n"
)
OFFLINE = "workload,memory_mib,count,model,priority\ntrain,12000,3,resnet50,1\nindex,4000,,,2\n"
PAIRS = (
    "online_model,offline_model,device,share,offline_throughput,online_slowdown\n"
    "bert,resnet50,a30,20,0.3,1.05\n"
    "bert,resnet50,a30,70,0.7,1.15\n"
    "bert,index,a30,20,0.25,1.3\n"
    "bert,index,a30,90,0.5,1.3\n"
)


def table(folder: Path, text: str) -> Path:
    path = folder / "table.csv"
    path.write_text(text, "utf-8")
    return path


def test_tables_become_a_problem_that_is_solved(tmp_path: Path) -> None:
    online = read_online(table(tmp_path, ONLINE), slowdown_limit="1.4")
    assert [(each.name, each.count, each.slowdown_limit) for each in online] == [
        ("a30 21%, bert, 9000 MiB, limit 1.2", 2, Fraction(6, 5)),
        ("a30 60%, bert, 9000 MiB, limit 1.4", 1, Fraction(7, 5)),
    ]
    offline = read_offline(table(tmp_path, OFFLINE))
    assert [(each.name, each.count, each.model) for each in offline] == [
        ("train", 3, "resnet50"), ("index", 1, "index")
    ]  # fmt: skip
    weights = table_weights(read_measured_pairs(table(tmp_path, PAIRS)))
    problem = SharingProblem(online=online, offline=offline, weights=weights)
    # shares of 69 and 30; index slows bert by 1.3, and counts twice
    assert problem.weights.tolist() == [[300_000, -1], [300_000, 500_000]]
    assert share(problem).value == 2 * 300_000 + 500_000


def test_what_is_measured_beside_is_a_note(tmp_path: Path) -> None:
    for name in ("gpu_load", "sm_peak", "p99_ms", "power_limit_w", "uptime_h", "requests"):
        assert read_online(table(tmp_path, ONLINE.replace("rack", name).replace("r1", "7")))
    for name in ("runtime_h", "max_runtime", "submitted_s", "gpu_hours"):
        head, *rows = OFFLINE.splitlines()
        rows = [f"{row},7" for row in rows]
        assert read_offline(table(tmp_path, "\n".join([f"{head},{name}", *rows]) + "\n"))


@pytest.mark.parametrize(
    ("read", "text", "words"),
    [
        (read_online, ONLINE.replace("20.2", "0.2"), "table.csv:2: sm_activity of online class"),
        (read_online, ONLINE.replace("n1/1", "n1/0"), 'gpu "n1/0" is there twice, first on line 2'),
        (read_online, ONLINE.replace("model", "modell"), "the column 'modell' is not known"),
        (read_online, ONLINE.replace("rack", "slo_ms"), "the column 'slo_ms' is not known"),
        (read_online, ONLINE.replace("1.2,r1", "0.9,r1"), "expected a factor >= 1, such as 1.2"),
        (
            read_online,
            ONLINE.replace("20.2", "x"),
            'table.csv:2:10: sm_activity is "x", expected a',
        ),
        (read_online, "gpu,device\n1,2\n", "sm_activity"),
        (read_offline, OFFLINE.replace("index", "train"), 'workload "train" is there twice'),
        (read_offline, OFFLINE.replace("resnet50,1", "resnet50,0"), "expected a number > 0"),
        (read_offline, OFFLINE.replace("3,", "3.5,"), "expected a whole number >= 0"),
        (read_measured_pairs, PAIRS.replace("0.7", "1.7"), "is 1.7, expected at most 1: a part"),
        (
            read_measured_pairs,
            PAIRS.replace("\n", ",1\n").replace("slowdown,1", "slowdown,slo"),
            "the column 'slo' is not known",
        ),
        (read_measured_pairs, PAIRS.replace("70", "20"), "at a share of 20; the first is line 2"),
        (read_measured_pairs, PAIRS.replace("70", "170"), "share is 170, expected whole per cent"),
        (read_measured_pairs, PAIRS.replace("1.05", "0"), "expected a number > 0"),
    ],
)
def test_an_odd_table_is_refused_where_it_is_odd(
    read: Any, text: str, words: str, tmp_path: Path
) -> None:
    assert words in refusal(FileError, read, table(tmp_path, text))


def gpu(activity: int, model: str = "bert", **more: Any) -> OnlineClass:
    return OnlineClass("a30", count=1, sm_activity=activity, model=model, **more)


TRAIN = OfflineClass("train", count=1, model="resnet50", priority="1.5")


def test_weights_are_as_measured_at_shares_around_the_one_left(tmp_path: Path) -> None:
    weights = table_weights(read_measured_pairs(table(tmp_path, PAIRS)))
    found = {a: weights(gpu(a), TRAIN) for a in (0, 20, 21, 70, 71, 86)}
    assert found == {0: 1_050_000, 20: 1_050_000, 21: 450_000, 70: 450_000, 71: None, 86: None}
    limited = {a: weights(gpu(a, slowdown_limit="1.1"), TRAIN) for a in (0, 20, 21, 69, 70, 71)}
    assert limited == {0: None, 20: None, 21: None, 69: None, 70: 450_000, 71: None}
    # nothing was measured at a share as large as 90, so nobody knows the slowdown there
    assert weights(gpu(0, slowdown_limit=9), TRAIN) is None


@pytest.mark.parametrize(
    ("online", "offline", "words"),
    [
        (gpu(20, "bret"), TRAIN, "no online model 'bret' was measured; nearest: 'bert'"),
        (
            gpu(20, ""),
            TRAIN,
            "beside online class 'a30 20%' (no model) on 'a30'; give the online side a model, in "
            "the column 'model' of its table",
        ),
        (gpu(20), OfflineClass("resnet5", count=1), "no offline model 'resnet5' was measured"),
        (
            OnlineClass("a3", count=1, sm_activity=20, model="bert"),
            TRAIN,
            "offline class 'train' (resnet50) was never measured beside online class "
            "'a3 20%, bert' (bert) on 'a3'; no device 'a3' was measured; nearest: 'a30'",
        ),
    ],
)
def test_a_pair_that_was_never_measured_is_never_guessed(
    online: OnlineClass, offline: OfflineClass, words: str, tmp_path: Path
) -> None:
    weights = table_weights(read_measured_pairs(table(tmp_path, PAIRS)))
    assert words in refusal(InvalidProblem, weights, online, offline)


def test_a_pair_that_is_there_twice_is_refused() -> None:
    pair = MeasuredPair("bert", "resnet50", "a30", 20, Fraction(1, 2), Fraction(1))
    words = "'resnet50' beside 'bert' on 'a30' is there twice at a share of 20; keep one"
    assert refusal(InvalidProblem, table_weights, [pair, pair]) == words


def test_who_has_waited_longer_counts_for_more_in_steps(tmp_path: Path) -> None:
    text = (
        "workload,memory_mib,priority,waiting_s\n"
        "new,0,2,0\nnearly,0,2,899.9\nquarter,0,2,900\nold,0,0.5,7300\nunsaid,0,,\n"
    )
    path = table(tmp_path, text)
    found = [each.priority for each in read_offline(path, waiting_scale=3600)]
    assert found == [2, 2, Fraction(5, 2), Fraction(3, 2), 1]
    assert [each.priority for each in read_offline(path)] == [2, 2, 2, Fraction(1, 2), 1]


def test_a_workload_that_waited_is_placed_before_a_better_one_that_did_not(tmp_path: Path) -> None:
    """And the plan is proved for the weights with the waiting in them."""
    text = "workload,memory_mib,waiting_s\nfast,0,0\nslow,0,{}\n"
    for waited, placed in ((0, "fast"), (3600, "slow")):
        problem = SharingProblem(
            online=[OnlineClass("a30", count=1, sm_activity=20)],
            offline=read_offline(table(tmp_path, text.format(waited)), waiting_scale=3600),
            weights=lambda _, work: int(
                (600_000 if work.name == "fast" else 400_000) * work.priority
            ),
        )
        solution = share(problem)
        assert [pair.offline for pair in solution.plan] == [placed]
        assert solution.gap == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("workload,memory_mib\nx,0\n", "waiting_s"),
        ("workload,memory_mib,waiting_s\nx,0,-5\n", "-5"),
        ("workload,memory_mib,waiting_s\nx,0,1e12\n", "with its waiting the priority is"),
        ("workload,memory_mib,waited_s\nx,0,7\n", "waited_s"),
    ],
)
def test_odd_waiting_is_refused_where_it_stands(text: str, words: str, tmp_path: Path) -> None:
    message = refusal(
        FileError, lambda path: read_offline(path, waiting_scale=60), table(tmp_path, text)
    )
    assert words in message
