"""Nodes that do not exist, for tests: their GPUs, their tools on PATH, and the truth about them."""

from __future__ import annotations

import json
import os
import random
import shlex
import subprocess
import sys
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

from tests.fleet.stand_ins import mig_parted, nvidia_smi
from tests.fleet.stand_ins.driver import COMMANDS, ERRORS, STATE, TREASONS, Driver, uuid
from tests.fleet.stand_ins.placement import MODELS, Layout

ROOT = Path(__file__).resolve().parents[3]

# `nvidia-smi` starts without site-packages, which halves its time; mig-parted reads YAML.
TOOLS = {"nvidia-smi": ("nvidia_smi", "-S"), "nvidia-mig-parted": ("mig_parted", "")}


class Ran(NamedTuple):
    """What a command did."""

    code: int
    text: str
    error: str = ""


class Held(NamedTuple):
    """A GPU instance as it truly is."""

    profile: str
    start: int
    gi: int
    compute_instances: int

    @property
    def hollow(self) -> bool:
        return self.compute_instances == 0


class StandInNode:
    """A node in a folder of its own, with GPUs by keys of `placement.MODELS`.

    `seed` decides ids and UUIDs, and starts that are not given where `choice` is `any` instead of
    `lowest`. `texts`, `new` or `old`: the width of tables, and whether `-lci` shows placements.

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
        texts: str = "new",
    ) -> None:
        self.folder = folder
        self.state_file = folder / "state.json"
        rest = random.Random(seed)
        modes = [mig] * len(gpus) if isinstance(mig, bool) else list(mig)
        made = []
        for index, (key, on) in enumerate(zip(gpus, modes, strict=True)):
            mode = "Enabled" if on else "Disabled"
            made.append({
                "model": key, "name": MODELS[key].product,
                "uuid": uuid("GPU", seed * 1_009 + index),
                "bus": 0x01 + 0x20 * index if index < 8 else 0x02 + index,
                "mode": mode, "pending": mode, "instances": [], "clients": [],
                # As many as were ever seen on one card.
                "ids": rest.sample(range(15), 15),
            })  # fmt: skip
        folder.mkdir(parents=True, exist_ok=True)
        state = {
            "seed": seed, "made": 0, "choice": choice, "texts": texts, "gpus": made,
            "faults": [], "shadow": None, "log": [],
        }  # fmt: skip
        self.state_file.write_text(json.dumps(state), encoding="utf-8")
        self._install()

    def _install(self) -> None:
        programs = self.folder / "bin"
        programs.mkdir()
        for tool, (module, flag) in TOOLS.items():
            python = programs / f".{module}.py"
            python.write_text(
                f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n"
                f"from tests.fleet.stand_ins.{module} import main\nsys.exit(main(sys.argv[1:]))\n",
                encoding="utf-8",
            )
            run = shlex.join([sys.executable, *([flag] if flag else []), "-E", str(python)])
            program = programs / tool
            program.write_text(f'#!/bin/sh\nexec {run} "$@"\n', encoding="utf-8")
            program.chmod(0o755)

    # Running things

    @property
    def env(self) -> dict[str, str]:
        """The environment in which scripts find this node's tools, and no others of their names."""
        path = os.pathsep.join((str(self.folder / "bin"), os.environ.get("PATH", os.defpath)))
        return {**os.environ, "PATH": path, STATE: str(self.state_file)}

    def smi(self, command: str | Sequence[str]) -> Ran:
        """`nvidia-smi` in this process; a string is split as a shell splits it."""
        arguments = shlex.split(command) if isinstance(command, str) else list(command)
        out: list[str] = []
        code = nvidia_smi.main(arguments, {STATE: str(self.state_file)}, out.append)
        return Ran(code, "".join(out))

    def mig_parted(self, command: str | Sequence[str], text: str = "") -> Ran:
        """`nvidia-mig-parted` in this process; `text` is its standard input."""
        arguments = shlex.split(command) if isinstance(command, str) else list(command)
        out: list[str] = []
        error: list[str] = []
        code = mig_parted.main(
            arguments, {STATE: str(self.state_file)}, out.append, error.append, lambda: text
        )
        return Ran(code, "".join(out), "".join(error))

    def sh(self, script: str, *, timeout: float = 60) -> Ran:
        """Run a shell script in the node's folder with its tools first on PATH."""
        done = subprocess.run(
            ["sh", "-c", script], env=self.env, cwd=self.folder, start_new_session=True,
            capture_output=True, text=True, timeout=timeout, check=False,
        )  # fmt: skip
        return Ran(done.returncode, done.stdout, done.stderr)

    # The truth

    def _driver(self) -> AbstractContextManager[Driver]:
        return Driver(str(self.state_file))

    def _gpu(self, index: int) -> dict[str, Any]:
        with self._driver() as driver:
            return driver.gpus[index]

    def instances(self, gpu: int) -> tuple[Held, ...]:
        """The GPU instances, by start."""
        with self._driver() as driver:
            profiles = {profile.number: profile.name for profile in driver.model(gpu).profiles}
            found = [
                Held(profiles[made["profile"]], made["start"], made["id"], len(made["cis"]))
                for made in driver.gpus[gpu]["instances"]
            ]
        return tuple(sorted(found, key=lambda held: held.start))

    def layout(self, gpu: int) -> Layout:
        """The GPU instances that have a compute instance, as (profile, start), by start."""
        return tuple((held.profile, held.start) for held in self.instances(gpu) if not held.hollow)

    def layouts(self) -> tuple[Layout, ...]:
        with self._driver() as driver:
            count = len(driver.gpus)
        return tuple(self.layout(gpu) for gpu in range(count))

    def at(self, gpu: int, start: int) -> Held:
        """The GPU instance that starts there."""
        return next(held for held in self.instances(gpu) if held.start == start)

    def mode(self, gpu: int) -> str:
        """`Enabled` or `Disabled`, as it is now."""
        return str(self._gpu(gpu)["mode"])

    def uuid(self, gpu: int) -> str:
        return str(self._gpu(gpu)["uuid"])

    def mig_uuids(self, gpu: int) -> dict[int, str]:
        """The UUID of the first compute instance of each GPU instance, by start."""
        made = self._gpu(gpu)["instances"]
        return {one["start"]: one["cis"][0]["uuid"] for one in made if one["cis"]}

    def log(self) -> tuple[str, ...]:
        """Every command so far, as typed, with its exit status."""
        with self._driver() as driver:
            lines = driver.state["log"]
        return tuple(
            f"{line['tool']} {shlex.join(line['arguments'])} -> {line['code']}" for line in lines
        )

    # The world around

    def put(self, gpu: int, placed: Iterable[tuple[str, int]], *, hollow: bool = False) -> None:
        """Make instances at their starts behind the tools' backs; `hollow` without compute."""
        with self._driver() as driver:
            faults, driver.state["faults"] = driver.state["faults"], []
            for name, start in placed:
                number = driver.model(gpu).by_name[name].number
                gi = driver.create_gpu_instance(gpu, number, start)
                if not hollow:
                    driver.create_compute_instance(gpu, gi)
            driver.state["faults"] = faults

    def client(self, gpu: int, start: int | None = None) -> int:
        """A process on a GPU, or on the instance at a start; its pid is the answer."""
        gi = None if start is None else self.at(gpu, start).gi
        with self._driver() as driver:
            driver.state["made"] += 1
            pid: int = 4000 + driver.state["made"]
            driver.gpus[gpu]["clients"].append({"pid": pid, "gi": gi})
        return pid

    def leave(self, pid: int) -> None:
        """The process ends."""
        with self._driver() as driver:
            for gpu in driver.gpus:
                gpu["clients"] = [one for one in gpu["clients"] if one["pid"] != pid]

    def fault(
        self, command: str, kind: str, *, at: int = 1, times: int = 1, listings: int = 1
    ) -> None:
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
        assert kind in (*ERRORS, *TREASONS), kind
        with self._driver() as driver:
            driver.state["faults"].append({
                "command": command, "kind": kind, "at": at, "times": times, "listings": listings,
                "seen": 0,
            })  # fmt: skip

    def pending_faults(self) -> int:
        """How many faults have not happened yet."""
        with self._driver() as driver:
            faults = driver.state["faults"]
        return sum(fault["seen"] < fault["at"] for fault in faults)

    def clear_faults(self) -> None:
        with self._driver() as driver:
            driver.state["faults"], driver.state["shadow"] = [], None

    def swap(self, gpu: int, uuid: str) -> str:
        """Another card is in the place of a GPU, cut alike; the former's UUID is the answer."""
        with self._driver() as driver:
            former: str = driver.gpus[gpu]["uuid"]
            driver.gpus[gpu]["uuid"] = uuid
        return former

    def reboot(self) -> None:
        """MIG mode stays or becomes what was pending; instances and processes are gone."""
        with self._driver() as driver:
            for gpu in range(len(driver.gpus)):
                driver.wipe(gpu)
            driver.state["shadow"] = None
