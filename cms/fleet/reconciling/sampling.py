"""Samples of services, each with its time, put on even steps; nothing is made up between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from ...errors import FileError
from ...values.numbers import shown
from .rates import Gap, Rates, runs_of, said_time

#: A finer step over a longer time is most likely a slip.
_MOST_MOMENTS = 1_000_000


@dataclass(frozen=True, slots=True)
class Sample:
    """What was read of a service at a time; the rate is None where it is not known, for a reason.

    `refuse` makes an error that points at it of what is wrong, what was expected and what to do.
    """

    at_s: Fraction
    rate_rps: Fraction | None
    refuse: Callable[[str, str, str], FileError]
    reason: str = "no value"


def on_even_steps(
    samples: Mapping[str, Sequence[Sample]], is_clock: bool, nothing: Callable[[str], FileError]
) -> Rates:
    """Put samples, by service, on even steps: the smallest one between two of them.

    `nothing` makes an error of what is wrong with the whole. FileError if times go back, are there
    twice, are not on even steps, or there is only one.
    """
    step = _step(samples, is_clock)
    if step is None:
        raise nothing("there is only one moment")
    begin = min(own[0].at_s for own in samples.values() if own)
    last = max(own[-1].at_s for own in samples.values() if own)
    count = int((last - begin) / step) + 1
    if count * len(samples) > _MOST_MOMENTS:
        raise nothing(
            f"from {said_time(begin, is_clock)} to {said_time(last, is_clock)} in steps of "
            f"{shown(step)} s there are {count} moments of {len(samples)} services"
        )
    rates, gaps = {}, []
    for name, own in samples.items():
        values: list[Fraction | None] = [None] * count
        reasons = ["no value"] * count
        for each in own:
            at = (each.at_s - begin) / step
            if at.denominator != 1:
                raise each.refuse(
                    f"{name} at {said_time(each.at_s, is_clock)} is between the steps of "
                    f"{shown(step)} s from {said_time(begin, is_clock)} on",
                    "even steps",
                    "sample again at even steps",
                )
            values[int(at)], reasons[int(at)] = each.rate_rps, each.reason
        rates[name] = tuple(values)
        for reason in dict.fromkeys(reasons):
            for first, end in runs_of(
                at for at in range(count) if values[at] is None and reasons[at] == reason
            ):
                gaps.append(Gap(name, begin + first * step, begin + end * step, reason))
    gaps.sort(key=lambda gap: (gap.first_s, gap.service))
    return Rates(begin, step, rates, is_clock, tuple(gaps))


def _step(samples: Mapping[str, Sequence[Sample]], is_clock: bool) -> Fraction | None:
    """The smallest distance of two times; times of each service must ascend."""
    for name, own in samples.items():
        for before, after in pairwise(own):
            when = said_time(after.at_s, is_clock)
            if after.at_s == before.at_s:
                raise after.refuse(
                    f"{name} is there twice at {when}", "one rate a moment", "keep one of them"
                )
            if after.at_s < before.at_s:
                raise after.refuse(
                    f"{name} at {when} comes after {said_time(before.at_s, is_clock)}",
                    "times that ascend",
                    "sort the rows by time",
                )
    times = sorted({each.at_s for own in samples.values() for each in own})
    return min((b - a for a, b in pairwise(times)), default=None)
