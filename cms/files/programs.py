"""Integer programs of problems as files, so that others' solvers can be pointed at them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..plugin.registry import load_program_writer

if TYPE_CHECKING:
    from ..problem.machine_problem import MachineProblem
    from .source import StrPath


def write_program(problem: MachineProblem, path: StrPath) -> Any:
    """Write the integer program of a problem for another solver.

    It is the compact one of Casey, Rajaraman, Stalfa and Tan (APPROX 2024,
    https://doi.org/10.4230/LIPIcs.APPROX/RANDOM.2024.22) in integers: minimise the machines' cost;
    the blocks of each type on all machines are at least those given to jobs; what a job is given
    meets its demand. Where a size-bounded set has more maximal contents than can be listed, its
    machines are paths (arc flow; Valerio de Carvalho, https://doi.org/10.1023/A:1018952112615).

    Parameters
    ----------
    problem : Problem
    path : str or path-like
        The file; its ending says how it is written: ``.mps`` or ``.lp``.

    Returns
    -------
    named tuple
        ``program``; how many ``variables`` and ``rows``; ``step``, what 1 of the objective costs.

    Raises
    ------
    UnknownInstance
        If nobody writes files of this ending; the message lists those there are.
    UnsupportedProblem
        If a float does not hold a number, there is nothing to decide, or jobs share or are shards.
    FileError
        If the file cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from cms import Configuration, Job, Problem, write_program
    >>> problem = Problem(
    ...     configurations=Configuration({"1g": 7}), jobs=[Job("bert", 1200, {"1g": 90})]
    ... )
    >>> write_program(problem, pathlib.Path(tempfile.mkdtemp()) / "problem.lp")
    Written(program='compact', variables=2, rows=2, step=Fraction(1, 1))
    """
    path = Path(path)
    return load_program_writer(path.suffix.removeprefix(".").lower())(problem, path)
