"""What every test shares: the profiles of the property tests, and a check of the installation."""

from __future__ import annotations

import gc
import os
from importlib.metadata import PackageNotFoundError, distribution

import pytest
from hypothesis import HealthCheck, settings

# The same cases in every run, so that a red test is red for everybody; no deadline, because a
# shared machine's clock is no property of the code.
settings.register_profile("dev", max_examples=20, derandomize=True, deadline=None)
# Fresh cases every time. What it finds becomes an @example of the test that found it.
settings.register_profile(
    "long", max_examples=10_000, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("CMS_HYPOTHESIS_PROFILE", "dev"))


def pytest_sessionstart() -> None:
    """Stop with the reason where nothing is registered: half of the tests would fail obscurely.

    Garbage is looked for more rarely than after every 700 objects: nearly all goes without it.
    """
    gc.set_threshold(10_000, 20)
    try:
        distribution("configurable-machines")
    except PackageNotFoundError:
        pytest.exit(
            "configurable-machines is not installed, so no algorithm is registered: "
            "run `make install`, or `pip install -e '.[test]'`.",
            returncode=4,
        )


def pytest_collection_finish() -> None:
    """Keep what lives to the end, ten thousand tests and their modules, out of every collection.

    Python would go through it all dozens of times in a run, for a third of a second each.
    """
    gc.collect()
    gc.freeze()
