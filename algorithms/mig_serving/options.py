"""The options of MIG-serving's two algorithms: what each number means and where it is from."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from cms.values.fields import CheckedFields

_SCORES = ("capped", "plain")
_BACKUPS = ("minimum", "mean")
_MOST_EXPLORATION = 10**6


@dataclass(frozen=True)
class MigServingFastOptions(CheckedFields):
    """Options of :class:`~algorithms.mig_serving.MigServingFast`.

    Parameters
    ----------
    score : {"capped", "plain"}, default "capped"
        What a machine is worth. ``plain``: the sum, over jobs, of the part of the demand that is
        missing times the part that the machine's blocks satisfy, each block at most the whole; so a
        public re-implementation scores. ``capped`` (ours): what they satisfy together counts up to
        what is missing. The two differ only where a machine can finish a job; there the first gives
        small jobs whole machines.
    mixed : int, default 3
        Different jobs on one machine, at most; 2 to 3 in MIG-serving, as remembered, and 3 in the
        re-implementation.
    last_mile : number, default 1/10
        Once no job is missing a larger part of its demand, one job more may be mixed, and scores
        are capped. The figure is the re-implementation's.

    Examples
    --------
    >>> MigServingFastOptions(last_mile="0.2").last_mile
    Fraction(1, 5)
    >>> MigServingFastOptions(mixed=9)
    Traceback (most recent call last):
        ...
    ValueError: mixed is 9; expected a whole number from 1 to 5
    """

    score: str = "capped"
    mixed: int = 3
    last_mile: Fraction = Fraction(1, 10)

    def __post_init__(self) -> None:
        self._one_of("score", _SCORES)
        self._whole("mixed", least=1, most=5)
        self._number("last_mile", most=1)


@dataclass(frozen=True)
class MigServingOptions(MigServingFastOptions):
    """Options of :class:`~algorithms.mig_serving.MigServing`.

    Figures without a source are ours: chosen by trial on S1 to S6 and on random workloads.

    Parameters
    ----------
    score, mixed, last_mile
        As :class:`MigServingFastOptions` has them; the score is that of the fast part alone, the
        search's is capped.
    rounds_without_gain : int, default 10
        The genetic algorithm ends after so many rounds that save nothing; about 10 in MIG-serving,
        as remembered.
    population : int, default 8
        Deployments that are kept from round to round, the fittest ones. Each has one child a round.
    erased : number, default 1/4
        Crossover erases at least one machine and at most this part of them, drawn at random.
    exchanges : int, default 4
        Mutation exchanges the jobs of so many pairs of equal blocks on different machines, where
        no machine then has more different jobs than are allowed.
    merging : number, default 1/4
        The chance that crossover also merges blocks of one job on a machine.
    playouts : int, default 20
        Of each tree search.
    drawn : int, default 5
        Unfinished jobs, drawn at random, that the children of a node serve; 5 in MIG-serving, as
        remembered.
    children : int, default 10
        The machines of the highest scores that a node is cut to; 10 in MIG-serving, as remembered.
    buckets : int, default 10
        Steps in which a playout sees how much of a demand is missing.
    exploration : number, default 1
        The weight of what is uncertain against what is known (UCB); 1 is the range of costs seen.
    backup : {"minimum", "mean"}, default "minimum"
        What a node knows of the playouts below it; one of the two in MIG-serving, as remembered.
    """

    rounds_without_gain: int = 10
    population: int = 8
    erased: Fraction = Fraction(1, 4)
    exchanges: int = 4
    merging: Fraction = Fraction(1, 4)
    playouts: int = 20
    drawn: int = 5
    children: int = 10
    buckets: int = 10
    exploration: Fraction = Fraction(1)
    backup: str = "minimum"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, least, most in (
            ("rounds_without_gain", 1, 10**9),
            ("population", 1, 1_000),
            ("exchanges", 0, 1_000),
            ("playouts", 1, 10**6),
            ("drawn", 1, 8),
            ("children", 1, 1_000),
            ("buckets", 1, 200),
        ):
            self._whole(name, least=least, most=most)
        self._number("erased", most=1)
        self._number("merging", most=1)
        self._number("exploration", most=_MOST_EXPLORATION)
        self._one_of("backup", _BACKUPS)
