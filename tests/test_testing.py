"""The conformance suite: good plug-ins pass, bad ones fail for the reason they were made for."""

from __future__ import annotations

import pytest

from cms.certificate.certificate import BlockPrices
from cms.plugin.algorithm import SolverBound, Support
from cms.schedule.schedule import Schedule
from cms.testing import CHECKS, Check, ConformanceError, check_algorithm
from cms.testing.edge_problems import CROWDS, EDGE_PROBLEMS
from tests import plugins
from tests.plugins import OneByOne, count_in_eight_bytes, rename_the_jobs, saying
from tests.samples import so_many

IDLE = saying(lambda problem: [Schedule()], served=False)
DEAR = saying(lambda problem: [BlockPrices(dict.fromkeys(problem.blocks, 10**6))])


class TakesNothing(OneByOne):
    """Refuses every problem."""

    def support(self, problem: object, options: object) -> Support:
        return Support(False, "not today")


@pytest.mark.parametrize("check", CHECKS, ids=str)
def test_a_minimal_good_plugin_passes(check: Check) -> None:
    check(OneByOne(), EDGE_PROBLEMS[:: so_many(6, 1)], seeds=[0])


@pytest.mark.parametrize(
    ("bad", "reason", "words"),
    [
        (IDLE, "claims", "of its demand served"),
        (DEAR, "claims", "more than its machine's cost"),
        (saying(rename_the_jobs), "inputs", "the problem has changed"),
        (plugins.IgnoresTheClock, "clock", "still at work"),
        (plugins.IsNotReproducible, "reproducible", "two runs differ from claim 1 on"),
        (saying(lambda problem: [3]), "claims", "type 'int'"),
        (
            saying(lambda problem: [SolverBound(0, "oracle")]),
            "claims",
            "a solver's word is accepted from",
        ),
        (saying(count_in_eight_bytes), "edge_problems", "OverflowError"),
        (plugins.PromisesTooMuch, "guarantee", "Wishful Thinking"),
        (plugins.TakesAnyOption, "options", "does not mention 'choose'"),
        (plugins.LeavesACancel, "cancels", "no such solver"),
        (TakesNothing, "support", "it takes none of the"),
    ],
)
def test_a_bad_plugin_fails_for_the_named_reason_only(
    bad: type[OneByOne], reason: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cms.testing.checks.CROWDS", CROWDS[2:3])  # the one it can ignore
    report = check_algorithm(bad(), EDGE_PROBLEMS[2::3], seeds=[0])
    assert report.failed == (reason,), str(report)
    assert not report.ok
    assert words in str(report)
    assert str(report).count("passed") == len(CHECKS) - 1


def test_a_check_used_as_a_test_raises_with_its_name_and_promise() -> None:
    check = next(check for check in CHECKS if check.name == "claims")
    with pytest.raises(ConformanceError, match=r"^claims: .*served"):
        check(IDLE(), EDGE_PROBLEMS[:4])
    report = check_algorithm(OneByOne(), EDGE_PROBLEMS[:1], options={"choose": "worst"})
    assert "expected 'cheapest' or 'first'" in str(report)
