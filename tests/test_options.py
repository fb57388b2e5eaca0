"""Options become the algorithm's own dataclass, or an error that names the option."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pytest

from cms.errors import AlgorithmError, InvalidOption
from cms.plugin.registry import option_fields, read_options
from cms.values.numbers import exact
from tests.plugins import OneByOne


@dataclass(frozen=True)
class Options:
    """Options: epsilon and rounds."""

    epsilon: Any = Fraction(1, 2)
    rounds: int = 3
    derived: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", exact(self.epsilon, "epsilon", error=ValueError))
        if self.rounds < 1:
            raise ValueError("expected a whole number >= 1")
        if self.epsilon > 1 and self.rounds > 5:
            raise InvalidOption("more than 5 rounds need an epsilon of at most 1")
        if self.epsilon == 1 and self.rounds > 8:
            raise ValueError("expected fewer rounds")


class Algorithm(OneByOne):
    name = "ptas"
    options_type = Options


def test_values_are_converted_by_the_algorithm() -> None:
    assert read_options(Algorithm(), {"epsilon": "1/4"}) == Options(Fraction(1, 4))
    assert read_options(Algorithm(), {}) == Options()
    assert option_fields(Algorithm()) == {"epsilon": Fraction(1, 2), "rounds": 3}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"epsilno": 1}, "method 'ptas' has no option 'epsilno'; nearest: 'epsilon'; it has"),
        ({"epsilno": 1}, r"epsilon \(default 1/2\), rounds \(default 3\)"),
        ({"derived": 1}, "no option 'derived'"),
        ({3: 1}, "no option 3"),
        ({"rounds": 0}, "method 'ptas', option rounds = 0: expected a whole number >= 1"),
        ({"rounds": "many"}, "option rounds = 'many': "),
        ({"epsilon": -1, "rounds": 4}, "option epsilon = -1: epsilon is -1; expected a number"),
        ({"epsilon": 1, "rounds": 9}, "option epsilon = 1, rounds = 9: expected fewer rounds"),
        ({"epsilon": 2, "rounds": 6}, "^more than 5 rounds need an epsilon of at most 1$"),
    ],
)
def test_a_bad_option_is_refused_by_name(given: dict[Any, Any], words: str) -> None:
    with pytest.raises(InvalidOption, match=words):
        read_options(Algorithm(), given)


def test_options_that_are_no_frozen_dataclass_with_defaults_are_the_algorithms_fault() -> None:
    @dataclass
    class Thawed:
        """None."""

    @dataclass(frozen=True)
    class Bare:
        """needed."""

        needed: int

    for kind, words in [
        (dict, "expected a frozen dataclass"),
        (Options(), "expected a frozen dataclass"),
        (Thawed, "Thawed is not frozen"),
        (Bare, "Bare needs a default for every option"),
    ]:
        algorithm = OneByOne()
        algorithm.options_type = kind  # type: ignore[misc, assignment]
        with pytest.raises(AlgorithmError, match=words):
            read_options(algorithm, {})
