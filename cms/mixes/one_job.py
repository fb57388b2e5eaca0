"""What a certificate about mixes says of one job's choices: exact reduced costs.

At a leaf no admitted mix is worth more than the price of its block; what it lacks is its *slack*.
The blocks of a schedule are worth what its mixes are worth and the sum of their slacks, so each
block in use adds the slack of its mix to the bound. A block that serves a job adds at least the
least slack of all mixes there that have the job, and the job needs so many of them that their
greatest rates add up to its demand: the covering knapsack of :mod:`cms.certificate.one_job`, with
least slacks for prices.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from ..certificate.certificate import Certificate, proved_leaves
from ..certificate.conditions import Condition
from ..certificate.one_job import Case, OneJob
from ..errors import InvalidCertificate
from ..problem.parts import Block
from ..problem.rows import reduced
from ..values.frozen import FrozenMap
from .dearest import NODE_LIMIT, dearest_mix
from .offers import Offer
from .prices import MixPrices
from .problem import TimeSharedProblem
from .problem_offers import Charge, charges_of, offers_of

__all__ = ["SharedJob", "shared_job"]


class SharedJob(NamedTuple):
    """What a certificate proves of every schedule in which one job is served as chosen.

    Attributes
    ----------
    beside : OneJob
        The job is part of so many mixes on blocks of each type.
    alone : Mapping of str to OneJob
        The same, if one block of this type serves it alone; only types that it can be alone on.
    cases : int
        Leaves of the certificate.
    """

    beside: OneJob
    alone: FrozenMap[Block, OneJob]
    cases: int


class _Slack(NamedTuple):
    """The least slack of mixes with a job on a type of block: of all, and of the job alone."""

    least: Fraction
    alone: Fraction


def shared_job(
    problem: TimeSharedProblem, certificate: Certificate, job: str, node_limit: int = NODE_LIMIT
) -> SharedJob:
    """Return what is proved about the choices of a job that may share its blocks.

    Parameters
    ----------
    problem : TimeSharedProblem
    certificate : Certificate
        Of :class:`cms.MixPrices`.
    job : str
        KeyError if there is none of this name.
    node_limit : int, optional
        The effort after which the search for a least slack is given up; then 0 counts, which it is
        at least.

    Raises
    ------
    InvalidCertificate
        If the certificate does not hold, or is of prices without price functions.

    Examples
    --------
    >>> from cms import Configuration, PriceFunction, TimeSharedJob
    >>> from cms.certificate.one_job import Given
    >>> points = {"gpu": [(4, 2)], "half": [(4, 6)]}
    >>> problem = TimeSharedProblem(
    ...     configurations=[Configuration({"gpu": 1}), Configuration({"half": 2})],
    ...     jobs=[TimeSharedJob(name, demand=1, limit=20, points=points) for name in "xy"],
    ... )
    >>> functions = {name: PriceFunction("1/2") for name in "xy"}
    >>> prices = MixPrices({"gpu": 1, "half": "1/2"}, functions=functions)
    >>> found = shared_job(problem, prices, "x")
    >>> str(found.beside.bound), str(found.beside.bound_if(Given({"half": 1})))
    ('1', '7/6')
    >>> str(found.alone["gpu"].bound_if(Given({"gpu": 1})))
    '3/2'
    """
    own, usable = problem.job(job), _rates(problem, job)
    cases: list[Case] = []
    alone: dict[Block, list[Case]] = {block: [] for block in usable}
    number = 0
    for leaf, path, proved in proved_leaves(problem, certificate):
        number += 1
        if not isinstance(leaf, MixPrices):
            raise InvalidCertificate(
                "a leaf has prices without price functions, which say nothing of single mixes"
            )
        if proved.infeasible:
            continue
        slacks = {block: _slack(problem, leaf, path, block, job, node_limit) for block in usable}
        least = (slacks[b].least if b in slacks else Fraction(0) for b in problem.blocks)
        case = Case(proved.value, tuple(least))
        cases.append(case)
        for block, slack in slacks.items():
            alone[block].append(case._replace(rest=case.rest + slack.alone - slack.least))
    rates = [usable.get(block, Fraction(0)) for block in problem.blocks]
    row = reduced(own.demand, rates, f"job {job!r}")
    return SharedJob(
        OneJob(problem.blocks, row, dict.fromkeys(cases)),
        FrozenMap({block: OneJob(problem.blocks, row, own) for block, own in alone.items()}),
        number,
    )


def _rates(problem: TimeSharedProblem, job: str) -> dict[Block, Fraction]:
    """The greatest rate that a block of each type can give a job."""
    found = {}
    for block in problem.blocks:
        rates = [point.amount / point.length for point in problem.admitted_points(block, job)]
        if rates:
            found[block] = max(rates)
    return found


def _slack(
    problem: TimeSharedProblem,
    leaf: MixPrices,
    path: Sequence[Condition],
    block: Block,
    job: str,
    node_limit: int,
) -> _Slack:
    """Return the least slacks at a leaf: its price less what the dearest mix with the job is worth.

    Such a mix is found as the dearest of all, once having the job is worth so much more that no
    other mix can be.
    """
    price = leaf.prices.get(block, Fraction(0))
    counted = [
        (condition.quantity, condition.sign * multiplier)
        for condition, multiplier in zip(path, leaf.multipliers, strict=True)
    ]
    charges = charges_of(problem, block, counted)
    charged = [charge.worth for own in charges.values() for charge in own]
    more = price + 1 + sum((-worth for worth in charged if worth < 0), Fraction(0))
    charges.setdefault(job, []).append(Charge(Fraction(0), more))
    offers = offers_of(problem, block, leaf.functions, charges)
    found = dearest_mix(
        offers,
        above=price,
        most_jobs=problem.max_jobs,
        node_limit=node_limit,
        listed=problem.listed_mixes(block),
    )
    least = Fraction(0)  # what the certificate has shown of any mix
    if found.decided and found.dearest is not None:
        least = price + more - found.dearest.worth
    own = next(offer for offer in offers if offer.job == job)
    return _Slack(least, price + more - max(_worth_alone(own)))


def _worth_alone(offer: Offer) -> list[Fraction]:
    """What a mix of one job alone is worth, with each of its choices."""
    return [
        offer.function.worth(choice.amount / choice.length, offer.demand) + choice.charge
        for choice in offer.choices
    ]
