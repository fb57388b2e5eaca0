"""What new limits no longer admit: it counts until it goes, and may not come."""

from __future__ import annotations

from functools import cache

import pytest

from cms.fleet.deployment.recounting import outdated
from cms.fleet.deployment.transition import transition_to_json
from proofs_checks import checker
from tests.fleet.transition.cases import leg
from tests.proofs_checks.documents import Document, changed
from tests.proofs_checks.test_kept_proofs import in_package


@cache
def document() -> Document:
    return transition_to_json(leg(0)[0])


def old() -> tuple[int, str]:
    """The number and the name of a point that only the old limits admit."""
    found = leg(0)[0]
    works = outdated(found.start, found.target)
    points = {(w.service, w.point.profile, w.point.batch, w.point.processes) for w in works}
    return next(
        (at, point["name"])
        for at, point in enumerate(document()["points"])
        if (point["service"], point["profile"], point["batch"], point["processes"]) in points
    )


def test_every_service_that_stays_has_a_floor_above_nothing() -> None:
    found = leg(0)[0]
    rates = [{s.name: s.rate_rps for s in side.services} for side in (found.start, found.target)]
    assert len(outdated(found.start, found.target)) > 5
    for name in rates[0].keys() & rates[1].keys():
        assert found.floors[name].rps == min(rates[0][name], rates[1][name]) > 0
    assert checker.check_transition(document()) == []
    assert in_package(document()) == ()


def test_what_only_the_old_limit_admits_may_not_come() -> None:
    at = next(i for i, action in enumerate(document()["actions"]) if action["adds"])
    forged = changed(document(), "actions", at, "adds", 0, "point", to=old()[1])
    faults = checker.check_transition(forged)
    assert any("comes or is in the target, and only the old limit" in fault for fault in faults)
    assert "does not admit its point" in str(in_package(forged)[0])


@pytest.mark.parametrize("path", ["supply", "limit"])
def test_it_supplies_no_more_than_it_did(path: str) -> None:
    at, _ = old()
    point = document()["points"][at]
    if path == "supply":
        forged = changed(document(), "points", at, "supply_rps", to=10**6)
    else:
        services = document()["start"]["services"]
        number = next(i for i, s in enumerate(services) if s["name"] == point["service"])
        forged = changed(document(), "start", "services", number, "latency_limit_ms", to=1)
    faults = checker.check_transition(forged)
    assert any(f"point '{point['name']}' supplies" in fault for fault in faults), faults
    assert in_package(forged) != ()
