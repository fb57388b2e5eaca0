"""The table of certified loads, checked entry by entry with Python's standard library alone.

An entry says: one process that takes min(queue, b) requests at once for a batch time L, fed by
Poisson arrivals at ``load`` times b/L or any lower rate, answers all but a share q of its requests
within ``ratio`` times L. The proof is in three steps, each of them compared in integers.

Let a = load x b, the mean number A of arrivals in a batch time, and W what a starting batch leaves
waiting: W' = max(W + A - b, 0).

1. *Tail.* z > 1 with exp(a(z - 1)) <= z^b gives P(W >= w) <= z^-w (Kingman), by induction from an
   empty queue, since then E z^(A-b) <= 1.
2. *Body.* Let F on 1...M satisfy F(w) >= P(A >= w+b) + sum over j < w+b of P(A = j) F(w+b-j), with
   z^-x in the place of F(x) beyond M. Then P(W >= w) <= F(w): the right side is a monotone affine
   map with one fixed point; the true tail lies below its image, hence below that fixed point, and F
   lies above its image, hence above it.
3. *Interval.* In a cycle a requests arrive in a batch time, and with probability P(W = 0) exp(-a)
   one more starts the next batch at once. One of phase t in (0, 1) with r = W + N(t) before it
   ends after (2 - t + floor(r/b)) L. So the late share is a E I(W) / (a + P(W = 0) exp(-a)) with
   I(r) = the integral of P(N(t) >= (floor(ratio - 2 + t) + 1) b - r). The numerator rises with a,
   and on [a1, a2] the denominator is at least a1 + (1 - F(1)) exp(-a2). Hence the late share is at
   most q on all of [a1, a2] for a1 = (numerator at a2)/q - (1 - F(1)) exp(-a2); then a1 takes the
   place of a2, until it is not positive.

What F is tried is a guess in floating point; whether it satisfies step 2 is decided in integers,
rounded to the safe side. ``cms-check --loads FILE`` checks a whole table, which
takes some minutes; the exit status is 1 if an entry cannot be proved.
"""

from __future__ import annotations

import argparse
import cmath
import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

from .verdict import printable, unreadable

#: Probabilities are whole multiples of 2^-192.
BITS = 192
ONE = 1 << BITS
_GUARD = 32
_MOST_STEPS = 60
#: A guess is raised by this times z^(-w/2); the guess ends where z^(-w/2) is e^-_DEPTH.
_SLACK_BITS = 23
_DEPTH = 28
_DEEPEST = 90

#: From (a, b, decay = log z, M): P(W >= w) for w = 1...M, as floats, right to about 12 digits.
Guess = Callable[[Fraction, int, Fraction, int], Sequence[Any]]


def why_not(
    batch: int, ratio: Fraction, late_share: Fraction, load: Fraction, guess: Guess | None = None
) -> str:
    """Say why an entry cannot be proved; nothing if it is.

    The load is in batches a batch time, the ratio >= 2 the limit in batch times; ``guess`` makes
    the tail of W that is tried.
    """
    if load == 0:
        return ""
    if ratio < 2:
        return f"no load is certified within {ratio} batch times; expected at least 2"
    if not 0 < load < 1:
        return f"at load {load} the queue grows"
    at = load * batch
    for _ in range(_MOST_STEPS):
        lowest = _lowest(at, batch, ratio, late_share, guess or waiting_tail)
        if lowest is None:
            return f"the guess at load {at / batch} is no bound"
        if lowest <= 0:
            return ""
        if lowest >= at:
            return f"at load {at / batch} the late share is not at most {late_share}"
        at = lowest
    return f"after {_MOST_STEPS} steps the proof is still at load {at / batch}"


def faults(document: Any, every: int = 1, raised: Fraction = Fraction(1)) -> Iterator[str]:
    """Name the entries of ``certified.json`` that cannot be proved, each load first ``raised``."""
    for number, (batch, ratio, late_share, load) in enumerate(entries(document)):
        if number % every == 0 and (why := why_not(batch, ratio, late_share, load * raised)):
            yield f"batch {batch}, ratio {ratio}, late share {late_share}: {why}"


def entries(document: Any) -> Iterator[tuple[int, Fraction, Fraction, Fraction]]:
    """Yield (batch, ratio, late share, load) for each entry of a table."""
    for share, (rows,) in zip(document["late_shares"], document["thousandths"], strict=True):
        for ratio, row in zip(document["ratios"], rows, strict=True):
            for batch, load in zip(document["batches"], row, strict=True):
                yield batch, Fraction(ratio), Fraction(share), Fraction(load, 1000)


def _lowest(
    a: Fraction, b: int, ratio: Fraction, late_share: Fraction, guess: Guess
) -> Fraction | None:
    """The rate down to which the late share is at most what is tolerated; None: a bad guess."""
    tail = _proved_tail(a, b, math.floor(ratio) * b, guess)
    if tail is None:
        return None
    numerator = a * _expected_late(a, b, ratio, tail)
    empty = Fraction(ONE - tail[0], ONE) * Fraction(_exp_below(-a), ONE)
    lowest = numerator / late_share - empty
    return Fraction(math.ceil(lowest * (1 << 24)), 1 << 24)


