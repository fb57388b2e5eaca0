"""What notebooks show of our objects: drawn by whoever can, found by name."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import NamedTuple

__all__ = ["Viewed", "View"]

GROUP = "cms.views"
"""The entry-point group: names of classes, and a function of an object of each."""


class View(NamedTuple):
    """An object as a notebook shows it."""

    html: str
    svg: str


class Viewed:
    """An object with a picture and a page of its own, where a notebook asks for them.

    The rooms that draw stand above those that know; a function of the entry-point group
    ``cms.views`` is named after the class. Where none is installed, its ``repr`` is shown.
    """

    __slots__ = ()

    def _repr_html_(self) -> str | None:
        found = _view(self)
        return None if found is None else found.html

    def _repr_svg_(self) -> str | None:
        found = _view(self)
        return None if found is None else found.svg


def _view(shown: Viewed) -> View | None:
    for kind in type(shown).__mro__:
        for entry in entry_points(group=GROUP, name=kind.__name__):
            view: View = entry.load()(shown)
            return view
    return None
