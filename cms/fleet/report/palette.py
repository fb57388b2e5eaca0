"""Colours and short keys of services, the same in the terminal and in pictures.

Colour never carries meaning alone: every coloured thing also shows the service's key.
"""

from __future__ import annotations

# Light enough for black text on each (contrast of at least 7 to 1), told apart by the common forms
# of colour blindness as far as twelve colours can be; after twelve services they repeat.
COLOURS = (
    "#77aadd", "#ee8866", "#44bb99", "#ffaabb", "#bbcc33", "#c9a6e8",
    "#eedd88", "#99ddff", "#d0a27a", "#e88bc0", "#9fd07f", "#b8c0cc",
)  # fmt: skip


def colour(place: int) -> str:
    """Return the colour of the service at a place of the services' list, as ``#rrggbb``.

    Examples
    --------
    >>> colour(0) == colour(12)
    True
    """
    return COLOURS[place % len(COLOURS)]
