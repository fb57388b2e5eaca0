"""A scenario: services, the points measured for them, and what is known about the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from ...values.frozen import FrozenMap
from ..hardware import Gpu
from .capacity import CapacityRule
from .gpus_used import DEFAULT_GPU
from .load_curve import LoadCurve, PointKey
from .operating_point import OperatingPoint
from .posing import build_problem
from .queueing import DEFAULT_RULE, QueueingRule, queueing_rule
from .service import Service
from .serving_problem import ServingProblem


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Scenario:
    """A named serving problem with its known values and their source.

    Examples
    --------
    >>> from cms import load_instance
    >>> print(load_instance("S1"))
    S1: 6 models, 2692 requests/s in all (6 services, 1747 operating points)
    """

    name: str
    title: str
    source: str
    services: tuple[Service, ...]
    operating_points: tuple[OperatingPoint, ...]
    gpus: tuple[str | Gpu, ...] = (DEFAULT_GPU,)
    rule: str | QueueingRule = DEFAULT_RULE
    #: Reads the load curves of its operating points; for the rules that ask for them.
    load_curves: Callable[[], Mapping[PointKey, LoadCurve]] | None = None
    max_processes: int | None = None  #: in an instance, at most
    optimum: Fraction | None = None  #: the fewest GPUs (the least cost); None if unknown
    #: Known values of other quantities, such as ``{"LP_DW": Fraction(176, 15)}``.
    bounds: Mapping[str, Fraction] = field(default_factory=FrozenMap)

    def __str__(self) -> str:
        sizes = f"{len(self.services)} services, {len(self.operating_points)} operating points"
        return f"{self.name}: {self.title} ({sizes})"

    def __repr__(self) -> str:
        return f"Scenario({self.name!r})"

    def build_problem(self) -> ServingProblem:
        """Build the problem; see :func:`cms.fleet.serving.build_problem`."""
        return build_problem(
            self.services,
            self.operating_points,
            self.gpus,
            rule=self.rule,
            load_curves=self.curves_for(self.rule),
            max_processes=self.max_processes,
        )

    def curves_for(self, rule: str | QueueingRule) -> Mapping[PointKey, LoadCurve] | None:
        """Return the load curves if there are any and the rule asks for them."""
        how = queueing_rule(rule)
        if self.load_curves is None or not isinstance(how, CapacityRule) or how.certified:
            return None
        return self.load_curves()
