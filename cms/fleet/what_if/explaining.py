"""Why a plan serves a service by these instances: what every other choice would cost, at least."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ...certificate.certificate import BlockPrices, round_up
from ...certificate.one_job import Given, OneJob, ProvedLeaves
from ...errors import UnsupportedProblem
from ...mixes.one_job import SharedJob, shared_job
from ...problem.parts import Block
from ...solving.solution import Status
from ..serving.neighbours import NeighbourServing
from ..serving.plan import Plan, ServicePlan
from ..serving.serving_problem import ServingProblem
from ..serving.time_sharing import SharedServing
from .services import named_service

__all__ = ["Alternative", "BlockChoices", "Explanation", "explain"]


@dataclass(frozen=True, slots=True)
class Alternative:
    """What every plan that serves the service in some way costs, at least.

    Parameters
    ----------
    bound : Fraction or None
        By the plan's certificate, exactly; None if there is no such plan at all.
    more : Fraction or None
        So much more than the bound of all plans: the reduced cost of the choice.
    at_least : Fraction or None
        The bound rounded up to what plans can cost.
    """

    bound: Fraction | None
    more: Fraction | None
    at_least: Fraction | None


@dataclass(frozen=True, slots=True)
class BlockChoices:
    """One kind of instance, and what it would cost to use it otherwise than the plan does.

    Parameters
    ----------
    block : str
        The block in the problem.
    gpu, profile : str
    supply_rps : Fraction
        What one counts for; where services share instances, what it gives the service alone.
    count : int
        How many of them serve the service in the plan.
    worth : Fraction or None
        Its price in the proof; None where the proof branches, or services share instances.
    one : Alternative
        At least one such instance serves it.
    needed : int
        So many serve it by themselves.
    only : Alternative
        No other kind serves it.
    without : Alternative or None
        None of this kind serves it; None where the plan has none that does.
    alone : Alternative or None
        One such instance serves it and nobody else; None where instances are not shared, or it
        would not keep the limit.
    """

    block: Block
    gpu: str
    profile: str
    supply_rps: Fraction
    count: int
    worth: Fraction | None
    one: Alternative
    needed: int
    only: Alternative
    without: Alternative | None = None
    alone: Alternative | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a plan serves a service by these instances.

    Parameters
    ----------
    given : ServicePlan
        What the plan gives it.
    cost : Fraction or None
        Of the plan; None without a schedule.
    bound : Fraction
        What any plan costs at least, exactly, by the certificate.
    lower_bound : Fraction
        That rounded up to what plans can cost.
    cases : int
        Leaves of the certificate; in each of them the numbers hold, as the least over all.
    pays : Fraction or None
        The part of the bound that the service pays; None where the proof branches.
    as_planned : Alternative or None
        Plans with at least these instances for it, whatever the others get; None where services
        share instances, or nothing serves it.
    blocks : tuple of BlockChoices
        Those that can serve it, in the order of the problem.
    useless : tuple of str
        Blocks that cannot: nothing measured there keeps its limit, or it does not allow them.
    """

    given: ServicePlan
    cost: Fraction | None
    bound: Fraction
    lower_bound: Fraction
    cases: int
    pays: Fraction | None
    as_planned: Alternative | None
    blocks: tuple[BlockChoices, ...]
    useless: tuple[Block, ...]


