"""``cms init``: the two tables and the settings to begin with."""

from __future__ import annotations

import os
import shlex
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from cms.files.source import write_bytes

from . import options
from .catalogue import find_gpu, gpu_keys
from .fleet_file import NAME
from .options import Text, offering, option, usage_error
from .session import Exit, session_of


def init(
    context: typer.Context,
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Where to write them; its last part is made.")
    ] = Path(),
    gpu: Annotated[
        Text,
        option(
            "KEY",
            "The GPU of the examples: of 'cms gpus', or your own device file.  "
            "[default: a100-80gb]",
            "--gpu",
            "-g",
            autocompletion=offering(gpu_keys),
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Write over files that are there.")
    ] = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Write example tables and the settings of a fleet.

    Every column and setting is explained. 'cms plan' works on them at once; then put your own rows
    in.
    """
    session = session_of(context)
    session.begin(None, json=json, quiet=quiet)
    from cms.fleet.hardware.device_file import is_device_file
    from cms.fleet.serving.csv_input import points_template, services_template
    from cms.fleet.serving.gpus_used import DEFAULT_GPU

    device = find_gpu(gpu or DEFAULT_GPU, "--gpu")
    own = os.path.relpath(gpu, folder) if gpu and is_device_file(gpu) else None
    services, points, settings = (
        folder / name for name in ("services.csv", "operating_points.csv", NAME)
    )
    texts = {
        services: services_template(),
        points: points_template(device),
        settings: settings_template(device.key, own, asked=gpu is not None),
    }
    is_new = not folder.is_dir()
    if is_new:
        try:
            folder.mkdir()
        except OSError as fault:
            above = f"create the folder above it first: mkdir -p {shlex.quote(str(folder.parent))}"
            why = fault.strerror if folder.parent.exists() else f"{fault.strerror}; {above}"
            raise usage_error(f"the folder {str(folder)!r} cannot be made: {why}", "DIR") from None
    there = [str(path) for path in texts if path.exists()]
    if there and not force:
        are = "is" if len(there) == 1 else "are"
        raise usage_error(
            f"{' and '.join(there)} {are} there already; --force writes over, or name another "
            "folder: cms init DIR"
        )
    try:
        for path, text in texts.items():
            write_bytes(text.encode(), path)
    except BaseException:
        if not there:  # or a second 'cms init' would be refused
            for path in texts:
                path.unlink(missing_ok=True)
        if is_new:
            folder.rmdir()
        raise
    following = "cms plan" if folder == Path() else f"cms plan --fleet {shlex.quote(str(settings))}"
    made = f"made the folder {folder}\n" if is_new else ""
    session.say(
        {
            "services": str(services), "operating_points": str(points),
            "settings": str(settings), "device": device.key, "next": following,
        },
        f"{made}wrote {services}: what to serve, with rates and latency limits\n"
        f"wrote {points}: what was measured on {device.key} (here: made up)\n"
        f"wrote {settings}: what rarely changes, for all commands\n\n"
        "The rows are examples, and the comments say what each column means. Try them:\n\n"
        f"    {following}\n\n"
        "Then put your own services and measurements in their place.\n",
    )  # fmt: skip
    return Exit.ANSWER


def settings_template(key: str, device: str | None = None, *, asked: bool = True) -> str:
    """Return settings to begin with, a GPU that was asked for among them."""
    text = (files(__package__) / "template.toml").read_text("utf-8")
    if not asked:
        return text
    head, more = text.split("# [gpus.a100-80gb]", 1)
    own = "" if device is None else f'device = "{device}"\n'
    return f"{head}[gpus.{key}]\n{own}#{more[1:]}"
