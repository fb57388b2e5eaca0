"""Integer programs of problems as files, so that others' solvers can be pointed at them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..plugin.registry import load_program_writer

if TYPE_CHECKING:
    from ..problem.machine_problem import MachineProblem
    from .source import StrPath

__all__ = ["write_program"]


def write_program(problem: MachineProblem, path: StrPath) -> Any:
    """Write the integer program of a problem for another solver.

    Parameters
    ----------
    problem : Problem
    path : str or path-like
        The file; its ending, in letters of any case, says how it is written: ``.mps`` or ``.lp``.

    Returns
    -------
    named tuple
        ``program``, how it is posed; ``variables`` and ``rows``, how many; ``step``, what 1 of the
        objective costs. The head of the file says what its names stand for.

    Raises
    ------
    UnknownInstance
        If nobody writes files of this ending; the message lists those there are.
    UnsupportedProblem
        If jobs share blocks in time or are in shards, a number is beyond what floats hold exactly,
        or there is nothing to decide.
    FileError
        If the file cannot be written.

    Notes
    -----
    The program is the compact one of Casey, Rajaraman, Stalfa and Tan (APPROX 2024,
    https://doi.org/10.4230/LIPIcs.APPROX/RANDOM.2024.22) in integers: minimise the machines' cost;
    the blocks of each type on all machines are at least those given to jobs; what a job is given
    meets its demand. Where a size-bounded set has more maximal contents than can be listed, its
    machines are paths (arc flow; Valerio de Carvalho, https://doi.org/10.1023/A:1018952112615).

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from cms import Configuration, Job, MachineType, Problem, write_program
    >>> problem = Problem(
    ...     configurations=Configuration({"1g": 7}, "a100"),
    ...     machine_types=[MachineType("a100", cost="2.5")],
    ...     jobs=[Job("bert", 1200, {"1g": 90})],
    ... )
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "problem.lp"
    >>> write_program(problem, path)
    Written(program='compact', variables=2, rows=2, step=Fraction(5, 2))
    """
    path = Path(path)
    return load_program_writer(path.suffix.removeprefix(".").lower())(problem, path)
