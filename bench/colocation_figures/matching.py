"""Figures 1 to 5: matchings against scipy's, their size, their proofs, parts and buckets."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.expected import Line
from bench.processes import run_task
from bench.row import Outcome, RunRow
from bench.suites.colocation import MODULE, OURS, PARTED, SIZES
from bench.suites.colocation import tasks as suite_tasks
from bench.suites.suite import Settings
from bench.task import Kind, Source
from cms.files import lay_out
from cms.fleet.colocation import ColocationProblem, OfflineClass, OnlineClass, buckets, colocate
from cms.fleet.colocation.files import colocation_problem_to_json, colocation_solution_to_json
from instances.families.colocation import random_classes
from proofs_checks.checker import check_colocation, parse_document

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: CPU seconds that a size of the suite may take, by its online and offline classes.
_SECONDS = {(85, 30): 1, (1_065, 100): 2, (1_065, 300): 5}
#: Bytes, where 20,000 GPUs are matched.
_MEMORY = 300 * 10**6
#: GPUs whose matching may cost no more than that of 20,000.
_VAST = 10**12


def best_value(problem: ColocationProblem) -> int:
    """Return what the best plan is worth by scipy's assignment of single GPUs.

    Every GPU and every workload may stay alone, so a pair that is forbidden counts as 0.
    """
    from scipy.optimize import linear_sum_assignment

    rows = np.repeat(np.arange(len(problem.online)), [o.count for o in problem.online])
    columns = np.repeat(np.arange(len(problem.offline)), [f.count for f in problem.offline])
    single: NDArray[np.int64] = np.maximum(problem.weights[rows][:, columns], 0)
    if not single.size:
        return 0
    chosen: Any = linear_sum_assignment(single, maximize=True)
    return int(single[chosen].sum())


def agreement_figure(instances: int) -> Iterator[Line]:
    """Figure 1: values and proofs of random problems."""
    same = proved = 0
    for seed in range(instances):
        problem = random_classes(seed, 200 if seed % 4 == 0 else 60)
        solution = colocate(problem)
        same += solution.value == best_value(problem)
        proved += solution.proof == "checked" and solution.gap == 0
    of = "random problems of at most 200 GPUs"
    yield Line("1", f"{of}: the value is scipy's", f"{instances}", f"{same}", same == instances)
    yield Line("1", f"{of}: gap 0, checked", f"{instances}", f"{proved}", proved == instances)


def size_figure(largest: int) -> Iterator[Line]:
    """Figure 2: CPU seconds and memory, each size in a process of its own."""
    usual: float | None = None
    for row in _rows(largest, parts=False):
        gpus, classes = row.arguments["gpus"], (row.arguments["online"], row.arguments["offline"])
        most = _SECONDS.get(classes)
        if most is None or gpus < PARTED:
            continue
        good, cpu = _proved(row), row.measurements.get("cpu_seconds", float("inf"))
        of = f"{gpus:,} GPUs in {classes[0]:,} x {classes[1]} classes, CPU"
        yield Line("2", of, f"<= {most} s, gap 0", f"{cpu:.2f} s", good and cpu <= most)
        if gpus == PARTED:
            usual, peak = cpu, row.peak_memory or 0
            said = f"{peak / 10**6:.0f} MB"
            yield Line("2", f"{gpus:,} GPUs, memory", "<= 300 MB", said, 0 < peak <= _MEMORY)
    arguments = {"gpus": _VAST, "online": SIZES[1][1], "offline": SIZES[1][2], "seed": 0}
    source = Source(family="shared-gpus", arguments=arguments, module=MODULE)
    vast = Settings(time_limit=120).tasks(Kind.SHARE, "colocation", source, [OURS], fresh=True)
    row = run_task(next(vast), 1)
    cpu = row.measurements.get("cpu_seconds", float("inf"))
    said = f"{cpu:.2f} s" if usual is None else f"{cpu:.2f} s, {usual:.2f} s"
    holds = _proved(row) and (usual is None or cpu <= 2 * usual + 0.1)
    yield Line("2", f"10^12 GPUs, and {PARTED:,}, in as many classes", "the same", said, holds)


def _rows(largest: int, *, parts: bool) -> Iterator[RunRow]:
    settings = Settings(methods=(OURS,), seeds=1, largest=largest, time_limit=120)
    for task in suite_tasks(settings):
        if ("parts" in task.options) == parts:
            yield run_task(task, 1)


def _proved(row: RunRow) -> bool:
    return row.outcome is Outcome.ANSWERED and row.proof == "checked" and row.gap == 0


def parts_figure() -> Iterator[Line]:
    """Figure 4: what random parts lose, and what is certified that they do at most."""
    whole = [row for row in _rows(PARTED, parts=False) if row.arguments["gpus"] == PARTED]
    best = whole[0].measurements["value"]
    for row in _rows(PARTED, parts=True):
        found = row.measurements
        certified = (found["upper_bound"] - found["value"]) / found["upper_bound"]
        lost, n = (best - found["value"]) / best, row.options["parts"]
        most = 0.001 if n > 16 else 0.0005
        said = f"{certified:.4%}, truly {lost:.4%}"
        holds = 0 <= lost <= certified <= most
        of = f"{PARTED:,} GPUs in {n} parts: certified loss"
        yield Line("4", of, f"<= {most:.2%}, and no less than the true one", said, holds)


# -- proofs in files -------------------------------------------------------------------------------


def corruptions(solution: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield ten copies of a solution's document, each with one number that is wrong."""
    pair = solution["plan"][0]
    prices = solution["certificate"]
    side, name = next(
        (side, pair[side]) for side in ("online", "offline") if prices[side].get(pair[side])
    )
    last = len(solution["history"]) - 1
    changes: list[tuple[str, tuple[str | int, ...], int]] = [
        ("a count beyond all counts", ("plan", 0, "count"), 10**9),
        ("a count of 0", ("plan", 0, "count"), 0),
        ("a count that is 1 less", ("plan", 0, "count"), pair["count"] - 1),
        ("another share", ("plan", 0, "share"), pair["share"] - 1),
        ("a higher value", ("value",), solution["value"] + 1),
        ("a lower bound", ("upper_bound",), solution["upper_bound"] - 1),
        ("another gap", ("gap",), 1),
        ("a lower price", ("certificate", side, name), prices[side][name] - 1),
        ("a price below 0", ("certificate", side, name), -1),
        ("a history below the bound", ("history", last, "upper_bound"), solution["value"] - 1),
    ]
    for what, path, value in changes:
        changed: Any = copy.deepcopy(solution)
        place = changed
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value
        yield what, changed


