"""Objects of Kubernetes, as far as observations and exports read them."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

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
    """A part of an object; unknown keys are ignored, and null stands for nothing."""

    model_config = ConfigDict(alias_generator=to_camel, extra="ignore", frozen=True, strict=True)

    @model_validator(mode="before")
    @classmethod
    def _leave_out_nulls(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        return {key: value for key, value in data.items() if value is not None}


T = TypeVar("T", bound=_Part)


def read_object(node: Node, model: type[T]) -> T:
    """Read an object; what is wrong raises FileError with its path, line and expectation."""
    try:
        return model.model_validate(node.value)
    except ValidationError as fault:
        first = fault.errors()[0]
        for key in first["loc"]:
            node = node.at(key)  # says which key is missing
        said = first["msg"].removeprefix("Input should be ")
        raise node.wrong(_EXPECTED.get(first["type"], said)) from None


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


class Metadata(_Part):
    """Of any object."""

    name: str
    namespace: str = "default"
    labels: dict[str, str] = {}
    deletion_timestamp: Any = None


class Condition(_Part):
    """Of a node or pod."""

    type: str
    status: str


class Taint(_Part):
    """What keeps pods from a device; with the effect None it is a remark."""

    key: str
    value: str = ""
    effect: str


class NodeStatus(_Part):
    """What a node offers."""

    allocatable: Amounts
    capacity: Amounts = {}
    conditions: list[Condition] = []


class NodeSpec(_Part):
    """Whether a node is cordoned."""

    unschedulable: bool = False


class NodeObject(_Part):
    """A Node."""

    metadata: Metadata
    spec: NodeSpec = NodeSpec()
    status: NodeStatus


class Resources(_Part):
    """What a container asks for."""

    limits: Amounts = {}
    requests: Amounts = {}


class Container(_Part):
    """A container of a pod."""

    name: str = ""
    resources: Resources = Resources()
    restart_policy: str = ""


class ClaimReference(_Part):
    """A claim that a pod has by name; one made from a template is named in the status."""

    resource_claim_name: str = ""


class RequestMapping(_Part):
    """A resource of the device plug-in that a claim serves."""

    resource_name: str


class ExtendedClaim(ClaimReference):
    """The claim that serves resources of the device plug-in."""

    request_mappings: list[RequestMapping] = []


class PodSpec(_Part):
    """What a pod runs."""

    containers: list[Container]
    init_containers: list[Container] = []
    node_name: str = ""
    node_selector: dict[str, str] = {}
    resource_claims: list[ClaimReference] = []


class PodStatus(_Part):
    """What a pod does."""

    phase: str = ""
    conditions: list[Condition] = []
    resource_claim_statuses: list[ClaimReference] = []
    extended_resource_claim_status: ExtendedClaim = ExtendedClaim()


class PodObject(_Part):
    """A Pod."""

    metadata: Metadata
    spec: PodSpec
    status: PodStatus = PodStatus()


class Template(_Part):
    """The pods of a Deployment."""

    spec: PodSpec


class DeploymentSpec(_Part):
    """How a Deployment brings its pods."""

    template: Template
    strategy: Any = None


class DeploymentObject(_Part):
    """A Deployment."""

    api_version: Literal["apps/v1"]
    kind: Literal["Deployment"]
    metadata: Metadata
    spec: DeploymentSpec


class Attribute(_Part):
    """Of a device; those that are numbers or booleans are not read."""

    string: str = ""
    version: str = ""


class DeviceEntry(_Part):
    """A device of a slice."""

    name: str
    attributes: dict[str, Attribute] = {}
    consumes_counters: list[Any] = []
    taints: list[Taint] = []


class Pool(_Part):
    """The pool of a slice, and how many slices it has."""

    name: str
    generation: int
    resource_slice_count: Annotated[int, Field(ge=1)]


class SliceSpec(_Part):
    """What a slice lists."""

    driver: str
    node_name: str = ""
    pool: Pool
    devices: list[DeviceEntry] = []


class SliceObject(_Part):
    """A ResourceSlice."""

    api_version: str = ""
    metadata: Metadata
    spec: SliceSpec


class AllocatedDevice(_Part):
    """A device that a claim was given."""

    driver: str
    pool: str
    device: str
    admin_access: bool = False


class AllocatedDevices(_Part):
    """The devices that a claim was given."""

    results: list[AllocatedDevice] = []


class Allocation(_Part):
    """What a claim was given."""

    devices: AllocatedDevices = AllocatedDevices()


class Consumer(_Part):
    """What a claim is reserved for."""

    name: str


class ClaimStatus(_Part):
    """What became of a claim."""

    allocation: Allocation = Allocation()
    reserved_for: list[Consumer] = []


class ClaimObject(_Part):
    """A ResourceClaim."""

    metadata: Metadata
    status: ClaimStatus = ClaimStatus()
