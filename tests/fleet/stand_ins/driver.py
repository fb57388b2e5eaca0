"""The driver of a node that does not exist: its GPUs, and what may be done to them.

Faults wait in it: each says at which of its operations it happens, and what happens then.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar
from uuid import UUID

from tests.fleet.stand_ins.placement import MODELS, Model, Profile, is_legal

T = TypeVar("T")

INVALID, UNSUPPORTED, NOT_FOUND, IN_USE, INSUFFICIENT, UNKNOWN = 2, 3, 6, 19, 23, 255
WORDS = {
    INVALID: "Invalid Argument", UNSUPPORTED: "Not Supported", NOT_FOUND: "Not Found",
    IN_USE: "In use by another client", INSUFFICIENT: "Insufficient Resources",
    UNKNOWN: "Unknown Error",
}  # fmt: skip
#: What a fault can be: an error of the driver, or one of the things that errors do not tell of.
ERRORS = {"insufficient": INSUFFICIENT, "in_use": IN_USE, "unknown": UNKNOWN}
KINDS = (*ERRORS, "no_effect", "half", "delayed", "killed_before", "killed_after")
COMMANDS = ("cgi", "cci", "dgi", "dci", "mig", "reset", "list")


class DriverError(Exception):
    """An operation was refused; its code is the exit status of `nvidia-smi`."""

    def __init__(self, code: int) -> None:
        super().__init__(WORDS[code])
        self.code = code


class Killed(Exception):
    """The tool ends here, as by SIGKILL."""


class Held(NamedTuple):
    """A GPU instance as it truly is."""

    profile: str
    start: int
    gi: int
    uuid: str = ""  # of its compute instance; without one it is hollow

    @property
    def hollow(self) -> bool:
        return not self.uuid


@dataclass
class Card:
    """A GPU: whether MIG is on, and will be after a reset, and what is on it."""

    model: Model
    uuid: str
    bus: int
    ids: list[int]  # of GPU instances, those that are free
    mode: str = "Disabled"
    pending: str = "Disabled"
    instances: list[Held] = field(default_factory=list)
    clients: dict[int, int | None] = field(default_factory=dict)  # process → GPU instance

    def find(self, gi: int) -> Held:
        for each in self.instances:
            if each.gi == gi:
                return each
        raise DriverError(NOT_FOUND)

    def change(self, held: Held, uuid: str) -> None:
        self.instances[self.instances.index(held)] = held._replace(uuid=uuid)

    def fits(self, profile: Profile, start: int) -> bool:
        placed = [(self.model.by_name[each.profile], each.start) for each in self.instances]
        return is_legal(self.model, [*placed, (profile, start)])

    def wipe(self) -> None:
        """What a reset and a reboot leave."""
        self.ids = [each.gi for each in self.instances] + self.ids
        self.instances, self.clients, self.mode = [], {}, self.pending


@dataclass
class Fault:
    """What goes wrong, at which of a command's operations from when it was planted on."""

    command: str
    kind: str
    at: int = 1
    times: int = 1
    listings: int = 1
    seen: int = 0


