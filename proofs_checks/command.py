"""``cms-check``: all that is rechecked independently of the package, by one command.

It imports nothing from the folder where it runs, which ``python -m`` would do: a file from somebody
else is rechecked where it lies, whatever lies beside it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

#: The module that serves what the first word asks for.
_ASKED = {
    "--proved": "proofs_checks.formal.__main__",
    "--loads": "proofs_checks.checker.loads",
    "--theorems": "proofs_checks.__main__",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] and given[0] in _ASKED:
        module = _ASKED[given.pop(0)]
    elif "--shards" in given or any(Path(word).is_dir() for word in given):
        module = "proofs_checks.streaming.__main__"
    else:
        module = "proofs_checks.checker.__main__"
    run: Callable[[Sequence[str]], int] = import_module(module).main
    return run(given)
