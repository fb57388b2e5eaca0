"""The options that several commands share, and how their texts become values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

_TIME = re.compile(r"([0-9]{1,9})\s*(s|min|h|d|)")
_TIME_UNITS = {"s": 1, "min": 60, "": 60, "h": 3600, "d": 86400}


def offering(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Return what a shell asks to complete a value: the names that begin with what is written."""

    def offered(incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return offered


def offering_from(module: str, table: str) -> Callable[[str], list[str]]:
    """Offer the names in a table of a module, which is imported when a shell asks."""
    return offering(lambda: getattr(import_module(module), table))


def option(metavar: str, help: str, *flags: str, **more: Any) -> Any:
    """Declare an option; without flags it is called as its parameter."""
    return typer.Option(*flags, metavar=metavar, help=help, **more)


def _methods() -> Iterable[str]:
    from cms.plugin.registry import list_algorithms

    return list_algorithms()


# Options of nearly every command; `cms --help` lists them once.
COMMON = {
    "--json": "Print JSON instead of text.",
    "-q, --quiet": "Print neither progress nor report; only errors.",
    "--fleet FILE": "Settings of the fleet; 'none' reads no file.  [default: fleet.toml]",
    "--seed N": "Of what draws: the same seed, the same answer.  [default: 0]",
    "--threads N": "Of what searches: the number of worker threads.  [default: 1 a core]",
    "--max-age TIME": "Of what reads a fleet: refuse what was observed longer ago, as 90s, 15min, "
    "2h; or none.  [default: 15min]",
}
Json = Annotated[bool, typer.Option("--json", hidden=True)]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Also write the JSON document to FILE; '-' prints it instead of the report.",
    ),
]
Picture = Annotated[
    Path | None,
    typer.Option("--picture", metavar="FILE.svg", help="Also draw the plan: an SVG picture."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", hidden=True)]
Method = Annotated[
    str,
    typer.Option(
        "--method", "-m", metavar="NAME", help="The algorithm; see 'cms problem algorithms'.",
        autocompletion=offering(_methods),
    ),
]  # fmt: skip
MethodOptions = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="K=V", help="An option of the algorithm; may be repeated."),
]
TimeLimit = Annotated[
    str,
    typer.Option("--time-limit", metavar="SECONDS", help="When to stop; 'none' for no limit."),
]
Gap = Annotated[
    str,
    typer.Option(
        "--gap", metavar="COST", help="Stop when the cost is at most this far above the bound."
    ),
]
Seed = Annotated[int, typer.Option("--seed", metavar="N", min=0, hidden=True)]
Threads = Annotated[int | None, typer.Option("--threads", metavar="N", min=1, hidden=True)]
Start = Annotated[
    Path | None,
    typer.Option("--start", metavar="FILE", help="A solution or plan file to improve on."),
]


# Where this class lives differs between versions of Typer; that it is this base does not.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""What Typer raises for arguments that cannot be meant; the command exits with 2."""


def usage_error(message: str, option: str = "") -> Exception:
    """Return the error for an option that cannot be meant, naming it."""
    return UsageError(f"{option}: {message}" if option else message)


def given_options(context: typer.Context) -> set[str]:
    """Return the parameters that the command line gives."""
    sources = ((name, context.get_parameter_source(name)) for name in context.params)
    return {name for name, source in sources if source is not None and source.name != "DEFAULT"}


def refuse_others(context: typer.Context, heeded: str, why: str) -> None:
    """Refuse options that are given and not heeded: an option is never dropped in silence."""
    common = {"json", "quiet", "fleet", "seed", "threads"}
    for name in context.params:
        if name in given_options(context) - common - set(heeded.split()):
            raise usage_error(why, f"--{name.replace('_', '-')}")


def time_limit(text: str) -> float | None:
    """Read ``--time-limit``: seconds, or ``none``.

    Examples
    --------
    >>> time_limit("2.5"), time_limit("none")
    (2.5, None)
    """
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
    """Split the texts ``KEY=VALUE`` of an option that may be repeated.

    Examples
    --------
    >>> pairs(["a100-80gb=8", "h100-80gb = 4"], "--max-gpus", "a100-80gb=8")
    {'a100-80gb': '8', 'h100-80gb': '4'}
    """
    result: dict[str, str] = {}
    for text in texts or ():
        key, equals, value = (part.strip() for part in text.partition("="))
        if not (key and equals and value):
            raise usage_error(f"{text!r}: expected KEY=VALUE, for example {example}", option)
        if key in result:
            raise usage_error(f"{key!r} is there twice; give it once", option)
        result[key] = value
    return result


Map = Annotated[
    list[str] | None,
    typer.Option(
        "--map", metavar="YOURS=COLUMN",
        help="A column of the tables that is called otherwise: qps=rate_rps; may be repeated.",
    ),
]  # fmt: skip


