"""Models of documents: one class says how an object is read, checked, written and described.

The models are pydantic's; an error has the file, the line and the column of what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, model_serializer, model_validator
from pydantic_core import PydanticCustomError, PydanticSerializationError, core_schema

from ..errors import CmsError, FileError
from ..values.frozen import FrozenMap
from ..values.names import nearest
from .fields import RAISED, blaming, first_refusal, refusal, refusing, written_by
from .parsed import Parsed
from .schema_version import head, require_head
from .source import quoted

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, SerializerFunctionWrapHandler

T = TypeVar("T")


def drop_own_keys(value: Any) -> Any:
    """Leave out of an object the keys of the user's own."""
    if not isinstance(value, dict):
        return value
    return {key: entry for key, entry in value.items() if not key.startswith("x-")}


class Part(BaseModel):
    """An object of a document; keys that begin with ``x-`` are the user's own."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        arbitrary_types_allowed=True,
        defer_build=True,
        ser_json_inf_nan="constants",
    )
    #: What :meth:`build` makes: a class whose parameters and attributes are called as the fields.
    MAKES: ClassVar[Any] = None
    OWN_KEYS: ClassVar[bool] = True

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            raise refusal("an object")
        known = {field.alias or key: field for key, field in cls.model_fields.items()}
        if value.keys() == known.keys():
            return value
        own = {key for key in value if key not in known and cls._is_own(key)}
        for key in value:
            if key not in known and key not in own:
                hint = 'a key of your own starts with "x-"' if cls.OWN_KEYS else None
                raise refusal(
                    f"only {', '.join(known)}",
                    key,
                    what=f"unknown key {quoted(str(key))}",
                    fix=nearest(key, known.keys() - value.keys(), lead="") or hint,
                    at_key=True,
                )
        for key, field in known.items():
            if key not in value and field.is_required():
                raise refusal(f"the key {quoted(key)}", what=f"{{}} has no {quoted(key)}")
        return {key: entry for key, entry in value.items() if key not in own} if own else value

    @classmethod
    def _is_own(cls, key: object) -> bool:
        return cls.OWN_KEYS and isinstance(key, str) and key.startswith("x-")

    def build(self) -> Any:
        """Make what the object stands for; without `MAKES` it stands for itself."""
        return self if self.MAKES is None else self.MAKES(**dict(self))

    @classmethod
    def from_object(cls, value: Any, **other: Any) -> Self:
        """Describe an object by its attributes but for `other` fields, unchecked."""
        own = {key: getattr(value, key) for key in cls.model_fields if key not in other}
        return cls.from_fields(**own, **other)

    @classmethod
    def from_fields(cls, **fields: Any) -> Self:
        """Make the object of checked values, to write it."""
        for key, value in fields.items():
            if isinstance(value, FrozenMap):
                fields[key] = dict(value)
            elif isinstance(value, Sequence) and not isinstance(value, str | tuple):
                fields[key] = tuple(value)
        return cls.model_construct(**fields)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> dict[str, Any]:
        found = handler(schema)
        own = handler.resolve_ref_schema(found)
        if cls.OWN_KEYS:
            own["patternProperties"] = {"^x-": True}
        return dict(found)

    def to_json(self, *keys: str) -> dict[str, Any]:
        """Return the object, or what stands under some keys, as plain JSON values."""
        try:
            return self.model_dump(mode="json", by_alias=True, include=set(keys) or None)
        except PydanticSerializationError:
            if (fault := RAISED.__dict__.pop("fault", None)) is None:
                raise
            raise fault from None


def read_part(model: type[Part], value: Any, *at: str | int) -> Any:
    """Read a part that is chosen by hand, `at` a path below the value that is being read."""
    with blaming(*at):
        try:
            return model.model_validate(value)
        except ValidationError as fault:
            raise first_refusal(fault, value) from None


class Built:
    """An annotation of a class: it is read by building it from a part, and written by the part."""

    def __init__(self, part: type[Part]) -> None:
        self._part = part

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> Any:
        write = written_by(
            lambda it: (it if isinstance(it, Part) else self._part.from_object(it)).to_json()
        )
        return core_schema.no_info_after_validator_function(
            refusing(lambda part: part.build()), handler.generate_schema(self._part),
            serialization=write,
        )  # fmt: skip


class Document(Part):
    """A whole document, alone in a file or part of another: its head says what it holds."""

    KIND: ClassVar[str]

    @model_validator(mode="before")
    @classmethod
    def _check_head(cls, value: Any) -> Any:
        require_head(value, cls.KIND)
        return {key: entry for key, entry in value.items() if key not in ("format", "schema")}

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> dict[str, Any]:
        found = super().__get_pydantic_json_schema__(schema, handler)
        own, keys = handler.resolve_ref_schema(found), head(cls.KIND)
        own["properties"] = {k: {"const": v} for k, v in keys.items()} | own["properties"]
        own["required"] = [*keys, *own.get("required", [])]
        return dict(found)

    @model_serializer(mode="wrap")
    def _add_head(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {**head(self.KIND), **write(self)}


def _place(given: Parsed, fault: Exception) -> FileError:
    """Give a refusal, by a model or by what is made of it, its place in the file."""
    if isinstance(fault, FileError):
        return fault
    if isinstance(fault, ValidationError):
        fault = first_refusal(fault, given.value)
    told = dict(fault.context or {}) if isinstance(fault, PydanticCustomError) else {}
    path, what = told.pop("at", ()), told.pop("what") if told else str(fault)
    if not what:
        return given.wrong(told["expected"], *path, fix=told["fix"])
    label = given.label(*path)
    what = label + what[2:] if what.startswith("{}") else f"{label}: {what}"
    return given.error(what, *path, **told)


def read_as(document: Parsed | Mapping[str, Any], make: Callable[[Any], T]) -> T:
    """Make something of a document; what is refused gets its place in the file."""
    given = document if isinstance(document, Parsed) else Parsed(document)
    try:
        return make(given.value)
    except (ValidationError, PydanticCustomError, CmsError, RecursionError) as fault:
        raise _place(given, fault) from None


def build(model: type[Part], document: Parsed | Mapping[str, Any], **context: Any) -> Any:
    """Read an object and build what it stands for."""
    return read_as(document, lambda value: model.model_validate(value).build(**context))
