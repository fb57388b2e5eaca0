"""An answer does not wait for the code of a third party, wherever that may run."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import pytest

from cms.certificate.certificate import BlockPrices
from cms.errors import AlgorithmError, InvalidOption, UnsupportedProblem
from cms.plugin.algorithm import Budget, Claim, Support
from cms.plugin.guarantee import Guarantee
from cms.problem.problem import Problem
from cms.solving.solution import Incumbent
from cms.solving.solve import solve
from tests.plugins import OneByOne
from tests.scripted import HALF, QUARTER, Clock, Run, Scripted
from tests.test_border import problem, put, serves

# Each waits for what comes after the answer: an answer that waits for it never comes.

RELEASED = threading.Event()


@pytest.fixture(autouse=True)
def _release() -> Iterator[None]:
    RELEASED.clear()
    yield
    RELEASED.set()


def wait() -> bool:
    assert RELEASED.wait(600)
    return True


class Unspeakable(Exception):
    def __str__(self) -> str:
        wait()
        return ""


def raises_in_its_own_time(given: Problem, budget: Budget) -> Iterator[Claim]:
    yield serves(4)
    raise Unspeakable


def cancels_in_its_own_time(given: Problem, budget: Budget) -> Iterator[Claim]:
    yield serves(4)
    with budget.on_stop(wait):
        wait()


def is_taken_in_its_own_time(given: Problem, budget: Budget) -> Iterator[Claim]:
    yield serves(4)

    class Table(dict[str, Fraction]):
        def values(self) -> Any:
            wait()
            return super().values()

    leaf = BlockPrices({"b": 1})
    put(leaf, "prices", Table(b=Fraction(1, 4)))
    yield leaf


@pytest.mark.parametrize(
    "run", [raises_in_its_own_time, cancels_in_its_own_time, is_taken_in_its_own_time]
)
def test_the_answer_does_not_wait_for_an_algorithms_code(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[Incumbent] = []
    Clock(0.05, until=lambda: math.inf if heard else 0.0).rule(monkeypatch)
    solution = solve(problem(), Scripted(run), time_limit=0.2, on_improvement=heard.append)
    assert not RELEASED.is_set()
    assert (solution.stop_reason, solution.cost) == ("time_limit", 4)


class Nameless(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise SystemExit


class Silent(Exception):
    def __str__(self) -> str:
        raise SystemExit


class WithoutAName(Exception, metaclass=Nameless):
    pass


@pytest.mark.parametrize("fault", [Silent, WithoutAName], ids=["no words", "no name"])
def test_an_exception_whose_words_end_the_thread_ends_the_run(fault: type[Exception]) -> None:
    def run(given: Problem, budget: Budget) -> Iterator[Claim]:
        yield serves(4)
        raise fault

    with pytest.raises(AlgorithmError, match="raised"):
        solve(problem(), Scripted(run), time_limit=None)


@pytest.mark.parametrize("fault", [Silent, WithoutAName], ids=["no words", "no name"])
def test_what_cannot_be_digested_has_changed_whatever_it_raises(fault: type[Exception]) -> None:
    class Raises:
        def __len__(self) -> int:
            raise fault

    def run(given: Problem, budget: Budget) -> Iterator[Claim]:
        yield serves(4)
        put(given, "rows", Raises())

    with pytest.raises(AlgorithmError, match="changed the problem it was given"):
        solve(problem(), Scripted(run))


@pytest.mark.parametrize("question", ["support", "guarantee"])
def test_a_question_does_not_outlast_a_cancel(question: str) -> None:
    cancel = threading.Event()

    class Thinks(Scripted):
        pass

    def think(*_: object) -> None:
        cancel.set()
        wait()

    setattr(Thinks, question, think)
    with pytest.raises(AlgorithmError, match=rf"{question}\(\) has not answered in time"):
        solve(problem(), Thinks([serves(3), HALF]), time_limit=None, cancel=cancel)
    assert not RELEASED.is_set()


def test_a_question_that_is_not_answered_in_time_names_the_algorithm() -> None:
    class Thinks(OneByOne):
        def support(self, given: Problem, options: object) -> Support:
            wait()
            return Support(True)

    with pytest.raises(AlgorithmError, match=r"support\(\) has not answered in time"):
        solve(problem(), Thinks(), time_limit=0)


def test_a_promise_that_is_not_made_in_time_names_the_algorithm() -> None:
    class Thinks(Scripted):
        def guarantee(self, given: Problem, options: object) -> Guarantee:
            wait()
            return Guarantee(1, 0, "OPT", "T")

    with pytest.raises(AlgorithmError, match=r"guarantee\(\) has not answered in time"):
        solve(problem(), Thinks([serves(3), HALF]), time_limit=0.2)


def test_a_check_that_takes_long_is_given_up_when_the_time_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def slow(*_: Any, stopped: Callable[[], bool], **__: Any) -> None:
        while not stopped():
            asked.append(1)
            RELEASED.wait(0.01)

    def run(given: Problem, budget: Budget) -> Iterator[Claim]:
        yield serves(4)
        monkeypatch.setattr("cms.certificate.leaf_proofs.price_jobs", slow)
        yield QUARTER

    Clock(0.05, until=lambda: math.inf if asked else 0.0).rule(monkeypatch)
    solution = solve(problem(), Scripted(run), time_limit=0.1)
    assert (solution.stop_reason, solution.lower_bound) == ("time_limit", 0)


def test_what_an_algorithm_leaves_changed_is_found_out_whatever_it_is() -> None:
    class Waits:
        def __len__(self) -> int:
            wait()
            return 0

    for rows in (None, Waits()):

        def run(given: Problem, budget: Budget, rows: Any = rows) -> Iterator[Claim]:
            yield serves(4)
            put(given, "rows", rows)

        with pytest.raises(AlgorithmError, match="changed the problem it was given"):
            solve(problem(), Scripted(run))


@pytest.mark.parametrize("kind", [UnsupportedProblem, InvalidOption])
def test_a_refusal_of_a_third_partys_own_kind_is_told_in_words(kind: type[Exception]) -> None:
    class Refusal(kind):  # type: ignore[misc, valid-type]
        """Its words would run in the caller's thread, whenever somebody prints it."""

    def run(problem: Problem, budget: Budget) -> Iterator[Claim]:
        raise Refusal("never")
        yield

    with pytest.raises(AlgorithmError, match="raised Refusal: never"):
        solve(problem(), Scripted(run))
