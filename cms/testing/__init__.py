"""For those who write algorithms: the conformance suite and what it checks them on.

Imports ``shortage`` and what stands before it. With pytest, one test a check::

    import pytest
    from cms.testing import CHECKS


    @pytest.mark.parametrize("check", CHECKS, ids=str)
    def test_conformance(check):
        check(MyAlgorithm())

or in one call, with a report to print: :func:`check_algorithm`. Checks that a later version adds
say so in ``since``, so that an upgrade explains itself.
"""

from .suite import (
    CHECKS,
    Check,
    CheckResult,
    ConformanceError,
    ConformanceReport,
    check_algorithm,
)

__all__ = [
    "CHECKS",
    "Check",
    "CheckResult",
    "ConformanceError",
    "ConformanceReport",
    "check_algorithm",
]
