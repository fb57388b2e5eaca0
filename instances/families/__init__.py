"""Families of random problems: seeded, documented, and cheap at ten million jobs.

>>> problem = generate("real-rows", n=1000, seed=1, m=30)
>>> problem
Problem(1000 jobs, 5 blocks, 12 configurations, 1 machine types)

Problems are the same for the same arguments, platform and version of numpy. Every one has a
schedule, except those of ``mixed-fleet-infeasible``; ``docs/reference/families.md`` lists all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from cms.errors import InvalidOption
from cms.problem.problem import Problem
from cms.values.names import nearest
from cms.values.numbers import whole

from . import fleets, measured, stock, synthetic
from .family import Family

__all__ = ["VARIANTS", "Family", "UnknownFamily", "families", "family", "generate", "suite"]

_FOUND = (each for module in (fleets, measured, stock, synthetic) for each in vars(module).values())
_SORTED = sorted((each for each in _FOUND if isinstance(each, Family)), key=lambda f: f.number)
_FAMILIES = {each.name: each for each in _SORTED}


class UnknownFamily(InvalidOption):
    """There is no family of this name; the message lists those there are."""


def families() -> tuple[str, ...]:
    """Return the names of all families."""
    return tuple(_FAMILIES)


def family(name: str) -> Family:
    """Return a family, which knows its number and its parameters.

    >>> family("mixed-fleet").parameters()
    {'m': 5, 'types': 3, 'cost_step': '1/2', 'limits': 'none'}
    """
    if name not in _FAMILIES:
        known = f"expected one of {', '.join(_FAMILIES)}{nearest(name, _FAMILIES)}"
        raise UnknownFamily(f"there is no family {name!r}; {known}")
    return _FAMILIES[name]


def generate(name: str, *, n: int, seed: int, **parameters: object) -> Problem:
    """Draw one problem of n jobs; the same arguments give the same problem.

    The parameters are the family's own: ``family(name).parameters()`` has their defaults. Numbers
    may be given as text; :class:`cms.InvalidOption` says what is unknown or out of range.

    >>> generate("mixed-fleet", n=4, seed=1, types=5, limits="tight")
    Problem(4 jobs, 25 blocks, 60 configurations, 5 machine types)
    """
    return family(name).drawn(n, seed, parameters)


_LOADS = ({"m": 5}, {"m": 1}, {"m": 30})
#: The parameters a family is drawn with, in turn. No family is here whose problems are infeasible,
#: nor ``mig-serving``, which has a benchmark suite to itself: published tables are of this choice,
#: and a family more would give all the others different problems. Nor is the kind ``non-irup`` of
#: ``rounding``: no tree of block prices reaches its optimum, since it branches on machine types
#: and blocks only, never on which blocks of a size-bounded set share a machine.
VARIANTS: Mapping[str, Sequence[Mapping[str, object]]] = {
    "real-rows": ({"m": 1}, {"m": 5}, {"m": 30}),
    "arbitrary": (*_LOADS, {"m": 5, "largest": 10}),
    "sparse": (*_LOADS, {"m": 5, "largest": 10}),
    "near-ties": _LOADS,
    "superlinear": (*_LOADS, {"m": 5, "exponent": "2"}),
    "sublinear": (*_LOADS, {"m": 5, "exponent": "0.3"}),
    "mixed-fleet": tuple(
        {"types": types, "limits": limits, "cost_step": step}
        for types in (3, 5, 2, 4)
        for limits, step in (("none", "1/2"), ("tight", "0.01"), ("ample", "1"), ("tight", "1/2"))
    ),
    "size-bounded": (
        {"m": 5},
        {"m": 1, "step": 20},
        {"m": 1},
        {"m": 5, "step": 15},
        {"m": 30},
        {"m": 5, "step": 30},
        {"m": 5, "floor": 5},
    ),
    "size-bounded-mixed": (
        {"m": 5},
        {"m": 1, "mig_cost": "3/2"},
        {"m": 30},
        {"m": 5, "mig_cost": "0.9"},
    ),
    "random-configurations": (
        {"k": 5},
        {"k": 3, "configurations": 4, "largest": 10},
        {"k": 10, "configurations": 20},
        {"k": 5, "m": 30},
    ),
    "huge-demands": ({}, {"low": 3, "high": 6}),
    "equal-jobs": ({"kinds": 5}, {"kinds": 1}, {"kinds": 20, "m": 1}, {"kinds": 3, "m": 30}),
    "rounding": tuple(
        {"kind": kind} for kind in ("hair", "full", "triplets", "one-block", "non-irup-listed")
    ),
}


def suite(
    instances: int, largest: int, seed: int, names: Sequence[str] = tuple(VARIANTS)
) -> Iterator[tuple[str, dict[str, object]]]:
    """List problems of the selected families and all sizes; all of them have a schedule.

    Families come in turn, and each takes its variants in turn. The sizes of a family's problems
    are spread evenly over the logarithm, from 1 to `largest`, which a family with a single problem
    takes. Each is a name and the arguments of :func:`generate`: all ints and texts.

    >>> listed = list(suite(40, 1000, seed=1))
    >>> listed[0][0], listed[0][1]["n"], listed[26][1]["n"]
    ('real-rows', 1, 100)
    """
    count = whole(instances, "instances", least=0, error=InvalidOption)
    most = whole(largest, "largest", least=1, error=InvalidOption)
    rng = np.random.default_rng(whole(seed, "seed", least=0, error=InvalidOption))
    for name in names:
        if name not in VARIANTS:
            known = ", ".join(VARIANTS)
            raise InvalidOption(f"there is no family {name!r} in the selection; it has {known}")
    for at in range(count):
        turn, which = divmod(at, len(names))
        name = names[which]
        last = (count - 1 - which) // len(names)
        n = round(most ** (turn / last)) if last else most
        parameters = VARIANTS[name][turn % len(VARIANTS[name])]
        yield name, {"n": n, "seed": int(rng.integers(2**32)), **parameters}
