"""What every test shares: the profiles of the property tests, and a check of the installation."""

from __future__ import annotations

import gc
import os
import sys
import textwrap
from collections.abc import Callable, Generator, Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import cms.plugin.registry
from tests import samples

Install = Callable[..., None]

# The same cases in every run, so that a red test is red for everybody; no deadline, because a
# shared machine's clock is no property of the code.
settings.register_profile("dev", max_examples=20, derandomize=True, deadline=None)
# Fresh cases every time. What it finds becomes an @example of the test that found it.
settings.register_profile(
    "long", max_examples=10_000, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("CMS_HYPOTHESIS_PROFILE", "dev"))


def pytest_configure(config: pytest.Config) -> None:
    samples.LONG_TOO = config.option.markexpr != "not long"


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


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[Any], list[Any]]:
    """Look for examples in those of the tests' files alone that have any: nearly none has."""
    found = yield
    if ">>> " in file_path.read_text("utf-8", errors="replace"):
        return found
    return [each for each in found if type(each).__name__ != "DoctestModule"]


def pytest_collection_finish() -> None:
    """Keep what lives to the end, ten thousand tests and their modules, out of every collection.

    Python would go through it all dozens of times in a run, for a third of a second each.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Install a distribution as pip would leave it: modules, and metadata beside them."""
    installed = []

    def put(name: str, entries: dict[str, dict[str, str]], **modules: str) -> None:
        home = tmp_path / name
        info = home / f"{name.replace('-', '_')}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "top_level.txt").write_text("".join(f"{module}\n" for module in modules))
        lines = []
        for group, table in entries.items():
            lines += [f"[{group}]", *(f"{key} = {value}" for key, value in table.items())]
        (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
        for module, text in modules.items():
            (home / f"{module}.py").write_text(textwrap.dedent(text))
            installed.append(module)
        monkeypatch.syspath_prepend(home)
        cms.plugin.registry._entries.cache_clear()

    cms.plugin.registry._entries.cache_clear()
    yield put
    cms.plugin.registry._entries.cache_clear()
    for module in installed:
        sys.modules.pop(module, None)
