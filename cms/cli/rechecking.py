"""What ``cms check`` and ``cms report`` believe of a file, and what of it does not hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cms.files import Parsed
    from cms.fleet.deployment import Deployment
    from cms.fleet.deployment.transition import Transition
    from cms.fleet.serving import Plan
    from cms.fleet.sharing.problem import SharingProblem
    from cms.fleet.sharing.solution import SharingSolution
    from cms.fleet.simulation import Simulation
    from cms.schedule.faults import Violation
    from cms.solving.solution import Solution

__all__ = [
    "recheck_deployment",
    "recheck_plan",
    "recheck_sharing",
    "recheck_simulation",
    "recheck_solution",
    "recheck_transition",
]


def recheck_solution(problem: Parsed, told: Parsed) -> tuple[Solution, list[Violation]]:
    """Recheck a solution of a problem: schedule, cost, bounds, proof, and a shortage beside it."""
    from cms.files import problem_from_json, solution_from_json
    from cms.files.solutions import refuse_other_shortage
    from cms.solving.recheck import faults_of

    posed = problem_from_json(problem)
    answer = solution_from_json(told)
    faults = list(faults_of(posed, answer))
    if not faults and "shortage" in told.value:
        refuse_other_shortage(told.at("shortage"), posed)
    return answer, faults


def recheck_plan(document: Parsed) -> tuple[Plan | None, Solution, list[Violation]]:
    """Recheck a plan; there is none where its solution has faults.

    Not with the plan's own reader first, which stops at the first thing that does not hold. It
    compares the plan's services and GPUs with its problem and solution. Under interference, what
    keeps its limits beside the worst is checked against the pairs, and what is proved against the
    problem that bounds.
    """
    from cms.files.model import read_as, require_head
    from cms.fleet.serving.neighbour_check import neighbour_faults
    from cms.fleet.serving.neighbours import NeighbourServing
    from cms.fleet.serving.plan_document import plan_from_json
    from cms.solving.recheck import faults_of

    read_as(document, lambda value: require_head(value, "cms-plan"))
    answer, faults = recheck_solution(document.at("problem"), document.at("solution"))
    if faults:
        return None, answer, faults
    whole = plan_from_json(document)
    if isinstance(whole.serving, NeighbourServing):
        if whole.outer is not None:
            faults += faults_of(whole.serving.outer, whole.outer)
        if whole.solution.cost is not None:
            faults += neighbour_faults(whole.serving, whole.solution.schedule)
    return whole, whole.answer, faults


def recheck_deployment(document: Parsed) -> tuple[Deployment, list[Violation]]:
    """Recheck a deployment: each GPU, each service's rate, and the plan that it realises."""
    from cms.files import solution_from_json
    from cms.fleet.deployment import check_deployment, deployment_from_json, wanted_of
    from cms.schedule.faults import Violation
    from cms.solving.recheck import faults_of

    found = deployment_from_json(document)
    faults = list(check_deployment(found))
    if found.plan is not None:
        # wishes may have asked for more than the plan, and a plan near what ran has other
        # instances: none the worse where they supply all that was planned for
        wanted, there = wanted_of(found.plan), found.kinds()
        supplied = {
            service.name: sum(
                n * kind.work.supply_rps
                for kind, n in there.items()
                if kind.work.service == service.name
            )
            for service in wanted.services
        }
        demands = {job.name: job.demand for job in found.plan.serving.problem.jobs}
        faults += [
            Violation("count", "the deployment", f"{there[kind]} x {kind}", f"{count}, as planned")
            for kind, count in wanted.counts.items()
            if there[kind] < count and supplied[kind.work.service] < demands[kind.work.service]
        ]
        answer = solution_from_json(document.at("plan").at("solution"))
        faults += faults_of(found.plan.serving.problem, answer)
    return found, faults


def recheck_transition(document: Parsed) -> tuple[Transition, list[Violation]]:
    """Recheck a transition: its actions, and the worst of all executions that it allows."""
    from cms.fleet.deployment.transition import check_transition, transition_from_json

    found = transition_from_json(document)
    return found, list(check_transition(found))


def recheck_sharing(
    problem: Parsed, told: Parsed
) -> tuple[SharingProblem, SharingSolution, list[Violation]]:
    """Recheck who shares a GPU with whom, what that is worth, and how much more is possible."""
    from cms.fleet.sharing.files import sharing_problem_from_json, sharing_solution_from_json
    from cms.fleet.sharing.solution import sharing_faults

    posed = sharing_problem_from_json(problem)
    answer = sharing_solution_from_json(told, posed)
    return posed, answer, list(sharing_faults(posed, answer))


def recheck_simulation(document: Parsed) -> tuple[Simulation, list[Violation]]:
    """Recheck a simulation: whether its numbers bear out what it says of each service."""
    from cms.fleet.simulation import simulation_from_json
    from cms.fleet.simulation.judging import simulation_faults

    found = simulation_from_json(document)
    return found, list(simulation_faults(found))
