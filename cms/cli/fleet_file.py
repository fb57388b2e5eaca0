"""``fleet.toml``: what rarely changes about a fleet, once for all commands."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from cms.errors import CmsError, FileError
from cms.files import Parsed, read_source
from cms.files import model as m
from cms.values.names import nearest
from cms.values.numbers import exact

from .options import UsageError, find_gpu, given_options, usage_error
from .session import session_of

if TYPE_CHECKING:
    from cms.fleet.hardware import Gpu
    from cms.fleet.serving.gpus_used import AvailableGpus
    from cms.problem.parts import GroupLimit

    from .session import Session
    from .settings import Fleet

NAME = "fleet.toml"
_TABLES = ("services", "operating_points", "load_curves", "nodes")
#: Sections whose settings options of the same name override.
_OPTIONS = ("plan", "observation", "transition", "replan")
_STEP = re.compile(r"""(?:"[^"]*"|'[^']*'|[\w-]+)""")
# A table's line, and the keys of one; a line of an array may begin with a bracket, too.
_TABLE = re.compile(r"\[\[?([^\[\],=]+)\]\]?")
_KEYS = re.compile(r"""[\w"'. -]+""")
#: A key in an inline table; what looks like one in a text is no path to a value.
_INNER = re.compile(r"""[{,]\s*([\w"'.-]+)\s*=\s*""")


def apply_settings(
    context: typer.Context, fleet: Path | None, given: dict[str, Any]
) -> dict[str, Any]:
    """Return options by ``fleet.toml`` where none is given; a scenario has settings of its own."""
    session = session_of(context)
    path = fleet or Path(NAME)
    wanted = fleet is not None or (path.is_file() and given.get("published") is None)
    if str(path) != "none" and wanted:
        session.fleet, session.folder = read_fleet_file(path), path.parent
        session.fleet_file = fleet
        left = given.keys() - given_options(context)
        gpus = None if "gpu" in left else given.get("gpu")
        found = _defaults(session.fleet, path.parent, gpus)
        given = given | {name: value for name, value in found.items() if name in left}
    nowhere = {name for name in ("load_curves", "nodes") if str(given.get(name)) == "none"}
    return given | dict.fromkeys(nowhere)


def read_fleet_file(path: Path) -> Fleet:
    """Read the settings of a fleet; what is wrong in the file is refused with its place."""
    from cms.fleet.hardware import list_gpus
    from cms.fleet.hardware.catalogue import is_called

    from .settings import Fleet

    source = read_source(path, holds="settings of a fleet")
    try:
        value = tomllib.loads(source.text, parse_float=_number)
    except tomllib.TOMLDecodeError as fault:
        said, _, place = str(fault).partition(" (at ")
        line, column = ([*map(int, re.findall("[0-9]+", place)), None, None])[:2]
        raise FileError(path, f"this is no TOML: {said}", line=line, column=column) from None
    document = Parsed(value, replace(source, places=dict(_places(source.text))))
    fleet: Fleet = m.build(Fleet, document)
    known = [*list_gpus()]
    for key, name in _gpu_names(fleet, path.parent).items():
        try:
            gpu = find_gpu(name)
        except UsageError as fault:
            raise document.error(str(fault), "gpus", key) from None
        if not is_called(gpu, key):
            what = f"{name} describes the GPU {gpu.key!r}"
            raise document.error(what, "gpus", key, "device", expected=f"[gpus.{gpu.key}]")
        known.append(gpu)
    told: list[tuple[str | int, ...]]
    told = [
        ("group", at, "gpus", name) for at, it in enumerate(fleet.group) for name in it.gpus or ()
    ]
    told += [("export", "slurm_types", name) for name in fleet.export.slurm_types]
    for *within, last in told:
        name, keys = str(last), [gpu.key for gpu in known]
        is_known = name in keys or (within[0] == "group" and any(is_called(g, name) for g in known))
        if not is_known:
            raise document.error(f"unknown GPU {name!r}{nearest(name, keys)}", *within, name)
    return fleet


def limit_groups(
    fleet: Fleet,
    gpus: Sequence[Gpu],
    costs: Mapping[str, Fraction],
    available: Sequence[AvailableGpus] = (),
) -> list[GroupLimit]:
    """Return the limits of ``[[group]]`` that count GPUs of a plan, or those `available`."""
    from cms.fleet.hardware.catalogue import is_called
    from cms.fleet.serving.gpus_used import AvailableGpus
    from cms.problem.parts import GroupLimit

    def look(key: str, table: Mapping[str, Fraction], otherwise: int) -> Fraction:
        (gpu,) = (gpu for gpu in gpus if gpu.key == key)
        return Fraction(next((n for name, n in table.items() if is_called(gpu, name)), otherwise))

    prices = {gpu.key: look(gpu.key, costs, 1) for gpu in gpus}
    found = []
    for it in fleet.group:
        weights: dict[str, Fraction] = {}
        for each in available or [AvailableGpus(gpu.key) for gpu in gpus]:
            counted = look(each.gpu, it.gpus or {}, 0 if it.gpus else 1)
            weights[each.name] = counted * (1 if it.max_cost is None else each.cost(prices))
        if counting := {name: weight for name, weight in weights.items() if weight}:
            found.append(GroupLimit(it.name, counting, it.max_cost or it.max or 0))
    return found


