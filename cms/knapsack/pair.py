"""One job's cheapest option of two types, in the common subset of Python and numba."""

from __future__ import annotations

from typing import Any


def cheapest_pair(left: Any, p: Any, g: Any, p2: Any, g2: Any) -> tuple[Any, Any]:
    """Find the numbers of two types that satisfy what is left at the least price.

    With x blocks of the second type, and as many of the first as are needed then, they give
    ``s(x) = (x g2 - left) mod g`` too much, and ``g`` times their price is
    ``left p + x (p2 g - p g2) + p s(x)``. The first type has the lower price per supply, so x can
    be best only if s(x) is less than at any smaller x. Such x come in arithmetic progressions,
    about as many as the continued fraction of ``g2 / g`` has terms; within one the price is linear,
    so its ends will do.

    Parameters
    ----------
    left : int
        > 0.
    p, g, p2, g2 : int
        Price and supply of the first type, which has the lower price per supply, and of the second;
        > 0.

    Returns
    -------
    tuple of int
        How many of the first, and of the second.

    Examples
    --------
    Three blocks of 7 and one of 5 give exactly 26.

    >>> cheapest_pair(26, 7, 7, 6, 5)
    (3, 1)
    >>> cheapest_pair(10**30 + 1, 10**9, 10**9, 10**15 + 3, 10**15 + 1)
    (999999999999999000000, 1)
    """
    most = -(-left // g2)
    first, second = left - left, most
    value = most * p2
    x, s = left - left, -left % g
    c = -(-left // g)
    if c * p < value:
        first, second, value = c, x, c * p
    # So many more of the second type bring s down by so much, or up by so much: the fewest that do.
    less, down, more, up = x, g, x + 1, g2 % g
    while s > 0:
        if down > s:
            if up == 0:
                break
            times = min(-(-(down - s) // up), (down - 1) // up)
            less, down = less + times * more, down - times * up
            if down > s:
                times = up // down
                more, up = more + times * less, up - times * down
            continue
        # With the last of the second type there are none of the first; that was looked at.
        times = min(s // down, (most - 1 - x) // less)
        if times <= 0:
            break
        x, s = x + times * less, s - times * down
        c = -(-(left - x * g2) // g)
        if c * p + x * p2 < value:
            first, second, value = c, x, c * p + x * p2
    return first, second
