"""Why a plan serves a service by these instances: what every other choice would cost, at least.

The bound of a leaf is what all jobs pay at its prices. A schedule that gives a job certain blocks
makes it pay for these, which is at least what its cheapest option costs: the difference is the
*reduced cost* of the choice, and every schedule with it costs at least the bound and that much more
(weak duality, theory 6.3). Below branches the least over the leaves holds for all schedules.

Where jobs share blocks, no admitted mix of a leaf is worth more than the price of its block; what
it lacks is its *slack*, and each block in use adds that of its mix to the bound. So a block that
serves a job is priced at the least slack of all mixes there that have the job.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from ...certificate.certificate import BlockPrices, Certificate, proved_leaves, round_up
from ...certificate.price_conditions import prices_of_jobs
from ...certificate.quantity import BlocksOfJob
from ...errors import InvalidCertificate, UnsupportedProblem
from ...knapsack.pricing import cheapest_bundle, cheapest_option, common_denominator
from ...problem.parts import Block
from ...problem.problem import Problem
from ...problem.row import Row
from ...solving.solution import Status
from ...time_sharing.dearest import NODE_LIMIT, charges_of, price_mix
from ...time_sharing.prices import MixPrices
from ...time_sharing.problem import TimeSharedProblem
from ...values.frozen import FrozenMap
from ..serving import NeighbourServing, Plan, ServicePlan, ServingProblem
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
    case = one.cases[0] if one.leaves == len(one.cases) == 1 and not shared else None

    def rounded(bound: Fraction) -> Fraction:
        return round_up(max(bound, Fraction(0)), serving.problem.cost_step)

    def alternative(given: Given, cases: tuple[Case, ...] | None = None) -> Alternative:
        bound = one.bound_if(given, cases)
        if bound is None:
            return Alternative(None, None, None)
        bound = max(bound, one.bound)
        return Alternative(bound, bound - one.bound, rounded(bound))

    def choices(block: Block) -> BlockChoices:
        gpu, profile = serving.instance_of(block)
        at, own = one.blocks.index(block), Given({block: 1})
        return BlockChoices(
            block=block,
            gpu=gpu,
            profile=profile,
            supply_rps=Fraction(one.row.supply[at], one.row.denominator),
            count=counts[block],
            worth=None if case is None else case.prices[at],
            one=alternative(own),
            needed=needed[block],
            only=alternative(Given(without=frozenset(one.blocks) - {block})),
            without=alternative(Given(without=frozenset({block}))) if counts[block] else None,
            alone=None if one.alone is None else alternative(own, one.alone[block]),
        )

    return Explanation(
        given=given,
        cost=plan.solution.cost,
        bound=one.bound,
        lower_bound=rounded(one.bound),
        cases=one.leaves,
        pays=None if case is None else one.bound - case.rest,
        blocks=tuple(map(choices, needed if one.row.demand else ())),
        useless=tuple(block for block in one.blocks if block not in needed),
    )


class Given(NamedTuple):
    """What is said of the blocks that one job gets."""

    at_least: Mapping[Block, int] = FrozenMap()  # each no more than serve the job by themselves
    without: frozenset[Block] = frozenset()  # none of these types


class Case(NamedTuple):
    """One leaf of a certificate, as one job sees it."""

    rest: Fraction  # what the leaf proves, less what this job pays
    prices: tuple[Fraction, ...]  # what the job pays for a block of each type
    # By the branches above: of a type at least (1) or at most (-1) so many blocks.
    within: frozenset[tuple[Block, int, int]] = frozenset()


class OneJob(NamedTuple):
    """What a certificate proves of every schedule, by one job's blocks.

    ``alone`` has the cases in which one block of a type serves no other job; None where blocks are
    not shared at all.
    """

    blocks: tuple[Block, ...]
    row: Row
    bound: Fraction
    leaves: int
    cases: tuple[Case, ...]
    alone: Mapping[Block, tuple[Case, ...]] | None = None

    def needed(self, block: Block) -> int | None:
        """Return how many blocks of one type the job can use by themselves; None if none."""
        at = self.blocks.index(block)
        number = self.row.enough[at]
        return number if number or (self.row.supply[at] and not self.row.demand) else None

    def bound_if(self, given: Given, cases: Iterable[Case] | None = None) -> Fraction | None:
        """Return what every schedule that gives it so costs at least; None if there is none."""
        found: list[Fraction] = []
        for case in self.cases if cases is None else cases:
            is_open = all(  # whether the branches leave room for what the job gets
                value <= 0 or block not in given.without
                if sign > 0 else given.at_least.get(block, 0) <= value
                for block, sign, value in case.within
            )  # fmt: skip
            if is_open:
                paid = self._paid(case.prices, given)
                if paid is None:
                    return None
                found.append(case.rest + paid)
        return min(found, default=None)

    def _paid(self, exact: Sequence[Fraction], given: Given) -> Fraction | None:
        """What the job pays at least; None if these blocks cannot serve it."""
        prices, denominator = common_denominator(exact)
        left, paid = self.row.demand, 0
        supply = list(self.row.supply)
        for at, block in enumerate(self.blocks):
            if block in given.without:
                supply[at] = 0
            elif count := given.at_least.get(block, 0):
                left -= count * supply[at]
                paid += count * prices[at]
        found = cheapest_option(prices, supply, left)
        whole = found
        if self.row.rule:  # a bundle by the job's rule, too, of all types that are left
            whole = cheapest_bundle(prices, self.row._replace(supply=tuple(supply)))
        if found is None or whole is None:
            return None
        return Fraction(max(paid + found.value, whole.value), denominator)


def plain_job(problem: Problem, certificate: Certificate, name: str) -> OneJob:
    """Compute what is proved about a job that shares no block; leaves without schedules are out."""
    j, leaves = problem.job_index(name), [*proved_leaves(problem, certificate)]
    row, cases = problem.rows.row(j), dict[Case, None]()
    for leaf, path, proved in leaves:
        if not proved.infeasible:
            general, special = prices_of_jobs(problem, leaf, path)
            prices = tuple(special.get(j, general))
            # at its cheapest, or a little more where the search for that ended early
            found = cheapest_bundle(common_denominator(prices)[0], row)
            assert found is not None, "a leaf with a job that nothing serves is infeasible"
            paid = (p * n for p, n in zip(prices, found.option, strict=True))
            rest = proved.value - sum(paid, Fraction(0))
            within = frozenset(
                (quantity.block, sign, value)
                for quantity, sign, value in path
                if isinstance(quantity, BlocksOfJob) and quantity.job == name
            )
            cases[Case(rest, prices, within)] = None
    return OneJob(problem.blocks, row, certificate.bound(problem), len(leaves), tuple(cases))


def shared_job(problem: TimeSharedProblem, certificate: Certificate, name: str) -> OneJob:
    """Compute what is proved about a job that may share its blocks; undecided slacks count 0."""
    j, leaves = problem.job_index(name), [*proved_leaves(problem, certificate)]
    row, demand = problem.unshared().rows.row(j), problem.jobs[j].demand
    rates = zip(problem.blocks, row.supply, strict=True)
    usable = {block: Fraction(gives, row.denominator) for block, gives in rates if gives}
    cases = dict[Case, None]()
    alone: dict[Block, list[Case]] = {block: [] for block in usable}
    for leaf, path, proved in leaves:
        if not isinstance(leaf, MixPrices):
            raise InvalidCertificate(
                "a leaf has prices without price functions, which say nothing of single mixes"
            )
        if proved.infeasible:
            continue
        slacks, more = dict[Block, Fraction](), dict[Block, Fraction]()
        for block in usable:
            price = leaf.prices.get(block, Fraction(0))
            charges = charges_of(block, path, leaf.multipliers)
            own = charges.get(name, Fraction(0))
            # the dearest mix with the job is the dearest of all, once having the job is worth so
            # much more that no other mix can be; undecided, no mix is worth more than the price
            extra = (
                price + 1 + sum((-worth for worth in charges.values() if worth < 0), Fraction(0))
            )
            raised = {**charges, name: own + extra}
            found = price_mix(
                problem, block, leaf.functions, raised, above=price, node_limit=NODE_LIMIT
            )
            slacks[block] = Fraction(0)
            if found.decided and found.dearest is not None:
                slacks[block] = price + extra - found.dearest.worth
            # with the job alone the functions are worth most at the greatest rate
            if name in leaf.functions:
                own += leaf.functions[name].worth(usable[block], demand)
            more[block] = price - own - slacks[block]
        case = Case(proved.value, tuple(slacks.get(b, Fraction(0)) for b in problem.blocks))
        cases[case] = None
        for block, rest in more.items():
            alone[block].append(case._replace(rest=case.rest + rest))
    frozen = {block: tuple(every) for block, every in alone.items()}
    bound = certificate.bound(problem)
    return OneJob(problem.blocks, row, bound, len(leaves), tuple(cases), frozen)
