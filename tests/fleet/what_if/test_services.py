"""The same services at other rates, or without some."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from cms import InvalidOption
from cms.fleet import Service, changed_services
from tests.samples import refusal

CHAT = Service("chat", "bert", 100, 60, ["3g.40gb"], {"team": "a"}, "s.csv:2", "0.05", "process")
SEE = Service("see", "vgg", 50)


@pytest.mark.parametrize(
    ("asked", "rates"),
    [
        ({}, {"chat": 100, "see": 50}),
        ({"scale": 2}, {"chat": 200, "see": 100}),
        ({"scale": "1/3"}, {"chat": Fraction(100, 3), "see": Fraction(50, 3)}),
        ({"scale": 0}, {"chat": 0, "see": 0}),
        ({"scale": 10**12}, {"chat": 10**14, "see": 5 * 10**13}),
        ({"scale": {"see": "0.5"}}, {"chat": 100, "see": 25}),
        ({"drop": ["chat"]}, {"see": 50}),
        ({"scale": 2, "drop": ["see", "see"]}, {"chat": 200}),
        ({"drop": ["see", "chat"]}, {}),
    ],
)
def test_rates_are_multiplied_and_services_left_out(
    asked: dict[str, Any], rates: dict[str, Any]
) -> None:
    changed = changed_services([CHAT, SEE], **asked)
    assert {service.name: service.rate_rps for service in changed} == rates


def test_all_else_of_a_service_stays() -> None:
    (chat,) = changed_services([CHAT], scale=3)
    assert chat == Service(
        "chat", "bert", 300, 60, ["3g.40gb"], {"team": "a"}, "", "0.05", "process"
    )
    assert chat.origin == "s.csv:2"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"drop": ["chta"]}, "there is no service 'chta'; nearest: 'chat'; expected one of: chat"),
        ({"scale": {"x": 2}}, "there is no service 'x'; expected one of: chat, see"),
        ({"scale": -1}, "the factor of all rates is -1; expected a number >= 0"),
        ({"scale": {"see": float("nan")}}, "the factor of the rate of 'see' is nan; expected a"),
        ({"scale": {"see": 2}, "drop": ["see"]}, "service 'see' is left out, and its rate is"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_by_name(asked: dict[str, Any], said: str) -> None:
    assert refusal(InvalidOption, changed_services, [CHAT, SEE], **asked).startswith(said)


def test_of_many_services_an_error_names_some() -> None:
    many = [Service(f"s{number}", "m", 1) for number in range(40)]
    said = refusal(InvalidOption, changed_services, many, drop=["zzz"])
    assert said.endswith("s10, s11 and 28 more")
    assert "expected one of: none" in refusal(InvalidOption, changed_services, [], drop=["zzz"])
