"""Nodes that do not exist, reached by ``[apply] shell``, with work that holds their instances.

The tools and the work hooks are answered in this process. Of tools that cut whole GPUs the n-th
instance of a profile by start is the one that a hook is called for; hooks are told its UUID.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from unittest.mock import patch

from cms.cli.app import run as run_cms
from cms.fleet.apply import open_starts
from cms.fleet.deployment import Deployment, State, Work, difference
from cms.fleet.deployment.export import ExportOptions, export
from cms.fleet.deployment.labels import point_label
from cms.fleet.deployment.transition import Transition, write_transition
from cms.fleet.deployment.verifying import verify
from tests.fleet.bridging import changes, observed, stand_ins
from tests.fleet.stand_ins.machines import Ran
from tests.fleet.stand_ins.serving import served
from tests.fleet.stand_ins.slurm import Slurm

Called = tuple[str, str]  # a service, and the label of its point
_REACH = """\
#!/bin/sh
PATH="{folder}/$1/served:$PATH" exec sh -c "$2"
"""
_SETTINGS = """\
[apply]
shell = "sh {folder}/reach.sh {{node}}"
pause = "0s"
timeout = "{timeout}"
slurm_folder = "{folder}/conf"
{more}
[work]
"""
_HOOK = (
    "{folder}/served/work {word} $CMS_NODE $CMS_GPU $CMS_PROFILE '$CMS_UUID' "
    "'$CMS_SERVICE' $CMS_POINT >/dev/null"
).replace("'", '\\"')


def _environments() -> Iterator[str]:
    for each in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            yield each.read_text("utf-8", errors="replace")


def called(work: Work) -> Called:
    return work.service, point_label(work)


class Watched(ABC):
    """What `cms apply` changes: it counts each change, and a test may do something then."""

    def __init__(self, folder: Path, found: Transition, tool: str) -> None:
        self.folder, self.tool = folder, tool
        self.lowest: dict[str, Fraction] = {}  # the least capacity that each service has had
        self.calls = 0
        self.on_call: Callable[[int, str], None] = lambda number, when: None
        folder.mkdir(exist_ok=True, parents=True)
        write_transition(found, folder / "transition.json")

    @abstractmethod
    def tools(self) -> AbstractContextManager[None]:
        """Let commands reach it."""

    @abstractmethod
    def trace(self) -> object:
        """All that has been done: equal ones, and nothing was done in between."""

    @abstractmethod
    def is_as(self, found: Transition, state: Deployment) -> bool:
        """Whether all is as a state on the way has it, but for starts that the tool chose."""

    def floors_held(self, found: Transition) -> bool:
        floors = {name: floor.rps for name, floor in found.floors.items() if floor.rps}
        return all(self.lowest.get(name, Fraction(0)) >= rps for name, rps in floors.items())

    def is_clean(self) -> bool:
        """Whether nothing was refused, and no node is left drained."""
        return True

    def changes(self, when: str) -> None:
        """Count what is about to change something, or has."""
        self.calls += when == "before"
        self.on_call(self.calls, when)

    def _words(self, words: Sequence[str]) -> list[str]:
        state = str(self.folder / ".cms/apply")
        going = state if {"--resume", "--undo"} & {*words} else str(self.folder / "transition.json")
        named = () if going == state else ("--tool", self.tool)
        return [
            "apply", going, "--fleet", str(self.folder / "fleet.toml"), "--max-age", "none",
            "--yes", *named, *words,
        ]  # fmt: skip

    def apply(self, *words: str) -> int:
        """Type the command in this process."""
        with self.tools():
            return run_cms(self._words([w for w in words if w]))

    def killed(self, number: int, when: str, *words: str, sign: int = signal.SIGKILL) -> int:
        """Type it in a process of its own, and send that a signal at a change."""
        with self.tools():
            process = subprocess.Popen(
                [sys.executable, "-m", "cms", *self._words(words)], cwd=self.folder,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            first = self.calls

            def end(call: int, at: str) -> None:
                if (call - first, at) == (number, when):
                    process.send_signal(sign)
                    if sign == signal.SIGKILL:
                        process.wait()

            self.on_call = end
            code = process.wait(timeout=300)
            self.on_call = lambda call, at: None
            while any(f"{self.folder}/" in each for each in _environments()):
                time.sleep(0.05)  # what a dead process had begun on a node ends by itself
        return code


class Site(Watched):
    """Nodes that do what `cms apply` says; for Slurm with a controller before them."""

    def __init__(
        self, folder: Path, found: Transition, tool: str = "nvidia-smi", timeout: str = "4s",
        more: str = "", **options: object,
    ) -> None:  # fmt: skip
        super().__init__(folder, found, tool)
        start = found.start
        self.nodes = stand_ins(folder, start, **options)
        self.works: dict[tuple[str, int, int], tuple[Work, int]] = {}
        self.capacities: dict[str, Fraction] = {}
        self.refused = 0
        for card, each in start.instances():
            if each.work is not None and each.start is not None and each.is_managed:
                self._begin((card.node, card.index, each.start), each.work)
        self.lowest = dict(self.capacities)
        self.slurm = Slurm(folder / "conf", {name: self._devices(name) for name in self.nodes})
        if tool == "slurm":
            (folder / "conf/cms").mkdir(parents=True)
            for path, text in export(start, "slurm", ExportOptions(start)).files.items():
                if path.startswith("nodes/"):
                    line = text.splitlines()[-1] + "\n"
                    (folder / "conf/cms" / Path(path).name).write_text(line, encoding="utf-8")
            self.slurm.scontrol(["reconfigure"])
            self.slurm.log.clear()
        sides = (each for side in (start, found.target) for _, each in side.instances())
        coming = (each for action in found.actions for each in action.adds)
        works = (each.work for each in (*sides, *coming) if each.work is not None)
        self.known = {called(work): work for work in works}  # that may come
        (folder / "reach.sh").write_text(_REACH.format(folder=folder), encoding="utf-8")
        self.settle(timeout, more)

    def settle(self, timeout: str = "4s", more: str = "", hooks: Sequence[str] = ()) -> None:
        """Write the settings; further hooks are whole lines."""
        text = _SETTINGS.format(folder=self.folder, timeout=timeout, more=more)
        for word in ("start", "stop", "ready", "drained"):
            text += f'{word} = "{_HOOK.format(folder=self.folder, word=word)}"\n'
        text += "\n".join(hooks)
        (self.folder / "fleet.toml").write_text(text, encoding="utf-8")

    def _devices(self, name: str) -> Callable[[], Counter[str]]:
        node = self.nodes[name]
        return lambda: Counter(place[0] for layout in node.layouts() for place in layout)

    def _begin(self, at: tuple[str, int, int], work: Work) -> None:
        self.works[at] = work, self.nodes[at[0]].client(*at[1:])
        rps = self.capacities.get(work.service, Fraction(0)) + work.supply_rps
        self.capacities[work.service] = rps

    def work(self, words: Sequence[str]) -> tuple[int, str, str]:
        """What the hooks ask, of the device with a UUID."""
        what, node, index, profile, uuid, service, label = words
        found = {uuid: at for at, uuid in self.nodes[node].mig_uuids(int(index)).items()}
        if uuid not in found:
            self.refused += what in ("start", "stop")
            return int(what != "drained"), "", "there is no such device"
        at, call = (node, int(index), found[uuid]), (service, label)
        if what == "start" and self.tool == "slurm" and not self.slurm.nodes[node].is_open:
            self.refused += 1
            return 1, "", "the node takes no jobs"
        has = self.works.get(at)
        is_there = has is not None and called(has[0]) == call
        if what == "stop" and is_there:
            assert has is not None
            self.changes("before")
            del self.works[at]
            self.nodes[node].leave(has[1])
            self.capacities[service] -= has[0].supply_rps
            self.lowest[service] = min(self.lowest[service], self.capacities[service])
            self.changes("after")
        elif what == "start" and not is_there:
            held = {one.start: one for one in self.nodes[node].instances(at[1])}
            if has is not None or held[at[2]].profile != profile or held[at[2]].hollow:
                self.refused += 1
                return 1, "", "no place for it"
            self.changes("before")
            self._begin(at, self.known[call])
            self.lowest.setdefault(service, Fraction(0))
            self.changes("after")
        for name, each in self.slurm.nodes.items():
            each.jobs = {str(place) for place in self.works if place[0] == name}
        return int(is_there if what == "drained" else what == "ready" and not is_there), "", ""

    def _around(self, act: Callable[[], Ran]) -> Ran:
        self.changes("before")
        ran = act()
        self.changes("after")
        return ran

    @contextmanager
    def tools(self) -> Iterator[None]:
        with ExitStack() as stack:
            for node in self.nodes.values():
                stack.enter_context(node.tools(self._around))
            for name, run in (
                ("scontrol", self.slurm.scontrol), ("sinfo", self.slurm.sinfo),
                ("slurmctld-again", self.slurm.again), ("work", self.work),
            ):  # fmt: skip
                stack.enter_context(served(self.folder, name, run))
            path = f"{self.folder}/served{os.pathsep}{os.environ['PATH']}"
            stack.enter_context(patch.dict(os.environ, {"PATH": path}))
            yield

    def is_clean(self) -> bool:
        return not self.refused and not any(node.drain for node in self.slurm.nodes.values())

    def trace(self) -> object:
        done = [changes(node) for node in self.nodes.values()]
        return done, dict(self.works), list(self.slurm.log)

    def seen(self, known: Deployment) -> Deployment:
        """Observe the nodes by their texts; what works where is known as pods' labels tell it."""
        found = observed(self.nodes, replace(known, plan=None))
        cards = {}
        for card in found.gpus():
            held = []
            for each in card.instances:
                has = self.works.get((card.node, card.index, each.start or 0))
                work = None if has is None or each.state is State.NO_COMPUTE_INSTANCE else has[0]
                held.append(replace(each, owner=None, work=work))
            cards[card.node, card.index] = card.with_instances(held)
        return found.with_gpus(cards)

    def is_as(self, found: Transition, state: Deployment) -> bool:
        if self.tool == "nvidia-smi":
            return difference(self.seen(state), state).is_empty
        return verify(self.seen(state), open_starts(found, state)) == ()


def arrives(site: Watched, found: Transition, *words: str) -> None:
    """Type it once more: it ends well, and all is as at the end, or as at the beginning."""
    assert site.apply(*words, "-q") == 0
    assert site.is_as(found, found.start if "--undo" in words else found.target)
    assert site.floors_held(found)
    assert site.is_clean()
