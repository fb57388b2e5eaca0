"""The loop of a service in plain Python: what the compiled one must agree with.

It also answers where compiling would take longer than the answer. It has the state, the order of
ties and the draws of :mod:`.kernel`, and no more in common with it: queues are deques, the heap is
the library's, and the next station is found by looking at all of them.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable
from typing import Any

from .kernel import ALONE, DRAWN, TURNS, TWO_DRAWN
from .state import BEGUN, FILL_BITS, FREE, LOGGED, UNDER_WAY, State


def advance(
    state: State, policy: int, at: Any, tags: Any, first: Any, second: Any, until: int
) -> int:
    """Do what :func:`.kernel.advance` does; its parameters, its result."""
    weight, batch, idle, load, turns, busy, batches, served, deepest = (
        each.tolist()
        for each in (
            state.weight, state.batch, state.idle, state.load, state.turns, state.busy,
            state.batches, state.taken, state.deepest,
        )
    )  # fmt: skip
    times = [state.times[a : a + b].tolist() for a, b in zip(state.times_at, batch, strict=True)]
    key = turns if policy == TURNS else load
    queues = [_waiting(state, station) for station in range(len(batch))]
    heap, begun = _under_way(state), int(state.counts[BEGUN])
    started: list[tuple[int, int, int]] = []
    room = len(state.log_tags) - int(state.counts[LOGGED]) - max(batch)

    def begin(station: int, now: int, taken: list[int]) -> None:
        nonlocal begun
        fill = len(taken)
        time = times[station][fill - 1]
        heapq.heappush(heap, (now + time, begun, station, fill))
        begun += 1
        idle[station] -= 1
        busy[station] += time
        batches[station] += 1
        served[station] += fill
        started.extend([(tag, now + time, station) for tag in taken])

    def free(now: int) -> bool:
        while heap and heap[0][0] <= now:
            if len(started) > room:
                return False
            end, _, station, fill = heapq.heappop(heap)
            idle[station] += 1
            load[station] -= fill
            if queue := queues[station]:
                fill = min(len(queue), batch[station])
                begin(station, end, [queue.popleft() for _ in range(fill)])
        return True

    def best(stations: Iterable[int]) -> int:
        found = -1
        for one in stations:
            if weight[one] and found >= 0:
                left, right = key[one] * weight[found], key[found] * weight[one]
                if left < right or (left == right and weight[one] > weight[found]):
                    found = one
            elif weight[one]:
                found = one
        return found

    done, given = len(at), tags.tolist() or [2 * now for now in at.tolist()]
    one_of, other_of = first.tolist(), second.tolist()
    for j, now in enumerate(at.tolist()):
        if not free(now) or len(started) > room:
            done = j
            break
        if policy == ALONE:
            station = 0
        elif policy == DRAWN:
            station = one_of[j]
        elif policy == TWO_DRAWN:
            station = best(sorted((one_of[j], other_of[j])))
        else:
            station = best(range(len(weight)))
        load[station] += 1
        turns[station] += 2
        if idle[station]:
            begin(station, now, [given[j]])
        else:
            queues[station].append(given[j])
            deepest[station] = max(deepest[station], len(queues[station]))
    else:
        free(until - 1)

    state.idle[:], state.load[:], state.counts[BEGUN] = idle, load, begun
    state.busy[:], state.batches[:], state.taken[:], state.deepest[:] = (
        busy,
        batches,
        served,
        deepest,
    )
    state.turns[:] = turns
    _put_back(state, queues, heap, started)
    return done


def _waiting(state: State, station: int) -> deque[int]:
    """Read a queue out of the pool."""
    found, place = deque[int](), int(state.head[station])
    while place >= 0:
        found.append(int(state.pool[place]))
        place = int(state.following[place])
    return found


def _under_way(state: State) -> list[tuple[int, int, int, int]]:
    """Read the heap: ends, orders, stations and fills."""
    size = int(state.counts[UNDER_WAY])
    columns = (each[:size].tolist() for each in (state.ends, state.orders, state.under_way))
    mask = 2**FILL_BITS - 1
    return [
        (end, nth, what >> FILL_BITS, what & mask) for end, nth, what in zip(*columns, strict=True)
    ]


def _put_back(
    state: State,
    queues: list[deque[int]],
    heap: list[tuple[int, int, int, int]],
    started: list[tuple[int, int, int]],
) -> None:
    """Write queues, heap and log into the arrays; the pool is filled from its beginning."""
    place = 0
    for station, queue in enumerate(queues):
        size = len(queue)
        state.pool[place : place + size] = queue
        state.following[place : place + size] = range(place + 1, place + size + 1)
        state.head[station] = place if size else -1
        state.tail[station] = place + size - 1 if size else -1
        if size:
            state.following[place + size - 1] = -1
        state.waiting[station] = size
        place += size
    state.following[place:] = range(place + 1, len(state.following) + 1)
    state.counts[FREE] = place
    for at, (end, nth, station, fill) in enumerate(heap):
        state.ends[at], state.orders[at] = end, nth
        state.under_way[at] = (station << FILL_BITS) + fill
    state.counts[UNDER_WAY] = len(heap)
    logged = int(state.counts[LOGGED])
    columns = state.log_tags, state.log_ends, state.log_stations
    for column, values in zip(columns, zip(*started, strict=True), strict=False):
        column[logged : logged + len(started)] = values
    state.counts[LOGGED] = logged + len(started)
