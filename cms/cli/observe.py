"""``cms observe``: what runs where now, from what tools print."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from cms.errors import InvalidOption

from . import options
from .catalogue import find_gpu
from .command import command
from .fleets import read_known
from .options import File, Text, Texts
from .session import Exit, Session

if TYPE_CHECKING:
    from cms.fleet.deployment import Deployment
    from cms.fleet.deployment.observation.merge import ObservationResult


@command()
def observe(
    session: Session,
    sources: list[str],
    node: Text = None,
    plan: File = None,
    device: Texts = None,
    adopt: Texts = None,
    reclaim: Texts = None,
    picture: File = None,
    output: File = None,
) -> int:
    """Report what runs on each GPU now, and what is free.

    Of each GPU it has the free slices and the largest instance that fits.
    """
    with session.reading():
        from cms.fleet.deployment import deployment_to_json
        from cms.fleet.deployment.difference import join_services
        from cms.fleet.deployment.observation import owners
        from cms.fleet.report.deployments import deployment_page

        known = None if plan is None else read_known(plan)
        observed = seen(sources, node, known, device, session.fleet.observation.service_label)
        for warning in observed.warnings:
            session.warn(warning)
        found = observed.deployment
        works = {
            each.work
            for one in (known, found)
            if one is not None
            for _, each in one.instances()
            if each.work is not None
        }
        if adopt and known is not None:
            services = join_services(found, known)
            found = replace(found, services=services, rule=found.rule or known.rule)
        named = "--adopt"
        try:
            for place, doing in options.pairs(adopt, named, "node-a/3:4=chat@2x8").items():
                found = owners.adopt(found, place, doing, works)
            named = "--reclaim"
            for place in reclaim or ():
                found = owners.release(found, place)
        except InvalidOption as fault:
            raise options.usage_error(str(fault), named) from None
        first, more = ", ".join(sources[:3]), len(sources) - 3
        title = f"{first} and {more} more" if more > 0 else first
        session.show(
            lambda: deployment_to_json(found),
            lambda: deployment_page(found, title, lost=True),
            output,
            picture,
        )
    return Exit.ANSWER


def seen(
    sources: Iterable[str],
    node: str | None,
    known: Deployment | None,
    gpu: list[str] | None,
    service_label: str | None,
    places: Deployment | None = None,
) -> ObservationResult:
    """Read sources into a deployment, with what they leave unknown."""
    from cms.fleet.deployment.observation.sources import SourceFile, observe

    given = [SourceFile.from_argument(source) for source in sources]
    if sum(each.path == "-" for each in given) > 1:
        raise options.usage_error("two sources are '-'; only one of them can be standard input")
    own = {each.key: each for each in (find_gpu(key, "--gpu") for key in gpu or ())}
    devices = {key: each for one in (known, places) if one for key, each in one.devices.items()}
    return observe(
        given,
        node=node,
        known=known,
        devices=devices | own,
        device=next(iter(own.values())) if len(own) == 1 else None,
        service_label=service_label,
        places=places,
    )
