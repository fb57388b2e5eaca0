"""Protection of the online side: the quota, the gate, the device; the bound is a theorem file's."""

from __future__ import annotations

from fractions import Fraction
from itertools import repeat
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.errors import InvalidProblem
from cms.fleet.published import LaunchGate, MemoryQuota, SharedDevice, slowdown_bound
from tests.samples import refusal

LENGTHS = st.fractions(Fraction(1, 7), 9, max_denominator=7)
REQUESTS = st.lists(st.tuples(st.fractions(0, 50, max_denominator=7), LENGTHS), min_size=1)


@given(REQUESTS, st.lists(LENGTHS, min_size=1), st.integers(1, 100))
def test_no_request_is_late_by_more_than_the_longest_kernel(
    requests: list[tuple[Fraction, Fraction]], kernels: list[Fraction], share: int
) -> None:
    shared, quiet = SharedDevice(kernels, LaunchGate(share, 1)), SharedDevice([], LaunchGate(share))
    for device in (shared, quiet):
        device.advance(10**5, sorted(requests))
    for late, sooner in zip(shared.served, quiet.served, strict=True):
        assert 0 <= late.end - sooner.end <= max(kernels)
        slowdown = (late.end - late.arrival) / (sooner.end - sooner.arrival)
        assert slowdown <= slowdown_bound(max(kernels), late.service)


def test_without_the_gate_one_long_request_after_another_waits_for_what_lies_ahead() -> None:
    kept, broken = (SharedDevice(repeat(5), gate, ahead=4) for gate in (LaunchGate(60), None))
    for device in (kept, broken):
        device.advance(1000, [(10 * at + 1, 1) for at in range(90)])
    assert max(one.end - one.arrival for one in kept.served) <= slowdown_bound(5, 1) == 6
    assert min(one.end - one.arrival for one in broken.served[1:]) > 6
    for share, launches in ((0, 0), (100, 10), (50, 5)):
        device = SharedDevice(repeat(2), LaunchGate(share))
        device.advance("19.5")
        assert len(device.launched) == launches


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 50))))
def test_a_quota_never_gives_more_than_its_limit_and_refuses_before_it_gives(
    wishes: list[tuple[bool, int]],
) -> None:
    quota, used = MemoryQuota(100), 0
    for takes, mib in wishes:
        if takes:
            assert quota.allocate(mib) == (used + mib <= 100)
            used += mib * (used + mib <= 100)
        elif mib <= used:
            quota.release(mib)
            used -= mib
        else:
            assert f"{mib} MiB" in refusal(InvalidProblem, quota.release, mib)
        assert quota.used_mib == used <= 100


@pytest.mark.parametrize(
    ("advance", "words"),
    [((4,), "until is 4"), ((9, [(8, 1), (7, 1)]), "is 7"), ((9, [(6, 0)]), "kernel is 0")],
)
def test_odd_times_are_refused(advance: Any, words: str) -> None:
    device = SharedDevice([1])
    device.advance(5)
    assert words in refusal(InvalidProblem, device.advance, *advance)
    assert "launch gate is 101" in refusal(InvalidProblem, LaunchGate, 101)
