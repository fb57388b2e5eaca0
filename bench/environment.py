"""What a figure depends on besides the code measured: memory, versions."""

from __future__ import annotations

import platform
import re
import sys
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, entry_points, version
from pathlib import Path

from cms.plugin.registry import OWN_DISTRIBUTION
from cms.running.code import code_digest

_DISTRIBUTIONS = (
    "configurable-machines", "numpy", "scipy", "ortools", "numba", "PySCIPOpt", "gurobipy",
    "distributed",
)  # fmt: skip


def forget_peak() -> None:
    """Let :func:`peak_memory` start anew, where the system can (Linux)."""
    with suppress(OSError):  # elsewhere the peak is the process's, which `peak_memory` says
        Path("/proc/self/clear_refs").write_text("5")


def peak_memory() -> int:
    """Return the largest resident size in bytes: since :func:`forget_peak`, or of the process."""
    import resource

    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return _status("VmHWM") or (size if sys.platform == "darwin" else 1024 * size)


def resident_memory() -> int | None:
    """Return the resident size in bytes, or None where the system does not say (not Linux)."""
    return _status("VmRSS")


def _status(field: str) -> int | None:
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(f"{field}:"):
                return 1024 * int(line.split()[1])
    return None


@cache
def versions() -> dict[str, str]:
    """Return the versions of Python, the libraries and the code under test, and the machine's kind.

    ``"code"`` is :func:`code_digest`, of ``cms``, ``algorithms`` and ``instances``.
    """
    found = {"python": platform.python_version()}
    for name in _DISTRIBUTIONS:
        with suppress(PackageNotFoundError):  # an extra that is not installed
            found[name.lower()] = version(name)
    found["platform"] = f"{platform.system()} {platform.machine()}"
    found["processor"] = processor()
    found["code"] = code_digest()
    return found


@cache
def provider(kind: str, method: str) -> dict[str, str]:
    """Return the distribution of a third party's algorithm with its version."""
    if kind in ("peer", "rule", "bound", "replay", "day", "change"):
        return {}
    found = {}
    for entry in entry_points(group="cms.algorithms", name=method):
        if entry.dist is not None:
            found[re.sub(r"[-_.]+", "-", entry.dist.name).lower()] = entry.dist.version
    found.pop(OWN_DISTRIBUTION, None)
    return found


def processor() -> str:
    """Return the processor's name as the system gives it."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
