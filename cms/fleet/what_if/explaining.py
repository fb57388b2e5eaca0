"""Why a plan serves a service by these instances: what every other choice would cost, at least."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

from ...certificate.certificate import BlockPrices, round_up
from ...errors import UnsupportedProblem
from ...problem.parts import Block
from ...solving.solution import Status
from ..serving.neighbours import NeighbourServing
from ..serving.plan import Plan, ServicePlan
from ..serving.serving_problem import ServingProblem
from .one_job import Case, Given, OneJob, plain_job, shared_job
from .services import named_service


@dataclass(frozen=True, slots=True)
class Alternative:
    """What every plan that serves the service in some way costs, at least."""

    bound: Fraction | None  #: by the plan's certificate, exactly; None if there is no such plan
    more: Fraction | None  #: than the bound of all plans: the reduced cost of the choice
    at_least: Fraction | None  #: the bound rounded up to what plans can cost


@dataclass(frozen=True, slots=True)
class BlockChoices:
    """One kind of instance, and what it would cost to use it otherwise than the plan does."""

    block: Block  #: in the problem
    gpu: str
    profile: str
    #: What one counts for; where services share instances, what it gives the service alone.
    supply_rps: Fraction
    count: int  #: how many of them serve the service in the plan
    #: Its price in the proof; None where the proof branches, or services share instances.
    worth: Fraction | None
    one: Alternative  #: at least one such instance serves it
    needed: int  #: how many serve it by themselves
    only: Alternative  #: no other kind serves it
    #: None of this kind serves it; None where the plan has none that does.
    without: Alternative | None = None
    #: One such instance serves it alone; None where instances are not shared, or it would
    #: not meet the limit.
    alone: Alternative | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a plan serves a service by these instances."""

    given: ServicePlan  #: what the plan gives it
    cost: Fraction | None  #: of the plan; None without a schedule
    bound: Fraction  #: what any plan costs at least, exactly, by the certificate
    lower_bound: Fraction  #: that rounded up to what plans can cost
    cases: int  #: leaves of the certificate; in each the numbers hold, as the least over all
    #: The part of the bound that the service pays; None where the proof branches.
    pays: Fraction | None
    #: Plans with at least these instances for it, whatever the others get; None where services
    #: share instances, or nothing serves it.
    as_planned: Alternative | None
    blocks: tuple[BlockChoices, ...]  #: those that can serve it, in the order of the problem
    #: Blocks that cannot: nothing measured there meets its limit, or it does not allow them.
    useless: tuple[Block, ...]


def explain(plan: Plan, service: str) -> Explanation:
    """Say which instances serve a service, and what each other choice would cost at least.

    All numbers follow exactly from the plan's certificate, which is checked on the way, by weak
    duality (``docs/methods/proofs.md``). A bound is no promise: there may be no plan of that cost.
    A reduced cost of 0 says only that the proof does not tell the choice from what was chosen.
    InvalidOption if the plan has no such service, UnsupportedProblem if it is proved infeasible or
    its batches slow one another, so that its bound is of another problem than its schedule;
    InvalidCertificate if the certificate does not hold.

    Examples
    --------
    >>> from cms import solve
    >>> from cms.fleet.serving import OperatingPoint, Plan, Service, build_problem
    >>> service = Service("chat", "bert", rate_rps=100, latency_limit_ms=100)
    >>> points = [
    ...     OperatingPoint("bert", "a100-80gb", "3g.40gb", 1, 2, 60, 33),
    ...     OperatingPoint("bert", "a100-80gb", "7g.80gb", 1, 2, 90, 22),
    ... ]
    >>> serving = build_problem([service], points, rule="plain")
    >>> found = explain(Plan(serving, solve(serving.problem)), "chat")
    >>> for each in found.blocks:
    ...     print(each.count, each.profile, each.one.at_least, each.only.at_least)
    0 7g.80gb 2 2
    2 3g.40gb 1 1
    """
    serving = plan.serving
    known = {each.name: each for each in serving.services}
    named_service(known, service)
    if plan.answer.status is Status.INFEASIBLE:
        raise UnsupportedProblem(
            "the plan is infeasible, so that there are no choices to compare; 'cms plan' says what "
            "would do"
        )
    if isinstance(serving, NeighbourServing):
        raise UnsupportedProblem(
            "in this plan batches slow one another, and its bound is of another problem than its "
            "schedule, with other instances; plan without interference to have it explained"
        )
    certificate = plan.solution.certificate
    # prices of blocks alone are of one service an instance; of mixes they prove nothing
    if isinstance(serving, ServingProblem) or all(
        type(leaf) is BlockPrices for leaf in certificate.leaves()
    ):
        one = plain_job(serving.problem.one_job_a_block(), certificate, service)
    else:
        one = shared_job(serving.problem, certificate, service)
    given, counts = plan.service(service), Counter[Block]()
    for use in given.uses:
        counts[use.block] += use.count
    needed = {block: n for block in one.blocks if (n := one.needed(block)) is not None}
    shared = one.alone is not None
    # of more than serve the service by themselves a proof may say nothing
    within = {block: min(n, counts[block]) for block, n in needed.items() if n and counts[block]}
    case = one.cases[0] if one.leaves == len(one.cases) == 1 and not shared else None
    priced = needed if one.row.demand else ()
    return Explanation(
        given=given,
        cost=plan.solution.cost,
        bound=one.bound,
        lower_bound=_rounded(plan, one.bound),
        cases=one.leaves,
        pays=None if case is None else one.bound - case.rest,
        as_planned=_alternative(plan, one, Given(within)) if within and not shared else None,
        blocks=tuple(_choices(plan, one, block, counts[block]) for block in priced),
        useless=tuple(block for block in one.blocks if block not in needed),
    )


def _rounded(plan: Plan, bound: Fraction) -> Fraction:
    return round_up(max(bound, Fraction(0)), plan.serving.problem.cost_step)


def _alternative(
    plan: Plan, one: OneJob, given: Given, cases: tuple[Case, ...] | None = None
) -> Alternative:
    bound = one.bound_if(given, cases)
    if bound is None:
        return Alternative(None, None, None)
    bound = max(bound, one.bound)
    return Alternative(bound, bound - one.bound, _rounded(plan, bound))


def _choices(plan: Plan, one: OneJob, block: Block, count: int) -> BlockChoices:
    gpu, profile = plan.serving.instance_of(block)
    needed, at = one.needed(block), one.blocks.index(block)
    assert needed is not None
    others, own = frozenset(one.blocks) - {block}, Given({block: 1})
    none = Given(without=frozenset({block}))
    priced = one.leaves == len(one.cases) == 1 and one.alone is None
    return BlockChoices(
        block=block,
        gpu=gpu,
        profile=profile,
        supply_rps=Fraction(one.row.supply[at], one.row.denominator),
        count=count,
        worth=one.cases[0].prices[at] if priced else None,
        one=_alternative(plan, one, own),
        needed=needed,
        only=_alternative(plan, one, Given(without=others)),
        without=_alternative(plan, one, none) if count else None,
        alone=None if one.alone is None else _alternative(plan, one, own, one.alone[block]),
    )
