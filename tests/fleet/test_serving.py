"""Services and operating points become a problem, or a message that says what to change."""

from __future__ import annotations

import pickle
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms import Status, solve
from cms.errors import InvalidOption, InvalidProblem
from cms.fleet import (
    RULES,
    Gpu,
    LatencyRule,
    OperatingPoint,
    Service,
    ServingProblem,
    build_problem,
    get_gpu,
)
from cms.problem.parts import MachineType, SizeBoundedConfigurations
from tests.property.problems import share

A100, H100, A30 = "a100-80gb", "h100-80gb", "a30-24gb"

LATENCY_RULES = {name: rule for name, rule in RULES.items() if isinstance(rule, LatencyRule)}


def point(
    profile: str = "3g.40gb", throughput: Any = 100, latency: Any = 10, **more: Any
) -> OperatingPoint:
    own: dict[str, Any] = {"model": "bert", "device": A100, "processes": 1, "batch": 1} | more
    return OperatingPoint(profile=profile, throughput_rps=throughput, latency_ms=latency, **own)


def service(
    name: str = "chat", rate: Any = 1000, limit: Any = 100, model: str = "bert", allowed: Any = None
) -> Service:
    return Service(name, model, rate, limit, allowed)


def supply(serving: ServingProblem, name: str = "chat") -> Mapping[str, Fraction]:
    return {b: f for b in serving.problem.blocks if (f := serving.supply(name, b))}


def test_a_rule_admits_a_batch_up_to_its_share_of_the_limit() -> None:
    for rule, inside, beyond in (
        ("parvagpu", "44.999", 45), ("half", 50, "50.001"), ("plain", 100, "100.001"),
    ):  # fmt: skip
        for latency, admitted in ((inside, 77), (beyond, 0)):
            at_limit = point(latency=latency, throughput=77)
            assert RULES[rule].supply(service(), at_limit) == admitted
            serving = build_problem([service()], [at_limit], rule=rule)
            assert supply(serving) == ({"3g.40gb": 77} if admitted else {})
    odd: Any
    for odd in (0, "1.1", -1, float("nan")):
        with pytest.raises(InvalidOption, match="share of rule 'odd'"):
            LatencyRule("odd", odd, strict=True)


def test_what_serves_a_service_and_shapes_configurations() -> None:
    points = [point("1g.10gb", 30), point("3g.40gb", 100), point("4g.40gb", 9, model="vgg16")]
    small = service("small", allowed=["1g.10gb", "7g.79gb"])
    serving = build_problem([service(), small], [*points, point("7g.80gb", 300)])
    assert set(supply(serving)) == {"1g.10gb", "3g.40gb", "7g.80gb"}
    assert set(supply(serving, "small")) == {"1g.10gb", "7g.80gb"}
    assert {str(shape) for shape in build_problem([service()], points).problem.configurations} == {
        "2 x 3g.40gb", "4 x 1g.10gb + 3g.40gb", "7 x 1g.10gb",
    }  # fmt: skip
    several = point(latency=12, processes=3, batch=2)
    one = point(latency=12, processes=1, batch=4)
    late = point(latency=13, processes=1, batch=8)
    for order in ([several, one, late], [late, one, several]):
        assert build_problem([service()], order).points["chat", "3g.40gb"] == (one,)
    points = [point(throughput=100, processes=3), point(throughput=200, processes=4)]
    serving = build_problem([service()], points, max_processes=3, rule="parvagpu")
    assert supply(serving) == {"3g.40gb": 100}
    assert serving.max_processes == 3
    other = point("7g.79gb", device="NVIDIA A100-SXM4-80GB")
    assert supply(build_problem([service()], [other], rule="parvagpu")) == {"7g.80gb": 100}
    serving = build_problem([service(rate=0, limit=1)], [point()])
    assert not serving.unservable
    for none in (serving, build_problem([], [point()])):
        assert solve(none.problem).machine_count == 0


