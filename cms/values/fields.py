"""Checks for the fields of frozen dataclasses: an algorithm's options, a family's parameters."""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction
from typing import ClassVar

from ..errors import InvalidProblem
from .names import nearest
from .numbers import Number, exact, shown, shown_object, whole


class CheckedFields:
    """What a frozen dataclass's ``__post_init__`` calls to check its fields, one by one.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Options(CheckedFields):
    ...     epsilon: Number = "1/2"
    ...
    ...     def __post_init__(self):
    ...         self._number("epsilon", above=0, most=1)
    >>> Options(0.25).epsilon
    Fraction(1, 4)
    >>> Options(2)
    Traceback (most recent call last):
        ...
    ValueError: epsilon is 2; expected a number > 0 and <= 1
    """

    refusal: ClassVar[type[Exception]] = ValueError

    def _what(self, field: str) -> str:
        return field

    def _refuse(self, field: str, expected: str) -> Exception:
        value = getattr(self, field)
        said = shown(value) if type(value) in (int, Fraction) else shown_object(value)
        return self.refusal(f"{self._what(field)} is {said}; expected {expected}")

    def _number(
        self,
        field: str,
        *,
        least: Number = 0,
        above: Number | None = None,
        most: Number | None = None,
    ) -> None:
        """Make the field a Fraction, at least one number, or above one, and at most another."""
        value = exact(getattr(self, field), self._what(field), error=self.refusal)
        object.__setattr__(self, field, value)
        low = exact(least if above is None else above, field)
        high = None if most is None else exact(most, field)
        enough = value >= low if above is None else value > low
        if not enough or (high is not None and value > high):
            bounds = f"{'>=' if above is None else '>'} {shown(low)}"
            bounds += "" if high is None else f" and <= {shown(high)}"
            raise self._refuse(field, f"a number {bounds}")

    def _whole(self, field: str, *, least: int, most: int) -> None:
        try:
            value = whole(getattr(self, field), field)
        except InvalidProblem:
            value = least - 1
        if not least <= value <= most:
            raise self._refuse(field, f"a whole number from {least} to {most}")
        object.__setattr__(self, field, value)

    def _one_of(self, field: str, known: Collection[str]) -> None:
        value = getattr(self, field)
        if not isinstance(value, str) or value not in known:
            raise self._refuse(field, f"one of {', '.join(known)}{nearest(value, known)}")

    def _flag(self, field: str) -> None:
        if type(getattr(self, field)) is not bool:
            raise self._refuse(field, "True or False")
