"""The options that several commands share, how their texts become values, and what names mean."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import timedelta
from fractions import Fraction
from functools import cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from tomllib import loads
from typing import Any, TypeVar

import typer

import cms.fleet
from cms.errors import CmsError
from cms.files.numerals import is_whole
from cms.plugin.registry import PluginError, UnknownInstance
from cms.values.frozen import FrozenMap
from cms.values.names import nearest
from cms.values.numbers import exact

#: The largest number of GPUs of a type.
MAX_COUNT = 10**18 - 1
_TIME = re.compile(r"([0-9]{1,9})\s*(s|min|h|d|)")
_TIME_UNITS = {"s": 1, "min": 60, "": 60, "h": 3600, "d": 86400}
_OTHER_KINDS = {
    "plan": ("a problem without services", "problem solve"),
    "solve": ("a scenario of services", "plan"),
}
T = TypeVar("T")
File = Path | None
Text = str | None
Texts = list[str] | None


class OptionGroup:
    """Options that go together: the parameters of its constructor, which reads their texts."""


@cache
def load_declarations() -> dict[str, dict[str, Any]]:
    """Load ``commands.toml``: what it says, by command."""
    found: dict[str, Any] = loads((files(__package__) / "commands.toml").read_text("utf-8"))
    return found


def find_declaration(name: str, command: str = "common") -> dict[str, Any]:
    """Return what is said of a parameter of a command."""
    every = load_declarations()
    said: dict[str, Any] = every["common"].get(name, {}) | every[command].get(name, {})
    if not said:
        raise KeyError(f"commands.toml says nothing of {name} of {command}")
    return said


def declare(name: str, command: str = "common") -> Any:
    """Declare an option or an argument as ``commands.toml`` has it."""
    said = find_declaration(name, command)
    more: dict[str, Any] = {"hidden": "listed" in said or "hidden" in said}
    more |= {key: said[key] for key in ("metavar", "help", "min", "max") if key in said}

    def offered(incomplete: str) -> list[str]:
        found = load_named(said["names"])
        every: Iterable[str] = found() if callable(found) else found
        return [each for each in every if each.startswith(incomplete)]

    if "names" in said:
        more["autocompletion"] = offered
    make = typer.Argument if said.get("argument") else typer.Option
    return make(*said.get("flags", ()), **more)


def load_named(home: str) -> Any:
    """Return what ``module:NAME`` is called; the module is imported when it is asked for."""
    module, _, name = home.partition(":")
    return getattr(import_module(module), name)


# Where this class lives differs between versions of Typer; that it is this base does not.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""What Typer raises for arguments that cannot be meant; the command exits with 2."""


def usage_error(message: str, option: str = "") -> Exception:
    """Return the error for an option that cannot be meant, naming it."""
    return UsageError(f"{option}: {message}" if option else message)


def spelling(parameter: str) -> str:
    """Return the option of a parameter."""
    return f"--{parameter.replace('_', '-')}"


def given_options(context: typer.Context) -> set[str]:
    """Return the parameters that the command line gives."""
    sources = ((name, context.get_parameter_source(name)) for name in context.params)
    return {name for name, source in sources if source is not None and source.name != "DEFAULT"}


def refuse_others(context: typer.Context, heeded: str, why: str) -> None:
    """Refuse options that are given and not heeded: an option is never dropped in silence."""
    common = {"json", "quiet", "fleet", "seed", "threads"}
    for name in context.params:
        if name in given_options(context) - common - set(heeded.split()):
            raise usage_error(why, spelling(name))


def require_known(value: str, known: Iterable[str], option: str, what: str = "is unknown") -> None:
    """Refuse a name that is none of those known, with the nearest one."""
    names = list(known)
    if value not in names:
        expected = f"expected one of {', '.join(names)}"
        raise usage_error(f"{value!r} {what}{nearest(value, names)}; {expected}", option)


def time_limit(text: str) -> float | None:
    """Read ``--time-limit``: seconds, or ``none``."""
    if text.strip().lower() == "none":
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise usage_error(f"{text!r}: expected seconds >= 0, or 'none'", "--time-limit")
    return seconds


def pairs(texts: Sequence[str] | None, option: str, example: str) -> dict[str, str]:
    """Split the texts ``KEY=VALUE`` of an option that may be repeated."""
    result: dict[str, str] = {}
    for text in texts or ():
        key, equals, value = (part.strip() for part in text.partition("="))
        if not (key and equals and value):
            raise usage_error(f"{text!r}: expected KEY=VALUE, for example {example}", option)
        if key in result:
            raise usage_error(f"{key!r} is there twice; give it once", option)
        result[key] = value
    return result


def columns(texts: Sequence[str] | None) -> dict[str, str]:
    """Read ``--map YOURS=COLUMN``."""
    from cms.fleet.serving.csv_input import COLUMNS

    found = pairs(texts, "--map", "qps=rate_rps")
    for name in found.values():
        require_known(name, COLUMNS, "--map", "is no column")
    return found


def number(text: str | int, what: str, option: str) -> Fraction:
    """Read a number >= 0, exactly."""
    try:
        return exact(text, what)
    except CmsError as fault:
        raise usage_error(str(fault), option) from None


