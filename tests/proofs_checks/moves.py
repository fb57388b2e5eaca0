"""Small transitions for the tests of the independent checker, written by hand."""

from __future__ import annotations

import json
from typing import Any

from cms.fleet import get_gpu
from cms.fleet.hardware.catalogue import DevicePart
from tests.proofs_checks.documents import Document

DEVICE = DevicePart.from_object(get_gpu("a30-24gb")).to_json()
RULE = {"name": "half", "latency_share": "1/2", "strict": False, "source": ""}


def service(name: str, rate: Any) -> Document:
    return {
        "name": name, "model": name, "rate_rps": rate, "latency_limit_ms": 20, "late_share": None,
        "queue": None, "allowed_profiles": None, "extra": {},
    }  # fmt: skip


def point(service: str, profile: str, supply: Any) -> Document:
    return {
        "name": f"{service} {profile}", "service": service, "model": service, "device": "a30-24gb",
        "profile": profile, "processes": 1, "batch": 1, "throughput_rps": supply, "latency_ms": 10,
        "extra": {}, "evidence": None, "load_curve": None, "supply_rps": supply,
    }  # fmt: skip


POINTS = [
    *(point("chat", p, s) for p, s in (
      ("1g.6gb", 30), ("2g.12gb", 60), ("4g.24gb", 120), ("mps:40", 40), ("mps:60", 60),
      ("whole", 120))),
    *(point("code", p, s) for p, s in {"1g.6gb": "70/3", "2g.12gb": 50, "mps:40": 40}.items()),
]  # fmt: skip


def instance(
    profile: str, start: int | None = None, does: str | None = None, **more: Any
) -> Document:
    return {
        "profile": profile, "start": start, "point": f"{does} {profile}" if does else None,
        "owner": None, "state": "running", "gpu_instance": None, "uuid": None, "is_guessed": False,
        **more,
    }  # fmt: skip


def side(rates: dict[str, Any], *gpus: list[Document], modes: tuple[str, ...] = ()) -> Document:
    """One node; a GPU is what is on it."""
    cards = [
        {"index": at, "gpu": "a30-24gb", "uuid": f"GPU-{at}", "mode": mode, "instances": held,
         "start_source": "unknown" if None in [each["start"] for each in held] else "observed"}
        for at, (held, mode) in enumerate(zip(gpus, modes or ["mig"] * len(gpus), strict=True))
    ]  # fmt: skip
    node: Document = {
        "name": "n",
        "driver": "550.54",
        "labels": {},
        "observed": None,
        "gpus": cards,
    }
    return {"services": [service(*each) for each in rates.items()], "nodes": [node]}


def action(
    what: str, index: int, removes: list[Document], adds: list[Document], *after: int,
    mode: str | None = None, temporary: bool = False,
) -> Document:  # fmt: skip
    return {
        "what": what, "node": "n", "index": index, "removes": removes, "adds": adds,
        "after": list(after), "mode": mode, "is_temporary": temporary,
    }  # fmt: skip


def transition(
    start: Document, target: Document, floors: dict[str, Any], actions: list[Document],
    kept: int = 0, spare: int = 0, borrowed: tuple[str, ...] = (),
) -> Document:  # fmt: skip
    services = {each["name"]: each for each in (*start["services"], *target["services"])}
    document = {
        "format": "cms-transition", "schema": 2, "rule": RULE, "services": [*services.values()],
        "points": [each for each in POINTS if each["service"] in services], "devices": [DEVICE],
        "start": start, "target": target,
        "floors": {name: {"rps": rps, "reason": "asked for"} for name, rps in floors.items()},
        "actions": actions,
        "kept": {"count": kept, "most": kept, "proof": "checked", "of": "counts", "prices": None},
        "spare": {"count": spare, "least": 0, "reason": "", "borrowed": list(borrowed),
                  "proof": None},
    }  # fmt: skip
    copied: Document = json.loads(json.dumps(document))  # so that no two parts are one object
    return copied


def deployment(of: Document) -> Document:
    """The start of a transition as a document of its own."""
    return {
        "format": "cms-deployment", "schema": 2, "plan": None,
        **{key: of[key] for key in ("rule", "points", "devices")}, **of["start"],
    }  # fmt: skip


FULL, LEFT, RIGHT = (
    instance("4g.24gb", 0, "chat"), instance("2g.12gb", 0, "chat"), instance("2g.12gb", 2, "chat"),
)  # fmt: skip

# One GPU is cut anew while another, otherwise empty, does its work.
LENT = transition(
    side({"chat": 110}, [FULL], []), side({"chat": 110}, [LEFT, RIGHT], []), {"chat": 110},
    [
        action("create", 1, [], [FULL], temporary=True),
        action("delete", 0, [FULL], [], 0),
        action("create", 0, [], [LEFT], 1),
        action("create", 0, [], [RIGHT], 1),
        action("delete", 1, [FULL], [], 2, 3, temporary=True),
    ],
    spare=1, borrowed=("n/1",),
)  # fmt: skip

# A service goes, another comes in its place; beside them is something of another's.
THEIRS = instance("1g.6gb", 3, owner="pod team-x/a")
CODE = instance("2g.12gb", 0, "code")
RESTARTED = transition(
    side({"chat": 30, "code": 20}, [LEFT, instance("1g.6gb", 2, "code"), THEIRS]),
    side({"code": 70}, [CODE, instance("1g.6gb", 2, "code"), THEIRS]),
    {"chat": 0, "code": "70/3"},
    [action("restart", 0, [LEFT], [CODE])],
    kept=1,
)  # fmt: skip

# From MIG to MPS, with cover elsewhere.
MPS = [instance("mps:60", None, "chat"), instance("mps:40", None, "code")]
COVER = instance("2g.12gb", 2, "chat")
REPARTITIONED = transition(
    side({"chat": 60}, [LEFT], [THEIRS | {"start": 0}]),
    side({"chat": 60, "code": 40}, MPS, [THEIRS | {"start": 0}], modes=("mps", "mig")),
    {"chat": 60},
    [
        action("create", 1, [], [COVER], temporary=True),
        action("repartition", 0, [LEFT], MPS, 0, mode="mps"),
        action("delete", 1, [COVER], [], 1, temporary=True),
    ],
)  # fmt: skip

# Under MPS shares have no starts; only their sum counts.
SHARED = transition(
    side({"chat": 60, "code": 40}, MPS, modes=("mps",)),
    side({"chat": 100}, [MPS[0], instance("mps:40", None, "chat")], modes=("mps",)),
    {"chat": 60},
    [
        action("delete", 0, [MPS[1]], []),
        action("create", 0, [], [instance("mps:40", None, "chat")], 0),
    ],
    kept=1,
)  # fmt: skip
