"""What the jobs of a problem offer on a type of block, at price functions and below branches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from ..certificate.quantity import BlocksOfJob, Quantity
from ..problem.parts import Block
from .functions import PriceFunction
from .model import Choice
from .offers import Offer
from .problem import TimeSharedProblem

#: What jobs pay that are left out.
_NOTHING = PriceFunction()


class Charge(NamedTuple):
    """What a mix is worth more, or less, for a turn of a job that takes so long or longer."""

    length: Fraction
    worth: Fraction


def charges_of(
    problem: TimeSharedProblem, block: Block, counted: Iterable[tuple[Quantity, Fraction]]
) -> dict[str, list[Charge]]:
    """Return, by job, what mixes on a type of block are worth more for what they add to branches.

    Parameters
    ----------
    problem : TimeSharedProblem
    block : str
    counted : iterable of (quantity, Fraction)
        What branches are on, with sign times multiplier.
    """
    charges: dict[str, list[Charge]] = {}
    for quantity, worth in counted:
        if isinstance(quantity, BlocksOfJob) and quantity.block == block and worth:
            length = None
            if quantity.amount is not None:
                length = problem.turn_length(block, quantity.job, quantity.amount)
            charges.setdefault(quantity.job, []).append(Charge(length or Fraction(0), worth))
    return charges


def offers_of(
    problem: TimeSharedProblem,
    block: Block,
    functions: Mapping[str, PriceFunction],
    charges: Mapping[str, Sequence[Charge]] | None = None,
    *,
    unpaid: bool = False,
) -> list[Offer]:
    """Return what the jobs of a problem offer on one type of block.

    Parameters
    ----------
    problem : TimeSharedProblem
    block : str
    functions : Mapping[str, PriceFunction]
        0 for jobs left out.
    charges : Mapping[str, sequence of Charge], optional
        What a mix on this type of block is worth more for the turns of a job; 0 for those left out.
    unpaid : bool, default False
        Whether jobs that have a demand but pay nothing are offered as well: no dearest mix needs
        them.

    Examples
    --------
    >>> from cms import Configuration
    >>> from .model import TimeSharedJob
    >>> jobs = [TimeSharedJob(name, 5, 20, {"a": [(2, 8), (3, 11)]}) for name in ("x", "y")]
    >>> problem = TimeSharedProblem(configurations=Configuration({"a": 1}), jobs=jobs)
    >>> for offer in offers_of(problem, "a", {"x": PriceFunction(1)}):
    ...     print(offer.job, *offer.choices[0])
    x 2 8 12 0
    """
    offers = []
    charges = {} if charges is None else charges
    for name, choices in problem.usable_choices(block).items():
        job, own = problem.job(name), charges.get(name, ())
        function = functions.get(name, _NOTHING) if job.demand else _NOTHING
        if own:
            every = problem.choices(block, name)
            charged = tuple(choice._replace(charge=_charged(choice, own)) for choice in every)
            # Of those of which larger ones take longer, none beats another whatever the charges.
            choices = charged if len(every) == len(choices) else _undominated(charged)
        offer = Offer(name, job.demand, function, choices)
        if offer.pays or (unpaid and job.demand):
            offers.append(offer)
    return offers


def _charged(choice: Choice, charges: Sequence[Charge]) -> Fraction:
    worths = (charge.worth for charge in charges if choice.length >= charge.length)
    return sum(worths, Fraction(0))


def _undominated(choices: Iterable[Choice]) -> tuple[Choice, ...]:
    """Return those, by rising amount, that no other equals or beats in amount, length and charge.

    With one that beats it a mix has a shorter frame and greater rates, and is charged no less.
    """
    kept: list[Choice] = []
    for choice in sorted(choices, key=lambda c: (-c.amount, c.length, -c.charge)):
        if not any(c.length <= choice.length and c.charge >= choice.charge for c in kept):
            kept.append(choice)
    return tuple(reversed(kept))
