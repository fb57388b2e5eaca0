"""Figure 11: signals and kills of offline work, with real processes and no GPU.

``python -m bench.colocation_figures.errors`` forks a stand-in device, an online client that
launches kernels all the time, and offline programs that are hit at random moments. It is a small
process of its own, without threads, since it forks; the figures and the tests run it as one. Three
experiments:

- *graceful*: SIGTERM or SIGINT to a program with :class:`cms.fleet.GracefulExit`: the online side
  has no fault, and every program exits with 0 within the grace;
- *killed*: SIGKILL, SIGSEGV or SIGABRT to a program under a :class:`cms.fleet.Supervisor`, every
  fifth exits with an error of its own: each end is followed by one reset and one restart;
- *without*: SIGTERM or SIGINT to a program without the handler: faults, so that the first
  experiment says something.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from rich.console import Console

from bench.expected import Line
from cms.fleet.published.muxflow_errors import GRACEFUL, GracefulExit, RestartTimes, Supervisor

from .device_stand_in import Client, Device

#: So long a program may take to leave, in seconds: far more than it needs, on a busy machine, too.
GRACE = 30
#: Kernels of offline and online programs, and programs' lives until they are hit: microseconds.
_KERNEL, _ONLINE_KERNEL, _LIFE = (100, 2000), 100, 8000
_WHAT = "Signals and kills of offline work beside an online service, with real processes."
#: No process outlives this, in seconds, whatever becomes of the others.
_LAST = 900
#: What keeps numpy from starting threads, for this process forks.
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL")}
_KILLS = ("SIGKILL", "SIGSEGV", "SIGABRT")


class Forked:
    """A forked process that runs a function and exits with what it returns.

    Forked with the signals of a graceful exit blocked: none is lost before there is a handler.
    """

    def __init__(self, run: Callable[[], int]) -> None:
        def limited() -> None:
            import resource  # not on every system

            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            signal.alarm(_LAST)
            sys.exit(run())

        self._process = get_context("fork").Process(target=limited)
        signal.pthread_sigmask(signal.SIG_BLOCK, GRACEFUL)
        self._process.start()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, GRACEFUL)

    def poll(self) -> int | None:
        """Return the exit code, minus the signal that ended it, or None while it runs."""
        return self._process.exitcode

    def send_signal(self, sig: int, /) -> None:
        """Send it a signal, unless it has gone."""
        if self._process.pid is not None and self.poll() is None:
            os.kill(self._process.pid, sig)

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()

    def wait(self, seconds: float) -> int | None:
        """Return the exit code, or None if it has not gone after so many seconds."""
        self._process.join(seconds)
        return self.poll()


def serve(listening: socket.socket) -> int:
    """Be the device."""
    Device(listening).serve()
    return 0


def online(path: str, report: int) -> int:
    """Be the online service: launch kernels until asked to leave; report how it went.

    After the first kernel it says that it serves.
    """
    with GracefulExit() as leave:
        device = Client(path)
        served, faults = int(device.launch(_ONLINE_KERNEL)), 0
        os.write(report, b" ")
        while not leave.asked:
            if device.launch(_ONLINE_KERNEL):
                served += 1
            else:
                faults += 1
                time.sleep(0.0005)  # do not keep the device from being reset
        device.release()
    os.write(report, json.dumps([served, faults]).encode())
    return 0


def unprotected(path: str, seed: str, ready: int) -> int:
    """Be an offline program that knows nothing of signals; say when it has a context."""
    rng = random.Random(seed)
    for each in GRACEFUL:
        signal.signal(each, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, GRACEFUL)
    device = Client(path)
    os.write(ready, b"1")
    while device.launch(rng.randint(*_KERNEL)):
        pass
    return 1


def offline(path: str, seed: str, error_after: int | None = None) -> int:
    """Be an offline program: launch kernels until asked to leave, or until an error."""
    rng = random.Random(seed)
    with GracefulExit() as leave:
        device = Client(path)
        while not leave.asked:
            if error_after == 0 or not device.launch(rng.randint(*_KERNEL)):
                return 1  # as after a CUDA error: without a release
            error_after = None if error_after is None else error_after - 1
        device.release()
    return 0


class Experiments:
    """A device, an online service, and what is done to offline programs beside it."""

    def __init__(self, folder: str, seed: int) -> None:
        self._path, self._rng = str(Path(folder) / "device"), random.Random(f"errors {seed}")
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(self._path)
            listening.listen()
            self._device = Forked(lambda: serve(listening))
        self.control = Client(self._path)  # also the probe of the online side's health

    def close(self) -> None:
        """Let the device go."""
        self.control.release()
        self._device.wait(GRACE)
        self._device.kill()

    def healthy(self) -> bool:
        """Whether a kernel of the online side runs."""
        return self.control.launch(_ONLINE_KERNEL)

    def watched(self, experiment: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Run an experiment beside an online service, and add what that saw."""
        self.control.reset()
        faults = self.control.faults()
        reading, report = os.pipe()
        service = Forked(lambda: online(self._path, report))
        os.close(report)
        os.read(reading, 1)
        try:
            found = experiment()
        finally:
            service.send_signal(signal.SIGTERM)
            service.wait(GRACE)
            service.kill()
        served, failed = json.loads(os.read(reading, 100))
        os.close(reading)
        faults = self.control.faults() - faults
        return {**found, "faults": faults, "online_kernels": served, "online_failed": failed}

    def signalled(self, children: int, *, handled: bool) -> dict[str, Any]:
        """Hit programs by SIGTERM or SIGINT, one after another."""
        ends: Counter[str] = Counter()
        slowest = 0.0
        for number in range(children):
            child = self._offline(f"{number}") if handled else self._unprotected(f"{number}")
            self._live()
            child.send_signal(self._rng.choice(GRACEFUL))
            began = time.monotonic()
            code = child.wait(GRACE)
            slowest = max(slowest, time.monotonic() - began)
            child.kill()
            ends["still there" if code is None else str(code)] += 1
            if not self.healthy():
                self.control.reset()
        return {"children": children, "ends": dict(ends), "slowest_s": round(slowest, 4)}

    def killed(self, kills: int) -> dict[str, Any]:
        """Hit a supervised program hard, again and again."""
        number = 0

        def start() -> Forked:
            nonlocal number
            number += 1
            error_after = None if number % 5 else self._rng.randint(0, 5)
            return self._offline(f"killed {number}", error_after)

        times = RestartTimes(grace=GRACE * 1000, base=1, cap=4, calm=10**6)
        supervisor = Supervisor(start, self.control.reset, self.healthy, times=times)
        answers: Counter[str] = Counter()
        for _ in range(kills):
            seen, child = len(supervisor.events), supervisor.child
            self._live()
            if number % 5:
                child.send_signal(signal.Signals[self._rng.choice(_KILLS)])
            due = time.monotonic() + GRACE
            while time.monotonic() < due:
                supervisor.look()
                if supervisor.state == "running" and supervisor.child is not child:
                    break
                time.sleep(0.0005)
            answers[" ".join(event.what for event in supervisor.events[seen:])] += 1
        ended = supervisor.stop()
        causes = Counter(event.why for event in supervisor.events if event.what == "fault")
        return {"kills": kills, "answers": dict(answers), "causes": dict(causes), "stopped": ended}

    def _offline(self, seed: str, error_after: int | None = None) -> Forked:
        return Forked(lambda: offline(self._path, seed, error_after))

    def _unprotected(self, seed: str) -> Forked:
        """Start one and wait until it has a context: before, it would harm nobody."""
        reading, ready = os.pipe()
        child = Forked(lambda: unprotected(self._path, seed, ready))
        os.close(ready)
        os.read(reading, 1)
        os.close(reading)
        return child

    def _live(self) -> None:
        """Let a program live for a random while."""
        time.sleep(self._rng.randint(0, _LIFE) / 10**6)


