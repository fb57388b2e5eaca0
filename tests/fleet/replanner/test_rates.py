"""Reading observed rates: what is taken as it is, what is named, what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.errors import FileError
from cms.files.parsed import Parsed
from cms.files.source import Source
from cms.fleet.replanner.rates import Clock, Rates, read_moment
from cms.fleet.replanner.rates_input import rates_from_matrix, rates_from_table, read_rates
from tests.samples import refusal

LONG = "time,service,rate_rps\n"


def table(text: str) -> Rates:
    return rates_from_table(Source("rates.csv", text))


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("0,chat,5\n60,chat,-1\n", "rate_rps is \"-1\", expected a number >= 0"),
        ("60,chat,5\n0,chat,1\n", "chat at 0 s comes after 60 s, expected times that ascend"),
        ("0,chat,5\n0,chat,1\n60,chat,2\n", "chat is there twice at 0 s"),
        ("0,chat,5\n", "there is only one moment"),
        ("0,chat,5\n60,chat,5\n90,chat,5\n130,chat,5\n", "between the steps of 30 s"),
        ("noon,chat,5\n", "time is \"noon\", expected seconds, or a date and time"),
        ("2026-02-30 10:00Z,chat,5\n", "a date and time that exist"),
        ("1764000000000,chat,5\n", "these look like milliseconds"),
        ("2026-11-23T10:00Z,chat,5\n2026-11-23T11:00,chat,5\n", "times of one kind"),
        ("0,chat,5\n2026-11-23T11:00,chat,5\n", "times of one kind"),
        ("0,,5\n", "expected a name"),
        ("0,chat,5\n1,chat,5\n9999999,chat,5\n", "9999999 s in steps of 1 s"),
    ],
)  # fmt: skip
def test_a_table_that_cannot_be_meant_is_refused_with_its_line(rows: str, said: str) -> None:
    with pytest.raises(FileError) as caught:
        table(LONG + rows)
    assert said in str(caught.value)
    assert caught.value.line is not None


@pytest.mark.parametrize(
    "text",
    [
        "2024-05-10 00:00:30.009930+00:00", "2024-05-10T02:00:30,0099300+02", "1715299230.00993",
        "2024-05-10 00:00:30.009930Z", "2024/05/10 00:00:30.009930 UTC", "1715299230009930e-6",
        "2024-05-09 19:30:30.009930000000-0430",
    ],
)  # fmt: skip
def test_a_time_is_read_however_it_is_written(text: str) -> None:
    at_s, clock = read_moment(text)
    assert at_s == Fraction(171529923000993, 100_000)
    assert clock in (Clock.ZONED, Clock.UNIX)


@given(st.datetimes(min_value=datetime(1971, 1, 1)))
def test_a_date_without_a_zone_is_utc_and_says_so(when: Any) -> None:
    at_s, clock = read_moment(when.isoformat(sep=" "))
    assert clock is Clock.NAIVE
    known = when.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    assert at_s == Fraction(known.days * 86400 + known.seconds) + Fraction(
        known.microseconds, 10**6
    )


@given(
    st.lists(
        st.lists(st.none() | st.integers(0, 999), min_size=2, max_size=2), min_size=2, max_size=9
    )
)
def test_wide_and_long_tables_say_the_same(rows: list[list[int | None]]) -> None:
    wide, long = "time,a,b\n", LONG
    for at, row in enumerate(rows):
        wide += f"{60 * at},{','.join('' if r is None else str(r) for r in row)}\n"
        for name, rate in zip("ab", row, strict=True):
            long += f"{60 * at},{name},{'' if rate is None else rate}\n"
    one, other = table(wide), table(long)
    assert one == other
    assert one.rates_rps["a"] == tuple(None if row[0] is None else Fraction(row[0]) for row in rows)
    holes = {f"{name}: no value" for name, own in one.rates_rps.items() if None in own}
    assert {gap.split(" at ")[0].split(" from ")[0] for gap in one.gaps} == holes


def test_rows_that_lack_are_gaps_and_nothing_stands_in_for_them() -> None:
    rates = table(LONG + "0,chat,5\n60,chat,6\n240,chat,9\n0,code,1\n")
    assert rates.rates_rps["chat"] == (5, 6, None, None, 9)
    assert rates.gaps == (
        "code: no value from 60 s to 240 s", "chat: no value from 120 s to 180 s",
    )  # fmt: skip
    later = rates.between(3, 4)
    assert later.gaps == ("chat: no value at 180 s", "code: no value from 180 s to 240 s")
    assert later.of(["code"]).gaps == later.gaps[1:]


def test_half_of_a_long_table_is_refused() -> None:
    for head, says in (
        ("time,service,rate\n0,chat,5", "a column 'service' and none 'rate_rps'"),
        ("time\n0", "the only column is 'time'"),
    ):
        assert says in refusal(FileError, table, f"{head}\n")


def matrix(*series: dict[str, Any], **changes: Any) -> Parsed:
    return Parsed(
        {"status": "success", "data": {"resultType": "matrix", "result": [*series]}, **changes}
    )


def one(values: list[list[Any]], **labels: str) -> dict[str, Any]:
    return {"metric": {"service": "chat", **labels}, "values": values}


def test_a_range_query_is_taken_as_it_is(tmp_path: Any) -> None:
    text = json.dumps(
        matrix(one([[1764000000.5, "5.5"], [1764000060.5, "NaN"], [1764000120.5, "7"]])).value
    )
    path = tmp_path / "answer.json"
    path.write_text(text)
    rates = read_rates(path)
    assert rates.rates_rps["chat"] == (Fraction(11, 2), None, 7)
    assert rates.gaps == ("chat: no value at 2025-11-24 16:01:00.500Z",)


def test_counters_become_rates_and_their_resets_are_named() -> None:
    values = [[0, "100"], [60, "160"], [120, "30"], [180, "90"], [240, "NaN"], [300, "95"]]
    counted = one(values, __name__="requests_total")
    rates = rates_from_matrix(matrix(counted))
    assert rates.rates_rps["chat"] == (1, None, 1, None, None)
    gaps = (
        "chat: counter reset (160 to 30) at 1970-01-01 00:02:00Z",
        "chat: no value at 1970-01-01 00:04:00Z", "chat: no value before at 1970-01-01 00:05:00Z",
    )  # fmt: skip
    assert rates.gaps == gaps
    beside = {"metric": {"service": "b"}, "values": [[0, "2"], [300, "1"]]}
    both = rates_from_matrix(matrix(counted, beside))
    assert both.rates_rps == {"chat": (None, *rates.rates_rps["chat"]), "b": (2, *[None] * 4, 1)}
    assert both.gaps[0] == "chat: no value at 1970-01-01 00:00:00Z"


def at_every(step: int, values: Iterable[float], **labels: str) -> Parsed:
    drawn = [[1764000000 + step * n, f"{value:.10g}"] for n, value in enumerate(values)]
    return matrix(one(drawn, **labels))


def counted(step: int, moments: int, mean: float, begin: int = 0, reset: int = 0) -> list[int]:
    """Requests counted since some beginning, once begun anew."""
    drawn = np.random.default_rng(moments).poisson(mean * step, moments)
    return [
        int(drawn[reset:n].sum() if reset and n >= reset else begin + drawn[:n].sum())
        for n in range(moments)
    ]


@pytest.mark.parametrize(
    "document",
    [
        at_every(60, counted(60, 60, 5)),
        at_every(60, counted(60, 60, 0.5, 10_000)),
        at_every(15, counted(15, 240, 80)),
        at_every(300, counted(300, 288, 0.1)),
        at_every(3600, counted(3600, 24, 300, 10**9)),
        at_every(60, counted(60, 120, 20, 5000, reset=60)),
        at_every(60, [7, 9, 15], metric="requests_total"),
        at_every(60, [7.5, 9.25, 8], __name__="request_seconds_sum"),
    ],
)
def test_a_counter_that_is_taken_for_a_rate_is_refused(document: Parsed) -> None:
    with pytest.raises(FileError, match=r"'chat'.* is a counter.*rate\(requests_total\[5m\]\)"):
        rates_from_matrix(document)


@pytest.mark.parametrize("high", [3.0, 40.0, 900.0, 5000.0])
def test_rates_that_grow_or_stay_are_no_counters(high: float) -> None:
    random = np.random.default_rng(1)
    for step, moments in ((3600, 13), (300, 145), (60, 60)):
        part = np.arange(moments) / (moments - 1)
        night_to_noon = high * (0.55 - 0.45 * np.cos(np.pi * part))
        for drawn in (night_to_noon, high * (0.1 + 0.9 * part), np.full(moments, high)):
            if drawn[-1] - drawn[0] > step * moments / 2:
                continue  # thousands of items per second more within the hour
            measured = random.poisson(drawn * 300) / 300
            for values in (drawn, measured):
                assert rates_from_matrix(at_every(step, values)).count == moments
    round_figures = np.rint(high * (0.55 - 0.45 * np.cos(np.pi * np.arange(145) / 144)))
    assert rates_from_matrix(at_every(300, round_figures)).count == 145


def test_what_the_server_says_of_its_answer_is_kept() -> None:
    said = {"warnings": ["one store did not answer"], "infos": ["might not be a counter"]}
    rates = rates_from_matrix(Parsed({**at_every(60, [5.5, 7.25]).value, **said}))
    told = [warning.split(": ")[1] for warning in rates.warnings]
    assert told == [*said["warnings"], *said["infos"]]


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (matrix(one([[1764000000000, "1"], [1764000060000, "1"]])), "look like milliseconds"),
        (matrix(one([[10**300, "1"], [60, "1"]])), "look like milliseconds"),
        (matrix(), "the result has no series"),
        (matrix(status="error"), 'status is "error", expected "success"'),
        (Parsed({"resultType": "vector", "result": []}), "ask /api/v1/query_range"),
        (matrix(one([[0, "1"], [60, "1"]]), one([[0, "2"]])), "a second series of 'chat'"),
        (matrix({"metric": {"job": "x"}, "values": []}), "its labels are: job"),
        (matrix(one([[0, "1"], [60, "-2"]])), "expected a number >= 0"),
        (matrix(one([[60, "1"], [0, "2"]])), "times that ascend"),
        (matrix(one([[0, "1"]])), "there is only one moment"),
        (Parsed([1]), "the answer of a Prometheus range query"),
    ],
)  # fmt: skip
def test_an_answer_that_cannot_be_meant_is_refused(document: Parsed, said: str) -> None:
    with pytest.raises(FileError) as caught:
        rates_from_matrix(document)
    assert said in str(caught.value)
