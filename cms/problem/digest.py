"""The SHA-256 of a problem, over names and canonical reduced rationals."""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..values.names import NumberedNames
from .parts import AnyConfiguration, Configuration, GroupLimit

if TYPE_CHECKING:
    from .machine_problem import MachineProblem
    from .rows import Rows

#: Consecutive jobs that are hashed together: parts of a problem can be hashed by themselves.
LEAF = 2**16
# Rows hashed at once, within the processor's cache.
_ROWS_AT_ONCE = 2**13
_LAST_DIGITS = [f"{number:03}" for number in range(1000)]


def digest(problem: MachineProblem, leaves: Iterable[bytes]) -> str:
    """Return the SHA-256 of a problem, from the digests of the leaves of its jobs."""
    found = hashlib.sha256(_title("cms-problem-2", problem))
    for leaf in leaves:
        found.update(leaf)
    return found.hexdigest()


def leaf_digests(
    names: Sequence[str], rows: Rows, blocks: Sequence[str], first: int = 0
) -> Iterator[bytes]:
    """Iterate over the digests of the leaves of consecutive jobs."""
    order = sorted(range(len(blocks)), key=blocks.__getitem__)
    wide = sorted(rows.wide)
    for begin in range(0, len(rows), LEAF):
        end = min(begin + LEAF, len(rows))
        found = hashlib.sha256()
        for lines in _lines(names, first + begin, first + end):
            found.update(lines)
        found.update(b"\n")
        for start in range(begin, end, _ROWS_AT_ONCE):
            part = slice(start, min(start + _ROWS_AT_ONCE, end))
            table = np.empty((part.stop - start, len(order) + 2), dtype="<i8")
            table[:, 0], table[:, 1] = rows.denominators[part], rows.demands[part]
            table[:, 2:] = rows.supplies[part][:, order]
            found.update(table.data)
        for j in wide[bisect_left(wide, begin) : bisect_left(wide, end)]:
            row = rows.wide[j]
            given, rule = (row.supply[i] for i in order), row.rule or ()
            numbers = (first + j, row.denominator, row.demand, *given, *rule)
            found.update((":".join(str(number) for number in numbers) + "\n").encode())
        yield found.digest()


def hashed_machines(title: str, problem: MachineProblem, **more: object) -> Iterator[bytes]:
    """Iterate over what the digest of other kinds begins with: title, machines, the jobs' names.

    ``more`` goes into the line of JSON that describes the machines.
    """
    yield _title(title, problem, **more)
    yield from _lines(problem.job_names, 0, len(problem.job_names))
    yield b"\n"


def _title(title: str, problem: MachineProblem, **more: object) -> bytes:
    head = {
        "blocks": sorted(problem.blocks),
        "configurations": [_canonical(c) for c in problem.configurations],
        "machine_types": [
            {"name": m.name, "cost": str(m.cost), "limit": m.limit} for m in problem.machine_types
        ],
        **more,
    }
    if problem.group_limits:
        head["group_limits"] = [_canonical_group(group) for group in problem.group_limits]
    text = json.dumps(head, ensure_ascii=True, separators=(",", ":"), sort_keys=True)
    return f"{title}\n{text}\n".encode()


def _lines(names: Sequence[str], begin: int, end: int) -> Iterator[bytes]:
    """Iterate over some names in UTF-8, each followed by a line end, many at a time."""
    if isinstance(names, NumberedNames):
        # Numbers of the same thousand end in the same three digits as those of any other.
        for start in range(begin - begin % 1000, end, 1000):
            last = _LAST_DIGITS if start else list(map(str, range(1000)))
            head = f"{names.prefix}{start // 1000 or ''}"
            texts = last[max(0, begin - start) : end - start]
            yield (head + f"\n{head}".join(texts) + "\n").encode()
        return
    for start in range(begin, end, _ROWS_AT_ONCE):
        yield ("\n".join(names[start : min(start + _ROWS_AT_ONCE, end)]) + "\n").encode()


def _canonical_group(group: GroupLimit) -> dict[str, Any]:
    weights = {machine: str(weight) for machine, weight in group.weights.items()}
    return {"name": group.name, "weights": weights, "at_most": str(group.at_most)}


def _canonical(shape: AnyConfiguration) -> dict[str, Any]:
    if isinstance(shape, Configuration):
        return {"machine": shape.machine, "blocks": dict(shape.blocks.items())}
    return {
        "machine": shape.machine,
        "sizes": {block: str(size) for block, size in shape.sizes.items()},
        "capacity": str(shape.capacity),
        "max_blocks": shape.max_blocks,
    }
