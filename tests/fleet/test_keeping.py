"""What stays: bounds that no deployment exceeds, and prices that prove nothing refused."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.changes import DRAWN, change_of
from cms.errors import InvalidCertificate
from cms.fleet import gpu
from cms.fleet.deployment import (
    Deployment,
    FleetGpu,
    FleetNode,
    Instance,
    Kind,
    Mode,
    Placed,
    Seen,
    State,
    Wanted,
    place,
)
from cms.fleet.deployment.keeping import Demand
from cms.fleet.deployment.keeping_bound import Prices, best_prices, gpus_needed, most_kept
from cms.fleet.deployment.programs import Limits
from cms.fleet.deployment.spots import spots_of
from cms.fleet.deployment.wishes import Wishes, demand_of
from cms.solving.solution import Proof
from tests.property.problems import share
from tests.references.keeping import most_kept_by_cp_sat
from tests.references.placements import best_placement

from .deployments import SERVICES, deployments, point, promises, wanted_for

A30, A100 = "a30-24gb", "a100-80gb"
PRICES = st.fractions(0, 2, max_denominator=6)


def kind(service: str, profile: str, key: str = A100) -> Kind:
    return Kind(key, profile, point(service, key, profile))


def works(service: str, profile: str, start: int | None, key: str = A100) -> Instance:
    return Instance(profile, start, point(service, key, profile))


def fleet(*cards: tuple[Instance, ...], mode: Mode = Mode.MIG, key: str = A100) -> Deployment:
    seen = Seen.UNKNOWN if any(e.start is None for c in cards for e in c) else Seen.SEEN
    held = tuple(
        FleetGpu("a", i, gpu(key), mode, instances, seen=seen if mode is Mode.MIG else Seen.SEEN)
        for i, instances in enumerate(cards)
    )
    return Deployment((FleetNode("a", held),), SERVICES)


def placed(wanted: Wanted, now: Deployment, *, whole_gpus: bool = False) -> Placed:
    found = place(wanted, now, whole_gpus=whole_gpus)
    assert isinstance(found, Placed), found
    return found


def shown(found: Placed) -> list[str]:
    """Each GPU's instances: places and services."""
    return [
        " ".join(f"{e.place}={e.work.service if e.work else '-'}" for e in card.instances)
        for card in found.deployment.gpus()
    ]


# --- bounds ---------------------------------------------------------------------------------------


def _final(wanted: Wanted, more: dict[str, int]) -> Demand:
    demand = demand_of(wanted, Wishes())
    allowed = {key: n + more.get(key, 0) for key, n in wanted.gpus.items()}
    return Demand(demand.kinds, demand.counts, allowed, demand.crowds)


@share(3)
@given(st.data())
def test_no_prices_bound_below_the_truth(data: st.DataObject) -> None:
    now = data.draw(deployments(most_nodes=2, most_gpus=1, keys=(A30,)))
    wanted = data.draw(promises(now))
    best = best_placement(now, wanted)
    if best is None:
        return
    found = placed(wanted, now)
    final = _final(wanted, dict(found.more_gpus))
    spots = spots_of(now, {kind: number for number, kind in enumerate(final.kinds)})
    blocks = {(kind.gpu, kind.profile): data.draw(PRICES) for kind in final.kinds}
    kinds = {number: data.draw(PRICES) for number in range(len(final.kinds))}
    gpus = {key: data.draw(PRICES) for key in final.gpus}
    assert most_kept(spots, final, Prices(kinds, blocks, gpus)) >= best[1]
    for key in wanted.gpus:
        most = wanted.gpus[key] - best[0]
        assert gpus_needed(spots, final, key, blocks) <= most
    proved = best_prices(spots, final, Limits())
    assert proved is not None
    assert best[1] <= most_kept(spots, final, proved[0]) == proved[1]


@pytest.mark.parametrize(
    ("gpus", "services", "sigma", "seed"),
    [
        (8, 12, "0.1", 1),
        (10, 20, "0.3", 2),
        *(
            pytest.param(gpus, None, sigma, seed, marks=pytest.mark.long)
            for gpus in (20, 25, 50)
            for sigma in ("0.1", "0.3", "1.0")
            for seed in range(1000, 1004)
        ),
    ],
)
def test_as_much_is_kept_as_by_cp_sat(
    gpus: int, services: int | None, sigma: str, seed: int
) -> None:
    now, wanted = change_of(DRAWN, gpus=gpus, n=services, sigma=sigma, seed=seed)
    found = placed(wanted, now)
    least, most = most_kept_by_cp_sat(now, wanted)
    assert least <= found.kept <= most
    assert services is None or least == most


