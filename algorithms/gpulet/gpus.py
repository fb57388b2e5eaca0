"""GPUs that are cut into two shares or left whole, and what is free on them."""

from __future__ import annotations

import re
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
                share = share_of(block)
                if share is not None:
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

    def __init__(self, hosting: Hosting, shares: Shares, number: int | None = None) -> None:
        self._hosting, self._shares, self._left = hosting, shares, number
        self.machines: list[Machine] = []
        self._free: dict[int, list[Loaded]] = {share: [] for share in shares.blocks}
        self._occupied: dict[int, list[Loaded]] = {share: [] for share in shares.blocks}

    @property
    def uncut(self) -> bool:
        """Whether a GPU is left that is not cut yet."""
        return self._left is None or self._left > 0

    def free(self, least: int = 0) -> Iterator[tuple[int, Loaded]]:
        """Iterate over one free block of each share of at least some size, smallest first."""
        for share, blocks in self._free.items():
            if share >= least and blocks:
                yield share, blocks[0]

    def all_free(self) -> list[tuple[int, Loaded]]:
        """Return all free blocks, largest first."""
        shares = reversed(self._free.items())
        return [(share, loaded) for share, blocks in shares for loaded in blocks]

    def occupied(self) -> Iterator[Loaded]:
        """Iterate over the blocks that serve somebody, smallest first."""
        for blocks in self._occupied.values():
            yield from blocks

    def cut(self, share: int) -> Loaded:
        """Cut an uncut GPU so that it has such a share; return this, free."""
        if self._left is not None:
            self._left -= 1
        machine = Machine(self._shares.cuts[share])
        self.machines.append(machine)
        for loaded in machine.blocks:
            self._free[_size(loaded)].append(loaded)
        return self._free[share][-1]

    def occupy(self, loaded: Loaded) -> None:
        """Move a free block to those that serve somebody."""
        share = _size(loaded)
        blocks = self._free[share]
        del blocks[next(at for at, other in enumerate(blocks) if other is loaded)]
        self._occupied[share].append(loaded)

    def best_fit(self, share: int, rates: Rates, *, uncut_first: bool = False) -> bool:
        """Have a block of at least some size serve some rates, the one that leaves least.

        With ``uncut_first`` a GPU is cut though a free block would do. False if there is no such
        block, and no GPU to cut.
        """
        if not (uncut_first and self.uncut) and any(
            self._serves(loaded, rates) for _, loaded in self.free(share)
        ):
            return True
        return self.uncut and self._serves(self.cut(share), rates)

    def _serves(self, loaded: Loaded, rates: Rates) -> bool:
        """Have a free block serve some rates, if it can; whether it does."""
        loaded.hosted = self._hosting.host(loaded.block, rates)
        if loaded.hosted is None:
            return False
        self.occupy(loaded)
        return True


def _size(loaded: Loaded) -> int:
    share = share_of(loaded.block)
    assert share is not None  # in_pairs has seen to it
    return share
