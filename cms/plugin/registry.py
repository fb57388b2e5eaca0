"""Algorithms and named instances, found by name through entry points.

The entry-point groups are ``cms.algorithms`` for classes, ``cms.instances`` for objects, and
``cms.reports`` and ``cms.programs`` for functions that make pages of files or write programs.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from importlib import import_module
from importlib.metadata import EntryPoint, EntryPoints, entry_points, packages_distributions
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import AlgorithmError, CmsError, InvalidOption, UnknownMethod
from ..values.frozen import FrozenMap
from ..values.names import nearest
from .algorithm import Algorithm

#: The distribution whose algorithms are trusted: solver bounds are believed from it alone.
OWN_DISTRIBUTION = "configurable-machines"
_REFUSALS = TypeError, ValueError, ArithmeticError
_MEMBERS = "name, options_type, support, guarantee and run (cms.Algorithm)"


class PluginError(CmsError, RuntimeError):
    """An installed plug-in cannot be used; the message names it and its distribution."""


class UnknownInstance(CmsError, ValueError):
    """No instance of this name is installed; the message lists those that are."""


#: What the entries of each group are called, and the error for a name that is not installed.
_GROUPS: dict[str, tuple[str, type[CmsError]]] = {
    "cms.algorithms": ("method", UnknownMethod),
    "cms.instances": ("instance", UnknownInstance),
    "cms.reports": ("report of files that end in", UnknownInstance),
    "cms.programs": ("writer of programs that end in", UnknownInstance),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedProblem:
    """A problem with a name, known values and their source.

    Attributes
    ----------
    name, title, source : str
    make : callable
        Builds the problem, a :class:`cms.Problem` or one of another kind.
    optimum : Fraction or None
        The least cost, if there is a schedule and it is known.
    infeasible : bool
    bounds : Mapping[str, Fraction]
        Known values of other quantities, such as ``{"LP_DW": Fraction(259, 132)}``.
    """

    name: str
    title: str
    source: str
    make: Callable[[], Any]
    optimum: Fraction | None = None
    infeasible: bool = False
    bounds: Mapping[str, Fraction] = field(default_factory=FrozenMap)


class AlgorithmDetails(NamedTuple):
    """A line of the list of installed algorithms."""

    name: str
    distribution: str
    trusted: bool
    summary: str
    options: Mapping[str, object]  # with their defaults


def list_algorithms() -> tuple[str, ...]:
    """Return the names of the algorithms installed, without loading any.

    Examples
    --------
    >>> "auto" in list_algorithms()
    True
    """
    return tuple(sorted(_entries("cms.algorithms").names))


def list_instances() -> tuple[str, ...]:
    """Return the names of the instances installed, without loading any.

    Examples
    --------
    >>> "S5" in list_instances()
    True
    """
    return tuple(sorted(_entries("cms.instances").names))


def load_algorithm(name: str) -> tuple[Algorithm, bool]:
    """Return a new object of an algorithm, and whether it is of our own distribution."""
    loaded, entry = _load("cms.algorithms", name)
    try:
        algorithm = loaded() if isinstance(loaded, type) else loaded
    except Exception as fault:
        raise PluginError(f"{_described(entry)} cannot be made: {_said(fault)}") from fault
    if not isinstance(algorithm, Algorithm):
        raise PluginError(f"{_described(entry)} is {algorithm!r}; expected a class with {_MEMBERS}")
    if algorithm.name != name:
        raise PluginError(
            f"{_described(entry)} calls itself {algorithm.name!r}; its name and its entry point's "
            "must be the same"
        )
    return algorithm, _distribution(entry.dist) == OWN_DISTRIBUTION


def algorithm_of(method: object) -> tuple[Algorithm, bool]:
    """Return the algorithm a name or an object means, and whether it is trusted: no object is."""
    if isinstance(method, str):
        return load_algorithm(method)
    name = getattr(method, "name", None)
    if isinstance(method, type) or not (
        isinstance(method, Algorithm) and name and type(name) is str
    ):
        hint = "; give an object, not its class" if isinstance(method, type) else ""
        expected = f"the name of an algorithm or an object with {_MEMBERS}{hint}"
        raise InvalidOption(f"method is {method!r}; expected {expected}")
    return method, False


def load_instance(name: str) -> Any:
    """Return a named instance: a :class:`NamedProblem`, or a scenario of the serving layer.

    UnknownInstance lists those there are; PluginError says why a plug-in cannot be used.

    Examples
    --------
    >>> load_instance("non-irup").optimum
    Fraction(3, 1)
    """
    loaded, entry = _load("cms.instances", name)
    told = [hasattr(loaded, what) for what in ("name", "title", "source")]
    if isinstance(loaded, type) or not all(told):
        raise PluginError(
            f"{_described(entry)} is {loaded!r}; expected an object with name, title and source"
        )
    return loaded


def load_function(group: str, ending: str) -> Callable[..., Any]:
    """Return the function of ``cms.reports`` or ``cms.programs`` for files of some ending."""
    loaded, entry = _load(group, ending)
    if not callable(loaded):
        raise PluginError(f"{_described(entry)} is {loaded!r}; expected a function")
    found: Callable[..., Any] = loaded
    return found


def algorithm_details() -> tuple[AlgorithmDetails, ...]:
    """Load every algorithm installed and describe it.

    One that cannot be loaded is left out, with a RuntimeWarning that names its distribution.
    """
    found = []
    for name in list_algorithms():
        try:
            algorithm, trusted = load_algorithm(name)
            options = option_fields(algorithm)
        except CmsError as fault:
            warnings.warn(f"{fault}; it is left out", RuntimeWarning, stacklevel=2)
            continue
        (entry,) = _entries("cms.algorithms").select(name=name)
        text = inspect.getdoc(algorithm) or ""
        summary = " ".join(text.strip().partition("\n\n")[0].split())
        found.append(AlgorithmDetails(name, _distribution(entry.dist), trusted, summary, options))
    return tuple(found)


@functools.cache
def _entries(group: str) -> EntryPoints:
    return entry_points(group=group)


def _load(group: str, name: str) -> tuple[Any, EntryPoint]:
    """Load the entry of a name; refuse a name of none or of two, and one that cannot be loaded."""
    entries = _entries(group)
    what, unknown = _GROUPS[group]
    named = entries.select(name=name)
    providers = [_distribution(entry.dist) for entry in named or entries]
    if not named:
        if OWN_DISTRIBUTION not in providers:
            raise unknown(
                f"{what} {name!r} is unknown, and nothing of {OWN_DISTRIBUTION} is registered in "
                f"{group}: it is not installed in this environment; run `pip install -e .`"
            )
        known = sorted(entries.names)
        raise unknown(
            f"{what} {name!r} is unknown{nearest(str(name), known)}; installed are "
            + ", ".join(known)
        )
    if len(named) > 1:
        raise PluginError(
            f"{what} {name!r} is offered by {len(named)} distributions, "
            f"{' and '.join(sorted(providers))}; uninstall all but one"
        )
    (entry,) = named
    try:
        if providers == [OWN_DISTRIBUTION]:
            refuse_shadow(entry.module.partition(".")[0])
        return entry.load(), entry
    except Exception as fault:
        words = str(fault) if isinstance(fault, PluginError) else _said(fault)
        raise PluginError(f"{_described(entry)} cannot be loaded: {words}") from fault


def refuse_shadow(top: str) -> None:
    """Refuse a top-level package that hides cms's own on Python's path, before any of it runs."""
    place, cms = _place(top), _place(__name__.partition(".")[0])
    if place is None or cms is None:
        raise PluginError(f"there is no {top!r}; reinstall {OWN_DISTRIBUTION}")
    beside = place.parent.resolve() == cms.parent.resolve()
    if beside and getattr(import_module(top), "__cms_distribution__", None) == OWN_DISTRIBUTION:
        return
    if others := set(packages_distributions().get(top, [])) - {OWN_DISTRIBUTION}:
        raise PluginError(
            f"{place} is not of {OWN_DISTRIBUTION}; {' and '.join(sorted(others))} ships a "
            f"top-level {top!r} too. Uninstall it and reinstall {OWN_DISTRIBUTION}"
        )
    raise PluginError(
        f"{place} is not of {OWN_DISTRIBUTION} and hides its {top!r}: Python finds it first "
        "(beside the script, in the folder where it was started, or on PYTHONPATH). Rename it, or "
        "move the script to another folder"
    )


def _place(top: str) -> Path | None:
    """The folder of a top-level package, or the file of a module."""
    spec = find_spec(top)
    if spec is None:
        return None
    return Path([*(spec.submodule_search_locations or ()), str(spec.origin)][0])


@functools.cache
def _distribution(distribution: Any) -> str:
    # Its metadata are parsed anew whenever it is asked, which takes longer than a small problem.
    return re.sub(r"[-_.]+", "-", distribution.name).lower()


def _described(entry: EntryPoint) -> str:
    kind = "algorithm" if entry.group == "cms.algorithms" else "instance"
    return f"{kind} {entry.name!r} ({entry.value}, of distribution {_distribution(entry.dist)})"


def _said(fault: BaseException) -> str:
    return f"{type(fault).__name__}: {fault}"


def read_options(algorithm: Algorithm, given: Mapping[str, object]) -> Any:
    """Make an object of the algorithm's ``options_type``; InvalidOption for what it refuses."""
    name, kind, fields = algorithm.name, algorithm.options_type, option_fields(algorithm)
    if not isinstance(given, Mapping):
        raise InvalidOption(f"options is {given!r}; expected a mapping of names to values")
    for option in given:
        if option not in fields:
            known = ", ".join(f"{key} (default {value})" for key, value in fields.items())
            raise InvalidOption(
                f"method {name!r} has no option {option!r}{nearest(str(option), fields)}; it has "
                f"{known or 'none'}"
            )

    def is_refused(option: str) -> bool:
        try:
            kind(**{option: given[option]})
        except _REFUSALS:
            return True
        return False

    try:
        return kind(**given)
    except InvalidOption:
        raise
    except _REFUSALS as fault:
        # none by itself: the values are refused together
        culprits = list(filter(is_refused, given)) or given
        shown = ", ".join(f"{key} = {given[key]!r}" for key in culprits)
        raise InvalidOption(f"method {name!r}, option {shown}: {fault}") from fault


def option_fields(algorithm: Algorithm) -> dict[str, object]:
    """Return an algorithm's options with their defaults; AlgorithmError if some have none."""
    kind = algorithm.options_type
    words = f"options_type {getattr(kind, '__name__', '')}"
    if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):  # type: ignore[redundant-expr]
        words = f"options_type is {kind!r}; expected a frozen dataclass"
        raise AlgorithmError(algorithm.name, words)
    if not kind.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        raise AlgorithmError(algorithm.name, f"{words} is not frozen; a run could change it")
    try:
        defaults = kind()
    except TypeError as fault:
        raise AlgorithmError(algorithm.name, f"{words} needs a default for every option") from fault
    settable = [field.name for field in dataclasses.fields(kind) if field.init]
    return {name: getattr(defaults, name) for name in settable}