class Driver:
    """Its `choice` is how it picks a start that is not given: the `lowest`, or `any`."""

    def __init__(self, gpus: Sequence[str], seed: int, mig: Sequence[bool], choice: str) -> None:
        self.rest = random.Random(seed)
        self.choice = choice
        self.faults: list[Fault] = []
        self.cards = []
        for index, (key, on) in enumerate(zip(gpus, mig, strict=True)):
            bus = 0x01 + 0x20 * index if index < 8 else 0x02 + index
            ids = self.rest.sample(range(15), 15)  # as many as were ever seen on one card
            card = Card(MODELS[key], self.draw_uuid("GPU"), bus, ids)
            card.mode = card.pending = "Enabled" if on else "Disabled"
            self.cards.append(card)
        # What a delayed listing shows, and how often still.
        self.shadow: tuple[list[Card], int] = [], 0
        # GPU instances that a run said to make, and did not: so goes all that is done to them.
        self.phantoms: set[tuple[int, int]] = set()

    def draw_uuid(self, kind: str) -> str:
        return f"{kind}-{UUID(int=self.rest.getrandbits(128))}"

    def listed(self) -> list[Card]:
        """The GPUs as a listing shows them; a delayed one shows how they were."""
        self._perhaps("list", lambda: None)
        shown, left = self.shadow
        self.shadow = shown, left - 1
        return shown if left > 0 else self.cards

    def create_gpu_instance(self, gpu: int, profile: Profile, start: int | None = None) -> int:
        def act() -> int:
            card = self._on(gpu)
            if start is not None and start not in profile.starts:
                raise DriverError(INVALID)
            starts = profile.starts if start is None else (start,)
            fits = [each for each in starts if card.fits(profile, each)]
            if not fits:
                raise DriverError(INSUFFICIENT)
            at = self.rest.choice(fits) if self.choice == "any" else fits[0]
            gi = card.ids.pop(0)
            card.instances.append(Held(profile.name, at, gi))
            return gi

        return self._perhaps("cgi", act, gpu)

    def create_compute_instance(self, gpu: int, gi: int) -> None:
        def act() -> None:
            held = self._on(gpu).find(gi)
            if not held.hollow:
                raise DriverError(INSUFFICIENT)
            self.cards[gpu].change(held, self.draw_uuid("MIG"))

        if (gpu, gi) not in self.phantoms:
            self._perhaps("cci", act)

    def destroy_compute_instance(self, gpu: int, gi: int) -> None:
        def act() -> None:
            held = self.cards[gpu].find(gi)
            if gi in self.cards[gpu].clients.values():
                raise DriverError(IN_USE)
            self.cards[gpu].change(held, "")

        self._perhaps("dci", act)

    def destroy_gpu_instance(self, gpu: int, gi: int) -> None:
        def act() -> None:
            held = self.cards[gpu].find(gi)
            if not held.hollow:
                raise DriverError(IN_USE)
            self.cards[gpu].instances.remove(held)
            # The id that was free last is dealt first: who remembers ids is found out.
            self.cards[gpu].ids.insert(0, gi)

        self._perhaps("dgi", act)

    def set_mode(self, gpu: int, mode: str) -> None:
        """Turn MIG on or off: at once from Hopper on, pending until a reset on Ampere."""

        def act() -> None:
            card = self.cards[gpu]
            if not card.model.resets and mode != card.mode:
                if card.clients or card.instances:
                    raise DriverError(IN_USE)
                card.mode = mode
            card.pending = mode

        self._perhaps("mig", act)

    def reset(self, gpu: int) -> None:
        """Reset a GPU without clients: its instances are gone, the pending mode is in force."""

        def act() -> None:
            if self.cards[gpu].clients:
                raise DriverError(IN_USE)
            self.cards[gpu].wipe()

        self._perhaps("reset", act)

    def _on(self, gpu: int) -> Card:
        if self.cards[gpu].mode != "Enabled":
            raise DriverError(UNSUPPORTED)
        return self.cards[gpu]

    def _perhaps(self, command: str, act: Callable[[], T], gpu: int = 0) -> T:
        """Act, unless a fault of this operation is due."""
        due = None
        for fault in self.faults:
            if fault.command == command:
                fault.seen += 1
                if due is None and fault.at <= fault.seen < fault.at + fault.times:
                    due = fault
        if due is None:
            return act()
        if due.kind == "killed_before":
            raise Killed
        if due.kind in ERRORS:
            raise DriverError(ERRORS[due.kind])
        before = deepcopy(self.cards)
        answer = act()
        if due.kind == "no_effect":
            self.cards = before
            if isinstance(answer, int):
                self.phantoms.add((gpu, answer))
        elif due.kind == "half":
            # The GPU instance is there, and the compute instance that belongs to it never comes.
            self.faults.append(Fault("cci", "unknown"))
        elif due.kind == "delayed":
            self.shadow = before, due.listings
        elif due.kind == "killed_after":
            raise Killed
        return answer
