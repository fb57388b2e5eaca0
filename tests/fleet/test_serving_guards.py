"""What is odd about a table is warned about, and what cannot be served is explained."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest

from cms import Status, solve
from cms.fleet import RULES, OperatingPoint, Service, as_problem


def point(
    profile: str = "3g.40gb",
    throughput: int | str = 100,
    latency: int | str = 10,
    *,
    processes: int = 1,
    batch: int = 1,
) -> OperatingPoint:
    return OperatingPoint("bert", "a100-80gb", profile, processes, batch, throughput, latency)


def service(name: str = "chat", limit: int | str = 100) -> Service:
    return Service(name, "bert", 1000, limit)


def test_a_service_that_no_point_serves_is_explained_and_makes_the_problem_infeasible() -> None:
    points = [
        point("7g.80gb", 151, 46),
        point("3g.40gb", 100, 60),
        point("7g.80gb", 9, 50, batch=2),
    ]
    serving = as_problem([service(limit=40), service("slow", limit=200)], points, rule="plain")
    assert dict(serving.unservable) == {
        "chat": "chat: no profile meets 40 ms under the rule 'plain'; best: 7g.80gb, 1 process, "
        "batch 1: 46 ms is not <= 40 ms; a limit of 46 ms would do"
    }
    assert solve(serving.problem).status is Status.INFEASIBLE


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("parvagpu", "45 ms is not < 0.45 x 40 ms = 18 ms; a limit above 100 ms would do"),
        ("half", "45 ms is not <= 0.5 x 40 ms = 20 ms; a limit of 90 ms would do"),
    ],
)
def test_the_limit_that_would_do_is_the_smallest(rule: str, text: str) -> None:
    slow = point(latency=45)
    assert RULES[rule].refusal(service(limit=40), slow) == text
    edge = 100 if rule == "parvagpu" else 90
    assert (RULES[rule].supply(service(limit=edge), slow) > 0) == (rule == "half")
    assert RULES[rule].supply(service(limit=f"{edge}.001"), slow)


def warnings(points: list[OperatingPoint], limit: int | str = 100) -> tuple[str, ...]:
    return as_problem([service(limit=limit)], points, rule="plain").warnings


def measured(unit: Fraction, *, whole: bool = True) -> list[OperatingPoint]:
    """Points whose batches take 10 ms times a unit; throughput of the instance or of a process."""
    return [
        point(
            throughput=str(100 * batch * (processes if whole else 1)),
            latency=str(10 * unit),
            processes=processes,
            batch=batch,
        )
        for batch in (1, 4)
        for processes in (1, 2, 3)
    ]


def test_sound_measurements_give_no_warning() -> None:
    assert warnings(measured(Fraction(1))) == ()


@pytest.mark.parametrize(
    ("points", "limit", "message"),
    [
        (
            measured(Fraction(1, 1000)),
            "0.1",
            "6 of 6 operating points .bert.: .* looks like seconds",
        ),
        (measured(Fraction(1000)), 100_000, "6 of 6 .* latency_ms looks like microseconds"),
        (measured(Fraction(1), whole=False), 100, "4 of 6 .* looks like that of one process"),
        (measured(Fraction(10)), 1000, "6 of 6 .* far from batch x processes"),
        (measured(Fraction(1)), 100_000, "latency_limit_ms looks like microseconds"),
        (measured(Fraction(1)), "0.1", "1 of 1 services: .* latency_limit_ms looks like seconds"),
    ],
)
def test_a_mistaken_unit_is_warned_about(
    points: list[OperatingPoint], limit: int | str, message: str
) -> None:
    (warning,) = warnings(points, limit)
    assert re.search(message, warning)


def test_latencies_in_a_wrong_unit_are_not_held_against_the_limits_too() -> None:
    (warning,) = warnings(measured(Fraction(1, 1000)), limit=100)
    assert "looks like seconds" in warning


def test_limits_in_a_wrong_unit_are_one_warning_for_all_services() -> None:
    services = [service(name, "0.1") for name in "abc"]
    (warning,) = as_problem(services, measured(Fraction(1))).warnings
    assert warning.startswith("3 of 3 services: ")
    assert warning.endswith("for example: a, 0.1 ms, fastest operating point of bert: 10 ms")


def test_a_short_limit_that_could_be_meant_gives_no_warning() -> None:
    assert warnings(measured(Fraction(1)), limit=5) == ()


def test_numbers_that_no_float_holds_are_compared_all_the_same() -> None:
    (warning,) = warnings([point(throughput="1e399", latency="1e-2")])
    assert "check both units" in warning


def test_a_length_in_a_sentence_is_a_decimal_rounded_up() -> None:
    odd = OperatingPoint("bert", "a100-80gb", "3g.40gb", 1, 8, "1.325", 6037)
    said = RULES["capacity"].refusal(service("a", 50), odd)
    assert said.startswith("6037.74 ms a batch")  # 320000/53


def test_one_slip_among_sound_points_is_named() -> None:
    points = [*measured(Fraction(1)), point("7g.80gb", 8000, "0.001", batch=8)]
    (warning,) = warnings(points)
    assert warning.startswith("1 of 7 operating points (bert)")
    assert "7g.80gb, 1 process, batch 8: 8000 items/s at 0.001 ms" in warning


def test_throughput_that_rises_while_the_instance_shrinks_is_warned_about() -> None:
    points = [point("4g.40gb", 100), point("7g.80gb", 90), point("3g.40gb", 103)]
    assert warnings(points) == (
        "model bert on a100-80gb: 103 items/s on 3g.40gb is more than 90 items/s on 7g.80gb, "
        "a larger instance; this can be true, check it",
    )


def test_shares_are_compared_with_shares_and_double_memory_is_no_larger_instance_alone() -> None:
    assert warnings([point("mps:40", 100), point("3g.40gb", 50)]) == ()
    assert len(warnings([point("mps:40", 100), point("mps:60", 50)])) == 1
    # 1g.20gb has the memory of 2g.20gb and less compute; 2g.20gb contains it
    assert len(warnings([point("1g.20gb", 100), point("2g.20gb", 50)])) == 1


@pytest.mark.parametrize(
    ("latency", "words"),
    [
        ("1e399", "1e+399 ms is not < 0.45 x 20 ms = 9 ms"),
        ("123456789e300", "1.23457e+308 ms is not"),
        ("12345678.875", "1.23457e+07 ms is not"),
    ],
)
def test_a_latency_that_no_float_holds_is_refused_in_words(latency: str, words: str) -> None:
    service = Service("chat", "bert", rate_rps=100, latency_limit_ms=20)
    point = OperatingPoint("bert", "a30-24gb", "1g.6gb", 1, 1, 5, latency)
    why = as_problem([service], [point], "a30-24gb", rule="parvagpu").unservable["chat"]
    assert words in why


def test_a_limit_whose_share_has_too_many_digits_is_refused_in_words() -> None:
    service = Service("chat", "bert", rate_rps=100, latency_limit_ms="1." + "2" * 4299)
    point = OperatingPoint("bert", "a30-24gb", "1g.6gb", 1, 1, 5, 90)
    why = as_problem([service], [point], "a30-24gb", rule="parvagpu").unservable["chat"]
    assert "90 ms is not < 0.45 x 1.22222 ms = 0.549999 ms" in why
    assert len(why) < 1_000
