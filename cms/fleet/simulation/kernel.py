"""The arrays of a running service, and the loops on them, which may be compiled as they stand.

Events act on the arrays between two calls of a loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .model import Bools, Ints, Station

# A batch under way is one integer: its station, and how many requests it holds.
FILL_BITS = 20
#: Weights are integers up to this, so that a load times a weight stays below 2**62.
LARGEST_WEIGHT = 2**28


class State(NamedTuple):
    """A service's stations, batches under way and waiting requests; times in nanoseconds.

    A request is known by its *tag*: twice the time it first arrived, plus one if it was retried.
    """

    weight: Any  #: What a station counts for in routing; 0 for one that gets nothing.
    #: The largest batch, and where in `times` the times of batches of 1, 2, ... begin
    batch: Any
    times_at: Any
    times: Any
    #: Idle processes; requests waiting and under way; requests routed by turns.
    idle: Any
    load: Any
    turns: Any
    #: The queue, as places in the pool; how long it is, and was at most.
    head: Any
    tail: Any
    waiting: Any
    deepest: Any
    #: Nanoseconds of work, batches and requests begun
    busy: Any
    batches: Any
    taken: Any
    #: The heap of batches under way by their end, then by the number of their start
    ends: Any
    orders: Any
    under_way: Any
    #: Tags of waiting requests, and the place of the next in the same queue, or in the free list
    pool: Any
    following: Any
    #: The requests begun since the log was last emptied
    log_tags: Any
    log_ends: Any
    log_stations: Any
    winners: Any  #: A tournament over the stations: 1 is the root, 2 i and 2 i + 1 are below i.
    #: Batches under way, batches begun, free place in the pool, requests in the log, largest batch
    counts: Any


#: Places in ``State.counts``.
UNDER_WAY, BEGUN, FREE, LOGGED, LARGEST = 0, 1, 2, 3, 4


def new_state(stations: Sequence[Station], weights: Ints, log_size: int) -> State:
    """Make the state of a service before its first request; the log holds a batch or more."""
    k = len(stations)
    processes = np.array([each.processes for each in stations], dtype=np.int64)
    batch = np.array([len(each.fill_ns) for each in stations], dtype=np.int64)
    times = [time for each in stations for time in each.fill_ns]
    slots = int(processes.sum())

    def zeros(length: int = k) -> Ints:
        return np.zeros(length, dtype=np.int64)

    return State(
        weight=weights.astype(np.int64), batch=batch, times_at=np.cumsum(batch) - batch,
        times=np.array(times, dtype=np.int64), idle=processes, load=zeros(), turns=zeros(),
        head=zeros() - 1, tail=zeros() - 1, waiting=zeros(), deepest=zeros(), busy=zeros(),
        batches=zeros(), taken=zeros(), ends=zeros(slots), orders=zeros(slots),
        under_way=zeros(slots), pool=zeros(0), following=zeros(0),
        log_tags=zeros(log_size), log_ends=zeros(log_size),
        log_stations=np.zeros(log_size, dtype=np.int32), winners=zeros(2 << (k - 1).bit_length()),
        counts=np.array([0, 0, -1, 0, batch.max(initial=1)], dtype=np.int64),
    )  # fmt: skip


def with_room(state: State, arrivals: int) -> State:
    """Return the state with a pool in which these arrivals, too, can wait."""
    wanted = int(state.waiting.sum()) + arrivals
    size = len(state.pool)
    if wanted <= size:
        return state
    grown = max(wanted, size + size // 2)
    pool = np.zeros(grown, dtype=np.int64)
    pool[:size] = state.pool
    following = np.arange(1, grown + 1, dtype=np.int64)
    following[:size] = state.following
    following[-1] = state.counts[FREE]
    state.counts[FREE] = size
    return state._replace(pool=pool, following=following)


def finished(state: State, before: int) -> tuple[Ints, Ints]:
    """Take the tags and ends of the requests that ended before a time out of the log."""
    logged = int(state.counts[LOGGED])
    done = state.log_ends[:logged] < before
    found = state.log_tags[:logged][done], state.log_ends[:logged][done]
    _keep(state, ~done)
    return found


def lose(state: State, station: int, now: int) -> Ints:
    """Stop a station and return its requests' tags: those under way by start, then the waiting."""
    logged = int(state.counts[LOGGED])
    hit = (state.log_stations[:logged] == station) & (state.log_ends[:logged] >= now)
    lost = state.log_tags[:logged][hit].tolist()
    while (place := state.head[station]) >= 0:
        lost.append(state.pool[place])
        state.head[station] = state.following[place]
        state.following[place], state.counts[FREE] = state.counts[FREE], place
    state.tail[station], state.waiting[station], state.load[station] = -1, 0, 0
    _keep(state, ~hit)
    size = int(state.counts[UNDER_WAY])
    stays = state.under_way[:size] >> FILL_BITS != station
    state.busy[station] -= int((state.ends[:size][~stays] - now).sum())
    state.idle[station] += size - int(stays.sum())
    # a sorted array is a heap
    order = np.lexsort((state.orders[:size][stays], state.ends[:size][stays]))
    for each in (state.ends, state.orders, state.under_way):
        each[: len(order)] = each[:size][stays][order]
    state.counts[UNDER_WAY] = len(order)
    return np.array(lost, dtype=np.int64)


