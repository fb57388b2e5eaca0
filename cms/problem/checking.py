"""What a problem is given becomes its parts: checked, complete, and nothing left to guess."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from ..errors import InvalidProblem
from ..values.names import checked_names, iterated, nearest
from ..values.numbers import exact
from .parts import (
    DEFAULT_MACHINE,
    AnyConfiguration,
    Block,
    Configuration,
    DemandFunction,
    GroupLimit,
    Job,
    MachineType,
    SizeBoundedConfigurations,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

T = TypeVar("T")


def check_machines(
    configurations: AnyConfiguration | Iterable[AnyConfiguration],
    machine_types: Iterable[MachineType],
    group_limits: Iterable[GroupLimit],
) -> tuple[tuple[AnyConfiguration, ...], tuple[MachineType, ...], tuple[GroupLimit, ...]]:
    """Check configurations and groups against machine types, and complete them.

    Configurations of the only type need not name it.
    """
    if isinstance(configurations, Configuration | SizeBoundedConfigurations):
        configurations = (configurations,)
    types = each_of(machine_types, MachineType, "machine_types")
    types = types or (MachineType(DEFAULT_MACHINE),)
    names = checked_names((machine.name for machine in types), "machine type")
    known = set(names)
    groups = each_of(group_limits, GroupLimit, "group_limits")
    checked_names((group.name for group in groups), "group")
    for group in groups:
        if group.name in known:
            raise InvalidProblem(
                f"group {group.name!r} is called like a machine type; every group needs a name of "
                "its own"
            )
        for counted in group.weights:
            if counted not in known:
                raise InvalidProblem(
                    f"group {group.name!r} counts the unknown machine type {counted!r}; known: "
                    + ", ".join(names)
                    + nearest(counted, names)
                )
    shapes: list[AnyConfiguration] = []
    for shape in iterated(configurations, "configurations", "a sequence of configurations"):
        if not isinstance(shape, Configuration | SizeBoundedConfigurations):
            raise InvalidProblem(
                f"configurations contains {shape!r}; expected Configuration or "
                "SizeBoundedConfigurations objects"
            )
        name = names[0] if shape.machine is None and len(names) == 1 else shape.machine
        if name is None:
            raise InvalidProblem(
                f"configuration {shape!r} does not say its machine type; write machine=... with "
                f"one of {', '.join(names)}"
            )
        if name not in known:
            raise InvalidProblem(
                f"configuration {shape!r} belongs to the unknown machine type {name!r}; known: "
                + ", ".join(names)
                + nearest(name, names)
            )
        shapes.append(shape if shape.machine == name else replace(shape, machine=name))
    return tuple(shapes), types, groups


def each_of(values: Iterable[T], kind: type[T], what: str) -> tuple[T, ...]:
    """Return the values as a tuple, all of one kind."""
    result = tuple(iterated(values, what, f"a sequence of {kind.__name__} objects"))
    for value in result:
        if not isinstance(value, kind):
            raise InvalidProblem(f"{what} contains {value!r}; expected {kind.__name__} objects")
    return result


def blocks_of(configurations: Iterable[AnyConfiguration]) -> tuple[Block, ...]:
    """Return the blocks of all configurations, in the order in which they appear."""
    found: dict[Block, None] = {}
    for shape in configurations:
        found |= dict.fromkeys(shape.blocks if isinstance(shape, Configuration) else shape.sizes)
    return tuple(found)


def refuse_unknown_blocks(
    configurations: Iterable[AnyConfiguration], blocks: Sequence[Block]
) -> None:
    """Raise InvalidProblem if a configuration has a block that is not among the blocks."""
    known = set(blocks)
    for shape in configurations:
        for block in blocks_of([shape]):
            if block not in known:
                raise InvalidProblem(
                    f"configuration {shape!r} has the block {block!r}, which is not among the "
                    f"blocks{nearest(block, blocks)}"
                )


def from_counts(
    configurations: ArrayLike | AnyConfiguration | Iterable[AnyConfiguration],
    blocks: Sequence[Block],
    machines: Sequence[str] | None,
) -> AnyConfiguration | Iterable[AnyConfiguration]:
    """Turn a (c, k) array of counts into configurations; leave objects as they are."""
    given: Any = configurations
    if isinstance(given, Iterable) and not hasattr(given, "__array__"):
        given = list(given)
    shapes = given if isinstance(given, list) else [given]
    if any(isinstance(shape, Configuration | SizeBoundedConfigurations) for shape in shapes):
        if machines is not None:
            raise InvalidProblem(
                "configuration_machines goes with an array of counts; Configuration objects say "
                "their machine type themselves"
            )
        return cast("AnyConfiguration | list[AnyConfiguration]", given)
    try:
        counts = np.array(given, dtype=object)
    except ValueError as fault:
        raise InvalidProblem(f"configurations is no array of counts: {fault}") from None
    if not counts.size and len(counts.shape) < 2:
        return []
    if counts.ndim != 2 or counts.shape[1] != len(blocks):
        raise InvalidProblem(
            f"configurations has shape {counts.shape}; expected (c, {len(blocks)}): a row a "
            "configuration and a column a block"
        )
    given = [None] * len(counts) if machines is None else machines
    names = list(iterated(given, "configuration_machines", "a sequence of str"))
    if len(names) != len(counts):
        raise InvalidProblem(
            f"{len(names)} configuration_machines for {len(counts)} configurations"
        )
    listed = []
    for index, (row, name) in enumerate(zip(counts, names, strict=True)):
        try:
            listed.append(Configuration(dict(zip(blocks, row, strict=True)), name))
        except InvalidProblem as fault:
            raise InvalidProblem(f"configurations[{index}]: {fault}") from None
    return listed


def evaluated(job: Job, blocks: Sequence[Block]) -> list[Fraction]:
    """Return what one block of each type gives a job."""
    function: Any = job.demand_function
    if isinstance(function, DemandFunction):
        known = set(blocks)
        for block in function:
            if block not in known:
                raise InvalidProblem(
                    f"job {job.name!r} has a supply for the block {block!r}, which is in no "
                    "configuration" + nearest(block, blocks)
                )
        return [function(block) for block in blocks]
    supply = []
    for block in blocks:
        try:
            value = function(block)
        except Exception as fault:
            raise InvalidProblem(
                f"demand_function of job {job.name!r} fails for block {block!r} with "
                f"{type(fault).__name__}: {fault}; return 0 for a block it cannot use"
            ) from fault
        supply.append(exact(value, f"supply of block {block!r} to job {job.name!r}"))
    return supply
