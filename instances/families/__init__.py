"""Families of random problems: seeded, documented, and cheap at ten million jobs.

>>> problem = generate("real-rows", n=1000, seed=1, m=30)
>>> problem
Problem(1000 jobs, 5 blocks, 12 configurations, 1 machine types)

Problems are built from arrays of integers, never from an object a job. The same arguments give the
same problem, on the same platform and version of numpy (whose streams may change with a version).
``docs/reference/families.md`` has a table of all families.

Every problem has a schedule, except those of ``mixed-fleet-infeasible``, which have none.
"""

from __future__ import annotations

from cms.errors import InvalidOption
from cms.problem.problem import Problem
from cms.values.names import nearest

from . import fleets, measured, stock, synthetic
from .family import Family
from .suite import VARIANTS, suite

__all__ = ["VARIANTS", "Family", "UnknownFamily", "families", "family", "generate", "suite"]

_FOUND = (each for module in (fleets, measured, stock, synthetic) for each in vars(module).values())
_FAMILIES = {
    each.name: each
    for each in sorted(
        (each for each in _FOUND if isinstance(each, Family)), key=lambda each: each.number
    )
}


class UnknownFamily(InvalidOption):
    """There is no family of this name; the message lists those there are."""


def families() -> tuple[str, ...]:
    """Return the names of all families."""
    return tuple(_FAMILIES)


def family(name: str) -> Family:
    """Return a family, which knows its number and its parameters.

    Raises
    ------
    UnknownFamily
        If there is none of this name.

    Examples
    --------
    >>> family("mixed-fleet").parameters()
    {'m': 5, 'types': 3, 'cost_step': '1/2', 'limits': 'none'}
    """
    if name not in _FAMILIES:
        raise UnknownFamily(
            f"there is no family {name!r}; expected one of {', '.join(_FAMILIES)}"
            + nearest(name, _FAMILIES)
        )
    return _FAMILIES[name]


def generate(name: str, *, n: int, seed: int, **parameters: object) -> Problem:
    """Draw one problem; the same arguments give the same problem.

    Parameters
    ----------
    name : str
        A family, one of :func:`families`.
    n : int
        Number of jobs, >= 0 (>= 1 for ``mixed-fleet-infeasible``).
    seed : int
        >= 0.
    **parameters
        The family's own, by name; ``family(name).parameters()`` has their defaults. Numbers may be
        given as numbers or as text.

    Raises
    ------
    UnknownFamily
        If there is no family of this name.
    InvalidOption
        If a parameter is unknown or a value is out of its range.

    Examples
    --------
    >>> generate("mixed-fleet", n=4, seed=1, types=5, limits="tight")
    Problem(4 jobs, 25 blocks, 60 configurations, 5 machine types)
    """
    return family(name).drawn(n, seed, parameters)
