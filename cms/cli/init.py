"""``cms init`` and ``cms gpus``: tables and settings to begin with, and the GPUs that are known."""

from __future__ import annotations

import os
import shlex
from importlib.resources import files
from pathlib import Path
from typing import Any

import cms.fleet
from cms.files.source import write_bytes

from .command import command
from .fleet_file import NAME
from .options import File, Text, attributes, find_gpu, usage_error
from .session import Exit, Session


@command(settings=False)
def init(session: Session, folder: Path = Path(), gpu: Text = None, force: bool = False) -> int:
    """Write example tables and the settings of a fleet.

    Every column and setting is explained. 'cms plan' works on them at once; then put your own rows
    in.
    """
    from cms.fleet.hardware.catalogue import is_device_file
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


@command(settings=False)
def gpus(session: Session, name: Text = None, output: File = None) -> int:
    """List the GPUs of the catalogue, or show one.

    It shows profiles, placements and configurations.
    """
    found = cms.fleet.list_gpus() if name is None else (find_gpu(name),)
    from cms.fleet.report.catalogue import gpu_page, gpus_page

    return session.list_names(
        [gpu.key for gpu in found],
        lambda: {"gpus": [_gpu_to_json(gpu) for gpu in found]},
        lambda: gpus_page(found) if name is None else gpu_page(*found),
        output,
    )


def _gpu_to_json(gpu: cms.fleet.Gpu) -> dict[str, Any]:
    profile = "name family id compute memory starts max sms memory_mib attributes since_driver"
    return {
        **attributes(gpu, "key aliases architecture compute_slices memory_slices version"),
        "profiles": [attributes(each, profile) for each in gpu.profiles],
        "configurations": [dict(each.blocks) for each in gpu.configurations],
        "maximal_layouts": [list(map(str, layout)) for layout in gpu.maximal_layouts()],
        "sources": [attributes(each, "fields evidence source driver date") for each in gpu.sources],
    }
