"""How values in documents are read, written, described and refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from threading import local
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import Field, Strict, ValidationError
from pydantic_core import PydanticCustomError, core_schema

from ..errors import CmsError
from ..values.names import checked_name, nearest
from ..values.numbers import format_exact
from ..values.words import count
from .documents import number_to_json
from .numerals import NUMBER_FORMS, number_hint, number_in
from .parsed import Parsed
from .source import one_of

if TYPE_CHECKING:
    from pydantic import BaseModel, GetCoreSchemaHandler

T = TypeVar("T")

_KINDS = {
    "string_type": "a text",
    "string_unicode": "a text without half a character",
    "bool_type": "true or false",
    "list_type": "an array",
    "tuple_type": "an array",
    "dict_type": "an object",
    "none_required": "null",
}


def refusal(
    expected: str | None = None,
    *at: str | int,
    what: str = "",
    fix: str | None = None,
    at_key: bool = False,
) -> PydanticCustomError:
    """Build the error that a value, or the one `at` a path below it, is not as `expected`.

    It shows the value, unless it is told `what` is wrong; ``{}`` there is the value's name.
    """
    told = {"expected": expected, "at": at, "what": what, "fix": fix, "at_key": at_key}
    return PydanticCustomError("refused", "refused", told)


def first_refusal(fault: ValidationError, value: Any) -> PydanticCustomError:
    """Word the first error of a validation as a refusal."""
    found = fault.errors(include_url=False, include_input=False)[0]
    told, kind, path = found.get("ctx", {}), found["type"], found["loc"]
    if at_key := path[-1:] == ("[key]",) and Parsed(value).at(*path).value is None:
        path = path[:-1]
    if kind == "refused":
        more = {"at_key": at_key or told["at_key"], "at": (*path, *told["at"])}
        return PydanticCustomError("refused", "refused", {**told, **more})
    if kind in ("enum", "literal_error"):
        words = re.findall(r"'([^']*)'", told["expected"])
        fix = nearest(Parsed(value).at(*path).value, words, "") if words else None
        return refusal(one_of(words) if words else told["expected"], *path, fix=fix)
    if kind in (
        "missing",
        "too_long",
    ):  # a row with too few or too many entries; keys are looked at before
        at, least = (path[:-1], "at least ") if kind == "missing" else (path, "")
        wanted = int(path[-1]) + 1 if kind == "missing" else told["max_length"]
        has = f"{{}} has {count(len(Parsed(value).at(*at).value), 'entry')}"
        return refusal(f"{least}{count(wanted, 'entry')}", *at, what=has)
    if kind.startswith("recursion"):
        return refusal(what="{} is nested too deeply")
    return refusal(_KINDS.get(kind, "another value"), *path)


@contextmanager
def blaming(*at: str | int) -> Iterator[None]:
    """Say of what is refused meanwhile that it stands `at` a path below the value."""
    try:
        yield
    except CmsError as fault:
        raise refusal(None, *at, what=str(fault)) from None
    except PydanticCustomError as fault:
        told = dict(fault.context or {})
        told["at"] = (*at, *told["at"])
        raise PydanticCustomError("refused", "refused", told) from None


def build_each(parts: Iterable[Any], make: Callable[[Any], T], *at: str | int) -> tuple[T, ...]:
    """Make something of each entry of an array that stands `at` a path."""
    found = []
    for index, part in enumerate(parts):
        with blaming(*at, index):
            found.append(make(part))
    return tuple(found)


def refuse_unknown(
    name: str, kind: str, known: Collection[str], *at: str | int, at_key: bool = False
) -> None:
    """Refuse a name, or the key so called, that is not among those of a kind."""
    if name not in known:
        what = f"{{}} is about a {kind} that is not among the {kind}s" if at_key else ""
        fix = nearest(name, known, lead="")
        raise refusal(one_of(known), *at, what=what, fix=fix, at_key=at_key)


def refuse_unknown_keys(
    table: Iterable[str], kind: str, known: Collection[str], *at: str | int
) -> None:
    """Refuse a key, of an object `at` a path, that is not among the names of a kind."""
    for name in table:
        refuse_unknown(name, kind, known, *at, name, at_key=True)


def refuse_twice(names: Iterable[str], kind: str, *at: str, key: str | None = "name") -> None:
    """Refuse the second of two things of one name, which stand in an array `at` a path."""
    seen: set[str] = set()
    for index, called in enumerate(names):
        if called in seen:
            what = f"{{}}: there are two {kind}s {called!r}"
            raise refusal("a name of its own", *at, index, *([key] if key else []), what=what)
        seen.add(called)


#: What a writer raised, of each thread: pydantic would raise its own error instead, even of Ctrl-C.
RAISED = local()


def written_by(write: Callable[[Any], Any]) -> Any:
    """Declare how a value is written; see ``Part.to_json``."""

    def keeping(value: Any) -> Any:
        try:
            return write(value)
        except BaseException as fault:
            RAISED.fault = getattr(RAISED, "fault", None) or fault
            raise

    return core_schema.plain_serializer_function_ser_schema(keeping)


class Value:
    """How a single value is read, written and described: an annotation of its type."""

    def __init__(
        self,
        read: Callable[[Any], Any],
        write: Callable[[Any], Any] | None = None,
        parts: tuple[type[BaseModel], ...] = (),
        **schema: Any,
    ) -> None:
        self.read, self._write, self._parts, self._schema = read, write, parts, schema

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> Any:
        write = self._write and written_by(self._write)
        read = refusing(self.read)
        return core_schema.no_info_plain_validator_function(read, serialization=write)

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        for part in self._parts:
            part.model_rebuild()
        parts: list[Any] = [part.__pydantic_core_schema__ for part in self._parts]
        described = dict(handler(core_schema.union_schema(parts))) if parts else {}
        return self._schema | described


def refusing(make: Callable[[Any], T]) -> Callable[[Any], T]:
    """Turn what the package's classes refuse into an error that gets its place."""

    def made(value: Any) -> T:
        try:
            return make(value)
        except ValidationError as fault:
            raise first_refusal(fault, value) from None
        except CmsError as fault:
            raise refusal(what=str(fault)) from None
        except RecursionError:  # from the words about a value of a thousand lists in lists
            raise refusal(what="{} is nested too deeply") from None

    return made


