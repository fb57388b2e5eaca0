"""Which costs the floating-point programs can tell apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cms.plugin.algorithm import Support

if TYPE_CHECKING:
    from cms.problem.problem import Problem

#: Costs are multiples of the cheapest in linear programs; a float holds no more than 1e308.
_FURTHEST = 10**100


def supported_costs(problem: Problem) -> Support:
    """Refuse costs that lie astronomically far apart.

    Examples
    --------
    >>> from cms import Configuration, MachineType, Problem
    >>> shapes = [Configuration({"a": 1}, "m"), Configuration({"a": 9}, "n")]
    >>> types = [MachineType("m", "1e-60"), MachineType("n", 10**60)]
    >>> supported_costs(Problem(configurations=shapes, machine_types=types)).reason
    "machine type 'n' costs more than 10**100 times as much as 'm'; leave one of them out"
    """
    paid = sorted((m for m in problem.machine_types if m.cost), key=lambda machine: machine.cost)
    if paid and paid[-1].cost > _FURTHEST * paid[0].cost:
        return Support(
            False,
            f"machine type {paid[-1].name!r} costs more than 10**100 times as much as "
            f"{paid[0].name!r}; leave one of them out",
        )
    return Support(True)
