"""The monitor of a shared GPU: everything it promises, over all states and timers it can reach.

**Statement.** The monitor of :func:`cms.fleet.monitor_step` with the times dwell, base, cap, calm;
offline work *may come* in ``healthy``, *may be there* in ``healthy`` and ``unhealthy``. The
back-off of level L >= 1 is min(cap, base 2^(L-1)); the top level is the first of length cap. Then

1. the step is total, and all timers stay within their ranges;
2. it says ``admit``, ``close`` or ``evict`` on exactly the edges where work may come from now on,
   may stay but come no longer, may be there no longer; a hard signal where work may be evicts it in
   that very tick, and so does the operator's ``disable``, whatever the timers;
3. nothing leads to an admission in fewer ticks than quiet metrics do; these lead there in dwell
   ticks after a soft signal in ``init``, ``healthy`` or ``unhealthy`` or the operator's return, and
   in the whole back-off and dwell ticks after a hard one. A quiet tick is one less, in
   ``overlimit`` a soft one too;
4. between two evictions by hard signals lies a whole back-off, unless the operator disabled and
   enabled in between, and always an admission;
5. from anywhere quiet metrics lead to ``healthy`` within dwell + cap + 1 ticks;
6. a level comes on by a hard signal outside of ``overlimit`` and ``disabled``, goes by ``calm``
   quiet ticks in a row in ``healthy``, and changes in no other way.

**Machine-checked.** All of it, by a search over every reachable state and timer with all four
signals; what takes how many ticks is found on the graph, not read off the timers. For small random
times, and for the preset ``muxflow-assumed`` (more than 10^5 states). In the tests every other cell
in any of the 20 places of the table is found, or changes no step.

**On paper.** That a monitor with other times is not different in kind: the table has no numbers.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import NamedTuple, TypeAlias

from cms.fleet import MonitorState, MonitorTimes, monitor_preset, monitor_step
from cms.fleet.published.muxflow_monitor import SIGNALS, TABLE, Action, Cell, Signal, StateName

from .finding import Tally, require, theorem

Table: TypeAlias = Mapping[tuple[StateName, Signal], Cell]
#: In the place of "never".
NEVER = 10**12
#: With so many random monitors or more, the shipped one is searched as well.
WHOLE_RUN = 20


class Graph(NamedTuple):
    """Every state that can be reached; its steps by signal: the next place, and the action."""

    states: list[MonitorState]
    steps: list[list[tuple[int, Action]]]


def length(times: MonitorTimes, level: int) -> int:
    """Return the back-off of a level."""
    return int(min(times.cap, times.base * 2 ** (level - 1)))


def top(times: MonitorTimes) -> int:
    """Return the highest level."""
    level = 1
    while length(times, level) < times.cap:
        level += 1
    return level


def reach(times: MonitorTimes, table: Table = TABLE) -> Graph:
    """Search all states from a fresh monitor."""
    highest = top(times)
    states, steps = [MonitorState()], []
    place = {states[0]: 0}
    for state in states:  # it grows meanwhile
        row = []
        for signal in SIGNALS:
            after, action = monitor_step(state, signal, times, table)
            if after not in place:
                _require_in_range(after, times, highest)
                place[after] = len(states)
                states.append(after)
            row.append((place[after], action))
        steps.append(row)
    return Graph(states, steps)


def _require_in_range(state: MonitorState, times: MonitorTimes, highest: int) -> None:
    name, dwell, level, left, calm = state
    waits = name in ("init", "unhealthy")
    require(0 <= dwell < times.dwell if waits else dwell == 0, f"{state}: dwell")
    require(0 <= level <= highest, f"{state}: level")
    if name == "overlimit":
        require(level > 0 and 1 <= left <= length(times, level), f"{state}: back-off")
    else:
        require(left == 0, f"{state}: back-off")
    counts = name == "healthy" and level > 0
    require(0 <= calm < times.calm if counts else calm == 0, f"{state}: calm")


def quiet_ticks(graph: Graph) -> list[int]:
    """Return how many quiet ticks lead from each state to ``healthy``."""
    ticks = [0 if state.name == "healthy" else -1 for state in graph.states]
    for start in range(len(ticks)):
        way, at = [], start
        while ticks[at] == -1:
            ticks[at] = NEVER  # unless what follows says otherwise: a circle
            way.append(at)
            at = graph.steps[at][0][0]
        for number, before in enumerate(reversed(way), start=1):
            ticks[before] = min(NEVER, ticks[at] + number)
    return ticks


def least_ticks(graph: Graph) -> list[int]:
    """Return in how many ticks any signals but ``disable`` lead to an admission at the soonest."""
    before: list[list[int]] = [[] for _ in graph.states]
    ticks = [NEVER] * len(graph.states)
    nearest: deque[int] = deque()
    for at, row in enumerate(graph.steps):
        for after, action in row[:3]:
            if action != "admit":
                before[after].append(at)
            elif ticks[at] == NEVER:
                ticks[at] = 1
                nearest.append(at)
    while nearest:
        at = nearest.popleft()
        for other in before[at]:
            if ticks[other] == NEVER:
                ticks[other] = ticks[at] + 1
                nearest.append(other)
    return ticks


def breaches(times: MonitorTimes, graph: Graph) -> Iterator[str]:
    """Iterate over the steps that break the statement."""
    quiet, least = quiet_ticks(graph), least_ticks(graph)
    highest, slowest = top(times), times.dwell + times.cap + 1
    for at, (state, row) in enumerate(zip(graph.states, graph.steps, strict=True)):
        if quiet[at] > slowest:
            yield f"{state}: quiet metrics take {quiet[at]} ticks to healthy, not {slowest}"
        if least[at] < quiet[at]:
            yield f"{state}: an admission in {least[at]} ticks, quiet metrics take {quiet[at]}"
        for signal, (place, action) in zip(SIGNALS, row, strict=True):
            after = graph.states[place]
            where = f"{state} on {signal} -> {after}, {action}"
            if action != _due(state.name, after.name):
                yield f"{where}: expected {_due(state.name, after.name)}"
            if not _levels_agree(state, signal, after, times, highest):
                yield f"{where}: level"
            names, ticks = _expected(state, signal, after.level, times, quiet[at])
            if after.name not in names:
                yield f"{where}: expected {' or '.join(names)}"
            if ticks is not None and quiet[place] != ticks:
                yield f"{where}: {quiet[place]} quiet ticks to healthy from there, expected {ticks}"
            if action == "evict" and signal == "hard" and least[place] < length(times, after.level):
                yield f"{where}: an admission in {least[place]} ticks, before the back-off is over"


def _due(before: StateName, after: StateName) -> Action:
    """Return what has to be done on an edge, by what offline work may do in both states."""
    comes, came = after == "healthy", before == "healthy"
    there, was = after in ("healthy", "unhealthy"), before in ("healthy", "unhealthy")
    if was and not there:
        return "evict"
    if comes != came:
        return "admit" if comes else "close" if there else "none"
    return "none"


def _levels_agree(
    state: MonitorState, signal: Signal, after: MonitorState, times: MonitorTimes, highest: int
) -> bool:
    if signal == "hard" and state.name not in ("overlimit", "disabled"):
        return after.level == min(state.level + 1, highest) and after.calm == 0
    if signal == "quiet" and state.name == "healthy" and state.level:
        if state.calm + 1 == times.calm:
            return (after.level, after.calm) == (state.level - 1, 0)
        return (after.level, after.calm) == (state.level, state.calm + 1)
    return after.level == state.level and after.calm == 0


def _expected(
    state: MonitorState, signal: Signal, level: int, times: MonitorTimes, quiet: int
) -> tuple[tuple[StateName, ...], int | None]:
    """Return the states that may follow, and how many quiet ticks are then left to healthy."""
    name = state.name
    if signal == "disable":
        return ("disabled",), times.dwell + 1
    if name == "disabled":
        return ("init",), times.dwell
    if signal == "hard":
        return ("overlimit",), length(times, max(level, 1)) + times.dwell
    if signal == "quiet" or name == "overlimit":
        on: dict[StateName, tuple[StateName, ...]] = {
            "init": ("init", "healthy"),
            "unhealthy": ("unhealthy", "healthy"),
            "overlimit": ("overlimit", "init"),
        }
        return on.get(name, ("healthy",)), max(quiet - 1, 0)
    return ("init",) if name == "init" else ("unhealthy",), times.dwell


def require_monitor(times: MonitorTimes, table: Table = TABLE) -> tuple[int, Fraction]:
    """Search a monitor; return how many states it has, and the slowest recovery by its bound."""
    graph = reach(times, table)
    breach = next(breaches(times, graph), None)
    require(breach is None, str(breach))
    slowest = max(quiet_ticks(graph))
    return len(graph.states), Fraction(slowest, times.dwell + times.cap + 1)


def drawn(rng: random.Random) -> MonitorTimes:
    """Draw the times of a small monitor."""
    base = rng.randint(1, 5)
    return MonitorTimes(
        dwell=rng.randint(1, 6), base=base, cap=base + rng.randint(0, 30), calm=rng.randint(1, 12)
    )


@theorem(
    "Monitor of a shared GPU",
    "every promise in every reachable state, with every timer and signal",
    ratio="slowest recovery / (dwell + cap + 1)",
    proved="1",
)
def check(tally: Tally, *, seed: int = 0, cases: int = WHOLE_RUN) -> None:
    """Run the machine check."""
    every = [drawn(random.Random(f"monitor {seed} {number}")) for number in range(cases)]
    if cases >= WHOLE_RUN:
        every.append(monitor_preset("muxflow-assumed").seconds)
    for times in every:
        with tally.case(times):
            tally.seen(require_monitor(times)[1])
