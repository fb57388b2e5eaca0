"""A stand-in for a GPU that processes share: kernels over a Unix socket, one at a time.

All clients share one context. One that vanishes with a kernel in flight, or without having released
the context, is a fault for all: every launch fails until the context is reset.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections import deque
from multiprocessing.connection import Connection, wait


class Client:
    """A process's connection to the device."""

    def __init__(self, path: str) -> None:
        with socket.socket(socket.AF_UNIX) as connected:
            connected.connect(path)
            self._device = Connection(connected.detach())

    def launch(self, microseconds: int) -> bool:
        """Run a kernel and wait for it; False if the context has a fault."""
        return bool(self._ask("launch", microseconds))

    def release(self) -> None:
        """Release the context: from now on this process may go."""
        self._ask("release")
        self._device.close()

    def reset(self) -> None:
        """Reset the context, for everybody."""
        self._ask("reset")

    def faults(self) -> int:
        """Return how many faults the context has had."""
        return self._ask("faults")

    def _ask(self, word: str, value: int = 0) -> int:
        self._device.send((word, value))
        return int(self._device.recv())


class Device:
    """The device's side; :meth:`serve` returns when the first client has gone."""

    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self._clients: list[Connection] = []
        self._released: set[Connection] = set()
        self._queue: deque[tuple[Connection, float]] = deque()  # seconds of kernels
        self._end: float | None = None  # of the first of them
        self._faulty, self._faults = False, 0

    def serve(self) -> None:
        """Serve until the first client goes."""
        first: Connection | None = None
        while first is None or first in self._clients:
            left = None if self._end is None else max(0.0, self._end - time.monotonic())
            ready = wait([self._listening, *self._clients], left)
            if self._listening in ready:
                self._clients.append(Connection(self._listening.accept()[0].detach()))
                first = first or self._clients[0]
            talking = [(one, *_heard(one)) for one in self._clients if one in ready]
            # Who has gone comes first: it went before anybody asked for a reset because of it.
            for one, orders, gone in sorted(talking, key=lambda each: not each[2]):
                for word, value in orders:
                    self._obey(one, word, value)
                if gone:
                    one.close()
                    self._clients.remove(one)
                    if one not in self._released and one is not first:
                        self._fault()
            self._run()

    def _obey(self, one: Connection, word: str, value: int) -> None:
        if word == "launch" and not self._faulty:
            self._queue.append((one, value / 10**6))
            return
        if word == "release":
            self._released.add(one)
        elif word == "reset":
            self._faulty = False
        _tell(one, self._faults if word == "faults" else 0)

    def _fault(self) -> None:
        self._faulty = True
        self._faults += 1
        for one, _ in self._queue:
            _tell(one, 0)
        self._queue.clear()
        self._end = None

    def _run(self) -> None:
        """End the kernel that is due, and start the next."""
        if self._end is not None and time.monotonic() >= self._end:
            _tell(self._queue.popleft()[0], 1)
            self._end = None
        if self._queue and self._end is None:
            self._end = time.monotonic() + self._queue[0][1]


def _heard(one: Connection) -> tuple[list[tuple[str, int]], bool]:
    """Return what a client has asked meanwhile, and whether it has gone."""
    orders = []
    with contextlib.suppress(EOFError, OSError):
        while one.poll():
            orders.append(one.recv())
        return orders, False
    return orders, True


def _tell(one: Connection, value: int) -> None:
    with contextlib.suppress(OSError):  # it may have gone meanwhile
        one.send(value)
