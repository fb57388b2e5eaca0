"""The command line: ``cms-check --theorems``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from .finding import Finding
from .theorems import CHECKS, run

_HEAD = ("theorem", "what was checked", "cases", "ratio", "worst", "proved", "seconds", "")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    options = _parser().parse_args(arguments)
    console, waiting = Console(soft_wrap=True), Console(stderr=True)
    findings = []
    for name in options.files or CHECKS:
        with waiting.status(f"checking {name}"):
            finding = run(name, seed=options.seed, cases=options.cases)
        findings.append(finding)
        if not options.json and not console.is_terminal:
            console.out(_line(finding), highlight=False)
    if options.json:
        console.out(json.dumps([one.to_json() for one in findings], indent=2), highlight=False)
    else:
        if console.is_terminal:
            console.print(_table(findings))
        for finding in findings:
            for failure in finding.failures:
                console.out(f"{finding.theorem}: {failure}", highlight=False)
    return 0 if all(finding.ok for finding in findings) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="cms-check --theorems",
        description="Check the theorems by machine: one line each, and what failed.",
    )
    files = f"theorem files to run, all by default: {', '.join(CHECKS)}"
    parser.add_argument("files", nargs="*", type=_name, metavar="FILE", help=files)
    parser.add_argument("--seed", type=_whole, default=0, help="which instances (default 0)")
    parser.add_argument("--cases", type=_whole, help="about how many instances a file")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _name(text: str) -> str:
    """A file of this folder, given as a name or as a path."""
    name = Path(text).name.removesuffix(".py")
    if name not in CHECKS:
        raise argparse.ArgumentTypeError(f"no theorem file {text!r}; there are {', '.join(CHECKS)}")
    return name


def _whole(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r}; expected a whole number >= 0")
    return int(text)


def _cells(finding: Finding) -> tuple[str, ...]:
    worst = "" if finding.worst is None else f"{finding.worst:.3f}"
    return (
        finding.theorem, finding.checked, str(finding.cases), finding.ratio, worst, finding.proved,
        f"{finding.seconds:.1f}", "ok" if finding.ok else "FAILED",
    )  # fmt: skip


def _line(finding: Finding) -> str:
    """One line of plain text, for pipes."""
    theorem, checked, cases, ratio, worst, proved, seconds, verdict = _cells(finding)
    seen = f"; {ratio}: worst {worst}, proved {proved}" if worst else ""
    return f"{verdict}  {theorem}: {checked}; {cases} cases{seen}; {seconds} s"


def _table(findings: Sequence[Finding]) -> Table:
    table = Table()
    for title in _HEAD:
        table.add_column(title, justify="right" if title in ("cases", "seconds") else "left")
    for finding in findings:
        *cells, verdict = _cells(finding)
        colour = "green" if finding.ok else "red"
        table.add_row(*cells, f"[{colour}]{verdict}[/{colour}]")
    return table


if __name__ == "__main__":
    sys.exit(main())
