"""The app's server: marimo's, which answers nobody but the pages that it has served itself.

A token alone does not do: a browser sends its cookie along with what another page of this machine
asks for, and marimo looks at no Origin where a WebSocket is opened.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

_NAMES = ("localhost", "127.0.0.1", "::1")


def is_asked_by_own_page(headers: list[tuple[bytes, bytes]]) -> bool:
    """Whether a request names this machine, and is no other page's.

    The port is free: through a tunnel it is another one. A name that is not this machine's is one
    that another page has had pointed here.

    Examples
    --------
    >>> own = (b"host", b"localhost:2718")
    >>> is_asked_by_own_page([own]), is_asked_by_own_page([own, (b"origin", b"http://a.example")])
    (True, False)
    >>> is_asked_by_own_page([own, (b"origin", b"http://localhost:3000")])
    False
    >>> is_asked_by_own_page([(b"host", b"a.example:2718")])
    False
    """
    hosts = [value.decode("latin-1").lower() for name, value in headers if name == b"host"]
    origins = [value.decode("latin-1").lower() for name, value in headers if name == b"origin"]
    try:
        named = [urlsplit(f"//{host}").hostname for host in hosts]
        asking = [urlsplit(origin).netloc for origin in origins]
    except ValueError:  # half of a bracket
        return False
    return len(hosts) == 1 and named[0] in _NAMES and all(each == hosts[0] for each in asking)


class OwnPagesAlone:
    """Refuse whatever another page, or another name of this machine, asks for.

    Parameters
    ----------
    app : ASGI application
    """

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request, as ASGI has it."""
        if scope["type"] == "lifespan" or is_asked_by_own_page(scope["headers"]):
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": "another page's"})
        else:
            kind = [(b"content-type", b"text/plain")]
            await send({"type": "http.response.start", "status": 403, "headers": kind})
            await send({"type": "http.response.body", "body": b"not for another page\n"})


@asynccontextmanager
async def _guarded(app: Any) -> AsyncIterator[None]:
    """Stand before all else that the server is made of."""
    app.middleware_stack = OwnPagesAlone(app.middleware_stack)
    yield


def main() -> None:
    """Run marimo's command line with it."""
    from marimo._cli.cli import main as marimo
    from marimo._server.registry import LIFESPAN_REGISTRY

    LIFESPAN_REGISTRY.register("cms", _guarded)
    if "run" in sys.argv:  # what marimo should do here is not for a file in any folder to say
        os.chdir(Path(__file__).parent)
    # marimo puts a notebook's folder first; what is there already stays where it is. Last, a
    # "numpy.py" that lies beside the notebook takes nobody's place.
    sys.path += [str(Path(word).parent.absolute()) for word in sys.argv if word.endswith(".py")]
    given, end = sys.argv[1:], sys.argv.index("--") - 1
    # Not on the command line, which other users of the machine can read.
    token = ["--token-password", secrets.token_urlsafe(16)]
    marimo(args=[*given[:end], *token, *given[end:]], prog_name="marimo")


if __name__ == "__main__":
    main()