def test_negative_prices_are_refused() -> None:
    with pytest.raises(InvalidCertificate, match="price of 0 is -1; expected no negative"):
        Prices({0: Fraction(-1)}, {}, {})


def test_the_bound_is_what_makes_a_proof() -> None:
    """Both layouts keep one of two: prices say so, without any search."""
    held = (works("chat", "3g.40gb", 0), works("chat", "1g.10gb", 4))
    wanted = wanted_for({kind("chat", "3g.40gb"): 2, kind("chat", "1g.10gb"): 1}, {A100: 1})
    found = place(wanted, fleet(held))
    assert not isinstance(found, Placed)
    wanted = wanted_for({kind("chat", "3g.40gb"): 2}, {A100: 1})
    found = placed(wanted, fleet(held))
    assert (found.kept, found.running, found.most_kept) == (1, 2, 1)
    assert found.proof is Proof.CHECKED
    assert str(found).splitlines()[1] == (
        "1 of 2 running instances stay (the most possible, checked)"
    )


def test_what_does_not_run_yet_does_not_loosen_the_bound() -> None:
    now = fleet((works("chat", "1g.10gb", 0), works("code", "1g.10gb", 6)))
    every = {kind("chat", "1g.10gb"): 1, kind("code", "1g.10gb"): 1, kind("sum", "4g.40gb"): 1}
    found = placed(wanted_for(every, {A100: 1}), now)
    assert (found.kept, found.most_kept, found.proof) == (1, 1, Proof.CHECKED)


# --- what stays where -----------------------------------------------------------------------------


def test_what_is_wanted_stays_and_the_rest_goes_elsewhere() -> None:
    now = fleet((works("chat", "3g.40gb", 4), works("code", "2g.20gb", 0)), ())
    wanted = wanted_for({kind("chat", "3g.40gb"): 1, kind("sum", "4g.40gb"): 1}, {A100: 1})
    assert shown(placed(wanted, now)) == ["4g.40gb@0=sum 3g.40gb@4=chat", ""]


def test_new_work_takes_instances_that_are_there() -> None:
    now = fleet((works("chat", "2g.20gb", 2), Instance("1g.10gb", 6), Instance("1g.10gb", 5)))
    wanted = wanted_for({kind("code", "2g.20gb"): 1, kind("sum", "1g.10gb"): 1}, {A100: 1})
    assert shown(placed(wanted, now)) == ["2g.20gb@2=code 1g.10gb@5=sum 1g.10gb@6=-"]


def test_the_longest_run_stays_free() -> None:
    now = fleet((works("chat", "1g.10gb", 5),))
    wanted = wanted_for({kind("chat", "1g.10gb"): 1, kind("code", "1g.10gb"): 1}, {A100: 1})
    assert shown(placed(wanted, now)) == ["1g.10gb@5=chat 1g.10gb@6=code"]


def test_hollow_and_leaving_instances_are_no_reason_to_wait() -> None:
    leaving = Instance("3g.40gb", 4, point("chat", A100, "3g.40gb"), state=State.DRAINING)
    now = fleet((leaving, Instance("1g.10gb", 0, state=State.HOLLOW)))
    wanted = wanted_for({kind("chat", "3g.40gb"): 1}, {A100: 1})
    found = placed(wanted, now)
    assert found.kept == 0
    assert shown(found) == ["3g.40gb@4=chat"]
    ((_, instance),) = found.deployment.instances()
    assert instance.state is State.RUNNING


def test_what_is_starting_stays_and_is_to_run() -> None:
    starting = Instance("3g.40gb", 4, point("chat", A100, "3g.40gb"), state=State.STARTING)
    found = placed(wanted_for({kind("chat", "3g.40gb"): 1}, {A100: 1}), fleet((starting,)))
    ((_, instance),) = found.deployment.instances()
    assert (found.kept, instance.state) == (1, State.RUNNING)


def test_an_old_driver_does_not_get_new_profiles() -> None:
    old = FleetNode("a", (FleetGpu("a", 0, gpu(A100)),), driver="470.82")
    new = FleetNode("b", (FleetGpu("b", 0, gpu(A100)),), driver="550.54")
    wanted = wanted_for({kind("chat", "1g.20gb"): 1, kind("code", "1g.10gb"): 1}, {A100: 1})
    assert shown(placed(wanted, Deployment((old, new)))) == ["", "1g.20gb@0=chat 1g.10gb@2=code"]


# --- other ways to share a GPU --------------------------------------------------------------------