def _keep(state: State, stays: Bools) -> None:
    """Leave only some of the requests in the log."""
    state.counts[LOGGED] = left = int(stays.sum())
    for each in (state.log_tags, state.log_ends, state.log_stations):
        each[:left] = each[: len(stays)][stays]


#: How a request finds its station: there is one; it was drawn; the better of two that were drawn;
#: the one with the fewest requests for its weight; the one whose turn it is.
ALONE, DRAWN, TWO_DRAWN, SHORTEST, TURNS = 0, 1, 2, 3, 4
_FILL = 2**FILL_BITS - 1


def advance(
    state: State, policy: int, at: Any, tags: Any, first: Any, second: Any, until: int
) -> int:
    """Work off arrivals, then what ends before `until` (0: nothing), as far as the log has room.

    At one nanosecond completions come before arrivals, and completions in the order of the batches'
    starts. A batch's end is known at its start, so the log gets it then. Arrivals are times in
    their order, with tags where these do not follow from the times, and with the stations that were
    drawn for them. Returned is how many were taken; if it is all of them and no completion before
    `until` is left, all is done, else it is called again.
    """
    # Handing on the state, or reading an array from it, costs compiled code more than the work.
    weight, batch, times_at, times = state.weight, state.batch, state.times_at, state.times
    idle, load, turns, winners = state.idle, state.load, state.turns, state.winners
    head, tail, waiting, deepest = state.head, state.tail, state.waiting, state.deepest
    busy, batches, taken = state.busy, state.batches, state.taken
    ends, orders, under_way = state.ends, state.orders, state.under_way
    pool, following = state.pool, state.following
    log_tags, log_ends, log_stations = state.log_tags, state.log_ends, state.log_stations
    counts = state.counts
    size, begun, unused, logged = counts[UNDER_WAY], counts[BEGUN], counts[FREE], counts[LOGGED]
    key = turns if policy == TURNS else load
    if policy >= SHORTEST:
        seed(winners, weight, key)
    room = len(log_tags) - counts[LARGEST]
    n, tagged, j = len(at), len(tags) > 0, 0
    while logged <= room:
        now = at[j] if j < n else until - 1
        if size > 0 and ends[0] <= now:
            now, what = ends[0], under_way[0]
            station = what >> FILL_BITS
            size -= 1
            sink(ends, orders, under_way, size)
            idle[station] += 1
            load[station] -= what & _FILL
            fill = min(waiting[station], batch[station])
            if fill > 0:
                end = now + times[times_at[station] + fill - 1]
                place = last = head[station]
                for _ in range(fill):
                    log_tags[logged], log_ends[logged] = pool[place], end
                    log_stations[logged] = station
                    logged += 1
                    last, place = place, following[place]
                following[last], unused, head[station] = unused, head[station], place
                waiting[station] -= fill
            if policy == SHORTEST:
                replay(winners, weight, load, station)
        elif j == n:
            break
        else:
            tag = tags[j] if tagged else 2 * now
            if policy >= SHORTEST:
                station = winners[1]
            elif policy == DRAWN:
                station = first[j]
            elif policy == TWO_DRAWN:
                station, other = min(first[j], second[j]), max(first[j], second[j])
                if not beats(weight, load, station, other):
                    station = other
            else:
                station = 0
            j += 1
            load[station] += 1
            turns[station] += 2
            if policy >= SHORTEST:
                replay(winners, weight, key, station)
            fill = 0
            if idle[station] > 0:
                fill, end = 1, now + times[times_at[station]]
                log_tags[logged], log_ends[logged], log_stations[logged] = tag, end, station
                logged += 1
            else:
                place = unused
                unused = following[place]
                pool[place], following[place] = tag, -1
                if waiting[station] > 0:
                    following[tail[station]] = place
                else:
                    head[station] = place
                tail[station] = place
                waiting[station] += 1
                deepest[station] = max(deepest[station], waiting[station])
        if fill > 0:
            idle[station] -= 1
            busy[station] += end - now
            batches[station] += 1
            taken[station] += fill
            rise(ends, orders, under_way, size, end, begun, (station << FILL_BITS) + fill)
            size += 1
            begun += 1
    counts[UNDER_WAY], counts[BEGUN], counts[FREE], counts[LOGGED] = size, begun, unused, logged
    return j


