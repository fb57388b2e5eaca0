"""What notebooks and tables show of our objects; pandas and Arrow are an extra."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from fractions import Fraction
from importlib.metadata import entry_points
from typing import Any, NamedTuple, TypeAlias

from ..errors import InvalidOption
from .names import nearest

#: A row: what stands in each column.
Record: TypeAlias = "Mapping[str, Any]"
_EXTRA = "an extra: pip install '.[tables]'"
#: The entry-point group: names of classes, and a function of an object of each.
GROUP = "cms.views"


class View(NamedTuple):
    """An object as a notebook shows it: a fragment of HTML with its pictures, and an SVG."""

    html: str | None = None
    svg: str | None = None


class Viewed:
    """An object with a picture and a page of its own, where a notebook asks for them.

    The rooms that draw stand above those that know; a function of the entry-point group
    ``cms.views`` is named after the class. Where none is installed, its ``repr`` is shown.
    """

    __slots__ = ()

    def _repr_html_(self) -> str | None:
        return self._view().html

    def _repr_svg_(self) -> str | None:
        return self._view().svg

    def _view(self) -> View:
        for kind in type(self).__mro__:
            for entry in entry_points(group=GROUP, name=kind.__name__):
                view: View = entry.load()(self)
                return view
        return View()


class Tabular(ABC):
    """An object of which there are tables.

    Exact numbers become floats in a table, since that is what tables are computed with; whoever
    wants them exactly asks the object.
    """

    __slots__ = ()

    @abstractmethod
    def _tables(self) -> Mapping[str, Iterable[Record]]:
        """Return the records of each table by its name, the most usual first."""

    def to_pandas(self, table: str | None = None) -> Any:
        """Return one of its tables, by default the first, as a :class:`pandas.DataFrame`."""
        try:
            from pandas import DataFrame
        except ImportError:
            raise InvalidOption(f"to_pandas needs pandas, {_EXTRA}") from None
        return DataFrame(self._records(table))

    def to_arrow(self, table: str | None = None) -> Any:
        """Return one of its tables, by default the first, as a :class:`pyarrow.Table`."""
        try:
            from pyarrow import Table
        except ImportError:
            raise InvalidOption(f"to_arrow needs pyarrow, {_EXTRA}") from None
        return Table.from_pylist(self._records(table))

    def _records(self, table: str | None) -> list[dict[str, Any]]:
        tables = self._tables()
        name = next(iter(tables)) if table is None else table
        if name not in tables:
            raise InvalidOption(
                f"there is no table {name!r}{nearest(str(name), tables)}; expected one of "
                f"{', '.join(tables)}"
            )
        return [{key: _plain(value) for key, value in row.items()} for row in tables[name]]


def _plain(value: Any) -> Any:
    if not isinstance(value, Fraction):
        return value
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