def columns(texts: Sequence[str] | None) -> dict[str, str]:
    """Read ``--map YOURS=COLUMN``.

    Examples
    --------
    >>> columns(["qps=rate_rps"])
    {'qps': 'rate_rps'}
    """
    from cms.fleet.serving.csv_input import COLUMNS
    from cms.values.names import nearest

    found = pairs(texts, "--map", "qps=rate_rps")
    for name in found.values():
        if name not in COLUMNS:
            known = ", ".join(COLUMNS)
            message = f"{name!r} is no column{nearest(name, COLUMNS)}; expected one of {known}"
            raise usage_error(message, "--map")
    return found


def share(text: str, option: str) -> Fraction:
    """Read a share: ``10%``, ``0.1`` or ``1/10``; above 1 only with its sign: ``120%``.

    Examples
    --------
    >>> share("10%", "--rate-margin"), share("0.1", "--rate-margin")
    (Fraction(1, 10), Fraction(1, 10))
    """
    number, percent, rest = text.strip().partition("%")
    if rest:
        raise usage_error(f"{text!r}: expected a share such as 10% or 0.1", option)
    value = _exact(number.strip(), "the share", option)
    if value > 1 and not percent:
        raise usage_error(
            f"{text!r} is more than the whole; expected a share such as 0.2, or with its sign: "
            f"{number.strip()}%",
            option,
        )
    return value / (100 if percent else 1)


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
    """Read a time that has to be one: ``4h``.

    Examples
    --------
    >>> seconds("4h", "horizon")
    Fraction(14400, 1)
    """
    found = duration(text, option)
    if found is None:
        raise usage_error(f"{text!r}: expected a time such as 4h", option)
    return Fraction(round(found.total_seconds()))


def gpu_hours(text: str, option: str) -> Fraction:
    """Read what something is worth in GPU hours.

    Examples
    --------
    >>> gpu_hours("0.05", "restart_cost")
    Fraction(1, 20)
    """
    return _exact(text.strip(), "the GPU hours", option)


def _exact(text: str | int, what: str, option: str) -> Fraction:
    from cms.errors import CmsError
    from cms.values.numbers import exact

    try:
        return exact(text, what)
    except CmsError as fault:
        raise usage_error(str(fault), option) from None


def spare(text: str, option: str) -> str | int:
    """Read how many spare GPUs there may be: ``auto`` or a number."""
    if text == "auto":
        return text
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise usage_error(f"{text!r}: expected auto or a whole number", option)
    return int(text)


def costs(texts: Sequence[str] | None) -> dict[str, Fraction]:
    """Read ``--cost KEY=C``.

    Examples
    --------
    >>> costs(["a100-80gb=1.5"])
    {'a100-80gb': Fraction(3, 2)}
    """
    given = pairs(texts, "--cost", "a100-80gb=1.5").items()
    return {key: _exact(value, f"the cost of {key}", "--cost") for key, value in given}


class Scales(NamedTuple):
    """What rates are multiplied by: those of services that are named, and all others."""

    every: Fraction
    own: dict[str, Fraction]


def scales(texts: Sequence[str] | None) -> Scales:
    """Read ``--scale X`` and ``--scale SERVICE=X``.

    Examples
    --------
    >>> scales(["2", "chat=1.5"])
    Scales(every=Fraction(2, 1), own={'chat': Fraction(3, 2)})
    """
    every: list[str] = []
    own: dict[str, Fraction] = {}
    for text in texts or ():
        name, equals, number = (part.strip() for part in text.rpartition("="))
        if not equals:
            every.append(text)
        elif name in own:
            raise usage_error(f"{name!r} is there twice; give it once", "--scale")
        else:
            own[name] = _exact(number, f"the factor of {name!r}", "--scale")
    if len(every) > 1:
        raise usage_error(
            f"{' and '.join(every)} are all for all rates; give one of them", "--scale"
        )
    whole = _exact(every[0] if every else 1, "the factor of all rates", "--scale")
    return Scales(whole, own)


def limits(texts: Sequence[str] | None) -> dict[str, int]:
    """Read ``--max-gpus KEY=N``.

    Examples
    --------
    >>> limits(["a100-80gb=8"])
    {'a100-80gb': 8}
    """
    from cms.values.numbers import LARGEST_DIGITS

    result = {}
    for key, value in pairs(texts, "--max-gpus", "a100-80gb=8").items():
        if not (value.isascii() and value.isdigit() and len(value) <= LARGEST_DIGITS):
            raise usage_error(f"{key}={value}: expected a whole number >= 0", "--max-gpus")
        result[key] = int(value)
    return result
