"""``cms problem program``: a problem as an integer program for another solver."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import options
from .options import File, argument, option
from .session import Exit, session_of
from .solve import Published, posed_of


def program(
    context: typer.Context,
    output: Annotated[Path, option("--output -o FILE.mps|FILE.lp", "Where it is written.")],
    file: Annotated[
        File, argument("FILE", "A problem, or a plan of 'cms plan'; '-' is standard input.")
    ] = None,
    published: Published = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Write a problem as an integer program for other solvers.

    It is MPS or LP by the file's ending. The head of the file says what its variables and rows
    stand for.
    """
    session = session_of(context)
    session.begin(None, json=json, quiet=quiet)
    session.refuse_unwritable((output, "--output"))
    with session.reading():
        _, posed = posed_of(file, published, plans=True)
    from cms.files import number_to_json, write_program
    from cms.values.words import count, decimal

    written = write_program(posed, output)
    step = "" if written.step == 1 else f"; 1 of the objective costs {decimal(written.step)}"
    session.say(
        {**written._asdict(), "step": number_to_json(written.step), "file": str(output)},
        f"{output}: {written.program} program of {count(written.variables, 'variable')} and "
        f"{count(written.rows, 'row')}{step}\n",
    )
    return Exit.ANSWER
