"""Transitions: what stays, how many GPUs are borrowed, and how long it takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from bench.changes import CHAIN, DRAWN, NEAREST_CHAIN, SCENARIOS
from bench.figures import median
from bench.row import Outcome, RunRow
from bench.runs.changing import METHODS
from bench.tables import Column, Table, grouped, percent, seconds, times
from bench.task import Kind, Source, Task
from cms.solving.solution import Proof

from .suite import Settings, Suite

#: About so many GPUs, and how much rates change: the deviation of the logarithm.
_SIZES = (20, 25, 50, 100, 200)
_SIGMAS = ("0.1", "0.3", "1.0")
#: Fleets of few services, of so many GPUs.
_FEW_SERVICES, _FEW_GPUS = (12, 16, 20), 48
#: What the others are compared with.
_OTHER = "exchange_and_compact"


def tasks(settings: Settings) -> Iterator[Task]:
    """Yield the published chains and drawn changes, each by every method."""
    steps = range(len(SCENARIOS) - 1)
    sources = [_source(family, step=step) for family in (CHAIN, NEAREST_CHAIN) for step in steps]
    fleets: list[dict[str, Any]] = [{"gpus": gpus} for gpus in settings.sizes(_SIZES)]
    few = settings.sizes([_FEW_GPUS])
    fleets += [{"gpus": gpus, "n": n} for gpus in few for n in _FEW_SERVICES]
    for fleet in fleets:
        for sigma in _SIGMAS:
            for seed in range(settings.seeds):
                sources.append(_source(DRAWN, **fleet, sigma=sigma, seed=seed))
    for source in sources:
        for method in settings.methods:
            yield Task(
                suite="transitions",
                kind=Kind.CHANGE,
                source=source,
                method=method,
                time_limit=settings.time_limit,
                warm_up=False,
            )


def _source(family: str, **arguments: Any) -> Source:
    return Source(family=family, arguments=arguments, module="bench.changes")


def tables(rows: Sequence[RunRow], settings: Settings) -> list[Table]:
    """Show the chains step by step, drawn changes by size and deviation, and the ratios."""
    found = []
    drawn = [row for row in rows if row.family == DRAWN]
    for title, family, label in (
        ("transitions, published chain", CHAIN, _step),
        (
            "transitions, published chain, each from the nearest plan of the last",
            NEAREST_CHAIN,
            _step,
        ),
        ("transitions, drawn changes", DRAWN, _group),
    ):
        part = [row for row in rows if row.family == family]
        if part:
            found.append(_table(title, part, label))
    both = _compared(drawn)
    if both is not None:
        found.append(both)
    return found


def _step(row: RunRow) -> str:
    step = row.arguments["step"]
    return f"{SCENARIOS[step]} to {SCENARIOS[step + 1]}"


def _group(row: RunRow) -> str:
    n = row.arguments.get("n")
    few = "" if n is None else f", n {n}"
    return f"{row.arguments['gpus']} GPUs, σ {row.arguments['sigma']}{few}"


def _table(title: str, rows: Sequence[RunRow], label: Any) -> Table:
    lines: list[tuple[Any, ...]] = []
    red = set()
    for (name, method), part in grouped(rows, lambda row: (label(row), row.algorithm)).items():
        if any(row.outcome is Outcome.FAILED for row in part):
            red.add(len(lines))
        lines.append(_line(name, method, part))
    return Table(title, _CAPTION, _COLUMNS, tuple(lines), frozenset(red))


def _line(name: str, method: str, rows: Sequence[RunRow]) -> tuple[Any, ...]:
    done = [row for row in rows if row.outcome is Outcome.ANSWERED]
    if not done:
        return (name, method, len(rows), *[None] * (len(_COLUMNS) - 3))
    words = [row.proof for row in done]
    spare = _all("spare", done)
    return (
        name,
        method,
        len(rows) - len(done) or None,
        " to ".join(f"{_mean(side):.3g}" for side in zip(*_all("gpus", done), strict=True)),
        _mean(_all("instances", done)),
        f"{_mean(spare):.2g} ({max(spare)})" if max(spare) else "0",
        sum(row.measurements["spare"] == row.measurements["least_spare"] for row in done)
        / len(done),
        _mean(_all("kept", done)),
        None if method == "nearest" else _share(_all("kept", done), _all("running", done)),
        " ".join(f"{words.count(word)} {word}" for word in ("checked", "solver") if word in words)
        or "none",
        _mean(_all("actions", done)),
        _mean(_all("temporaries", done)),
        _mean(_all("makespan_s", done)) / 60,
        _to_least(done),
        median(_all("cpu_seconds", done)),
        max(_all("cpu_seconds", done)),
    )  # fmt: skip


def _all(name: str, rows: Sequence[RunRow]) -> list[Any]:
    return [row.measurements[name] for row in rows]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _to_least(rows: Sequence[RunRow]) -> float:
    return median([
        m["makespan_s"] / m["least_makespan_s"] if m["least_makespan_s"] else 1.0
        for m in (row.measurements for row in rows)
    ])  # fmt: skip


def _share(part: Sequence[float], whole: Sequence[float]) -> float | None:
    return sum(part) / sum(whole) if sum(whole) else None


def _compared(rows: Sequence[RunRow]) -> Table | None:
    """Hold every method's sums against those of exchange and compact, on what both have done."""
    done = [row for row in rows if row.outcome is Outcome.ANSWERED]
    other = {row.instance: row for row in done if row.algorithm == _OTHER}
    lines = []
    for method, part in grouped(done, lambda row: row.algorithm).items():
        pairs = [(row, other[row.instance]) for row in part if row.instance in other]
        if method == _OTHER or not pairs:
            continue
        mine, theirs = ([pair[at] for pair in pairs] for at in (0, 1))
        spare = _all("spare", mine)
        lines.append((
            method,
            len(pairs),
            sum(each == 0 for each in spare) / len(pairs),
            sum(each <= 1 for each in spare) / len(pairs),
            max(spare),
            sum(a > b for a, b in zip(spare, _all("spare", theirs), strict=True)),
            *(
                _share(_all(name, mine), _all(name, theirs))
                for name in ("kept", "actions", "makespan_s", "cpu_seconds")
            ),
            None if method == "nearest" else _share(_all("kept", mine), _all("running", mine)),
            sum(row.proof != Proof.NONE for row in mine) / len(pairs),
            _to_least(mine),
        ))  # fmt: skip
    if not lines:
        return None
    caption = (
        f"Drawn changes that the method and {_OTHER} both have a transition for: the share without "
        "a spare GPU and with at most one, the most, and how often the other borrows fewer; "
        "sums over the other's sums; then the share kept of what both plans have, how often none "
        "keeps more, by prices that are checked or a solver's word, and the median time to the "
        "least."
    )
    columns = (
        Column("method", left=True),
        Column("changes"),
        Column("spare 0", percent),
        Column("at most 1", percent),
        Column("most"),
        Column("worse"),
        Column("kept", times),
        Column("actions", times),
        Column("makespan", times),
        Column("seconds", times),
        Column("of both", percent),
        Column("most proved", percent),
        Column("to least", times),
    )
    return Table(f"transitions, beside {_OTHER}", caption, columns, tuple(lines))


