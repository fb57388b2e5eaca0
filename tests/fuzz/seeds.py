"""Valid documents of every kind, small enough to be read and checked in milliseconds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

from cms import (
    BlocksOfJob,
    Branch,
    Configuration,
    MachineGroup,
    MachinesOfConfiguration,
    Mix,
    MixPrices,
    PriceFunction,
    Schedule,
    Solution,
    TimeSharedJob,
    TimeSharedProblem,
    solve,
)
from cms.certificate.certificate import BlockPrices
from cms.files import lay_out, problem_to_json, solution_to_json
from cms.fleet.colocation import (
    ColocationProblem,
    MeasuredPair,
    OfflineClass,
    OnlineClass,
    colocate,
    train_predictor,
)
from cms.fleet.colocation.edge_problems import SHARING_EDGE_PROBLEMS
from cms.fleet.colocation.files import colocation_problem_to_json, colocation_solution_to_json
from cms.fleet.colocation.predictor.files import predictor_to_json
from cms.fleet.hardware.catalogue import _DEVICES
from cms.fleet.serving import LoadCurve, OperatingPoint, Plan, Service, build_problem, plan_to_json
from cms.infeasibility.shortage import explain_infeasibility
from cms.problem.parts import SizeBoundedConfigurations
from cms.solving.solution import Proof, Status, StopReason
from tests.cli.shared import OFFLINE, ONLINE, PAIRS, POINTS
from tests.cli.shared import SERVICES as SERVICE_COLUMNS
from tests.families import instance
from tests.files.documents import PROBLEM
from tests.fleet.transition.test_reorganising import plan
from tests.fuzz import fleets
from tests.proofs_checks.documents import (
    BY_WORD,
    INFEASIBLE,
    INFEASIBLE_BY_WORD,
    NOTHING,
    ONE_IS_TOO_FEW,
    SERVICES,
    SOLUTION,
    WEAK,
)

Document = dict[str, Any]
# Of tests.families.
FAMILIES = ("groups", "machine_types", "max_blocks", "infeasible_by_limit", "long_numbers", "edges")
TABLES = [
    (
        "chat,bert,100,100\nimages,vgg,50.5,250\n",
        "bert,a30-24gb,1g.6gb,1,2,30,20\nbert,a30-24gb,2g.12gb,2,4,70.25,30\n"
        "vgg,a30-24gb,4g.24gb,1,8,75.5,90\n",
    ),
    (
        '"a, ""b""",m,1/3,1e3\r\n# a comment\r\n\r\nc,m,0,12.5',
        "m,A30,2g.12gb,1,1,12,80\nm,NVIDIA A30,mps:40,1,16,20,800\nm,a30-24gb,mps:10,1,1,5,200\n",
    ),
]  # fmt: skip


class Seed(NamedTuple):
    """A valid document, or several that belong together: texts by the names of their files."""

    kind: str
    files: dict[str, str]


def documents() -> dict[str, list[Document]]:
    """A plan; and pairs of a problem and a solution: with branches, and with a shortage."""
    service = Service("chat", "bert", 100, 100, ["1g.10gb", "2g.20gb"], {"team": "a"})
    points = [
        OperatingPoint("bert", "a100-80gb", profile, 1, 2, rate, 33)
        for profile, rate in (("1g.10gb", 20), ("2g.20gb", "45.5"))
    ]
    serving = build_problem([service], points, max_processes=2, rule="parvagpu")
    solution = solve(serving.problem)
    shape = serving.problem.listed_configurations[0]
    leaf = BlockPrices(multipliers=[0, 0])
    inner = Branch(BlocksOfJob("1g.10gb", "chat"), 3, leaf, leaf)
    proving_nothing = replace(
        solution, status=Status.FEASIBLE, proof=Proof.NONE, stop_reason=StopReason.FINISHED,
        certificate=Branch(MachinesOfConfiguration(shape), 1, inner, inner),
        lower_bound=Fraction(0),
        history=(),
    )  # fmt: skip
    few = build_problem([service], points, limits={"a100-80gb": 0}, rule="parvagpu").problem
    return {
        "plan": [plan_to_json(Plan(serving, solution))],
        "branches": [problem_to_json(serving.problem), solution_to_json(proving_nothing)],
        "shortage": [
            problem_to_json(few),
            solution_to_json(solve(few), explain_infeasibility(few)),
        ],
    }


