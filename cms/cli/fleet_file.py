"""``fleet.toml``: what rarely changes about a fleet, once for all commands."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from cms.errors import FileError

from .session import session_of

NAME = "fleet.toml"
FleetFile = Annotated[Path | None, typer.Option("--fleet", metavar=NAME, hidden=True)]
_TABLES = ("services", "operating_points", "load_curves", "nodes")
#: Settings that options of the same name override.
_OPTIONS = {
    "plan": ("rule", "rate_margin", "max_processes", "balance", "shared"),
    "observation": ("max_age",),
    "transition": ("tool", "spare", "max_parallel"),
    "replan": ("forecast", "every"),
}
_STEP = re.compile(r'"[^"]*"|\'[^\']*\'|[\w-]+')


def with_fleet_file(command: Callable[..., int]) -> Callable[..., int]:
    """Let a command read ``fleet.toml``: what is not given as an option is as the file says.

    But where a published scenario is asked for, which has settings of its own.
    """

    @wraps(command)
    def run(context: typer.Context, fleet: Path | None = None, **given: Any) -> int:
        session = session_of(context)
        path = fleet or Path(NAME)
        wanted = fleet is not None or (path.is_file() and given.get("published") is None)
        if str(path) != "none" and wanted:
            session.settle(read_fleet_file(path), path.parent)
            for name, value in _defaults(session.fleet, path.parent).items():
                source = context.get_parameter_source(name)
                if name in given and source is not None and source.name == "DEFAULT":
                    given[name] = value
        return command(context, **given)

    return run


def read_fleet_file(path: Path) -> Any:
    """Read the settings of a fleet; what is wrong in the file is refused with its place."""
    from cms.files import model as m
    from cms.files.parsed import Parsed
    from cms.files.source import read_source

    from .settings import Fleet

    source = read_source(path, holds="settings of a fleet")
    try:
        value = tomllib.loads(source.text, parse_float=_number)
    except tomllib.TOMLDecodeError as fault:
        said, _, place = str(fault).partition(" (at ")
        line, column = ([*map(int, re.findall("[0-9]+", place)), None, None])[:2]
        raise FileError(path, f"this is no TOML: {said}", line=line, column=column) from None
    return m.build(Fleet, Parsed(value, replace(source, places=dict(_places(source.text)))))


def _device(key: str, file: str | None, folder: Path) -> str:
    return key if file is None else str(folder / file)


def _number(text: str) -> Fraction | str:
    return Fraction(text.replace("_", "")) if re.fullmatch(r"[-+0-9._eE]+", text) else text


def _places(text: str) -> Iterator[tuple[tuple[str, ...], tuple[int, int]]]:
    """Yield where each table and each key stands; what is within a value stands where it does."""
    table: tuple[str, ...] = ()
    start = 0
    for line in text.splitlines(keepends=True):
        indent = len(line) - len(line.lstrip())
        if head := re.match(r"\s*\[([^\[\]]+)\]", line):
            table = tuple(each.strip("\"'") for each in _STEP.findall(head[1]))
            yield table, (start + indent, start + indent)
        elif key := re.match(r"""\s*([\w."'-][\w."' -]*?)\s*=\s*""", line):
            path = (*table, *(each.strip("\"'") for each in _STEP.findall(key[1])))
            yield path, (start + key.end(), start + indent)
        start += len(line)


def _defaults(fleet: Any, folder: Path) -> Mapping[str, Any]:
    """Return what the options of commands are by a file's settings, by parameter."""
    gpus = fleet.gpus
    found: dict[str, Any] = {
        "gpu": [_device(key, each.device, folder) for key, each in gpus.items()],
        "max_gpus": [f"{key}={each.max}" for key, each in gpus.items() if each.max is not None],
        "cost": [f"{key}={each.cost}" for key, each in gpus.items() if each.cost is not None],
    }
    for name in _TABLES:
        path = getattr(fleet.tables, name)
        found[name] = None if path is None else folder / path
    found["map"] = [f"{own}={name}" for own, name in fleet.tables.map.items()]
    for part, names in _OPTIONS.items():
        found |= {name: getattr(getattr(fleet, part), name) for name in names}
    own = [f"{service}={share}" for service, share in fleet.transition.floors.items()]
    found["floor"] = [fleet.transition.floor, *own]
    return {name: value for name, value in found.items() if value not in (None, [])}
