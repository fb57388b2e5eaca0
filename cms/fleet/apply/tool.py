"""What partitioning tools and work are told to do, and the commands by which it is done."""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Literal, Protocol, TypeAlias

from ...errors import CmsError
from ..deployment.export import ExportOptions
from ..deployment.export.workloads import named_by
from ..deployment.instance import Instance
from ..deployment.labels import SERVICE_LABEL
from ..deployment.model import FleetGpu, FleetNode
from ..deployment.transition import Transition
from .units import Seat, Unit


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
        return self.here(*words, command)

    def wait_until(self, is_so: Callable[[], bool], otherwise: str | Callable[[], str]) -> None:
        """Look until something is so; ActionFailed, in the words of `otherwise`, if it never is."""
        until = time.monotonic() + self.timeout_s
        while not is_so():
            if time.monotonic() >= until:
                raise ActionFailed(otherwise if isinstance(otherwise, str) else otherwise())
            time.sleep(self.pause_s)

    def here(self, *words: str, given: str = "", more: Mapping[str, str] | None = None) -> Ran:
        """Run a command on this machine, in a session of its own, since Ctrl-C is for `cms`.

        ActionFailed if it cannot be started or does not end in time.
        """
        try:
            done = subprocess.run(
                words, input=given, capture_output=True, text=True, errors="replace", check=False,
                timeout=self.timeout_s, start_new_session=True, env={**os.environ, **(more or {})},
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise ActionFailed(f"{words[0]} has not ended after {self.timeout_s:g} s") from None
        except OSError as fault:
            raise ActionFailed(f"{words[0]} cannot be run: {fault.strerror or fault}") from None
        return Ran(done.returncode, done.stdout, done.stderr)


class Look(StrEnum):
    """How the GPUs of a unit look."""

    BEFORE = "before"
    BETWEEN = "between"
    AFTER = "after"


@dataclass(frozen=True)
class Job:
    """What tools are given: the transition, how nodes are reached, and what files say.

    `service_label`: Of pods that are managed. `uuids`: Of instances, by GPU and place.
    """

    transition: Transition
    shell: Shell
    export: ExportOptions = field(default_factory=ExportOptions)
    service_label: str = SERVICE_LABEL
    drain_flags: str = "--ignore-daemonsets"
    slurm_folder: str = "/etc/slurm"
    slurm_restart: str = ""
    uuids: dict[str, str] = field(default_factory=dict)

    def node(self, name: str) -> FleetNode:
        """Return a node as the transition's start has it."""
        return self.transition.start.node(name)

    def named(self, cards: Sequence[FleetGpu]) -> tuple[FleetGpu, ...]:
        """Return GPUs with their whole instances, called as their nodes' drivers call them."""
        whole = (replace(c, instances=tuple(i for i in c.instances if i.is_whole)) for c in cards)
        return tuple(named_by(self.node(card.node), card) for card in whole)


Turn: TypeAlias = Literal["start", "stop"]


class Worker(Protocol):
    """What starts and stops work. `place`: The instance of a seat as it was observed."""

    def is_done(self, what: Turn, seat: Seat, place: Instance | None) -> bool:
        """Whether it serves with all of its capacity, or nothing of it is left."""

    def do(self, what: Turn, seat: Seat, place: Instance | None) -> None:
        """Begin to serve, or take it out of service and end it."""


class Tool(ABC):
    """What partitions GPUs. It looks before and after; the runner does the rest alike for all.

    Where work alone changes it is only asked to look.
    """

    def __init__(self, job: Job) -> None:
        self.job = job

    @abstractmethod
    def look(self, unit: Unit, *, begun: bool) -> Look:
        """Observe the unit's GPUs; ActionFailed if they hold what the unit may not touch.

        `begun`: Whether the unit was begun, so that what it adds may be there.
        """

    @abstractmethod
    def change(self, unit: Unit) -> str:
        """Make the unit's GPUs as they are to be; return what was printed."""

    @abstractmethod
    def commands(self, unit: Unit) -> Sequence[str]:
        """Return what is run, for people and for scripts."""

    def find(self, seat: Seat) -> Instance | None:
        """Return the instance of a seat as it was observed last; None where nothing tells."""
        return None

    def close(self, unit: Unit) -> None:  # noqa: B027 (nothing comes by itself)
        """Let nothing new begin on what is to be changed."""

    def open(self, unit: Unit) -> None:  # noqa: B027
        """Let work begin there again."""
