"""``--published``: the named instances, of which each command takes those of its own kind."""

from __future__ import annotations

from typing import Any, TypeVar

from cms.plugin.registry import PluginError, UnknownInstance, list_instances, load_instance

from .options import usage_error

T = TypeVar("T")


def names_of(kind: type[Any]) -> tuple[str, ...]:
    """Return the names of the instances of one kind; one that cannot be loaded is left out."""
    return tuple(name for name in list_instances() if _is_of(kind, name))


def _is_of(kind: type[Any], name: str) -> bool:
    try:
        return isinstance(load_instance(name), kind)
    except PluginError:
        return False


def load_published(name: str, kind: type[T], command: str) -> T:
    """Return the instance of this name."""
    from cms.values.names import nearest

    try:
        found = load_instance(name)
    except UnknownInstance:
        if not (names := names_of(kind)):
            raise  # it says why nothing is there at all
        raise usage_error(
            f"{name!r} is unknown{nearest(name, names)}; expected one of {', '.join(names)}",
            "--published",
        ) from None
    if isinstance(found, kind):
        return found
    what, other = {
        "plan": ("a problem without services", "problem solve"),
        "solve": ("a scenario of services", "plan"),
    }[command]
    raise usage_error(f"{name!r} is {what}; use: cms {other} --published {name}", "--published")
