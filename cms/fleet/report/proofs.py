"""What a bound's proof is and says of scarce blocks, and how anyone can recheck it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from ...certificate.certificate import BlockPrices
from ...certificate.conditions import most_worth
from ...problem.parts import Block
from ...solving.words import circumstances, verdict
from ...values.words import at_least, count, fraction, printable
from .charts import Known, bounds_parts
from .page import Bullets, Part, Section, Words

if TYPE_CHECKING:
    from ...problem.machine_problem import MachineProblem
    from ...solving.solution import Solution


def closing(solution: Solution, machine: str = "machine") -> list[Words]:
    """Say how a report ends: what is proved, and how it was found."""
    tone = "best" if solution.proof == "checked" else "open"
    ran = Words(f"({circumstances(solution)})", "soft")
    return [Words(verdict(solution, machine), tone), ran]


class Worths(NamedTuple):
    """What each block is worth in the proof of the bound, the least first.

    `absolute`: 1 is what any machine costs; otherwise it is the most valuable configuration.
    `cases`: leaves of the certificate, 1 if the proof does not branch.
    """

    shares: Mapping[Block, Fraction]
    absolute: bool = True
    cases: int = 1


def worths(solution: Solution, problem: MachineProblem) -> Worths | None:
    """Turn a certificate's prices into shares of a machine; None if there is nothing to say.

    Where machines differ in cost, and in a proof that branches, a price alone says little: there
    the shares are of the most valuable configuration, at the leaf that prices most blocks.
    """
    if solution.status == "infeasible":
        return None
    leaves = list(solution.certificate.leaves())
    leaf = max(leaves, key=lambda leaf: sum(price > 0 for price in leaf.prices.values()))
    costs = {machine.cost for machine in problem.machine_types}
    absolute = len(costs) == len(leaves) == 1
    prices = {block: leaf.prices.get(block, Fraction(0)) for block in problem.blocks}
    shapes = problem.configurations
    whole = min(costs) if absolute else max((most_worth(s, prices) for s in shapes), default=0)
    if not (whole and any(leaf.prices.values())):
        return None
    ranked = sorted(prices, key=lambda block: (prices[block], block))
    return Worths({block: prices[block] / whole for block in ranked}, absolute, len(leaves))


def worth_line(found: Worths, machine: str = "machine") -> str:
    """List what the blocks are worth."""
    listed = ", ".join(
        f"{printable(block)} {fraction(share)}" for block, share in found.shares.items()
    )
    source = "the proof" if found.cases == 1 else f"one of the proof's {found.cases} cases"
    if found.absolute:
        return f"Worth in {machine}s, by the prices of {source}: {listed}"
    return f"Worth by the prices of {source}, a best-used {machine} being 1: {listed}"


def scarcest_line(found: Worths, slices: Mapping[Block, tuple[int, int]]) -> str:
    """Name the instance that is worth most beyond its compute slices, of so many of its GPU."""
    over = {block: found.shares[block] / Fraction(*own) for block, own in slices.items()}
    block = max(over, key=lambda block: over[block], default=None)
    if block is None or over[block] <= 1 or not found.absolute:  # unlike machines do not compare
        return ""
    own, all_ = slices[block]
    return (
        f"Scarcest: {printable(block)}, worth {fraction(found.shares[block])} of a GPU "
        f"for {own} of its {all_} compute slices"
    )


def bounds_section(solution: Solution, unit: str) -> Iterator[Section]:
    """Yield both bounds over the time of a run, if it had any."""
    if solution.history:
        known = [
            Known(each.seconds, each.cost, each.lower_bound, each.source)
            for each in solution.history
        ]
        run = f"The run: {circumstances(solution)}."
        parts = [run, *bounds_parts(known, solution.seconds, unit, up=True)]
        yield Section("bounds", "Both bounds over time", parts, only="web")


def proof_section(
    solution: Solution, problem: MachineProblem, machine: str, source: str, more: str = ""
) -> Section:
    """Say what the certificate of a solution proves, and how; `more`: what else it leaves open."""
    leaves = list(solution.certificate.leaves())
    parts: list[Part] = [f"{verdict(solution, machine)}."]
    if solution.status == "infeasible" and solution.proof == "checked":
        parts.append(
            f"The proof: prices under which the demands are worth more than all {machine}s there "
            "are, however they are partitioned."
        )
    elif solution.lower_bound > 0:
        shared = not isinstance(leaves[0], BlockPrices)
        what = "a function of what is put on an instance" if shared else "a price on every instance"
        parts.append(
            f"The proof of the bound: {what}, such that whatever a {machine} can be partitioned "
            f"into is worth at most what the {machine} costs. Every plan must then pay at least "
            "what each service pays at these prices where it is cheapest; together that is at "
            f"least {at_least(solution.lower_bound)}, rounded up to what {machine}s can cost."
        )
        if len(leaves) > 1:
            parts.append(
                f"It distinguishes {count(len(leaves), 'case')}, one of which every plan falls "
                "into; each has prices of its own."
            )
    parts += [f"{more[:1].upper()}{more[1:]}."] * bool(more)
    parts += [
        "The schedule (each service gets its rate, each GPU can be partitioned so) and the proof "
        "were rechecked from the file before this page was made, in whole numbers and fractions. "
        "So can you; the independent checker shares no code with the package:",
        recheck(source or "plan.json"),
        f"SHA-256 of the problem: {problem.sha256}",
    ]
    return Section("proof", "The proof", parts, only="web")


def recheck(*sources: str) -> Bullets:
    """Return the two commands that recheck files."""
    names = shlex.join(sources)
    every = (f"cms check {names}", "everything the file says, exactly")
    return Bullets([every, (f"cms-check {names}", "the same by an independent checker")])
