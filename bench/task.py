"""A task: one run of one method on one instance, described by plain values."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from importlib import import_module
from typing import TYPE_CHECKING, Any

from cms.plugin.registry import NamedProblem, load_instance
from cms.values.frozen import FrozenMap

if TYPE_CHECKING:
    from cms.problem.problem import Problem

#: The generators of random instances.
FAMILIES = "instances.families"
#: In the place of a module of generators: the family is the name of a registered instance.
NAMED = "cms.instances"


class Kind(StrEnum):
    """What a task does: ``SOLVE`` with :func:`cms.solve`, ``PEER`` with a general solver.

    ``RULE`` makes a schedule by a rule of :mod:`bench.rules`, ``BOUND`` a bound's certificate.

    ``WARM`` and ``COLD`` compare a small problem's solve, in a running process and in a fresh one,
    with a yardstick that alternates with it. ``REPLAY`` sends a service's requests through a loop,
    ``PROMISE`` those of a plan's services to their instances. ``DAY`` plays a policy of planning
    again on a trace of rates. ``CHANGE`` plans a transition from one deployment to the next.
    ``SHARDS`` packs a problem into a folder, and solves it out of core.
    """

    SOLVE = "solve"
    PEER = "peer"
    RULE = "rule"
    BOUND = "bound"
    WARM = "warm"
    COLD = "cold"
    REPLAY = "replay"
    PROMISE = "promise"
    DAY = "day"
    CHANGE = "change"
    SHARE = "share"
    SHARED_DAY = "shared_day"
    SHARDS = "shards"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where an instance comes from.

    ``module`` holds the function ``generate(family, **arguments)``; ``"cms.instances"`` stands for
    the registered instances, which take no arguments.
    """

    family: str
    arguments: Mapping[str, Any] = field(default_factory=FrozenMap)
    module: str = FAMILIES

    def __post_init__(self) -> None:
        object.__setattr__(self, "arguments", FrozenMap(self.arguments))

    def problem(self) -> Problem:
        """Make the instance."""
        if self.module != NAMED:
            problem: Problem = import_module(self.module).generate(self.family, **self.arguments)
            return problem
        known: Any = load_instance(self.family)
        if isinstance(known, NamedProblem):
            named: Problem = known.make()
            return named
        made: Problem = known.build_problem().problem
        return made

    def __str__(self) -> str:
        words = (f"{name}={value}" for name, value in self.arguments.items())
        return " ".join([self.family, *words])


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One run, described by plain values; it can be sent to another process or machine.

    A peer that exceeds the time limit by more than a moment is ended. ``warm_up``: the process
    solves two problems before its first run; ``fresh``: it has done nothing else; ``repetitions``:
    of what is alternated with a yardstick.
    """

    suite: str
    kind: Kind
    source: Source
    method: str
    time_limit: float
    options: Mapping[str, Any] = field(default_factory=FrozenMap)
    seed: int = 0
    warm_up: bool = True
    fresh: bool = False
    repetitions: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", FrozenMap(self.options))
        object.__setattr__(self, "time_limit", float(self.time_limit))

    @property
    def key(self) -> str:
        """A digest of what the task is: a row with the same key need not be run again."""
        text = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        document = {name: getattr(self, name) for name in self.__slots__}
        source = self.source
        return {
            **document,
            "options": dict(self.options),
            "source": {
                "family": source.family,
                "arguments": dict(source.arguments),
                "module": source.module,
            },
        }

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Task:
        """Read what :meth:`to_json` wrote."""
        source = Source(**document["source"])
        return Task(**{**document, "kind": Kind(document["kind"]), "source": source})

    def __str__(self) -> str:
        return f"{self.source}: {self.method}"
