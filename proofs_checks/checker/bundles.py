"""Jobs that ask for more than enough: replicas, and blocks that get equal shares of the load.

Of a job with ``replicas`` at least ``count`` blocks must cover at least the part ``share`` of its
demand each. Under ``equal`` routing every block of the job counts as the one that covers least. A
job without a demand asks for nothing.

**The cheapest bundle.** Under equal routing let b be the block of a bundle that covers least, f_b.
The bundle has at least max(count, ceil(demand / f_b)) blocks, which cover f_b or more each, so it
costs at least so many times the cheapest of these; and f_b is at least the share. As many blocks of
the cheapest type serve the job as well: the least over all b is the price. With replicas alone some
``count`` blocks of a bundle are replicas, and the others cover what is left: the choices of
replicas are gone through, and what is left is a knapsack of its own. Where these choices are too
many the answer is a lower bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from math import ceil
from typing import Any, NamedTuple

from .knapsacks import cheapest_price
from .reading import ZERO, Fault, integer, number, record, show

#: A job has at most so many replicas; docs/reference/files.md says so.
_MOST_REPLICAS = 64
#: Choices of replicas, in parts, that are gone through for one price.
_STEPS = 200_000


class Rule(NamedTuple):
    """What a job asks for; ``number`` is 0 if it has no replicas."""

    number: int
    share: Fraction
    routing: str


def read_rule(fields: Mapping[str, Any], name: str) -> Rule | None:
    """Read the keys of a job; None if it asks for nothing."""
    routing, count, share = fields.get("routing", "weighted"), 0, ZERO
    if routing not in ("weighted", "equal"):
        raise Fault(f"the routing of job {show(name)} is {show(routing)}, not weighted or equal")
    if "replicas" in fields:
        table = record(fields["replicas"], f"the replicas of job {show(name)}", "count", "share")
        count = integer(table["count"], "the count of replicas of job", name, least=1)
        share = number(table.get("share", Fraction(1, 2 * count)), "the share of job", name)
        if count > _MOST_REPLICAS or share > 1:
            said = f"job {show(name)} has {show(count)} replicas of a share of {show(share)}"
            raise Fault(f"{said}, more than {_MOST_REPLICAS}, or than all of its demand")
    return Rule(count, share, routing) if count or routing == "equal" else None


def able(rule: Rule | None, demand: int, supply: Sequence[int]) -> list[int]:
    """The places of the blocks that can be replicas, or serve the job by themselves."""
    least = 0 if rule is None else rule.share * demand
    return [at for at, f in enumerate(supply) if f > 0 and f >= least]


def most_used(rule: Rule | None, demand: int, supply: Sequence[int], at: int) -> int:
    """How many blocks of a type a bundle has, at most, that can do without none of its blocks.

    So many of an able type serve the job by themselves; of others so many cover the demand.
    """
    number = -(-demand // supply[at]) if supply[at] else 0
    if rule is None or not number:
        return number
    if at in able(rule, demand, supply):
        return max(number, rule.number)
    return 0 if rule.routing == "equal" else number


def bundle_faults(
    name: str, rule: Rule, demand: int, supply: Sequence[int], scale: int, bundle: Mapping[int, int]
) -> Iterator[str]:
    """Say what a job with a demand lacks; ``bundle`` counts its blocks by their place."""
    gives = [(supply[at], n) for at, n in bundle.items()]
    if rule.routing == "equal" and gives:
        gives = [(min(gives)[0], n) for _, n in gives]
    total = sum(f * n for f, n in gives)
    replicas = sum(n for f, n in gives if f > 0 and f >= rule.share * demand)
    if total < demand:
        part, wants = show(Fraction(total, scale)), show(Fraction(demand, scale))
        yield f"job {show(name)} has {part} of its demand {wants} covered in {rule.routing} shares"
    if replicas < rule.number:
        said = f"job {show(name)} has {show(replicas)} replicas that cover {show(rule.share)}"
        yield f"{said} of its demand each; it needs {show(rule.number)}"


def cheapest_bundle(
    costs: Sequence[int], rule: Rule | None, demand: int, supply: Sequence[int]
) -> int | None:
    """The least price of blocks that serve a job, or after many steps less; None if none do."""
    if rule is None or not demand:
        return cheapest_price(costs, supply, demand)
    places = able(rule, demand, supply)
    if not places:
        return None
    if rule.routing != "equal":
        return _with_replicas(costs, rule.number, demand, supply, places)
    return min(
        max(rule.number, -(-demand // supply[b]))
        * min(costs[at] for at in places if supply[at] >= supply[b])
        for b in places
    )


def _with_replicas(
    costs: Sequence[int], count: int, demand: int, supply: Sequence[int], places: Sequence[int]
) -> int:
    front: list[tuple[int, int]] = []  # by rising price and cover
    for p, f in sorted((costs[at], -min(supply[at], demand)) for at in places):
        if not front or -f > front[-1][1]:
            front.append((p, -f))
    ratio = min(Fraction(p, f) for p, f in zip(costs, supply, strict=True) if f)
    best: int | None = None
    steps = 0

    def choose(at: int, left: int, missing: int, spent: int) -> None:
        """Take replicas of types up to ``at``, the dearest first, then cover what is left."""
        nonlocal best, steps
        steps += 1
        least = spent + max(ceil(left * ratio), missing * front[0][0])
        if steps > _STEPS or (best is not None and least >= best):
            return
        if not missing:
            price = spent + (cheapest_price(costs, supply, left) or 0)
            best = price if best is None else min(best, price)
        for lower in range(at, -1, -1) if missing else ():
            p, f = front[lower]
            choose(lower, max(0, left - f), missing - 1, spent + p)

    choose(len(front) - 1, demand, count, 0)
    lowest = max(cheapest_price(costs, supply, demand) or 0, count * front[0][0])
    return lowest if best is None or steps > _STEPS else best
