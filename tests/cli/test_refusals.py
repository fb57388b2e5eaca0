"""What is refused: with an exit code, and one line that names the place, the value and the fix."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest

from cms.fleet.deployment import Instance, StartSource
from tests.cli.shared import FILES, Cms, fleet, one_line, written

#: By command: what is typed, the exit code, what its line says (``a ... b``), and other files.
TABLE = tomllib.loads((FILES / "refusals.toml").read_text("utf-8"))
ROWS = [row for rows in TABLE.values() for row in rows]


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_refused_command_names_place_value_and_fix(row: list[Any], here: Path, cms: Cms) -> None:
    typed, code, words, *files = row
    if "--live" in typed:
        pytest.importorskip("marimo")
    shutil.copytree(FILES / "refused", here, dirs_exist_ok=True)
    (here / "bare").mkdir()
    written(fleet([[Instance("3g.40gb", 0), Instance("4g.40gb", 0)]]), here / "bad.json")
    written(
        fleet([[Instance("1g.10gb")], []], start_source=StartSource.UNKNOWN), here / "blind.json"
    )
    for name, change in (files[0] if files else {}).items():
        path = here / (f"{name}.toml" if name == "fleet" else f"{name}.csv")
        text = change if isinstance(change, str) else path.read_text("utf-8").replace(*change)
        path.write_text(text, "utf-8") if text else path.unlink()
    before = {path: path.read_bytes() for path in here.iterdir() if path.is_file()}
    out, err = cms(typed, code=code)
    lines = [line for line in err.splitlines(keepends=True) if not line.startswith("warning: ")]
    error = one_line(out, "".join(lines))
    assert all(each in error for each in words.split(" ... ")), error
    assert {path: path.read_bytes() for path in here.iterdir() if path.is_file()} == before
    assert not (here / ".cms").exists()
