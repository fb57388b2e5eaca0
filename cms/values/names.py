"""Names of jobs and blocks: checked once, and made lazily where they are only numbers."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar, overload

from ..errors import InvalidProblem

T = TypeVar("T")

# What a terminal or a file would take for an order or a line end; surrogates are no text at all.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
# Comparing two texts takes time that grows with the product of their lengths, and more with bad
# luck; a hint is worth a fraction of a second.
_LONGEST_COMPARED, _MOST_COMPARED = 200, 500_000


class LazySequence(Sequence[T]):
    """A sequence whose parts are made when asked for."""

    __slots__ = ()
    what: ClassVar[str]

    @abstractmethod
    def _at(self, place: int) -> T:
        """Make the part of a place from 0 on."""

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        places = range(len(self))[index]
        return self._at(places) if isinstance(places, int) else list(map(self._at, places))

    def __repr__(self) -> str:
        return f"<{len(self)} {self.what}>"


@dataclass(frozen=True, slots=True)
class NumberedNames(LazySequence[str]):
    """The names ``j0, j1, ...`` up to the n-th one without a string a job, from `first` on."""

    prefix: str
    n: int
    first: int = 0

    def __len__(self) -> int:
        return self.n - self.first

    def _at(self, place: int) -> str:
        return f"{self.prefix}{self.first + place}"

    def index(self, name: object, start: int = 0, stop: int | None = None) -> int:
        """Return the position of a name; ValueError if it is not one of them."""
        if isinstance(name, str) and name.startswith(self.prefix):
            digits = name[len(self.prefix) :]
            if re.fullmatch(r"0|[1-9][0-9]{0,18}", digits, re.ASCII):
                position = int(digits) - self.first
                if position in range(len(self))[start:stop]:
                    return position
        raise ValueError(
            f"{name!r} is not one of {self.prefix}{self.first} ... {self.prefix}{self.n - 1}"
        )


def iterated(
    values: Iterable[T], what: str, expected: str, error: type[Exception] = InvalidProblem
) -> Iterable[T]:
    """Return an iterator, or refuse what has none."""
    try:
        return iter(values)
    except TypeError:
        raise error(f"{what} is {values!r}; expected {expected}") from None


def checked_names(
    names: Iterable[str], what: str, error: type[Exception] = InvalidProblem
) -> tuple[str, ...]:
    """Return the names as a tuple of plain texts; refuse empty, duplicate and unprintable ones."""
    expected = "a list of names"
    if isinstance(names, str):
        raise error(f"{what} names are {names!r}; expected {expected}")
    given: tuple[object, ...] = tuple(iterated(names, f"the list of {what} names", expected, error))
    for name in given:
        if not (isinstance(name, str) and name):
            raise error(f"{what} name is {name!r}; expected a text that is not empty")
    # not str(name): a subclass may print as something else
    result = tuple(str.__str__(name) for name in given)
    if _CONTROL.search("".join(result)):
        bad = next(name for name in result if _CONTROL.search(name))
        raise error(f"{what} name {bad!r} contains a control character; remove it")
    if len(set(result)) != len(result):
        twice = next(name for name, n in Counter(result).items() if n > 1)
        raise error(f"two {what}s are called {twice!r}; every {what} needs a name of its own")
    return result


def checked_name(name: str, what: str, error: type[Exception] = InvalidProblem) -> str:
    """Return one name as a plain text, or refuse it as :func:`checked_names` does."""
    return checked_names([name], what, error)[0]


def checked_table(
    table: Any, what: str, kind: str, error: type[Exception] = InvalidProblem
) -> dict[str, Any]:
    """Return what stands under each name of a mapping; refuse anything else, and bad names."""
    if not isinstance(table, Mapping):
        expected = f'a mapping of {kind}s to numbers, such as {{"x": 1}}'
        raise error(f"{what} is {table!r}; expected {expected}")
    return dict(zip(checked_names(table, kind, error), table.values(), strict=True))


def nearest(name: object, names: Iterable[str], lead: str = "; ", alike: float = 0.6) -> str:
    """Word the known name nearest to a wrong one as the end of an error, or nothing.

    Case does not count: ``3G`` is near ``3g``. Where there are thousands of names, it is the
    nearest of the first ones.

    Examples
    --------
    >>> nearest("bert-lrage", ["bert-large", "resnet"])
    "; nearest: 'bert-large'"
    >>> nearest("3G", ["1g", "3g"], lead="")
    "nearest: '3g'"
    >>> nearest("vgg", ["bert-large"])
    ''
    """
    if not isinstance(name, str) or len(name) > _LONGEST_COMPARED:
        return ""
    known: dict[str, str] = {}
    left = _MOST_COMPARED
    for other in names:
        if len(other) <= _LONGEST_COMPARED:
            known[other.casefold()] = other
            left -= len(name) * len(other)
            if left < 0:
                break
    from difflib import get_close_matches  # only ever needed on the way to an error

    close = get_close_matches(name.casefold(), known, n=1, cutoff=alike)
    return f"{lead}nearest: {str.__str__(known[close[0]])!r}" if close else ""