def _shared_plan() -> Document:
    """A plan for two kinds of GPUs, one of them shared under MPS, with a service nobody serves."""
    services = [Service("chat", "bert", 40, 100), Service("hasty", "bert", 1, 1)]
    points = [
        OperatingPoint("bert", "a30-24gb", "mps:40", 1, 2, 12, 33),
        OperatingPoint("bert", "a30-24gb", "2g.12gb", 2, 2, 25, 33),
        OperatingPoint("bert", "h100-80gb", "3g.40gb", 1, 2, "60.5", 20),
    ]
    serving = build_problem(
        services, points, ["a30-24gb", "h100-80gb"], costs={"h100-80gb": "2.5"}, rule="parvagpu"
    )
    return plan_to_json(Plan(serving, solve(serving.problem)))


def _promising_plan() -> Document:
    """A plan by load: a point with a load curve, one that the table speaks for, and a margin."""
    services = [
        Service("chat", "bert", 40, 100, late_share="0.05"),
        Service("mail", "vgg", 20, 200, queue="process"),
    ]
    points = [
        OperatingPoint("bert", "a30-24gb", "2g.12gb", 1, 1, 60, 17),
        OperatingPoint("bert", "a30-24gb", "2g.12gb", 1, 4, 100, 40),
        OperatingPoint("vgg", "a30-24gb", "1g.6gb", 2, 2, 50, 80),
    ]
    curve = LoadCurve([10, 50, "99.5"], ["41.5", 60, 250], evidence="simulated")
    curves = {("bert", "a30-24gb", "2g.12gb", 1, 4): curve}
    serving = build_problem(services, points, "a30-24gb", load_curves=curves, rate_margin="0.1")
    return plan_to_json(Plan(serving, solve(serving.problem)))


def _time_shared() -> tuple[Document, Document]:
    """Two jobs that share a block, its price, and what they pay for it."""
    pair = Configuration({"60": 1, "40": 1}, "machine")
    problem = TimeSharedProblem(
        configurations=[pair, SizeBoundedConfigurations({"40": 40}, 100)],
        jobs=[
            TimeSharedJob("x", 250, "0.044", {"60": [(8, "0.012"), (16, "0.02")]}),
            TimeSharedJob("y", 125, "0.052", {"60": [(4, "0.02")], "40": [("3.5", "0.02")]}),
        ],
        max_jobs=2,
    )
    solution = Solution(
        status=Status.OPTIMAL, proof=Proof.CHECKED, stop_reason=StopReason.PROVED,
        method="by hand", seconds=0.0,
        schedule=Schedule([MachineGroup(pair, {("60", Mix({"x": 8, "y": 4})): 1}, 1)]),
        cost=Fraction(1),
        certificate=MixPrices({"60": 1}, functions={"x": PriceFunction("1/4", [("1/250", "1/9")])}),
        lower_bound=Fraction(1), claimed_bound=None, guarantee=None, history=(),
        problem_sha256=problem.sha256,
    )  # fmt: skip
    return problem_to_json(problem), solution_to_json(solution)


