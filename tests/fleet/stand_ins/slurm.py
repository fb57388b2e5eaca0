"""A stand-in for Slurm's controller: nodes that drain, lines that promise devices, and jobs.

After the documents: a node that is to be drained is `draining` while jobs run there, and `drained`
after; `reconfigure` reads the nodes' lines, and a node that has fewer devices than its line
promises becomes invalid and drained, with a reason of Slurm's own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

#: What `scontrol` says of a node that it does not know.
UNKNOWN = "Invalid node name specified"


@dataclass
class SlurmNode:
    """A node as the controller has it."""

    devices: Callable[[], Counter[str]]  # the profiles that are really there
    promised: Counter[str] = field(default_factory=Counter)
    jobs: set[str] = field(default_factory=set)
    drain: str = ""  # the reason
    invalid: bool = False

    @property
    def state(self) -> str:
        if self.invalid:
            return "inval"
        if self.drain:
            return "draining" if self.jobs else "drained"
        return "mixed" if self.jobs else "idle"


class Slurm:
    """`scontrol` and `sinfo` as far as scripts use them.

    Parameters
    ----------
    folder
        Where `cms/NODE.conf` are, the lines that slurm.conf includes.
    nodes
        What is really on each node: profiles, counted.
    """

    def __init__(self, folder: Path, nodes: Mapping[str, Callable[[], Counter[str]]]) -> None:
        self.folder = folder
        self.nodes = {name: SlurmNode(devices) for name, devices in nodes.items()}
        self.log: list[str] = []
        self.refuse = 0  # so many changes to come are refused

    def scontrol(self, words: Sequence[str]) -> tuple[int, str, str]:
        self.log.append(" ".join(words))
        if self.refuse:
            self.refuse -= 1
            return 1, "", "slurm_update error: Unable to contact slurm controller"
        if list(words) == ["reconfigure"]:
            self._reconfigure()
            return 0, "", ""
        told = dict(word.split("=", 1) for word in words[1:])
        node = self.nodes.get(told.get("nodename", ""))
        if words[0] != "update" or node is None:
            return 1, "", UNKNOWN
        if told["state"] == "drain":
            node.drain = told["reason"]
        elif told["state"] == "resume" and not node.invalid:
            node.drain = ""
        else:
            return 1, "", "slurm_update error: Invalid node state specified"
        return 0, "", ""

    def sinfo(self, words: Sequence[str]) -> tuple[int, str, str]:
        assert list(words[:3]) == ["-h", "-N", "-n"]
        assert list(words[4:]) == ["-o", "%T %E"]
        node = self.nodes.get(words[3])
        return 0, f"{node.state} {node.drain or 'none'}\n" if node else "", ""

    def _reconfigure(self) -> None:
        for name, node in self.nodes.items():
            line = (self.folder / "cms" / f"{name}.conf").read_text("utf-8")
            assert line.startswith(f"NodeName={name}")
            offers = re.findall(r"gpu:\w+?_([0-9a-z.+]+):(\d+)", line)
            node.promised = Counter({profile: int(count) for profile, count in offers})
            there = node.devices()
            node.invalid = any(there[profile] < count for profile, count in node.promised.items())
            if node.invalid:
                node.drain = "gres/gpu count reported lower than configured"

    def begin(self, name: str, job: str) -> bool:
        """A job of a user begins on a node, if it may."""
        node = self.nodes[name]
        if node.state in ("idle", "mixed"):
            node.jobs.add(job)
            return True
        return False

    def end(self, name: str, job: str) -> None:
        self.nodes[name].jobs.discard(job)
