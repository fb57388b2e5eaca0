"""The loop that may be compiled, and its plain twin, agree on every request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cms.fleet.simulation import ROUTINGS, kernel, reference
from cms.fleet.simulation.kernel import advance
from tests.fleet.simulation.cases import case, facts, run
from tests.property.problems import share

SEEDS = st.integers(min_value=0, max_value=2**32)


@given(SEEDS)
def test_both_loops_answer_every_request_at_the_same_nanosecond(seed: int) -> None:
    found, answers = run(case(seed), advance)
    expected, wanted = run(case(seed), reference.advance)
    assert answers == wanted
    assert facts(found) == facts(expected)


@share(4)
@given(SEEDS, st.integers(min_value=1, max_value=60))
def test_a_run_in_pieces_is_the_whole_run(seed: int, size: int) -> None:
    found, answers = run(case(seed), advance)
    in_pieces, same = run(case(seed), advance, size=size)
    assert sorted(answers) == sorted(same)
    assert facts(found) == facts(in_pieces)


@given(SEEDS)
def test_every_request_is_answered_or_lost(seed: int) -> None:
    found, answers = run(case(seed), reference.advance)
    assert len(answers) + found.tally.lost == found.tally.requests <= 200
    assert not found.state.load.any()
    assert (found.state.waiting == 0).all()
    assert int(found.state.taken.sum()) >= len(answers)


@given(SEEDS)
def test_a_station_of_weight_zero_gets_nothing(seed: int) -> None:
    given = case(seed)._replace(events=())
    found, _ = run(given, reference.advance)
    idle = [
        not each.weight
        for each in given.service.instances
        for _ in range(each.processes if each.queue == "process" else 1)
    ]
    if len(idle) > 1:
        assert not found.state.taken[idle].any()


def test_all_routings_are_among_the_cases() -> None:
    assert {case(seed).routing for seed in range(80)} == set(ROUTINGS)


@pytest.mark.long
@settings(max_examples=2_000)
@given(SEEDS)
def test_compiled_and_plain_agree_to_the_nanosecond(seed: int) -> None:
    from cms.fleet.simulation.compiled import advance as compiled

    found, answers = run(case(seed), compiled)
    expected, wanted = run(case(seed), reference.advance)
    assert answers == wanted
    assert facts(found) == facts(expected)


# --- planted faults: what the comparison is worth -------------------------------------------------


def _starts_late(source: str) -> str:
    return source.replace("fill, end = 1, now + times", "fill, end = 1, now + 1 + times")


def _drops_a_request(source: str) -> str:
    return source.replace("waiting[station] -= fill", "waiting[station] -= fill + (fill > 2)")


def _forgets_a_completion(source: str) -> str:
    return source.replace(
        "            idle[station] += 1\n", "            idle[station] += now % 5 != 0\n"
    )


def _breaks_ties_otherwise(source: str) -> str:
    return source.replace("left == right and mine >= theirs", "left == right and mine > theirs")


def _completes_after_arrivals(source: str) -> str:
    return source.replace("ends[0] <= now", "ends[0] < now")


def _takes_turns_unevenly(source: str) -> str:
    return source.replace("turns[station] += 2", "turns[station] += 3")


@pytest.mark.parametrize(
    "plant",
    [
        _starts_late, _drops_a_request, _forgets_a_completion, _breaks_ties_otherwise,
        _completes_after_arrivals, _takes_turns_unevenly,
    ],
)  # fmt: skip
def test_a_fault_in_the_loop_is_found(plant: Callable[[str], str]) -> None:
    from pathlib import Path

    source = Path(kernel.__file__).read_text()
    faulty = plant(source)
    assert faulty != source
    scope: dict[str, Any] = {"__name__": kernel.__name__, "__package__": kernel.__package__}
    exec(compile(faulty, kernel.__file__, "exec"), scope)

    def differs(seed: int) -> bool:
        try:
            found, answers = run(case(seed), scope["advance"])
        except IndexError:  # the fault has led out of an array
            return True
        expected, wanted = run(case(seed), reference.advance)
        return answers != wanted or facts(found) != facts(expected)

    assert any(differs(seed) for seed in range(200))
