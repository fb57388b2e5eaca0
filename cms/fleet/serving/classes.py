"""What can stand side by side on a GPU, what that costs, and the classes of what slows a neighbour.

A *kind* is a model in batches of some size. Kinds are ordered by how much they slow others in the
mean and cut into classes; a mix is of the class of its highest kind.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from ...errors import InvalidProblem
from ...problem.parts import AnyConfiguration, Block, Configuration
from ...time_sharing.model import Point
from .interference import Slowdowns
from .operating_point import mps_share
from .time_sharing import SharedServing

#: A model, and how much of it is taken together.
Kind: TypeAlias = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Side:
    """A share of a GPU and the one beside it, as blocks of the problem without interference.

    `kinds` and `beside` are what may be served in some mix on ``block`` and on ``other``, in order;
    `profile` is that of ``block``, `slowdowns` are the GPU's.
    """

    block: Block
    other: Block
    profile: str
    kinds: tuple[Kind, ...]
    beside: tuple[Kind, ...]
    slowdowns: Slowdowns

    def factor(self, own: Kind, other: Kind) -> Fraction:
        """Return by which factor a kind here takes longer beside another one."""
        return self.slowdowns.factor(own[0], self.profile, own[1], *other)

    def missing(self) -> Iterator[tuple[Kind, Kind]]:
        """Iterate over the pairs that may come about and that were not measured."""
        factors = self.slowdowns.factors
        for own in self.kinds:
            for other in self.beside:
                if (own[0], self.profile, own[1], *other) not in factors:
                    yield own, other


def pair_of(shape: AnyConfiguration) -> tuple[Block, Block] | None:
    """Return the two shares that a configuration cuts a GPU into; None if it has no two.

    MIG instances have caches and memory of their own, so that none slows another.
    """
    if not isinstance(shape, Configuration):
        return None
    blocks = [block for block, count in shape.blocks.items() for _ in range(count)]
    if len(blocks) != 2 or any(mps_share(_profile(block)) is None for block in blocks):
        return None
    return blocks[0], blocks[1]


def _profile(block: Block) -> str:
    """The profile in a block's name, before which a GPU's key may stand."""
    key, colon, profile = block.partition(":")
    return block if key == "mps" or not colon else profile


def kind_of(serving: SharedServing, service: str, block: Block, amount: Fraction) -> Kind:
    """Return the kind of a point; a share runs one process, so that its batch is the amount."""
    return serving.service(service).model, serving.point(service, block, amount).batch


def admitted(serving: SharedServing, service: str, block: Block) -> Iterator[tuple[Point, Kind]]:
    """Iterate over the points of a service on a block that some mix may have, and their kinds.

    Whatever runs beside it, a batch takes as long as alone or longer: what is not admitted alone
    never is.
    """
    job, rule = serving.problem.job(service), serving.problem.rule
    for point in job.points.get(block, ()):
        if rule.admits(point.length, point.length, job.limit):
            yield point, kind_of(serving, service, block, point.amount)


def sides_of(serving: SharedServing, table: Mapping[str, Slowdowns]) -> list[list[Side]]:
    """Return the shares that have another one beside them, GPU by GPU.

    `serving` is without interference; `table` is by the GPU's key. InvalidProblem if a pair that
    may come about was not measured: the first one, and how many there are.
    """
    names = serving.problem.job_names
    found = []
    for one in serving.gpus:
        pairs = [
            pair
            for shape in serving.problem.configurations
            if shape.machine == one.key
            if (pair := pair_of(shape)) is not None
        ]
        kinds = {
            block: tuple(sorted({kind for n in names for _, kind in admitted(serving, n, block)}))
            for pair in pairs
            for block in pair
        }
        ordered = dict.fromkeys(side for p, q in pairs for side in ((p, q), (q, p)))
        found.append(
            [
                Side(p, q, serving.profile_of(p), kinds[p], kinds[q], table[one.key])
                for p, q in ordered
            ]
        )
    _require_all(side for sides in found for side in sides)
    return found


def _require_all(sides: Iterable[Side]) -> None:
    missing = [(side, own, other) for side in sides for own, other in side.missing()]
    if not missing:
        return
    side, own, other = missing[0]
    known = {(model, profile) for model, profile, *_ in side.slowdowns.factors}
    on = sorted(profile for model, profile in known if model == own[0])
    raise InvalidProblem(
        "there are pairs of operating points that could stand side by side and have no measured "
        f"slowdown, {len(missing)} in all; the first: {own[0]} on {side.slowdowns.gpu}, "
        f"{side.profile}, batch {own[1]}, beside {other[0]}, batch {other[1]} "
        f"(there are slowdowns of {own[0]} on "
        f"{', '.join(on) or 'no share of this GPU'}); measure the pairs, or leave the points out"
    )


def classes_of(sides: Collection[Side], classes: int) -> dict[Kind, int]:
    """Return the class of each kind on one GPU, from 1: those that slow others more are higher.

    What counts is the mean over all pairs that were measured, also of batches that keep no limit.
    The order decides how close the two images are, never whether they hold. Each of at most
    `classes` classes has as many kinds as the next, or one more.
    """
    caused: dict[Kind, list[Fraction]] = {}
    for side in sides:
        caused |= {other: [] for other in side.beside if other not in caused}
    for slowdowns in {id(side.slowdowns): side.slowdowns for side in sides}.values():
        for (_, _, _, model, batch), factor in slowdowns.factors.items():
            if (model, batch) in caused:
                caused[model, batch].append(factor)

    def mean(kind: Kind) -> Fraction:
        factors = caused[kind]
        return sum(factors, Fraction(0)) / len(factors) if factors else Fraction(1)

    ordered = sorted(caused, key=lambda kind: (mean(kind), kind))
    most = min(classes, len(ordered))
    return {kind: 1 + place * most // len(ordered) for place, kind in enumerate(ordered)}
