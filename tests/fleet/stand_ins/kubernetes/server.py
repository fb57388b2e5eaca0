"""An API server on 127.0.0.1, threaded, over a world whose clock is stepped by its clients.

Every request lets `pace` ticks pass: nobody waits for a clock but kubectl itself. With `pace = 0`
time stands until a test steps. It has the verbs that kubectl needs to label, to cordon, to drain,
to apply from the client's side, and to read. Whatever else is asked for is refused.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.fleet.stand_ins.kubernetes import controllers, mig_manager
from tests.fleet.stand_ins.kubernetes.kinds import KINDS, Json, Kind, discovery
from tests.fleet.stand_ins.kubernetes.store import Refused, World
from tests.fleet.stand_ins.kubernetes.validators import schema_faults

_PATCHES = ("application/merge-patch+json", "application/strategic-merge-patch+json")


class Request(NamedTuple):
    """One request, taken apart: a kind, perhaps a namespace, an object, a part of it."""

    method: str
    kind: Kind
    namespace: str | None
    name: str | None
    part: str | None
    query: dict[str, str]
    content_type: str
    body: bytes

    @classmethod
    def read(cls, method: str, path: str, query: dict[str, str], *body: Any) -> Request:
        """Take apart /api/v1/namespaces/a/pods/b/eviction and its like."""
        parts = path.strip("/").split("/")
        ahead = 2 if parts[0] == "api" else 3
        root, rest = "/" + "/".join(parts[:ahead]), parts[ahead:]
        namespace = None
        if len(rest) >= 3 and rest[0] == "namespaces":
            namespace, rest = rest[1], rest[2:]
        plural, name, part = [*rest, None, None, None][:3]
        kind = next((kind for kind in KINDS if (kind.root, kind.plural) == (root, plural)), None)
        if kind is None or len(rest) > 3 or part not in (None, *kind.subresources):
            raise Refused(404, f"the server could not find {path}")
        return cls(method, kind, namespace, name, part, query, *body)

    def json(self) -> Json:
        read = json.loads(self.body or b"{}")
        if not isinstance(read, dict):
            raise Refused(400, "not a JSON object")
        return read

    def selects(self, item: Json) -> bool:
        """Whether a list takes an object: by selectors of equalities, or that a label is there."""
        where = {"labelSelector": "metadata.labels.", "fieldSelector": ""}
        return self.namespace in (None, item["metadata"].get("namespace")) and all(
            _meets(item, part, prefix)
            for name, prefix in where.items()
            for part in filter(None, self.query.get(name, "").split(","))
        )


def _meets(item: Json, part: str, prefix: str) -> bool:
    if prefix and re.fullmatch(r"[a-z./-]+", part):
        return part in (item["metadata"].get("labels") or {})
    found = re.fullmatch(r"([^!=]+)(!=|==?)(.*)", part)
    if found is None:
        raise Refused(400, f"not a selector that is served: {part!r}")
    value: Any = item
    for key in [*prefix.split(".")[:-1], *([found[1]] if prefix else found[1].split("."))]:
        value = value.get(key, "") if isinstance(value, dict) else ""
    return (str(value) == found[3]) is (found[2] != "!=")


def answer(world: World, request: Request) -> tuple[int, Json]:
    """The status and the body; errors are raised. The caller holds the store's lock."""
    store, kind, name, space = world.store, request.kind, request.name, request.namespace or ""
    is_served = "dryRun" not in request.query and "watch" not in request.query
    match request.method if is_served else "", name, request.part:
        case "GET", None, None:
            items = [item for item in store.list(kind.name) if request.selects(item)]
            return 200, {
                "kind": f"{kind.name}List", "apiVersion": kind.api_version,
                "metadata": {"resourceVersion": str(store.revision)}, "items": items,
            }  # fmt: skip
        case "GET", str(), None:
            return 200, store.get(kind.name, name or "", space)
        case "POST", str(), "eviction":
            if faults := schema_faults(request.json(), store.version):
                raise Refused(400, "; ".join(faults))
            controllers.stop(world, store.get("Pod", name or "", space))
            return 201, {"kind": "Status", "apiVersion": "v1", "status": "Success"}
        case "POST", None, None:
            item = request.json()
            _refuse_unknown(world, item, kind)
            if kind.namespaced:
                item["metadata"].setdefault("namespace", space)
            return 201, store.create(item)
        case "PATCH", str(), None:
            if request.content_type not in _PATCHES:
                raise Refused(415, f"the body's type {request.content_type!r} is not served")
            before = store.get(kind.name, name or "", space)
            after = merged(before, request.json())
            if "status" in kind.subresources and "status" in before:
                after["status"] = before["status"]
            _refuse_unknown(world, after, kind)
            return 200, store.update(after)
        case "DELETE", str(), None:
            item = store.get(kind.name, name or "", space)
            details = {"name": name, "kind": kind.plural, "uid": item["metadata"]["uid"]}
            if kind.name != "Pod":
                store.delete(item)
            elif "deletionTimestamp" in (item := controllers.stop(world, item))["metadata"]:
                return 200, item
            return 200, {
                "kind": "Status", "apiVersion": "v1", "status": "Success", "details": details,
            }  # fmt: skip
    raise Refused(405, f"{request.method} {kind.plural}/{name}/{request.part} is not served")