def test_gpu_types_and_shares_under_mps_stand_beside_each_other() -> None:
    points = [point("3g.40gb", 100), point("3g.40gb", 180, device=H100)]
    serving = build_problem(
        [service()], points, [A100, H100], limits={H100: 4}, costs={H100: "2.5"}, rule="parvagpu"
    )
    assert supply(serving) == {f"{A100}:3g.40gb": 100, f"{H100}:3g.40gb": 180}
    assert serving.problem.machine_types == (MachineType(A100), MachineType(H100, "2.5", limit=4))
    assert serving.instance_of(f"{H100}:3g.40gb") == (H100, "3g.40gb")
    assert serving.gpu_of(H100) is get_gpu(H100)
    points = [point(), point(device=H100), point("2g.12gb", device=A30)]
    chosen = service(allowed=[f"{H100}:3g.40gb"])
    assert set(supply(build_problem([chosen], points, [A100, H100]))) == {f"{H100}:3g.40gb"}
    serving = build_problem([service()], points, A100, limits={"A100-SXM4-80GB": 3})
    assert serving.problem.blocks == ("3g.40gb",)
    assert serving.problem.machine_types[0].limit == 3
    points = [point("3g.40gb", 100), point("mps:40", 110), point("mps:20", 60)]
    serving = build_problem([service()], points, rule="parvagpu")
    listed, shared = serving.problem.configurations
    assert str(listed) == "2 x 3g.40gb"
    assert isinstance(shared, SizeBoundedConfigurations)
    assert dict(shared.sizes) == {"mps:20": 20, "mps:40": 40}
    assert (shared.machine, shared.max_blocks) == (A100, 48)
    assert shared.capacity == 100
    assert supply(serving) == {"3g.40gb": 100, "mps:20": 60, "mps:40": 110}
    assert solve(serving.problem).machine_count == 4  # five shares of 20 give 300 on a GPU
    off = build_problem([service()], points, mps=False, rule="parvagpu")
    assert supply(off) == {"3g.40gb": 100}


VGG = point(model="vgg16")


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ({"services": [service(model="brt")]}, "was not measured; nearest: 'bert'"),
        ({"services": [service(), service()]}, "two services are called 'chat'"),
        ({"points": [point(device="a100-80bg")]}, "did you mean a100-80gb, h100-80gb or a100-40gb"),
        (
            {"points": [point(device="H100 NVL"), point(device="A30")]},
            r"only on h100-94gb, a30-24gb; .*\(--gpu h100-94gb --gpu a30-24gb, in Python gpus=",
        ),
        ({"points": [point("3g.40g")]}, "no profile '3g.40g'; nearest: '3g.40gb'"),
        ({"points": [point(), point(throughput=3)]}, "two operating points of 'bert'"),
        ({"points": [point(), point(device="A100-SXM4-80GB")]}, "two operating points"),
        ({"points": [point("mps:40", 110)], "mps": False}, "left out: under MPS shares"),
        ({"points": []}, "there are no operating points"),
        ({"points": [point(processes=4)], "max_processes": 3}, "left out: with more than max_pro"),
        ({"services": [service(allowed=["3g.40g"])]}, "nearest: '3g.40gb'"),
        ({"services": [service(allowed=["1g.10gb"])]}, "allows only 1g.10gb.*measured on 3g.40gb"),
        ({"gpus": [A100, H100]}, "nothing was measured on h100-80gb, only on a100-80gb"),
        ({"points": [VGG, point(processes=4)], "max_processes": 3}, "model 'bert' was left out"),
        ({"points": [VGG, point(device=H100)]}, "of model 'bert' was left out .on h100-80gb."),
        ({"rule": 0.45}, r"expected a name .* or an object"),
        ({"gpus": []}, "no GPU type"),
        ({"gpus": [A100, A100]}, "named twice"),
        ({"costs": {A100: 1, "A100-SXM4-80GB": 2}}, "a cost is given for a100-80gb twice"),
        ({"max_processes": 0}, "max_processes is 0; expected an integer >= 1"),
    ],
)
def test_data_and_options_that_cannot_be_right_are_refused(
    case: dict[str, Any], message: str
) -> None:
    data: dict[str, Any] = {"services": [service()], "points": [point()], **case}
    with pytest.raises((InvalidProblem, InvalidOption), match=message):
        build_problem(data.pop("services"), data.pop("points"), data.pop("gpus", [A100]), **data)


