"""Fields of documents: one declaration says how a value is read, written and refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from enum import Enum
from fractions import Fraction
from typing import Any, NamedTuple

from .documents import number_to_json
from .node import Node

_REQUIRED = object()
_SHA256 = re.compile(r"[0-9a-f]{64}")


def _same(value: Any) -> Any:
    return value


class Field(NamedTuple):
    """How a value is read and written, and what stands for it where its key is left out."""

    read: Callable[[Node], Any]
    write: Callable[[Any], Any] = _same
    default: Any = _REQUIRED

    def or_else(self, default: Any) -> Field:
        """Return the same field of a key that may be left out."""
        return self._replace(default=default)


def _positive(node: Node) -> Fraction:
    value = node.number()
    if not value:
        raise node.wrong("a number > 0")
    return value


def _seconds(node: Node) -> float:
    """Read a time: the only floats of our files; they prove nothing and come back as written."""
    if isinstance(node.value, str):
        raise node.wrong("a JSON number", "write it without quotes")
    try:
        return float(node.number())
    except OverflowError:
        raise node.wrong("a time in seconds") from None


def _sha256(node: Node) -> str:
    text = node.text()
    if not _SHA256.fullmatch(text):
        raise node.wrong("64 hexadecimal digits in lower case")
    return text


TEXT = Field(Node.text)
NUMBER = Field(Node.number, number_to_json)
POSITIVE = Field(_positive, number_to_json)
ANY_NUMBER = Field(lambda node: node.number(minimum=None), number_to_json)
COUNT = Field(Node.integer)
ANY_INTEGER = Field(lambda node: node.integer(minimum=None))
AT_LEAST_ONE = Field(lambda node: node.integer(minimum=1))
SECONDS = Field(_seconds)
SHA256 = Field(_sha256)


def name(kind: str) -> Field:
    """Declare the name of a job, block or machine type."""
    return Field(lambda node: node.name(kind))


def choice(kind: type[Enum]) -> Field:
    """Declare one of a few words."""
    words = [each.value for each in kind]
    return Field(lambda node: kind(node.one_of(words)), lambda value: value.value)


def nullable(field: Field) -> Field:
    """Declare a value or null."""
    return Field(
        lambda node: node.or_null(field.read),
        lambda value: None if value is None else field.write(value),
    )


def array(field: Field) -> Field:
    """Declare an array of any length."""
    return Field(
        lambda node: [field.read(entry) for entry in node.array()],
        lambda values: [field.write(value) for value in values],
    )


def row(*fields: Field) -> Field:
    """Declare an array that has one entry for each field."""
    return Field(
        lambda node: tuple(
            field.read(entry) for field, entry in zip(fields, node.array(len(fields)), strict=True)
        ),
        lambda values: [field.write(value) for field, value in zip(fields, values, strict=True)],
    )


def table(kind: str, field: Field, known: Collection[str] | None = None) -> Field:
    """Declare an object whose keys are names of a kind; at least one unless `known` says which."""

    def read(node: Node) -> dict[str, Any]:
        found = {}
        for key, entry in node.names(kind) if known is None else node.entries():
            if known is not None:
                entry.refuse_unknown(key, kind, known)
            found[key] = field.read(entry)
        return found

    return Field(read, lambda items: {key: field.write(value) for key, value in items.items()})


def read_object(node: Node, fields: Mapping[str, Field], *, own: bool = True) -> dict[str, Any]:
    """Read the fields of an object; see :meth:`Node.object`."""
    required = [key for key, field in fields.items() if field.default is _REQUIRED]
    parts = node.object(required, [key for key in fields if key not in required], own=own)
    return {
        key: field.read(parts[key]) if key in parts else field.default
        for key, field in fields.items()
    }


def write_object(value: Any, fields: Mapping[str, Field]) -> dict[str, Any]:
    """Write the attributes of a value that are called as the fields."""
    return {key: field.write(getattr(value, key)) for key, field in fields.items()}


def record(make: Callable[..., Any], /, *, own: bool = True, **fields: Field) -> Field:
    """Declare an object that is made of fields, called as its attributes and its parameters."""
    return Field(
        lambda node: node.build(make, **read_object(node, fields, own=own)),
        lambda value: write_object(value, fields),
    )