def merged(target: Any, patch: Any) -> Any:
    """RFC 7386: null removes, objects merge, everything else replaces."""
    if not isinstance(patch, dict):
        return deepcopy(patch)
    found = deepcopy(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = merged(found.get(key), value)
    return found


def _refuse_unknown(world: World, item: Json, kind: Kind) -> None:
    """Refuse what the schema does not know, whatever validation the client asked for."""
    said = item.get("kind"), item.get("apiVersion")
    if said != (kind.name, kind.api_version) or not isinstance(item.get("metadata"), dict):
        raise Refused(400, f"{said} was sent to {kind.plural}")
    if faults := schema_faults(item, world.store.version):
        raise Refused(400, f"strict decoding error: {'; '.join(faults)}")


class ApiServer:
    """Serves a world until it is closed."""

    def __init__(self, world: World, pace: int = 1) -> None:
        self.world = world
        self.pace = pace
        self.closing = False
        # called with its method before and after every request
        self.watch: Callable[[str, str], None] = lambda method, when: None
        self.log: list[tuple[str, str]] = []  # every request: method and path with query
        self._at_rest: tuple[int, str, str] | None = None
        self._http = _Threads(("127.0.0.1", 0), _Handler)
        self._http.api = self
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,))
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"

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
        controllers.tick(self.world)
        mig_manager.tick(self.world)
        controllers.schedule(self.world)
        rests = store.revision == seen[0] and not self.under_way()
        self._at_rest = seen if rests else None

    def settle(self, most: int = 200) -> None:
        """Step until nothing happens and nothing is on its way."""
        for _ in range(most):
            if not self.step() and not self.under_way():
                return
        raise AssertionError(f"the cluster is not at rest after {most} ticks")

    def under_way(self) -> bool:
        """Whether something will happen by itself: a change of MIG, a pod that starts or stops."""
        return mig_manager.busy(self.world) or any(
            "deletionTimestamp" in pod["metadata"]
            or ("startTime" in pod["status"] and pod["status"]["phase"] == "Pending")
            for pod in self.world.store.peek("Pod")
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
        api, store = self.server.api, self.server.api.world.store
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        where = urlsplit(self.path)
        query = dict(parse_qsl(where.query, keep_blank_values=True))
        content = (self.headers.get("Content-Type") or "").partition(";")[0]
        path = unquote(where.path)
        if api.closing:
            self.close_connection = True
        try:
            code, said = 200, discovery(path, store.version)
            if said is None:
                with store.lock:
                    api.log.append((self.command or "", self.path))
                    request = Request.read(self.command or "", path, query, content, body)
                    api.watch(request.method, "before")
                    code, said = answer(api.world, request)
                    api.step(api.pace)
                    api.watch(request.method, "after")
        except Refused as error:
            code, said = error.code, error.status
        text = json.dumps(said).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815
