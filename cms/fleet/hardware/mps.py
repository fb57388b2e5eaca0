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

    MPS and MIG do not mix on one GPU here: the shares are of a GPU whose MIG mode is off.

    Parameters
    ----------
    steps : iterable of number
        The shares that a client can have, each once, in per cent of the GPU: > 0, at most 100. The
        block of a share of 40 per cent is called ``mps:40``.
    machine : str
        The machine type: the whole GPU, beside one that is cut up by MIG.
    prefix : str
        Put before every block's name, as for MIG profiles.
    max_clients : int, default 48
        At most this many clients on a GPU; MPS allows 48.

    Examples
    --------
    >>> shares = mps_shares([10, 25, 40], machine="a100-80gb-mps")
    >>> shares.capacity, shares.max_blocks, list(shares.sizes)
    (Fraction(100, 1), 48, ['mps:10', 'mps:25', 'mps:40'])
    """
    if isinstance(max_clients, bool) or not isinstance(max_clients, int):
        raise InvalidOption(
            f"max_clients is {max_clients!r}; expected a whole number from 1 to {MPS_CLIENTS}"
        )
    if not 1 <= max_clients <= MPS_CLIENTS:
        raise InvalidOption(
            f"max_clients is {max_clients}; expected 1 to {MPS_CLIENTS}, which is as many clients "
            "as MPS serves on one GPU"
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