_UNSIGNED = r"([0-9]+/0*[1-9][0-9]*|([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?)\s*$"


def _number(minimum: int | None, *, positive: bool = False) -> Value:
    expected = "a number > 0" if positive else f"a number >= {minimum}"

    def read(value: Any) -> Fraction:
        found = None
        if isinstance(value, str):
            found = number_in(value)
        elif isinstance(value, Fraction):
            found = value
        elif type(value) is int:  # not a bool
            found = Fraction(value)
        elif isinstance(value, float):  # of a document that was never text; NaN is no number
            found = number_in(repr(value))
        if found is None:
            raise refusal(NUMBER_FORMS, fix=number_hint(value) if isinstance(value, str) else None)
        # comparing integers spares a Fraction a number
        if minimum is not None and found.numerator < minimum * found.denominator + positive:
            raise refusal(expected)
        return found

    least = {} if minimum is None else {"exclusiveMinimum" if positive else "minimum": minimum}
    text = r"^\s*[+-]?" + _UNSIGNED if minimum is None else r"^\s*\+?" + _UNSIGNED
    forms = [{"type": "number", **least}, {"type": "string", "pattern": text}]
    return Value(read, number_to_json, anyOf=forms)


def whole(minimum: int | None = 0, maximum: int | None = None) -> Value:
    """Declare a whole number; a text is none, so that counts look like counts."""

    def read(value: Any) -> int:
        if isinstance(value, Fraction) and value.denominator == 1:
            value = int(value)
        if type(value) is not int or (minimum is not None and value < minimum):
            fix = None
            if isinstance(value, str) and (found := number_in(value)) is not None:
                fix = f"write {format_exact(found)} without quotes"
            raise refusal("a whole number" + ("" if minimum is None else f" >= {minimum}"), fix=fix)
        if maximum is not None and value > maximum:
            raise refusal(f"at most {maximum}")
        return value

    schema: dict[str, Any] = {"type": "integer", "minimum": minimum, "maximum": maximum}
    return Value(read, **{key: value for key, value in schema.items() if value is not None})


def _seconds(value: Any) -> float:
    if isinstance(value, str):
        raise refusal("a JSON number", fix="write it without quotes")
    try:
        return float(read_number(value))
    except OverflowError:
        raise refusal("a time in seconds") from None


def _read_text(value: Any) -> str:
    if not isinstance(value, str):
        raise refusal("a text")
    return value


def name(kind: str) -> Value:
    """Declare the name of a thing of a kind."""
    pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029]+$"
    read = _read_text
    return Value(lambda value: checked_name(read(value), kind), type="string", pattern=pattern)


def matching(pattern: re.Pattern[str], expected: str) -> Value:
    """Declare a text that a pattern matches as a whole."""

    def read(value: Any) -> str:
        if not pattern.fullmatch(_read_text(value)):
            raise refusal(expected)
        return str(value)

    return Value(read, type="string", description=expected)


_EXACT = _number(0)
_ANY_EXACT = _number(None)
_POSITIVE = _number(0, positive=True)
read_number, read_any_number, read_positive = _EXACT.read, _ANY_EXACT.read, _POSITIVE.read
Exact = Annotated[Fraction, _EXACT]
Positive = Annotated[Fraction, _POSITIVE]
AnyExact = Annotated[Fraction, _ANY_EXACT]
Count = Annotated[int, whole()]
AtLeastOne = Annotated[int, whole(1)]
AnyWhole = Annotated[int, whole(None)]
Text = Annotated[str, Strict()]
Flag = Annotated[bool, Strict()]
#: The only floats of our files: they prove nothing and come back as written.
Seconds = Annotated[float, Value(_seconds, type="number", minimum=0)]
Sha256 = Annotated[str, matching(re.compile("[0-9a-f]{64}"), "64 hexadecimal digits in lower case")]


def left_out() -> Any:
    """Declare a key that may be left out, and never is null; see ``model_fields_set``."""
    return Field(None, exclude_if=lambda value: value is None)


def omitted(default: Any) -> Any:
    """Declare a key that is left out where its value is the default."""
    return Field(default, exclude_if=lambda value: value == default)
