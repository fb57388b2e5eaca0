"""Jobs that ask for more than enough: replicas, and blocks that get equal shares of the load.

Of a job with ``replicas`` at least so many blocks must cover at least a share of its demand each.
Under ``equal`` routing every block of the job counts as the one that covers least.

**The cheapest bundle.** Under equal routing let f be what the block of a bundle covers that covers
least. The bundle has at least ceil(demand / f) blocks and as many as replicas, which cover f or
more each; so it costs that many times the cheapest of these, at least, and so many of that type
serve the job as well. With replicas alone the choices of replicas are gone through, and what is
left is a knapsack of its own; where these choices are too many the answer is a lower bound.
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
            raise Fault(f"job {show(name)} has more than {_MOST_REPLICAS} replicas, or a share > 1")
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
    """Say what a job lacks; ``bundle`` counts its blocks by their place."""
    gives = [(supply[at], n) for at, n in bundle.items()]
    if rule.routing == "equal" and gives:
        gives = [(min(gives)[0], n) for _, n in gives]
    total = sum(f * n for f, n in gives)
    replicas = sum(n for f, n in gives if f > 0 and f >= rule.share * demand)
    if total < demand:
        part, wants = show(Fraction(total, scale)), show(Fraction(demand, scale))
        yield f"job {show(name)} has {part} of its demand {wants} covered in {rule.routing} shares"
    if replicas < rule.number and demand:
        said = f"job {show(name)} has {show(replicas)} replicas that cover {show(rule.share)}"
        yield f"{said} of its demand each; it needs {show(rule.number)}"


def cheapest_bundle(
    costs: Sequence[int], rule: Rule | None, demand: int, supply: Sequence[int]
) -> int | None:
    """The least price of blocks that serve a job, or after many steps less; None if none do."""
    if rule is None or not demand:
        return cheapest_price(costs, supply, demand)
    places, number = able(rule, demand, supply), rule.number
    if rule.routing == "equal":
        prices = (
            max(number, -(-demand // supply[b]))
            * min(costs[at] for at in places if supply[at] >= supply[b])
            for b in places
        )
        return min(prices, default=None)
    if not places or (not rule.share and (number - 1) * max(supply) < demand):  # needed anyway
        return cheapest_price(costs, supply, demand) if places else None
    types = sorted((costs[at], min(supply[at], demand)) for at in places)
    ratio = min(Fraction(p, f) for p, f in zip(costs, supply, strict=True) if f)
    best, steps = -1, 0

    def choose(at: int, left: int, missing: int, spent: int) -> None:
        """Take replicas of types up to ``at``, the dearest first, then cover what is left."""
        nonlocal best, steps
        steps += 1
        least = spent + max(ceil(left * ratio), missing * types[0][0])
        if steps > _STEPS or 0 <= best <= least:
            return
        if not missing:
            price = spent + (cheapest_price(costs, supply, left) or 0)
            best = price if best < 0 else min(best, price)
        for lower in range(at, -1, -1) if missing else ():
            p, f = types[lower]
            choose(lower, max(0, left - f), missing - 1, spent + p)

    choose(len(types) - 1, demand, number, 0)
    lowest = max(cheapest_price(costs, supply, demand) or 0, number * types[0][0])
    return lowest if best < 0 or steps > _STEPS else best