@cache
def seeds() -> tuple[Seed, ...]:
    """All of them; made once."""
    made = documents()
    pairs: list[Iterable[Document]] = [
        (SERVICES, SOLUTION), (SERVICES, WEAK), (SERVICES, BY_WORD), (SERVICES, NOTHING),
        (ONE_IS_TOO_FEW, INFEASIBLE), (ONE_IS_TOO_FEW, INFEASIBLE_BY_WORD),
        made["branches"], made["shortage"], _time_shared(),
    ]  # fmt: skip
    problems = [PROBLEM]
    for family in FAMILIES:
        posed = instance(family, 0)
        pairs.append((problem_to_json(posed), solution_to_json(solve(posed, threads=1))))
    found = []
    for problem, solution in pairs:
        files = {"problem.json": lay_out(problem), "solution.json": lay_out(solution)}
        found.append(Seed("solution", files))
        problems.append(files["problem.json"])
    found += [Seed("problem", {"problem.json": text}) for text in dict.fromkeys(problems)]
    found += [Seed("plan", {"plan.json": lay_out(p)})
              for p in (made["plan"][0], _shared_plan(), _promising_plan(),
                        plan_to_json(plan(150, 50)))]  # fmt: skip
    tables = [
        {"services.csv": SERVICE_COLUMNS + services, "points.csv": POINTS + points}
        for services, points in TABLES
    ]
    found += [Seed("tables", files) for files in tables]
    for key in ("a30-24gb", "rtx-pro-6000-96gb"):
        text = (_DEVICES / f"{key}.json").read_text("utf-8")
        plain = "".join(f"{k}: {json.dumps(v)}\n" for k, v in json.loads(text).items())
        points = "".join(
            f"bert,{key},{profile['name']},1,1,{10 * profile['compute']},9\n"
            for profile in json.loads(text)["profiles"]
        )
        beside = {"services.csv": tables[0]["services.csv"].replace("vgg", "bert")}
        beside["points.csv"] = POINTS + points
        found += [Seed("device", {name: body, **beside}) for name, body in
                  (("device.json", text), ("device.yaml", plain))]  # fmt: skip
    events = "seconds,what,target,value\n1,rate,chat,1.5\n2,fail,gpu:0,2\n3,weight,chat:0,1/2\n"
    trace = "TIMESTAMP,Tokens\n2023-11-16 18:15:46.6805900,374\n2023-11-16 18:15:50.99,3\n"
    for document, moments in ((made["plan"][0], trace), (_shared_plan(), "seconds\n0.5\n3\n1e1\n")):
        found.append(
            Seed(
                "replay",
                {"plan.json": lay_out(document), "events.csv": events, "trace.csv": moments},
            )
        )
    found += [Seed(kind, files) for kind, files in fleets.documents()]
    return (*found, *_sharing())


def _sharing() -> Iterator[Seed]:
    """All that is about offline work beside online services."""
    tables = {"online.csv": ONLINE, "offline.csv": OFFLINE, "pairs.csv": PAIRS}
    yield Seed("colocation_tables", tables)
    head = PAIRS.split("\n")[0]
    odd = {
        "online.csv": 'gpu,device,sm_activity,memory_used_mib,model\r\n"a, ""b",a30,1e1,0,m\r\n',
        "offline.csv": "workload,memory_mib,waiting_s\n# a comment\n\nx,0,1/3\n",
        "pairs.csv": f"{head}\nm,x,a30,1,0.5,1\n",
    }
    yield Seed("colocation_tables", odd)
    problem = ColocationProblem(
        online=[
            OnlineClass("a30", count=3, sm_activity="20.5", model="bert", slowdown_limit="1.4"),
            OnlineClass(
                "a30", count=2, sm_activity=60, memory_mib=9_000, memory_total_mib=24_576,
                model="bert", running="train",
            ),
        ],
        offline=[
            OfflineClass("train", count=4, model="resnet50", priority="3/2"),
            OfflineClass("index", count=1),
        ],
        weights=[[450_000, 250_000], [-1, 100_000]],
    )  # fmt: skip
    for posed in (problem, *(each.make() for each in SHARING_EDGE_PROBLEMS)):
        if len(posed.online) * len(posed.offline) <= 20:
            documents = (
                colocation_problem_to_json(posed),
                colocation_solution_to_json(posed, colocate(posed)),
            )
            names = "problem.json", "share.json"
            yield Seed(
                "sharing",
                {n: lay_out(d) for n, d in zip(names, documents, strict=True)}
                | {"pairs.csv": PAIRS},
            )
    measured = [
        MeasuredPair(a, b, "a30", 50, Fraction(1 + i + j, 9), Fraction(9, 9 - j))
        for i, a in enumerate(("bert", "m1", "m2", "m3", "m4"))
        for j, b in enumerate(("resnet50", "index", "m1", "m2"))
    ]
    for model in ("ridge", "mean"):
        trained = predictor_to_json(train_predictor(measured, model=model))
        yield Seed("predictor", {"model.json": lay_out(trained), **tables})
