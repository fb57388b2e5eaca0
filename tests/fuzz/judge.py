"""What the commands and the second checker do with files, and whether they may do that."""

from __future__ import annotations

import contextlib
import io
import json
import resource
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from cms import CmsError, read_problem
from cms.cli.app import run
from cms.files import certificate_from_json
from cms.files.documents import parse_document
from cms.fleet import get_gpu
from cms.fleet.hardware.catalogue import DevicePart
from proofs_checks import checker
from proofs_checks.checker.__main__ import main as second_checker
from proofs_checks.streaming.__main__ import main as folders
from tests.fuzz.mutations import UNJUDGED, case
from tests.fuzz.seeds import Seed

T = TypeVar("T")

SECONDS = 2.0
"""Of processor time, all threads together; the files have a few kilobytes."""
BYTES = 2**30
"""Of address space, beyond what the process has when it begins."""
READABLE = 6_000
"""Characters of what a command says on stderr."""


class TooSlow(BaseException):
    """The time is over; no Exception, so that nothing hides it."""


def judge(number: int, folder: Path) -> list[str]:
    """Make the number-th mutant, run everything on it; return what must not be."""
    seed = case(number)
    for name in ("fleet", "plan"):  # nothing of another folder
        shutil.rmtree(folder / name, ignore_errors=True)
    for name, text in seed.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode("utf-8", "surrogateescape"))
    trial = _Trial(with_report=number % 4 == 1)
    {
        "problem": _problem, "solution": _solution, "plan": _plan, "device": _device,
        "tables": _tables, "replay": _replay, "sharing": _sharing,
        "colocation_tables": _colocation_tables, "predictor": _predictor,
        "deployment": _whole, "transition": _whole, "folder": _folder,
    }[seed.kind](trial, folder, seed)  # fmt: skip
    return [f"case {number} ({seed.kind}): {fault}" for fault in trial.faults]


class _Trial:
    """Runs things under the limits, and collects what must not be."""

    def __init__(self, *, with_report: bool) -> None:
        self.faults: list[str] = []
        self.with_report = with_report

    def search(self, folder: Path, *arguments: object) -> int:
        """Run a command that searches for an answer; of some, make its report and picture too."""
        report = ("--picture", folder / "picture.svg") if self.with_report else ("--quiet",)
        return self.command(*arguments, *_SEARCH, *report)

    def command(self, *arguments: object) -> int:
        """Run a command; it must end with an exit code, and if with an error, with one line."""
        out, err = io.StringIO(), io.StringIO()
        words = [str(argument) for argument in arguments]
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = self.limited(f"cms {words[0]}", lambda: run(words))
        said = err.getvalue()
        if code is None:
            return 1
        lines = [line for line in said.split("\n") if not line.startswith("warning: ")]
        fine = code in range(5)
        plain = said.replace("\n", "").isprintable() and len(lines) <= 2 and not lines[-1]
        plain = plain and (len(lines) == 1 or lines[0].startswith("error: "))
        mad = any(word in said for word in ("bug", "Traceback", "out of memory"))
        if mad or not (fine and plain) or max(map(len, lines)) > READABLE:
            self.faults.append(f"cms {words[0]} ends with {code} and {said[:300]!r}")
        return int(code)

    def checker(self, *paths: Path, main: Callable[[list[str]], int] | None = None) -> int | None:
        """Run the second checker's command, or that of folders; 0, 1 or 2."""
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            return self.limited(
                "the second checker",
                lambda: (main or second_checker)([str(path) for path in paths]),
            )

    def limited(self, what: str, call: Callable[[], T]) -> T | None:
        """Call something within the limits; None if it broke them, or raised what is no answer."""
        before = time.process_time()
        try:
            with _limits():
                result = call()
        except TooSlow:
            self.faults.append(f"{what} takes more than {SECONDS} s")
            return None
        except Exception as fault:  # noqa: BLE001 - which one it is, is the finding
            self.faults.append(f"{what} raises {type(fault).__name__}: {str(fault)[:200]}")
            return None
        if time.process_time() - before > SECONDS:  # in native code, which no signal stops
            self.faults.append(f"{what} takes more than {SECONDS} s")
        return result

    def agree(self, what: str, ours: object, theirs: object) -> None:
        """Both must have come to the same answer, if to any."""
        if ours != theirs and not self.faults:
            self.faults.append(f"{what}: the package says {ours}, the second checker {theirs}")


