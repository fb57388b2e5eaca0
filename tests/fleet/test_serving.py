"""Services and operating points become a problem, or a message that says what to change."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms import solve
from cms.errors import InvalidOption, InvalidProblem
from cms.fleet import (
    RULES,
    Gpu,
    LatencyRule,
    OperatingPoint,
    QueueingRule,
    Service,
    ServingProblem,
    as_problem,
    gpu,
)
from cms.problem.parts import MachineType, SizeBoundedConfigurations
from tests.property.problems import share

A100, H100, A30 = "a100-80gb", "h100-80gb", "a30-24gb"

LATENCY_RULES = {name: rule for name, rule in RULES.items() if isinstance(rule, LatencyRule)}


def point(
    profile: str = "3g.40gb",
    throughput: int | str = 100,
    latency: int | str = 10,
    *,
    model: str = "bert",
    device: str = A100,
    processes: int = 1,
    batch: int = 1,
) -> OperatingPoint:
    return OperatingPoint(model, device, profile, processes, batch, throughput, latency)


def service(
    name: str = "chat",
    rate: int | str = 1000,
    limit: int | str = 100,
    *,
    model: str = "bert",
    allowed: list[str] | None = None,
) -> Service:
    return Service(name, model, rate, limit, allowed)


def supply(serving: ServingProblem, name: str = "chat") -> Mapping[str, Fraction]:
    return {b: f for b in serving.problem.blocks if (f := serving.supply(name, b))}


# -- the queueing rule -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "latency", "admitted"),
    [
        ("parvagpu", "44.999", True),
        ("parvagpu", 45, False),
        ("half", 50, True),
        ("half", "50.001", False),
        ("plain", 100, True),
        ("plain", "100.001", False),
    ],
)
def test_a_rule_admits_a_batch_up_to_its_share_of_the_limit(
    rule: str, latency: int | str, admitted: bool
) -> None:
    at_limit = point(latency=latency, throughput=77)
    assert RULES[rule].supply(service(limit=100), at_limit) == (77 if admitted else 0)
    serving = as_problem([service(limit=100)], [at_limit], rule=rule)
    assert supply(serving) == ({"3g.40gb": 77} if admitted else {})


def test_a_rule_of_ones_own_decides_the_supply() -> None:
    class Derated:
        name = "derated"
        promise = None

        def supply(self, service: Service, point: OperatingPoint) -> Fraction:
            return point.throughput_rps * Fraction(4, 5)

        def refusal(self, service: Service, point: OperatingPoint) -> str:
            return "never"

        def to_json(self) -> dict[str, Any]:
            return {"name": self.name}

    rule: QueueingRule = Derated()
    assert supply(as_problem([service()], [point(throughput=10)], rule=rule)) == {"3g.40gb": 8}


def test_an_unknown_rule_is_refused_with_those_there_are() -> None:
    with pytest.raises(InvalidOption, match=r"'parvagpo'.*half.*nearest: 'parvagpu'"):
        as_problem([service()], [point()], rule="parvagpo")
    with pytest.raises(InvalidOption, match=r"expected a name .* or an object"):
        as_problem([service()], [point()], rule=0.45)  # type: ignore[call-overload]


@pytest.mark.parametrize("share", [0, "1.1", -1, float("nan")])
def test_a_share_of_the_limit_lies_between_0_and_1(share: Any) -> None:
    with pytest.raises(InvalidOption, match="share of rule 'odd'"):
        LatencyRule("odd", share, strict=True)


# -- the point behind a supply -----------------------------------------------------------------


def test_an_instance_runs_the_admissible_point_with_the_largest_throughput() -> None:
    slow = point(throughput=300, latency=50, batch=64)
    good = point(throughput=200, latency=20, batch=8)
    poor = point(throughput=100, latency=5, batch=1)
    serving = as_problem([service(limit=100)], [poor, slow, good], rule="parvagpu")
    assert supply(serving) == {"3g.40gb": 200}
    assert serving.points["chat", "3g.40gb"] == (good,)


def test_equal_throughput_goes_to_the_lower_latency_then_to_fewer_processes() -> None:
    several = point(latency=12, processes=3, batch=2)
    one = point(latency=12, processes=1, batch=4)
    late = point(latency=13, processes=1, batch=8)
    for order in ([several, one, late], [late, one, several]):
        assert as_problem([service()], order).points["chat", "3g.40gb"] == (one,)


def test_points_with_more_processes_than_allowed_are_left_out() -> None:
    points = [point(throughput=100, processes=3), point(throughput=200, processes=4)]
    serving = as_problem([service()], points, max_processes=3, rule="parvagpu")
    assert supply(serving) == {"3g.40gb": 100}
    assert serving.max_processes == 3


def test_a_service_uses_only_the_profiles_it_allows() -> None:
    points = [point("1g.10gb", 30), point("3g.40gb", 100), point("7g.80gb", 300)]
    services = [service(), service("small", allowed=["1g.10gb", "7g.79gb"])]
    serving = as_problem(services, points)
    assert set(supply(serving)) == {"1g.10gb", "3g.40gb", "7g.80gb"}
    assert set(supply(serving, "small")) == {"1g.10gb", "7g.80gb"}


def test_only_profiles_that_a_service_may_use_shape_the_configurations() -> None:
    points = [point("1g.10gb", 30), point("3g.40gb", 100), point("4g.40gb", 9, model="vgg16")]
    serving = as_problem([service()], points)
    assert {str(shape) for shape in serving.problem.configurations} == {
        "2 x 3g.40gb",
        "4 x 1g.10gb + 3g.40gb",
        "7 x 1g.10gb",
    }


def test_a_device_and_a_profile_may_go_by_another_name_of_theirs() -> None:
    other = point("7g.79gb", device="NVIDIA A100-SXM4-80GB")
    assert supply(as_problem([service()], [other], rule="parvagpu")) == {"7g.80gb": 100}


def test_a_rate_of_zero_needs_no_gpu_and_no_point_within_its_limit() -> None:
    serving = as_problem([service(rate=0, limit=1)], [point()])
    assert not serving.unservable
    assert solve(serving.problem).machine_count == 0


def test_no_services_need_no_gpu() -> None:
    assert solve(as_problem([], [point()]).problem).machine_count == 0


# -- fleets ------------------------------------------------------------------------------------


def test_several_gpu_types_qualify_their_blocks() -> None:
    points = [point("3g.40gb", 100), point("3g.40gb", 180, device=H100)]
    serving = as_problem(
        [service()], points, [A100, H100], limits={H100: 4}, costs={H100: "2.5"}, rule="parvagpu"
    )
    assert supply(serving) == {f"{A100}:3g.40gb": 100, f"{H100}:3g.40gb": 180}
    assert serving.problem.machine_types == (MachineType(A100), MachineType(H100, "2.5", limit=4))
    assert serving.instance_of(f"{H100}:3g.40gb") == (H100, "3g.40gb")
    assert serving.gpu_of(H100) is gpu(H100)


def test_a_qualified_profile_is_allowed_on_that_gpu_alone() -> None:
    points = [point(), point(device=H100)]
    chosen = service(allowed=[f"{H100}:3g.40gb"])
    assert set(supply(as_problem([chosen], points, [A100, H100]))) == {f"{H100}:3g.40gb"}


def test_points_on_other_known_gpus_are_left_aside() -> None:
    serving = as_problem([service()], [point(), point("2g.12gb", device=A30)], A100)
    assert serving.problem.blocks == ("3g.40gb",)


def test_limits_and_costs_take_product_names() -> None:
    serving = as_problem([service()], [point()], limits={"A100-SXM4-80GB": 3})
    assert serving.problem.machine_types[0].limit == 3


def test_shares_under_mps_stand_beside_mig_on_the_same_gpu() -> None:
    points = [point("3g.40gb", 100), point("mps:40", 110), point("mps:20", 60)]
    serving = as_problem([service()], points, rule="parvagpu")
    listed, shared = serving.problem.configurations
    assert str(listed) == "2 x 3g.40gb"
    assert isinstance(shared, SizeBoundedConfigurations)
    assert dict(shared.sizes) == {"mps:20": 20, "mps:40": 40}
    assert (shared.machine, shared.max_blocks) == (A100, 48)
    assert shared.capacity == 100
    assert supply(serving) == {"3g.40gb": 100, "mps:20": 60, "mps:40": 110}
    assert solve(serving.problem).machine_count == 4  # five shares of 20 give 300 on a GPU


def test_mps_can_be_switched_off() -> None:
    points = [point("3g.40gb", 100), point("mps:40", 110)]
    assert supply(as_problem([service()], points, mps=False, rule="parvagpu")) == {"3g.40gb": 100}
    with pytest.raises(InvalidProblem, match="left out: under MPS shares"):
        as_problem([service()], [point("mps:40", 110)], mps=False, rule="parvagpu")


# -- data that cannot be right -----------------------------------------------------------------


def two_gpus() -> dict[str, Any]:
    return {"services": [service()], "gpus": [A100, H100], "points": [point()]}


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ({"services": [service(model="brt")]}, "was not measured; nearest: 'bert'"),
        ({"services": [service(), service()]}, "two services are called 'chat'"),
        (
            {"points": [point(device="a100-80bg")]},
            "known; did you mean a100-80gb, h100-80gb or a100-40gb",
        ),
        (
            {"points": [point(device="H100")]},
            r"h100-80gb \(H100 80GB HBM3, H100 PCIe\), h100-94gb \(H100 NVL\) or h100-96gb",
        ),
        (
            {"points": [point(device="H100 NVL"), point(device="A30")]},
            r"only on h100-94gb, a30-24gb; .*\(--gpu h100-94gb --gpu a30-24gb, in Python gpus=",
        ),
        ({"points": [point("3g.40g")]}, "no profile '3g.40g'; nearest: '3g.40gb'"),
        ({"points": [point(), point(throughput=3)]}, "two operating points of 'bert'"),
        ({"points": [point(), point(device="A100-SXM4-80GB")]}, "two operating points"),
        ({"points": []}, "there are no operating points"),
        ({"points": [point(processes=4)], "max_processes": 3}, "left out: with more than max_pro"),
        ({"services": [service(allowed=["3g.40g"])]}, "nearest: '3g.40gb'"),
        ({"services": [service(allowed=["1g.10gb"])]}, "allows only 1g.10gb.*measured on 3g.40gb"),
        (two_gpus(), "nothing was measured on h100-80gb, only on a100-80gb"),
        (
            {"points": [point(model="vgg16"), point(processes=4)], "max_processes": 3},
            "every operating point of model 'bert' was left out",
        ),
        (
            {"points": [point(model="vgg16"), point(device=H100)]},
            "of model 'bert' was left out .on h100-80gb.",
        ),
    ],
)
def test_data_that_cannot_be_right_is_refused_by_name(case: dict[str, Any], message: str) -> None:
    data: dict[str, Any] = {"services": [service()], "points": [point()], **case}
    with pytest.raises(InvalidProblem, match=message):
        as_problem(data.pop("services"), data.pop("points"), data.pop("gpus", [A100]), **data)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ({"gpus": "a100-80bg"}, "unknown GPU 'a100-80bg'"),
        ({"gpus": []}, "no GPU type"),
        ({"gpus": [A100, A100]}, "named twice"),
        ({"limits": {H100: 3}}, "a limit is given for the GPU 'h100-80gb', which is not in"),
        ({"costs": {A100: 1, "A100-SXM4-80GB": 2}}, "a cost is given for a100-80gb twice"),
        ({"max_processes": 0}, "max_processes is 0; expected an integer >= 1"),
        ({"max_processes": True}, "max_processes is True"),
    ],
)
def test_options_that_cannot_be_right_are_refused(case: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        as_problem([service()], [point()], **case)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rate_rps": -1}, "the rate of service 'chat' is -1; expected a number >= 0"),
        ({"rate_rps": float("nan")}, "the rate of service 'chat' is nan"),
        ({"latency_limit_ms": 0}, "the latency limit of service 'chat' is 0 ms"),
        ({"name": ""}, "service name is ''"),
        ({"model": "a\tb"}, "control character"),
        ({"allowed_profiles": []}, "allows no profile at all"),
        ({"allowed_profiles": "3g.40gb"}, r"expected a list of names: \['3g.40gb'\]"),
    ],
)
def test_a_wrong_service_is_refused(change: dict[str, Any], message: str) -> None:
    right = {"name": "chat", "model": "bert", "rate_rps": 1, "latency_limit_ms": 1}
    with pytest.raises(InvalidProblem, match=message):
        Service(**{**right, **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"throughput": 0}, "leave points that did not run out"),
        ({"latency": -1}, "expected a number >= 0"),
        ({"processes": 0}, "processes = 0; expected an integer >= 1"),
        ({"batch": 1.5}, "batch = 1.5"),
        ({"profile": "mps:0"}, "no share of a GPU"),
        ({"profile": "mps:101"}, "no share of a GPU"),
        ({"profile": "mps:040"}, "no share of a GPU"),
        ({"profile": "mps:40", "processes": 2}, "client with a share of its own"),
    ],
)
def test_a_wrong_operating_point_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidProblem, match=message):
        point(**change)


# -- properties --------------------------------------------------------------------------------


NUMBERS = st.fractions(min_value="1/10", max_value=200, max_denominator=20)
SETTINGS = st.lists(
    st.tuples(
        st.sampled_from(["1g.10gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"]),
        st.integers(1, 3),
        st.sampled_from([1, 2, 4, 8]),
    ),
    min_size=1,
    max_size=12,
    unique=True,
)


@st.composite
def tables(draw: st.DrawFn) -> tuple[Service, list[OperatingPoint]]:
    points = [
        OperatingPoint("bert", A100, profile, processes, batch, draw(NUMBERS), draw(NUMBERS))
        for profile, processes, batch in draw(SETTINGS)
    ]
    return Service("chat", "bert", draw(NUMBERS), draw(NUMBERS)), points


@share(4)
@given(tables(), st.sampled_from(sorted(LATENCY_RULES)))
def test_a_supply_is_the_largest_throughput_that_the_rule_admits(
    table: tuple[Service, list[OperatingPoint]], rule: str
) -> None:
    chat, points = table
    serving = as_problem([chat], points, rule=rule)
    admitted = [p for p in points if LATENCY_RULES[rule].admits(chat, p)]
    best = {
        profile: max(p.throughput_rps for p in admitted if p.profile == profile)
        for profile in {p.profile for p in admitted}
    }
    assert supply(serving) == best
    assert bool(serving.unservable) == (not best)
    assert {block for _, block in serving.points} == set(best)


@share(4)
@given(tables(), st.fractions(min_value=1, max_value=3, max_denominator=10))
def test_a_longer_limit_never_lowers_a_supply(
    table: tuple[Service, list[OperatingPoint]], factor: Fraction
) -> None:
    chat, points = table
    assert chat.latency_limit_ms is not None
    longer = Service("chat", "bert", chat.rate_rps, chat.latency_limit_ms * factor)
    before, after = supply(as_problem([chat], points)), supply(as_problem([longer], points))
    assert all(after.get(block, 0) >= amount for block, amount in before.items())


@given(tables(), st.randoms())
def test_the_order_of_the_table_changes_nothing(
    table: tuple[Service, list[OperatingPoint]], random: Any
) -> None:
    chat, points = table
    mixed = list(points)
    random.shuffle(mixed)
    one, other = as_problem([chat], points), as_problem([chat], mixed)
    assert one.problem == other.problem
    assert one.points == other.points


def test_a_serving_problem_survives_pickling() -> None:
    serving = as_problem([service()], [point()])
    copy = pickle.loads(pickle.dumps(serving))
    assert copy == serving
    assert isinstance(copy.gpus[0], Gpu)
