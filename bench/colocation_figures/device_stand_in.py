"""A stand-in for a GPU that processes share: kernels over a Unix socket, one at a time.

All clients share one context. One that vanishes with a kernel in flight, or without having released
the context, is a fault for all: every launch fails until the context is reset.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import time
from collections import deque
from dataclasses import dataclass


class DeviceLost(ConnectionError):
    """The device is gone."""


class Client:
    """A process's connection to the device."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(path)

    def launch(self, microseconds: int) -> bool:
        """Run a kernel and wait for it; False if the context has a fault."""
        return self._ask(f"launch {microseconds}") == "done"

    def release(self) -> None:
        """Release the context: from now on this process may go."""
        self._ask("release")
        self._socket.close()

    def reset(self) -> None:
        """Reset the context, for everybody."""
        self._ask("reset")

    def faults(self) -> int:
        """Return how many faults the context has had."""
        return int(self._ask("faults"))

    def _ask(self, words: str) -> str:
        self._socket.sendall(f"{words}\n".encode())
        answer = b""
        while not answer.endswith(b"\n"):
            part = self._socket.recv(64)
            if not part:
                raise DeviceLost("the device closed the connection")
            answer += part
        return answer.decode().strip()


@dataclass
class _Connection:
    """What the device knows of a client."""

    socket: socket.socket
    received: bytes = b""
    released: bool = False
    gone: bool = False


class Device:
    """The device's side; :meth:`serve` returns when the first client has gone."""

    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        listening.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(listening, selectors.EVENT_READ)
        self._clients: list[_Connection] = []
        self._first: _Connection | None = None
        self._queue: deque[tuple[_Connection, float]] = deque()  # seconds of kernels
        self._end: float | None = None  # of the first of them
        self._faulty, self._faults = False, 0

    def serve(self) -> None:
        """Serve until the first client goes."""
        while self._first is None or not self._first.gone:
            wait = None if self._end is None else max(0.0, self._end - time.monotonic())
            ready = {key.fileobj for key, _ in self._selector.select(wait)}
            if self._listening in ready:
                self._accept()
            talking = [one for one in self._clients if one.socket in ready]
            for one in talking:
                self._read(one)
            # Who has gone comes first: it went before anybody asked for a reset because of it.
            for one in sorted(talking, key=lambda each: not each.gone):
                self._hear(one)
            self._run()

    def _accept(self) -> None:
        connected, _ = self._listening.accept()
        connected.setblocking(False)
        self._selector.register(connected, selectors.EVENT_READ)
        self._clients.append(_Connection(connected))
        self._first = self._first or self._clients[0]

    def _read(self, one: _Connection) -> None:
        try:
            while part := one.socket.recv(4096):
                one.received += part
            one.gone = True
        except BlockingIOError:
            pass
        except ConnectionError:
            one.gone = True

    def _hear(self, one: _Connection) -> None:
        while b"\n" in one.received:
            line, _, one.received = one.received.partition(b"\n")
            self._obey(one, *line.decode().split())
        if one.gone:
            self._selector.unregister(one.socket)
            one.socket.close()
            self._clients.remove(one)
            if not one.released and one is not self._first:
                self._fault()

    def _obey(self, one: _Connection, word: str, value: str = "") -> None:
        if word == "launch":
            if self._faulty:
                self._tell(one, "fault")
            else:
                self._queue.append((one, int(value) / 10**6))
        elif word == "release":
            one.released = True
            self._tell(one, "ok")
        elif word == "reset":
            self._faulty = False
            self._tell(one, "ok")
        elif word == "faults":
            self._tell(one, str(self._faults))

    def _fault(self) -> None:
        self._faulty = True
        self._faults += 1
        for one, _ in self._queue:
            self._tell(one, "fault")
        self._queue.clear()
        self._end = None

    def _run(self) -> None:
        """End the kernel that is due, and start the next."""
        if self._end is not None and time.monotonic() >= self._end:
            self._tell(self._queue.popleft()[0], "done")
            self._end = None
        if self._queue and self._end is None:
            self._end = time.monotonic() + self._queue[0][1]

    def _tell(self, one: _Connection, words: str) -> None:
        with contextlib.suppress(OSError):  # it may have gone meanwhile
            one.socket.sendall(f"{words}\n".encode())
