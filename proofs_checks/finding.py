"""What a check finds: how many cases, the worst ratio beside the proved one, and every failure.

A check walks over cases. On each it calls :func:`require` for what the theorem says, and
:meth:`Tally.seen` with how close the case came. A case that does not hold is written down under its
name, which is enough to build it again, and the walk goes on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeAlias

Ratio: TypeAlias = Fraction | float
_Given = ParamSpec("_Given")
#: Failures a finding spells out; the number of all of them is told as well.
_SPELLED_OUT = 5


class Breach(AssertionError):
    """A theorem, or what an algorithm promises, does not hold on the case at hand."""


def require(holds: bool, words: str) -> None:
    """Raise :class:`Breach` with these words unless the statement holds."""
    if not holds:
        raise Breach(words)


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found: the largest ratio seen beside what is proved, and failures by case.

    Each failure names its case: a family and a number for :func:`proofs_checks.families.instance`,
    or the data themselves.
    """

    theorem: str
    checked: str
    cases: int
    ratio: str
    worst: float | None
    proved: str
    seconds: float
    failures: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether there were cases and all of them held."""
        return self.cases > 0 and not self.failures

    def to_json(self) -> dict[str, Any]:
        """Return the finding as plain JSON values."""
        return {
            **{each.name: getattr(self, each.name) for each in fields(self)},
            "seconds": round(self.seconds, 3),
            "failures": list(self.failures),
            "ok": self.ok,
        }


class Tally:
    """Counts the cases of one check and keeps what failed."""

    def __init__(self, theorem: str, checked: str, *, ratio: str, proved: str) -> None:
        self._theorem, self._checked = theorem, checked
        self._ratio, self._proved = ratio, proved
        self._started = time.monotonic()
        self._cases = 0
        self._worst: Fraction | float | None = None
        self._failures: list[str] = []

    @contextmanager
    def case(self, name: object) -> Iterator[None]:
        """Count a case, and write down under this name why it does not hold, or what broke it.

        Any other error fails the case as well, with its type, and the walk goes on.
        """
        self._cases += 1
        try:
            yield
        except Breach as breach:
            self._failures.append(f"{name}: {breach}")
        except Exception as fault:  # noqa: BLE001 (whatever it is, it is reported as a failure)
            self._failures.append(f"{name}: {type(fault).__name__}: {fault}")

    def check(
        self,
        name: object,
        of: Callable[_Given, Ratio | None],
        *given: _Given.args,
        **more: _Given.kwargs,
    ) -> None:
        """Check a case by a function, and note the ratio that it returns, if any."""
        with self.case(name):
            ratio = of(*given, **more)
            if ratio is not None:
                self.seen(ratio)

    def seen(self, ratio: Fraction | float) -> None:
        """Note how close a case came."""
        if self._worst is None or ratio > self._worst:
            self._worst = ratio

    def finding(self) -> Finding:
        """Return what was found."""
        shown = self._failures[:_SPELLED_OUT]
        more = len(self._failures) - len(shown)
        if more:
            shown.append(f"and {more} more")
        worst = None if self._worst is None else float(self._worst)
        return Finding(
            self._theorem, self._checked, self._cases, self._ratio, worst, self._proved,
            time.monotonic() - self._started, tuple(shown),
        )  # fmt: skip


def theorem(
    title: str, checked: str, *, ratio: str, proved: str
) -> Callable[[Callable[Concatenate[Tally, _Given], None]], Callable[_Given, Finding]]:
    """Make of a walk over cases a check of a theorem."""

    def made(walk: Callable[Concatenate[Tally, _Given], None]) -> Callable[_Given, Finding]:
        @wraps(walk)
        def check(*given: _Given.args, **more: _Given.kwargs) -> Finding:
            tally = Tally(title, checked, ratio=ratio, proved=proved)
            walk(tally, *given, **more)
            return tally.finding()

        return check

    return made
