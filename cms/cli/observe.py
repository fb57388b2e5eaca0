"""``cms observe``: what runs where now, from what tools print; its drift from what should run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cms.errors import FileError, InvalidOption

from . import options
from .check import Rechecked, answer
from .command import command
from .export import TARGET
from .fleets import of_kinds, read_fleet, read_known, refuse_stale
from .options import File, Text, Texts, find_gpu
from .session import Exit, Session, open_document

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
        from cms.fleet.deployment.observation import pods
        from cms.fleet.report.deployments import deployment_page

        known = None if plan is None else read_known(plan)
        observed = seen(sources, node, known, device, session.fleet.observation.service_label)
        for warning in observed.warnings:
            session.warn(warning)
        found = observed.deployment
        both = (one for one in (known, found) if one is not None)
        works = {each.work for one in both for _, each in one.instances() if each.work is not None}
        if adopt and known is not None:
            services = join_services(found, known)
            found = replace(found, services=services, rule=found.rule or known.rule)
        named = "--adopt"
        try:
            for place, doing in options.pairs(adopt, named, "node-a/3:4=chat@2x8").items():
                found = pods.adopt(found, place, doing, works)
            named = "--reclaim"
            for place in reclaim or ():
                found = pods.release(found, place)
        except InvalidOption as fault:
            raise options.usage_error(str(fault), named) from None
        first, more = ", ".join(sources[:3]), len(sources) - 3
        title = f"{first} and {more} more" if more > 0 else first
        view = partial(deployment_page, found, title, lost=True)
        session.show(partial(deployment_to_json, found), view, output, picture)
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
    device = next(iter(own.values())) if len(own) == 1 else None
    return observe(
        given, node=node, known=known, devices=devices | own, device=device,
        service_label=service_label, places=places,
    )  # fmt: skip


def report_drift(
    session: Session,
    against: Path,
    sources: list[str],
    node: str | None,
    gpu: list[str] | None,
    max_age: str,
    output: Path | None,
) -> int:
    """Report what runs and should not, and what does not run and should; 1 if there is any."""
    with session.reading("reading and comparing"):
        from cms.fleet.deployment import instance, verifying
        from cms.fleet.deployment.observation.devices import renumber_gpus
        from cms.values.words import count

        path, target = _meant(against)
        label = session.fleet.observation.service_label
        kinds = of_kinds(target, target.kinds(), target.devices)
        observed = seen(sources, node, kinds, gpu, label, target)
        target = renumber_gpus(target, observed.deployment)
        found = verifying.settle_guesses(renumber_gpus(observed.deployment, target), target)
        for warning in observed.warnings:
            session.warn(warning)
        refuse_stale(session, found, max_age, written=True)
        faults = verifying.verify(found, target, observed.of_pods)
        _, _, moved = verifying.settle_pods(found, target, observed.of_pods)
    gpus = {card.name for card in target.gpus()}
    unknown = sum(
        card.name in gpus and each.owner == instance.UNKNOWN_OWNER
        for card, each in found.instances()
    )
    if unknown:
        session.warn(
            f"what {unknown} of the instances do was not observed; their places were compared"
        )
    if moved:
        session.warn(
            f"{moved} of the instances do not do what was placed on them: its pods are tied to "
            "no node, or on their node to no GPU, so that how many do it was compared"
        )
    seen_as = {card.name: card.uuid for card in found.gpus()}
    loose = {card.name for node in found.nodes if not node.is_numbered for card in node.gpus}
    unnamed = [  # of which one side alone knows a UUID, though the numbers may be others
        card.name
        for card in target.gpus()
        if (card.uuid and seen_as.get(card.name, card.uuid) is None)
        or (card.uuid is None and card.name in loose)
    ]
    if unnamed:
        more = f" (and {len(unnamed) - 1} more)" if len(unnamed) > 1 else ""
        session.warn(
            f"whether {unnamed[0]}{more} is the GPU that was meant was not observed, but its "
            "number alone: its UUID is told by nvidia-smi -L"
        )
    said = {"gpus": len(gpus), "places_alone": unknown}
    words = f"all there: {count(len(gpus), 'GPU')} as in {path}\n"
    checked = Rechecked(found, list(faults), said, words, "verified", "not there")
    return answer(session, checked, output)


def _meant(against: Path) -> tuple[Path, Deployment]:
    """Return what should be there, and the file that says so."""
    if against.is_dir():
        places = [folder / TARGET for folder in (against, against.resolve().parent)]
        path = next((each for each in places if each.is_file()), None)
        if path is None:
            expected = "a folder that cms export wrote"
            raise FileError(against, f"this folder holds no {TARGET}", expected=expected)
        return path, read_fleet(path)
    kind, document = open_document(against)
    if kind != "cms-transition":
        return against, read_fleet(against)
    from cms.fleet.apply import open_starts
    from cms.fleet.deployment.transition import transition_from_json

    found = transition_from_json(document)
    return against, open_starts(found, found.target)
