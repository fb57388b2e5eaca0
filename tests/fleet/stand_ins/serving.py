"""`nvidia-smi` answered by the test's own process: a script starts it hundreds of times.

Its client is a shell script, which starts ten times faster than Python. Of several at once each
waits until the one before it has its answer; they take no turns, so only a few may be at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

_CLIENT = """\
#!/bin/sh
trap '' PIPE # who asked may be dead
set -C # who makes the lock has it; whom it answers takes it away
until true >"{ask}.lock"; do :; done 2>/dev/null
set +C
{keep}
printf '%s\\n' "$@" ';' >"{ask}"
while IFS= read -r line; do
    case $line in
    =*)
        echo '{done}' >"{ask}"
        exit "${{line#=}}"
        ;;
    *) printf '%s\\n' "${{line#-}}" ;;
    esac
done <"{tell}"
"""
_END = ["end of serving"]
_DONE = ";;"


@contextmanager
def served(
    folder: Path,
    tool: str,
    run: Callable[[Sequence[str]], tuple[int, str, str]],
    given: Path | None = None,
) -> Iterator[Path]:
    """A folder with an executable of this name that runs `run` here, until the block ends.

    What its standard input holds is in `given` by then; without that it has none.
    """
    programs = folder / "served"
    programs.mkdir(exist_ok=True)
    ask, tell, program = (programs / name for name in (f"{tool}.ask", f"{tool}.tell", tool))
    for pipe in (ask, tell):
        pipe.unlink(missing_ok=True)
        os.mkfifo(pipe)
    keep = ":" if given is None else f'cat >"{given}"'
    lock = programs / f"{tool}.ask.lock"
    lock.unlink(missing_ok=True)
    client = _CLIENT.format(ask=ask, tell=tell, keep=keep, done=_DONE)
    program.write_text(client, encoding="utf-8")
    program.chmod(0o755)
    # Open at both ends, so that nobody waits for somebody who has been killed.
    asked, told = os.open(ask, os.O_RDWR), os.open(tell, os.O_RDWR)

    def answer() -> None:
        words: list[str] = []
        try:
            with os.fdopen(asked, encoding="utf-8") as questions:
                for line in questions:
                    if line == f"{_DONE}\n":
                        lock.unlink()
                        continue
                    if line != ";\n":
                        words.append(line[:-1])
                        continue
                    if words == _END:
                        return
                    ran, words = run(words), []
                    lines = "".join(f"-{said}\n" for said in ran[1].splitlines())
                    os.write(told, f"{lines}={ran[0]}\n".encode())
        finally:  # of whatever kind: no script is to wait for an answer any more
            for pipe in (ask, tell):
                pipe.unlink()
            os.close(told)

    serving = Thread(target=answer, name=tool, daemon=True)
    serving.start()
    try:
        yield programs
    finally:
        if serving.is_alive():
            with open(ask, "w", encoding="utf-8") as last:
                last.write(f"{_END[0]}\n;\n")
            serving.join()
