"""The compact integer program (theory 1.2): a variable a configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from algorithms.integer_problem import listed
from cms.errors import UnsupportedProblem

from .program import Jobs, Program

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cms.problem.parts import Configuration
    from cms.problem.problem import Problem

#: Contents of machines of a size-bounded set beyond which the program is not built.
MOST_SHAPES = 100_000


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class CompactProgram(Program):
    """The program whose variables x count the machines of each configuration.

    Of a size-bounded set only maximal contents are listed. Build with :meth:`of`.
    """

    shapes: tuple[Configuration, ...]

    @classmethod
    def of(cls, problem: Problem) -> CompactProgram:
        """Build the program of a problem, in about a second for 10^5 jobs."""
        jobs = Jobs.of(problem)
        small = jobs.reduction.problem
        shapes, left_out = listed(small, MOST_SHAPES)
        if left_out:
            raise UnsupportedProblem(
                f"a size-bounded set has more than {MOST_SHAPES} maximal contents; the compact "
                "program would have a variable for each"
            )
        counts = np.array(
            [[shape.blocks.get(block, 0) for block in small.blocks] for shape in shapes],
            dtype=np.int64,
        ).reshape(len(shapes), len(small.blocks))
        machine_of, block_of = np.nonzero(counts)
        # one machine more of a configuration would leave all its blocks idle
        needed = np.where(counts > 0, np.ceil(jobs.useful / np.maximum(counts, 1)), 0.0)
        fields = jobs.program(
            [small.machine_type(shape.machine).name for shape in shapes],
            (block_of, machine_of, counts[machine_of, block_of]),
            needed.max(axis=1, initial=0.0),
        )
        return cls(shapes=tuple(shapes), **fields)

    def machines(self, whole: NDArray[np.int64]) -> dict[Configuration, int]:
        """Return the machines of each configuration."""
        return {shape: int(count) for shape, count in zip(self.shapes, whole, strict=True) if count}
