"""What a certificate about mixes says of one job's choices: exact reduced costs.

At a leaf no admitted mix is worth more than the price of its block; what it lacks is its *slack*.
The blocks of a schedule are worth what its mixes are worth and the sum of their slacks, so each
block in use adds the slack of its mix to the bound. A block that serves a job adds at least the
least slack of all mixes there that have the job, and the job needs so many of them that their
greatest rates add up to its demand: the covering knapsack of :mod:`cms.certificate.one_job`, with
least slacks for prices.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from ..certificate.certificate import Certificate, proved_leaves
from ..certificate.one_job import Case, OneJob
from ..errors import InvalidCertificate
from ..problem.parts import Block
from ..problem.rows import reduced
from ..values.frozen import FrozenMap
from .dearest import NODE_LIMIT, price_mix
from .prices import MixPrices
from .problem import TimeSharedProblem


class SharedJob(NamedTuple):
    """What a certificate, of so many cases, proves of schedules that serve one job as chosen.

    ``beside``: the job is part of so many mixes on blocks of each type. ``alone``: the same, if one
    block of this type serves it alone, for the types that can.
    """

    beside: OneJob
    alone: FrozenMap[Block, OneJob]
    cases: int


def shared_job(
    problem: TimeSharedProblem, certificate: Certificate, job: str, node_limit: int = NODE_LIMIT
) -> SharedJob:
    """Compute what is proved about the choices of a job that may share its blocks.

    A KeyError says that there is no such job; InvalidCertificate, that the certificate does not
    hold or has no price functions. Where the search for a least slack is given up, 0 counts.
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
        charges = {block: leaf.charges(block, path) for block in usable}
        slacks = {b: _least_slack(problem, leaf, b, charges[b], job, node_limit) for b in usable}
        case = Case(proved.value, tuple(slacks.get(b, Fraction(0)) for b in problem.blocks))
        cases.append(case)
        for block, slack in slacks.items():
            # With the job alone the functions are worth most at the greatest rate.
            worth = charges[block].get(job, Fraction(0))
            if job in leaf.functions:
                worth += leaf.functions[job].worth(usable[block], own.demand)
            more = leaf.prices.get(block, Fraction(0)) - worth - slack
            alone[block].append(case._replace(rest=case.rest + more))
    rates = [usable.get(block, Fraction(0)) for block in problem.blocks]
    row = reduced(own.demand, rates, f"job {job!r}")
    return SharedJob(
        OneJob(problem.blocks, row, dict.fromkeys(cases)),
        FrozenMap({block: OneJob(problem.blocks, row, own) for block, own in alone.items()}),
        number,
    )


def _rates(problem: TimeSharedProblem, job: str) -> dict[Block, Fraction]:
    """The greatest rate of a job on each type of block that can serve it."""
    rates = {block: problem.greatest_rates(block) for block in problem.blocks}
    return {block: own[job] for block, own in rates.items() if job in own}


def _least_slack(
    problem: TimeSharedProblem,
    leaf: MixPrices,
    block: Block,
    charges: dict[str, Fraction],
    job: str,
    node_limit: int,
) -> Fraction:
    """The price of a block less what the dearest mix with a job is worth.

    Such a mix is found as the dearest of all, once having the job is worth so much more that no
    other mix can be.
    """
    price = leaf.prices.get(block, Fraction(0))
    more = price + 1 + sum((-worth for worth in charges.values() if worth < 0), Fraction(0))
    found = price_mix(
        problem,
        block,
        leaf.functions,
        {**charges, job: charges.get(job, Fraction(0)) + more},
        above=price,
        node_limit=node_limit,
    )
    if found.decided and found.dearest is not None:
        return price + more - found.dearest.worth
    return Fraction(0)  # what the certificate has shown of any mix
