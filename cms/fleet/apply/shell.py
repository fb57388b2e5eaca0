"""Commands on this machine and on nodes, each in a session of its own: Ctrl-C is for `cms`."""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ...errors import CmsError

__all__ = ["ActionFailed", "Ran", "Shell", "run_command"]


class ActionFailed(CmsError, RuntimeError):
    """An action cannot be begun, or has not ended as it should; the message says why."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command printed, and its exit status, by which no state is ever judged."""

    code: int
    out: str
    errors: str

    @property
    def said(self) -> str:
        """The last lines that it printed, for a message."""
        lines = [line.strip() for line in f"{self.out}\n{self.errors}".splitlines()]
        return " / ".join([line for line in lines if line][-4:]) or "nothing"


def run_command(
    words: Sequence[str], timeout_s: float, given: str = "", more: Mapping[str, str] | None = None
) -> Ran:
    """Run a command; ActionFailed if it cannot be started or does not end in time."""
    try:
        done = subprocess.run(
            words, input=given, capture_output=True, text=True, errors="replace", check=False,
            timeout=timeout_s, start_new_session=True, env=None if more is None else {
                **os.environ, **more,
            },
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise ActionFailed(f"{words[0]} has not ended after {timeout_s:g} s") from None
    except OSError as fault:
        raise ActionFailed(f"{words[0]} cannot be run: {fault.strerror or fault}") from None
    return Ran(done.returncode, done.stdout, done.stderr)


@dataclass(frozen=True, slots=True)
class Shell:
    """How nodes and this machine are asked.

    `template`: Command that runs its last word on a node: ``ssh {node}``. `timeout_s`: Seconds
    after which a command counts as lost, and a state as not reached. `pause_s`: Seconds between two
    looks at a state.
    """

    template: str = "ssh {node}"
    timeout_s: float = 900
    pause_s: float = 1

    def on(self, node: str, command: str) -> Ran:
        """Run a shell command on a node."""
        words = [word.replace("{node}", node) for word in shlex.split(self.template)]
        return run_command([*words, command], self.timeout_s)

    def wait_until(self, is_so: Callable[[], bool], otherwise: str | Callable[[], str]) -> None:
        """Look until something is so; ActionFailed, in the words of `otherwise`, if it never is."""
        until = time.monotonic() + self.timeout_s
        while not is_so():
            if time.monotonic() >= until:
                raise ActionFailed(otherwise if isinstance(otherwise, str) else otherwise())
            time.sleep(self.pause_s)

    def here(self, *words: str, given: str = "") -> Ran:
        """Run a command on this machine."""
        return run_command(words, self.timeout_s, given)
