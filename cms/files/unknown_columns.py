"""Columns that a reader does not know: notes are kept, what looks like an order is refused.

A limit under another name would otherwise be dropped in silence, and the plan would still say that
it keeps the limits.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from types import MappingProxyType

from ..errors import FileError
from ..values.names import nearest
from .tables import Table
from .wording import shortened

__all__ = ["refuse_unknown_columns"]

#: What a column of each kind says in its name, as a word of it; ``$``: as the last one.
_WORDS = {
    "limit": (
        "latency latencies limit limits slo sla slos deadline timeout ttft tpot itl tbt e2e e2el "
        "percentile quantile response$ turnaround qos delay$ target$ goal$ objective$ rt$ wait$ "
        "waiting$ "
        "ms msec msecs milliseconds millis us usec usecs microseconds micros µs μs ns nanoseconds "
        "sec secs seconds second$ s$ mins$ minute$ minutes$ h$ hour$ hours$"
    ),
    "rate": (
        "rate rates rps qps tps rpm qpm rph rpd ips throughput requests$ queries$ reqs$ req$ load$ "
        "traffic$ demand$ peak$ users$ arrivals calls$ hits$"
    ),
    # What else than a limit can have in a table of measurements, which are latencies and rates.
    "order": "limit limits slo sla slos deadline",
    "wish": ("replica replicas copies priority affinity weight$ weights$ instances spread"),
}
_SAID = {"order": "limit"}
#: The same within a word: ``MAXLATENCYMS``, ``p99ttft``.
_WITHIN = {
    "limit": re.compile(
        r"latenc|deadline|timeout|ttft|tpot|percentile|e2e|(^|\W|_)(p\d\d+|\d\dth)(_|\W|$)"
        r"|response[\W_]?time|time[\W_]?(to|per|between)"
    ),
    "rate": re.compile(
        r"throughput|concurren|qps|rps(_|\W|$)"
        r"|(/|(^|[\W_])per[\W_]?)(s|secs?|seconds?|m|mins?|minutes?|h|hours?|d|days?)$"
    ),
    "wish": re.compile(
        r"replica|priorit|affinit|(min|max)(imum)?[\W_]?(instance|gpu|per|copies|batch|process|cost)"
    ),
}
#: Names that are of no such kind: limits of devices, prices, shares of requests.
_EXCLUDED = {
    "limit": re.compile(r"power|memory|cpu|clock|temp|usd|eur|cost|price"),
    "order": re.compile(r"power|memory|cpu|clock|temp"),
    "rate": re.compile(r"usd|eur|cost|price|error|hit_?rate|sampl|discount"),
}
#: Last words that describe a known column and do not mean it: ``queue_name``.
_DESCRIPTIVE_WORDS = frozenset(("name", "id", "type", "depth", "length", "label", "note", "url"))
_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[^\W\d_A-Z]+\d*|[A-Z]+\d*")
_NONE: Mapping[str, str] = MappingProxyType({})


def refuse_unknown_columns(
    table: Table,
    known: Collection[str] = (),
    nearest_of: Mapping[str, str] = _NONE,
    kinds: Collection[str] = ("rate", "limit", "wish"),
) -> None:
    """Refuse columns nobody asked for whose names look as if they should count.

    Any other column is a note. Limits and rates are numbers: a column without one is a note too.

    A column nearly called as a `known` one that is absent is refused whatever it holds. By
    `nearest_of` an error says which known column has limits, rates or wishes. Of `kinds`, tables of
    measurements have more rates and latencies than anybody asks for: only an "order" is wrong.
    """
    absent = [name for name in known if name not in table.index]
    for name in (name for name in table.extra if name not in known):
        kind = next((kind for kind in kinds if _looks_like(name, kind)), "")
        if kind in ("limit", "rate") and not any(re.search(r"\d", row[name].text) for row in table):
            kind = ""
        meant = nearest_of.get(kind)
        hint = f"nearest: {meant!r}" if meant else _near(name, absent, bool(kind))
        if kind or hint:
            raise FileError(
                table.source.name,
                f"the column {shortened(repr(name))} is not known"
                + (f" and looks like a {_SAID.get(kind, kind)}" if kind else ""),
                line=table.line,
                expected="a known column, or a name that is unlike one",
                fix=hint or "rename or remove it",
            )


def _near(name: str, absent: Collection[str], is_asking: bool) -> str:
    """Word the known name that may have been meant; chance alone makes ``last_seen`` a share."""
    words = _stems(name)
    is_note = words and _words(name)[-1] in _DESCRIPTIVE_WORDS
    akin = [each for each in absent if is_asking or (words & _stems(each) and not is_note)]
    return nearest(name, akin, lead="") or nearest(name, absent, lead="", alike=0.75)


def _stems(name: str) -> set[str]:
    return {word.rstrip("s") for word in _words(name)}


def _words(name: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(name.replace("'", ""))]


def _looks_like(name: str, kind: str) -> bool:
    if kind in _EXCLUDED and _EXCLUDED[kind].search(name.casefold()):
        return False
    if kind in _WITHIN and _WITHIN[kind].search(name.casefold()):
        return True
    words, wanted = _words(name), _WORDS[kind].split()
    return any(word in wanted for word in words) or f"{words[-1] if words else ''}$" in wanted