def advance_lists(
    state: State, policy: int, at: Any, tags: Any, first: Any, second: Any, until: int
) -> int:
    """Do what :func:`advance` does, on lists: where compiling takes longer than the answer."""
    lists = State(*(each.tolist() for each in state))
    at, tags, first, second = (each.tolist() for each in (at, tags, first, second))
    taken = advance(lists, policy, at, tags, first, second, until)
    for array, values in zip(state, lists, strict=True):
        array[:] = values
    return taken


def rise(ends: Any, orders: Any, under_way: Any, at: int, end: int, order: int, what: int) -> None:
    """Put a batch into the heap, at its end; it is the last one begun."""
    while at > 0 and ends[(at - 1) >> 1] > end:
        above = (at - 1) >> 1
        ends[at], orders[at], under_way[at] = ends[above], orders[above], under_way[above]
        at = above
    ends[at], orders[at], under_way[at] = end, order, what


def sink(ends: Any, orders: Any, under_way: Any, size: int) -> None:
    """Take the first batch out of the heap, which then has `size` batches."""
    end, order, what = ends[size], orders[size], under_way[size]
    at = 0
    while 2 * at + 1 < size:
        below = 2 * at + 1
        if below + 1 < size and (
            ends[below + 1] < ends[below]
            or (ends[below + 1] == ends[below] and orders[below + 1] < orders[below])
        ):
            below += 1
        if end < ends[below] or (end == ends[below] and order < orders[below]):
            break
        ends[at], orders[at], under_way[at] = ends[below], orders[below], under_way[below]
        at = below
    ends[at], orders[at], under_way[at] = end, order, what


def beats(weight: Any, key: Any, one: int, other: int) -> bool:
    """Whether a station has the smaller key for its weight; ties: the larger weight, the first."""
    first, second = weight[one], weight[other]
    if second == 0 or first == 0:
        return second == 0  # type: ignore[no-any-return]
    left, right = key[one] * second, key[other] * first
    return left < right or (left == right and first >= second)  # type: ignore[no-any-return]


def seed(winners: Any, weight: Any, key: Any) -> None:
    """Play a whole tournament of stations: 1 is its root, 2 i and 2 i + 1 play for i."""
    leaves, k = len(winners) >> 1, len(weight)
    for i in range(leaves):
        winners[leaves + i] = min(i, k - 1)
    for i in range(leaves - 1, 0, -1):
        one, other = winners[2 * i], winners[2 * i + 1]
        winners[i] = one if beats(weight, key, one, other) else other


def replay(winners: Any, weight: Any, key: Any, station: int) -> None:
    """Play again what a station takes part in, after its key has changed."""
    at = ((len(winners) >> 1) + station) >> 1
    while at > 0:
        one, other = winners[2 * at], winners[2 * at + 1]
        winner = one if beats(weight, key, one, other) else other
        if winner != station and winners[at] != station:
            return  # above here it does not play, and did not
        winners[at] = winner
        at >>= 1


def alone(times: Any, ends: Any, arrivals: Any, gap: float, found: Any) -> None:
    """Write the latency of each request at one station into `found`, in nanoseconds.

    It is what :func:`advance` gives, ten times as fast or more: requests are taken in the order
    they came, so no queue is needed. Load curves and the table of loads take some 10^10 requests.
    Times are of a batch of 1, 2, ... requests; `ends`, all 0, is written over: when each process is
    idle again. Arrivals are floats that ascend; times the gap, rounded down, they are nanoseconds.
    """
    n, b, c = len(arrivals), len(times), len(ends)
    j = 0
    while j < n:
        now, fill = int(arrivals[j] * gap), 1
        start = ends[0]
        if start <= now:
            start = now  # it is idle, and takes the request
        else:
            while fill < b and j + fill < n and int(arrivals[j + fill] * gap) < start:
                fill += 1
        end = start + times[fill - 1]
        for i in range(j, j + fill):
            found[i] = end - int(arrivals[i] * gap)
        j += fill
        at = 0  # the ends stay in order
        while at + 1 < c and ends[at + 1] < end:
            ends[at] = ends[at + 1]
            at += 1
        ends[at] = end
