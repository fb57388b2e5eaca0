"""What either tree's interpreter runs: problems that old families lack, and programs beside tasks.

It is imported by itself, next to the tree's own packages; ``python -P in_tree.py NAME ...`` prints
what a program found. Where a public name differs between the trees, the adapter belongs here.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

A100 = "00001 00110 11010 30010 00200 02100 21100 40100 13000 32000 51000 70000"
#: How a GPU of a node is cut: slices of 1, 2, 3 and 4 sevenths.
LAYOUTS = np.array([[7, 0, 0, 0], [0, 0, 1, 1], [0, 2, 1, 0]])
#: Machine types: GPUs, speed, cost, jobs for each machine that there is, and groups of GPUs.
NODES = {"h100": (8, 1.0, 8, 0, (1, 2, 4, 8)), "h200": (8, 1.4, 11, 60, (1, 2, 4, 8)),
         "free": (4, 1.0, 1, 125, (1, 2, 4))}  # fmt: skip
RACK = {"rack": (72, 1.8, 150, 333, (1, 2, 4, 8, 12, 16, 32))}
CAPACITIES = (100_000, 2_500, 10_000, 20_000, 80_000)


def generate(name: str, *, n: int, seed: int) -> Any:
    """Draw one problem of a kind."""
    from cms import Problem

    rng = np.random.default_rng([seed, sum(name.encode())])
    demands: Any
    supply: Any
    if name == "raw-doubles":  # as numpy draws them, unrounded
        low, high = ((50, 300), (0.01, 1))[seed % 2]
        counts = [[int(digit) for digit in row] for row in A100.split()]
        demands, supply = rng.uniform(0, 5_000, n), rng.uniform(low, high, (n, 5))
    elif name == "exact-fits":  # of 61 to 63 bits; a demand is the sum of what three blocks give
        supply = rng.integers(2**60, 2**61, (n, 3))
        demands = (rng.multinomial(3, [1 / 3] * 3, n) * supply).sum(axis=1)
        counts = [[2, 1, 0], [1, 0, 2], [0, 3, 0], [4, 0, 0]]
    elif name == "s6-tera":
        return _s6_tera()
    elif name == "many-sizes":
        return _many_sizes(rng, n, CAPACITIES[seed % 5])
    else:
        mixed = name == "mixed-nodes"
        return _fleet(rng, n, NODES if mixed else {**NODES, **RACK}, mig=mixed)
    return Problem.from_arrays(demands=demands, supply=supply, configurations=counts)


def _s6_tera() -> Any:
    """The published scenario S6 with every number times 10^12."""
    from cms import Problem, load_instance

    s6: Any = load_instance("S6")
    old = getattr(s6, "build_problem", getattr(s6, "as_problem", None))().problem
    supply = [[10**12 * job.demand_function.get(b, 0) for b in old.blocks] for job in old.jobs]
    return Problem.from_arrays(
        demands=[10**12 * job.demand for job in old.jobs], supply=supply, blocks=old.blocks,
        configurations=old.configurations, machine_types=old.machine_types,
    )  # fmt: skip


def _many_sizes(rng: Any, n: int, capacity: int) -> Any:
    """Bin packing as in the public hard sets: large items, or whole bins cut into 3 to 6."""
    from cms import Problem, SizeBoundedConfigurations

    sizes = rng.integers(20_000, 35_000, n, endpoint=True).tolist()
    if capacity != CAPACITIES[0]:
        cuts = (np.sort(rng.choice(capacity - 1, rng.integers(2, 6), replace=False)) + 1
                for _ in range(n))  # fmt: skip
        sizes = [size for cut in cuts for size in np.diff([0, *cut, capacity]).tolist()][:n]
    different, kind = np.unique(sizes, return_inverse=True)
    blocks = {f"size-{size}": size for size in different.tolist()}
    return Problem.from_arrays(
        demands=np.ones(n, dtype=int), supply=np.eye(len(blocks), dtype=int)[kind],
        configurations=SizeBoundedConfigurations(blocks, capacity), blocks=[*blocks],
    )  # fmt: skip


def _fleet(rng: Any, n: int, types: dict[str, Any], *, mig: bool) -> Any:
    """Models on groups of GPUs; under MIG on slices of one as well, all contents being listed."""
    from cms import Configuration, MachineType, Problem, SizeBoundedConfigurations

    least = rng.choice([0, 1, 2, 4, 8], n, p=[0.5, 0.3, 0.12, 0.05, 0.03])
    rate = rng.lognormal(5, 0.7, n)
    machines, supply, blocks = [], [], []
    shapes: list[Any] = []
    for name, (gpus, speed, cost, jobs, groups) in types.items():
        mine = {f"{name}:{part}": part for part in groups}
        slices = {f"{name}:{part}/7": part / 7 for part in (1, 2, 3, 4)} if mig else {}
        own = rate * speed * rng.lognormal(0, 0.2, n)
        supply += [
            np.where(p >= least, own * p**0.9, 0) for p in [*mine.values(), *slices.values()]
        ]
        blocks += [*mine, *slices]
        machines.append(MachineType(name, cost, -(-n // jobs) if jobs else None))
        if not mig:
            shapes.append(SizeBoundedConfigurations(mine, gpus, name))
            continue
        for *many, a, b, c in product(*(range(gpus // g + 1) for g in (*groups[1:], 1, 1, 1))):
            if (whole := gpus - a - b - c - int(np.dot(many, groups[1:]))) >= 0:
                counts = [whole, *many, *(np.array([a, b, c]) @ LAYOUTS).tolist()]
                content = {b: x for b, x in zip([*mine, *slices], counts, strict=True) if x}
                shapes.append(Configuration(content, machine=name))
    demands = np.maximum(rate * np.maximum(least, 0.4) * rng.uniform(0.3, 1.5, n), 1)
    return Problem.from_arrays(
        demands=np.rint(demands).astype(int), supply=np.rint(np.column_stack(supply)).astype(int),
        configurations=shapes, blocks=blocks, machine_types=machines,
    )  # fmt: skip


def reader(what: str) -> dict[str, float]:
    """Count the modules, and their lines, that a two-job solve or a plan of two tables loads."""
    if what == "solve":
        from cms import Configuration, Job, Problem, solve

        jobs = [Job("x", 3, {"b": 1}), Job("y", 2, {"b": 2})]
        solve(Problem(configurations=[Configuration({"b": 1})], jobs=jobs))
    else:
        import cms.cli

        tables = "-s examples/services_s5.csv -p instances/data/a100_operating_points.csv"
        sys.argv = ["cms", "plan", "-q", *tables.split()]
        with suppress(SystemExit):
            assert cms.cli.main() == 0
    files = [
        Path(str(module.__file__))
        for name, module in list(sys.modules.items())
        if name.split(".")[0] in ("cms", "algorithms", "instances") and module.__file__
    ]
    lines = sum(len(path.read_text("utf-8").splitlines()) for path in files)
    return {f"modules, {what}": len(files), f"lines, {what}": lines}


def imports(repetitions: str) -> dict[str, float]:
    """Compare the least processor time of imports and of a cold plan, in fresh processes."""
    codes = {name: ["-c", f"import {name}"] for name in ("cms", "numpy", "scipy.optimize")}
    codes["plan"] = [__file__, "reader", "plan"]
    took: dict[str, float] = {}
    for name, code in int(repetitions) * list(codes.items()):
        before = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
        subprocess.run([sys.executable, "-P", *code], check=True, capture_output=True)
        spent = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) - before
        took[name] = min(spent, took.get(name, spent))
    return {
        "CPU, import cms / numpy": took["cms"] / took["numpy"],
        "CPU, plan / scipy.optimize": took["plan"] / took["scipy.optimize"],
    }


def interrupt(delay: str, way: str, loops: str) -> dict[str, float]:
    """Say how long a solve takes to answer Ctrl-C, or ``cancel``, beside so many busy loops.

    ``main``: it runs in the main thread; ``cancel``: in another one; ``other``: in another one, and
    Ctrl-C reaches the main thread, which cancels it.
    """
    from cms import solve

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it
    problem = generate("many-sizes", n=1_000, seed=4)  # not proved in a minute
    solve(problem, time_limit=2)  # all is loaded
    cancel, done = threading.Event(), threading.Event()
    seen: dict[str, float] = {}

    def tell() -> None:
        time.sleep(float(delay))
        seen["told"] = time.monotonic()
        if way == "cancel":
            cancel.set()
        else:
            os.kill(os.getpid(), signal.SIGINT)

    def work() -> None:
        solve(problem, time_limit=60, threads=1, cancel=cancel)
        seen["ended"] = time.monotonic()
        done.set()

    busy = [subprocess.Popen([sys.executable, "-c", "while 1: pass"]) for _ in range(int(loops))]
    try:
        threading.Thread(target=tell, daemon=True).start()
        if way == "main":
            work()
        else:
            threading.Thread(target=work, daemon=True).start()
            done.wait()
    except KeyboardInterrupt:
        cancel.set()
        assert done.wait(60)
    finally:
        for loop in busy:
            loop.kill()
    return {f"s to the answer, {way}, {loops} loops": seen["ended"] - seen["told"]}


def write(step: str) -> dict[str, float]:
    """Solve a problem of some families, and write it and its answer."""
    from cms import solve, write_problem, write_solution
    from instances.families import families, generate

    folder = Path(os.environ["GATES_WRITE"])
    folder.mkdir(exist_ok=True)
    for family in families()[:: int(step)]:
        problem = generate(family, n=20, seed=7)
        write_problem(problem, folder / f"{family}.problem.json")
        answer = solve(problem, time_limit=2, threads=1)
        write_solution(answer, folder / f"{family}.solution.json")
    return {}


def judge() -> dict[str, float]:
    """Let this tree's checkers judge the other's answers: the second, and the proved if built."""
    kinds = ("checker", "formal") if Path("out/formal/zarith/recheck").exists() else ("checker",)
    written = sorted(Path(os.environ["GATES_JUDGE"]).glob("*.problem.json"))
    assert written
    found = {f"refused by proofs_checks.{kind}": 0 for kind in kinds}
    schemas = (
        ("2", "1")
        if "price_and_branch" in Path("pyproject.toml").read_text("utf-8")
        else ("1", "2")
    )
    for path in Path(os.environ["GATES_JUDGE"]).glob("*.json"):  # they differ in no more
        head = '"schema": {}'.format
        path.write_text(path.read_text("utf-8").replace(*map(head, schemas), 1), "utf-8")
    for name, path in product(found, map(str, written)):
        files = path, path.replace(".problem.", ".solution.")
        found[name] += int(any(passes("-m", name.split()[-1], *files).values()))
    # As many of this tree's as of the other's: a new tree that wrote fewer lets the figure grow.
    return {**found, "judged": len(written)}


def passes(*command: str) -> dict[str, float]:
    """Run something by this interpreter that ends with 0 if all is well."""
    done = subprocess.run([sys.executable, "-P", *command], capture_output=True, check=False)
    return {f"fails: {' '.join(command)}": int(done.returncode != 0)}  # a signal's is negative


if __name__ == "__main__":
    print("\n" + json.dumps(globals()[sys.argv[1]](*sys.argv[2:])))
