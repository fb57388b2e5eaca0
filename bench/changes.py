"""What runs and what is wanted next: the changes that the suite ``transitions`` is about."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from cms import load_instance, solve
from cms.fleet import Plan, get_gpu
from cms.fleet.deployment import Deployment, DesiredState, FleetGpu, FleetNode, desired_state
from cms.fleet.deployment.transition import Transition, transition
from cms.fleet.placement import PlacementResult, place, place_plan
from cms.fleet.serving import Scenario, ServingProblem
from cms.problem.problem import Problem
from instances.load_changes import before_and_after

#: The family of drawn changes, and those of the published scenarios one after the other: each
#: planned blindly, or as near to the one before as it can be.
DRAWN, CHAIN, NEAREST_CHAIN = "load-change", "published-chain", "nearest-chain"
#: In this order; a fleet of three nodes of eight GPUs holds each of them and half as many more.
SCENARIOS = ("S2", "S5", "S1", "S6", "S3")
_DEVICE, _PER_NODE, _CHAIN_NODES = "a100-80gb", 8, 3
_SOLVE_SECONDS = 60


class Change(NamedTuple):
    """What runs, and what is wanted of the same fleet."""

    now: Deployment
    wanted: DesiredState


def change_of(
    family: str,
    *,
    n: int | None = None,
    gpus: int = 0,
    sigma: str = "0",
    seed: int = 0,
    step: int = 0,
) -> Change:
    """Return a change, with room for half as many GPUs more than the larger plan takes.

    ``load-change`` draws one (:func:`instances.load_changes.before_and_after`) of n services, by
    default all; a ``step`` of ``published-chain`` or ``nearest-chain`` starts where the one before
    has ended.
    """
    if family in (CHAIN, NEAREST_CHAIN):
        return Change(_ends(family, step), _published(SCENARIOS[step + 1]))
    before, after = before_and_after(gpus, sigma=sigma, seed=seed, services=n)
    first, second = _planned(before.build_problem()), _planned(after.build_problem())
    most = max(first.gpus[_DEVICE], second.gpus[_DEVICE])
    return Change(_placed(first, -(-max(most + _PER_NODE, 3 * most // 2) // _PER_NODE)), second)


def _planned(serving: ServingProblem) -> DesiredState:
    solution = solve(serving.problem, time_limit=_SOLVE_SECONDS)
    if solution.status != "optimal":
        raise ValueError(f"a plan is {solution.status}; expected a proof that it is optimal")
    return desired_state(Plan(serving, solution))


def _placed(wanted: DesiredState, nodes: int) -> Deployment:
    device, width = get_gpu(_DEVICE), len(str(nodes))
    names = [f"node-{number:0{width}}" for number in range(1, nodes + 1)]
    fleet = tuple(
        FleetNode(name, tuple(FleetGpu(name, index, device) for index in range(_PER_NODE)))
        for name in names
    )
    found = place(wanted, Deployment(fleet))
    if not isinstance(found, PlacementResult):
        raise ValueError(f"the first plan cannot be placed: {found}")
    return found.deployment


@cache
def _published(name: str) -> DesiredState:
    scenario = load_instance(name)
    assert isinstance(scenario, Scenario)
    return _planned(scenario.build_problem())


@cache
def _ends(family: str, step: int) -> Deployment:
    if step == 0:
        return _placed(_published(SCENARIOS[0]), _CHAIN_NODES)
    now, wanted = _ends(family, step - 1), _published(SCENARIOS[step])
    if family == NEAREST_CHAIN:
        assert wanted.plan is not None
        near = place_plan(wanted.plan, now)
        if not isinstance(near, PlacementResult):
            raise ValueError(f"step {step} of the chain: {near}")
        wanted = near.wanted
    found = transition(now, wanted)
    if not isinstance(found, Transition):
        raise ValueError(f"step {step} of the chain: {found}")
    return found.target


def generate(family: str, **arguments: object) -> Problem:
    """Make the problem of what is wanted next."""
    wanted = change_of(family, **arguments).wanted  # type: ignore[arg-type]
    assert wanted.plan is not None
    problem = wanted.plan.serving.problem
    assert isinstance(problem, Problem)
    return problem