@contextlib.contextmanager
def _limits() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TooSlow

    usual = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
    most = pages * resource.getpagesize() + BYTES
    handler = signal.signal(signal.SIGPROF, stop)
    resource.setrlimit(resource.RLIMIT_AS, (most, usual[1]))
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_AS, usual)
        signal.signal(signal.SIGPROF, handler)


_SEARCH = ("--method", "greedy", "--time-limit", "1", "--threads", "1")


def _problem(trial: _Trial, folder: Path, seed: Seed) -> None:
    path, solution = folder / "problem.json", folder / "solution.json"
    ours = trial.limited("reading", lambda: _or_none(lambda: read_problem(path).sha256))
    theirs = trial.limited("the second checker's reading", lambda: _sha256(path))
    trial.agree("the problem", ours, theirs)
    solution.unlink(missing_ok=True)
    trial.search(folder, "problem", "solve", path, "--output", solution)
    if solution.exists():
        code = trial.command("check", path, solution, "--quiet")
        trial.agree("what was solved", (0, code), (0, trial.checker(path, solution)))


def _sha256(path: Path) -> str | None:
    try:
        return checker.problem_sha256(checker.parse_document(path.read_text("utf-8-sig")))
    except ValueError:
        return None


def _or_none(read: Callable[[], T]) -> T | None:
    try:
        return read()
    except CmsError:
        return None


def _solution(trial: _Trial, folder: Path, seed: Seed) -> None:
    paths = folder / "problem.json", folder / "solution.json"
    code = trial.command("check", *paths, "--quiet")
    trial.agree("the verdict", code == 0, trial.checker(*paths) == 0)
    if bounds := trial.limited("the bounds", lambda: _or_none(lambda: [*_bounds(*paths)])):
        trial.agree("the bound", *bounds)


def _bounds(*paths: Path) -> Iterator[object]:
    """What the package and then the second checker say that a certificate proves."""
    problem, tree = read_problem(paths[0]), parse_document(paths[1]).at("certificate").at("tree")
    other, told = (checker.parse_document(path.read_text("utf-8-sig")) for path in paths)
    try:
        judged = certificate_from_json(tree).judged(problem)
        yield "no schedule" if judged is None or judged.infeasible else judged.value
    except CmsError:
        yield "no bound"
    try:
        bound = checker.certificate_bound(other, told["certificate"]["tree"])
        yield "no schedule" if bound is None else bound
    except (checker.Fault, LookupError, TypeError):  # or there is no tree
        yield "no bound"


def _plan(trial: _Trial, folder: Path, seed: Seed) -> None:
    path = folder / "plan.json"
    code = trial.command("check", path, "--quiet")
    # the second checker knows of GPUs only how they can be cut, and no services: it may pass more
    trial.agree("the plan", (code == 0) <= (trial.checker(path) == 0), True)
    try:
        plan = json.loads(path.read_text("utf-8-sig"))
        for part in ("problem", "solution"):
            (folder / f"{part}.json").write_text(json.dumps(plan[part]), "utf-8")
    except (ValueError, RecursionError, LookupError, TypeError):
        pass  # it has no such parts
    else:
        _solution(trial, folder, seed)
    trial.command("simulate", path, "--requests", 20, "--threads", 1, "--quiet")


def _whole(trial: _Trial, folder: Path, seed: Seed) -> None:
    """A document that says all by itself: both take it, or neither does."""
    path = folder / f"{seed.kind}.json"
    code, theirs = trial.command("check", path, "--quiet"), trial.checker(path)
    if code != 0 and theirs == 0:  # words about a card decide nothing, and may still be wrong
        path.write_text(_in_our_words(seed.files[path.name]), "utf-8")
        code = trial.command("check", path, "--quiet")
    if '"plan": {' in seed.files[path.name]:  # of which the second checker reads a part
        trial.agree("the deployment with its plan", (code == 0) <= (theirs == 0), True)
    else:
        trial.agree(f"the {seed.kind}", code == 0, theirs == 0)


