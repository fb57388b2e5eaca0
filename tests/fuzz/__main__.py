"""``python -m tests.fuzz FIRST AFTER [FOLDER]``: judge these mutants, print what is found.


With a folder, the files of each finding are kept in it.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.fuzz.judge import judge
from tests.fuzz.mutations import case


def main(first: int, after: int, keep: Path | None = None) -> int:
    """Return 1 if something was found."""
    found = 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(first, after):
            if number % 1_000 == 0:
                print(f"... {number}", file=sys.stderr, flush=True)
            for fault in judge(number, Path(folder)):
                found += 1
                print(fault, flush=True)
                for name, text in case(number).files.items() if keep else ():
                    path = (keep or Path()) / str(number) / name
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    print(f"{after - first} cases, {found} findings")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), *map(Path, sys.argv[3:])))
