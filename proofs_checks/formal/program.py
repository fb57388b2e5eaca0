"""The extracted program: where it is, and what it says of a line of words."""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "out" / "formal"
#: Of each kind: with zarith's integers, and with Coq's own.
KINDS = ("zarith", "pure")
#: Steps that one search of the program may take, of a job at a leaf or a machine of a set.
EFFORT = 50_000


class NotBuilt(RuntimeError):
    """The program is not there."""


def program(kind: str = "zarith") -> Path:
    """Where the program of a kind is; NotBuilt says how to make it."""
    path = BUILD / kind / "recheck"
    if not path.is_file():
        raise NotBuilt(
            f"there is no program {path.relative_to(ROOT)}; 'make formal' builds it, which takes "
            "Coq (coqc), ocamlfind and zarith"
        )
    return path


def _deep_stack() -> None:
    # Lists of a million jobs are gone through by recursion.
    _, most = resource.getrlimit(resource.RLIMIT_STACK)
    resource.setrlimit(resource.RLIMIT_STACK, (most, most))


def verdicts(lines: Sequence[str], kind: str = "zarith", effort: int = EFFORT) -> list[str]:
    """What the program says of plans, a line each as :func:`.plan_words` writes it.

    ``Rejected``, ``Infeasible``, ``Optimal c``, ``Between b c`` or ``AtLeast b``; a search of more
    steps than ``effort`` leaves a lower bound. The kind is ``zarith`` or ``pure``.
    """
    run = subprocess.run(
        [program(kind), str(effort)],
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=_deep_stack,
    )
    return run.stdout.splitlines()
