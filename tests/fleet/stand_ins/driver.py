"""The driver of a node that does not exist: GPUs in a JSON file, and what may be done to them.

Both stand-in tools act through it, under a lock, so that parallel calls leave a true file. Faults
wait in the file: each says at which of its operations it happens, and what happens then.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TypeVar

from tests.fleet.stand_ins.placement import MODELS, Model, Profile, room, trouble

T = TypeVar("T")

# The environment: the state file.
STATE = "STANDIN_STATE"

INVALID, UNSUPPORTED, NOT_FOUND, IN_USE, INSUFFICIENT, UNKNOWN = 2, 3, 6, 19, 23, 255

WORDS = {
    INVALID: "Invalid Argument",
    UNSUPPORTED: "Not Supported",
    NOT_FOUND: "Not Found",
    IN_USE: "In use by another client",
    INSUFFICIENT: "Insufficient Resources",
    UNKNOWN: "Unknown Error",
}

# What a fault can be: an error of the driver, or one of the things that errors do not tell of.
ERRORS = {"insufficient": INSUFFICIENT, "in_use": IN_USE, "unknown": UNKNOWN}
DEATHS = ("killed_before", "killed_after")
TREASONS = ("no_effect", "half", "delayed", *DEATHS)
COMMANDS = ("cgi", "cci", "dgi", "dci", "mig", "reset", "list")


class DriverError(Exception):
    """An operation was refused; its code is the exit status of `nvidia-smi`."""

    def __init__(self, code: int) -> None:
        super().__init__(WORDS[code])
        self.code = code


class Killed(Exception):
    """The tool ends here, as by SIGKILL."""


def mixed(seed: int) -> int:
    """A number of 64 bits that looks like no other (splitmix64)."""
    value = (seed + 1) * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & 0xFFFFFFFFFFFFFFFF
    value = (value ^ value >> 27) * 0x94D049BB133111EB & 0xFFFFFFFFFFFFFFFF
    return value ^ value >> 31


def uuid(kind: str, seed: int) -> str:
    """`GPU-…` or `MIG-…`, always the same for a seed."""
    seed = seed * 2 + (kind == "MIG")
    digits = f"{mixed(seed):016x}{mixed(~seed & 0xFFFFFFFF):016x}"
    cuts = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
    return f"{kind}-{'-'.join(cuts)}"


def copy(value: Any) -> Any:
    return json.loads(json.dumps(value))


class Driver:
    """The state file, held under its lock for as long as one tool runs.

    The file has `seed`, `made` (instances made so far), `choice` (how the driver picks a start:
    `lowest` or `any`), `texts` (`new` or `old`), `gpus`, `faults`, `shadow` (what delayed listings
    show) and `log` (every command line with its exit status).
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.state: dict[str, Any] = {}
        # GPU instances that were said to be made, and were not: so goes all that is done to them.
        self._phantoms: set[tuple[int, int]] = set()
        self._lock = -1

    def __enter__(self) -> Self:
        self._lock = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        with open(self.path, encoding="utf-8") as file:
            self.state = json.load(file)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # A killed tool has done what it has done; a bug of ours leaves the file alone.
        if kind is None or kind is Killed:
            self.save()
        os.close(self._lock)

    def save(self) -> None:
        """Write beside, then rename: no reader sees half a file."""
        beside = f"{self.path}.{os.getpid()}"
        with open(beside, "w", encoding="utf-8") as file:
            json.dump(self.state, file)
        os.replace(beside, self.path)

    # What there is

    @property
    def gpus(self) -> list[dict[str, Any]]:
        gpus: list[dict[str, Any]] = self.state["gpus"]
        return gpus

    def model(self, gpu: int) -> Model:
        return MODELS[self.gpus[gpu]["model"]]

    def sms(self, gpu: int, number: int) -> int:
        of = zip(self.model(gpu).profiles, self.model(gpu).sms, strict=True)
        return next(sms for profile, sms in of if profile.number == number)

    def profile(self, gpu: int, number: int) -> Profile:
        for profile in self.model(gpu).profiles:
            if profile.number == number:
                return profile
        raise DriverError(INVALID)

    def placed(self, gpu: int) -> list[tuple[Profile, int]]:
        return [
            (self.profile(gpu, instance["profile"]), instance["start"])
            for instance in self.gpus[gpu]["instances"]
        ]

    def listed(self) -> list[dict[str, Any]]:
        """The GPUs as a listing shows them; a delayed one shows how they were."""
        self._perhaps("list", None, lambda: None)
        shadow = self.state["shadow"]
        if not shadow:
            return self.gpus
        shadow["left"] -= 1
        if shadow["left"] <= 0:
            self.state["shadow"] = None
        gpus: list[dict[str, Any]] = shadow["gpus"]
        return gpus

    def instance(self, gpu: int, gi: int) -> dict[str, Any]:
        for instance in self.gpus[gpu]["instances"]:
            if instance["id"] == gi:
                return instance  # type: ignore[no-any-return]
        raise DriverError(NOT_FOUND)

    def clients(self, gpu: int, gi: int) -> list[Any]:
        return [client for client in self.gpus[gpu]["clients"] if client["gi"] == gi]

    # What can be done

    def create_gpu_instance(self, gpu: int, number: int, start: int | None = None) -> int:
        def act() -> int:
            self._must_be_on(gpu)
            profile, placed = self.profile(gpu, number), self.placed(gpu)
            if start is not None and start not in profile.starts:
                raise DriverError(INVALID)
            at = self._choose(gpu, profile) if start is None else start
            if at is None or trouble(self.model(gpu), [*placed, (profile, at)]):
                raise DriverError(INSUFFICIENT)
            gi: int = self.gpus[gpu]["ids"].pop(0)
            made = {"id": gi, "profile": number, "start": at, "cis": []}
            self.gpus[gpu]["instances"].append(made)
            return gi

        return self._perhaps("cgi", gpu, act)

    def create_compute_instance(self, gpu: int, gi: int) -> None:
        def act() -> None:
            self._must_be_on(gpu)
            instance = self.instance(gpu, gi)
            if instance["cis"]:
                raise DriverError(INSUFFICIENT)
            self.state["made"] += 1
            seed = self.state["seed"] * 100_003 + self.state["made"]
            instance["cis"].append({"uuid": uuid("MIG", seed)})

        if (gpu, gi) not in self._phantoms:
            self._perhaps("cci", gpu, act)

    def destroy_compute_instance(self, gpu: int, gi: int) -> None:
        def act() -> None:
            instance = self.instance(gpu, gi)
            if self.clients(gpu, gi):
                raise DriverError(IN_USE)
            instance["cis"] = []

        self._perhaps("dci", gpu, act)

    def destroy_gpu_instance(self, gpu: int, gi: int) -> None:
        def act() -> None:
            instance = self.instance(gpu, gi)
            if instance["cis"]:
                raise DriverError(IN_USE)
            self.gpus[gpu]["instances"].remove(instance)
            # The id that was free last is dealt first: who remembers ids is found out.
            self.gpus[gpu]["ids"].insert(0, gi)

        self._perhaps("dgi", gpu, act)

    def set_mode(self, gpu: int, mode: str) -> None:
        """Turn MIG on or off: at once from Hopper on, pending until a reset on Ampere."""

        def act() -> None:
            this = self.gpus[gpu]
            if not self.model(gpu).resets and mode != this["mode"]:
                if this["clients"] or this["instances"]:
                    raise DriverError(IN_USE)
                this["mode"] = mode
            this["pending"] = mode

        self._perhaps("mig", gpu, act)

    def reset(self, gpu: int) -> None:
        """Reset a GPU without clients: its instances are gone, the pending mode is in force."""

        def act() -> None:
            this = self.gpus[gpu]
            if this["clients"]:
                raise DriverError(IN_USE)
            self.wipe(gpu)

        self._perhaps("reset", gpu, act)

    def wipe(self, gpu: int) -> None:
        """What a reset and a reboot leave."""
        this = self.gpus[gpu]
        this["ids"] = [instance["id"] for instance in this["instances"]] + this["ids"]
        this["instances"], this["clients"] = [], []
        this["mode"] = this["pending"]

    def _must_be_on(self, gpu: int) -> None:
        if self.gpus[gpu]["mode"] != "Enabled":
            raise DriverError(UNSUPPORTED)

    def _choose(self, gpu: int, profile: Profile) -> int | None:
        starts = room(self.model(gpu), self.placed(gpu), profile)
        if self.state["choice"] == "any" and starts:
            self.state["made"] += 1
            return starts[mixed(self.state["seed"] + self.state["made"]) % len(starts)]
        return min(starts, default=None)

    # What can go wrong

    def _perhaps(self, command: str, gpu: int | None, act: Callable[[], T]) -> T:
        """Act, unless a fault of this operation is due."""
        due = None
        for fault in self.state["faults"]:
            if fault["command"] == command:
                fault["seen"] += 1
                if due is None and fault["at"] <= fault["seen"] < fault["at"] + fault["times"]:
                    due = fault
        if due is None:
            return act()
        kind = due["kind"]
        if kind == "killed_before":
            raise Killed
        if kind in ERRORS:
            raise DriverError(ERRORS[kind])
        before = copy(self.gpus)
        answer = act()
        if kind == "no_effect":
            self.state["gpus"] = before
            if command == "cgi":
                self._phantoms.add((gpu, answer))  # type: ignore[arg-type]
        elif kind == "half":
            # The GPU instance is there, and the compute instance that belongs to it never comes.
            self.state["faults"].append(
                {"command": "cci", "kind": "unknown", "at": 1, "times": 1, "seen": 0}
            )
        elif kind == "delayed":
            self.state["shadow"] = {"gpus": before, "left": due["listings"]}
        elif kind in DEATHS:
            raise Killed
        return answer
