"""A third party's classes may say of themselves what they like: which class a thing has, we see."""

from __future__ import annotations

import threading
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from cms.certificate.certificate import BlockPrices, Branch
from cms.certificate.leaf_proofs import Proved
from cms.certificate.quantity import BlocksOf
from cms.errors import AlgorithmError, UnsupportedProblem
from cms.problem.problem import Problem
from cms.solving.solve import solve
from tests.scripted import Run, Scripted, blocks, serving

POSED, DEAR = blocks(5), serving(5, 9)


class EqualToAll(type):
    """What a class says of itself."""

    def __eq__(cls, other: object) -> bool:
        return True

    def __hash__(cls) -> int:
        return 1


class Certain(metaclass=EqualToAll):
    """A certificate, by its own word."""

    depth, leaf_count, multipliers = 0, 1, ()

    def private_copy(self) -> Certain:
        return self

    def judged(self, *_: object, **__: object) -> Proved:
        return Proved(Fraction(9), infeasible=False)


def branch_of_such() -> Branch:
    made = Branch(BlocksOf("b"), 1, *[BlockPrices(multipliers=[0])] * 2)
    for side in ("below", "above"):
        object.__setattr__(made, side, Certain())
    return made


@pytest.mark.parametrize("made", [Certain, branch_of_such])
def test_what_says_that_it_equals_a_certificate_is_none(made: Callable[[], Any]) -> None:
    with pytest.raises(AlgorithmError, match="Certain"):
        solve(POSED, Scripted([DEAR, made()]), time_limit=5)


# --- takes ----------------------------------------------------------------------------------------


class Taking(Scripted):
    """Says in ``takes`` what a test has it say."""

    said: Callable[[], Any]

    def __getattribute__(self, name: str) -> Any:
        return self.said() if name == "takes" else super().__getattribute__(name)


def taking(said: Callable[[], Any], run: Run | list[Any]) -> Taking:
    made = Taking(run)
    made.said = said
    return made


def test_a_class_in_takes_is_not_shown_the_users_problem() -> None:
    seen: list[object] = []

    class Spy(type):
        def __instancecheck__(cls, instance: object) -> bool:
            seen.append(instance)
            return True

        def __getattribute__(cls, name: str) -> Any:
            raise RuntimeError(f"no {name}")

    class Everything(metaclass=Spy):
        pass

    with pytest.raises(UnsupportedProblem, match="takes Everything; this problem is of type"):
        solve(POSED, taking(lambda: (Everything,), [DEAR]), time_limit=5)
    both = taking(lambda: (Everything, Problem), [DEAR])
    assert solve(POSED, both, time_limit=5).cost == 9
    assert seen == []


def test_what_takes_raises_is_the_algorithms_fault() -> None:
    def fails() -> Any:
        raise KeyboardInterrupt

    with pytest.raises(AlgorithmError, match="takes raised KeyboardInterrupt"):
        solve(POSED, taking(fails, [DEAR]), time_limit=5)


def test_takes_is_not_waited_for_beyond_the_limit() -> None:
    over = threading.Event()
    try:
        with pytest.raises(AlgorithmError, match="takes has not answered in time"):
            solve(POSED, taking(over.wait, [DEAR]), time_limit=0.1)
    finally:
        over.set()
