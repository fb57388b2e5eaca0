"""Measured pairs that were never measured: a rule says what workloads do to each other."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from cms.fleet.colocation import MeasuredPair, Profiles, read_measured_pairs, read_profiles

DATA = Path(__file__).resolve().parents[3] / "instances" / "data"
GAVEL = DATA / "gavel_pairs.csv"
GAVEL_PROFILES = DATA / "gavel_profiles.csv"


def gavel() -> tuple[tuple[MeasuredPair, ...], Profiles]:
    return read_measured_pairs(GAVEL), read_profiles(GAVEL_PROFILES)


def by_rule(models: int = 8) -> tuple[tuple[MeasuredPair, ...], Profiles]:
    """Pairs on two devices and two shares, profiled by how much they want and how much they hurt.

    The rule is linear in both, so that a linear model finds it.
    """
    names = [f"m{at}" for at in range(models)]
    pairs = [
        MeasuredPair(
            online, offline, device, share,
            Fraction(40 + 3 * i - 2 * j + share // 10 + 5 * faster, 100),
            1 / Fraction(90 - 2 * i - 3 * j - share // 10, 100),
        )
        for j, online in enumerate(names)
        for i, offline in enumerate(names)
        for faster, device in enumerate(("slow", "fast"))
        for share in (30, 60)
    ]  # fmt: skip
    profiles: dict[tuple[str, str], dict[str, Fraction | str | None]] = {
        (name, ""): {"wants": Fraction(at), "family": f"f{at // 2}"}
        for at, name in enumerate(names)
    }
    return tuple(pairs), Profiles(profiles)
