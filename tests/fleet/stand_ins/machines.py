"""Nodes that do not exist, for tests: their GPUs, their tools on PATH, and the truth about them."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from threading import RLock
from typing import NamedTuple
from unittest.mock import patch

from tests.fleet.stand_ins.driver import COMMANDS, KINDS, Driver, Fault, Held, Killed
from tests.fleet.stand_ins.mig_parted import Failure, MigParted
from tests.fleet.stand_ins.nvidia_smi import NvidiaSmi
from tests.fleet.stand_ins.placement import Layout
from tests.fleet.stand_ins.serving import served


class Ran(NamedTuple):
    """What a command did."""

    code: int
    text: str
    error: str = ""


Around = Callable[[Callable[[], Ran]], Ran]
#: What of nvidia-smi changes something.
_ACTS = {"-cgi", "-cci", "-dgi", "-dci", "-mig", "--gpu-reset"}


class StandInNode(Driver):
    """A node in a folder of its own, with GPUs by keys of `placement.MODELS`.

    `seed` decides ids and UUIDs, and starts that are not given where `choice` is `any` instead of
    `lowest`. `log` has every command so far, as typed, with its exit status.

    Examples
    --------
    >>> import tempfile
    >>> node = StandInNode(Path(tempfile.mkdtemp()), ["h100-80gb"])
    >>> node.sh("nvidia-smi mig -cgi 4g.40gb:0,3g.40gb:4 -C >out.txt").code
    0
    >>> node.layout(0)
    (('4g.40gb', 0), ('3g.40gb', 4))
    >>> _ = node.client(0, 4)
    >>> node.smi(f"mig -gi {node.at(0, 4).gi} -dci").code
    19
    """

    def __init__(
        self,
        folder: Path,
        gpus: Sequence[str],
        *,
        seed: int = 0,
        mig: bool | Sequence[bool] = True,
        choice: str = "lowest",
    ) -> None:
        modes = [mig] * len(gpus) if isinstance(mig, bool) else mig
        super().__init__(gpus, seed, modes, choice)
        self.folder, self.log, self._lock = folder, list[str](), RLock()
        folder.mkdir(parents=True, exist_ok=True)

    # Running things

    def smi(self, command: str | Sequence[str]) -> Ran:
        """`nvidia-smi` in this process; a string is split as a shell splits it."""
        words = shlex.split(command) if isinstance(command, str) else command
        out: list[str] = []
        with self._lock:
            self.phantoms.clear()
            try:
                code = NvidiaSmi(self, out.append).run(words)
            except Killed:
                code = 137
            self.log.append(f"nvidia-smi {shlex.join(words)} -> {code}")
        return Ran(code, "".join(out))

    def mig_parted(self, command: str | Sequence[str], given: str = "") -> Ran:
        """`nvidia-mig-parted` in this process, with its standard input."""
        words = shlex.split(command) if isinstance(command, str) else command
        text, errors = "", list[str]()
        with self._lock:
            self.phantoms.clear()
            try:
                code, text = 0, MigParted(self, errors.append).run(words, given)
            except Failure as failure:
                code = 1
                errors.append(f'level=fatal msg="{failure}"\n')
            except Killed:
                code = 137
            self.log.append(f"nvidia-mig-parted {shlex.join(words)} -> {code}")
        return Ran(code, text, "".join(errors))

    @contextmanager
    def tools(self, around: Around = lambda act: act()) -> Iterator[Path]:
        """Serve its tools in a folder; `around` runs each command that may change something."""
        given = self.folder / "given.yaml"

        def smi(words: Sequence[str]) -> Ran:
            act = partial(self.smi, words)
            return around(act) if _ACTS & {*words} else act()

        def mig_parted(words: Sequence[str]) -> Ran:
            return around(partial(self.mig_parted, words, given.read_text("utf-8")))

        with ExitStack() as stack:
            stack.enter_context(served(self.folder, "nvidia-smi", smi))
            yield stack.enter_context(served(self.folder, "nvidia-mig-parted", mig_parted, given))

    def sh(self, script: str) -> Ran:
        """Run a shell script in the node's folder with its tools first on PATH."""
        with self.tools() as tools:
            path = os.pathsep.join((str(tools), os.environ.get("PATH", os.defpath)))
            done = subprocess.run(
                ["sh", "-c", script], env={**os.environ, "PATH": path}, cwd=self.folder,
                capture_output=True, text=True, timeout=60, check=False,
            )  # fmt: skip
        return Ran(done.returncode, done.stdout, done.stderr)

    # The truth

    def instances(self, gpu: int) -> tuple[Held, ...]:
        """The GPU instances, by start."""
        return tuple(sorted(self.cards[gpu].instances, key=lambda held: held.start))

    def layout(self, gpu: int) -> Layout:
        """The GPU instances that have a compute instance, as (profile, start), by start."""
        return tuple((held.profile, held.start) for held in self.instances(gpu) if not held.hollow)

    def layouts(self) -> tuple[Layout, ...]:
        return tuple(map(self.layout, range(len(self.cards))))

    def at(self, gpu: int, start: int) -> Held:
        """The GPU instance that starts there."""
        return next(held for held in self.instances(gpu) if held.start == start)

    def mig_uuids(self, gpu: int) -> dict[int, str]:
        """The UUID of the compute instance of each GPU instance that has one, by start."""
        return {held.start: held.uuid for held in self.instances(gpu) if not held.hollow}

    # The world around

    def put(self, gpu: int, placed: Iterable[tuple[str, int]], *, hollow: bool = False) -> None:
        """Make instances at their starts behind the tools' backs; `hollow` without compute."""
        faults, self.faults = self.faults, []
        self.phantoms.clear()
        for name, start in placed:
            gi = self.create_gpu_instance(gpu, self.cards[gpu].model.by_name[name], start)
            if not hollow:
                self.create_compute_instance(gpu, gi)
        self.faults = faults

    def remove(self, gpu: int, start: int) -> None:
        """Remove an instance as somebody does who types it."""
        gi = self.at(gpu, start).gi
        for word in ("-dci", "-dgi"):
            assert self.smi(f"mig -i {gpu} -gi {gi} {word}").code == 0

    def client(self, gpu: int, start: int | None = None) -> int:
        """A process on a GPU, or on the instance at a start; its pid is the answer."""
        pid = self.rest.getrandbits(31)
        self.cards[gpu].clients[pid] = None if start is None else self.at(gpu, start).gi
        return pid

    def leave(self, pid: int) -> None:
        """The process ends."""
        for card in self.cards:
            card.clients.pop(pid, None)

    def fault(self, command: str, kind: str, **when: int) -> None:
        """From the `at`-th operation on, `times` operations of a command go wrong.

        Operations are counted from now on, one for each instance that a command line makes or
        destroys: `cgi`, `cci`, `dgi`, `dci`, `mig`, `reset`, and `list` for a listing.

        - `insufficient`, `in_use`, `unknown`: refused with that error
        - `no_effect`: said to be done, and not done
        - `half` (of `cgi`): the GPU instance is made, its compute instance fails
        - `delayed`: done, but the next `listings` listings show what was before
        - `killed_before`, `killed_after`: the tool ends with 137, not done or done
        """
        assert command in COMMANDS, command
        assert kind in KINDS, kind
        self.faults.append(Fault(command, kind, **when))

    def clear_faults(self) -> None:
        self.faults, self.shadow = [], ([], 0)

    def swap(self, gpu: int, uuid: str) -> str:
        """Another card is in the place of a GPU, cut alike; the former's UUID is the answer."""
        card = self.cards[gpu]
        former, card.uuid = card.uuid, uuid
        return former

    def reboot(self) -> None:
        """MIG mode stays or becomes what was pending; instances and processes are gone."""
        for card in self.cards:
            card.wipe()
        self.shadow = [], 0


_SSH = """\
#!/bin/sh
PATH="{folder}/$1/served:$PATH"
shift
exec sh -c "$*"
"""


@contextmanager
def behind_ssh(nodes: Mapping[str, StandInNode]) -> Iterator[None]:
    """Let `ssh NODE COMMAND` reach nodes in folders of one folder that have their names."""
    folder = next(iter(nodes.values())).folder.parent
    (programs := folder / "programs").mkdir()
    (programs / "ssh").write_text(_SSH.format(folder=folder), encoding="utf-8")
    (programs / "ssh").chmod(0o755)
    with ExitStack() as stack:
        for node in nodes.values():
            stack.enter_context(node.tools())
        path = f"{programs}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        stack.enter_context(patch.dict(os.environ, {"PATH": path}))
        yield
