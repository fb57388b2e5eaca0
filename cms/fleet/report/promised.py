"""What a plan promises of latencies, in plain words, and what it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...values.words import count, printable
from ..serving.latency_rule import LatencyRule
from ..serving.neighbours import NeighbourServing
from ..serving.queueing import evidence_of
from ..serving.time_sharing import SharedServing

if TYPE_CHECKING:
    from ..serving import Plan, ServingProblem
    from ..serving.posing import AnyServing

__all__ = ["beside_one_another", "between_classes", "promised"]


def promised(serving: AnyServing) -> str:
    """Say what holds of the latencies under a plan, under which arrivals and which routing.

    Parameters
    ----------
    serving : ServingProblem or SharedServing

    Examples
    --------
    >>> from cms.fleet.serving import OperatingPoint, Service, as_problem
    >>> service = Service("chat", "bert", rate_rps=100, latency_limit_ms=400)
    >>> point = OperatingPoint("bert", "a30-24gb", "2g.12gb", 1, 2, "60.5", 33)
    >>> print(promised(as_problem([service], [point], ["a30-24gb"])))
    promised by the rule capacity: 99 % of the requests within their limit, at up to the rates \
given, if they arrive as a Poisson stream and instances get shares like their supplies and have \
one queue each (by the shipped table, for batches that take as long as full ones). Not promised: \
other arrivals, higher rates, equal shares; 'cms simulate' tries them
    >>> print(promised(as_problem([service], [point], ["a30-24gb"], rule="half")))
    the rule half promises nothing about waiting: it looks at the latency of a batch, not at how \
many requests are late under load; 'cms simulate' tries that, '--rule capacity' plans for it
    """
    if isinstance(serving, SharedServing):
        return _kept(serving)
    rule, promise = serving.rule, serving.promise
    name = printable(rule.name)
    free = [each for each in serving.services if each.latency_limit_ms is None]
    if promise is None and rule.promise is not None:
        return (
            f"the rule {name} promises nothing of latencies here: no service has a limit, so that "
            "an instance counts for all that it works off; 'cms simulate' says how long requests "
            "take"
        )
    if promise is None:
        left_open = (
            "it looks at the latency of a batch, not at how many requests are late under load"
            if isinstance(rule, LatencyRule)
            else "how many requests are late under load is open"
        )
        return (
            f"the rule {name} promises nothing about waiting: {left_open}; 'cms simulate' tries "
            "that, '--rule capacity' plans for it"
        )
    own = any(each.late_share is not None or each.queue for each in serving.services)
    return (
        f"promised by the rule {name}: {promise}"
        f"{'; services with a late share or queue of their own keep to that' if own else ''}"
        f"{_evidence(serving)}. Not promised: "
        f"{f'any latency of {_free(len(free))} without a limit, ' if free else ''}"
        "other arrivals, higher rates, equal shares; "
        f"{_TRIED if 'measured' not in _kinds(serving) else _NOT_TRIED}"
    )


def beside_one_another(serving: NeighbourServing) -> str:
    """Say what a plan under interference knows of it."""
    pairs = count(len(serving.interference), "pair")
    return f"batches slow one another, by {pairs}, in {count(serving.classes, 'class')}"


def between_classes(plan: Plan) -> str:
    """Say what lies between a plan under interference and its bound; empty if nothing does."""
    if not isinstance(plan.serving, NeighbourServing) or plan.answer.status == "infeasible":
        return ""
    more = f"more than {plan.serving.classes} of them (--classes) may"
    if plan.solution.status == "infeasible":
        return (
            "no plan keeps its limits beside the worst of each class, which does not say that "
            f"there is none: {more} find one"
        )
    if plan.answer.gap:
        return (
            "planned beside the worst of each class and proved beside the best: "
            f"{more} bring the two nearer"
        )
    return ""


def _kept(serving: SharedServing) -> str:
    """What a rule of frames keeps: everything, of arrivals that are as even as can be."""
    headroom, rule = serving.sharing.headroom, serving.sharing.rule
    rates = "rates given" if headroom is None else "planned rates"
    slowed = isinstance(serving, NeighbourServing)
    beside = ", beside the worst that a block's name lets be there" if slowed else ""
    slower = "slowdowns that were not in the table, " if slowed else ""
    more = "--headroom gpulet plans for more" if headroom is None else "the head-room is for them"
    return (
        f"kept under the rule {rule}: every limit, if the requests of an instance come evenly "
        f"spaced, at up to the {rates}{beside}: never more than a batch in a frame. Not promised: "
        f"{slower}random "
        f"arrivals; {more}"
    )


def _free(number: int) -> str:
    return "the service" if number == 1 else f"the {number:,} services"


_SAID = {
    "measured": "measured load curves",
    "simulated": "simulated load curves",
    "table": "the shipped table, for batches that take as long as full ones",
    "certified": "proof, for batches that take as long as full ones",
}


_TRIED = "'cms simulate' tries them"
_NOT_TRIED = "'cms simulate' replays batches, so no service that counts on a measured curve"


def _kinds(serving: ServingProblem) -> set[str]:
    """What the promises of points rest on."""
    found = (
        evidence_of(serving.rule, serving.service(service), point)
        for (service, _), points in serving.points.items()
        for point in points
    )
    return {each.kind for each in found if each is not None}


def _evidence(serving: ServingProblem) -> str:
    """What a promise rests on, best first."""
    kinds = _kinds(serving)
    by = ", ".join(said for kind, said in _SAID.items() if kind in kinds)
    return f" (by {by})" if by else ""
