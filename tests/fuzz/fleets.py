"""Valid deployments, transitions and folders, small enough to be checked in milliseconds."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from cms import Configuration, Problem, pack, solve
from cms.files import lay_out, write_solution
from cms.fleet import OperatingPoint, Service, get_gpu
from cms.fleet.deployment import Deployment, FleetGpu, FleetNode, Instance, Work, desired_state
from cms.fleet.deployment.document import deployment_to_json
from cms.fleet.deployment.instance import Mode, StartSource, State
from cms.fleet.deployment.transition import transition_to_json
from cms.fleet.hardware.catalogue import uncut_gpu
from cms.fleet.placement import PlacementResult, place
from cms.fleet.serving import RULES, LoadCurve, build_problem
from cms.fleet.serving.load_curve import key_of
from cms.fleet.serving.plan import Plan
from proofs_checks.parallel_order import random_transition
from tests.fleet.transition.test_reorganising import fleet, plan, to_plan
from tests.proofs_checks.moves import LENT, REPARTITIONED, SHARED, deployment
from tests.proofs_checks.test_transition_proofs import PROVED, crowded, planned

Document = dict[str, Any]


def transitions() -> Iterator[Document]:
    """By hand and drawn; with proofs of kept and of spare ones, and with turns in shares."""
    yield from (LENT, REPARTITIONED, SHARED)
    for seed in (3, 4, 10, 11, 17):
        yield transition_to_json(random_transition(random.Random(seed)))
    yield transition_to_json(crowded())
    yield PROVED
    yield planned(15, "nvidia-smi")
    yield planned(31, "mig-parted")
    first = to_plan(fleet(2), plan(150, 50))
    yield transition_to_json(first)
    yield transition_to_json(to_plan(first.target, plan(800, 60)))


def deployments() -> Iterator[Document]:
    """By several rules; one with what was only observed, and one with the plan that it realises."""
    yield deployment(LENT)
    yield transition_to_deployment(REPARTITIONED, "target")
    yield deployment_to_json(to_plan(fleet(2), plan(150, 50)).target)
    card = get_gpu("a30-24gb")
    point = OperatingPoint("bert", card.key, "2g.12gb", 2, 8, "780", 20)
    curved = OperatingPoint("vgg", card.key, "1g.6gb", 1, 4, 100, 40)
    services = [Service("chat", "bert", 100, 60), Service("see", "vgg", 30, 150, late_share="0.05")]
    for name in ("capacity", "capacity_certified"):
        rule: Any = RULES[name]
        if name == "capacity":
            curve = LoadCurve([10, 50, "99.5"], ["41.5", 60, 250])
            rule = rule.with_curves({key_of(curved): curve})
        held = tuple(
            Instance(each.profile, start, Work(s.name, each, rule.supply(s, each)))
            for s, each, start in ((services[0], point, 0), (services[1], curved, 2))
        )
        seen = FleetGpu("n", 0, card, instances=held, uuid="GPU-0")
        yield deployment_to_json(
            Deployment((FleetNode("n", (seen,), driver="550.54"),), tuple(services), rule)
        )
    unknown = (
        Instance("1g.6gb", owner="pod a/b"),
        Instance("2g.12gb", state=State.NO_COMPUTE_INSTANCE),
    )
    whole = Work("chat", OperatingPoint("bert", card.key, "4g.24gb", 1, 8, 400, 20), Fraction(400))
    cards = (
        FleetGpu("n", 0, card, instances=unknown, start_source=StartSource.UNKNOWN),
        FleetGpu("n", 1, card, Mode.WHOLE, (Instance("whole", None, whole),)),
        FleetGpu("n", 2, card, Mode.MPS, (Instance("mps:40", owner="x"), Instance("mps:60"))),
        FleetGpu("n", 3, uncut_gpu("Tesla T4"), Mode.FIXED, (Instance("whole", owner="x"),)),
    )
    yield deployment_to_json(Deployment((FleetNode("n", cards),), tuple(services[:1])))
    posed = build_problem(services[:1], [point], card.key, rule="capacity")
    planned = Plan(posed, solve(posed.problem, threads=1))
    empty = Deployment((FleetNode("n", (FleetGpu("n", 0, card),)),))
    placed = place(desired_state(planned), empty)
    assert isinstance(placed, PlacementResult)
    yield deployment_to_json(placed.deployment)


def transition_to_deployment(of: Document, side: str) -> Document:
    """One side of a transition as a document of its own."""
    return deployment({**of, "start": of[side]})


def folders() -> Iterator[dict[str, str]]:
    """Problem folders with their solution folders: of no machines, of some, and without any."""
    head = Problem(configurations=[Configuration({"a": 2, "b": 1})])
    jobs: list[tuple[list[Any], list[list[Any]]]] = [
        ([0, 0], [[1, 0], [0, 0]]),
        (["7/2", 10**20, 0], [[1, 2], [0, 10**19], [0, 0]]),
        ([3, 1], [[1, 0], [0, 0]]),
        ([], []),
    ]
    for demands, supply in jobs:
        with tempfile.TemporaryDirectory() as name:
            path = Path(name)
            problem = pack(head, [(demands, supply)] if demands else [], path / "fleet")
            write_solution(solve(problem, threads=1), path / "plan")
            yield {
                str(each.relative_to(path)): each.read_bytes().decode("utf-8", "surrogateescape")
                for each in sorted(path.rglob("*"))
                if each.is_file()
            }


def documents() -> Iterator[tuple[str, dict[str, str]]]:
    """All of them, by kind, as texts of files."""
    for kind, made in (("transition", transitions()), ("deployment", deployments())):
        for document in made:
            yield kind, {f"{kind}.json": lay_out(json.loads(json.dumps(document)))}
    for files in folders():
        yield "folder", files
