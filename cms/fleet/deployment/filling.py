"""What single GPUs are to hold, and how equal ones share instances out among themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .instance import Kind
from .model import FleetGpu
from .programs import Limits, Program
from .spots import Column

__all__ = ["Filling", "split"]


@dataclass
class Filling:
    """What a GPU is to hold: kinds by their numbers."""

    card: FleetGpu
    column: Column
    kept: Counter[int] = field(default_factory=Counter)
    new: Counter[int] = field(default_factory=Counter)


def split(
    contents: Sequence[Filling],
    kept: Mapping[int, int],
    new: Mapping[int, int],
    kinds: Sequence[Kind],
) -> None:
    """Share instances out among GPUs that are to be cut alike.

    Every sum that the program bounds by its number of GPUs (of a service, of a profile, of a kind
    kept) is shared out as evenly as whole numbers can be: each GPU gets its share rounded down or
    up. That this is always possible is the integer decomposition of transport polytopes (Baum and
    Trotter 1978), so that one GPU after the other can be cut off.
    """
    left = {("kept", kind): n for kind, n in kept.items() if n}
    left |= {("new", kind): n for kind, n in new.items() if n}
    for number, each in enumerate(contents):
        share = len(contents) - number
        program = Program()
        sums: dict[tuple[str, object], Counter[int]] = {}
        totals: Counter[tuple[str, object]] = Counter()
        variables = {}
        for (what, kind), n in left.items():
            variables[what, kind] = v = program.variable(-(-n // share))
            program.at_least({v: 1}, n // share)
            names = [("service", kinds[kind].work.service), ("profile", kinds[kind].profile)]
            for name in (*names, ("kind", kind)):
                sums.setdefault(name, Counter())[v] = 1
                totals[name] += n
        for name, terms in sums.items():
            program.at_most(terms, -(-totals[name] // share))
            program.at_least(terms, totals[name] // share)
        values = program.maximise({}, Limits()).values
        if values is None:
            raise AssertionError("a transport polytope has no whole point")
        for (what, kind), v in variables.items():
            if n := values[v]:
                (each.kept if what == "kept" else each.new)[kind] += n
                left[what, kind] -= n
