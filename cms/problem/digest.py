"""The SHA-256 of a problem, over names and canonical reduced rationals."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..values.names import NumberedNames
from .parts import AnyConfiguration, Configuration

if TYPE_CHECKING:
    from .machine_problem import MachineProblem
    from .rows import Rows

# Rows hashed at once: what that needs stays in the processor's cache.
_ROWS_AT_ONCE = 2**13


def digest(problem: MachineProblem, rows: Rows) -> str:
    """Return the same 64 digits for equal machines and rows; ``docs/reference/files.md`` says how.

    Examples
    --------
    >>> from cms import Problem
    >>> problem = Problem(configurations=Configuration({"7g": 1}))
    >>> digest(problem, problem.rows)[:8]
    '4049a668'
    """
    found = hashlib.sha256()
    for line in hashed_machines("cms-problem-1", problem):
        found.update(line)
    order = sorted(range(len(problem.blocks)), key=lambda i: problem.blocks[i])
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        table = np.empty((len(rows.demands[part]), len(order) + 2), dtype="<i8")
        table[:, 0], table[:, 1] = rows.denominators[part], rows.demands[part]
        table[:, 2:] = rows.supplies[part][:, order]
        found.update(table.data)
    for j, row in rows.wide.items():
        numbers = (j, row.denominator, row.demand, *(row.supply[i] for i in order))
        found.update((":".join(str(number) for number in numbers) + "\n").encode())
    return found.hexdigest()


def hashed_machines(title: str, problem: MachineProblem, **more: object) -> Iterator[bytes]:
    """Iterate over what the digest of any kind begins with: title, machines, the jobs' names.

    ``more`` goes into the line of JSON that describes the machines.
    """
    head = {
        "blocks": sorted(problem.blocks),
        "configurations": [_canonical(c) for c in problem.configurations],
        "machine_types": [
            {"name": m.name, "cost": str(m.cost), "limit": m.limit} for m in problem.machine_types
        ],
        **more,
    }
    text = json.dumps(head, ensure_ascii=True, separators=(",", ":"), sort_keys=True)
    yield f"{title}\n{text}\n".encode()
    yield from _lines(problem.job_names)
    yield b"\n"


def _lines(names: Sequence[str]) -> Iterator[bytes]:
    """Iterate over the names in UTF-8, each followed by a line end, many at a time."""
    if isinstance(names, NumberedNames):
        yield from names.lines()
        return
    for start in range(0, len(names), _ROWS_AT_ONCE):
        yield ("\n".join(names[start : start + _ROWS_AT_ONCE]) + "\n").encode()


def _canonical(shape: AnyConfiguration) -> dict[str, Any]:
    if isinstance(shape, Configuration):
        return {"machine": shape.machine, "blocks": dict(shape.blocks.items())}
    return {
        "machine": shape.machine,
        "sizes": {block: str(size) for block, size in shape.sizes.items()},
        "capacity": str(shape.capacity),
        "max_blocks": shape.max_blocks,
    }
