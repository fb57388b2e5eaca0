"""An immutable, hashable, picklable mapping: the shape of every small table in the model."""

from __future__ import annotations

from collections.abc import Hashable, ItemsView, Iterator, KeysView, Mapping, ValuesView
from typing import Any, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V", covariant=True)


class Immutable:
    """Its attributes are put there once, by ``object.__setattr__``."""

    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: {name!r} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: {name!r} cannot be deleted")


class FrozenMap(Immutable, Mapping[K, V]):
    """A mapping that never changes, with its items in the order of their keys.

    ``types.MappingProxyType`` neither hashes nor pickles; this does both.
    """

    __slots__ = ("_items",)
    _items: dict[K, Any]

    def __init__(self, items: Mapping[K, V] | None = None) -> None:
        source = {} if items is None else items
        ordered = {key: source[key] for key in sorted(source)}  # type: ignore[type-var]
        object.__setattr__(self, "_items", ordered)

    def __getitem__(self, key: K) -> V:
        return self._items[key]  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[K]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    # What a dict does itself takes half as long as what Mapping makes of the three above, or less.

    def __contains__(self, key: object) -> bool:
        return key in self._items

    def keys(self) -> KeysView[K]:
        """Return the keys, in order."""
        return self._items.keys()

    def items(self) -> ItemsView[K, V]:
        """Return the pairs of keys and values, in the order of the keys."""
        return self._items.items()

    def values(self) -> ValuesView[V]:
        """Return the values, in the order of their keys."""
        return self._items.values()

    def __hash__(self) -> int:
        return hash(tuple(self._items.items()))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, FrozenMap):
            return self._items == other._items
        if isinstance(other, Mapping):
            return self._items == dict(other)
        return NotImplemented

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self._items),)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._items!r})"
