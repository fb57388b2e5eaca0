"""A real browser, headless, spoken to through chromedriver in the words of W3C WebDriver."""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

MISSING = (
    ""
    if shutil.which("chromedriver") and (shutil.which("chromium") or shutil.which("google-chrome"))
    else "no chromium with its chromedriver is on the path (Debian: chromium-driver)"
)
"""Why no browser can be started; empty if one can."""
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
    "--disable-dev-shm-usage", "--hide-scrollbars",
)  # fmt: skip
_SECONDS = 120  # only a hang takes so long
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # the driver is here


class Browser:
    """A window of the browser."""

    def __init__(self, at: str, session: str) -> None:
        self._at = f"{at}/session/{session}"

    def open(self, page: Path) -> None:
        """Show a file."""
        self.visit(page.resolve().as_uri())

    def visit(self, address: str) -> None:
        """Show what is at an address."""
        _ask(f"{self._at}/url", {"url": address})

    def run(self, script: str) -> Any:
        """Run a script in the page and return what it returns."""
        return _ask(f"{self._at}/execute/sync", {"script": script, "args": []})

    def tell(self, command: str, **values: Any) -> Any:
        """Give a command of the browser's own protocol (DevTools)."""
        return _ask(f"{self._at}/goog/cdp/execute", {"cmd": command, "params": values})

    def look(self, *, dark: bool = False, paper: bool = False, wide: int = 1200) -> None:
        """Choose what the page is shown on."""
        self.tell(
            "Emulation.setEmulatedMedia",
            media="print" if paper else "",
            features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}],
        )
        self.tell(
            "Emulation.setDeviceMetricsOverride",
            width=wide, height=900, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip

    def press(self, key: str) -> None:
        """Press a key, as a person does."""
        keys = [{"type": kind, "value": key} for kind in ("keyDown", "keyUp")]
        _ask(f"{self._at}/actions", {"actions": [{"type": "key", "id": "keys", "actions": keys}]})

    def logged(self, kind: str) -> list[Any]:
        """Return what a log holds since it was last asked for: ``browser``, ``performance``."""
        found: list[Any] = _ask(f"{self._at}/se/log", {"type": kind})
        return found

    def requested(self) -> list[str]:
        """Return the addresses that pages of ours asked for since this was last asked.

        The tab that a browser begins with goes on loading its own for a while.
        """
        messages = [json.loads(each["message"])["message"] for each in self.logged("performance")]
        return [
            each["params"]["request"]["url"]
            for each in messages
            if each["method"] == "Network.requestWillBeSent"
            if not each["params"]["documentURL"].startswith(("chrome:", "chrome-untrusted:"))
        ]


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """Start a browser with a new profile in this folder; it ends with the block."""
    # of the ports the system takes whichever is free, and the driver says which
    driver = subprocess.Popen(
        ["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert driver.stdout is not None
        port = next(
            line.rpartition(" ")[2].strip(" .\n")
            for line in driver.stdout
            if "successfully on port" in line
        )
        at = f"http://127.0.0.1:{port}"
        wishes = {
            "goog:chromeOptions": {"args": [*_FLAGS, f"--user-data-dir={profile}"]},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        started = _ask(f"{at}/session", {"capabilities": {"alwaysMatch": wishes}})
        window = Browser(at, started["sessionId"])
        try:
            yield window
        finally:
            _ask(f"{at}/session/{started['sessionId']}", None, method="DELETE")
    finally:
        driver.terminate()
        driver.communicate(timeout=_SECONDS)


def _ask(address: str, said: dict[str, Any] | None, method: str = "POST") -> Any:
    body = None if said is None else json.dumps(said).encode()
    head = {"Content-Type": "application/json"}
    request = urllib.request.Request(address, body, head, method=method)
    with _OPENER.open(request, timeout=_SECONDS) as answer:
        return json.loads(answer.read())["value"]
