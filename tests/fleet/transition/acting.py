"""A transition's folder run on stand-ins: nodes, work on their instances, and a log of capacity.

Of tools that cut whole GPUs instances are told by profile and number: which of several equal
devices has which start no listing says; the n-th by start is the n-th that `nvidia-smi -L` lists,
and that is what hooks find by `mig_uuid`.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Protocol

from cms.fleet.deployment import Deployment, Instance, State, Work, difference
from cms.fleet.deployment.export import ExportOptions, export
from cms.fleet.deployment.labels import point_label
from cms.fleet.deployment.transition import Transition, What
from cms.fleet.deployment.transition.folder import FolderOptions, folder_of, open_starts
from cms.fleet.deployment.verifying import verify
from cms.fleet.deployment.written_folder import write_folder
from tests.fleet.bridging import changes, observed, stand_ins
from tests.fleet.stand_ins.driver import STATE
from tests.fleet.stand_ins.machines import Ran, StandInNode
from tests.fleet.stand_ins.serving import served
from tests.fleet.stand_ins.slurm import Slurm

from .cases import reached

Called = tuple[str, str]  # a service, and the label of its point

_HOOKS = """
on_node() {{ PATH="{folder}/$1/served:$PATH" sh -s; }}
asked() {{ work "$1" "$node" "$gpu" "$profile" "{which}" "$service" "$point" >/dev/null; }}
start_work() {{ asked start; }}
stop_work() {{ asked stop; }}
is_ready() {{ asked ready; }}
is_drained() {{ ! is_ready; }}
"""


def called(work: Work) -> Called:
    return work.service, point_label(work)


class Watch:
    """What works may come, and the least capacity that each service has had."""

    def __init__(self) -> None:
        self.known: dict[Called, Work] = {}
        self.lowest: dict[str, Fraction] = {}

    def learn(self, found: Transition) -> None:
        sides = (each for side in (found.start, found.target) for _, each in side.instances())
        coming = (each for action in found.actions for each in action.adds)
        works = (each.work for each in (*sides, *coming) if each.work is not None)
        self.known |= {called(work): work for work in works}

    def floors_held(self, found: Transition) -> bool:
        floors = {name: floor.rps for name, floor in found.floors.items() if floor.rps}
        return all(self.lowest.get(name, Fraction(0)) >= rps for name, rps in floors.items())


class Site(Watch):
    """Nodes that do what a transition's folder says, and work that holds their instances.

    For Slurm with a controller before them.
    """

    def __init__(
        self, folder: Path, start: Deployment, tool: str = "nvidia-smi", **options: object
    ) -> None:
        super().__init__()
        self.folder, self.tool = folder, tool
        folder.mkdir(exist_ok=True)
        self.nodes = stand_ins(folder, start, **options)
        self.works: dict[tuple[str, int, int], tuple[Work, int]] = {}
        self.capacities: dict[str, Fraction] = {}
        self.refused = 0
        for card, each in start.instances():
            if each.work is not None and each.start is not None and each.is_managed:
                at = card.node, card.index, self._true(card.node, card.index, each.start)
                self._begin(at, each.work)
        self.lowest = dict(self.capacities)
        which = "$start" if tool == "nvidia-smi" else "$(mig_uuid)"
        hooks = _HOOKS.format(folder=folder, which=which)
        (folder / "work.sh").write_text(hooks, encoding="utf-8")
        self.slurm = Slurm(folder / "conf", {name: self._devices(name) for name in self.nodes})
        if tool == "slurm":
            (folder / "conf/cms").mkdir(parents=True)
            for path, text in export(start, "slurm", ExportOptions(start)).files.items():
                if path.startswith("nodes/"):
                    line = text.splitlines()[-1] + "\n"
                    (folder / "conf/cms" / Path(path).name).write_text(line, encoding="utf-8")
            self.slurm.scontrol(["reconfigure"])
            self.slurm.log.clear()

    def _devices(self, name: str) -> Callable[[], Counter[str]]:
        node = self.nodes[name]
        return lambda: Counter(place[0] for layout in node.layouts() for place in layout)

    def _true(self, node: str, gpu: int, start: int) -> int:
        """The start of the device that is listed as that of a start, among those of its profile.

        Ids are dealt at random, so the first that is listed need not have the lowest start.
        """
        held = [one for one in self.nodes[node].instances(gpu) if not one.hollow]
        own = next((one for one in held if one.start == start), None)
        if own is None or self.tool == "nvidia-smi":
            return start
        alike = [one for one in held if one.profile == own.profile]
        return sorted(alike, key=lambda one: one.gi)[alike.index(own)].start

    def _begin(self, at: tuple[str, int, int], work: Work) -> None:
        self.works[at] = work, self.nodes[at[0]].client(*at[1:])
        rps = self.capacities.get(work.service, Fraction(0)) + work.supply_rps
        self.capacities[work.service] = rps

    def work(self, words: Sequence[str]) -> tuple[int, str, str]:
        """What the hooks ask, of a start or of the device that they looked up."""
        what, node, index, profile, which, service, label = words
        if self.tool == "nvidia-smi":
            start = int(which)
        else:
            found = {uuid: at for at, uuid in self.nodes[node].mig_uuids(int(index)).items()}
            if which not in found:
                self.refused += what == "start"
                return int(what != "stop"), "", "there is no such device"
            start = found[which]
        if what == "start" and self.tool == "slurm" and not self.slurm.nodes[node].is_open:
            self.refused += 1
            return 1, "", "the node takes no jobs"
        return self.asked(what, (node, int(index), start), profile, (service, label))

    def asked(
        self, what: str, at: tuple[str, int, int], profile: str, call: Called
    ) -> tuple[int, str, str]:
        has = self.works.get(at)
        is_there = has is not None and called(has[0]) == call
        if what == "stop" and is_there:
            assert has is not None
            del self.works[at]
            self.nodes[at[0]].leave(has[1])
            self.capacities[call[0]] -= has[0].supply_rps
            self.lowest[call[0]] = min(self.lowest[call[0]], self.capacities[call[0]])
        elif what == "start" and not is_there:
            held = {one.start: one for one in self.nodes[at[0]].instances(at[1])}
            wrong = at[2] not in held or held[at[2]].profile != profile or held[at[2]].hollow
            if has is not None or wrong:
                self.refused += 1
                return 1, "", "no place for it"
            self._begin(at, self.known[call])
            self.lowest.setdefault(call[0], Fraction(0))
        for name, node in self.slurm.nodes.items():
            node.jobs = {str(place) for place in self.works if place[0] == name}
        return int(what == "ready" and not is_there), "", ""

    def write(self, found: Transition, name: str = "out", **options: object) -> Path:
        self.learn(found)
        told = FolderOptions(self.tool, **options)  # type: ignore[arg-type]
        write_folder(folder_of(found, told).files, self.folder / name)
        return self.folder / name

    def run(self, folder: Path, *words: str, script: str = "run.sh") -> Ran:
        """Run a script of the folder; the tools are answered in this process."""
        with ExitStack() as stack:
            for node in self.nodes.values():
                stack.enter_context(served(node.folder, "nvidia-smi", node.smi))
                if self.tool != "nvidia-smi":
                    self._serve_mig_parted(node, stack)
            if self.tool == "slurm":
                stack.enter_context(served(self.folder, "scontrol", self.slurm.scontrol))
                stack.enter_context(served(self.folder, "sinfo", self.slurm.sinfo))
                stack.enter_context(served(self.folder, "slurmctld-again", self.slurm.again))
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

    def _serve_mig_parted(self, node: StandInNode, stack: ExitStack) -> None:
        given = node.folder / "given.yaml"

        def parted(words: Sequence[str]) -> tuple[int, str, str]:
            return node.mig_parted(words, given.read_text("utf-8"))

        stack.enter_context(served(node.folder, "nvidia-mig-parted", parted, given))

    def trace(self) -> object:
        """All that has been done: equal ones, and nothing was done in between."""
        done = [changes(node) for node in self.nodes.values()]
        return done, dict(self.works), list(self.slurm.log)

    def seen(self, known: Deployment) -> Deployment:
        """Observe the nodes by their texts; what works where is known as pods' labels tell it."""
        found = observed(self.nodes, replace(known, plan=None))
        cards = {}
        for card in found.gpus():
            held = []
            for each in card.instances:
                start = self._true(card.node, card.index, each.start or 0)
                has = self.works.get((card.node, card.index, start))
                work = None if has is None or each.state is State.NO_COMPUTE_INSTANCE else has[0]
                held.append(replace(each, owner=None, work=work))
            cards[card.node, card.index] = card.with_instances(held)
        return found.with_gpus(cards)

    def is_as(self, found: Transition, state: Deployment) -> bool:
        """Whether all is as a state on the way has it, but for starts that the tool chose."""
        if self.tool == "nvidia-smi":
            return difference(self.seen(state), state).is_empty
        return verify(self.seen(state), open_starts(found, state)) == ()


