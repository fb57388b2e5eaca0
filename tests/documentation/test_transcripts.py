"""What pages show as typed prints what they say."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

from tests.documentation.pages import DOCUMENTS, blocks, shown
from tests.documentation.transcripts import Shell, difference, renewed, typed

TYPED = [page for page in DOCUMENTS if blocks(page, "console") or blocks(page, "pycon")]


@pytest.mark.parametrize("page", TYPED, ids=shown)
def test_what_a_page_types_in_an_empty_folder_prints_what_it_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commands first, then Python, which may read what they wrote."""
    monkeypatch.chdir(tmp_path)
    shell = Shell()
    for command, said, *_ in typed(page.read_text("utf-8")):
        differs = difference(said, shell.run(command))
        assert not differs, f"$ {command}\n{differs}"
    told: list[str] = []
    options = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    runner = doctest.DocTestRunner(optionflags=options)
    text = "\n".join(blocks(page, "pycon"))
    test = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    runner.run(test, out=told.append)
    assert not runner.failures, "".join(told)


def test_what_differs_from_a_page_is_found_and_may_be_written_into_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = """\
```console
$ cat > it <<END
one
END
$ cat it
two
$ cms gpus \\
    nonsense
$ echo $?
0
```
"""
    commands = [each.command for each in typed(page)]
    assert commands == [
        "cat > it <<END\none\nEND",
        "cat it",
        "cms gpus \\\n    nonsense",
        "echo $?",
    ]
    now = renewed(page)
    assert "$ cat it\none\n$ cms" in now
    assert "nonsense\nerror: unknown GPU 'nonsense'" in now
    assert now.endswith("$ echo $?\n2\n```\n")
    assert renewed(now) == now


def test_a_command_that_fails_unnoticed_is_no_transcript() -> None:
    shell = Shell()
    shell.run("false")
    with pytest.raises(AssertionError, match="exit code 1 before: true"):
        shell.run("true")
