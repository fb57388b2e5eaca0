"""The options of MIG-serving's two algorithms: what each number means and where it is from."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from cms.values.fields import CheckedFields


@dataclass(frozen=True)
class MigServingFastOptions(CheckedFields):
    """Options of :class:`~algorithms.mig_serving.MigServingFast`.

    The figures are those of a public re-implementation, but for the score.

    Parameters
    ----------
    score : {"capped", "plain"}, default "capped"
        What a machine satisfies counts as its blocks give, each at most the whole demand
        (``plain``), or up to what is missing (``capped``, ours). The two differ where a machine can
        finish a job: there ``plain`` gives small jobs whole machines.
    mixed : int, default 3
        Different jobs on one machine, at most; 2 to 3 in MIG-serving, as remembered.
    last_mile : number, default 1/10
        Once no job is missing a larger part of its demand, one job more may be mixed, and scores
        are capped.
    """

    score: str = "capped"
    mixed: int = 3
    last_mile: Fraction = Fraction(1, 10)

    def __post_init__(self) -> None:
        self._one_of("score", ("capped", "plain"))
        self._whole("mixed", least=1, most=5)
        self._number("last_mile", most=1)


@dataclass(frozen=True)
class MigServingOptions(MigServingFastOptions):
    """Options of :class:`~algorithms.mig_serving.MigServing`.

    Figures are MIG-serving's, as remembered, or by trial on S1 to S6 and on random workloads.

    Parameters
    ----------
    score, mixed, last_mile
        As :class:`MigServingFastOptions` has them; the search's score is capped.
    rounds_without_gain : int, default 10
        The genetic algorithm ends after so many rounds that save nothing; MIG-serving's.
    population : int, default 8
        Deployments that are kept from round to round, the fittest ones. Each has one child a round.
    erased : number, default 1/4
        Crossover erases at least one machine and at most this part of them, drawn at random.
    playouts : int, default 20
        Of each tree search.
    drawn : int, default 5
        Unfinished jobs, drawn at random, that the children of a node serve; MIG-serving's.
    children : int, default 10
        The machines of the highest scores that a node is cut to; MIG-serving's.
    buckets : int, default 10
        Steps in which a playout sees how much of a demand is missing.
    backup : {"minimum", "mean"}, default "minimum"
        What a node knows of the playouts below it; one of the two in MIG-serving.
    """

    rounds_without_gain: int = 10
    population: int = 8
    erased: Fraction = Fraction(1, 4)
    playouts: int = 20
    drawn: int = 5
    children: int = 10
    buckets: int = 10
    backup: str = "minimum"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, most in (
            ("rounds_without_gain", 10**9),
            ("population", 1_000),
            ("playouts", 10**6),
            ("drawn", 8),
            ("children", 1_000),
            ("buckets", 200),
        ):
            self._whole(name, least=1, most=most)
        self._number("erased", most=1)
        self._one_of("backup", ("minimum", "mean"))
