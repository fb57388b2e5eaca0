"""An API server on 127.0.0.1, threaded, over a world whose clock is stepped by its clients.

Every request lets `pace` ticks pass: nobody waits for a clock but kubectl itself. With `pace = 0`
time stands until a test steps.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.fleet.stand_ins.kubernetes import mig_manager, scheduler, workloads
from tests.fleet.stand_ins.kubernetes.kinds import Json, discovery
from tests.fleet.stand_ins.kubernetes.store import Refused, World
from tests.fleet.stand_ins.kubernetes.verbs import Request, answer, target


class ApiServer:
    """Serves a world until it is closed."""

    def __init__(self, world: World, pace: int = 1) -> None:
        self.world = world
        self.pace = pace
        self.closing = False
        self.watch: Callable[[], object] = lambda: None  # called after every request
        self.log: list[tuple[str, str]] = []  # every request: method and path with query
        self._at_rest: tuple[int, str, str] | None = None
        self._http = _Threads(("127.0.0.1", 0), _Handler)
        self._http.api = self
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> ApiServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing = True
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def step(self, ticks: int = 1) -> bool:
        """Let time pass: every controller looks once a tick. Whether anything happened."""
        store = self.world.store
        with store.lock:
            before = store.revision
            for _ in range(ticks):
                self._tick()
            return store.revision != before

    def _tick(self) -> None:
        """Controllers that found nothing to do look again when something has changed."""
        store = self.world.store
        store.now += 1
        seen = (store.revision, repr(self.world.mig_fails), self.world.mig_config_map)
        if seen == self._at_rest:
            return
        workloads.tick(self.world)
        mig_manager.tick(self.world)
        scheduler.tick(self.world)
        rests = store.revision == seen[0] and not self.under_way()
        self._at_rest = seen if rests else None

    def settle(self, most: int = 200) -> int:
        """Step until nothing happens and nothing is on its way; how many ticks that took."""
        for ticks in range(most):
            if not self.step() and not self.under_way():
                return ticks
        raise AssertionError(f"the cluster is not at rest after {most} ticks")

    def under_way(self) -> bool:
        """Whether something will happen by itself: a change of MIG, a pod that starts or stops."""
        pods = self.world.store.peek("Pod")
        return mig_manager.busy(self.world) or any(
            "deletionTimestamp" in pod["metadata"]
            or ("startTime" in pod["status"] and pod["status"]["phase"] == "Pending")
            for pod in pods
        )


class _Threads(ThreadingHTTPServer):
    daemon_threads = False
    block_on_close = True
    api: ApiServer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 5  # of an idle connection
    server: _Threads

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: `ApiServer.log` has it."""

    def handle(self) -> None:
        with suppress(ConnectionError):  # the client may go when it likes
            super().handle()

    def do_GET(self) -> None:
        self._serve()

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815

    def _serve(self) -> None:
        api = self.server.api
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        where = urlsplit(self.path)
        query = dict(parse_qsl(where.query, keep_blank_values=True))
        kind = (self.headers.get("Content-Type") or "").partition(";")[0]
        request = Request(self.command or "", unquote(where.path), query, kind, body)
        if api.closing:
            self.close_connection = True
        try:
            found = discovery(request.path, api.world.store.version)
            if found is not None:
                return self._send(200, found)
            with api.world.store.lock:
                api.log.append((request.method, self.path))
                at = target(request.path)
                if at is None:
                    raise Refused(404, f"the server could not find {request.path}")
                code, said = answer(api.world, request, at)
                api.step(api.pace)
                api.watch()
            self._send(code, said)
        except Refused as error:
            self._send(error.code, error.status)

    def _send(self, code: int, body: Json) -> None:
        text = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
