"""Documents with one thing changed: a number by a hair, a name, an entry, a part for another."""

from __future__ import annotations

import copy
import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from operator import getitem
from typing import Any

from cms.files import number_to_json
from tests.proofs_checks.documents import places

#: By key, what else may stand there.
Pool = Mapping[str, Sequence[Any]]

LITTLE = Fraction(1, 10**25)
JUNK: list[Any] = [
    None, True, -1, 0, 1.5, 10**20, "", "1", "abc", "1/0", "-1/3", "NaN", "nobody", [], [1], {},
    {"nobody": 1},
]  # fmt: skip


def pool_of(*documents: Any) -> Pool:
    """All that stands somewhere in documents, by the last key on the way there."""
    found: dict[str, list[Any]] = defaultdict(list)
    for document in documents:
        for path in places(document):
            if isinstance(path[-1], str):
                found[path[-1]].append(reduce(getitem, path, document))
    return found


def mutant(
    rng: random.Random,
    document: Any,
    pool: Pool,
    changes: int = 1,
    *,
    junk: Sequence[Any] = JUNK,
    may_change: Callable[[tuple[Any, ...]], bool] = bool,
) -> Any:
    """A copy with so many changes, each at a place drawn by its key: long tables count once."""
    copied = [copy.deepcopy(document)]
    for _ in range(changes):
        by_key: dict[Any, list[tuple[Any, ...]]] = defaultdict(list)
        for path in filter(may_change, places(copied)):
            by_key[path[-1] if isinstance(path[-1], str) else path[:-1]].append(path)
        if not by_key:
            break
        *steps, key = rng.choice(by_key[rng.choice(list(by_key))])
        _change(rng, reduce(getitem, steps, copied), key, pool, junk)
    return copied[0] if copied else None


def _change(rng: random.Random, inside: Any, key: Any, pool: Pool, junk: Sequence[Any]) -> None:
    value, kind = inside[key], rng.randrange(12)
    if kind == 0:
        del inside[key]
    elif kind == 1:
        inside[key] = rng.choice(junk)
    elif kind == 2 and isinstance(inside, dict):
        inside[rng.choice(["nobody", "", f"{key}s", *inside, *pool])] = inside.pop(key)
    elif kind == 3 and isinstance(inside, list):
        inside.append(copy.deepcopy(rng.choice(inside)))
        rng.shuffle(inside)
    elif kind == 4 and isinstance(inside, dict):
        other = rng.choice(list(inside))
        inside[key], inside[other] = inside[other], value
    elif kind == 5 and isinstance(value, dict) and any(isinstance(v, dict) for v in value.values()):
        inside[key] = rng.choice([v for v in value.values() if isinstance(v, dict)])
    elif kind < 8 and pool.get(key):
        inside[key] = copy.deepcopy(rng.choice(pool[key]))
    else:
        inside[key] = _near(rng, value, inside)


def _near(rng: random.Random, value: Any, inside: Any) -> Any:
    """Another number, by a hair or by far; another text of those beside it."""
    try:
        number = Fraction(value)
    except (OverflowError, TypeError, ValueError, ZeroDivisionError):
        return rng.choice(list(inside.values() if isinstance(inside, dict) else inside))
    near = [number + 1, abs(number - 1), 2 * number, Fraction(0), -number, number * 10**40]
    if not isinstance(value, int) or rng.random() < 0.3:
        part = number * Fraction(rng.randint(1, 30), 20)
        near += [number + LITTLE, abs(number - LITTLE), number / 2, part]
    return number_to_json(rng.choice(near))
