"""ParvaGPU's two algorithms, written anew: segments by throughput a slice, best fit, repacking."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

from cms.errors import UnsupportedProblem

from .rule import MOST_INSTANCES, Instance, Placement, Services

if TYPE_CHECKING:
    from cms.problem.problem import Problem
    from cms.schedule.schedule import Schedule

#: A GPU with at most so many slices in use is emptied by the last step.
_SPARSE = 4


def parvagpu(problem: Problem, *, repack: bool = True) -> Schedule:
    """ParvaGPU's rule: the segment configurator, the segment allocator, and its last step.

    Each service takes segments of the size with the best throughput a slice, and for the rest the
    smallest that will do. Segments are placed large ones first, by best fit, never two of three
    slices on a GPU. Then, from the last GPU on, every GPU with at most four slices in use is
    emptied (``repack``): its segments are cut into ones of two slices, if these give more a slice,
    and of one, which go where there is room.

    On the artifact's data (S1 to S6, at most 3 processes an instance) this needs 2, 3, 5, 7, 13 and
    17 GPUs, as the authors' code does; without the last step 2, 3, 8, 11, 22 and 29. The latency
    rule is in the problem: what a block gives is the best throughput within it.

    References
    ----------
    M. Lee et al., ParvaGPU: Efficient Spatial GPU Sharing for Large-Scale DNN Inference in Cloud
    Environments, SC '24; artifact MunQ-Lee/ParvaGPU_SC24, Zenodo 13329587.
    """
    services = Services(problem)
    sizes = services.slices
    segments: list[Instance] = []
    for job, supply in enumerate(services.supply):
        if services.demands[job]:
            best = max(supply, key=lambda i: (Fraction(supply[i], sizes[i]), -sizes[i]))
            segments += services.instances(job, best)
    # Its table has the maximal layouts without that of two instances of three slices.
    layouts = [
        shape
        for shape in services.shapes
        if sum(n for n, size in zip(shape, sizes, strict=True) if size == 3) < 2
    ]
    placement = Placement(services, layouts)
    placement.add(segments, tightest=True)
    if repack:
        for number in reversed(range(len(placement.gpus))):
            if 0 < placement.used(placement.gpus[number]) <= _SPARSE:
                moved = placement.empty(number)
                small = [part for segment in moved for part in _cut(services, segment)]
                placement.add(small, tightest=True)
    return services.schedule(placement.gpus)


def _cut(services: Services, segment: Instance) -> Iterator[Instance]:
    """Cut a segment into ones of two slices and of one that give together what it gives."""
    job, supply = segment.job, services.supply[segment.job]
    one, two = (next((i for i in supply if services.slices[i] == size), None) for size in (1, 2))
    if one is None and two is None:
        yield segment
        return
    if one is not None and two is not None and supply[two] <= 2 * supply[one]:
        two = None
    rest = supply[segment.block]
    least = min(supply[i] for i in (one, two) if i is not None)
    if rest > MOST_INSTANCES * least:
        raise UnsupportedProblem(f"it would place {rest // least} instances one by one")
    while rest > 0:
        # As many of two slices as are filled, and for the rest the smallest that will do.
        one_will_do = two is None or (one is not None and supply[one] >= rest)
        part = one if one_will_do else two
        assert part is not None
        yield Instance(part, job, min(rest, supply[part]))
        rest -= supply[part]
