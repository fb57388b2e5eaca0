"""Names of jobs and blocks: checked once, and made lazily where they are only numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import overload

import numpy as np

from ..errors import InvalidProblem

# What a terminal or a file would take for an order or a line end; surrogates are no text at all.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
# Comparing two texts takes time that grows with the product of their lengths, and more with bad
# luck; a hint is worth a fraction of a second.
_LONGEST_COMPARED, _MOST_COMPARED = 200, 500_000
# Numbered names written at once: what that needs stays in the processor's cache.
_NAMES_AT_ONCE = 2**14


class NumberedNames(Sequence[str]):
    """The names ``j0, j1, ...`` without a string a job.

    Examples
    --------
    >>> names = NumberedNames("j", 3)
    >>> list(names), names.index("j2")
    (['j0', 'j1', 'j2'], 2)
    """

    __slots__ = ("_n", "_prefix")

    def __init__(self, prefix: str, n: int) -> None:
        self._prefix, self._n = prefix, n

    @property
    def prefix(self) -> str:
        """What stands before the number."""
        return self._prefix

    def __len__(self) -> int:
        return self._n

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        numbers = range(self._n)
        if isinstance(index, slice):
            return [f"{self._prefix}{number}" for number in numbers[index]]
        return f"{self._prefix}{numbers[index]}"

    def index(self, name: object, start: int = 0, stop: int | None = None) -> int:
        """Return the position of a name; ValueError if it is not one of them."""
        if isinstance(name, str) and name.startswith(self._prefix):
            digits = name[len(self._prefix) :]
            if re.fullmatch(r"0|[1-9][0-9]{0,18}", digits, re.ASCII):
                number = int(digits)
                if number in range(self._n)[start:stop]:
                    return number
        raise ValueError(f"{name!r} is not one of {self._prefix}0 ... {self._prefix}{self._n - 1}")

    def lines(self, begin: int = 0, end: int | None = None) -> Iterator[bytes]:
        """Iterate over some names in UTF-8, each followed by a line end, many at a time.

        Examples
        --------
        >>> b"".join(NumberedNames("j", 11).lines())[-10:]
        b'j8\\nj9\\nj10\\n'
        >>> b"".join(NumberedNames("j", 99).lines(9, 11))
        b'j9\\nj10\\n'
        """
        prefix = np.frombuffer(self._prefix.encode(), dtype=np.uint8)
        last = self._n if end is None else min(end, self._n)
        first, digits = begin, len(str(begin))
        while first < last:
            after = min(last, 10**digits)
            for start in range(first, after, _NAMES_AT_ONCE):
                numbers = np.arange(start, min(start + _NAMES_AT_ONCE, after))
                text = np.empty((len(numbers), len(prefix) + digits + 1), dtype=np.uint8)
                text[:, : len(prefix)] = prefix
                text[:, -1] = ord("\n")
                for place in range(digits):
                    text[:, -2 - place] = ord("0") + numbers % 10
                    numbers //= 10
                yield text.tobytes()
            first, digits = after, digits + 1

    def __eq__(self, other: object) -> bool:
        if isinstance(other, NumberedNames):
            return (self._prefix, self._n) == (other._prefix, other._n)
        return NotImplemented

    def __hash__(self) -> int:
        return hash((self._prefix, self._n))

    def __repr__(self) -> str:
        return f"NumberedNames({self._prefix!r}, {self._n})"


def checked_names(names: Iterable[str], what: str) -> tuple[str, ...]:
    """Return the names as a tuple; refuse empty, duplicate and unprintable ones.

    Parameters
    ----------
    names : iterable of str
        Subclasses of str (numpy's, enumerations) become plain texts.
    what : str
        What they name ("job"), for the error.

    Raises
    ------
    InvalidProblem
        Naming the first name at fault.
    """
    if isinstance(names, str):
        raise InvalidProblem(f"{what} names are the text {names!r}; expected a list of names")
    try:
        given = iter(names)
    except TypeError:
        raise InvalidProblem(f"{what} names are {names!r}; expected a list of names") from None
    result = tuple(
        name if type(name) is str and name else _plain(name, f"{what} name") for name in given
    )
    if _CONTROL.search("".join(result)):
        bad = next(name for name in result if _CONTROL.search(name))
        raise InvalidProblem(f"{what} name {bad!r} contains a control character; remove it")
    if len(set(result)) != len(result):
        seen: set[str] = set()
        for name in result:
            if name in seen:
                raise InvalidProblem(
                    f"two {what}s are called {name!r}; every {what} needs a name of its own"
                )
            seen.add(name)
    return result


def checked_name(name: str, what: str) -> str:
    """Return one name as a plain text, or refuse it as :func:`checked_names` does."""
    return checked_names([name], what)[0]


def _plain(name: object, what: str) -> str:
    if not (isinstance(name, str) and name):
        raise InvalidProblem(f"{what} is {name!r}; expected a text that is not empty")
    return str.__str__(name)  # not str(name): a subclass may print as something else


def nearest(name: object, names: Iterable[str], lead: str = "; ", alike: float = 0.6) -> str:
    """Word the known name nearest to a wrong one as the end of an error, or nothing.

    Case does not count: ``3G`` is near ``3g``. Where there are thousands of names, it is the
    nearest of the first ones.

    Parameters
    ----------
    name : str
        Anything else is near to nothing.
    names : iterable of str
        Those that are known.
    lead : str, default "; "
        What stands before it, if there is one.
    alike : float, default 0.6
        How much alike they have to be: 1 is the same.

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
