"""Plan files that a command asks about: read, and rechecked before they are believed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .check import fault_lines
from .documents import open_document
from .options import usage_error
from .rechecking import recheck_plan
from .session import Exit, Session, report_error

if TYPE_CHECKING:
    from cms.fleet.serving import Plan


def read_rechecked(session: Session, path: Path, done: str) -> Plan | int:
    """Read a plan file and recheck it as ``cms check`` does.

    Parameters
    ----------
    session : Session
    path : Path
    done : str
        What is to be done with it, for errors: "explained".

    Returns
    -------
    Plan or int
        Or the exit code, once it is said what does not hold, or that the plan is infeasible.

    Raises
    ------
    FileError, UsageError
        If there is no plan in the file.
    """
    kind, document = open_document(path)
    if kind == "cms-deployment":
        raise usage_error(
            f"{path} holds a deployment, and plans are {done}: give the plan that 'cms plan -o' "
            "wrote"
        )
    plan, answer, faults = recheck_plan(document)
    if faults or plan is None:
        said = {
            "valid": False,
            "faults": [{**fault._asdict(), "text": str(fault)} for fault in faults],
        }
        if session.json:
            session.print_json(lambda: said)
        elif not session.quiet:
            session.print_text(fault_lines("not valid", faults))
        return Exit.FAILED
    if answer.status == "infeasible":
        report_error(
            f"{path}: the plan is infeasible, so that nothing can be {done}; 'cms plan' says why, "
            "and what would do",
            Exit.INFEASIBLE, as_json=session.json, kind="Infeasible",
        )  # fmt: skip
        return Exit.INFEASIBLE
    return plan