def whole(text: str, option: str, expected: str = "a whole number >= 0") -> int:
    """Read a whole number."""
    if not is_whole(text):
        raise usage_error(f"{text!r}: expected {expected}", option)
    return int(text)


def share(text: str, option: str) -> Fraction:
    """Read a share, ``10%``, ``0.1`` or ``1/10``; above 1 only with its sign: ``120%``."""
    written = text.strip()
    bare = written.removesuffix("%").strip()
    value = number(bare, "the share", option)
    if written.endswith("%"):
        return value / 100
    if value > 1:
        raise usage_error(
            f"{text!r} is more than the whole; expected a share such as 0.2, or with its sign: "
            f"{bare}%",
            option,
        )
    return value


def duration(text: str, option: str) -> timedelta | None:
    """Read a time: ``90s``, ``15min``, ``2h``, ``1d``; a number alone is of minutes.

    Examples
    --------
    >>> print(duration("2h", "--max-age"), duration("15", "--max-age"), duration("none", ""))
    2:00:00 0:15:00 None
    """
    written = text.strip().lower()
    if written == "none":
        return None
    match = _TIME.fullmatch(written)
    if match is None:
        raise usage_error(f"{text!r}: expected a time such as 15min, or 'none'", option)
    return timedelta(seconds=int(match[1]) * _TIME_UNITS[match[2]])


def seconds(text: str, option: str) -> Fraction:
    """Read a time that has to be one: ``4h``."""
    found = duration(text, option)
    if found is None:
        raise usage_error(f"{text!r}: expected a time such as 4h", option)
    return Fraction(round(found.total_seconds()))


def gpu_hours(text: str, option: str) -> Fraction:
    """Read a value in GPU hours."""
    return number(text.strip(), "the GPU hours", option)


def spare(text: str, option: str) -> str | int:
    """Read the largest number of spare GPUs: ``auto`` or a number."""
    return text if text == "auto" else whole(text, option, "auto or a whole number")


def costs(texts: Sequence[str] | None) -> dict[str, Fraction]:
    """Read ``--cost KEY=C``."""
    given = pairs(texts, "--cost", "a100-80gb=1.5").items()
    return {key: number(value, f"the cost of {key}", "--cost") for key, value in given}


def limits(texts: Sequence[str] | None) -> dict[str, int]:
    """Read ``--max-gpus KEY=N``."""
    given = pairs(texts, "--max-gpus", "a100-80gb=8").items()
    found = {key: whole(value, f"--max-gpus: {key}") for key, value in given}
    for key, number in found.items():
        if number > MAX_COUNT:
            raise usage_error(f"{key}={number}: expected at most 10^18 - 1", "--max-gpus")
    return found


def scales(texts: Sequence[str] | None) -> dict[str, Fraction]:
    """Read ``--scale SERVICE=X``, and ``--scale X``, which has no name."""
    found: dict[str, Fraction] = {}
    for text in texts or ():
        name, _, factor = (part.strip() for part in text.rpartition("="))
        whose = repr(name) if name else "all rates"
        if name in found:
            raise usage_error(f"{whose} is there twice; give it once", "--scale")
        found[name] = number(factor, f"the factor of {whose}", "--scale")
    return found


# -- what is available by name ---------------------------------------------------------------------


def gpu_keys() -> Iterable[str]:
    """Return the keys of the catalogue, for a shell that completes."""
    return [gpu.key for gpu in cms.fleet.list_gpus()]


def find_gpu(name: str, option: str = "") -> cms.fleet.Gpu:
    """Return a GPU by key or product name, or read it from a user's own device file."""
    from cms.fleet.hardware import catalogue

    if catalogue.is_device_file(name):
        return cms.fleet.read_gpu(name)
    if (found := catalogue.find_gpu(name)) is not None:
        return found
    guess = catalogue.likely_gpus(name) or (
        f"expected a product name, one of {', '.join(gpu_keys())}, or the path of a device file, "
        ".yaml or .json"
    )
    raise usage_error(f"unknown GPU {name!r}; {guess}", option)


def attributes(it: object, names: str) -> dict[str, Any]:
    """Return attributes of these names, sequences as lists: for a JSON document."""
    values = ((name, getattr(it, name)) for name in names.split())
    plain = ((name, dict(each) if isinstance(each, FrozenMap) else each) for name, each in values)
    return {name: [*each] if isinstance(each, tuple) else each for name, each in plain}


def names_of(kind: type[Any]) -> list[str]:
    """Return the names of the instances of one kind; one that cannot be loaded is left out."""
    found = []
    for name in cms.list_instances():
        with suppress(PluginError):
            if isinstance(cms.load_instance(name), kind):
                found.append(name)
    return found


def scenarios() -> Iterable[str]:
    """Return the names of the published scenarios."""
    return names_of(cms.fleet.Scenario)


def problems() -> Iterable[str]:
    """Return the names of the theory's problems."""
    return names_of(cms.NamedProblem)


def load_published(name: str, kind: type[T], command: str) -> T:
    """Return the instance of this name."""
    try:
        found = cms.load_instance(name)
    except UnknownInstance:
        if names := names_of(kind):
            require_known(name, names, "--published")
        raise  # without any it says why nothing is there at all
    if isinstance(found, kind):
        return found
    what, other = _OTHER_KINDS[command]
    raise usage_error(f"{name!r} is {what}; use: cms {other} --published {name}", "--published")
