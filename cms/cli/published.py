"""``--published``: the named instances, of which each command takes those of its own kind."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, TypeVar

from cms.plugin.registry import PluginError, UnknownInstance, list_instances, load_instance

from .options import require_known, usage_error

T = TypeVar("T")
_OTHERS = {
    "plan": ("a problem without services", "problem solve"),
    "solve": ("a scenario of services", "plan"),
}


def names_of(kind: type[Any]) -> tuple[str, ...]:
    """Return the names of the instances of one kind; one that cannot be loaded is left out."""
    found = []
    for name in list_instances():
        with suppress(PluginError):
            if isinstance(load_instance(name), kind):
                found.append(name)
    return tuple(found)


def load_published(name: str, kind: type[T], command: str) -> T:
    """Return the instance of this name."""
    try:
        found = load_instance(name)
    except UnknownInstance:
        if not (names := names_of(kind)):
            raise  # it says why nothing is there at all
        require_known(name, names, "--published")
        raise
    if isinstance(found, kind):
        return found
    what, other = _OTHERS[command]
    raise usage_error(f"{name!r} is {what}; use: cms {other} --published {name}", "--published")
