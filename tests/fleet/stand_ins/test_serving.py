"""Tools that are answered by the test's own process."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.fleet.stand_ins.serving import served


def test_of_several_at_once_each_has_its_own_answer(tmp_path: Path) -> None:
    script = """
        for one in 1 2 3 4 5 6; do
            for time in 1 2 3; do "$1/echo" $one $time; done >"$1/said-$one" &
        done
        wait
    """
    with served(tmp_path, "echo", lambda words: (0, " ".join(words) + "\nend\n", "")) as tools:
        subprocess.run(["sh", "-c", script, "sh", str(tools)], check=True, timeout=60)
    for one in range(1, 7):
        said = (tools / f"said-{one}").read_text("utf-8")
        assert said == "".join(f"{one} {time}\nend\n" for time in (1, 2, 3))
