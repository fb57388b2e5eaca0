"""``cms show`` of two deployments: what has to happen on each GPU for one to become the other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .fleets import deployment_of, read_fleet, refuse_stale
from .session import Session

if TYPE_CHECKING:
    from cms.files import Parsed
    from cms.fleet.report.page import Page


def differ(
    session: Session, document: Parsed, target: Path, max_age: str, title: str | None
) -> tuple[Page, dict[str, Any], bool]:
    """Return what is kept, restarted, created and deleted; whether nothing changes."""
    from cms.fleet.deployment import difference
    from cms.fleet.deployment.difference import join_services
    from cms.fleet.deployment.observation.devices import renumber_gpus
    from cms.fleet.deployment.verifying import settle_guesses
    from cms.fleet.report.deployments import difference_page

    before, after = deployment_of(document), read_fleet(target)
    before, after = renumber_gpus(before, after), renumber_gpus(after, before)
    refuse_stale(session, before, max_age, written=True)
    found = difference(settle_guesses(before, after), after)
    both = replace(after, services=join_services(after, before), plan=None)  # all have colours
    names = f"{Path(document.source.name).name} -> {target.name}"
    said = {
        "is_empty": found.is_empty,
        "counts": {"gpus_that_change": len(found.touched), **found.counts},
        "gpus": [
            {
                "gpu": each.now.name,
                "mode": [each.now.mode.value, each.then.mode.value],
                "kept": [*map(str, each.kept)],
                "restarted": [[str(one), str(other)] for one, other in each.restarted],
                "created": [*map(str, each.created)],
                "deleted": [*map(str, each.deleted)],
                "foreign": [*map(str, each.foreign)],
            }
            for each in found.touched
        ],
        "untouched": [each.now.name for each in found.gpus if each.is_untouched],
    }
    return difference_page(found, both, title or names), said, found.is_empty
