"""The two small optimisation problems that the value of a certificate depends on."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from fractions import Fraction

from .reading import ZERO, common_step


def cheapest_option(
    prices: Sequence[Fraction], supply: Sequence[Fraction], demand: Fraction
) -> Fraction | None:
    """The price h of the cheapest blocks that cover a demand; they may be any number of blocks.

    Parameters
    ----------
    prices, supply : sequence of Fraction
        What a block of each type costs, and what it covers; both >= 0.
    demand : Fraction
        At least 0.

    Returns
    -------
    Fraction or None
        min { prices·o : supply·o >= demand, o >= 0 integer }; None if no block covers anything.

    Notes
    -----
    A search for shortest paths in integers. Let b be the type with the least price per unit
    covered, P its price and F what it covers. A block of price p that covers f wastes
    p·F - P·f >= 0; so F times the price of an option is P·(what it covers) + (what its blocks
    waste), at least P·demand + (what its blocks waste).

    Blocks b waste nothing, and once the other blocks cover S, the number of b is forced. So the
    search goes over S, least waste first. It ends when the others alone waste too much to beat the
    best option found; prices being integers, F times a price is rounded up to a multiple of F. An S
    is left out if one that is no larger, with the same remainder modulo F, came before: add any
    further blocks to both and fill up with b; then the smaller one ends at the least sum >= demand
    with that remainder, the other not below it. So the length of the search does not depend on the
    demand, which may be 10^12.

    Examples
    --------
    Three blocks that cover 1/3 each at a price of 1 beat one that covers 2 at a price of 4.

    >>> cheapest_option([Fraction(1), Fraction(4)], [Fraction(1, 3), Fraction(2)], Fraction(1))
    Fraction(3, 1)
    """
    if demand == 0:
        return ZERO
    # A block that covers more than the demand covers the demand.
    useful = [(p, min(f, demand)) for p, f in zip(prices, supply, strict=True) if f > 0]
    if not useful:
        return None
    coin = common_step([p for p, _ in useful]) or Fraction(1)
    unit = common_step([demand, *(f for _, f in useful)])
    blocks = [(int(p / coin), int(f / unit)) for p, f in useful]
    target = int(demand / unit)
    P, F = min(blocks, key=lambda block: Fraction(*block))
    best = P * -(-target // F)  # blocks b alone
    smallest: dict[int, int] = {}  # remainder modulo F -> the smallest S so far
    states = [(0, 0)]  # (what the others waste, S)
    while states:
        waste, S = heapq.heappop(states)
        if -(-(P * target + waste) // F) >= best:
            break
        if smallest.get(S % F, S + 1) <= S:
            continue
        smallest[S % F] = S
        price_of_others = (waste + P * S) // F  # without a rest, by the definition of waste
        best = min(best, price_of_others + P * max(0, -(-(target - S) // F)))
        if S < target:
            for p, f in blocks:
                heapq.heappush(states, (waste + p * F - P * f, S + f))
    return best * coin


def dearest_filling(
    prices: Sequence[Fraction],
    sizes: Sequence[Fraction],
    capacity: Fraction,
    max_blocks: int | None = None,
) -> Fraction:
    """The price of the dearest blocks that fit on one machine of a size-bounded set.

    Parameters
    ----------
    prices : sequence of Fraction
        What a block of each type is worth; may be negative.
    sizes : sequence of Fraction
        Its size, > 0.
    capacity : Fraction
        The largest total size.
    max_blocks : int, optional
        The largest number of blocks.

    Returns
    -------
    Fraction
        max { prices·z : sizes·z <= capacity, sum(z) <= max_blocks, z >= 0 integer }.

    Notes
    -----
    Dynamic programming over (total size, number of blocks), smallest sizes first: a filling is left
    out if one came before, hence no larger, with no more blocks and worth as much.

    Examples
    --------
    >>> dearest_filling([Fraction(3), Fraction(2)], [Fraction(3), Fraction(2)], Fraction(7))
    Fraction(7, 1)
    """
    useful = [(p, s) for p, s in zip(prices, sizes, strict=True) if p > 0 and s <= capacity]
    if not useful:
        return ZERO
    coin = common_step([p for p, _ in useful])
    unit = common_step([s for _, s in useful])
    blocks = [(int(p / coin), int(s / unit)) for p, s in useful]
    room, bulk = int(capacity // unit), 0
    if max_blocks is None or max_blocks >= room // min(s for _, s in blocks):
        max_blocks = None  # more blocks do not fit anyway
        # Let b be worth most per size, and s_b its size. Among any s_b blocks, some have a total
        # size that s_b divides (of s_b + 1 partial sums two have the same remainder); blocks b in
        # their place are worth no less. So fewer than s_b others are needed, and b fills the rest.
        p_b, s_b = max(blocks, key=lambda block: Fraction(*block))
        number_of_b = max(0, (room - (s_b - 1) * max(s for _, s in blocks)) // s_b)
        bulk, room = p_b * number_of_b, room - s_b * number_of_b
    most: dict[int, int] = {}  # number of blocks -> the highest worth so far
    states = [(0, 0, 0)]  # (total size, number of blocks, -worth)
    while states:
        size, number, loss = heapq.heappop(states)
        if any(n <= number and worth >= -loss for n, worth in most.items()):
            continue
        most[number] = -loss
        for p, s in blocks:
            if size + s <= room and (max_blocks is None or number < max_blocks):
                # without a limit the number does not matter, and all count as 0
                heapq.heappush(states, (size + s, number + (max_blocks is not None), loss - p))
    return (bulk + max(most.values())) * coin
