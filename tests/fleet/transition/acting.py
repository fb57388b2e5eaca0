"""A transition's folder run on stand-ins: nodes, work on their instances, and a log of capacity."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from cms.fleet.deployment import Deployment, State, Work, difference
from cms.fleet.deployment.transition import Transition
from cms.fleet.deployment.transition.folder import FolderOptions, folder_of
from tests.fleet.bridging import changes, observed, stand_ins
from tests.fleet.stand_ins.driver import STATE
from tests.fleet.stand_ins.machines import Ran
from tests.fleet.stand_ins.serving import served

_HOOKS = """
on_node() { PATH="{folder}/$1/served:$PATH" sh -s; }
start_work() { work start "$node" "$gpu" "$profile" "$start" "$service" "$point" >/dev/null; }
stop_work() { work stop "$node" "$gpu" "$profile" "$start" "$service" "$point" >/dev/null; }
is_ready() { work ready "$node" "$gpu" "$profile" "$start" "$service" "$point" >/dev/null; }
is_drained() { ! is_ready; }
"""


class Site:
    """Nodes that do what a transition's folder says, and work that holds their instances."""

    def __init__(self, folder: Path, start: Deployment, **options: object) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.nodes = stand_ins(folder, start, **options)
        self.works: dict[tuple[str, int, int], tuple[Work, int]] = {}
        self.known: dict[tuple[str, str], Work] = {}
        self.capacities: dict[str, Fraction] = {}
        self.lowest: dict[str, Fraction] = {}
        self.refused = 0
        for card, each in start.instances():
            if each.work is not None and each.start is not None and each.is_ours:
                self._begin(card.node, card.index, each.start, each.work)
        self.lowest = dict(self.capacities)
        hooks = _HOOKS.replace("{folder}", str(folder))
        (folder / "work.sh").write_text(hooks, encoding="utf-8")

    def _begin(self, node: str, gpu: int, start: int, work: Work) -> None:
        pid = self.nodes[node].client(gpu, start)
        self.works[node, gpu, start] = work, pid
        rps = self.capacities.get(work.service, Fraction(0)) + work.supply_rps
        self.capacities[work.service] = rps

    def work(self, words: Sequence[str]) -> tuple[int, str, str]:
        """What the hooks ask."""
        what, node, index, profile, begin, service, label = words
        at = node, int(index), int(begin)
        has = self.works.get(at)
        is_there = has is not None and _called(has[0]) == (service, label)
        if what == "stop" and is_there:
            assert has is not None
            del self.works[at]
            self.nodes[node].leave(has[1])
            self.capacities[service] -= has[0].supply_rps
            self.lowest[service] = min(self.lowest[service], self.capacities[service])
        elif what == "start" and not is_there:
            held = {one.start: one for one in self.nodes[node].instances(at[1])}
            wrong = at[2] not in held or held[at[2]].profile != profile or held[at[2]].hollow
            if has is not None or wrong:
                self.refused += 1
                return 1, "", "no place for it"
            self._begin(*at, self.known[service, label])
            self.lowest.setdefault(service, Fraction(0))
        elif what == "ready":
            return int(not is_there), "", ""
        return 0, "", ""

    def write(self, transition: Transition, name: str = "out", **options: object) -> Path:
        """Write its folder here."""
        told = FolderOptions(**options)  # type: ignore[arg-type]
        for side in (transition.start, transition.target):
            for _, each in side.instances():
                if each.work is not None:
                    self.known[_called(each.work)] = each.work
        for action in transition.actions:
            for each in action.adds:
                if each.work is not None:
                    self.known[_called(each.work)] = each.work
        folder = self.folder / name
        for path, text in folder_of(transition, told).files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
        return folder

    def run(self, folder: Path, *words: str, script: str = "run.sh") -> Ran:
        """Run a script of the folder; the tools are answered in this process."""
        with ExitStack() as stack:
            for node in self.nodes.values():
                stack.enter_context(served(node.folder, "nvidia-smi", node.smi))
            self.tools(stack)
            tools = stack.enter_context(served(self.folder, "work", self.work))
            env = {
                **os.environ,
                "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
                "CMS_WORK": str(self.folder / "work.sh"),
                "CMS_SLURM_DIR": str(self.folder / "conf"),
                "CMS_PAUSE": "0", "CMS_TRIES": "4", "CMS_PATIENCE": "3",
            }  # fmt: skip
            env.pop(STATE, None)
            done = subprocess.run(
                ["sh", str(folder / script), *words],
                env=env, capture_output=True, text=True, timeout=600, check=False,
            )  # fmt: skip
        return Ran(done.returncode, done.stdout, done.stderr)

    def tools(self, stack: ExitStack) -> None:
        """Serve more tools than nvidia-smi and the hooks."""

    def changes(self) -> int:
        return sum(len(changes(node)) for node in self.nodes.values())

    def seen(self, known: Deployment) -> Deployment:
        """Observe the nodes by their texts; what works where is known as pods' labels tell it."""
        found = observed(self.nodes, replace(known, plan=None))
        cards = {}
        for card in found.gpus():
            held = []
            for each in card.instances:
                has = self.works.get((card.node, card.index, each.start or 0))
                if each.state is State.HOLLOW:
                    held.append(replace(each, owner=None, work=None))
                else:
                    held.append(replace(each, owner=None, work=None if has is None else has[0]))
            cards[card.node, card.index] = card.with_instances(held)
        return found.with_gpus(cards)

    def arrived(self, target: Deployment) -> bool:
        """Whether all is as a target has it."""
        found = self.seen(target)
        return difference(found, target).is_empty


def known_by_uuid(site: Site, deployment: Deployment) -> Deployment:
    """The same GPUs, of which it is known which they are."""
    return deployment.with_gpus(
        {
            (card.node, card.index): replace(card, uuid=site.nodes[card.node].uuid(card.index))
            for card in deployment.gpus()
        }
    )


def swapped_gpus_are_left_alone(site: Site, found: Transition) -> None:
    """Whatever other card is in the place of one that is touched: nothing is done, and none is."""

    def there() -> object:
        works = {place: work for place, work in site.works.items() if place[:2] == (node, index)}
        return works, site.nodes[node].instances(index), site.nodes[node].mode(index)

    out = site.write(found)
    node, index = found.actions[0].gpu
    former, before = site.nodes[node].swap(index, "GPU-another"), there()
    for words in ((), ("--undo", "1"), ("--serving",)):
        ran = site.run(out, *words)
        assert (ran.code, there()) == (1, before), ran
    assert f"GPU {index} is GPU-another, not {former}" in ran.error
    site.nodes[node].swap(index, former)
    ran = site.run(out)
    assert (ran.code, ran.error) == (0, ""), ran
    site.nodes[node].swap(index, "GPU-another")
    assert site.run(out).code == 1, "what stands on another GPU is taken for what was done"


def _called(work: Work) -> tuple[str, str]:
    from cms.fleet.deployment.labels import point_label

    return work.service, point_label(work)
