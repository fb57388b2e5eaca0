"""The app's server: marimo's, which answers only the pages that it has served itself.

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

#: Through a tunnel the port is another one; a name that is none of these was pointed here by
#: another page.
_NAMES = ("localhost", "127.0.0.1", "[::1]")


def _is_own_page(headers: list[tuple[bytes, bytes]]) -> bool:
    """Whether a request names this machine, and no other page asks."""
    hosts = [value.decode("latin-1").lower() for name, value in headers if name == b"host"]
    origins = [value.decode("latin-1").lower() for name, value in headers if name == b"origin"]
    if len(hosts) != 1 or hosts[0].rsplit(":", 1)[0] not in _NAMES:
        return False
    return all(each in (f"http://{hosts[0]}", f"https://{hosts[0]}") for each in origins)


@asynccontextmanager
async def _guarded(app: Any) -> AsyncIterator[None]:
    """Stand before all else that the server is made of."""
    whole = app.middleware_stack

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan" or _is_own_page(scope["headers"]):
            await whole(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": "another page's"})
        else:
            await send({"type": "http.response.start", "status": 403, "headers": []})
            await send({"type": "http.response.body", "body": b"not for another page\n"})

    app.middleware_stack = answer
    yield


def main() -> None:
    """Run marimo's command line with it."""
    from marimo._cli.cli import main as marimo
    from marimo._server.registry import LIFESPAN_REGISTRY

    LIFESPAN_REGISTRY.register("cms", _guarded)
    given = sys.argv[1:]
    how, app = given[1:3]
    if how == "run":  # what marimo should do here is not for a file in any folder to say
        os.chdir(Path(__file__).parent)
    # marimo puts a notebook's folder first; what is there already stays where it is. Last, a
    # "numpy.py" that lies beside the notebook takes no module's place.
    sys.path.append(str(Path(app).parent))
    # Not on the command line, which other users of the machine can read.
    token = ["--token-password", secrets.token_urlsafe(16)]
    marimo(args=[*given[:3], *token, *given[3:]], prog_name="marimo")


if __name__ == "__main__":
    main()
