"""Price functions: what a lower bound needs of them, and what is refused."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms import InvalidCertificate, PriceFunction
from cms.mixes.functions import functions_table
from tests.samples import refusal

numbers = st.fractions(min_value=0, max_value=9, max_denominator=12)
above_0 = numbers.filter(bool)
functions = st.builds(PriceFunction, numbers, st.lists(st.tuples(above_0, numbers), max_size=4))


@given(functions, above_0, numbers, numbers)
def test_it_never_falls_and_is_worth_no_more_together_than_apart(
    function: PriceFunction, demand: Fraction, one: Fraction, two: Fraction
) -> None:
    worth = [function.worth(rate, demand) for rate in (Fraction(0), one, two, one + two)]
    assert worth[0] == 0
    assert max(worth[1:3]) <= worth[3] <= worth[1] + worth[2]
    assert function.worth(demand + one, demand) == function.worth(demand, demand)


@given(functions, numbers, above_0, numbers)
def test_scaling_it_scales_what_it_is_worth(
    function: PriceFunction, factor: Fraction, demand: Fraction, rate: Fraction
) -> None:
    scaled = function.scaled(factor)
    assert scaled.worth(rate, demand) == factor * function.worth(rate, demand)


def test_steps_of_one_width_are_one_and_those_of_no_height_are_none() -> None:
    function = PriceFunction(0, [(2, "1/3"), (1, 0), ("4/2", "1/6")])
    assert function.steps == ((Fraction(2), Fraction(1, 2)),)
    assert not PriceFunction(0, [(1, 0)])
    assert PriceFunction("1e-9")


@pytest.mark.parametrize(
    ("given_to", "message"),
    [
        ((-1,), "slope of a price function is -1; expected a number >= 0"),
        ((float("nan"),), "slope of a price function is nan; expected a finite number"),
        ((0, [(0, 1)]), "times of a price function's step is 0; expected a number > 0"),
        ((0, [("-1/2", 1)]), "times of a price function's step is -0.5; expected a number >= 0"),
        ((0, [(1, -1)]), "height of a price function's step is -1; expected a number >= 0"),
        ((0, [(1, 2, 3)]), "a step of a price function is (1, 2, 3); expected a pair"),
        ((0, [5]), "a step of a price function is 5; expected a pair (times, height)"),
        (
            (0, [(1, Fraction(1, 10**4299 + odd)) for odd in (1, 3)]),
            "the sum of the heights of a price function's steps of one width has more than 4300",
        ),
        ((0, [{1, 2}]), "a step of a price function is {1, 2}; expected a pair (times, height)"),
        ((0, ["ab"]), "a step of a price function is 'ab'; expected a pair (times, height)"),
        ((0, [(1, 1)] * 1001), "a price function has 1001 steps; expected 1000 at most"),
        ((0, 5), "steps of a price function is 5; expected a list of pairs (times, height)"),
    ],
)
def test_what_is_no_price_function_is_refused(given_to: Any, message: str) -> None:
    assert refusal(InvalidCertificate, PriceFunction, *given_to).startswith(message)


def test_a_table_holds_functions_and_none_that_is_nothing() -> None:
    assert functions_table(None) == {}
    assert list(functions_table({"x": PriceFunction(1), "y": PriceFunction()})) == ["x"]
    for table, message in (
        ([1], "the price functions are [1]; expected a mapping of jobs to PriceFunction"),
        ({"x": 1}, "the price function of job 'x' is 1; expected a PriceFunction"),
    ):
        assert refusal(InvalidCertificate, functions_table, table) == message
