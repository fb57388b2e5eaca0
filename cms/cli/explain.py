"""``cms explain``: why a plan serves a service by these instances."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import options
from .plans import read_rechecked
from .searching import heard
from .session import session_of

if TYPE_CHECKING:
    from cms.fleet.report.page import Page

_Plan = Annotated[
    Path, typer.Argument(metavar="plan.json", help="A plan file; '-' is standard input.")
]
_Service = Annotated[str, typer.Argument(metavar="SERVICE", help="One of its services, by name.")]


def explain(
    context: typer.Context,
    plan: _Plan,
    service: _Service,
    output: options.Output = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Explain why a plan serves a service with these instances.

    It says what each other choice of instances costs at least.

    The numbers are exact reduced costs of the plan's certificate, which is rechecked: bounds, no
    promises.
    """
    session = session_of(context)
    output = session.begin(output, json=json, quiet=quiet)
    session.refuse_unwritable((output, "--output"))
    with session.reading():
        found = read_rechecked(session, plan, "explained")
    if isinstance(found, int):
        return found
    from cms.fleet.what_if.documents import explanation_to_json
    from cms.fleet.what_if.explaining import explain as explained

    answer = heard(session, lambda: explained(found, service), doing="pricing the choices")

    def view() -> Page:
        from cms.fleet.report.what_if import explained_page

        return explained_page(answer, found, plan.name)

    session.show(lambda: explanation_to_json(answer), view, output)
    return session.code_of(found.answer)
