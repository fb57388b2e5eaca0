"""Prices that prove lower bounds where several jobs share a block in time."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..certificate.certificate import Leaf
from ..certificate.price_conditions import Condition, Worth
from ..errors import InvalidCertificate, InvalidProblem
from ..problem.parts import Block
from ..running.stopping import Stopped, never
from ..schedule.contents import shown_content
from ..values.frozen import FrozenMap
from ..values.names import checked_names, nearest
from ..values.numbers import Number, shown
from .dearest import NODE_LIMIT, charges_of, price_mix
from .functions import PriceFunction, functions_table
from .problem import TimeSharedProblem


@dataclass(frozen=True, slots=True, init=False)
class MixPrices(Leaf):
    """Block prices and a price function a job; the leaf of a certificate about mixes.

    Parameters
    ----------
    prices, limit_prices, multipliers, proper
        As of :class:`cms.BlockPrices`.
    functions : Mapping[str, PriceFunction]
        Of jobs; what is left out is 0, as it must be for a job without a demand.

    Notes
    -----
    They hold if every configuration C of a machine type m is worth at most ``cost_m +
    limit_price_m``, and if no admitted mix is worth more than its block: the sum over its jobs of
    what they pay for their rates. Then every schedule costs at least the sum over jobs of what they
    pay for their demands, less ``limit_m * limit_price_m`` over machine types: the mixes of a
    schedule give each job rates that are worth at least what its demand is.

    A branch on :class:`cms.BlocksOfJob` counts the blocks of a type whose mix has the job: each mix
    there is worth its multiplier more, or less on the side ``below``. If all this holds even with
    all costs 0 and the bound is positive, there is no schedule at all; and there is none if some
    job with a demand has no point that is admitted alone.

    Whether some mix is worth more than its block is decided exactly, within a limit of effort
    (:data:`cms.time_sharing.dearest.NODE_LIMIT`); beyond it the prices count as not holding.

    Examples
    --------
    Two jobs of which one machine can do a third and a half, sharing it: the prices prove that 5/6
    of a machine is needed.

    >>> from cms import Configuration, Mix, TimeSharedJob, TimeSharedProblem
    >>> problem = TimeSharedProblem(
    ...     configurations=Configuration({"gpu": 1}),
    ...     jobs=[
    ...         TimeSharedJob("x", demand="2/3", limit=10, points={"gpu": [(4, 2)]}),
    ...         TimeSharedJob("y", demand=1, limit=10, points={"gpu": [(4, 2)]}),
    ...     ],
    ... )
    >>> functions = {"x": PriceFunction("1/3"), "y": PriceFunction("1/2")}
    >>> MixPrices({"gpu": 1}, functions=functions).bound(problem)
    Fraction(5, 6)
    >>> functions["y"] = PriceFunction(1)
    >>> MixPrices({"gpu": "9/10"}, functions=functions).bound(problem)
    Traceback (most recent call last):
        ...
    cms.errors.InvalidCertificate: the mix 'x x 4 + y x 4' is worth 4/3 at these price functions, \
more than the price 0.9 of its block 'gpu'
    """

    functions: FrozenMap[str, PriceFunction]

    def __init__(
        self,
        prices: Mapping[Block, Number] | None = None,
        limit_prices: Mapping[str, Number] | None = None,
        multipliers: Sequence[Number] = (),
        proper: Mapping[Block, int] | None = None,
        functions: Mapping[str, PriceFunction] | None = None,
    ) -> None:
        Leaf.__init__(self, prices, limit_prices, multipliers, proper)
        table = functions_table(functions)
        try:
            checked_names(table, "job")
        except InvalidProblem as fault:
            raise InvalidCertificate(str(fault)) from None
        object.__setattr__(self, "functions", FrozenMap(table))

    def to_json(self) -> dict[str, Any]:
        """Return the prices and functions as plain JSON values."""
        functions = {job: function.to_json() for job, function in self.functions.items()}
        return {**Leaf.to_json(self), "functions": functions}

    def numbers(self) -> Hashable:
        """Return all its numbers but the multipliers: equal ones prove the same below a path."""
        return self.prices, self.limit_prices, self.proper, self.functions

    def jobs_worth(
        self,
        problem: Any,
        path: tuple[Condition, ...],
        stopped: Callable[[], bool] | None,
        undisturbed: int,
    ) -> Worth | None:
        """Return what the jobs pay for their demands; None if it was stopped.

        InvalidCertificate is raised if a mix is worth more than its block, or that was not decided.
        """
        if not isinstance(problem, TimeSharedProblem):
            raise InvalidCertificate(
                f"price functions are about a TimeSharedProblem; this is a {type(problem).__name__}"
            )
        self._refuse_unknown(problem)
        usable = set[str]()
        for block in problem.blocks:
            usable |= problem.usable_points(block).keys()
            try:
                self._refuse_dearer(problem, block, path, stopped or never)
            except Stopped:
                return None
        total = Fraction(0)
        for name, function in self.functions.items():
            demand = problem.job(name).demand
            total += function.worth(demand, demand)
        return Worth(total, any(job.demand and job.name not in usable for job in problem.jobs))

    def _refuse_unknown(self, problem: TimeSharedProblem) -> None:
        for name in self.functions:
            if name not in problem.job_names:
                raise InvalidCertificate(
                    f"a price function for the job {name!r}, which the problem does not have"
                    + nearest(name, problem.job_names)
                )
            if not problem.job(name).demand:
                raise InvalidCertificate(
                    f"a price function for the job {name!r}, which has no demand; leave it out"
                )

    def _refuse_dearer(
        self,
        problem: TimeSharedProblem,
        block: Block,
        path: tuple[Condition, ...],
        stopped: Callable[[], bool],
    ) -> None:
        price, charges = (
            self.prices.get(block, Fraction(0)),
            charges_of(block, path, self.multipliers),
        )
        own, most = self.functions, NODE_LIMIT
        found = price_mix(
            problem, block, own, charges, above=price, node_limit=most, stopped=stopped
        )
        if found.dearest is not None:
            mix, worth = found.dearest
            raise InvalidCertificate(
                f"{shown_content(mix)} is worth {shown(worth)} at these price functions, more than "
                f"the price {shown(price)} of its block {block!r}"
            )
        if not found.decided:
            raise InvalidCertificate(
                f"whether a mix is worth more than the price {shown(price)} of its block "
                f"{block!r} was not decided within {found.nodes} steps; a price that is 1 % "
                "higher takes far fewer"
            )
