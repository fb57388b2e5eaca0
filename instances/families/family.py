"""What a family is: a number, checked parameters, and a function that draws problems of n jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from cms.errors import InvalidOption
from cms.problem.problem import Problem
from cms.values.fields import CheckedFields
from cms.values.names import nearest
from cms.values.numbers import Number, whole

from .machines import Floats, Integers, Machines, Rng

#: Standard deviation of the logarithm of supply around a power law.
_NOISE = 0.05


class _Values(CheckedFields):
    """The parameters of one problem, checked one by one, in their order."""

    refusal = InvalidOption

    def __init__(self, family: str, values: Mapping[str, object]) -> None:
        self._family = family
        vars(self).update(values)

    def _what(self, field: str) -> str:
        return f"parameter {field!r} of family {self._family!r}"

    def _bound(self, bound: Number | str) -> Number:
        """Return a bound, which may be another parameter."""
        found: Number = getattr(self, bound) if isinstance(bound, str) else bound
        return found


class Parameter(NamedTuple):
    """The default of a parameter, and what checks it and makes it exact."""

    default: object
    check: Callable[[_Values, str], None]


def integer(default: int, least: int | str, most: int, more: int = 0) -> Parameter:
    """Return a whole parameter of at least a number, or at least another parameter and some."""
    return Parameter(
        default, lambda v, name: v._whole(name, least=int(v._bound(least)) + more, most=most)
    )


def real(
    default: Number, *, least: Number | str = 0, above: Number | None = None, most: Number
) -> Parameter:
    """Return a parameter that is a number, turned into a Fraction."""
    return Parameter(
        default, lambda v, name: v._number(name, least=v._bound(least), above=above, most=most)
    )


def choice(*known: str) -> Parameter:
    """Return a parameter that is one of these texts, by default the first."""
    return Parameter(known[0], lambda values, name: values._one_of(name, known))


@dataclass(frozen=True)
class Family:
    """A family of random problems; its number is part of every seed and never changes."""

    name: str
    number: int
    _draw: Callable[..., Problem]
    _parameters: Mapping[str, Parameter]

    def parameters(self) -> dict[str, object]:
        """Return the parameters with their defaults."""
        return {name: one.default for name, one in self._parameters.items()}

    def drawn(self, n: int, seed: int, given: Mapping[str, object]) -> Problem:
        """Check the arguments and draw the problem, from numpy's PCG64."""
        known = self.parameters()
        for name in given.keys() - known:
            listed = ", ".join(f"{key} (default {value})" for key, value in known.items())
            what = f"family {self.name!r} has no parameter {name!r}{nearest(name, known)}"
            raise InvalidOption(f"{what}; it has {listed}")
        jobs = whole(n, f"n of family {self.name!r}", least=0, error=InvalidOption)
        seed = whole(seed, f"seed of family {self.name!r}", least=0, error=InvalidOption)
        values = _Values(self.name, {**known, **given})
        for name, parameter in self._parameters.items():
            parameter.check(values, name)
        checked = {name: getattr(values, name) for name in self._parameters}
        return self._draw(np.random.default_rng([seed, self.number]), jobs, **checked)


def family(number: int, **parameters: Parameter) -> Callable[[Callable[..., Problem]], Family]:
    """Make a family of a function, which has its name and takes its parameters by name."""
    return lambda draw: Family(draw.__name__.replace("_", "-"), number, draw, parameters)


#: The median of a job's demand, in sevenths of what a whole machine gives it.
LOAD = real(5, above=0, most=10**6)
#: Standard deviation of its logarithm; 0.56 is that of ParvaGPU's scenarios S3 and S4.
_SPREAD = 0.5


def draw_demands(rng: Rng, machine: Integers, m: Fraction) -> Integers:
    """Draw demands for jobs, given what a whole machine gives them."""
    # numpy's lognormal takes one exponential after the other, the same on every processor
    drawn = machine * float(m / 7) * rng.lognormal(0.0, _SPREAD, len(machine))
    return np.maximum(np.rint(drawn).astype(np.int64), 1)


def draw_alike(
    rng: Rng, n: int, machines: Machines, supply: Callable[[int], Integers], m: Fraction
) -> Problem:
    """Draw a problem of n jobs one like the other, of this supply."""

    def draw(count: int) -> tuple[Integers, Integers]:
        drawn = supply(count)
        return draw_demands(rng, whole_machine(drawn, machines.counts), m), drawn

    return machines.drawn(n, draw)


def whole_machine(supply: Integers, counts: Integers) -> Integers:
    """Return the most that one machine of these counts (c, k) gives to each job (n, k)."""
    most = np.zeros(len(supply), dtype=np.int64)
    for shape in counts:
        held = np.flatnonzero(shape)
        np.maximum(most, supply[:, held] @ shape[held], out=most)
    return most


def power_law(
    rng: Rng,
    count: int,
    slices: Integers,
    exponents: tuple[float, float],
    units: Floats | None = None,
) -> Integers:
    """Draw supply that grows like a power of the block's size, with noise: shape (count, k).

    Exponents are uniform between the two. `units` are what a block of size 1 gives but for noise;
    by default from 100 to 1,000, with a uniform logarithm.
    """
    exponent = rng.uniform(*exponents, count)
    if units is None:
        units = 100 * 10 ** rng.random(count)
    return noisy(rng, units[:, None] * slices ** exponent[:, None])


def noisy(rng: Rng, smooth: Floats) -> Integers:
    """Draw supply around these values."""
    supply = smooth * rng.lognormal(0.0, _NOISE, smooth.shape)
    return np.maximum(np.rint(supply), 1).astype(np.int64)


def table(rng: Rng, count: int, k: int, largest: int) -> Integers:
    """Draw an arbitrary table, entries 0 to `largest`, at least one of each row positive."""
    supply = rng.integers(0, largest, (count, k), endpoint=True)
    empty = np.flatnonzero(~supply.any(axis=1))
    columns = rng.integers(0, k, len(empty))
    supply[empty, columns] = rng.integers(1, largest, len(empty), endpoint=True)
    return supply