def _in_our_words(text: str) -> str:
    """Describe known cards as the catalogue does, but for what decides what fits."""
    document = json.loads(text.removeprefix("\ufeff"))
    for device in document["devices"]:
        own = DevicePart.from_object(get_gpu(device["key"])).to_json()
        profiles = {each["name"]: each for each in own["profiles"]}
        pairs = [(each, profiles[each["name"]]) for each in device["profiles"]]
        for each, described in ((device, own), *pairs):
            each.update({key: described[key] for key in UNJUDGED if key in described})
    return json.dumps(document)


def _folder(trial: _Trial, folder: Path, seed: Seed) -> None:
    paths = folder / "fleet", folder / "plan"
    code = trial.command("check", *paths, "--quiet")
    trial.agree("the verdict on folders", code == 0, trial.checker(*paths, main=folders) == 0)


def _replay(trial: _Trial, folder: Path, seed: Seed) -> None:
    events = ("--events", folder / "events.csv", "--arrivals", folder / "trace.csv")
    report = ("--picture", folder / "picture.svg") if trial.with_report else ("--quiet",)
    few = ("--requests", 20, "--seconds", 9, "--threads", 1)
    trial.command("simulate", folder / "plan.json", *events, *few, *report)


def _device(trial: _Trial, folder: Path, seed: Seed) -> None:
    (name,) = [name for name in seed.files if name.startswith("device.")]
    trial.command("gpus", folder / name)
    _planned(trial, folder, folder / name)


def _tables(trial: _Trial, folder: Path, seed: Seed) -> None:
    _planned(trial, folder, "a30-24gb")


def _planned(trial: _Trial, folder: Path, gpu: object) -> None:
    plan, tables = folder / "made.json", (folder / "services.csv", folder / "points.csv")
    plan.unlink(missing_ok=True)
    trial.search(
        folder, "plan", "--services", tables[0], "--operating-points", tables[1], "--gpu", gpu,
        "--output", plan,
    )  # fmt: skip
    if plan.exists():
        code = trial.command("check", plan, "--quiet")
        trial.agree("what was planned", (0, code), (0, trial.checker(plan)))


def _sharing(trial: _Trial, folder: Path, seed: Seed) -> None:
    paths = folder / "problem.json", folder / "share.json"
    code = trial.command("check", *paths, "--quiet")
    trial.agree("the verdict on a co-location plan", code == 0, trial.checker(*paths) == 0)
    settings = folder / "settings.toml"
    settings.write_text("[colocation.day]\nhours = 1\nsample = 0\n", "utf-8")
    day = ("--truth", folder / "pairs.csv", "--fleet", settings)
    if trial.with_report:
        trial.command("simulate", paths[1], "--problem", paths[0], *day)
    else:
        trial.command("simulate", paths[0], *day, "--quiet")


def _colocation_tables(trial: _Trial, folder: Path, seed: Seed) -> None:
    _shared(trial, folder, "--pairs", folder / "pairs.csv")


def _predictor(trial: _Trial, folder: Path, seed: Seed) -> None:
    _shared(trial, folder, "--predictor", folder / "model.json")


def _shared(trial: _Trial, folder: Path, *weights: object) -> None:
    """Match by tables, and let both checkers judge what came of it."""
    made = folder / "made.json", folder / "made-share.json"
    for path in made:
        path.unlink(missing_ok=True)
    report = ("--picture", folder / "picture.svg") if trial.with_report else ("--quiet",)
    setting = "waiting_scale" if trial.with_report else "slowdown_limit"
    settings = folder / "settings.toml"
    settings.write_text(f"[colocation]\n{setting} = 2\n", "utf-8")
    trial.command(
        "colocate", "match", "--online", folder / "online.csv", "--offline", folder / "offline.csv",
        *weights, "--fleet", settings, "--problem", made[0], "--output", made[1],
        "--assign", folder / "gpus.csv", *report,
    )  # fmt: skip
    if made[0].exists():
        code = trial.command("check", *made, "--quiet")
        trial.agree("what was shared", (0, code), (0, trial.checker(*made)))
