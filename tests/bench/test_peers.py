"""General solvers on the compact program: they find what brute force finds."""

from __future__ import annotations

from typing import Any

import pytest

from bench.peers import PEERS, ArcFlowProgram, CompactProgram, PeerAnswer, Program
from bench.row import Outcome
from bench.runs.asking_peers import judge
from cms import Configuration, Job, Problem, SizeBoundedConfigurations, UnsupportedProblem, solve
from instances.families import generate
from tests.families import FAMILIES, instance
from tests.oracle import optimum
from tests.samples import in_turn, so_many

INTEGER = [name for name, peer in PEERS.items() if peer.integer]
RELAXED = [name for name, peer in PEERS.items() if not peer.integer]
EACH = so_many(1, 3)
#: What a peer needs beyond this package; Gurobi no extra brings.
EXTRA = {"scip": "pyscipopt", "gurobi": "gurobipy"}

PAIR = Configuration({"b": 2})
THREE = Problem(configurations=PAIR, jobs=[Job("x", 3, {"b": 1})])  # 2 machines


def ask(name: str, problem: Problem) -> tuple[Program, PeerAnswer]:
    if name in EXTRA:
        pytest.importorskip(EXTRA[name])
    peer = PEERS[name]
    program = peer.program.of(problem)
    peer.load()
    return program, peer.solve(peer.prepare(program), 30.0, seed=0)


@pytest.mark.parametrize(("name", "family"), in_turn(3, INTEGER, FAMILIES))
def test_a_peer_finds_the_optimum_of_brute_force(name: str, family: str) -> None:
    answered = 0
    for number in range(EACH):
        problem = instance(family, number)
        try:
            program, answer = ask(name, problem)
        except UnsupportedProblem:
            continue
        facts = judge(problem, program, answer)
        best = optimum(problem)
        assert facts["outcome"] is Outcome.ANSWERED, facts
        assert facts["status"] == ("infeasible" if best is None else "optimal")
        assert facts.get("cost") == best
        answered += 1
    assert answered >= {"long_numbers": 0, "edges": EACH // 3}.get(family, 1)


@pytest.mark.parametrize(("name", "family"), in_turn(3, RELAXED, FAMILIES))
def test_a_relaxation_is_at_most_the_optimum(name: str, family: str) -> None:
    for number in range(EACH):
        problem = instance(family, number)
        try:
            program, answer = ask(name, problem)
        except UnsupportedProblem:
            continue
        best = optimum(problem)
        if best is None:
            continue  # the relaxation may have a solution, or none
        assert answer.status == "optimal"
        assert answer.bound is not None
        assert answer.bound * float(program.step) <= float(best) + 1e-6


@pytest.mark.parametrize(
    ("family", "arguments"),
    [
        ("stock-triplets", {}),
        ("stock-uniform", {}),
        ("stock-residual", {"low": "0.2"}),
        ("stock-divisible", {}),
        ("measured-shares", {"m": 1, "step": 10}),
        ("memory-shares", {"m": 1, "compute": 20, "memory": 20}),
        ("cluster-fleet", {"types": 2, "blocks": 8, "serving": "rates", "limits": "tight"}),
    ],
)
def test_arc_flow_agrees_with_solve_where_machines_are_cut_at_will(
    family: str, arguments: dict[str, Any]
) -> None:
    problem = generate(family, n=9, seed=1, **arguments)
    program, answer = ask("highs_arc_flow", problem)
    facts = judge(problem, program, answer)
    assert (facts["outcome"], facts["status"]) == (Outcome.ANSWERED, "optimal")
    assert facts["cost"] == solve(problem, time_limit=None).cost


def cut(sizes: dict[str, int], capacity: int) -> Problem:
    return Problem(
        configurations=SizeBoundedConfigurations(sizes, capacity),
        jobs=[Job(f"of-{block}", 2, {block: 1}) for block in sizes],
    )


def of_pairs(demand: int) -> Problem:
    return Problem(configurations=PAIR, jobs=[Job("long", demand, {"b": 3})])


@pytest.mark.parametrize(
    ("program", "problem", "why"),
    [
        (CompactProgram, cut({f"b{i}": 100 + i for i in range(20)}, 1000), "more than 1000 max"),
        (ArcFlowProgram, cut({"a": 3, "b": 2}, 10**7), "more than 1000000 nodes"),
        (ArcFlowProgram, cut({"a": 3, "b": 1}, 7), "more than 8 variables"),
        (CompactProgram, of_pairs(2**64 + 1), "'long' need more than 63 bits"),
    ],
)
def test_a_program_that_is_too_large_is_refused(
    program: type[Program], problem: Problem, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.peers.compact.MOST_SHAPES", 1000)
    monkeypatch.setattr("bench.peers.arc_flow.MOST_VARIABLES", 8)
    with pytest.raises(UnsupportedProblem, match=why):
        program.of(problem)


def test_sums_beyond_the_range_of_cp_sat_are_refused() -> None:
    program = CompactProgram.of(of_pairs(2**61))
    with pytest.raises(UnsupportedProblem, match="beyond CP-SAT's range"):
        PEERS["cp_sat_1"].prepare(program)


def answered(**claims: Any) -> dict[str, Any]:
    return judge(THREE, CompactProgram.of(THREE), PeerAnswer(**claims))


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"values": [2, 2], "objective": 2.0}, "job 'x' has 2 of its demand served, needs 3"),
        ({"values": [1, 3], "objective": 1.0}, "3 blocks 'b' are given to jobs, the machines"),
        ({"values": [3, 3], "objective": 2.0}, "it claims a cost of 2, its schedule costs 3"),
        ({"values": [2, 3], "objective": 2.0, "bound": 3.0}, "claims the bound 3 and a schedule"),
    ],
)
def test_a_false_claim_fails_the_run(claims: dict[str, Any], why: str) -> None:
    facts = answered(**{"status": "feasible", "bound": 1.0, **claims})
    assert facts["outcome"] is Outcome.FAILED
    assert why in facts["error"]


def test_a_bound_is_rounded_up_but_for_noise() -> None:
    said = [1.2, 1.0000001, 0.9999999, 2.0]
    bounds = [
        answered(status="feasible", values=[2, 3], objective=2.0, bound=bound)["claimed_bound"]
        for bound in said
    ]
    assert bounds == [2, 1, 1, 2]
