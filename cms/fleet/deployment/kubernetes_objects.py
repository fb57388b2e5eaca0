"""Objects of Kubernetes, as far as observations and exports read them."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AliasPath,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticUseDefault

from ...files.node import Node
from ...files.numerals import is_whole

__all__ = [
    "ClaimObject", "Container", "DeploymentObject", "DeviceEntry", "NodeObject", "PodObject",
    "SliceObject", "read_object",
]  # fmt: skip

_EXPECTED = {
    "bool_type": "true or false", "dict_type": "an object", "int_type": "a whole number",
    "list_type": "an array", "model_type": "an object", "string_type": "a text",
}  # fmt: skip


class _Part(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="ignore", frozen=True, strict=True)

    @field_validator("*", mode="before")
    @classmethod
    def _take_default_for_null(cls, value: Any, field: ValidationInfo) -> Any:
        if value is None and not cls.model_fields[field.field_name or ""].is_required():
            raise PydanticUseDefault
        return value


T = TypeVar("T", bound=_Part)


def read_object(node: Node, model: type[T]) -> T:
    """Read an object; unknown keys are ignored, and null stands for nothing.

    What is wrong raises FileError with its path, line and expectation.
    """
    value = node.value
    for key in ("metadata", "spec", "status") if isinstance(value, dict) else ():
        if not isinstance(value.get(key), dict | None):
            raise node.at(key).wrong("an object")
    try:
        return model.model_validate(value)
    except ValidationError as fault:
        first = fault.errors()[0]
        for step in first["loc"]:
            node = node.at(step)  # says which key is missing
        said = first["msg"].removeprefix("Input should be ")
        raise node.wrong(_EXPECTED.get(first["type"], said)) from None


def _at(*path: str, default: Any = ...) -> Any:
    """Declare what stands at a path."""
    return Field(default, validation_alias=AliasPath(*path))


def _keep_gpus(resources: Any) -> Any:
    """Leave out what is counted of others: CPUs and memory have units."""
    if not isinstance(resources, dict):
        return resources
    return {key: each for key, each in resources.items() if key.startswith("nvidia.com/")}


def _whole(count: Any) -> Any:
    return int(count) if isinstance(count, str) and is_whole(count) else count


#: Amounts of NVIDIA's resources: ``2`` or ``"2"``.
Amounts = Annotated[
    dict[str, Annotated[int, BeforeValidator(_whole), Field(ge=0)]], BeforeValidator(_keep_gpus)
]


class _Condition(_Part):
    type: str
    status: str


class _Taint(_Part):
    key: str
    value: str = ""
    effect: str


class _ClaimReference(_Part):
    resource_claim_name: str = ""  # empty where the pod has a template of it


class _RequestMapping(_Part):
    resource_name: str


class _Attribute(_Part):
    string: str = ""
    version: str = ""


class _AllocatedDevice(_Part):
    driver: str
    pool: str
    device: str
    admin_access: bool = False


class _Consumer(_Part):
    name: str


class NodeObject(_Part):
    """A Node."""

    name: str = _at("metadata", "name")
    labels: dict[str, str] = _at("metadata", "labels", default={})
    unschedulable: bool = _at("spec", "unschedulable", default=False)
    allocatable: Amounts = _at("status", "allocatable")
    capacity: Amounts = _at("status", "capacity", default={})
    conditions: list[_Condition] = _at("status", "conditions", default=[])


class Container(_Part):
    """A container of a pod."""

    name: str = ""
    limits: Amounts = _at("resources", "limits", default={})
    requests: Amounts = _at("resources", "requests", default={})
    restart_policy: str = ""


class PodObject(_Part):
    """A Pod."""

    name: str = _at("metadata", "name")
    namespace: str = _at("metadata", "namespace", default="default")
    labels: dict[str, str] = _at("metadata", "labels", default={})
    deletion_timestamp: Any = _at("metadata", "deletionTimestamp", default=None)
    containers: list[Container] = _at("spec", "containers")
    init_containers: list[Container] = _at("spec", "initContainers", default=[])
    node_name: str = _at("spec", "nodeName", default="")
    node_selector: dict[str, str] = _at("spec", "nodeSelector", default={})
    claims: list[_ClaimReference] = _at("spec", "resourceClaims", default=[])
    made_claims: list[_ClaimReference] = _at("status", "resourceClaimStatuses", default=[])
    extended_claim: _ClaimReference = _at(
        "status", "extendedResourceClaimStatus", default=_ClaimReference()
    )
    extended_resources: list[_RequestMapping] = _at(
        "status", "extendedResourceClaimStatus", "requestMappings", default=[]
    )
    phase: str = _at("status", "phase", default="")
    conditions: list[_Condition] = _at("status", "conditions", default=[])


class DeploymentObject(_Part):
    """A Deployment."""

    api_version: Literal["apps/v1"]
    kind: Literal["Deployment"]
    name: str = _at("metadata", "name")
    labels: dict[str, str] = _at("metadata", "labels", default={})
    strategy: Any = _at("spec", "strategy", default=None)
    containers: list[Container] = _at("spec", "template", "spec", "containers")


class DeviceEntry(_Part):
    """A device of a ResourceSlice."""

    name: str
    attributes: dict[str, _Attribute] = {}
    consumes_counters: list[Any] = []
    taints: list[_Taint] = []


class SliceObject(_Part):
    """A ResourceSlice."""

    name: str = _at("metadata", "name")
    driver: str = _at("spec", "driver")
    node_name: str = _at("spec", "nodeName", default="")
    pool: str = _at("spec", "pool", "name")
    generation: int = _at("spec", "pool", "generation")
    n_slices: Annotated[int, Field(ge=1)] = _at("spec", "pool", "resourceSliceCount")
    devices: list[DeviceEntry] = _at("spec", "devices", default=[])


class ClaimObject(_Part):
    """A ResourceClaim."""

    name: str = _at("metadata", "name")
    namespace: str = _at("metadata", "namespace", default="default")
    results: list[_AllocatedDevice] = _at("status", "allocation", "devices", "results", default=[])
    reserved_for: list[_Consumer] = _at("status", "reservedFor", default=[])