class Place(Protocol):
    """Where a folder of a transition is run."""

    def run(self, folder: Path, *words: str) -> Ran: ...
    def trace(self) -> object: ...
    def is_as(self, found: Transition, state: Deployment) -> bool: ...
    def floors_held(self, found: Transition) -> bool: ...


def goes_well(site: Place, out: Path, *words: str) -> Ran:
    ran = site.run(out, *words)
    assert (ran.code, ran.error) == (0, ""), ran
    return ran


def arrives(site: Place, out: Path, found: Transition, *words: str) -> None:
    """Run a folder to its end; with words for the way back, to where it began."""
    goes_well(site, out, *words)
    assert site.is_as(found, found.start if words else found.target)
    assert site.floors_held(found)


def there_again_and_back(site: Place, out: Path, found: Transition) -> None:
    before = site.trace()
    goes_well(site, out, "--dry-run")
    assert site.trace() == before
    arrives(site, out, found)
    done = site.trace()
    goes_well(site, out)
    assert site.trace() == done, "it did something the second time"
    arrives(site, out, found, "--undo", "1")


def a_fault_is_survived(
    folder: Path, found: Transition, tool: str, command: str, kind: str, seed: int = 0
) -> bool:
    """Whether the fault was met: then it is found, and the way goes on from what is there."""
    rest = random.Random(f"{seed}{command}{kind}{tool}")
    site = Site(folder, found.start, tool)
    out = site.write(found)
    nodes = sorted({action.node for action in found.actions if action.what is What.REPARTITION})
    where = site.nodes[rest.choice(nodes or sorted(site.nodes))]
    by_parts = tool == "nvidia-smi"
    if command == "cci" and by_parts:  # of a creation that fails half-way the rest is tried again
        where.fault("cgi", "half")
    at = rest.randint(1, 50 if command == "list" else 2)
    where.fault(command, kind, at=at, times=1 if command == "list" or by_parts else 99)
    ran = site.run(out)
    met = where.pending_faults() == 0
    for node in site.nodes.values():  # what was not met is not to befall who looks
        node.clear_faults()
    if ran.code:
        assert met, ran
        assert "is not as it should be" in ran.error
        assert "--from" in ran.error
    else:
        assert site.is_as(found, found.target)
    assert site.floors_held(found)
    if rest.random() < 0.5:  # anew, from what is seen, or else the same again
        now = site.seen(found.target)
        told = goes_well(site, out, "--serving").text
        serving_is_told(now.instances(), told)
        again = reached(now, open_starts(found, found.target), tool=tool)
        out = site.write(again, "again")
    arrives(site, out, found)
    assert site.refused == 0
    return met


