"""``cms calibrate``: load curves of operating points, by simulation, once."""

from __future__ import annotations

from typing import Annotated

import typer

import cms.fleet
from cms.files.source import write_bytes

from . import options
from .fleet_file import FleetFile, with_fleet_file
from .options import File, option, usage_error
from .plan import MaxProcesses
from .searching import counted
from .session import Exit, is_pipe, session_of


@with_fleet_file
def calibrate(
    context: typer.Context,
    operating_points: Annotated[
        File,
        typer.Argument(
            metavar="P.csv",
            help="The table of operating points; '-' is stdin.  [default: that of fleet.toml]",
        ),
    ] = None,
    max_processes: MaxProcesses = None,
    fleet: FleetFile = None,
    late_share: Annotated[str, option("SHARE", "How many requests may be later.")] = "1%",
    requests: Annotated[
        int,
        option(
            "N",
            "Requests of a point at each rate; up to 25 times as many near full load, and no rate "
            "of which these tell nothing.",
            min=1000,
        ),
    ] = 1_000_000,
    seed: options.Seed = 0,
    output: Annotated[
        File, option("C.csv", "Write the table there, not to stdout.", "--output", "-o")
    ] = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Simulate operating points for 'cms plan --load-curves'.

    Each is run at up to 31 rates. A latency in the table is the upper end of a 99 % interval.
    """
    session = session_of(context)
    session.begin(None, json=json, quiet=quiet)
    output = None if is_pipe(output) else output
    share = options.share(late_share, "--late-share")
    session.refuse_unwritable((output, "--output"))
    if operating_points is None:
        raise usage_error("give the table of operating points", "P.csv")
    with session.reading():
        from cms.fleet.serving.document_parts import curves_to_json
        from cms.fleet.serving.load_curve import load_curves_text
        from cms.fleet.simulation.load_curves import load_curves, run_lengths

        measured = cms.fleet.read_operating_points(operating_points, session.columns)
        most = max_processes
        chosen = [each for each in measured if most is None or each.processes <= most]
    each = sum(run_lengths(requests))
    found = counted(
        session,
        "requests",
        lambda progress: load_curves(
            chosen, measured, late_share=share, requests=requests, seed=seed,
            on_progress=lambda done, total: progress(done * each, total * each),
            stopped=lambda: session.interrupts.pressed,
        ),
    )  # fmt: skip
    if session.interrupts.pressed:
        return Exit.INTERRUPTED
    text = load_curves_text(found)
    if json:
        session.print_json(lambda: {"load_curves": curves_to_json(found)})
    elif output is None:
        session.print_text(text)
    if output is not None:
        write_bytes(text.encode(), output)
    return Exit.ANSWER
