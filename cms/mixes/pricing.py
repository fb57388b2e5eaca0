"""The dearest mix of a problem's block, at price functions and below branches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction

from ..certificate.quantity import BlocksOfJob, Quantity
from ..problem.parts import Block
from ..running.stopping import never
from .dearest import NODE_LIMIT, Search, dearest_mix
from .functions import PriceFunction
from .offers import Offer
from .problem import TimeSharedProblem

_NOTHING = PriceFunction()


def charges_of(block: Block, counted: Iterable[tuple[Quantity, Fraction]]) -> dict[str, Fraction]:
    """Add up what mixes on a block are worth more for having a job.

    ``counted`` is what branches are on, with sign times multiplier.
    """
    charges: dict[str, Fraction] = {}
    for quantity, worth in counted:
        if isinstance(quantity, BlocksOfJob) and quantity.block == block and worth:
            charges[quantity.job] = charges.get(quantity.job, Fraction(0)) + worth
    return charges


def offers_of(
    problem: TimeSharedProblem,
    block: Block,
    functions: Mapping[str, PriceFunction],
    charges: Mapping[str, Fraction],
) -> list[Offer]:
    """Return what jobs offer on a type of block, but for those that no dearest mix needs."""
    offers = (
        offer._replace(
            function=functions.get(name, _NOTHING) if offer.demand else _NOTHING,
            charge=charges.get(name, Fraction(0)),
        )
        for name, offer in problem.unpaid_offers(block).items()
    )
    return [offer for offer in offers if offer.pays]


def price_mix(
    problem: TimeSharedProblem,
    block: Block,
    functions: Mapping[str, PriceFunction],
    charges: Mapping[str, Fraction],
    *,
    above: Fraction,
    node_limit: int = NODE_LIMIT,
    stopped: Callable[[], bool] = never,
) -> Search:
    """Find the dearest mix on a type of block as :func:`.dearest_mix` does."""
    return dearest_mix(
        offers_of(problem, block, functions, charges),
        above=above,
        most_jobs=problem.max_jobs,
        node_limit=node_limit,
        stopped=stopped,
        listed=problem.listed_mixes(block),
    )