def figures(children: int, kills: int, without: int, seed: int = 0) -> dict[str, Any]:
    """Run the three experiments, with so many programs hit in each."""
    with tempfile.TemporaryDirectory(prefix="cms-") as folder:
        run = Experiments(folder, seed)
        try:
            return {
                "graceful": run.watched(lambda: run.signalled(children, handled=True)),
                "killed": run.watched(lambda: run.killed(kills)),
                "without": run.watched(lambda: run.signalled(without, handled=False)),
            }
        finally:
            run.close()


def told(found: dict[str, Any]) -> list[Line]:
    """Hold what :func:`figures` returns against what it should be."""
    graceful, killed, without = (found[each] for each in ("graceful", "killed", "without"))
    children, kills = graceful["children"], killed["kills"]
    faults, failed = graceful["faults"], graceful["online_failed"]
    said = f"{faults}, {failed} of {graceful['online_kernels']:,} online kernels failed"
    left, slowest = graceful["ends"].get("0", 0), 1000 * graceful["slowest_s"]
    answered = killed["answers"].get("fault reset restart", 0)
    signals, harm = without["children"], without["faults"]
    of = f"{signals} signals without the handler: faults"
    return [
        Line("11", f"{children} SIGTERM and SIGINT: faults", "0", said, faults == failed == 0),
        Line(
            "11", f"{children} SIGTERM and SIGINT: exits with 0 within the grace", f"{children}",
            f"{left}, the slowest after {slowest:.0f} ms", graceful["ends"] == {"0": children},
        ),
        Line(
            "11", f"{kills} hard ends: each followed by one reset and one restart", f"{kills}",
            f"{answered}", killed["answers"] == {"fault reset restart": kills},
        ),
        Line("11", of, f">= {-(-signals // 5)}", f"{harm}", 5 * harm >= signals),
    ]  # fmt: skip


def error_figure(children: int, kills: int, without: int) -> Iterator[Line]:
    """Figure 11, made by a process of its own, which forks."""
    if os.name != "posix":
        yield Line("11", "signals and kills", "on POSIX systems", "this is none", True)
        return
    counts = {"--children": children, "--kills": kills, "--without": without}
    options = [word for name, count in counts.items() for word in (name, str(count))]
    command = [sys.executable, "-P", "-m", "bench.colocation_figures.errors", *options]
    done = subprocess.run(
        command, env=os.environ | ONE_THREAD, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.stdout:
        yield from told(json.loads(done.stdout))
    else:
        said = f"exit code {done.returncode}"
        yield Line("11", "signals and kills", "figures", said, False)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures as JSON; 0 if they are as they should be."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.colocation_figures.errors", description=_WHAT
    )
    parser.add_argument("--children", type=int, default=200, help="hit by signals (default 200)")
    parser.add_argument("--kills", type=int, default=50, help="hit hard (default 50)")
    parser.add_argument("--without", type=int, default=50, help="without handler (default 50)")
    parser.add_argument("--seed", type=int, default=0)
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = parser.parse_args(given)
    if os.name != "posix":
        parser.error("this system has no fork and no such signals; expected a POSIX system")
    if ONE_THREAD.items() - os.environ.items():  # numpy has started threads: begin without them
        command = [sys.executable, "-P", "-m", "bench.colocation_figures.errors", *given]
        os.execve(sys.executable, command, os.environ | ONE_THREAD)
    found = figures(options.children, options.kills, options.without, options.seed)
    Console(soft_wrap=True).out(json.dumps(found, indent=2), highlight=False)
    return 0 if all(line.holds for line in told(found)) else 1


if __name__ == "__main__":
    sys.exit(main())
