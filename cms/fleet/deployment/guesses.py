"""What a device plug-in does not tell, and may therefore be another's."""

from __future__ import annotations

from collections.abc import Collection

from .instance import Instance
from .model import FleetGpu, FleetNode

__all__ = ["doubtful", "in_doubt"]


def doubtful(node: FleetNode) -> dict[str, str]:
    """Return the profiles of a node of which a managed instance may be foreign, and the owner."""
    return {
        each.profile: each.owner
        for card in node.gpus
        for each in card.instances
        if each.is_guessed and each.owner is not None
    }


def in_doubt(card: FleetGpu, profiles: Collection[str]) -> tuple[Instance, ...]:
    """Return the managed instances of a GPU that may be foreign; see `doubtful` for `profiles`.

    What works there may change, since pods say so themselves; the instances have to stay.
    """
    return tuple(
        each
        for each in card.instances
        if each.is_managed and each.is_guessed and each.profile in profiles
    )
