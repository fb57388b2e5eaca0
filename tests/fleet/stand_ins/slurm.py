"""A stand-in for Slurm's controller: nodes that drain, lines that promise devices, and jobs.

As slurmctld and slurmd 22.05, 24.11 and 26.05 were seen to do: `reconfigure` reads the lines of the
nodes, and each slurmd answers a little later with what it finds; a node that has fewer devices than
its line promises is `idle+drain+invalid_reg`, whatever it was before, and `sinfo` calls it `inval`.
Before 23.11 counts that grow are taken only by a slurmctld that starts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

SHORT = "gres/gpu count reported lower than configured"


@dataclass
class SlurmNode:
    """A node as the controller has it."""

    devices: Callable[[], Counter[str]]  # the profiles that are really there
    promised: Counter[str] = field(default_factory=Counter)
    taken: Counter[str] = field(default_factory=Counter)  # what an old slurmctld has room for
    jobs: set[str] = field(default_factory=set)
    drain: str = ""  # the reason
    invalid: bool = False
    unheard: int = 0  # so many looks until slurmd has answered

    @property
    def state(self) -> str:
        base = "unknown" if self.unheard else "mixed" if self.jobs else "idle"
        return base + "+drain" * bool(self.drain) + "+invalid_reg" * self.invalid

    @property
    def is_open(self) -> bool:
        return self.state in ("idle", "mixed")


class Slurm:
    """`scontrol` and `sinfo` as far as they are used.

    `folder`: Where `cms/NODE.conf` are, the lines that slurm.conf includes. `nodes`: What is really
    on each node: profiles, counted.
    """

    def __init__(self, folder: Path, nodes: Mapping[str, Callable[[], Counter[str]]]) -> None:
        self.folder = folder
        self.nodes = {name: SlurmNode(devices) for name, devices in nodes.items()}
        self.log: list[str] = []
        self.lag = 0  # so many looks until a slurmd has answered
        self.version = "23.11.4"

    def scontrol(self, words: Sequence[str]) -> tuple[int, str, str]:
        if list(words) == ["-V"]:
            return 0, f"slurm {self.version}\n", ""
        self.log.append(" ".join(words))
        if list(words) == ["reconfigure"]:
            self._reconfigure()
            return 0, "", ""
        told = dict(word.split("=", 1) for word in words[1:])
        node = self.nodes.get(told.get("nodename", ""))
        if words[0] != "update" or node is None:
            return 1, "", "Invalid node name specified"
        if told["state"] == "drain":
            node.drain = told["reason"]
        elif told["state"] == "resume" and not node.unheard and node.drain:
            node.drain = ""
            self._register(node)
        else:
            return 1, "", "slurm_update error: Invalid node state specified"
        return 0, "", ""

    def sinfo(self, words: Sequence[str]) -> tuple[int, str, str]:
        """A line for each of two partitions, in columns as wide as asked for."""
        assert list(words[:3]) == ["-h", "-N", "-n"]
        assert words[4] == "-O"
        node = self.nodes.get(words[3])
        if node is None:
            return 0, "", ""
        said = {"StateComplete": node.state, "Reason": node.drain or "none"}
        if node.unheard:
            node.unheard -= 1
            self._register(node)
        fields = [column.partition(":") for column in words[5].split(",")]
        line = "".join(said[name].ljust(int(width)) for name, _, width in fields)
        return 0, f"{line}\n" * 2, ""

    @property
    def _is_old(self) -> bool:
        return tuple(map(int, self.version.split(".")[:2])) < (23, 11)

    def _reconfigure(self) -> None:
        for name, node in self.nodes.items():
            line = (self.folder / "cms" / f"{name}.conf").read_text("utf-8")
            assert line.startswith(f"NodeName={name}")
            offers = re.findall(r"gpu:\w+?_([0-9a-z.+]+):(\d+)", line)
            node.promised = Counter({profile: int(count) for profile, count in offers})
            node.unheard = self.lag
            self._register(node)

    def _register(self, node: SlurmNode) -> None:
        """What slurmd finds is compared with what was promised."""
        if node.unheard:
            return
        there, kept = node.devices(), node.taken if self._is_old else node.promised
        node.invalid = not node.promised <= there or not node.promised <= kept
        node.taken &= node.promised
        if node.invalid and (not node.drain or not self._is_old):
            node.drain = f"{SHORT} ({there.total()} < {node.promised.total()})"

    def again(self, words: Sequence[str] = ()) -> tuple[int, str, str]:
        """The slurmctld starts anew, with all that the lines say."""
        for node in self.nodes.values():
            node.taken = Counter(node.promised)
        self._reconfigure()
        return 0, "", ""
