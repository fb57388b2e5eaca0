"""By ``scontrol``: a node is drained, offered for what stays meanwhile, cut anew, and resumed."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from ...files.source import write_bytes
from ..deployment.export.slurm import node_line, offered, throughout
from ..deployment.model import FleetNode
from .nvidia_smi import MigParted
from .tool import ActionFailed, Look
from .units import Unit

_REASON = "cms: cut anew"
#: In states of nodes on which something runs or may begin, and that do not answer.
_BUSY, _SILENT = re.compile("alloc|mixed|compl|unknown"), re.compile("unknown|not_resp")
#: Why Slurm itself closes a node that has rebooted or lost its devices; `cms` may open it again.
_OWN_REASONS = ("gres/", "Node unexpectedly rebooted", "Not responding")


class Slurm(MigParted):
    """Nodes are drained, and their lines in ``cms/NODE.conf`` of Slurm's folder rewritten."""

    def look(self, unit: Unit, *, begun: bool) -> Look:
        """Judge by `nvidia-smi`, and by the node's line, which nothing else may have changed."""
        found = super().look(unit, begun=begun)
        if not unit.partitions:
            return found
        lines, file = self._node_lines(unit), self._file(unit)
        try:
            line = " ".join(x for x in file.read_text("utf-8").splitlines() if x[:1] != "#")
        except OSError as fault:
            raise ActionFailed(
                f"{file} cannot be read ({fault.strerror}); slurm.conf is to include it: "
                "cms export now.json --to slurm"
            ) from None
        has, wants = (
            " ".join(sorted(word for word in each.split() if not word.lower().startswith("gres=")))
            for each in (line, lines["after"])
        )
        if has != wants:
            says = "[export] slurm_nodes of fleet.toml says what is to stand there"
            raise ActionFailed(f"{file} has {has} and would have {wants} ({says})")
        is_offered = line.split() == lines["after"].split()
        return Look.BETWEEN if found is Look.AFTER and not is_offered else found

    def close(self, unit: Unit) -> None:
        """Drain the node, unless somebody else does."""
        if self._is_old() and not self.job.slurm_restart:
            raise ActionFailed(
                "before Slurm 23.11 slurmctld takes more devices only when it starts: say how in "
                '[apply] slurm_restart of fleet.toml: "systemctl restart slurmctld"'
            )
        state, reason = self._state(unit)
        if not _is_closed(state) or reason.startswith(_OWN_REASONS):
            self._update(unit, "state=drain", f"reason={_REASON}")

    def change(self, unit: Unit) -> str:
        """Wait for the jobs, shrink the line, have mig-parted cut, and grow the line."""
        self._await(unit, lambda s: _is_closed(s) and not _BUSY.search(s), "is not free")
        said = ""
        if super().look(unit, begun=True) is not Look.AFTER:
            self._offer(unit, "shrunk")
            said = super().change(unit)
            self.job.shell.wait_until(
                lambda: super(Slurm, self).look(unit, begun=True) is Look.AFTER,
                f"the GPUs of {unit.node} are not cut as they should be; it stays drained. "
                f"mig-parted said: {said}",
            )
        self._offer(unit, "after")
        self._await(unit, lambda state: "inval" not in state, "has fewer devices than its line "
                    "offers: compare with what slurmd -G prints there. It")  # fmt: skip
        return said

    def open(self, unit: Unit) -> None:
        """Resume the node, unless somebody else drains it."""

        def is_open() -> bool:  # asked again: slurmctld, just begun, may refuse or take it back
            state, reason = self._state(unit)
            if not _is_closed(state) or not reason.startswith((_REASON, *_OWN_REASONS)):
                return True
            self._update(unit, "state=resume")
            return False

        self.job.shell.wait_until(is_open, f"{unit.node} is cut, but is not resumed by scontrol")

    def commands(self, unit: Unit) -> Sequence[str]:
        """Return the calls of scontrol and of mig-parted, waits aside."""
        update, file = f"scontrol update nodename={unit.node}", self._file(unit)
        again = f"; {self.job.slurm_restart}" if self.job.slurm_restart else ""
        shrink, grow = (
            f"echo '{line.strip()}' >{file}; scontrol reconfigure{again}"
            for line in self._node_lines(unit).values()
        )
        drain, resume = f"{update} state=drain reason='{_REASON}'", f"{update} state=resume"
        return [drain, shrink, *super().commands(unit), grow, resume]

    def _file(self, unit: Unit) -> Path:
        return Path(self.job.slurm_folder) / "cms" / f"{unit.node}.conf"

    def _node_lines(self, unit: Unit) -> dict[str, str]:
        """Return the node's line while it is cut, and after."""
        before, after = (self.job.named(side) for side in (unit.befores, unit.afters))
        export, node = self.job.export, FleetNode(unit.node, unit.afters)
        counts = {"shrunk": throughout(before, after, export), "after": offered(after, export)}
        return {name: node_line(node, each, export) for name, each in counts.items()}

    def _offer(self, unit: Unit, name: str) -> None:
        write_bytes(self._node_lines(unit)[name].encode(), self._file(unit))
        self.job.shell.here("scontrol", "reconfigure")
        if self._is_old():
            self.job.shell.here("sh", "-c", self.job.slurm_restart)
        self._await(unit, lambda state: not _SILENT.search(state), "does not answer")

    def _state(self, unit: Unit) -> tuple[str, str]:
        """Return the node's state, with all flags, and why it is closed."""
        words = "sinfo", "-h", "-N", "-n", unit.node, "-O", "StateComplete:200,Reason:200"
        ran = self.job.shell.here(*words)
        line = next(iter(ran.out.splitlines()), "")
        if not line.strip():
            raise ActionFailed(f"sinfo does not tell the state of {unit.node}: {ran.said}")
        return line[:200].strip(), line[200:].strip()

    def _await(self, unit: Unit, is_so: Callable[[str], bool], what: str) -> None:
        self.job.shell.wait_until(
            lambda: is_so(self._state(unit)[0]),
            lambda: f"node {unit.node} {what} and stays drained ({' '.join(self._state(unit))})",
        )

    def _update(self, unit: Unit, *words: str) -> None:
        self.job.shell.here("scontrol", "update", f"nodename={unit.node}", *words)

    def _is_old(self) -> bool:
        told = self.job.shell.here("scontrol", "-V").out.split()[-1:]
        numbers = [int(each) for each in told[0].split(".")[:2] if each.isdigit()] if told else []
        return len(numbers) == 2 and numbers < [23, 11]


def _is_closed(state: str) -> bool:
    return "drain" in state or state.startswith("down")
