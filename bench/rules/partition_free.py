"""A lower bound that counts slices: which instances fit on one GPU together is left out."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from cms import BlockPrices

from .rule import Services

if TYPE_CHECKING:
    from cms.certificate.certificate import Certificate
    from cms.problem.problem import Problem


def partition_free(problem: Problem) -> Certificate:
    """Every job on the whole instances that cost it fewest slices, GPUs filled to the last slice.

    As block prices: an instance costs its compute slices' share of the most slices that a
    configuration has (7 on an A100), so that none is worth more than a GPU. A bound that ignores
    the partition rules is, as remembered, one of the yardsticks of MIG-serving (arXiv:2109.11067);
    that a job takes whole instances, which makes it larger, is new here.
    """
    services = Services(problem)
    filled = (
        sum(count * size for count, size in zip(shape, services.slices, strict=True))
        for shape in services.shapes
    )
    most = max([1, *filled])  # without configurations any price will do
    slice_price = problem.machine_types[0].cost / Fraction(most)
    return BlockPrices(
        {
            block: size * slice_price
            for block, size in zip(problem.blocks, services.slices, strict=True)
        }
    )
