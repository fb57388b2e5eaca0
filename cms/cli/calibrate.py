"""``cms calibrate``: load curves of operating points, by simulation, once."""

from __future__ import annotations

import cms.fleet
from cms.files.source import write_bytes

from . import options
from .command import command
from .options import File, usage_error
from .plan import MaxProcesses
from .searching import counted
from .session import Exit, Session, is_pipe


@command()
def calibrate(
    session: Session,
    operating_points: File = None,
    max_processes: MaxProcesses = None,
    late_share: str = "1%",
    requests: int = 1_000_000,
    seed: int = 0,
    output: File = None,
) -> int:
    """Simulate operating points for 'cms plan --load-curves'.

    Each is run at up to 31 rates. A latency in the table is the upper end of a 99 % interval.
    """
    share = options.share(late_share, "--late-share")
    if operating_points is None:
        raise usage_error("give the table of operating points", "P.csv")
    with session.reading():
        from cms.fleet.serving.load_curve import curves_to_json, load_curves_text
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
    if session.json:
        session.print_json(lambda: {"load_curves": curves_to_json(found)})
    elif output is None or is_pipe(output):
        session.print_text(text)
    if output is not None and not is_pipe(output):
        write_bytes(text.encode(), output)
    return Exit.ANSWER
