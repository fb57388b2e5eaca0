"""Where ``cms colocate match`` has its weights from: measured pairs, or a predictor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from . import options

if TYPE_CHECKING:
    from fractions import Fraction

    from cms.fleet.colocation import (
        ColocationProblem,
        ColocationSolution,
        MeasuredPair,
        PredictedWeights,
        TableWeights,
    )
    from cms.fleet.colocation.problem import WeightFunction
    from cms.fleet.report.page import Part

    from .settings import Colocation


def limit_by(settings: Colocation, predictor: Path | None) -> str:
    """Return which predicted slowdown is held against the limit."""
    from cms.fleet.colocation.predictor.predictor import LIMITS_BY
    from cms.values.names import nearest

    given, place = settings.limit_by, "[colocation] limit_by"
    if given is None:
        return LIMITS_BY[0]
    if predictor is None:
        raise options.usage_error("it goes with --predictor", place)
    if given not in LIMITS_BY:
        raise options.usage_error(
            f"{given!r}{nearest(given, LIMITS_BY)}; expected {' or '.join(LIMITS_BY)}", place
        )
    return given


class Weights(Protocol):
    """Weights, and what is to be said of them."""

    @property
    def function(self) -> WeightFunction:
        """Of an online and an offline class."""

    @property
    def reasons(self) -> TableWeights | PredictedWeights:
        """Why pairs are forbidden."""

    @property
    def known(self) -> TableWeights | None:
        """What reports may say of pairs, where the weights know more than :meth:`parts` says."""

    def warnings(self, problem: ColocationProblem) -> Iterable[str]:
        """Say what is odd about a problem with these weights."""

    def parts(self, problem: ColocationProblem, solution: ColocationSolution) -> Sequence[Part]:
        """Say what stands behind a plan."""


@dataclass(frozen=True, slots=True)
class By:
    """The options that say where weights are from."""

    pairs: Path | None
    predictor: Path | None
    profiles: Path | None
    settings: Colocation

    def refuse_the_rest(self) -> None:
        """Refuse options that do not go together."""
        if (self.pairs is None) == (self.predictor is None):
            both = self.pairs is not None
            said = "--pairs and --predictor" + (" are both given" if both else ": none is given")
            raise options.usage_error(
                f"{said}; expected one of them: a table of measured pairs, or a trained predictor"
            )
        if self.predictor is None and self.profiles is not None:
            raise options.usage_error("it goes with --predictor", "--profiles")
        limit_by(self.settings, self.predictor)

    def weights(self) -> Weights:
        """Read what the weights are from."""
        from cms.fleet.colocation import (
            PredictedWeights,
            read_measured_pairs,
            read_predictor,
            read_profiles,
            table_weights,
        )

        margin, lowest_share = self.settings.margin, self.settings.lowest_share
        if self.pairs is not None:
            measured = read_measured_pairs(self.pairs)
            table = table_weights(measured, margin=margin, lowest_share=lowest_share)
            return _Measured(table, measured)
        assert self.predictor is not None
        more = None if self.profiles is None else read_profiles(self.profiles)
        return _Predicted(
            PredictedWeights(
                read_predictor(self.predictor), margin=margin, lowest_share=lowest_share,
                lower_end=self.settings.lower_end, profiles=more,
                limit_by=limit_by(self.settings, self.predictor),
            )
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Measured:
    function: TableWeights
    measured: tuple[MeasuredPair, ...]

    @property
    def known(self) -> TableWeights:
        """The table: what was measured."""
        return self.function

    @property
    def reasons(self) -> TableWeights | PredictedWeights:
        """The table as well."""
        return self.function

    def warnings(self, problem: ColocationProblem) -> Iterable[str]:
        """Say which limits no measurement keeps."""
        from cms.values.words import decimal

        least: dict[tuple[str, str], Fraction] = {}
        for pair in self.measured:
            place, slowdown = (pair.online_model, pair.device), pair.online_slowdown
            least[place] = min(slowdown, least.get(place, slowdown))
        limits = {(gpus.model, gpus.device, gpus.slowdown_limit): None for gpus in problem.online}
        for model, device, limit in limits:
            known = least.get((model, device))
            if limit is not None and known is not None and limit < known:
                yield (
                    f"the slowdown limit of {model!r} on {device!r} is {decimal(limit)}, and the "
                    f"least slowdown measured is {decimal(known)}: nothing is placed there"
                )

    def parts(self, problem: ColocationProblem, solution: ColocationSolution) -> Sequence[Part]:
        """Say nothing: the pairs' weights are what was measured."""
        return ()


@dataclass(frozen=True, slots=True)
class _Predicted:
    function: PredictedWeights

    @property
    def known(self) -> None:
        """Nothing more than the report of predictions says."""

    @property
    def reasons(self) -> TableWeights | PredictedWeights:
        """What is predicted."""
        return self.function

    def warnings(self, problem: ColocationProblem) -> Iterable[str]:
        """Say which shares the predictor never saw, and which limits it sees kept nowhere."""
        from cms.values.words import decimal

        least, most = self.function.predictor.shares
        given = [share for share in problem.shares if share]
        outside = [share for share in given if not least <= share <= most]
        if outside:
            trained = f"{least} %" if least == most else f"{least} to {most} %"
            yield (
                f"the predictor was trained on shares of {trained}, and GPUs have "
                f"{min(outside)} to {max(outside)} % left: what another share costs it "
                "cannot know"
            )
        limits = {
            (gpus.model, gpus.device, gpus.slowdown_limit): gpus
            for gpus, share in zip(problem.online, problem.shares, strict=True)
            if share and gpus.slowdown_limit is not None
        }
        for (model, device, limit), gpus in limits.items():
            weights = self.function
            ends = [weights.compared(weights.pair(gpus, work)) for work in problem.offline]
            if min(ends, default=1) > limit:
                least_end = "any" if min(ends) == float("inf") else f"{min(ends):.2f}"
                of = "upper end of a predicted" if weights.limit_by == "upper" else "expected"
                yield (
                    f"the slowdown limit of {model!r} on {device!r} is {decimal(limit)}, and the "
                    f"least {of} slowdown is {least_end}: nothing is placed there"
                )

    def parts(self, problem: ColocationProblem, solution: ColocationSolution) -> Sequence[Part]:
        """Say what is predicted of the pairs in the plan."""
        from cms.fleet.report.catalogue import predicted_parts

        return predicted_parts(problem, solution, self.function)
