"""What the commands about deployments share: how they read them, and how old they may be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .options import duration, usage_error
from .session import Exit, Session, open_document

if TYPE_CHECKING:
    from cms.fleet.deployment import Deployment, Kind
    from cms.fleet.deployment.transition import Impossible
    from cms.fleet.hardware import Gpu

_NOWHERE = "(plan)"


def read_fleet(path: Path) -> Deployment:
    """Read a deployment that something is to be done with."""
    from cms.fleet.deployment.observation.sources import read_possible

    kind, document = open_document(path)
    if kind == "cms-plan":
        raise usage_error(
            f"{path} is a plan, which says nothing of numbered GPUs; place it first: "
            f"cms plan {path} --nodes nodes.csv -o target.json"
        )
    return read_possible(document)


def read_current(session: Session, path: Path, max_age: str) -> Deployment:
    """Read what runs, unless it was observed too long ago."""
    found = read_fleet(path)
    refuse_stale(session, found, max_age)
    return found


def read_known(path: Path) -> Deployment:
    """Read what is meant to run: a deployment, or a plan's kinds of instances, on no real node.

    Of a transition: what is anywhere on the way; nothing where a place serves several services.
    """
    from cms.fleet.apply import Journal, on_the_way
    from cms.fleet.deployment import Deployment, deployment_from_json, desired_state
    from cms.fleet.deployment.transition import transition_from_json
    from cms.fleet.serving.plan_document import plan_from_json

    if path.suffix == ".jsonl":  # of an apply, as far as it came
        return Journal.read(path).where()
    kind, document = open_document(path)
    if kind == "cms-transition":
        known, works = on_the_way(transition_from_json(document))
        kinds = of_kinds(known, works, known.devices)
        return replace(known, nodes=(*known.nodes, *kinds.nodes))
    if kind != "cms-plan":
        return deployment_from_json(document)
    wanted = desired_state(plan_from_json(document))
    known = Deployment((), wanted.services, wanted.rule)
    return of_kinds(known, wanted.counts, wanted.devices)


def of_kinds(known: Deployment, kinds: Iterable[Kind], devices: Mapping[str, Gpu]) -> Deployment:
    """Return what is meant to run as kinds of instances alone: nothing follows from a place."""
    from cms.fleet.deployment import FleetGpu, FleetNode, Instance, StartSource

    cards = tuple(
        FleetGpu(
            _NOWHERE, index, devices[each.gpu],
            instances=(Instance(each.profile, None, each.work),), start_source=StartSource.UNKNOWN,
        )
        for index, each in enumerate(kinds)
    )  # fmt: skip
    return replace(known, nodes=(FleetNode(_NOWHERE, cards),), plan=None)


def refuse_stale(
    session: Session, current: Deployment, max_age: str, *, written: bool = False
) -> None:
    """Refuse what was observed too long ago; warn of nodes never observed, unless `written`."""
    from cms.fleet.deployment.observation import age

    unseen = age.refuse_stale(current, datetime.now(UTC), duration(max_age, "--max-age"))
    if unseen and not written:
        first, more = unseen[0], f" and {len(unseen) - 1} more" if len(unseen) > 1 else ""
        session.warn(f"node {first!r}{more} was never observed: what stands there is as written")


def say_impossible(session: Session, found: Impossible, decided: dict[str, Any], head: str) -> int:
    """Say why there is no transition, below a head; nothing is written."""
    from cms.fleet.report.proofs import refusal_page

    said = {**decided, "proof": found.proof.value, "reasons": list(found.reasons)}
    session.show(lambda: said, lambda: refusal_page(head, found.reasons), None)
    if session.interrupts.pressed:
        return Exit.INTERRUPTED
    return Exit.NO_SCHEDULE if found.proof == "none" else Exit.INFEASIBLE
