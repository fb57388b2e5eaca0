"""A plan's GPUs as bars of slices: what the terminal report and the pictures both draw."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from ...values.words import decimal
from ..serving.operating_point import mps_share
from ..serving.starts import placed_instances

if TYPE_CHECKING:
    from ..hardware import Gpu
    from ..serving import GpuGroup, Instances, OperatingPoint, Plan

_PER_CENT = 100
#: What stands on a cell for what becomes of its instance, and for its state.
MARKS = {"kept": "=", "restarted": "~", "created": "+", "deleted": "-"}
STATES = {"starting": "^", "draining": "v", "hollow": "!", "split": "%", "unknown": "?"}


class Slot(NamedTuple):
    """The part of a frame in which an instance serves one of the services that share it.

    Attributes
    ----------
    service : str
    share : Fraction
        Of the frame.
    point : str
        How it runs ("b=16").
    """

    service: str
    share: Fraction
    point: str


@dataclass(frozen=True, slots=True)
class Cell:
    """A run of slices on a GPU: an instance, or nothing.

    Parameters
    ----------
    start, width : int
        In slices of the bar.
    profile : str
        The instance's profile; empty for slices that no instance takes.
    service : str or None
        What runs on it, the first where several share it; None for an idle instance and for free
        slices.
    point : str
        How it runs ("p=2 b=16", or "frame 24.1 ms"); empty if nothing does.
    owner : str
        Whose it is, if it is not ours.
    state : str
        ``starting``, ``draining``, ``hollow`` or ``split``; ``unknown`` for instances whose starts
        are not known; empty for what runs.
    mark : str
        What becomes of it: ``kept``, ``restarted``, ``created`` or ``deleted``; empty if that is
        not the question.
    slots : tuple of Slot
        What services share it in time, in turn; empty if it serves at most one.
    """

    start: int
    width: int
    profile: str = ""
    service: str | None = None
    point: str = ""
    owner: str = ""
    state: str = ""
    mark: str = ""
    slots: tuple[Slot, ...] = ()

    @property
    def sign(self) -> str:
        """What becomes of it and its state as letters, beside which no colour is needed."""
        return MARKS.get(self.mark, "") + STATES.get(self.state, "")


@dataclass(frozen=True, slots=True)
class Bar:
    """One way a GPU is used, and how many GPUs are used so.

    Parameters
    ----------
    gpu : str
        The GPU's key.
    slices : int
        Memory slices of the GPU; 100 for a GPU that is shared by MPS in per cent.
    cells : tuple of Cell
        In the order of their starts; together they cover the bar.
    count : int
        GPUs.
    """

    gpu: str
    slices: int
    cells: tuple[Cell, ...]
    count: int = 1

    @property
    def shared(self) -> bool:
        """Whether the GPU is shared by MPS instead of cut up by MIG."""
        return self.slices == _PER_CENT


class Occupancy(NamedTuple):
    """How much of the GPUs of one key serves.

    Attributes
    ----------
    gpus : int
        How many there are in the plan.
    cut : int
        How many of them are cut up by MIG; the slices below are theirs.
    compute, memory : int
        Slices of instances that serve.
    """

    gpus: int
    cut: int
    compute: int
    memory: int


def bars(plan: Plan) -> tuple[Bar, ...]:
    """Return the distinct GPUs of a plan, the most frequent of each GPU type first.

    Returns
    -------
    tuple of Bar
        Empty if there is no schedule.
    """
    order = {service.name: place for place, service in enumerate(plan.serving.services)}
    types = [gpu.key for gpu in plan.serving.gpus]
    found: Counter[tuple[str, int, tuple[Cell, ...]]] = Counter()
    for group in plan.groups:
        gpu = plan.serving.gpu_of(group.gpu)
        if any(mps_share(instances.profile) is not None for instances in group.instances):
            found[gpu.key, _PER_CENT, tuple(_shares(group))] += group.count
        else:
            found[gpu.key, gpu.memory_slices, tuple(_slices(gpu, group))] += group.count

    def rank(bar: Bar) -> tuple[object, ...]:
        look = [(-cell.width, order.get(cell.service or "", len(order))) for cell in bar.cells]
        return types.index(bar.gpu), bar.slices, -bar.count, look

    return tuple(sorted((Bar(*bar, count) for bar, count in found.items()), key=rank))


def _slices(gpu: Gpu, group: GpuGroup) -> Iterator[Cell]:
    """Draw the instances of a GPU that is cut up by MIG."""
    at = 0
    for placed, instances in placed_instances(gpu, group):
        if placed.start > at:
            yield Cell(at, placed.start - at)
        width = gpu.profile(placed.profile).memory
        yield _cell(placed.start, width, instances)
        at = placed.start + width
    if at < gpu.memory_slices:
        yield Cell(at, gpu.memory_slices - at)


def widths_of(drawn: Iterable[Bar]) -> str:
    """Say what the widths in some bars are: slices where GPUs are cut, shares under MPS."""
    shared = {bar.shared for bar in drawn}
    if shared == {True}:
        return "per cent of a GPU, under MPS"
    return "memory slices" + (", under MPS per cent" if shared == {True, False} else "")


def _shares(group: GpuGroup) -> Iterator[Cell]:
    """Line up the shares of a GPU under MPS; one that nothing uses is no process, so not drawn."""
    at = 0
    used = [instances for instances in group.instances if instances.serves]
    for instances in sorted(used, key=lambda own: -(mps_share(own.profile) or 0)):
        for _ in range(instances.count):
            width = mps_share(instances.profile) or 0
            yield _cell(at, width, instances)
            at += width
    if at < _PER_CENT:
        yield Cell(at, _PER_CENT - at)


def _cell(start: int, width: int, instances: Instances) -> Cell:
    if not instances.serves:
        return Cell(start, width, instances.profile)
    serves, frame = instances.serves, instances.frame_ms
    if len(serves) == 1 or frame is None:
        return Cell(start, width, instances.profile, serves[0].service, setting(serves[0].point))
    slots = tuple(
        Slot(one.service, (one.length_ms or Fraction(0)) / frame, setting(one.point, brief=True))
        for one in serves
    )
    how = f"frame {decimal(frame)} ms"
    return Cell(start, width, instances.profile, serves[0].service, how, slots=slots)


def setting(point: OperatingPoint, *, brief: bool = False) -> str:
    """Write how an instance runs: ``p=2 b=16``; in brief without a single process.

    Examples
    --------
    >>> from cms.fleet.serving import OperatingPoint
    >>> point = OperatingPoint("bert", "a100-80gb", "mps:40", 1, 16, 400, 40)
    >>> setting(point), setting(point, brief=True)
    ('p=1 b=16', 'b=16')
    """
    batch = f"b={point.batch}"
    return batch if brief and point.processes == 1 else f"p={point.processes} {batch}"


def occupancy(gpu: Gpu, drawn: Sequence[Bar]) -> Occupancy:
    """Count the slices that serve on the GPUs of one type.

    Parameters
    ----------
    gpu : Gpu
    drawn : sequence of Bar
        Bars of this GPU's key.
    """
    cut = [bar for bar in drawn if not bar.shared]
    serving = [
        (bar.count, gpu.profile(cell.profile)) for bar in cut for cell in bar.cells if cell.service
    ]
    return Occupancy(
        sum(bar.count for bar in drawn),
        sum(bar.count for bar in cut),
        sum(count * profile.compute for count, profile in serving),
        sum(count * profile.memory for count, profile in serving),
    )
