"""A schedule's data in columns: a few arrays, whatever the number of machines and jobs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import InvalidSchedule
from ..problem.parts import Block, Configuration
from ..values.arrays import integers, read_only, roomy
from ..values.names import NumberedNames, checked_names
from ..values.numbers import whole
from .contents import checked_content

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Columns(NamedTuple):
    """A schedule's data: entry e gives ``entry_count[e]`` blocks on each machine of a group.

    Group g has the entries ``entry_start[g]`` to ``entry_start[g + 1]``; blocks, contents and
    configurations are indices into the three tables. A block's content is the job it serves, or the
    mix of jobs. Counts are int64, or Python integers in an object array where they are larger.
    """

    blocks: Sequence[Block]
    contents: Sequence[Any]  # jobs or mixes: the reader knows which
    configurations: tuple[Configuration, ...]
    group_configuration: NDArray[Any]
    group_count: NDArray[Any]
    entry_start: NDArray[Any]
    entry_block: NDArray[Any]
    entry_content: NDArray[Any]
    entry_count: NDArray[Any]


def checked_columns(columns: Columns) -> Columns:
    """Return read-only columns, or refuse what does not fit together."""
    if type(columns) is not Columns:
        raise InvalidSchedule(f"a schedule's columns are {columns!r}; expected Columns")
    arrays = [
        whole_array(values, f"column {name}")
        for name, values in zip(columns._fields[3:], columns[3:], strict=True)
    ]
    # Two columns of one name would let a machine give the same block twice.
    blocks = checked_names(columns.blocks, "block", InvalidSchedule)
    for shape in columns.configurations:
        if type(shape) is not Configuration:  # a subclass could say one thing now, another later
            raise InvalidSchedule(f"a configuration is {shape!r}; expected a Configuration")
    contents = columns.contents
    # A problem's own names stay the same object, by which `check` knows them again.
    if not isinstance(contents, NumberedNames):
        contents = tuple(contents)
        if not all(type(name) is str for name in contents):
            contents = tuple(checked_content(name, "job name") for name in contents)
    shapes = tuple(columns.configurations)
    checked = Columns(blocks, contents, shapes, *map(read_only, arrays))
    _refuse_misfits(checked)
    return checked


def machine_totals(columns: Columns) -> dict[Configuration, int]:
    """Return how many machines take each configuration that a group has, exactly."""
    where, counts = columns.group_configuration, columns.group_count
    sums = np.zeros(len(columns.configurations), dtype=roomy(counts, len(counts)).dtype)
    np.add.at(sums, where, counts)
    totals: dict[Configuration, int] = defaultdict(int)
    for index in np.flatnonzero(np.bincount(where, minlength=len(sums))).tolist():
        totals[columns.configurations[index]] += int(sums[index])
    return dict(totals)


def whole_array(values: Sequence[int] | NDArray[Any], what: str) -> NDArray[Any]:
    """Copy whole numbers as int64, or as Python integers in an object array if one is larger."""
    if isinstance(values, np.ndarray):
        values = np.asarray(values)  # no subclass: it could have ideas of its own
        if values.ndim != 1:
            raise InvalidSchedule(f"{what} has shape {values.shape}; expected a single row")
        if values.dtype.kind == "i" or (values.dtype.kind in "uf" and not values.size):
            return values.astype(np.int64)
        if values.dtype.kind not in "uO":
            raise InvalidSchedule(f"{what} has dtype {values.dtype}; expected whole numbers")
    elif not isinstance(values, Sequence):
        raise InvalidSchedule(f"{what} is {values!r}; expected a row of whole numbers")
    return integers(
        [whole(n, f"{what}: entry {at}", error=InvalidSchedule) for at, n in enumerate(values)]
    )


def _refuse_misfits(columns: Columns) -> None:
    groups, entries = len(columns.group_count), len(columns.entry_count)
    starts = columns.entry_start
    fits = (
        len(columns.group_configuration) == groups
        and len(starts) == groups + 1
        and len(columns.entry_block) == len(columns.entry_content) == entries
        and starts[0] == 0
        and starts[-1] == entries
        and bool((np.diff(starts) >= 0).all())
    )
    if not fits:
        raise InvalidSchedule(
            f"columns of {groups} groups and {entries} entries have other lengths: one "
            "configuration and count a group, one block, content and count an entry, and "
            "entry_start rising from 0 to the number of entries"
        )
    refuse_outside(columns.group_configuration, len(columns.configurations), "configuration")
    refuse_outside(columns.entry_block, len(columns.blocks), "block")
    refuse_outside(columns.entry_content, len(columns.contents), "content")


def refuse_outside(values: NDArray[Any], limit: int, what: str) -> None:
    """Raise InvalidSchedule if an index of something is below 0, or not below a limit."""
    if len(values) and not (0 <= int(values.min()) and int(values.max()) < limit):
        raise InvalidSchedule(f"a {what} index lies outside 0 ... {limit - 1}")
