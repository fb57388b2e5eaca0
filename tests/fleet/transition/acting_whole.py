"""Folders of tools that cut whole GPUs, run on stand-ins: instances are told by profile and number.

Which of several equal devices has which start no listing says: the n-th by start is the n-th that
`nvidia-smi -L` lists, and that is what hooks find by `mig_uuid`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from cms.fleet.deployment import Deployment, State, Work
from cms.fleet.deployment.export import ExportOptions, export
from cms.fleet.deployment.transition import Transition
from cms.fleet.deployment.transition.folder import open_starts
from cms.fleet.deployment.verifying import verify
from tests.fleet.bridging import observed
from tests.fleet.stand_ins.machines import StandInNode
from tests.fleet.stand_ins.serving import served
from tests.fleet.stand_ins.slurm import Slurm

from .acting import Site

_HOOKS = """
on_node() { PATH="{folder}/$1/served:$PATH" sh -s; }
asked() { work "$1" "$node" "$gpu" "$profile" "$(mig_uuid)" "$service" "$point" >/dev/null; }
start_work() { asked start; }
stop_work() { asked stop; }
is_ready() { asked ready; }
is_drained() { ! is_ready; }
"""


class WholeSite(Site):
    """Nodes whose GPUs mig-parted cuts, and, for Slurm, a controller before them."""

    def __init__(
        self, folder: Path, start: Deployment, actuator: str = "mig-parted", **options: object
    ) -> None:
        self.actuator, self._is_made = actuator, False
        super().__init__(folder, start, **options)
        self._is_made = True
        hooks = _HOOKS.replace("{folder}", str(folder))
        (folder / "work.sh").write_text(hooks, encoding="utf-8")
        self.slurm = Slurm(folder / "conf", {name: self._devices(name) for name in self.nodes})
        if actuator == "slurm":
            for path, text in export(start, "slurm", ExportOptions(start)).files.items():
                if path.startswith("nodes/"):
                    line = text.splitlines()[-1] + "\n"
                    (folder / "conf/cms").mkdir(parents=True, exist_ok=True)
                    (folder / "conf/cms" / Path(path).name).write_text(line, encoding="utf-8")
            self.slurm.scontrol(["reconfigure"])
            self.slurm.log.clear()

    def _devices(self, name: str) -> Callable[[], Counter[str]]:
        node = self.nodes[name]
        return lambda: Counter(place[0] for layout in node.layouts() for place in layout)

    def _begin(self, node: str, gpu: int, start: int, work: Work) -> None:
        true = start if self._is_made else start_of(self.nodes[node], gpu, start)
        super()._begin(node, gpu, true, work)

    def work(self, words: Sequence[str]) -> tuple[int, str, str]:
        """What the hooks ask: of the device that they looked up."""
        what, node, index, profile, uuid, service, label = words
        found = {uuid: start for start, uuid in self.nodes[node].mig_uuids(int(index)).items()}
        if uuid not in found:
            self.refused += what == "start"
            return int(what != "stop"), "", "there is no such device"
        is_open = self.actuator != "slurm" or self.slurm.nodes[node].is_open
        if what == "start" and not is_open:
            self.refused += 1
            return 1, "", "the node takes no jobs"
        place = str(found[uuid])
        return self.by_start([what, node, index, profile, place, service, label])

    def by_start(self, words: Sequence[str]) -> tuple[int, str, str]:
        ended = super().work(words)
        for name, node in self.slurm.nodes.items():
            ours = {str(at) for at in self.works if at[0] == name}
            node.jobs = {job for job in node.jobs if not job.startswith("(")} | ours
        return ended

    def tools(self, stack: ExitStack) -> None:
        for node in self.nodes.values():
            given = node.folder / "given.yaml"

            def parted(
                words: Sequence[str], node: StandInNode = node, given: Path = given
            ) -> tuple[int, str, str]:
                return node.mig_parted(words, given.read_text("utf-8"))

            stack.enter_context(served(node.folder, "nvidia-mig-parted", parted, given))
        if self.actuator == "slurm":
            stack.enter_context(served(self.folder, "scontrol", self.slurm.scontrol))
            stack.enter_context(served(self.folder, "sinfo", self.slurm.sinfo))
            stack.enter_context(served(self.folder, "slurmctld-again", self._start_slurmctld))

    def _start_slurmctld(self, words: Sequence[str]) -> tuple[int, str, str]:
        self.slurm.restart()
        return 0, "", ""

    def write(self, transition: Transition, name: str = "out", **options: object) -> Path:
        return super().write(transition, name, actuator=self.actuator, **options)

    def seen(self, known: Deployment) -> Deployment:
        """Observe the nodes by their texts; what works where, by number."""
        found = observed(self.nodes, replace(known, plan=None))
        cards = {}
        for card in found.gpus():
            held = []
            for each in card.instances:
                start = start_of(self.nodes[card.node], card.index, each.start or 0)
                has = self.works.get((card.node, card.index, start))
                work = None if has is None or each.state is State.HOLLOW else has[0]
                held.append(replace(each, owner=None, work=work))
            cards[card.node, card.index] = card.with_instances(held)
        return found.with_gpus(cards)

    def is_as(self, found: Transition, state: Deployment) -> bool:
        """Whether all is as a state on the way has it, but for starts that the tool chose."""
        return verify(self.seen(state), open_starts(found, state)) == ()


def start_of(node: StandInNode, gpu: int, start: int) -> int:
    """The true start of the device that is listed as that of a start, among those of its profile.

    Ids are dealt at random, so the first that is listed need not have the lowest start.
    """
    held = [one for one in node.instances(gpu) if not one.hollow]
    own = next((one for one in held if one.start == start), None)
    if own is None:
        return start
    alike = [one for one in held if one.profile == own.profile]
    listed = sorted(alike, key=lambda one: one.gi)
    return listed[alike.index(own)].start


def adopted(text: str) -> dict[str, str]:
    """What `run.sh --serving` says serves, by place."""
    return dict(re.findall(r"--adopt (\S+?)=(\S+)", text))


def released(text: str) -> set[str]:
    """What `run.sh --serving` says may go."""
    return set(re.findall(r"--reclaim (\S+)", text))


def lowest_of(site: Site, found: Transition) -> bool:
    """Whether no service has been below its floor."""
    return all(
        site.lowest.get(name, Fraction(0)) >= floor.rps
        for name, floor in found.floors.items()
        if floor.rps
    )
