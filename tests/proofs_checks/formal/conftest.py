"""The proved program, where Coq is there to build it."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from collections.abc import Callable

import pytest

from proofs_checks.formal.program import BUILD, ROOT

COQ = ROOT / "proofs_checks" / "formal" / "coq"


@pytest.fixture(scope="session")
def make() -> Callable[[str], str]:
    """Run ``make`` on a target of the Coq files; the test is skipped where there is no Coq."""
    for tool in ("coqc", "ocamlfind"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not there; 'make formal' installs it where it can")
    if subprocess.run(["ocamlfind", "query", "zarith"], capture_output=True).returncode:
        pytest.skip("OCaml's zarith is not there; 'make formal' installs it where it can")

    def run(target: str) -> str:
        BUILD.mkdir(parents=True, exist_ok=True)
        with (BUILD / "lock").open("w") as lock:  # one worker builds, the others wait
            fcntl.flock(lock, fcntl.LOCK_EX)
            found = subprocess.run(["make", "-C", COQ, target], capture_output=True, text=True)
        assert found.returncode == 0, found.stderr
        return found.stdout

    return run


@pytest.fixture(scope="session")
def built(make: Callable[[str], str]) -> None:
    """Both programs are there, and up to date."""
    make("programs")
