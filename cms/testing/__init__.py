"""The conformance suite for writers of algorithms and what it checks them on.

With pytest, one test a check::

    import pytest
    from cms.testing import CHECKS


    @pytest.mark.parametrize("check", CHECKS, ids=str)
    def test_conformance(check):
        check(MyAlgorithm())

or in one call, with a report to print: :func:`check_algorithm`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from ..plugin.algorithm import Algorithm
from ..plugin.registry import NamedProblem
from ..values.frozen import FrozenMap
from . import checks
from .checks import Faults, Laboratory

__all__ = ["CHECKS", "Check", "CheckResult", "ConformanceError", "ConformanceReport"]
__all__ += ["check_algorithm"]

#: Faults a report spells out for each check.
_SPELLED_OUT = 5


class ConformanceError(AssertionError):
    """An algorithm fails a check of the conformance suite; the message names the check."""


class CheckResult(NamedTuple):
    """How one check went; ``detail`` holds the first few faults."""

    name: str
    passed: bool
    detail: str


class Check(NamedTuple):
    """One check of the suite, since a version; call it with an algorithm, as a pytest test does."""

    name: str
    since: str
    faults: Callable[[Laboratory], Faults]

    def __call__(self, *algorithm: Any, **settings: Any) -> None:
        """Raise ConformanceError if the algorithm fails; arguments as of `check_algorithm`."""
        result = self.result(Laboratory(*algorithm, **settings))
        if not result.passed:
            raise ConformanceError(f"{self.name}: {result.detail}. {self.faults.__doc__}")

    def result(self, laboratory: Laboratory) -> CheckResult:
        """Run the check and say how it went."""
        try:
            found = list(islice(self.faults(laboratory), _SPELLED_OUT))
        except Exception as fault:  # noqa: BLE001 (reported)
            found = [f"{type(fault).__name__}: {fault}"]
        return CheckResult(self.name, not found, "; ".join(found))

    def __str__(self) -> str:
        return self.name


class ConformanceReport(NamedTuple):
    """How all checks went; print it."""

    algorithm: str
    results: tuple[CheckResult, ...]

    @property
    def ok(self) -> bool:
        """Whether every check passed."""
        return not self.failed

    @property
    def failed(self) -> tuple[str, ...]:
        """The names of the checks that failed."""
        return tuple(result.name for result in self.results if not result.passed)

    def __str__(self) -> str:
        lines = [f"conformance of {self.algorithm!r}"]
        for name, passed, detail in self.results:
            lines.append(f"{name:<13}  {'passed' if passed else 'FAILED: ' + detail}")
        return "\n".join(lines)


def check_algorithm(
    algorithm: str | Algorithm,
    problems: Sequence[NamedProblem] | None = None,
    *,
    seeds: Sequence[int] = (0, 1),
    time_limit: float = 10.0,
    options: Mapping[str, object] = FrozenMap(),
) -> ConformanceReport:
    """Run every check on an algorithm.

    Parameters
    ----------
    algorithm : str or Algorithm
        A name is looked up in the registry; an object counts as a third party's.
    problems : sequence of NamedProblem, optional
        By default the edge problems of the kinds it takes.
    time_limit : float, default 10
        Seconds for each run that is not about time; one it cuts short need not be reproducible.
    """
    laboratory = Laboratory(
        algorithm, problems, seeds=seeds, time_limit=time_limit, options=options
    )
    results = tuple(each.result(laboratory) for each in CHECKS)
    return ConformanceReport(laboratory.algorithm.name, results)


#: The checks, in the order of the report.
CHECKS = tuple(
    Check(name.removeprefix("faults_in_"), "0.1.0", function)
    for name, function in vars(checks).items()
    if name.startswith("faults_in_")
)
