"""Which blocks are scarce: the prices of the bound's proof in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from ...certificate.conditions import most_worth
from ...problem.parts import Block
from ...values.words import fraction, printable

if TYPE_CHECKING:
    from ...certificate.certificate import Leaf
    from ...problem.machine_problem import MachineProblem
    from ...solving.solution import Solution


class Worths(NamedTuple):
    """What each block is worth in the proof of the bound.

    Attributes
    ----------
    shares : Mapping of str to Fraction
        The least first; 1 is worth a whole machine.
    absolute : bool
        Whether 1 is what any machine costs; otherwise it is the most valuable configuration.
    cases : int
        Leaves of the certificate; 1 if the proof does not branch.
    """

    shares: Mapping[Block, Fraction]
    absolute: bool = True
    cases: int = 1


def worths(solution: Solution, problem: MachineProblem) -> Worths | None:
    """Turn a certificate's prices into shares of a machine.

    Parameters
    ----------
    solution : Solution
    problem : MachineProblem
        The one it solves.

    Returns
    -------
    Worths or None
        None if there is nothing to say: all prices are 0, or the problem is infeasible.

    Notes
    -----
    Where machines differ in cost, and in a proof that branches, a price alone says little: there
    the shares are of the most valuable configuration, at the leaf that prices most blocks.
    """
    if solution.status == "infeasible":
        return None
    leaves = list(solution.certificate.leaves())
    leaf = max(leaves, key=lambda leaf: sum(price > 0 for price in leaf.prices.values()))
    costs = {machine.cost for machine in problem.machine_types}
    absolute = len(costs) == len(leaves) == 1
    whole = min(costs) if absolute else _best_machine(problem, leaf)
    if not (whole and any(leaf.prices.values())):
        return None
    shares = {block: leaf.prices.get(block, Fraction(0)) / whole for block in problem.blocks}
    ranked = sorted(shares.items(), key=lambda entry: (entry[1], entry[0]))
    return Worths(dict(ranked), absolute, len(leaves))


def _best_machine(problem: MachineProblem, leaf: Leaf) -> Fraction:
    """The value of the most valuable configuration at a leaf's prices."""
    worth = {block: leaf.prices.get(block, Fraction(0)) for block in problem.blocks}
    return max((most_worth(shape, worth) for shape in problem.configurations), default=Fraction(0))


def worth_line(found: Worths, machine: str = "machine") -> str:
    """List what the blocks are worth.

    Examples
    --------
    >>> found = Worths({"1g": Fraction(2, 15), "3g": Fraction(7, 15)})
    >>> worth_line(found, "GPU")
    'Worth in GPUs, by the prices of the proof: 1g 2/15, 3g 7/15'
    """
    listed = ", ".join(
        f"{printable(block)} {fraction(share)}" for block, share in found.shares.items()
    )
    source = "the proof" if found.cases == 1 else f"one of the proof's {found.cases} cases"
    if found.absolute:
        return f"Worth in {machine}s, by the prices of {source}: {listed}"
    return f"Worth by the prices of {source}, a best-used {machine} being 1: {listed}"


def scarcest_line(found: Worths, slices: Mapping[Block, tuple[int, int]]) -> str:
    """Name the instance that is worth most beyond its compute slices.

    Parameters
    ----------
    found : Worths
    slices : Mapping of str to (int, int)
        Compute slices of an instance, and of its GPU.

    Examples
    --------
    >>> found = Worths({"1g": Fraction(2, 15), "3g": Fraction(7, 15)})
    >>> scarcest_line(found, {"1g": (1, 7), "3g": (3, 7)})
    'Scarcest: 3g, worth 7/15 of a GPU for 3 of its 7 compute slices'
    """
    over = {
        block: found.shares[block] / Fraction(own, all_) for block, (own, all_) in slices.items()
    }
    most = max(over.values(), default=Fraction(0))
    if most <= 1 or not found.absolute:  # shares of unlike machines do not compare
        return ""
    block = next(block for block, value in over.items() if value == most)
    own, all_ = slices[block]
    return (
        f"Scarcest: {printable(block)}, worth {fraction(found.shares[block])} of a GPU "
        f"for {own} of its {all_} compute slices"
    )
