"""Changes to documents: to their bytes, and to what they say."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from typing import Any

from tests.fuzz.seeds import Seed, seeds
from tests.property.mutation import mutant

LONG = (19, 70, 400, 4299, 4300, 4301, 30_000)
TOKENS = [
    *("0", "-0", "-1", "8.0", "2e0", "1e400", "1e401", "1e-400", "1e999999999", "1e308", "5e-324"),
    *("NaN", "-Infinity", "true", "null", "0x10", "1_000", "\u0663", '"1/3"', '"1/0"', '"12,5"'),
    *('"inf"', '"-1/3"', '" 7 "', '"0.1e1"', '"+5"', '".5"', '"5."', '"1/1/1"', '""', "[]", "{}"),
    *('"\\ud800"', '"\\u0000"', "\u2028", "\x00", "\ufeff", "\r", "#", ",", ":", "*a", "&a ", "<<"),
]  # fmt: skip
VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2, 7, 0.5, 8.0, -0.0, 1e300, 10**18, 2**63, 10**30, 10**4299,
    "", "x", "x-", "1/3", "-1/3", "1/0", "0.1", "1e9", "1e400", "N/A", "12,5", "12 ms", "b", "1g",
    "\ud800", "\u2028", "é" * 9, [], [[]], [1], ["a", "a"], {}, {"": 1}, {"a": 1}, {"x-a": 0.5},
    {"prices": {}}, {"groups": []}, {"blocks": {"1g": 1}}, {"blocks_of": "1g"}, "mig", "mps",
    "whole", "fixed", "split", "mps:40",
    "starting", "draining", "no_compute_instance", "unknown", "inferred", "550.54", "pod a/b",
]  # fmt: skip
KINDS = {
    "problem": 5, "solution": 8, "plan": 3, "device": 2, "tables": 2, "replay": 2, "sharing": 3,
    "colocation_tables": 2, "predictor": 1, "deployment": 4,
    "transition": 6, "folder": 3,
}  # fmt: skip
# What only stands beside the documents of a kind.
BESIDE = {"device": "csv", "replay": "json", "sharing": "csv", "predictor": "csv"}
# What describes a device, and decides nothing: of that the second checker says nothing.
UNJUDGED = (
    "schema", "version", "pci_device_ids", "architecture", "mode_change_needs_reset", "geometry",
    "sources", "id", "family", "sms", "memory_mib", "other_names", "aliases",
    "named_since",
)  # fmt: skip
NUMBER = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?")
WORD = re.compile(rb'"[^"]*"|[A-Za-z0-9_.-]+')
Bytes = Callable[[random.Random, bytes], bytes]


def case(number: int) -> Seed:
    """The number-th mutant; of every tenth, the document itself is left as it is."""
    rng = random.Random(f"fuzz {number}")
    (kind,) = rng.choices(list(KINDS), list(KINDS.values()))
    seed = rng.choice([each for each in seeds() if each.kind == kind])
    names = [name for name in seed.files if not name.endswith(BESIDE.get(seed.kind, "-"))]
    files = dict(seed.files)
    for _ in range(rng.choice((1, 1, 1, 2, 3)) if number % 10 else 0):
        name = rng.choice(names)
        text = files[name]
        if name.endswith("json") and rng.random() < 0.6:
            text = _changed_tree(rng, text)
        else:
            data = text.encode("utf-8", "surrogatepass")
            text = rng.choice(TEXTUAL)(rng, data).decode("utf-8", "surrogateescape")
        files[name] = text
    return Seed(seed.kind, files)


def _cut(rng: random.Random, data: bytes) -> tuple[bytes, bytes, bytes]:
    start = rng.randint(0, len(data))
    stop = min(len(data), start + rng.choice((1, 1, 2, 5, 20, 100)))
    return data[:start], data[start:stop], data[stop:]


def _flip(rng: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        if changed:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _splice(rng: random.Random, data: bytes) -> bytes:
    before, _, after = _cut(rng, data)
    _, other = rng.choice(list(rng.choice(seeds()).files.items()))
    piece = other.encode("utf-8", "surrogatepass")
    start = rng.randint(0, len(piece))
    return before + piece[start : start + rng.choice((5, 50, 500, 10**6))] + after


def _edit(rng: random.Random, data: bytes) -> bytes:
    """A piece removed, repeated, moved, replaced or nested; or nothing behind it."""
    before, piece, after = _cut(rng, data)
    at = rng.randint(0, len(before))
    deep = rng.choice((3, 150, 250, 990, 30_000))
    opening, closing = rng.choice(((b"[", b"]"), (b'{"x-a":', b"}"), (b"- ", b""), (b"(", b")")))
    middle = rng.choice(
        (
            b"",
            piece * rng.choice((2, 3, 50, 3000)),
            rng.choice(TOKENS).encode(),
            opening * deep + piece + closing * deep,
        )
    )
    moved = before[:at] + piece + before[at:] + after
    return rng.choice((before + middle + after, before + middle + after, moved, before))


def _exchange(pattern: re.Pattern[bytes]) -> Bytes:
    def exchange(rng: random.Random, data: bytes) -> bytes:
        found = list(pattern.finditer(data))
        if not found:
            return data
        match = rng.choice(found)
        piece = rng.choice((rng.choice(TOKENS).encode(), _long(rng, match[0])))
        return data[: match.start()] + piece + data[match.end() :]

    return exchange


def _long(rng: random.Random, token: bytes) -> bytes:
    """A number or name of many characters of the kind that is there."""
    length = rng.choice(LONG)
    inner = token.strip(b'"')[:1] or b"x"
    body = (inner if inner.isalnum() else b"7") * length
    body = rng.choice((body, body + b".5", b"1." + body, b"1/" + body, body + b",5", body + b" ms"))
    return b'"' + body + b'"' if token.startswith(b'"') else body


def _key_twice(rng: random.Random, data: bytes) -> bytes:
    found = list(re.finditer(rb'"[^"]*": ?[^,{}\[\]]*[,}]', data))
    if not found:
        return data
    match = rng.choice(found)
    return data[: match.start()] + match[0][:-1] + b"," + data[match.start() :]


def _encode(rng: random.Random, data: bytes) -> bytes:
    text = data.decode("utf-8", "replace")
    return rng.choice(
        (
            b"\xef\xbb\xbf" + data, text.encode("utf-16"), data.replace(b"\n", b"\r"),
            data.replace(b",", b";"), data.replace(b" ", b"\xa0"), data.replace(b'"', b"'"),
            text.encode("latin-1", "replace") + b"\xe9", b"\x1f\x8b" + data, b"", b" \n",
        )
    )  # fmt: skip


TEXTUAL: list[Bytes] = [
    *[_flip, _splice, _key_twice, _encode], *[_edit] * 6,
    *[_exchange(NUMBER)] * 3, *[_exchange(WORD)] * 2,
]  # fmt: skip


def _changed_tree(rng: random.Random, text: str) -> str:
    try:
        document = json.loads(text)
        actions = document.get("actions") if isinstance(document, dict) else None
        if isinstance(actions, list) and actions and rng.random() < 0.2:
            return json.dumps({**document, "actions": _other_waits(rng, actions)})
        if rng.random() < 0.1:
            return _renamed_everywhere(rng, document)
        return json.dumps(mutant(rng, document, {}, junk=VALUES, may_change=_is_judged))
    except (ValueError, RecursionError):  # of an earlier change
        return text


def _is_judged(path: tuple[Any, ...]) -> bool:
    """Whether it is no description of a device, of which the second checker knows nothing."""
    return "devices" not in path or not set(UNJUDGED) & set(path)


def _other_waits(rng: random.Random, actions: list[Any]) -> list[Any]:
    """Fewer waits, and the actions in another sequence that respects them."""
    kept, left, order = rng.choice((1, 1, 0.9, 0.5)), [*range(len(actions))], list[int]()
    try:
        after = [[b for b in each["after"] if rng.random() < kept] for each in actions]
        while left:
            order.append(rng.choice([a for a in left if {*after[a]} <= {*order}]))
            left.remove(order[-1])
    except (IndexError, KeyError, TypeError):  # of an earlier change
        return actions
    place = {old: new for new, old in enumerate(order)}
    return [{**actions[a], "after": sorted(place[b] for b in after[a])} for a in order]


def _renamed_everywhere(rng: random.Random, document: Any) -> str:
    """One name of the document's own, exchanged wherever it stands."""
    text = json.dumps(document)
    found = re.findall(r'"([^"\\]{1,12})"', text)
    devices = json.dumps(document.get("devices")) if isinstance(document, dict) else ""
    names = sorted(name for name in set(found) if f'"{name}"' not in devices)
    new = rng.choice(
        ("x" * rng.choice(LONG), "é \u6f22\u5b57", "a,b", "x-", "\\u2028", "mps:40", "0")
    )
    return text.replace(f'"{rng.choice(names)}"', f'"{new}"') if names else text