def test_a_wrong_service_or_operating_point_is_refused() -> None:
    right = {"name": "chat", "model": "bert", "rate_rps": 1, "latency_limit_ms": 1}
    services: list[tuple[dict[str, Any], str]] = [
        ({"rate_rps": -1}, "the rate of service 'chat' is -1; expected a number >= 0"),
        ({"latency_limit_ms": 0}, "the latency limit of service 'chat' is 0 ms"),
        ({"name": ""}, "service name is ''"),
        ({"model": "a\tb"}, "control character"),
        ({"allowed_profiles": []}, "allows no profile at all"),
        ({"allowed_profiles": "3g.40gb"}, r"expected a list of names: \['3g.40gb'\]"),
    ]
    for change, message in services:
        with pytest.raises(InvalidProblem, match=message):
            Service(**{**right, **change})
    points: list[tuple[dict[str, Any], str]] = [
        ({"throughput": 0}, "leave points that did not run out"),
        ({"latency": -1}, "expected a number >= 0"),
        ({"processes": 0}, "processes = 0; expected an integer >= 1"),
        ({"batch": 1.5}, "batch = 1.5"),
        ({"profile": "mps:0"}, "no share of a GPU"),
        ({"profile": "mps:040"}, "no share of a GPU"),
        ({"profile": "mps:40", "processes": 2}, "client with a share of its own"),
    ]
    for change, message in points:
        with pytest.raises(InvalidProblem, match=message):
            point(**change)


NUMBERS = st.fractions(min_value="1/10", max_value=200, max_denominator=20)
PROFILES = st.sampled_from(["1g.10gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"])
SETTINGS = st.lists(
    st.tuples(PROFILES, st.integers(1, 3), st.sampled_from([1, 2, 4, 8])),
    min_size=1, max_size=12, unique=True,
)  # fmt: skip


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
    serving = build_problem([chat], points, rule=rule)
    admitted = [p for p in points if LATENCY_RULES[rule].admits(chat, p)]
    best = {
        profile: max(p.throughput_rps for p in admitted if p.profile == profile)
        for profile in {p.profile for p in admitted}
    }
    assert supply(serving) == best
    assert bool(serving.unservable) == (not best)
    assert {block: p.throughput_rps for (_, block), (p,) in serving.points.items()} == best


@given(tables(), st.randoms())
def test_the_order_of_the_table_changes_nothing(
    table: tuple[Service, list[OperatingPoint]], random: Any
) -> None:
    chat, points = table
    one, other = (
        build_problem([chat], points),
        build_problem([chat], random.sample(points, len(points))),
    )
    assert (one.problem, one.points) == (other.problem, other.points)


def test_a_serving_problem_survives_pickling() -> None:
    serving = build_problem([service()], [point()])
    copy = pickle.loads(pickle.dumps(serving))
    assert copy == serving
    assert isinstance(copy.gpus[0], Gpu)


def test_a_service_that_no_point_serves_is_explained_with_the_limit_that_would_do() -> None:
    points = [
        point("7g.80gb", 151, 46), point("3g.40gb", 100, 60), point("7g.80gb", 9, 50, batch=2),
    ]  # fmt: skip
    serving = build_problem([service(limit=40), service("slow", limit=200)], points, rule="plain")
    assert dict(serving.unservable) == {
        "chat": "chat: no profile meets 40 ms under the rule 'plain'; best: 7g.80gb, 1 process, "
        "batch 1: 46 ms is not <= 40 ms; a limit of 46 ms would do"
    }
    assert solve(serving.problem).status is Status.INFEASIBLE
    odd = point(throughput="1.325", latency=6037, batch=8)  # 320000/53
    assert RULES["capacity"].refusal(service(limit=50), odd).startswith("6037.74 ms a batch")
    for rule, limit, does in (("parvagpu", 100, False), ("half", 90, True)):
        assert (RULES[rule].supply(service(limit=limit), point(latency=45)) > 0) is does
        assert RULES[rule].supply(service(limit=f"{limit}.001"), point(latency=45))


