"""Objects of Kubernetes, as far as observations and exports read them."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Any, Literal, TypeVar

import pydantic
from pydantic import AliasPath, BeforeValidator, Field
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticUseDefault

from ...files.fields import refusal
from ...files.numerals import is_whole
from ...files.parsed import Parsed
from ...files.source import quoted
from .instance import State

_EXTENDED = "status", "extendedResourceClaimStatus"
_EXPECTED = {
    "bool_type": "true or false", "dict_type": "an object", "int_type": "a whole number",
    "list_type": "an array", "model_type": "an object", "string_type": "a text",
}  # fmt: skip


class _Part(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(alias_generator=to_camel, frozen=True, strict=True)

    @pydantic.model_validator(mode="before")
    @classmethod
    def _refuse_other_kinds(cls, value: Any) -> Any:
        """Refuse what is no object on the way to a key: its default would stand for it else."""
        for field in cls.model_fields.values():
            path, at = getattr(field.validation_alias, "path", ()), value
            for depth, step in enumerate(path):
                kind, words = (list, "an array") if isinstance(step, int) else (dict, "an object")
                if at is not None and not isinstance(at, kind):
                    raise refusal(words, *path[:depth])
                there = bool(at) if isinstance(step, int) else at is not None and step in at
                at = at[step] if at is not None and there else None
        return value

    @pydantic.field_validator("*", mode="before")
    @classmethod
    def _take_default_for_null(cls, value: Any, field: pydantic.ValidationInfo) -> Any:
        if value is None and not cls.model_fields[field.field_name or ""].is_required():
            raise PydanticUseDefault
        return value


T = TypeVar("T", bound=_Part)


def read_object(node: Parsed, model: type[T]) -> T:
    """Read an object; unknown keys are ignored, and null stands for nothing.

    What is wrong raises FileError with its path, line and expectation.
    """
    try:
        return model.model_validate(node.value)
    except pydantic.ValidationError as fault:
        first = fault.errors()[0]
        told, path = first.get("ctx", {}), (*first["loc"], *first.get("ctx", {}).get("at", ()))
        for end, step in enumerate(path if first["type"] == "missing" else ()):
            if not isinstance(outer := node.at(*path[:end]).value, dict):
                raise node.wrong("an object", *path[:end]) from None
            if step not in outer:
                what = f"{node.label(*path[:end])} has no {quoted(str(step))}"
                expected = f"the key {quoted(str(step))}"
                raise node.error(what, *path[:end], expected=expected) from None
        for bound, sign in (("ge", ">="), ("le", "<=")):
            if bound in told:
                raise node.wrong(f"a whole number {sign} {told[bound]}", *path) from None
        words = str(told.get("expected", "another value")).replace("'", '"')
        raise node.wrong(_EXPECTED.get(first["type"], words), *path) from None


#: Of one resource on a node or of a pod: replicas of shared GPUs, which are the most, are fewer.
_MOST = 1_000_000


def _at(first: str, *path: str | int, default: Any = ...) -> Any:
    """Declare what stands at a path."""
    return Field(default, validation_alias=AliasPath(first, *path))


def _keep_gpus(resources: Any) -> Any:
    """Leave out what is counted of others: CPUs and memory have units."""
    if not isinstance(resources, dict):
        return resources
    return {key: each for key, each in resources.items() if key.startswith("nvidia.com/")}


def _whole(count: Any) -> Any:
    if isinstance(count, Fraction) and count.denominator == 1:  # ``1.0``
        return int(count)
    return int(count) if isinstance(count, str) and is_whole(count) else count


#: Amounts of NVIDIA's resources: ``2`` or ``"2"``.
Amounts = Annotated[
    dict[str, Annotated[int, BeforeValidator(_whole), Field(ge=0, le=_MOST)]],
    BeforeValidator(_keep_gpus),
]


class _Attribute(_Part):
    string: str = ""
    version: str = ""


class _AllocatedDevice(_Part):
    driver: str
    pool: str
    device: str
    admin_access: bool = False


class _Object(_Part):
    name: str = _at("metadata", "name")
    namespace: str = _at("metadata", "namespace", default="")
    labels: dict[str, str] = _at("metadata", "labels", default={})

    @property
    def full_name(self) -> str:
        """Its name, with that of its namespace if it is of a kind that has one."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class NodeObject(_Object):
    """A Node."""

    unschedulable: bool = _at("spec", "unschedulable", default=False)
    allocatable: Amounts = _at("status", "allocatable")
    capacity: Amounts = _at("status", "capacity", default={})
    conditions: list[dict[str, Any]] = _at("status", "conditions", default=[])


