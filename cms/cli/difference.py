"""``cms show`` of two deployments: what has to happen on each GPU for one to become the other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .fleets import deployment_of, read_fleet, refuse_stale
from .pages import write_page
from .session import Exit, Session

if TYPE_CHECKING:
    from cms.files import Parsed
    from cms.fleet.deployment import Deployment, Difference
    from cms.fleet.report.page import Page


def show_difference(
    session: Session,
    document: Parsed,
    target: Path,
    max_age: str,
    to: tuple[Path | None, Path | None],
    title: str | None,
    *,
    exit_code: bool,
) -> int:
    """Show what is kept, restarted, created and deleted; 1 if that is anything and is asked."""
    from cms.fleet.deployment import difference
    from cms.fleet.deployment.observation.numbering import renumber_gpus
    from cms.fleet.deployment.verifying import settle_guesses

    output, picture = to
    before, after = deployment_of(document), read_fleet(target)
    before, after = renumber_gpus(before, after), renumber_gpus(after, before)
    refuse_stale(session, before, max_age, written=True)
    found, both = difference(settle_guesses(before, after), after), _both(before, after)

    def view() -> Page:
        from cms.fleet.report.deployments import difference_page

        names = f"{Path(document.source.name).name} -> {target.name}"
        return difference_page(found, both, title or names)

    session.show(lambda: _document(found), view, None, picture)
    if output is not None:
        write_page(view(), output)
    return Exit.FAILED if exit_code and not found.is_empty else Exit.ANSWER


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
