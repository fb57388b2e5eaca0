"""``cms show --live``: marimo takes over, for whoever has its token, and sliders plan anew."""

from __future__ import annotations

import http.client
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from cms.cli.app import run
from cms.fleet.explore import plan_scenario, read_scenario, turn
from tests.browser import MISSING, Browser, browser
from tests.cli.shared import COMMAND, Cms

_WORDS = """
const words = (node) => {
  if (node.nodeType === Node.TEXT_NODE) return node.data + " ";
  if (["STYLE", "SCRIPT", "TITLE"].includes(node.tagName)) return "";
  const inner = [...(node.shadowRoot ? [node.shadowRoot] : []), ...node.childNodes];
  return inner.map(words).join("");
};
return words(document.body).replace(/\\\\s+/g, " ");
"""
_SLIDER = """
const slider = document.querySelector("marimo-slider");
(slider.shadowRoot || slider).querySelector("[role=slider]").focus();
"""
_RIGHT = "\ue014"


class Replaced(BaseException):
    """Raised where another process would take the place of this one."""


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    pytest.importorskip("marimo")
    calls: list[list[str]] = []

    def execv(program: str, words: list[str]) -> None:
        calls.append(words)
        raise Replaced

    monkeypatch.setattr("os.execv", execv)
    return calls


def typed(started: list[list[str]], words: str) -> list[str]:
    with pytest.raises(Replaced):
        run(["show", "--live", *words.split()])
    return started[-1]


def test_it_hands_over_to_marimo(started: list[list[str]]) -> None:
    words = typed(started, "--published S1 --no-browser --port 2999 -g a100-80gb")
    assert words[:5] == [sys.executable, "-P", "-m", "cms.fleet.explore.server", "--yes"]
    assert words[5] == "run"
    assert Path(words[6]).name == "app.py"
    assert words[7:] == [
        "--host", "127.0.0.1", "--port", "2999", "--headless", "--",
        "--published", "S1", "--gpu", "a100-80gb",
    ]  # fmt: skip


def test_notebook_is_a_copy_that_is_kept(started: list[list[str]], tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    assert typed(started, "--notebook mine.py")[5:7] == ["edit", str(mine)]
    assert "marimo.App" in mine.read_text()
    mine.write_text("import marimo\napp = marimo.App()\n")
    typed(started, "--notebook mine.py")
    assert mine.read_text() == "import marimo\napp = marimo.App()\n"


def test_tables_are_named_by_their_whole_path(started: list[list[str]], tmp_path: Path) -> None:
    assert run(["init", "--quiet"]) == 0
    tables = [str(tmp_path / name) for name in ("services.csv", "operating_points.csv")]
    for given in ("-s services.csv -p operating_points.csv", ""):  # or by fleet.toml
        words = typed(started, given)
        assert words[-4:] == ["--services", tables[0], "--operating-points", tables[1]]


def test_without_marimo_the_extra_is_named(cms: Cms, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert ".[explore]" in cms("show --live", code=2).error


#: Modules that Python, marimo or the plan would import, if the current folder came first.
_SHADOWS = ("cms", "json", "marimo", "multiprocessing", "numpy", "question", "uvicorn")
_UPGRADE = {
    "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}  # fmt: skip


def test_nothing_in_the_folder_is_run_and_no_other_page_is_answered(tmp_path: Path) -> None:
    pytest.importorskip("marimo")
    for name in _SHADOWS:
        (tmp_path / f"{name}.py").write_text("open('ran', 'a')\nraise SystemExit(9)\n")
    (tmp_path / ".marimo.toml").write_text('[runtime]\npythonpath = ["."]\n')
    command = [str(Path(sys.executable).with_name("cms")), "show", "--live", "--published", "S1"]
    app = subprocess.Popen(
        [*command, "--no-browser"], cwd=tmp_path, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        assert app.stdout is not None
        address = urlsplit(next(line.split()[-1] for line in app.stdout if "URL:" in line))
        assert address.port is not None
        own = f"localhost:{address.port}"

        def status(path: str, host: str = own, **headers: str) -> int:
            asking = http.client.HTTPConnection("127.0.0.1", address.port, timeout=300)
            asking.request("GET", path, headers={"Host": host, **headers})
            with closing(asking):
                return asking.getresponse().status

        def socket(token: bool, host: str = own, **headers: str) -> int:
            query = f"&{address.query}" if token else ""
            return status(f"/ws?session_id=a{query}", host, **_UPGRADE, **headers)

        for _ in range(_MOST_LOOKS):  # it says where it is before it is there
            with suppress(ConnectionRefusedError):
                status("/")
                break
            time.sleep(0.05)
        front = f"/?{address.query}"
        assert len(address.query) > len("access_token=") + 20
        assert status(front) == 303  # to the page without the token, with a cookie
        assert status("/") == 303  # to the page that asks for the token
        assert status(front, Origin="http://a.example") == 403
        assert status(front, f"a.example:{address.port}") == 403
        assert socket(True, Origin=f"http://{own}") == 101
        assert socket(False, Origin=f"http://{own}") == 403
        for origin in ("http://a.example", "http://localhost:9", "null", f"http://a.{own}"):
            assert socket(True, Origin=origin) == 403, origin
        assert socket(True, "a.example", Origin="http://a.example") == 403
        assert not (tmp_path / "ran").exists()
    finally:
        app.terminate()
        app.communicate()


@pytest.mark.skipif(bool(MISSING), reason=MISSING)
def test_a_slider_is_moved_and_the_gpus_and_their_proof_follow(tmp_path: Path) -> None:
    pytest.importorskip("marimo")
    command = [*COMMAND, "show", "--live", "--published", "S1", "--no-browser"]
    app = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert app.stdout is not None
        address = next(line.split()[-1] for line in app.stdout if "URL:" in line)
        with browser(tmp_path) as window:
            window.look()
            window.visit(address)
            page = shown(window, "the proof was checked exactly")
            assert f"GPUs {S1} {S1} × a100-80gb Lower bound ≥ {S1}" in page
            window.run(_SLIDER)
            for _ in range(5):
                window.press(_RIGHT)
            page = shown(window, f"GPUs {TWICE} {TWICE} × a100-80gb Lower bound ≥ {TWICE}")
            assert "Proof optimal the proof was checked exactly" in page
            assert "3g.40gb" in window.run(
                'return document.querySelector("iframe").contentDocument.body.textContent'
            )
            errors = [each for each in window.logged("browser") if each["level"] == "SEVERE"]
            assert not errors
            outside = [each for each in window.requested() if not each.startswith(OURS)]
            assert not outside
    finally:
        app.terminate()
        app.communicate()


#: The GPUs of S1, and with twice its rates.
SCENARIO = read_scenario({"published": "S1"})
S1, TWICE = (str(plan_scenario(turn(SCENARIO, every=n)).answer.cost) for n in (1, 2))
OURS = ("http://127.0.0.1:", "http://localhost:", "data:", "blob:", "about:")


#: So often a page is asked before it counts as one that hangs: for minutes.
_MOST_LOOKS = 2_400


def shown(window: Browser, words: str) -> str:
    """Wait until the page says something."""
    page = ""
    for _ in range(_MOST_LOOKS):
        page = str(window.run(_WORDS))
        if words in page:
            return page
        time.sleep(0.05)
    raise AssertionError(f"{words!r} never came: {page}")