def adopted(text: str) -> dict[str, str]:
    return dict(re.findall(r"--adopt (\S+?)=(\S+)", text))


def serving_is_told(there: Iterable[tuple[object, Instance]], text: str) -> None:
    """Whether what `--serving` says serves does, and what may go serves nothing."""
    told, may_go = adopted(text), re.findall(r"--reclaim (\S+)", text)
    for card, each in there:
        place = f"{card.name}:{each.start}"  # type: ignore[attr-defined]
        if place in told:
            assert each.work is not None
            assert told[place].startswith(f"{each.work.service}@")
        assert each.work is None or place not in may_go


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
    out = site.write(found)
    node, index = found.actions[0].gpu

    def there() -> object:
        works = {place: work for place, work in site.works.items() if place[:2] == (node, index)}
        return works, site.nodes[node].instances(index), site.nodes[node].mode(index)

    former, before = site.nodes[node].swap(index, "GPU-another"), there()
    for words in ((), ("--undo", "1"), ("--serving",)):
        ran = site.run(out, *words)
        assert (ran.code, there()) == (1, before), ran
    assert f"GPU {index} is GPU-another, not {former}" in ran.error
    site.nodes[node].swap(index, former)
    goes_well(site, out)
    site.nodes[node].swap(index, "GPU-another")
    assert site.run(out).code == 1, "what stands on another GPU is taken for what was done"