def test_shares_under_mps_stay_beside_others() -> None:
    other = Instance("mps:40", owner="pod team-x/a")
    now = fleet((works("chat", "mps:50", None), other), (), mode=Mode.MPS)
    wanted = wanted_for({kind("chat", "mps:50"): 1, kind("code", "mps:20"): 1}, {A100: 2})
    found = placed(wanted, now)
    assert shown(found) == ["mps:40=- mps:50=chat", "mps:20=code"]
    assert [card.mode for card in found.deployment.gpus()] == [Mode.MPS, Mode.MPS]


def test_a_gpu_changes_its_mode_only_when_nobody_else_is_on_it() -> None:
    other = Instance("1g.10gb", 0, owner="unknown")
    wanted = wanted_for({kind("chat", "mps:50"): 2}, {A100: 1})
    found = placed(wanted, fleet((other,), (works("code", "7g.80gb", 0),)))
    assert shown(found) == ["1g.10gb@0=-", "mps:50=chat mps:50=chat"]
    assert [card.mode for card in found.deployment.gpus()] == [Mode.MIG, Mode.MPS]


def test_whole_gpus() -> None:
    work = point("chat", A100, "7g.80gb")
    now = fleet((Instance("whole", work=work),), (), mode=Mode.WHOLE)
    found = placed(wanted_for({Kind(A100, "whole", work): 2}, {A100: 2}), now)
    assert (found.kept, shown(found)) == (1, ["whole=chat", "whole=chat"])


def test_where_starts_are_not_known_a_gpu_stays_as_cut() -> None:
    other = Instance("1g.10gb", owner="unknown")
    now = fleet((works("chat", "2g.20gb", None), works("code", "2g.20gb", None), other), ())
    wanted = wanted_for({kind("chat", "2g.20gb"): 1, kind("sum", "2g.20gb"): 1}, {A100: 1})
    found = placed(wanted, now)
    assert (found.kept, found.more_gpus) == (1, {})
    assert shown(found) == ["1g.10gb=- 2g.20gb=chat 2g.20gb=sum", ""]
    wanted = wanted_for({kind("chat", "2g.20gb"): 1, kind("sum", "3g.40gb"): 1}, {A100: 2})
    found = placed(wanted, now)
    assert found.kept == 1
    assert shown(found) == ["1g.10gb=- 2g.20gb=- 2g.20gb=chat", "3g.40gb@0=sum"]


def test_without_others_a_gpu_of_unknown_starts_may_be_cut_anew() -> None:
    now = fleet((works("chat", "2g.20gb", None), Instance("1g.10gb")))
    wanted = wanted_for({kind("chat", "7g.80gb"): 1}, {A100: 1})
    found = placed(wanted, now)
    assert shown(found) == ["7g.80gb@0=chat"]
    assert next(found.deployment.gpus()).seen is Seen.SEEN


def test_tools_that_cut_whole_gpus_keep_only_what_lies_on_gpus_that_stay_as_cut() -> None:
    now = fleet((works("chat", "3g.40gb", 4), works("code", "2g.20gb", 0)), ())
    wanted = wanted_for({kind("chat", "3g.40gb"): 1, kind("sum", "4g.40gb"): 1}, {A100: 1})
    assert placed(wanted, now).kept == 1
    found = placed(wanted, now, whole_gpus=True)
    assert found.kept == 0
    wanted = wanted_for({kind("chat", "3g.40gb"): 1, kind("sum", "4g.40gb"): 1}, {A100: 2})
    found = placed(wanted, now, whole_gpus=True)
    assert (found.kept, shown(found)) == (1, ["2g.20gb@0=- 3g.40gb@4=chat", "4g.40gb@0=sum"])
    assert {card.seen for card in found.deployment.gpus()} == {Seen.SEEN}
    wanted = wanted_for({kind("chat", "3g.40gb"): 1, kind("sum", "2g.20gb"): 1}, {A100: 1})
    found = placed(wanted, now, whole_gpus=True)
    assert shown(found) == ["2g.20gb@0=sum 3g.40gb@4=chat", ""]


@share(3)
@given(st.data())
def test_on_whole_gpus_as_much_is_kept_as_can_be(data: st.DataObject) -> None:
    now = data.draw(deployments(most_nodes=2, most_gpus=1, keys=(A30,)))
    wanted = data.draw(promises(now))
    best = best_placement(now, wanted, whole=True)
    found = place(wanted, now, whole_gpus=True)
    assert isinstance(found, Placed) == (best is not None)
    if isinstance(found, Placed) and best is not None:
        assert (-sum(found.more_gpus.values()), found.kept) == best[:2]
        for before, after in zip(now.gpus(), found.deployment.gpus(), strict=True):
            assert not before.pinned or before.layout == after.layout