@pytest.mark.parametrize(
    ("rule", "latency", "limit", "text"),
    [
        ("parvagpu", 45, 40, "45 ms is not < 0.45 x 40 ms = 18 ms; a limit above 100 ms would do"),
        ("half", 45, 40, "45 ms is not <= 0.5 x 40 ms = 20 ms; a limit of 90 ms would do"),
        # what no float holds, and what has too many digits
        ("parvagpu", "1e399", 20, "1e+399 ms is not < 0.45 x 20 ms = 9 ms"),
        ("parvagpu", "12345678.875", 20, "1.23457e+07 ms is not"),
        ("parvagpu", 90, "1." + "2" * 4299, "90 ms is not < 0.45 x 1.22222 ms = 0.549999 ms"),
    ],
)
def test_a_refusal_says_the_smallest_limit_that_would_do(
    rule: str, latency: Any, limit: Any, text: str
) -> None:
    said = RULES[rule].refusal(service(limit=limit), point(latency=latency))
    assert said.startswith(text)
    assert len(said) < 1_000


def measured(unit: int | str, *, whole: bool = True) -> list[OperatingPoint]:
    """Points whose batches take 10 ms times a unit; throughput of the instance or of a process."""
    return [
        point(
            throughput=100 * batch * (processes if whole else 1),
            latency=str(10 * Fraction(unit)), processes=processes, batch=batch,
        )
        for batch in (1, 4)
        for processes in (1, 2, 3)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("points", "limit", "message"),
    [
        (measured(1), 100, None),
        (measured(1), 5, None),  # a short limit that could be meant
        (measured("1/1000"), "0.1", "6 of 6 operating points .bert.: .* looks like seconds"),
        (measured("1/1000"), 100, "looks like seconds"),  # not held against the limits too
        (measured(1000), 100_000, "6 of 6 .* latency_ms looks like microseconds"),
        (measured(1, whole=False), 100, "4 of 6 .* looks like that of one process"),
        (measured(10), 1000, "6 of 6 .* far from batch x processes"),
        (measured(1), 100_000, "latency_limit_ms looks like microseconds"),
        (measured(1), "0.1", "1 of 1 services: .*_limit_ms looks like seconds.*chat, 0.1 ms, fas"),
        ([point(throughput="1e399", latency="1e-2")], 100, "check both units"),
        (
            [*measured(1), point("7g.80gb", 8000, "0.001", batch=8)], 100,
            r"^1 of 7 operating points \(bert\).*7g.80gb, 1 process, batch 8: 8000 requests/s at 0",
        ),
        (
            [point("4g.40gb", 100), point("7g.80gb", 90), point("3g.40gb", 103)], 100,
            r"^model bert on a100-80gb: 103 requests/s on 3g.40gb is more than 90 requests/s on 7g",
        ),
        # shares are compared with shares; double memory alone is no larger instance
        ([point("mps:40", 100), point("3g.40gb", 50)], 100, None),
        ([point("mps:40", 100), point("mps:60", 50)], 100, "on mps:40 is more than"),
        ([point("1g.20gb", 100), point("2g.20gb", 50)], 100, "on 1g.20gb is more than"),
    ],
)  # fmt: skip
def test_what_may_be_a_mistaken_unit_is_warned_about_once(
    points: list[OperatingPoint], limit: int | str, message: str | None
) -> None:
    said = build_problem([service(limit=limit)], points, rule="plain").warnings
    assert len(said) == (message is not None)
    assert re.search(message or "", "".join(said))