def proof_figure(instances: int) -> Iterator[Line]:
    """Figure 3: the independent checker on documents of random problems."""
    asked = accepted = refused = wrong = 0
    for seed in range(instances):
        problem = random_classes(seed, 40)
        solution = colocate(problem)
        documents = [
            json.loads(lay_out(document))
            for document in (
                colocation_problem_to_json(problem), colocation_solution_to_json(problem, solution)
            )
        ]  # fmt: skip
        asked += 1
        accepted += not _faults(*documents)
        if not any(problem.weight(pair.online, pair.offline) for pair in list(solution.plan)[:1]):
            continue
        for _, changed in corruptions(documents[1]):
            wrong += 1
            refused += bool(_faults(documents[0], changed))
    of = "the independent checker"
    yield Line("3", f"{of} accepts", f"{asked}", f"{accepted}", asked == accepted)
    said = f"{refused} of {wrong}"
    of = f"{of} refuses, of ten single numbers a solution that are wrong"
    yield Line("3", of, "all", said, refused == wrong > 0)


def _faults(problem: dict[str, Any], solution: dict[str, Any]) -> list[str]:
    return check_colocation(*(parse_document(json.dumps(each)) for each in (problem, solution)))


# -- buckets ---------------------------------------------------------------------------------------


def single_gpus(gpus: int, classes: int, seed: int) -> tuple[list[OnlineClass], list[OfflineClass]]:
    """Draw GPUs with activities to hundredths, and workloads; ``falling`` has their weights."""
    rng = random.Random(seed)
    activities = [Fraction(int(10_000 * rng.betavariate(2, 6)), 100) for _ in range(gpus)]
    activities = [a if a == 0 or a >= 1 else Fraction(1) for a in activities]
    work = [
        OfflineClass(
            f"w{j}", count=gpus * 5 // 4 // classes,
            model=f"{rng.randint(10, 100)}-{rng.randint(0, 60)}",
        )
        for j in range(classes)
    ]  # fmt: skip
    online = [
        OnlineClass("gpu", count=1, sm_activity=a, name=f"gpu{i}") for i, a in enumerate(activities)
    ]
    return online, work


def falling(gpu: OnlineClass, work: OfflineClass) -> int | None:
    """Weigh a pair: by the share, and by how much the model minds; it falls with activity."""
    demand, sensitivity = (int(part) for part in work.model.split("-"))
    left = max(Fraction(0), 90 - gpu.sm_activity)
    fast = min(Fraction(1), left / demand) * (1 - sensitivity * gpu.sm_activity / 10_000)
    return int(10**6 * fast) if left else None


def bucket_figure(gpus: int, draws: int) -> Iterator[Line]:
    """Figure 5: what rounding activities to whole per cent costs at most."""
    costs, proved = [], True
    for seed in range(draws):
        online, work = single_gpus(gpus, 10, seed)
        up, down = (
            colocate(each) for each in buckets(online=online, offline=work, weights=falling)
        )
        proved = proved and up.gap == down.gap == 0
        costs.append((down.upper_bound - up.value) / down.upper_bound)
    said = f"{sum(costs) / draws:.2%}, at most {max(costs):.2%}"
    of = f"{gpus} GPUs, activities in whole per cent, {draws} draws: both values"
    yield Line("5", of, "within 1 %", said, proved and max(costs) <= 0.01)
