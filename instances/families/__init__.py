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

from typing import TYPE_CHECKING

from cms.errors import InvalidOption
from cms.values.names import nearest

from . import a100, clusters, fleets, measured, rounding, shares, stock
from .family import Family
from .suite import VARIANTS, suite

if TYPE_CHECKING:
    from cms.problem.problem import Problem

__all__ = ["VARIANTS", "Family", "UnknownFamily", "families", "family", "generate", "suite"]

_MODULES = (a100, clusters, fleets, measured, rounding, shares, stock)
_FOUND = (each for module in _MODULES for each in vars(module).values())
_FAMILIES = {
    each.name: each
    for each in sorted(
        (each for each in _FOUND if isinstance(each, Family)), key=lambda each: each.number
    )
}


class UnknownFamily(InvalidOption):
    """There is no family of this name; the message lists those there are."""


def families() -> tuple[str, ...]:
    """Return the names of all families.

    Examples
    --------
    >>> families()[:3]
    ('real-rows', 'arbitrary', 'sparse')
    """
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
    """Draw one problem.

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

    Returns
    -------
    Problem
        Same arguments, same problem.

    Raises
    ------
    UnknownFamily
        If there is no family of this name.
    InvalidOption
        If a parameter is unknown or a value is out of its range.

    Examples
    --------
    >>> problem = generate("mixed-fleet", n=4, seed=1, types=5, limits="tight")
    >>> (
    ...     len(problem.blocks),
    ...     problem == generate("mixed-fleet", n=4, seed=1, types=5, limits="tight"),
    ... )
    (25, True)
    """
    kind = family(name)
    known = kind.parameters()
    for given in parameters:
        if given not in known:
            listed = ", ".join(f"{key} (default {value})" for key, value in known.items())
            raise InvalidOption(
                f"family {name!r} has no parameter {given!r}{nearest(given, known)}; it has "
                + listed
            )
    return kind.drawn(n, seed, parameters)
