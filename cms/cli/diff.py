"""``cms diff``: what has to happen on each GPU for one deployment to become another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options
from .fleets import MaxAge, read_fleet, refuse_stale_now
from .session import Exit, refuse_two_readers, session_of

if TYPE_CHECKING:
    from cms.fleet.deployment import Deployment, Difference
    from cms.fleet.report.page import Page

_Now = Annotated[
    Path, typer.Argument(metavar="now.json", help="What is there; '-' is standard input.")
]
_Target = Annotated[Path, typer.Argument(metavar="target.json", help="What is to be there.")]
_FailOnDifference = Annotated[
    bool,
    typer.Option("--fail-on-difference", help="Exit with 1 unless nothing has to happen."),
]
_Picture = Annotated[
    Path | None,
    typer.Option(
        "--picture", metavar="FILE.svg", help="Also draw each GPU that changes: an SVG picture."
    ),
]


def diff(
    context: typer.Context,
    now: _Now,
    target: _Target,
    fail_on_difference: _FailOnDifference = False,
    max_age: MaxAge = "15min",
    picture: _Picture = None,
    output: options.Output = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Compare two deployments GPU by GPU.

    It says what is kept, restarted, created and deleted.

    Exit code 1: what is there was observed too long ago, or something differs and that is asked.
    """
    session = session_of(context)
    output = session.begin(output, json=json, quiet=quiet)
    session.refuse_unwritable((output, "--output"), (picture, "--picture"))
    refuse_two_readers((now, "now.json"), (target, "target.json"))
    with session.reading():
        from cms.fleet.deployment import difference
        from cms.fleet.deployment.observation.numbering import renumber_gpus
        from cms.fleet.deployment.verifying import settle_guesses

        before, after = read_fleet(now), read_fleet(target)
        before, after = renumber_gpus(before, after), renumber_gpus(after, before)
        refuse_stale_now(session, before, max_age, written=True)
        found, both = difference(settle_guesses(before, after), after), _both(before, after)
        title = f"{now.name} -> {target.name}"

        def view() -> Page:
            from cms.fleet.report.deployments import difference_page

            return difference_page(found, both, title)

        session.show(lambda: _document(found), view, output, picture)
    return Exit.FAILED if fail_on_difference and not found.is_empty else Exit.ANSWER


def _both(before: Deployment, after: Deployment) -> Deployment:
    """The target, with the services that are to go as well: they have colours, too."""
    own = {service.name for service in after.services}
    gone = (service for service in before.services if service.name not in own)
    return replace(after, services=(*after.services, *gone), plan=None)


def _document(found: Difference) -> dict[str, Any]:
    from cms.fleet.deployment import Instance

    def said(instances: Iterable[Instance]) -> list[str]:
        return [str(each) for each in instances]

    return {
        "is_empty": found.is_empty,
        "counts": {"gpus_that_change": len(found.touched), **found.counts},
        "gpus": [
            {
                "gpu": each.now.name,
                "mode": [each.now.mode.value, each.then.mode.value],
                "kept": said(each.kept),
                "restarted": [[str(one), str(other)] for one, other in each.restarted],
                "created": said(each.created),
                "deleted": said(each.deleted),
                "foreign": said(each.foreign),
            }
            for each in found.touched
        ],
        "untouched": [each.now.name for each in found.gpus if each.is_untouched],
    }
