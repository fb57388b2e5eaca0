"""``cms show --live``: the plan in a browser, with sliders."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

import cms.fleet
from cms.files.source import write_bytes

from .catalogue import find_gpu, load_published
from .options import File, option, usage_error

Live = Annotated[
    bool,
    typer.Option(
        "--live", help="Change rates, limits and GPUs in a browser; until Ctrl-C, on this machine."
    ),
]
Port = Annotated[int | None, option("N", "With --live.  [default: a free one]", min=1, max=65535)]
Browser = Annotated[
    bool, typer.Option("--browser/--no-browser", help="With --live: open it, or say where it is.")
]
Notebook = Annotated[
    File, option("COPY.py", "With --live: a notebook instead, a copy of your own.")
]


def open_app(
    services: Path | None,
    operating_points: Path | None,
    published: str | None,
    gpu: list[str] | None,
    port: int | None,
    notebook: Path | None,
    *,
    browser: bool,
) -> NoReturn:
    """Become the app: for whoever has the address with its token, until Ctrl-C."""
    if importlib.util.find_spec("marimo") is None:
        raise usage_error("--live needs marimo, an extra: pip install '.[explore]'")
    from cms.fleet import explore as room

    given = {
        "services": services and services.resolve(),
        "operating-points": operating_points and operating_points.resolve(),
        "published": published,
        "gpu": [_found(name) for name in gpu or ()],
    }
    if published is not None:
        if services or operating_points:
            raise usage_error("give --published or the two files, not both")
        load_published(published, cms.fleet.Scenario, "plan")
    room.asked_of(given)  # what is wrong with the tables is said here, not in the browser
    app = Path(room.__file__).with_name("app.py")
    how = ["run", str(app)]
    if notebook is not None:
        how = ["edit", str(_copied(app, notebook).absolute())]
    words = [sys.executable, "-P", "-m", f"{room.__name__}.server", "--yes", *how]
    words += ["--host", "127.0.0.1"]
    words += [] if port is None else ["--port", str(port)]
    words += ["--"] if browser else ["--headless", "--"]
    for name, value in given.items():
        for each in value if isinstance(value, list) else [value] if value is not None else []:
            words += [f"--{name}", str(each)]
    sys.stdout.flush()
    os.environ["MARIMO_SKIP_UPDATE_CHECK"] = "1"
    os.execv(sys.executable, words)  # it alone hears Ctrl-C


def _found(name: str) -> str:
    """Check a GPU's name; a device file by its whole path."""
    from cms.fleet.hardware.device_file import is_device_file

    find_gpu(name, "--gpu")
    return str(Path(name).resolve()) if is_device_file(name) else name


def _copied(app: Path, notebook: Path) -> Path:
    """Copy the app to where the user wants it, unless something is there."""
    if notebook.suffix != ".py":
        raise usage_error(f"{notebook}: expected a name that ends in .py", "--notebook")
    if not notebook.exists():
        write_bytes(app.read_bytes(), notebook)
    return notebook
