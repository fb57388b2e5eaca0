"""GPUs that are cut into two shares or left whole, and what is free on them."""

from __future__ import annotations

import re
from itertools import chain
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from cms.plugin.algorithm import Support
from cms.problem.parts import Configuration

from ..mixes.machines import Loaded, Machine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cms.mixes.problem import TimeSharedProblem

    from ..mixes.hosting import Hosting, Rates

#: A whole GPU, in the per cent in which shares are counted.
WHOLE = 100
_SHARE = re.compile(r"(?:mps:)?([1-9][0-9]?|100)")


class Shares(NamedTuple):
    """The shares that a GPU can be cut into, by rising size in per cent.

    ``blocks`` has the block of each; ``cuts`` how a GPU is cut to have one: the rest, if any, is
    one share as well.
    """

    blocks: dict[int, str]
    cuts: dict[int, Configuration]

    @classmethod
    def of(cls, problem: TimeSharedProblem) -> Shares:
        """Read the shares off the names of blocks, as :func:`in_pairs` supports them."""
        cuts: dict[int, Configuration] = {}
        blocks: dict[int, str] = {}
        for shape in problem.listed_configurations:
            for block in shape.blocks:
                if share := share_of(block):
                    cuts.setdefault(share, shape)
                    blocks.setdefault(share, block)
        return cls(dict(sorted(blocks.items())), cuts)


def share_of(block: str) -> int | None:
    """Return the per cent of a GPU that a block's name says; None if it says none."""
    found = _SHARE.fullmatch(block)
    return int(found[1]) if found else None


def in_pairs(problem: TimeSharedProblem) -> Support:
    """Refuse what is not one unlimited kind of GPUs, left whole or cut into two shares."""
    (machine, *others) = problem.machine_types
    if not others and machine.limit is not None:
        return Support(
            False,
            f"machine type {machine.name!r} has a limit of {machine.limit} machines, and it takes "
            "as many as it needs; use auto",
        )
    refusal = _refusal(problem)
    return (
        Support(True)
        if refusal is None
        else Support(False, f"{refusal}; use mix_first_fit or auto")
    )


def _refusal(problem: TimeSharedProblem) -> str | None:
    if len(problem.machine_types) != 1:
        kinds = ", ".join(machine.name for machine in problem.machine_types)
        return f"there are several machine types ({kinds}), it knows one"
    names: dict[int, str] = {}
    for shape in problem.configurations:
        if not isinstance(shape, Configuration):
            expected = "expected listed ones, of one block or two"
            return f"its configurations are a size-bounded set; {expected}"
        sizes: list[int] = []
        for block, count in shape.blocks.items():
            share = share_of(block)
            if share is None:
                return (
                    f"the block {block!r} is no share of a GPU; expected names such as mps:60 or 60"
                )
            if names.setdefault(share, block) != block:
                return f"the blocks {names[share]!r} and {block!r} are the same share"
            sizes += [share] * min(count, WHOLE)
        if len(sizes) > 2 or sum(sizes) != WHOLE:
            cut = " + ".join(map(str, sorted(sizes))) or "nothing"
            return (
                f"a GPU is cut into {cut}; gpulet leaves it whole or cuts it into two shares of "
                f"{WHOLE} % together"
            )
    return None


class Gpus:
    """Some GPUs: which shares are free and which are occupied; as many as needed by default."""

    def __init__(self, hosting: Hosting, shares: Shares, number: float = inf) -> None:
        self._hosting, self._shares, self._uncut = hosting, shares, number
        self.machines: list[Machine] = []
        self._sizes = {block: share for share, block in shares.blocks.items()}
        self._free: dict[int, list[Loaded]] = {share: [] for share in shares.blocks}
        self._occupied: dict[int, list[Loaded]] = {share: [] for share in shares.blocks}

    def free(self) -> list[Loaded]:
        """Return all free blocks, largest first."""
        return [loaded for blocks in reversed(self._free.values()) for loaded in blocks]

    def occupied(self) -> Iterator[Loaded]:
        """Iterate over the blocks that serve somebody, smallest first."""
        return chain.from_iterable(self._occupied.values())

    def best_fit(self, share: int, rates: Rates, *, uncut_first: bool = False) -> bool:
        """Have a block of at least some size serve some rates, the one that leaves least.

        With ``uncut_first`` a GPU is cut though a free block would do. False if there is no such
        block, and no GPU to cut.
        """
        free = (blocks[0] for size, blocks in self._free.items() if size >= share and blocks)
        if not (uncut_first and self._uncut) and any(self.serve(each, rates) for each in free):
            return True
        if not self._uncut:
            return False
        self._uncut -= 1
        self.machines.append(Machine(self._shares.cuts[share]))
        for loaded in self.machines[-1].blocks:
            self._free[self._sizes[loaded.block]].append(loaded)
        return self.serve(self._free[share][-1], rates)

    def serve(self, loaded: Loaded, rates: Rates) -> bool:
        """Have a free block serve some rates, if it can; whether it does."""
        loaded.hosted = self._hosting.host(loaded.block, rates)
        if loaded.hosted is None:
            return False
        share = self._sizes[loaded.block]
        self._free[share].remove(loaded)
        self._occupied[share].append(loaded)
        return True
