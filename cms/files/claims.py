"""Schedules and certificates as parts of a document, numbers read exactly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, TypeAdapter

from ..certificate.certificate import LARGEST_DEPTH, BlockPrices, Branch, Certificate
from ..certificate.quantity import (
    BlocksOfJob,
    BlocksOfType,
    MachinesOfConfiguration,
    MachinesOfType,
    MachinesWithBlocks,
    Quantity,
)
from ..problem.parts import Configuration
from ..schedule.contents import Content, Mix, shown_content
from ..schedule.schedule import MachineGroup, Schedule
from ..time_sharing.functions import PriceFunction
from ..time_sharing.prices import MixPrices
from . import fields as f
from . import model as m
from .parsed import Parsed

Block = Annotated[str, f.name("block")]
JobName = Annotated[str, f.name("job")]
_TYPE = f.name("machine type")
TypeName = Annotated[str, _TYPE]
_WEIGHTS = TypeAdapter(dict[TypeName, f.AtLeastOne])
Blocks = dict[Block, f.Count]
_AMOUNTS = TypeAdapter(dict[JobName, f.Positive])


def _read_content(value: Any) -> Content:
    if not isinstance(value, dict | str):
        raise f.refusal("the name of a job, or an object with the amount of each job of a mix")
    if isinstance(value, str):
        return str(f.name("job").read(value))
    if not value:
        raise f.refusal("at least one", what="{} has no job", fix="leave it out")
    return Mix(_AMOUNTS.validate_python(value))


def _write_content(content: Content) -> Any:
    if isinstance(content, str):
        return content
    return _AMOUNTS.dump_python(dict(content), mode="json")


_Content = Annotated[Any, f.Value(_read_content, _write_content, type=["string", "object"])]


class MachinesPart(m.Part):
    """Machines that have one configuration."""

    machine: TypeName | None
    configuration: Blocks
    count: f.AnyWhole

    def shape(self) -> Configuration:
        """Build the configuration."""
        refuse_empty(self.configuration, "configuration")
        with f.blaming("configuration"):
            return Configuration(self.configuration, self.machine)


def refuse_empty(blocks: Mapping[str, Any], *at: str, fix: str | None = None) -> None:
    """Refuse a configuration without a block."""
    if not any(blocks.values()):
        raise f.refusal("at least one", *at, what="{} has no block", fix=fix)


class GroupPart(MachinesPart):
    """Machines that have one configuration and serve the same jobs."""

    assignment: tuple[tuple[Block, _Content, f.AnyWhole], ...]

    def build(self) -> MachineGroup:
        """Build the group; no block and job may be there twice."""
        assignment: dict[tuple[str, Content], int] = {}
        for index, (block, content, count) in enumerate(self.assignment):
            if (block, content) in assignment:
                to = f"gives blocks {block!r} to {shown_content(content)} a second time"
                raise f.refusal(
                    "one entry for each block and job", "assignment", index,
                    what=f"{{}} {to}", fix="add the counts up",
                )  # fmt: skip
            assignment[block, content] = count
        return MachineGroup(self.shape(), assignment, self.count)

    @classmethod
    def from_object(cls, value: MachineGroup, **other: Any) -> Self:
        """Describe a group."""
        rows = [(block, content, n) for (block, content), n in value.assignment.items()]
        shape = value.configuration
        return cls.from_fields(
            machine=shape.machine, configuration=dict(shape.blocks), count=value.count,
            assignment=rows,
        )  # fmt: skip


class SchedulePart(m.Part):
    """A schedule; whether it serves a problem is for :func:`cms.check`."""

    MAKES: ClassVar[Any] = Schedule
    groups: tuple[Annotated[MachineGroup, m.Built(GroupPart)], ...]

    def build(self) -> Schedule:
        """Build the schedule."""
        return Schedule(self.groups)


def schedule_to_json(schedule: Schedule) -> dict[str, Any]:
    """Turn a schedule into the value that :func:`schedule_from_json` reads."""
    return SchedulePart.from_object(schedule).to_json()


def schedule_from_json(value: Parsed | Mapping[str, Any]) -> Schedule:
    """Turn a parsed value into a schedule; whether it serves a problem is for :func:`cms.check`."""
    found: Schedule = m.build(SchedulePart, value)
    return found


# --- certificates: their own ``to_json`` writes them ----------------------------------------------


class _FunctionPart(m.Part):
    slope: f.Exact
    steps: tuple[tuple[f.Exact, f.Exact], ...] = ()
    MAKES: ClassVar[Any] = PriceFunction


class LeafPart(m.Part):
    """The prices of a leaf, and of mixes the price functions of jobs."""

    prices: dict[str, f.Exact]
    limit_prices: dict[str, f.Exact] = Field(default={})
    multipliers: tuple[f.Exact, ...] = ()
    proper: Blocks = Field(default={})
    functions: dict[JobName, Annotated[PriceFunction, m.Built(_FunctionPart)]] = f.left_out()

    def build(self) -> Certificate:
        """Build the leaf."""
        found = dict(self)
        if "functions" in self.model_fields_set:
            return MixPrices(**found)
        del found["functions"]
        return BlockPrices(**found)


class _ShapePart(m.Part):
    OWN_KEYS: ClassVar[bool] = False
    MAKES: ClassVar[Any] = Configuration
    blocks: Blocks
    machine: TypeName | None = None


class _JobBlockPart(m.Part):
    OWN_KEYS: ClassVar[bool] = False
    MAKES: ClassVar[Any] = BlocksOfJob
    block: Block
    job: JobName


_Shape = Annotated[Configuration, m.Built(_ShapePart)]


def _read_types(value: Any) -> Any:
    return _WEIGHTS.validate_python(value) if isinstance(value, dict) else _TYPE.read(value)


class QuantityPart(m.Part):
    """What a branch is on: one of these."""

    OWN_KEYS: ClassVar[bool] = False
    machines_of_type: Annotated[Any, f.Value(_read_types, dict, type=["string", "object"])] = None
    machines_of: _Shape | None = None
    machines_with: _Shape | None = None
    blocks_of: Block | None = None
    blocks_of_job: Annotated[BlocksOfJob, m.Built(_JobBlockPart)] | None = None

    def build(self) -> Quantity:
        """Build the quantity."""
        given = {key: getattr(self, key) for key in self.model_fields_set}
        if len(given) != 1:
            expected = f"exactly one of {', '.join(type(self).model_fields)}"
            raise f.refusal(expected, what=f"{{}} has {len(given)} quantities")
        ((kind, value),) = given.items()
        if value is None:
            raise f.refusal("no null", kind)
        with f.blaming(kind):
            found: Quantity = _QUANTITIES[kind](value)
        return found


_QUANTITIES: dict[str, Any] = {
    "machines_of_type": MachinesOfType,
    "machines_of": MachinesOfConfiguration,
    "machines_with": MachinesWithBlocks,
    "blocks_of": BlocksOfType,
    "blocks_of_job": lambda quantity: quantity,
}


class BranchPart(m.Part):
    """A branch: what holds below it, and what above."""

    branch: Annotated[Any, m.Built(QuantityPart)]
    at_most: f.AnyWhole
    below: Any
    above: Any


def _read_tree(value: Any) -> Certificate:
    """Build a tree from its leaves up: it may be deeper than Python's stack."""
    nodes: list[tuple[tuple[str, ...], Any]] = [((), value)]
    parts: list[Any] = []
    for path, node in nodes:
        is_branch = isinstance(node, dict) and "branch" in node
        parts.append(m.read_part(BranchPart if is_branch else LeafPart, node, *path))
        if is_branch:
            if len(path) >= LARGEST_DEPTH:
                what = f"a certificate has more than {LARGEST_DEPTH} branches above one another"
                raise f.refusal(None, *path, what=f"{{}}: {what}")
            nodes += [((*path, side), node[side]) for side in ("below", "above")]
    built: dict[tuple[str, ...], Certificate] = {}
    for (path, _), part in zip(reversed(nodes), reversed(parts), strict=True):
        with f.blaming(*path):
            if isinstance(part, BranchPart):
                sides = (built.pop((*path, side)) for side in ("below", "above"))
                built[path] = Branch(part.branch, part.at_most, *sides)
            else:
                built[path] = part.build()
    return built[()]


#: A certificate, which writes itself.
Tree = Annotated[
    Any, f.Value(_read_tree, lambda tree: tree.to_json(), parts=(LeafPart, BranchPart))
]


def certificate_from_json(tree: Parsed | Mapping[str, Any]) -> Certificate:
    """Turn a parsed tree into a certificate; :meth:`Certificate.to_json` is the way back."""
    return m.read_as(tree, _read_tree)
