"""``python -m bench.micro``: measure the hot paths, compare with the baseline, or save it."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.environment import versions
from bench.tables import Table, columns, seconds
from cms.files.source import write_bytes
from cms.solving.driver import available_cores

_HERE = Path(__file__).parent
BASELINE = _HERE / "baseline.json"
_YARDSTICK = "test_yardstick"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line: 0, or 1 if a benchmark fails or has become much slower."""
    parser = argparse.ArgumentParser(prog="python -m bench.micro", description=__doc__)
    parser.add_argument("--save", action="store_true", help="make what is measured the baseline")
    parser.add_argument(
        "--slower", type=float, default=2.0, metavar="X",
        help="exit with 1 if a median, in yardsticks, is X times the baseline's (default: 2)",
    )  # fmt: skip
    parser.add_argument("--baseline", type=Path, default=BASELINE, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    medians = measure()
    if medians is None:
        return 1
    found = in_yardsticks(medians)
    if options.save:
        facts = {"versions": versions(), "cores": available_cores(), "in_yardsticks": found}
        write_bytes(f"{json.dumps(facts, indent=2)}\n".encode(), options.baseline)
    kept = json.loads(options.baseline.read_text("utf-8"))["in_yardsticks"]
    table = compared(medians, kept, options.slower)
    from rich.console import Console

    Console(width=None if sys.stdout.isatty() else 120).print(table.rich())
    return 1 if table.red else 0


def measure() -> dict[str, float] | None:
    """Let pytest-benchmark measure; return each median in seconds, None if one fails."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "found.json"
        command = [
            sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--no-header",
            "-o", "python_files=hot_paths.py", "-o", "addopts=--import-mode=importlib",
            f"--benchmark-json={path}", "--benchmark-quiet", str(_HERE / "hot_paths.py"),
        ]  # fmt: skip
        if subprocess.run(command, check=False, stdout=sys.stderr).returncode:
            return None
        found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return {each["name"]: each["stats"]["median"] for each in found["benchmarks"]}


def in_yardsticks(medians: Mapping[str, float]) -> dict[str, float]:
    """Divide medians by the yardstick's, to four digits."""
    yardstick = medians[_YARDSTICK]
    return {
        name: float(f"{median / yardstick:.4g}")
        for name, median in medians.items()
        if name != _YARDSTICK
    }


def compared(medians: Mapping[str, float], kept: Mapping[str, float], slower: float) -> Table:
    """Show what was measured beside the baseline; what is much slower in red."""
    caption = (
        "Medians. In yardsticks: divided by the median of sorting a million numbers beside it, "
        f"here {seconds(medians[_YARDSTICK])} s. Red: {slower:g} times the baseline or more."
    )
    headings = "hot path:text | seconds:seconds | yardsticks:seconds | baseline:seconds"
    table = Table("hot paths", caption, columns(headings, "change:times"))
    for name, now in in_yardsticks(medians).items():
        before = kept.get(name)
        change = None if before is None else now / before
        red = change is not None and change >= slower
        table.add(name.removeprefix("test_"), medians[name], now, before, change, red=red)
    return table


if __name__ == "__main__":
    sys.exit(main())
