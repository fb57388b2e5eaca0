"""The command line: ``python -m bench``."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from cms.cli.options import UsageError
from cms.errors import CmsError
from cms.plugin.registry import load_algorithm
from cms.values.names import nearest

from .peers import GROUPS, PEERS
from .results import ResultsError
from .session import NothingToRun, Session
from .suites import SUITES, Settings, Suite
from .task import FAMILIES

#: Not a suite: all of them, one after another.
_ALL = "all"
_USAGE, _INTERRUPTED = 2, 130
_EPILOG = (
    "Suites: "
    + "; ".join(f"{suite.name}: {suite.summary}" for suite in SUITES.values())
    + "; all: one after another. Exit codes: 0 every run answered; 1 some failed (red) "
    "or have no row; 2 bad usage; 130 interrupted (--resume goes on). "
    "docs/measured/benchmarks.md has the protocol."
)
_application = typer.Typer(
    name="bench",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = _application(args=given, prog_name="python -m bench", standalone_mode=False)
    except (UsageError, CmsError, ResultsError) as fault:
        print(f"bench: {getattr(fault, 'format_message', fault.__str__)()}", file=sys.stderr)
        return _USAGE
    if code == _INTERRUPTED:  # what Typer makes of a KeyboardInterrupt
        print("bench: interrupted; --resume goes on where it was", file=sys.stderr)
    return int(code or 0)


@_application.command(epilog=_EPILOG)
def bench(
    suite: Annotated[
        str, typer.Option("--suite", metavar="NAME", help="What to run; see below.")
    ] = "overview",
    algorithms: Annotated[
        list[str] | None,
        typer.Option(
            "--algorithms", "-a", metavar="METHOD",
            help="An algorithm under test, by its registered name, or what else a suite "
            "compares; may be repeated.  "
            "[default: the suite's]",
        ),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Instances of each kind.")
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Of each run.")
    ] = None,
    instances: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Of suites that draw from a list of families."),
    ] = None,
    largest: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="No more jobs than this.")
    ] = None,
    peers: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help=f"Of {', '.join(GROUPS)}; or 'none'."),
    ] = None,
    peer_limit: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="Of a peer, where it is not that of all runs."),
    ] = None,
    peer_share: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, metavar="SHARE", help="Of the instances that go to peers (proof)."
        ),
    ] = None,
    requests: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Of each service, where plans are replayed."),
    ] = None,
    families: Annotated[
        str, typer.Option(metavar="MODULE", help="With generate() and suite().")
    ] = FAMILIES,
    warm_up: Annotated[
        bool | None, typer.Option(help="Two unmeasured solves in every process before its first.")
    ] = None,
    jobs: Annotated[
        int, typer.Option(min=1, metavar="N", help="Runs at a time; more than one blurs times.")
    ] = 1,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Where the rows are kept: DIR/SUITE.jsonl.")
    ] = Path("out/bench"),
    resume: Annotated[
        bool, typer.Option("--resume", help="Keep the rows that are there; run what is missing.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the tables as JSON.")
    ] = False,
    latex: Annotated[
        bool, typer.Option("--latex", help="Print the tables as LaTeX (booktabs).")
    ] = False,
    figures: Annotated[
        bool, typer.Option(help="Draw figures.")
    ] = True,
    dask: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Run on a Dask cluster, not here, whose scheduler "
        "has this address."),
    ] = None,
) -> int:  # fmt: skip
    """Run a suite of benchmarks: every answer rechecked, every run a row, tables at the end."""
    changes = {
        "methods": tuple(dict.fromkeys(algorithms)) if algorithms else None,
        "seeds": seeds,
        "time_limit": _positive(time_limit, "--time-limit"),
        "instances": instances,
        "largest": largest,
        "peers": _peers(peers),
        "peer_limit": _positive(peer_limit, "--peer-limit"),
        "peer_share": peer_share,
        "module": families,
        "requests": requests,
        "warm_up": warm_up,
    }
    given: dict[str, Any] = {k: value for k, value in changes.items() if value is not None}
    assert set(given) <= {spec.name for spec in fields(Settings)}
    if as_json and latex:
        raise UsageError("--json and --latex: expected at most one of the two")
    session = Session(
        out=out, resume=resume, jobs=jobs, dask=dask,
        form="json" if as_json else "latex" if latex else "terminal", figures=figures,
    )  # fmt: skip
    chosen = _chosen(suite, given)
    # What is wrong is told now, not by the first run.
    for one, settings in chosen:
        _refuse_unknown_methods(one, settings.methods)
        _refuse_missing_families(settings.module)
        _refuse_missing_peers(settings.peers)
    try:
        fine = session.run(chosen)
    except NothingToRun as fault:
        raise UsageError(str(fault)) from None
    return 0 if fine else 1


def _chosen(name: str, given: dict[str, Any]) -> list[tuple[Suite, Settings]]:
    """Return suites with their settings: among all, algorithms are not for every one."""
    if name in SUITES:
        return [(SUITES[name], replace(SUITES[name].defaults, **given))]
    if name != _ALL:
        raise UsageError(f"--suite: there is no {name!r}; there are {', '.join(SUITES)}, {_ALL}")
    others = {key: value for key, value in given.items() if key != "methods"}
    return [
        (suite, replace(suite.defaults, **(others if suite.contestants else given)))
        for suite in SUITES.values()
    ]


def _refuse_unknown_methods(suite: Suite, methods: Sequence[str]) -> None:
    for method in methods:
        if not suite.contestants:
            load_algorithm(method)
        elif method not in suite.contestants:
            raise UsageError(
                f"--algorithms: {method!r} is not compared in suite {suite.name!r}; expected of "
                f"{', '.join(suite.contestants)}{nearest(method, suite.contestants)}"
            )


def _positive(value: float | None, option: str) -> float | None:
    if value is not None and not 0 < value < float("inf"):
        raise UsageError(f"{option}: {value}: expected seconds > 0")
    return value


def _peers(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    names = [name.strip() for name in text.split(",")] if text.strip() != "none" else []
    if "none" in names:
        raise UsageError("--peers: 'none' goes with no other name; leave one or the other out")
    for name in names:
        if name not in GROUPS:
            raise UsageError(
                f"--peers: there is no {name!r}; there are {', '.join(GROUPS)}, or 'none' alone"
            )
    return tuple(dict.fromkeys(names))


def _refuse_missing_families(module: str) -> None:
    try:
        found = importlib.import_module(module)
    except Exception as fault:  # noqa: BLE001 - the module is the user's: whatever it raises
        why = f"{type(fault).__name__}: {fault}"
        raise UsageError(f"--families: {module!r} cannot be imported: {why}") from None
    lacking = [name for name in ("generate", "suite", "VARIANTS") if not hasattr(found, name)]
    if lacking:
        raise UsageError(f"--families: {module} has no {' and no '.join(lacking)}")


def _refuse_missing_peers(groups: Sequence[str]) -> None:
    for group in groups:
        for name in GROUPS[group]:
            try:
                PEERS[name].load()
            except ImportError as fault:
                cure = (
                    "install gurobipy, which needs a licence"
                    if group == "gurobi"
                    else "install the extra with `pip install '.[bench]'`"
                )
                raise UsageError(
                    f"--peers: {group} cannot be loaded ({fault}); {cure}, or leave it out"
                ) from None