def _proved_tail(a: Fraction, b: int, reach: int, guess: Guess) -> list[int] | None:
    """Bounds of P(W >= w) for w = 1...reach or further, each checked by steps 1 and 2."""
    # where z^-w comes near 2^-192, rounding would spoil the comparison
    z, decay = _kingman(a, b, min(Fraction(2), Fraction(_DEEPEST, reach + b)))
    if z is None:
        return None
    m = max(reach, math.ceil(2 * _DEPTH / decay))
    # z^-w, and the slack 2^-23 z^(-w/2), rounded up
    root = _root_below(z)
    powers, halves = [ONE], [ONE]
    for _ in range(m + b):
        powers.append(-(-powers[-1] * z.denominator // z.numerator))
        halves.append(-(-halves[-1] * root.denominator // root.numerator))
    body = [0]
    for w, probability in enumerate(guess(a, b, decay, m), 1):
        raised = int(math.ldexp(probability, BITS)) + (halves[w] >> _SLACK_BITS)
        body.append(max(0, min(raised, powers[w], body[-1] if w > 1 else ONE)))
    body += powers[m + 1 : m + b + 1]
    below, above = _poisson(a, _cut(a))
    image = _convolved(above, body)
    beyond, rest = [ONE], ONE
    for probability in below:
        rest -= probability
        beyond.append(rest)
    last = len(below)
    for w in range(1, m + 1):
        # whatever exceeds the last arrival that is counted one by one is late for certain
        needed = beyond[min(w + b, last)] * ONE + image[w + b]
        if body[w] * ONE < needed and body[w] < powers[w]:
            return None
    return body[1:]


def _kingman(a: Fraction, b: int, steepest: Fraction) -> tuple[Fraction | None, Fraction]:
    """A z below the root of exp(a(z-1)) = z^b, checked, and about log z, at most `steepest`."""
    mean = a / b
    low, high = Fraction(0), Fraction(1)
    ratio = mean.numerator / mean.denominator
    while high < steepest and ratio * math.expm1(high) < high:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        if ratio * math.expm1(middle) < middle:
            low = middle
        else:
            high = middle
        low, high = Fraction(low).limit_denominator(1 << 60), Fraction(high)
    decay = min(low, steepest) * (1 - Fraction(1, 1 << 20))
    z = Fraction(int(math.ldexp(math.exp(decay), 50)), 1 << 50)
    power = ONE
    for _ in range(b):
        power = power * z.numerator // z.denominator
    return (z if _exp_above(a * (z - 1)) <= power else None), decay


def _root_below(z: Fraction) -> Fraction:
    scaled = z * (1 << 120)
    return Fraction(math.isqrt(int(scaled)), 1 << 60)


def _expected_late(a: Fraction, b: int, ratio: Fraction, tail: list[int]) -> Fraction:
    """At least E I(W): I never falls, so that bounds of the tail bound the expectation."""
    whole, part = divmod(ratio, 1)
    k, x = int(whole) - 2, 1 - part
    reach = (k + 2) * b  # from here on I = 1
    size = reach + 2
    short, long = _tails(a * x, size), _tails(a, size)
    total, before = 0, 0
    for w in range(reach):
        first, second = (k + 1) * b - w, (k + 2) * b - w
        now = (
            _integral(short, x, a, first, up=True)
            + _integral(long, Fraction(1), a, second, up=True)
            - _integral(short, x, a, second, up=False)
        )
        now = max(now, before)
        total += (now - before) * (ONE if w == 0 else tail[w - 1])
        before = now
    total += max(0, ONE - before) * tail[reach - 1]
    return Fraction(total, ONE * ONE)


def _integral(
    tails: tuple[list[int], list[int]], x: Fraction, a: Fraction, n: int, *, up: bool
) -> int:
    """The integral of P(N(t) >= n) over t from 0 to x, rounded up or down."""
    below, above = tails
    if n <= 0:
        return math.ceil(x * ONE) if up else math.floor(x * ONE)
    more, less = (above, below) if up else (below, above)
    value = x * more[n] - n / a * less[n + 1]
    return math.ceil(value) if up else math.floor(value)


def _tails(mean: Fraction, size: int) -> tuple[list[int], list[int]]:
    """P(Poisson >= n) for n = 0...size, from below and from above."""
    below, above = _poisson(mean, min(size, _cut(mean)))
    lower, upper = [ONE], [ONE]
    for low, high in zip(below, above, strict=True):
        lower.append(max(0, lower[-1] - high))
        upper.append(upper[-1] - low)
    rest = size + 1 - len(lower)
    return lower + [0] * rest, upper + [upper[-1]] * rest


def _cut(mean: Fraction) -> int:
    """So many arrivals are counted one by one; more of them hardly ever come."""
    return math.ceil(mean) + 16 * math.isqrt(math.ceil(mean)) + 80


def _poisson(mean: Fraction, size: int) -> tuple[list[int], list[int]]:
    """P(Poisson = j) for j < size, from below and from above."""
    if mean == 0:
        rest = [0] * (size - 1)
        return [ONE, *rest], [ONE, *rest]
    # exp(-mean) may be far below 2^-192, and its error grows as fast as the rest does
    extra = 2 * math.ceil(mean) + _GUARD
    low = _exp_below(-mean, BITS + extra)
    high = low + (1 << _GUARD // 2)
    below, above = [], []
    p, q = mean.numerator, mean.denominator
    for j in range(size):
        below.append(low >> extra)
        above.append(-(-high >> extra))
        low = low * p // (q * (j + 1))
        high = -(-high * p // (q * (j + 1)))
    return below, above


def _exp_above(x: Fraction) -> int:
    """At least exp(x) for x >= 0."""
    halvings = max(0, math.ceil(x).bit_length() + 4)
    part = x / (1 << halvings)
    bits = BITS + halvings + _GUARD
    term = total = 1 << bits
    n = 0
    while term:
        n += 1
        term = term * part.numerator // (part.denominator * n)
        total += term + 1  # what was cut off, and after the last term all that follow
    total += 2
    for _ in range(halvings):
        total = (total * total >> bits) + 1
    return (total >> bits - BITS) + 1


def _exp_below(x: Fraction, bits: int = BITS) -> int:
    """At most exp(x) for x <= 0, by less than 2^(-bits + 15)."""
    halvings = max(0, math.ceil(-x).bit_length() + 4)
    part = -x / (1 << halvings)
    fine = bits + 2 * halvings + _GUARD
    # the reciprocal of a bound from above, so that nothing alternates
    term = total = 1 << fine
    n = 0
    while term:
        n += 1
        term = term * part.numerator // (part.denominator * n)
        total += term + 1
    value = (1 << 2 * fine) // (total + 2)
    for _ in range(halvings):
        value = value * value >> fine
    return value >> fine - bits


def _convolved(first: list[int], second: list[int]) -> list[int]:
    """Multiply two polynomials, as two very large integers."""
    width = (2 * BITS + len(first).bit_length()) // 8 + 1
    product = _packed(first, width) * _packed(second, width)
    size = len(first) + len(second)
    data = product.to_bytes(size * width, "little")
    cuts = range(0, size * width + 1, width)
    return [int.from_bytes(data[i:j], "little") for i, j in pairwise(cuts)]


def _packed(values: list[int], width: int) -> int:
    return int.from_bytes(b"".join(value.to_bytes(width, "little") for value in values), "little")


def waiting_tail(a: Fraction, b: int, decay: Fraction, m: int) -> list[Any]:
    """Guess P(W >= w) for w = 1...m: the Wiener-Hopf factor of 1 - z^-b exp(a(z-1)).

    On the circle of radius exp(decay/2) the logarithm of that function is analytic; the part with
    positive powers is, up to a constant, minus the logarithm of E z^W.
    """
    size = 1 << max(32, m, math.ceil(120 / decay)).bit_length()
    radius, mean = math.exp(decay / 2), a.numerator / a.denominator
    circle = [cmath.rect(radius, 2 * math.pi * k / size) for k in range(size)]
    logs = [-cmath.log(1 - cmath.exp(mean * (point - 1)) / point**b) for point in circle]
    # log E z^W = sum of p_n (z^n - 1) over n > 0; here are the p_n r^n
    plus = [each.real / size for each in _transform(logs, 1)[: size // 2]]
    plus[0] = -sum(each * math.exp(-decay * n / 2) for n, each in enumerate(plus) if n)
    waits = [cmath.exp(each) for each in _transform([*plus, *[0] * (size // 2)], -1)]
    # the sum of P(W >= w) z^(w-1) is (E z^W - 1) / (z - 1): far tails come out right, too
    tails = _transform([(w - 1) / (z - 1) for w, z in zip(waits, circle, strict=True)], 1)
    return [tails[w].real / size * math.exp(-decay * w / 2) for w in range(m)]


def _transform(values: list[Any], sign: int) -> list[Any]:
    """The discrete Fourier transform, with exp(-sign 2 pi i / n), for a power of two."""
    n = len(values)
    if n == 1:
        return values
    even, odd = _transform(values[::2], sign), _transform(values[1::2], sign)
    turn = -sign * 2 * math.pi / n
    turned = [cmath.rect(1, turn * k) * value for k, value in enumerate(odd)]
    return [x + y for x, y in zip(even, turned, strict=True)] + [
        x - y for x, y in zip(even, turned, strict=True)
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Check a table file; print what cannot be proved."""
    parser = argparse.ArgumentParser(prog="cms-check --loads", description=main.__doc__)
    parser.add_argument("file", metavar="FILE")
    path = parser.parse_args(arguments).file
    try:
        document = json.loads(Path(path).read_text("utf-8"))
    except (OSError, ValueError) as reason:
        return unreadable(Path(path), reason)
    found = 0
    for fault in faults(document):
        print(printable(f"{path}: {fault}"), file=sys.stderr)
        found += 1
    if not found:
        print(printable(f"{path}: every entry is proved"))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
