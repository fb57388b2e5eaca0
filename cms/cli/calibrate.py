"""``cms calibrate``: load curves of operating points, by simulation, once."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from . import options
from .fleet_file import FleetFile, with_fleet_file
from .plan import MaxProcesses
from .progress import CountProgress
from .searching import heard
from .session import Exit, session_of

_Points = Annotated[
    Path, typer.Argument(metavar="P.csv", help="The table of operating points; '-' is stdin.")
]
_Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="C.csv", help="Write the table there, not to stdout."),
]
_LateShare = Annotated[
    str, typer.Option("--late-share", metavar="SHARE", help="How many requests may be later.")
]
_Requests = Annotated[
    int,
    typer.Option(
        "--requests",
        metavar="N",
        min=1000,
        help="Requests of a point at each rate; up to 25 times as many near full load, and no rate "
        "of which these tell nothing.",
    ),
]


@with_fleet_file
def calibrate(
    context: typer.Context,
    points: _Points,
    max_processes: MaxProcesses = None,
    fleet: FleetFile = None,
    late_share: _LateShare = "1%",
    requests: _Requests = 1_000_000,
    seed: options.Seed = 0,
    output: _Output = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Simulate operating points for 'cms plan --load-curves'.

    Each is run at up to 31 rates. A latency in the table is the upper end of a 99 % interval.
    """
    session = session_of(context)
    session.begin(None, json=json, quiet=quiet)
    share = options.share(late_share, "--late-share")
    session.refuse_unwritable((output, "--output"))
    with session.reading():
        from cms.files.source import write_bytes
        from cms.fleet.serving import read_operating_points
        from cms.fleet.serving.load_curve import curves_to_json, load_curves_text
        from cms.fleet.simulation.load_curves import load_curves, run_lengths

        measured = read_operating_points(points, session.columns)
        most = max_processes
        chosen = [each for each in measured if most is None or each.processes <= most]
    progress = CountProgress(None if quiet else sys.stderr)
    each = sum(run_lengths(requests))
    try:
        found = heard(
            session,
            lambda: load_curves(
                chosen, measured, late_share=share, requests=requests, seed=seed,
                on_progress=lambda done, total: progress(done * each, total * each),
                stopped=lambda: session.interrupts.pressed,
            ),
        )  # fmt: skip
    finally:
        progress.end()
    if session.interrupts.pressed:
        return Exit.INTERRUPTED
    text = load_curves_text(found)
    to_file = output is not None and str(output) != "-"
    if json:
        session.print_json(lambda: {"load_curves": curves_to_json(found)})
    elif not to_file:
        session.print_text(text, is_document=True)
    if output is not None and to_file:
        write_bytes(text.encode(), output)
    return Exit.ANSWER
