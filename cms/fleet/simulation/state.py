"""The arrays of a running service, which the loops work on and events act on between two calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .model import Station

if TYPE_CHECKING:
    from numpy.typing import NDArray

# A batch under way is one integer: its station, and how many requests it holds.
FILL_BITS = 20
#: Weights are integers of at most so much, so that a load times a weight stays below 2**62.
LARGEST_WEIGHT = 2**28


class State(NamedTuple):
    """A service's stations, batches under way and waiting requests; times in nanoseconds.

    A request is known by its *tag*: twice the time it first arrived, plus one if it was retried.
    """

    weight: Any  #: What a station counts for in routing; 0 for one that gets nothing.
    #: The largest batch, and where in `times` the times of batches of 1 to so many begin
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
    counts: Any  #: Batches under way, batches begun, free place in the pool, requests in the log


#: Places in ``State.counts``.
UNDER_WAY, BEGUN, FREE, LOGGED = 0, 1, 2, 3


def new_state(stations: Sequence[Station], weights: NDArray[np.int64], log_size: int) -> State:
    """Make the state of a service that nobody has asked for anything yet.

    The log takes so many requests, at least the largest batch.
    """
    k = len(stations)
    processes = np.array([each.processes for each in stations], dtype=np.int64)
    batch = np.array([len(each.fill_ns) for each in stations], dtype=np.int64)
    times = [time for each in stations for time in each.fill_ns]
    slots = int(processes.sum())
    leaves = 1
    while leaves < k:
        leaves *= 2

    def zeros(length: int = k) -> NDArray[np.int64]:
        return np.zeros(length, dtype=np.int64)

    return State(
        weight=weights.astype(np.int64), batch=batch, times_at=np.cumsum(batch) - batch,
        times=np.array(times, dtype=np.int64), idle=processes, load=zeros(), turns=zeros(),
        head=zeros() - 1, tail=zeros() - 1, waiting=zeros(), deepest=zeros(), busy=zeros(),
        batches=zeros(), taken=zeros(), ends=zeros(slots), orders=zeros(slots),
        under_way=zeros(slots), pool=zeros(0), following=zeros(0),
        log_tags=zeros(log_size), log_ends=zeros(log_size),
        log_stations=np.zeros(log_size, dtype=np.int32), winners=zeros(2 * leaves),
        counts=np.array([0, 0, -1, 0], dtype=np.int64),
    )  # fmt: skip


def with_room(state: State, arrivals: int) -> State:
    """Return the state with a pool in which so many more requests can wait."""
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


def finished(state: State, before: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Take the tags and ends of the requests that ended before a time out of the log."""
    logged = int(state.counts[LOGGED])
    tags, ends = state.log_tags[:logged], state.log_ends[:logged]
    done = ends < before
    if done.all():
        state.counts[LOGGED] = 0
        return tags.copy(), ends.copy()
    found = tags[done], ends[done]
    _keep(state, ~done)
    return found


def lose(state: State, station: int, now: int) -> NDArray[np.int64]:
    """Stop a station: its batches under way are lost and its queue is emptied.

    Returned are the tags of all these requests: those under way in the order of their start, then
    those that waited.
    """
    logged = int(state.counts[LOGGED])
    ours = (state.log_stations[:logged] == station) & (state.log_ends[:logged] >= now)
    started = state.log_tags[:logged][ours]
    waited = []
    while state.head[station] >= 0:
        place = state.head[station]
        waited.append(state.pool[place])
        state.head[station] = state.following[place]
        state.following[place] = state.counts[FREE]
        state.counts[FREE] = place
    state.tail[station], state.waiting[station], state.load[station] = -1, 0, 0
    _keep(state, ~ours)
    size = int(state.counts[UNDER_WAY])
    stays = state.under_way[:size] >> FILL_BITS != station
    state.busy[station] -= int((state.ends[:size][~stays] - now).sum())
    state.idle[station] += size - int(stays.sum())
    # what is sorted is a heap
    order = np.lexsort((state.orders[:size][stays], state.ends[:size][stays]))
    for each in (state.ends, state.orders, state.under_way):
        each[: len(order)] = each[:size][stays][order]
    state.counts[UNDER_WAY] = len(order)
    return np.concatenate([started, np.array(waited, dtype=np.int64)])


def _keep(state: State, stays: NDArray[np.bool_]) -> None:
    """Leave only some of the requests in the log."""
    logged = len(stays)
    left = int(stays.sum())
    for each in (state.log_tags, state.log_ends, state.log_stations):
        each[:left] = each[:logged][stays]
    state.counts[LOGGED] = left
