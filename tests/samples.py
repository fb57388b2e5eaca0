"""Small problems, rows and schedules that several tests start from."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

from cms import Configuration, Job, MachineType, Problem
from cms.problem.rows import Rows
from cms.schedule.columns import Columns
from instances.hard import packing


def refusal(error: type[Exception], make: Callable[..., object], *args: Any, **named: Any) -> str:
    """The message with which something is refused."""
    with pytest.raises(error) as caught:
        make(*args, **named)
    return str(caught.value)


#: Whether this run may take tests of the long one; if not, these are not even made: there are more
#: of them than of all others. ``tests/conftest.py`` says so.
LONG_TOO = True


def few(number: int, values: Iterable[Any]) -> list[Any]:
    """The first so many values for a test that is given all of them in the long run."""
    return _marked((value, at >= number) for at, value in enumerate(values))


def spread(number: int, values: Iterable[Any]) -> list[Any]:
    """As ``few``, but no more than so many that lie evenly over the whole sweep."""
    every = list(values)
    step = -(-len(every) // number)
    return _marked((value, at % step > 0) for at, value in enumerate(every))


def in_turn(every: int, names: Iterable[Any], others: Iterable[Any]) -> list[Any]:
    """All pairs for a test of two values; one in so many of them is of the short run.

    Given as many names, every one of both kinds is among these.
    """
    others = list(others)
    return _marked(
        (name, other, (at + among) % every > 0)
        for at, name in enumerate(names)
        for among, other in enumerate(others)
    )


def _marked(cases: Iterable[tuple[Any, ...]]) -> list[Any]:
    """The values of each case, marked if what stands behind them says that it is a long one."""
    return [
        pytest.param(*values, marks=[pytest.mark.long] if is_long else [])
        for *values, is_long in cases
        if LONG_TOO or not is_long
    ]


def so_many(short: int, long: int) -> int:
    """How many cases a loop goes through: so many in the short run, so many in the long one."""
    return short if settings().derandomize else long


def mig() -> Problem:
    return Problem(
        configurations=[
            Configuration({"7g": 1}),
            Configuration({"4g": 1, "3g": 1}),
            Configuration({"1g": 7}),
        ],
        jobs=[
            Job("bert", demand=1200, demand_function={"1g": 90, "3g": "310.5", "7g": 800}),
            Job("resnet", "333.3", lambda block: {"1g": 40, "3g": 150, "7g": 380}.get(block, 0)),
        ],
    )


def mig_from_arrays(blocks: tuple[str, ...] = ("7g", "4g", "3g", "1g")) -> Problem:
    supply: dict[str, dict[str, float]] = {
        "bert": {"7g": 800, "4g": 0, "3g": 310.5, "1g": 90},
        "resnet": {"7g": 380, "4g": 0, "3g": 150, "1g": 40},
    }
    counts: list[dict[str, int]] = [{"7g": 1}, {"4g": 1, "3g": 1}, {"1g": 7}]
    return Problem.from_arrays(
        demands=[1200, 333.3],
        supply=[[table[block] for block in blocks] for table in supply.values()],
        configurations=[[count.get(block, 0) for block in blocks] for count in counts],
        blocks=blocks,
        job_names=list(supply),
    )


def triple(cost: Any = 1, limit: int | None = None) -> Problem:
    """Machines of three blocks; two jobs that need two each."""
    return Problem(
        configurations=Configuration({"b": 3}),
        jobs=[Job("x", 2, {"b": 1}), Job("y", 2, {"b": 1})],
        machine_types=[MachineType("machine", cost, limit)],
    )


def two_types(limit_of_dear: int | None = None) -> Problem:
    """Two blocks are needed; a cheap machine costs 1 and there is one, a dear one costs 3."""
    return Problem(
        configurations=[Configuration({"b": 1}, "cheap"), Configuration({"b": 1}, "dear")],
        jobs=[Job("x", 2, {"b": 1})],
        machine_types=[MachineType("cheap", 1, 1), MachineType("dear", 3, limit_of_dear)],
    )


PAIR = Configuration({"half": 2})


def halves(*names: str, demand: int = 1) -> Problem:
    """Jobs that each half of a machine gives 1."""
    return Problem(configurations=PAIR, jobs=[Job(name, demand, {"half": 1}) for name in names])


def no_round_up() -> Problem:
    """Cutting stock of 655/132 machines that needs six.

    ``hard.NON_IRUP``, of which proper contents prove 23/11, and what fills three machines more.
    """
    return packing((44, 33, 12), 132, (5, 7, 17))


def ints(*values: int) -> Any:
    return np.array(values, dtype=np.int64)


def columns(**other: Any) -> Columns:
    """Two groups: 3 machines with a half for a and one for b, and 1 idle machine."""
    parts: dict[str, Any] = {
        "blocks": ("half",),
        "contents": ("a", "b"),
        "configurations": (PAIR,),
        "group_configuration": ints(0, 0),
        "group_count": ints(3, 1),
        "entry_start": ints(0, 2, 2),
        "entry_block": ints(0, 0),
        "entry_content": ints(0, 1),
        "entry_count": ints(1, 1),
    }
    return Columns(**{**parts, **other})


def rows_of(demands: Any, supply: Any) -> Rows:
    k = np.shape(supply)[1]
    n = len(demands)
    return Rows.from_arrays(
        demands, supply, [f"j{j}" for j in range(n)], [f"b{i}" for i in range(k)]
    )
