"""Families of problems whose configurations are drawn, too."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cms.problem.parts import Configuration, MachineType

from .family import Tabular
from .machines import Machines, made
from .rows import Integers, table

_MOST_BLOCKS = 8


@dataclass(frozen=True)
class RandomConfigurations(Tabular):
    """Random lists of configurations of 1 to 8 blocks, with arbitrary integer tables.

    Some configurations may beat others; every block type occurs in one.

    Parameters
    ----------
    k : int, default 5
        Block types.
    configurations : int, default 10
        Configurations drawn (equal ones stay).
    largest : int, default 100
        Entries of the tables are uniform from 0 to this; every job has a positive one.
    """

    name = "random-configurations"
    number = 11
    title = "random configurations, arbitrary tables"
    stresses = "no hardware behind it: price regions of any shape, dominated configurations"
    source = "theory 6.10"

    k: int = 5
    configurations: int = 10
    largest: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        self._whole("k", least=1, most=1000)
        self._whole("configurations", least=1, most=10_000)
        self._whole("largest", least=1, most=10**6)

    def _machines(self, rng: np.random.Generator) -> Machines:
        counts = np.zeros((self.configurations, self.k), dtype=np.int64)
        for row in counts:
            types = rng.permutation(self.k)[: rng.integers(1, min(self.k, 4), endpoint=True)]
            size = rng.integers(1, _MOST_BLOCKS, endpoint=True)
            np.add.at(row, rng.choice(types, size), 1)
        for absent in np.flatnonzero(~counts.any(axis=0)):
            counts[rng.integers(0, self.configurations), absent] = 1
        blocks = [f"b{i}" for i in range(self.k)]
        shapes = [Configuration(dict(zip(blocks, row, strict=True))) for row in counts.tolist()]
        return made(blocks, shapes, [MachineType("machine")], counts.max(axis=0).tolist())

    def _supply(self, rng: np.random.Generator, count: int, machines: Machines) -> Integers:
        return table(rng, count, self.k, self.largest)