def _tenths(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


_CAPTION = (
    "At the full floor: every service keeps the smaller of its two rates at every moment. Means of "
    "the changes on a line; σ is the deviation by which rates change, n a number of services other "
    "than 61. spare: GPUs borrowed beyond the larger plan (the most), and how often "
    "fewer are proved not to do; kept: instances that are never interrupted, and their share of "
    "those that both plans have (the nearest plan is another, which goes on with today's points); "
    "how often a proof says that none keeps more: by prices that are checked, or a solver's word. "
    "temporary: instances that come and go on the way. minutes: of the schedule with assumed "
    "durations, and the median ratio to what the same actions take at least in any order. seconds: "
    "of processor time, median and most, in one thread. Every transition is checked in the package "
    "and replayed from its file by the independent checker; red: a fault."
)
_COLUMNS = (
    Column("change", left=True),
    Column("method", left=True),
    Column("none found"),
    Column("GPUs"),
    Column("instances", _tenths),
    Column("spare"),
    Column("least proved", percent),
    Column("kept", _tenths),
    Column("of both", percent),
    Column("most proved", left=True),
    Column("actions", _tenths),
    Column("temporary", _tenths),
    Column("minutes", _tenths),
    Column("to least", times),
    Column("seconds", seconds),
    Column("most s", seconds),
)

SUITE = Suite(
    "transitions",
    "from one plan to the next: spare GPUs, what stays, actions, time, beside exchange-and-compact",
    Settings(methods=tuple(METHODS), seeds=3, largest=100, time_limit=60.0),
    tasks,
    tables,
    contestants=tuple(METHODS),
)
