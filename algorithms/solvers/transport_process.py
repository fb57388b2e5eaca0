"""The process that a large flow is solved in: numbers in at standard input, numbers out."""

from __future__ import annotations

import sys

import numpy as np

from .transport import Offers, solved


def main() -> None:
    """Read a flow, the lengths of its parts first, and write what goes along its arcs."""
    data = np.frombuffer(sys.stdin.buffer.read(), dtype="<i8").astype(np.int64)
    sizes = data[: len(Offers._fields)]
    parts = np.split(data[len(sizes) :], np.cumsum(sizes)[:-1])
    sys.stdout.buffer.write(solved(Offers(*parts)).astype("<i8").tobytes())


if __name__ == "__main__":
    main()