def _gpu_names(fleet: Fleet, folder: Path) -> dict[str, str]:
    """Return the names, or device files, of the GPUs that may be planned with."""
    own = {key: each.device for key, each in fleet.gpus.items()}
    return {key: key if file is None else str(folder / file) for key, file in own.items()}


def _number(text: str) -> Fraction | str:
    """Return a decimal as it is written; what is none, or is too large, is refused in its place."""
    try:
        return exact(text.replace("_", ""), "the number", nonnegative=False)
    except CmsError:
        return text


def _places(text: str) -> Iterator[tuple[tuple[str | int, ...], tuple[int, int]]]:
    """Yield where each table and each key stands: the offsets of its value and of itself."""
    table: tuple[str | int, ...] = ()
    arrays: dict[tuple[str | int, ...], int] = {}
    start = 0
    for line in text.splitlines(keepends=True):
        key, equals, value = line.partition("=")
        at, bare = start + len(line) - len(line.lstrip()), line.strip()
        head = _TABLE.match(bare)
        if head and bare[head.end() :].lstrip()[:1] in ("", "#"):
            table = _steps(head[1])
            if bare.startswith("[["):  # the next of an array
                arrays[table] = arrays.get(table, -1) + 1
                table = (*table, arrays[table])
            yield table, (at, at)
        elif equals and _KEYS.fullmatch(key):
            path = (*table, *_steps(key))
            yield path, (start + len(line) - len(value.lstrip()), at)
            for inner in _INNER.finditer(line, len(key) + 1):
                yield (*path, *_steps(inner[1])), (start + inner.end(), start + inner.start(1))
        start += len(line)


def _steps(keys: str) -> tuple[str, ...]:
    return tuple(each.strip("\"'") for each in _STEP.findall(keys))


def _defaults(fleet: Fleet, folder: Path, chosen: list[str] | None) -> dict[str, Any]:
    """Return the values of options by settings; of GPUs, limits and costs of those `chosen`."""
    from cms.fleet.hardware.catalogue import is_called

    devices = [find_gpu(each, "--gpu") for each in chosen or ()]
    gpus = [
        (key, each)
        for key, each in fleet.gpus.items()
        if not chosen or any(is_called(gpu, key) for gpu in devices)
    ]
    prices = [(key, each.price_per_hour) for key, each in gpus]
    tables = ((name, getattr(fleet.tables, name)) for name in _TABLES)
    found: dict[str, Any] = {
        "gpu": list(_gpu_names(fleet, folder).values()),
        "max_gpus": [f"{key}={each.max}" for key, each in gpus if each.max is not None],
        "cost": [f"{key}={price}" for key, price in prices if price is not None],
        "map": [f"{own}={name}" for own, name in fleet.tables.map.items()],
        **{name: folder / path for name, path in tables if path is not None},
    }
    for part in _OPTIONS:
        found |= dict(getattr(fleet, part))
    found |= {"time_sharing": fleet.plan.time_sharing, "routing": None}  # --routing is of replays
    own = [f"{service}={share}" for service, share in fleet.transition.floors.items()]
    found["floor"] = [fleet.transition.floor, *own]
    return {name: value for name, value in found.items() if value not in (None, [])}


def read_time_sharing(session: Session, rule: str | None) -> dict[str, Any]:
    """Return the terms on which services share instances, as `build_problem` takes them."""
    from cms.fleet.serving import Headroom, TimeSharing
    from cms.fleet.serving.time_sharing import DEFAULT_FRAME_RULE, read_overheads

    given = session.fleet.time_sharing
    known = TimeSharing(rule or DEFAULT_FRAME_RULE).rule  # another is refused before tables are
    terms: dict[str, Any] = {"sharing": "time", "rule": known}
    terms |= {"max_services": given.max_services, "splits": given.splits}
    if given.headroom is not None:
        overheads = session.read_beside(given.batching_overheads, read_overheads)
        terms["headroom"] = Headroom(given.headroom, overheads)
    elif given.batching_overheads is not None:
        raise usage_error("it goes with headroom", "[time_sharing] batching_overheads")
    return terms


def read_slowdowns(session: Session) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return what batches take beside others, and warnings; nothing if nothing is said of it."""
    from cms.fleet.serving import predicted, read_interference, read_utilisations

    given = session.fleet.time_sharing
    if given.interference is None:
        for name in ("utilisations", "classes"):
            if getattr(given, name) is not None:
                raise usage_error("it goes with interference", f"[time_sharing] {name}")
        return {}, ()
    if given.splits == "any":
        what = "'any': what slows a batch is measured beside one other share; leave one of both out"
        raise usage_error(what, "[time_sharing] splits")
    table = read_interference(session.folder / given.interference)
    said: tuple[str, ...] = ()
    if (known := session.read_beside(given.utilisations, read_utilisations)) is not None:
        table, said = predicted(table, known)
    return {"interference": table, "classes": given.classes}, said