def explain(plan: Plan, service: str) -> Explanation:
    """Say which instances serve a service, and what each other choice would cost at least.

    Parameters
    ----------
    plan : Plan
    service : str
        Its name.

    Returns
    -------
    Explanation
        All its numbers follow exactly from the plan's certificate, which is checked on the way.

    Raises
    ------
    InvalidOption
        If the plan has no such service.
    UnsupportedProblem
        If the plan is proved infeasible, or its batches slow one another, so that its bound is of
        another problem than its schedule.
    InvalidCertificate
        If the certificate does not hold.

    Notes
    -----
    A bound is no promise: a plan with the choice costs at least so much, it may cost more, and
    there may be none of that cost. A reduced cost of 0 says only that the proof does not tell the
    choice from what was chosen. Where the proof branches, each number is the least over its cases.

    References
    ----------
    Weak duality (``docs/methods/proofs.md``), in :mod:`cms.certificate.one_job` and, of mixes, in
    :mod:`cms.mixes.one_job`.

    Examples
    --------
    >>> from cms import solve
    >>> from cms.fleet.serving import OperatingPoint, Plan, Service, as_problem
    >>> service = Service("chat", "bert", rate_rps=100, latency_limit_ms=100)
    >>> points = [
    ...     OperatingPoint("bert", "a100-80gb", "3g.40gb", 1, 2, 60, 33),
    ...     OperatingPoint("bert", "a100-80gb", "7g.80gb", 1, 2, 90, 22),
    ... ]
    >>> serving = as_problem([service], points, rule="plain")
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
    leaves = plan.solution.certificate.leaves()
    # prices of blocks alone are of one service an instance; of mixes they prove nothing
    if isinstance(serving, ServingProblem) or all(type(leaf) is BlockPrices for leaf in leaves):
        return _Plain(plan, service).explanation()
    return _Shared(plan, serving, service).explanation()


class _Explaining:
    """What both kinds of plans have in common."""

    def __init__(self, plan: Plan, service: str, one: OneJob, bound: Fraction, cases: int) -> None:
        self.plan, self.service, self.one = plan, service, one
        self.bound, self.cases = bound, cases
        self.given = plan.service(service)
        self.counts: dict[Block, int] = {}
        for use in self.given.uses:
            self.counts[use.block] = self.counts.get(use.block, 0) + use.count

    def explanation(self) -> Explanation:
        wants = bool(self.one.row.demand)
        serving = [block for block in self.one.blocks if self.one.needed(block) is not None]
        return Explanation(
            given=self.given,
            cost=self.plan.solution.cost,
            bound=self.bound,
            lower_bound=self._rounded(self.bound),
            cases=self.cases,
            pays=self.pays(),
            as_planned=self.as_planned(),
            blocks=tuple(self._choices(block) for block in serving) if wants else (),
            useless=tuple(block for block in self.one.blocks if block not in serving),
        )

    def pays(self) -> Fraction | None:
        """The part of the bound that the service pays."""
        return None

    def as_planned(self) -> Alternative | None:
        """Plans with at least these instances for the service."""
        return None

    def worth(self, block: Block) -> Fraction | None:
        """A block's price in the proof."""
        del block
        return None

    def alone(self, block: Block) -> Alternative | None:
        """One such instance serves the service and nobody else."""
        del block
        return None

    def alternative(self, one: OneJob, given: Given) -> Alternative:
        bound = one.bound_if(given)
        if bound is None:
            return Alternative(None, None, None)
        bound = max(bound, self.bound)
        return Alternative(bound, bound - self.bound, self._rounded(bound))

    def _rounded(self, bound: Fraction) -> Fraction:
        return round_up(max(bound, Fraction(0)), self.plan.serving.problem.cost_step)

    def _choices(self, block: Block) -> BlockChoices:
        gpu, profile = self.plan.serving.instance_of(block)
        count, needed = self.counts.get(block, 0), self.one.needed(block)
        assert needed is not None
        others = frozenset(self.one.blocks) - {block}
        none = Given(without=frozenset({block}))
        return BlockChoices(
            block=block,
            gpu=gpu,
            profile=profile,
            supply_rps=self.supply(block),
            count=count,
            worth=self.worth(block),
            one=self.alternative(self.one, Given({block: 1})),
            needed=needed,
            only=self.alternative(self.one, Given(without=others)),
            without=self.alternative(self.one, none) if count else None,
            alone=self.alone(block),
        )

    def supply(self, block: Block) -> Fraction:
        row = self.one.row
        return Fraction(row.supply[self.one.blocks.index(block)], row.denominator)


class _Plain(_Explaining):
    """A plan whose instances serve one service each."""

    def __init__(self, plan: Plan, service: str) -> None:
        problem = plan.serving.problem.one_job_a_block()
        certificate = plan.solution.certificate
        leaves = ProvedLeaves(problem, certificate)
        bound = certificate.bound(problem)
        super().__init__(plan, service, leaves.job(service), bound, len(leaves))

    def pays(self) -> Fraction | None:
        if self.cases > 1:
            return None
        (case,) = self.one.cases
        return self.bound - case.rest

    def as_planned(self) -> Alternative | None:
        # of more than serve the service by themselves a proof may say nothing
        within = {
            block: min(count, needed)
            for block, count in self.counts.items()
            if (needed := self.one.needed(block))
        }
        return self.alternative(self.one, Given(within)) if within else None

    def worth(self, block: Block) -> Fraction | None:
        if self.cases > 1:
            return None
        (case,) = self.one.cases
        return case.prices[self.one.blocks.index(block)]


class _Shared(_Explaining):
    """A plan whose instances several services share in time."""

    def __init__(self, plan: Plan, serving: SharedServing, service: str) -> None:
        problem, certificate = serving.problem, plan.solution.certificate
        self._found: SharedJob = shared_job(problem, certificate, service)
        super().__init__(
            plan, service, self._found.beside, certificate.bound(problem), self._found.cases
        )

    def alone(self, block: Block) -> Alternative | None:
        one = self._found.alone.get(block)
        return None if one is None else self.alternative(one, Given({block: 1}))
