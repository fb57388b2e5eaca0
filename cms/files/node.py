"""A value of a parsed document that knows the path to itself, and so its place in the file."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator
from fractions import Fraction
from typing import Any, ParamSpec, TypeVar

from ..errors import CmsError, FileError, InvalidProblem
from ..values.names import checked_names, nearest
from ..values.numbers import format_exact, shown
from .json_text import locate
from .numerals import NUMBER_FORMS, number_hint, number_in
from .source import Source, one_of, quoted, shortened

P = ParamSpec("P")
T = TypeVar("T")

_NO_FILE = Source("<document>")
_PLAIN = re.compile(r"[\w:-]+")  # keys that need no quotes in a path


class Node:
    """A value inside a JSON document, read through checks that name it and its position."""

    __slots__ = ("_key", "_parent", "about", "source", "value")

    def __init__(self, value: Any, source: Source = _NO_FILE) -> None:
        self.value = value
        self.source = source
        #: The thing this is about ("job 'bert'"), said in errors about it and what is inside it.
        self.about: str | None = None
        self._parent: Node | None = None
        self._key: str | int = ""

    def at(self, key: str | int) -> Node:
        """Return the value under a key or index."""
        try:
            child = Node(self.value[key], self.source)
        except (LookupError, TypeError):
            if isinstance(key, int):
                raise self.error(f"{self.label} has no entry {key}") from None
            key = quoted(key)
            raise self.error(f"{self.label} has no {key}", expected=f"the key {key}") from None
        child._parent, child._key = self, key
        return child

    def error(self, what: str, *, at_key: bool = False, **told: Any) -> FileError:
        """Build an error that points at this value, or at its key."""
        value, key = locate(self.source, self._path())
        offset = key if at_key and key is not None else value
        return self.source.error(what, offset, **told)

    def wrong(self, expected: str, fix: str | None = None) -> FileError:
        """Build the error that this value is not what was expected."""
        return self.error(f"{self.label} is {self.shown}", expected=expected, fix=fix)

    def build(self, make: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Make a part of the model from this value; if its rules are broken, it is to blame."""
        try:
            return make(*args, **kwargs)
        except CmsError as fault:
            raise self.error(f"{self.label}: {fault}") from None
        except RecursionError:  # from the words about a value of a thousand lists in lists
            raise self.error(f"{self.label} is nested too deeply") from None

    @property
    def label(self) -> str:
        """What this value is, for a person: ``jobs[3].demand (job 'bert')``."""
        text = ""
        for step in self._path():
            if isinstance(step, int):
                text += f"[{step}]"
            else:
                plain = shortened(step) if _PLAIN.fullmatch(step) else ""
                text += f".{plain}" if plain else f"[{quoted(step)}]"
        node: Node | None = self
        while node is not None and node.about is None:
            node = node._parent
        about = f" ({shortened(node.about, 200)})" if node and node.about else ""
        return (text.removeprefix(".") or "the document") + about

    @property
    def shown(self) -> str:
        """The value as the file has it, or what kind of thing it is."""
        value = self.value
        if isinstance(value, dict | list):
            return "an object" if isinstance(value, dict) else "an array"
        if isinstance(value, str):
            return quoted(value)
        if value is None or isinstance(value, bool):
            return json.dumps(value)
        try:
            return shortened(format_exact(value) if isinstance(value, Fraction) else str(value))
        except ValueError:  # Python prints no more than 4300 digits
            return "a number of thousands of digits"

    def _path(self) -> list[str | int]:
        steps: list[str | int] = []
        node = self
        while node._parent is not None:
            steps.append(node._key)
            node = node._parent
        return steps[::-1]

    def object(
        self, required: Collection[str], optional: Collection[str] = (), *, own: bool = True
    ) -> dict[str, Node]:
        """Read an object with known keys; unless told otherwise, ``x-...`` are the user's own."""
        if not isinstance(self.value, dict):
            raise self.wrong("an object")
        for key in self.value:
            if key not in (*required, *optional) and not (own and key.startswith("x-")):
                known = [name for name in (*required, *optional) if name not in self.value]
                hint = 'a key of your own starts with "x-"' if own else None
                raise self.at(key).error(
                    f"{self.label} has the unknown key {quoted(key)}",
                    expected=f"only {', '.join((*required, *optional))}",
                    fix=nearest(key, known, lead="") or hint,
                    at_key=True,
                )
        fields = {key: self.at(key) for key in required}
        return fields | {key: self.at(key) for key in optional if key in self.value}

    def entries(self) -> Iterator[tuple[str, Node]]:
        """Yield the keys and values of an object that may have any keys."""
        if not isinstance(self.value, dict):
            raise self.wrong("an object")
        for key in self.value:
            yield key, self.at(key)

    def names(self, kind: str) -> Iterator[tuple[str, Node]]:
        """Yield the keys and values of an object whose keys must be proper names."""
        for key, child in self.entries():
            try:
                checked_names([key], kind)
            except InvalidProblem as fault:
                raise child.error(f"{self.label}: {fault}", at_key=True) from None
            yield key, child

    def array(self, length: int | None = None) -> Iterator[Node]:
        """Yield the entries of an array."""
        if not isinstance(self.value, list):
            raise self.wrong("an array")
        if length is not None and len(self.value) != length:
            raise self.error(
                f"{self.label} has {len(self.value)} entries", expected=f"{length} entries"
            )
        for index in range(len(self.value)):
            yield self.at(index)

    def agree(self, value: Any, why: str) -> None:
        """Check what is written out for readers against what follows from the rest."""
        if isinstance(value, dict):
            for key, child in self.object(value).items():
                child.agree(value[key], why)
        elif isinstance(value, list):
            for child, each in zip(self.array(len(value)), value, strict=True):
                child.agree(each, why)
        elif value is None or self.value is None or isinstance(value, str):
            if self.value != value:
                raise self.wrong(f"{Node(value).shown}, {why}")
        elif (self.integer(None) if type(value) is int else self.number(None)) != value:
            raise self.wrong(f"{shown(value)}, {why}")

    def text(self) -> str:
        """Read a text."""
        if not isinstance(self.value, str):
            raise self.wrong("a text")
        return self.value

    def name(self, kind: str) -> str:
        """Read the name of a job, block or machine type."""
        text = self.text()
        try:
            checked_names([text], kind)
        except InvalidProblem as fault:
            raise self.error(f"{self.label}: {fault}") from None
        return text

    def new_name(self, kind: str, seen: dict[str, Any]) -> str:
        """Read a name that may not be among those seen before, and remember it."""
        name = self.name(kind)
        if name in seen:
            raise self.error(
                f"{self.label}: there are two {kind}s {name!r}",
                expected=f"a name of its own for every {kind}",
            )
        seen[name] = None
        return name

    def refuse_unknown(self, name: str, kind: str, known: Collection[str]) -> None:
        """Say of what this value is about, its key, that it is not among the names of a kind."""
        if name not in known:
            raise self.error(
                f"{self.label} is about a {kind} that is not among the {kind}s",
                expected=one_of(known),
                fix=nearest(name, known, lead=""),
                at_key=True,
            )

    def one_of(self, names: Collection[str]) -> str:
        """Read one of a few known words."""
        if not isinstance(self.value, str) or self.value not in names:
            raise self.wrong(one_of(names), nearest(self.value, names, lead=""))
        return self.value

    def boolean(self) -> bool:
        """Read true or false."""
        if not isinstance(self.value, bool):
            raise self.wrong("true or false")
        return self.value

    def refused(self, fault: CmsError) -> CmsError:
        """Give what a record refuses its place; what a node refused has one."""
        return fault if isinstance(fault, FileError) else self.error(f"{self.label}: {fault}")

    def integer(self, minimum: int | None = 0) -> int:
        """Read a whole number; a text is none, so that counts look like counts."""
        value = self.value
        if isinstance(value, Fraction) and value.denominator == 1:
            value = int(value)
        if type(value) is not int or (minimum is not None and value < minimum):
            least = "" if minimum is None else f" >= {minimum}"
            fix = None
            if isinstance(value, str) and (number := number_in(value)) is not None:
                fix = f"write {format_exact(number)} without quotes"
            raise self.wrong(f"a whole number{least}", fix)
        return value

    def or_null(self, read: Callable[[Node], T]) -> T | None:
        """Read a value by a method, or None from null."""
        return None if self.value is None else read(self)

    def number(self, minimum: int | None = 0) -> Fraction:
        """Read a number exactly: a JSON number or a text such as ``"12.5"`` or ``"1/3"``."""
        value, number = self.value, None
        if isinstance(value, str):
            number = number_in(value)
        elif isinstance(value, Fraction):
            number = value
        elif type(value) is int:  # not a bool
            number = Fraction(value)
        elif isinstance(value, float):  # of a document that was never text; NaN is no number
            number = number_in(repr(value))
        if number is None:
            hint = number_hint(value) if isinstance(value, str) else None
            raise self.wrong(NUMBER_FORMS, hint)
        # comparing integers spares a Fraction a number
        if minimum is not None and number.numerator < minimum * number.denominator:
            raise self.wrong(f"a number >= {minimum}")
        return number
