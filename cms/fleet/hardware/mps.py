"""MPS shares of a whole GPU: configurations that are bounded by size instead of listed."""

from __future__ import annotations

from collections.abc import Iterable

from ...errors import InvalidOption
from ...problem.parts import SizeBoundedConfigurations
from ...values.numbers import Number, exact, format_exact

#: An MPS daemon serves at most this many clients of one GPU.
MPS_CLIENTS = 48


def mps_shares(
    steps: Iterable[Number], *, machine: str, prefix: str = "", max_clients: int = MPS_CLIENTS
) -> SizeBoundedConfigurations:
    """Share a whole GPU by MPS: any clients whose active-thread percentages sum to at most 100.

    MPS and MIG do not mix on one GPU here: the shares are of a GPU whose MIG mode is off, of the
    machine type `machine`. `steps` are the shares that a client can have, each once, in per cent of
    the GPU. The block of 40 per cent is called ``mps:40``, after a prefix. MPS allows at most 48
    clients on a GPU.

    Examples
    --------
    >>> shares = mps_shares([10, 25, 40], machine="a100-80gb-mps")
    >>> shares.capacity, shares.max_blocks, list(shares.sizes)
    (Fraction(100, 1), 48, ['mps:10', 'mps:25', 'mps:40'])
    """
    if type(max_clients) is not int or not 1 <= max_clients <= MPS_CLIENTS:
        raise InvalidOption(
            f"max_clients is {max_clients!r}; expected a whole number from 1 to {MPS_CLIENTS}, the "
            "clients that MPS serves on one GPU"
        )
    sizes = {}
    for step in steps:
        share = exact(step, "MPS step", error=InvalidOption)
        if not 0 < share <= 100:
            raise InvalidOption(
                f"MPS step is {format_exact(share)}; expected per cent of a GPU, "
                "more than 0 and at most 100"
            )
        block = f"{prefix}mps:{format_exact(share)}"
        if block in sizes:
            raise InvalidOption(f"MPS step {format_exact(share)} occurs twice; give it once")
        sizes[block] = share
    if not sizes:
        raise InvalidOption("no MPS steps; give the shares a client can have, such as [10, 25, 50]")
    return SizeBoundedConfigurations(sizes, capacity=100, machine=machine, max_blocks=max_clients)
