"""What a shell is told when it completes: commands, options, and the names that can be given."""

from __future__ import annotations

import pytest

from cms.cli.app import run
from instances.published import S1, S2, S3, S4, S5, S6


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("pl", ["plan", "place"]),
        ("plan --me", ["--method"]),
        ("plan --method price", ["price_and_branch"]),
        ("plan -g h100-9", ["h100-94gb", "h100-96gb"]),
        ("gpus a30", ["a30-24gb"]),
        ("plan --rule ha", ["half"]),
        ("plan --published S", [one.name for one in (S1, S2, S3, S4, S5, S6)]),
        ("solve --published greedy", ["greedy-trap-3", "greedy-trap-4"]),
        ("solve --published S", []),
        ("rec", ["reconcile"]),
        ("reconcile --forecast d", ["daily"]),
    ],
)
def test_a_shell_completes_what_is_written(
    words: str,
    offered: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    line = f"cms {words}"
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split()) - 1))
    monkeypatch.setenv("_CMS_COMPLETE", "complete_bash")
    assert run([]) == 0
    assert capsys.readouterr().out.split() == offered
