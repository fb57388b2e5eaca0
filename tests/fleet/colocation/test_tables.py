"""Tables become classes and weights; what is odd in them is refused where it stands."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.colocation_figures.matching import falling, single_gpus
from cms.errors import FileError, InvalidProblem
from cms.files import lay_out
from cms.fleet import (
    read_colocation_problem,
    read_colocation_solution,
    write_colocation_problem,
    write_colocation_solution,
)
from cms.fleet.colocation import (
    ColocationProblem,
    MeasuredPair,
    NamedGpus,
    OfflineClass,
    OnlineClass,
    assign,
    buckets,
    colocate,
    read_measured_pairs,
    read_offline,
    read_online,
    read_profiles,
    table_weights,
)
from cms.fleet.colocation.edge_problems import SHARING_EDGE_PROBLEMS
from cms.fleet.colocation.files import (
    colocation_problem_from_json,
    colocation_problem_to_json,
    colocation_solution_from_json,
    colocation_solution_to_json,
)
from cms.fleet.colocation.solution import colocation_faults
from cms.fleet.colocation.tables import merge
from instances.families.colocation import random_classes as drawn
from proofs_checks import checker
from tests.files.test_schemas import require_valid, validator
from tests.fleet.plans import set_at
from tests.property.problems import share as share_of_examples
from tests.samples import few, refusal

ONLINE = (
    "gpu,device,sm_activity,memory_used_mib,memory_total_mib,model,slowdown_limit,rack\n"
    "n1/0,a30,20.2,9000,24576,bert,1.2,r1\n"
    "n1/1,a30,20.9,9000,24576,bert,1.2,r2\n"
    "n2/0,a30,60,9000,24576,bert,,r2\n"
)
OFFLINE = "workload,memory_mib,count,model,priority\ntrain,12000,3,resnet50,1\nindex,4000,,,2\n"
PAIRS = (
    "online_model,offline_model,device,share,offline_throughput,online_slowdown\n"
    "bert,resnet50,a30,20,0.3,1.05\nbert,resnet50,a30,70,0.7,1.15\n"
    "bert,index,a30,20,0.25,1.3\nbert,index,a30,90,0.5,1.3\n"
)
WAITING = (
    "workload,memory_mib,priority,waiting_s\n"
    "new,0,2,0\nnearly,0,2,899.9\nquarter,0,2,900\nold,0,0.5,7300\nunsaid,0,,\n"
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
    problem = ColocationProblem(online=online, offline=offline, weights=weights)
    # shares of 69 and 30; index slows bert by 1.3, and counts twice
    assert problem.weights.tolist() == [[300_000, -1], [300_000, 500_000]]
    assert colocate(problem).value == 2 * 300_000 + 500_000


def read_waiting(path: Path) -> object:
    return read_offline(path, waiting_scale=60)


@pytest.mark.parametrize(
    ("read", "text", "words"),
    [
        (read_online, ONLINE.replace("20.2", "0.2"), "table.csv:2: sm_activity of online class"),
        (read_online, ONLINE.replace("n1/1", "n1/0"), "table.csv:3:1: a second row for gpu 'n1/0'"),
        (read_online, ONLINE.replace("model", "modell"), "'modell'"),
        (read_online, ONLINE.replace("rack", "slo_ms"), "'slo_ms'"),
        (read_online, ONLINE.replace("20.2", "x"), 'table.csv:2:10: sm_activity is "x"'),
        (
            read_offline,
            OFFLINE.replace("index", "train"),
            "table.csv:3:1: a second row for workload 'train'",
        ),
        (read_offline, OFFLINE.replace("3,", "3.5,"), 'table.csv:2:13: count is "3.5"'),
        (read_measured_pairs, PAIRS.replace("70", "20"), "a share of 20; the first is line 2"),
        (read_measured_pairs, PAIRS.replace("70", "170"), "share is 170"),
        (read_waiting, "workload,memory_mib\nx,0\n", "waiting_s"),
        (read_offline, "workload,memory_mib,waiting_s\nx,0,abc\n", 'waiting_s is "abc"'),
        (read_waiting, "workload,memory_mib,waiting_s\nx,0,1e12\n", "the priority is"),
        (read_profiles, "model\nbert\n", "table.csv:2"),
        (read_profiles, "model,batch\nbert,1\nbert,2\n", "a second row for 'bert'"),
    ],
)
def test_an_odd_table_is_refused_where_it_is_odd(
    read: Any, text: str, words: str, tmp_path: Path
) -> None:
    assert words in refusal(FileError, read, table(tmp_path, text))


def test_pairs_of_names_with_blanks_are_told_apart(tmp_path: Path) -> None:
    head, cells = PAIRS.splitlines()[0], "d,20,0.5,1.1"
    rows = f"z,x beside y,{cells}\ny beside z,x,{cells}\n"
    assert len(read_measured_pairs(table(tmp_path, f"{head}\n{rows}"))) == 2


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
    for online, offline, words in (
        (gpu(20, "bret"), TRAIN, "nearest: 'bert'"),
        (gpu(20, ""), TRAIN, "(no model)"),
        (gpu(20), OfflineClass("resnet5", count=1), "offline model 'resnet5'"),
        (OnlineClass("a3", count=1, sm_activity=20, model="bert"), TRAIN, "nearest: 'a30'"),
    ):
        assert words in refusal(InvalidProblem, weights, online, offline)
    pair = MeasuredPair("bert", "resnet50", "a30", 20, Fraction(1, 2), Fraction(1))
    assert "share of 20" in refusal(InvalidProblem, table_weights, [pair, pair])


def test_who_has_waited_longer_counts_for_more_in_steps(tmp_path: Path) -> None:
    path = table(tmp_path, WAITING)
    found = [each.priority for each in read_offline(path, waiting_scale=3600)]
    assert found == [2, 2, Fraction(5, 2), Fraction(3, 2), 1]
    assert [each.priority for each in read_offline(path)] == [2, 2, 2, Fraction(1, 2), 1]


@st.composite
def fleets(draw: Any) -> tuple[ColocationProblem, list[NamedGpus]]:
    kinds = st.tuples(
        st.integers(0, 4), st.sampled_from([10, 50, 95]), st.sampled_from([None, "f0", "f1"])
    )
    rows = [
        NamedGpus(f"n{i}", OnlineClass("a30", count=count, sm_activity=activity, running=runs))
        for i, (count, activity, runs) in enumerate(draw(st.lists(kinds, min_size=1, max_size=8)))
    ]
    classes = merge([row.online for row in rows])[0]
    weight = st.integers(-1, 9)
    weights = [[draw(weight), draw(weight)] for _ in classes]
    work = [OfflineClass(f"f{k}", count=draw(st.integers(0, 9))) for k in range(2)]
    return ColocationProblem(online=classes, offline=work, weights=weights), rows


@share_of_examples(2)
@given(fleets())
def test_rows_get_what_the_plan_has_and_who_runs_already_stays(
    made: tuple[ColocationProblem, list[NamedGpus]],
) -> None:
    problem, rows = made
    plan = colocate(problem).plan
    assigned = assign(problem, plan, rows)
    online = {row.gpu: row.online for row in rows}
    gpus: Counter[str] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    stays: Counter[str] = Counter()
    for each in assigned:
        of = online[each.gpu]
        gpus[each.gpu] += each.count
        stays[of.name] += each.count * each.stays
        assert each.stays == (each.workload is not None and each.workload == of.running)
        share_left = problem.shares[problem.online_index[of.name]]
        assert each.share == (share_left if each.workload else 0)
        if each.workload:
            pairs[of.name, each.workload] += each.count
    assert gpus == {row.gpu: row.online.count for row in rows if row.online.count}
    assert pairs == dict(plan.counts)
    for gpus_of in problem.online:
        wanted = plan.counts.get((gpus_of.name, gpus_of.running), 0) if gpus_of.running else 0
        assert stays[gpus_of.name] == wanted


@pytest.mark.parametrize("case", few(3, [(s, t) for s in range(20) for t in (1, 2, 5)]))
def test_the_true_value_is_between_two_certified_ones_that_are_near_each_other(
    case: tuple[int, int],
) -> None:
    seed, step = case
    gpus, work = single_gpus(60, 5, seed)
    problem = ColocationProblem(online=gpus, offline=work, weights=falling)
    both = buckets(online=gpus, offline=work, weights=falling, step=step)
    up, true, down = colocate(both.up), colocate(problem), colocate(both.down)
    assert (up.gap, true.gap, down.gap) == (0, 0, 0)
    assert up.value <= true.value <= down.upper_bound
    # 0.5 to 1.02 % at whole per cent, of 600 GPUs and 10 classes drawn like this
    assert 100 * (down.upper_bound - up.value) <= 2 * step * down.upper_bound
    assert len(both.up.online) < len(problem.online)
    assert sum(each.count for each in both.up.online) == 60


def test_only_activities_are_rounded_and_weights_that_rise_with_them_are_refused() -> None:
    online = [
        OnlineClass("gpu", count=2, sm_activity="20.5"),
        OnlineClass("gpu", count=3, sm_activity="20.7"),
        OnlineClass("gpu", count=4, sm_activity="20.7", model="bert"),
    ]
    both = buckets(online=online, offline=[], weights=lambda *_: 1)
    assert [(each.name, each.count) for each in both.up.online] == [
        ("gpu 21%", 5), ("gpu 21%, bert", 4)
    ]  # fmt: skip
    assert [each.sm_activity for each in both.down.online] == [20, 20]
    work = [OfflineClass("w", count=1)]
    for how, words in (
        ({}, "'w' beside 'gpu 20.5%' is worth 20500, and 21000"),
        ({"step": 0}, "0"),
    ):
        said = refusal(
            InvalidProblem, buckets, online=online, offline=work,
            weights=lambda gpu, _: int(1000 * gpu.sm_activity), **how,
        )  # fmt: skip
        assert words in said


Document = dict[str, Any]
ROOT = Path(__file__).resolve().parents[3]

EXAMPLE = ColocationProblem(
    online=[
        OnlineClass(
            "a100-80gb", count=600, sm_activity="22.5", memory_mib=9_000, memory_total_mib=81_920,
            model="bert", slowdown_limit="1.2", running="train", name="quiet",
        ),
        OnlineClass("a30", count=40, sm_activity=60, memory_total_mib=24_576, name="busy"),
        OnlineClass("a30", count=5, sm_activity=90, memory_total_mib=24_576, name="full"),
    ],
    offline=[
        OfflineClass("train", count=500, memory_mib=30_000, priority="1.5", model="resnet50"),
        OfflineClass("index", count=900, memory_mib=4_000),
    ],
    weights=[[960_000, 550_000], [100_000, 280_000], [5, 5]],
)  # fmt: skip
SOLVED = colocate(EXAMPLE)


def documents() -> tuple[Document, Document]:
    """As a reader of files has them."""
    pair = colocation_problem_to_json(EXAMPLE), colocation_solution_to_json(EXAMPLE, SOLVED)
    return json.loads(lay_out(pair[0])), json.loads(lay_out(pair[1]))


@pytest.mark.parametrize("seed", [*range(len(SHARING_EDGE_PROBLEMS)), *few(5, range(100, 200))])
def test_what_is_written_is_read_again_fits_its_schema_and_passes_both_checkers(
    seed: int, tmp_path: Path
) -> None:
    edges = seed < len(SHARING_EDGE_PROBLEMS)
    problem: Any = SHARING_EDGE_PROBLEMS[seed].make() if edges else drawn(seed - 100, 40)
    solution, paths = colocate(problem), (tmp_path / "problem.json", tmp_path / "share.json")
    write_colocation_problem(problem, paths[0])
    write_colocation_solution(problem, solution, paths[1])
    assert read_colocation_problem(paths[0]) == problem
    assert read_colocation_solution(paths[1], problem) == solution
    assert list(colocation_faults(problem, solution)) == []
    texts = [path.read_text("utf-8") for path in paths]
    assert checker.check_colocation(*map(checker.parse_document, texts)) == []
    require_valid("colocation-problem", json.loads(texts[0]))
    require_valid("colocation-solution", json.loads(texts[1]))


def test_every_field_of_the_schemas_is_in_the_documentation() -> None:
    text = (ROOT / "docs" / "guides" / "colocation.md").read_text("utf-8")
    for kind in ("colocation-problem", "colocation-solution", "colocation-day"):
        validator(kind).check_schema(validator(kind).schema)
        missing = {name for name in fields_in(validator(kind).schema) if f"`{name}`" not in text}
        assert missing <= {"format", "schema"}


def fields_in(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        yield from schema.get("properties", {})
    for part in schema.values() if isinstance(schema, dict) else schema:
        if isinstance(part, dict | list):
            yield from fields_in(part)


#: A single number or word each: plan, prices, counts, value, bound; then of the problem.
CORRUPTIONS: list[tuple[str, Any]] = [
    ("plan.2.count", 501), ("plan.0.count", 41), ("plan.0.share", 31),
    ("plan.0.offline", "train"), ("value", SOLVED.value + 1), ("gap", 1),
    ("upper_bound", SOLVED.upper_bound - 1), ("certificate.online.quiet", 549_999),
    ("certificate.offline.trian", 1), ("problem_sha256", "0" * 64), ("proof", "none"),
    ("status", "feasible"), ("seconds", -1), ("history.0.value", SOLVED.value + 1),
    ("history.0.upper_bound", SOLVED.upper_bound - 1), ("problem.margin", "10"),
    ("problem.online.0.weights.0", 960_001), ("problem.online.0.weights", [1]),
    ("problem.online.2.weights.1", 5), ("problem.online.0.running", "trian"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value"), CORRUPTIONS)
def test_a_single_corruption_is_refused_by_both(path: str, value: Any) -> None:
    problem, solution = documents()
    assert verdicts(problem, solution) == (True, True)
    set_at({"problem": problem} if path.startswith("problem.") else solution, path, value)
    assert verdicts(problem, solution) == (False, False)


def verdicts(problem: Document, solution: Document) -> tuple[bool, bool]:
    """Whether the package passes the documents, and whether the second checker does."""
    try:
        posed = colocation_problem_from_json(problem)
        ours = not list(colocation_faults(posed, colocation_solution_from_json(solution, posed)))
    except FileError:
        ours = False
    texts = map(json.dumps, (problem, solution))
    return ours, not checker.check_colocation(*map(checker.parse_document, texts))