class _ContainerPort(_Part):
    name: str = ""
    container_port: int


class Container(_Part):
    """A container of a pod."""

    name: str = ""
    ports: list[_ContainerPort] = []
    limits: Amounts = _at("resources", "limits", default={})
    requests: Amounts = _at("resources", "requests", default={})
    restart_policy: str = ""


class PodObject(_Object):
    """A Pod."""

    namespace: str = _at("metadata", "namespace", default="default")
    deletion_timestamp: Any = _at("metadata", "deletionTimestamp", default=None)
    containers: list[Container] = _at("spec", "containers")
    init_containers: list[Container] = _at("spec", "initContainers", default=[])
    node_name: str = _at("spec", "nodeName", default="")
    node_selector: dict[str, str] = _at("spec", "nodeSelector", default={})
    claims: list[dict[str, Any]] = _at("spec", "resourceClaims", default=[])
    made_claims: list[dict[str, Any]] = _at("status", "resourceClaimStatuses", default=[])
    extended_claim: str = _at(*_EXTENDED, "resourceClaimName", default="")
    extended_resources: list[dict[str, str]] = _at(*_EXTENDED, "requestMappings", default=[])
    phase: str = _at("status", "phase", default="")
    conditions: list[dict[str, Any]] = _at("status", "conditions", default=[])

    @property
    def state(self) -> State:
        """Whether its work begins, is there, or is asked to end."""
        if self.deletion_timestamp is not None:
            return State.DRAINING
        ready = {"type": "Ready", "status": "True"}.items()
        return State.RUNNING if any(ready <= c.items() for c in self.conditions) else State.STARTING


class DeploymentObject(_Object):
    """A Deployment."""

    api_version: Literal["apps/v1"]
    kind: Literal["Deployment"]
    strategy: Any = _at("spec", "strategy", default=None)
    containers: list[Container] = _at("spec", "template", "spec", "containers")


#: The largest weight of a backend, and the most backends of a rule, in the Gateway API v1.
MAX_WEIGHT, MAX_BACKENDS = 1_000_000, 16
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_Label = Annotated[str, Field(max_length=63, pattern=f"^{_LABEL}$")]


class BackendRef(_Part):
    """A Service that a route leads to, and its part of the requests."""

    name: Annotated[_Label, Field(pattern="^[a-z]")]
    port: Annotated[int, Field(ge=1, le=65_535)]
    weight: Annotated[int, Field(ge=0, le=MAX_WEIGHT)]


class ParentRef(_Part):
    """The Gateway of a route; without a namespace it is in that of the route."""

    name: Annotated[str, Field(max_length=253, pattern=rf"^{_LABEL}(\.{_LABEL})*$")]
    namespace: Literal[""] | _Label


class HttpRoute(_Part):
    """An HTTPRoute of the Gateway API v1 with one rule."""

    name: _Label
    parent: ParentRef | None
    backends: Annotated[tuple[BackendRef, ...], Field(min_length=1, max_length=MAX_BACKENDS)]


class DeviceEntry(_Part):
    """A device of a ResourceSlice."""

    name: str
    attributes: dict[str, _Attribute] = {}
    consumes_counters: list[Any] = []
    taints: list[dict[str, str]] = []


class SliceObject(_Object):
    """A ResourceSlice."""

    driver: str = _at("spec", "driver")
    node_name: str = _at("spec", "nodeName", default="")
    pool: str = _at("spec", "pool", "name")
    generation: int = _at("spec", "pool", "generation")
    n_slices: Annotated[int, Field(ge=1)] = _at("spec", "pool", "resourceSliceCount")
    devices: list[DeviceEntry] = _at("spec", "devices", default=[])


class ClaimObject(_Object):
    """A ResourceClaim."""

    namespace: str = _at("metadata", "namespace", default="default")
    results: list[_AllocatedDevice] = _at("status", "allocation", "devices", "results", default=[])
    user: str = _at("status", "reservedFor", 0, "name", default="")  # the first of several
