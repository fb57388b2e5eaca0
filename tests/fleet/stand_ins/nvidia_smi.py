"""A stand-in for `nvidia-smi`: its command line and its texts over a driver.

The texts are those of published driver output; where none was found (a refused compute instance)
they are made like those beside them. Everything goes to the standard output, as from the real tool,
and the exit status is the number of the driver's error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from tests.fleet import smi
from tests.fleet.stand_ins.driver import (
    INVALID,
    NOT_FOUND,
    UNKNOWN,
    WORDS,
    Card,
    Driver,
    DriverError,
    Held,
)
from tests.fleet.stand_ins.placement import Profile

WRONG = "Invalid combination of input arguments. Please run 'nvidia-smi -h' for help."


T = TypeVar("T")


class Refusal(Exception):
    """The last line of a run that failed, and its exit status."""

    def __init__(self, line: str, code: int = INVALID) -> None:
        super().__init__(line)
        self.code = code


class NvidiaSmi:
    """One run on a driver."""

    def __init__(self, driver: Driver, write: Callable[[str], object]) -> None:
        self.driver, self.write = driver, write
        self.gpus = [*range(len(driver.cards))]
        self.gi: int | None = None  # the only GPU instance that is meant

    def say(self, *lines: str) -> None:
        for line in lines:
            self.write(f"{line}\n")

    def run(self, arguments: Sequence[str]) -> int:
        """Run a command line, and say the exit status."""
        try:
            return self._run([*arguments])
        except Refusal as error:
            self.say(str(error))
            return error.code
        except DriverError as error:  # only a listing lets an error of the driver through
            self.say(f"Failed to display GPU instances: {error}")
            return error.code

    def _run(self, words: list[str]) -> int:
        named = {}
        for option in ("-i", "-gi"):
            if option in words[:-1]:
                at = words.index(option)
                named[option] = words[at + 1]
                del words[at : at + 2]
        plain: dict[str, Callable[[], None]] = {
            "-L": self.list_all, "-q -x": self.log, "--gpu-reset": self.reset,
            "--query-gpu=mig.mode.current --format=csv,noheader": self.query_modes,
            "mig -lgi": self.list_gpu_instances, "mig -lci": self.list_compute_instances,
            "mig -cci": self.create_compute_instances, "mig -dci": self.destroy_compute_instances,
            "mig -dgi": self.destroy_gpu_instances,
        }  # fmt: skip
        act: Callable[[], None]
        match words:
            case ["mig", "-cgi", names, *more] if names != "-C" and more in ([], ["-C"]):
                act = partial(self.create_gpu_instances, names, whole=bool(more))
            case ["-mig", "0" | "1" as number]:
                act = partial(self.set_mode, ("Disabled", "Enabled")[int(number)])
            case _ if " ".join(words) in plain:
                act = plain[" ".join(words)]
            case _:
                raise Refusal(WRONG)
        if "-gi" in named and words[-1] not in ("-lci", "-cci", "-dci", "-dgi"):
            raise Refusal(WRONG)
        if (gpu := named.get("-i")) is not None:
            self.gpus = [each for each in self.gpus if str(each) == gpu]
            if not self.gpus:
                raise Refusal("No devices were found", NOT_FOUND)
        if words[0] == "mig":
            self.gpus = [each for each in self.gpus if self.driver.cards[each].mode == "Enabled"]
            if not self.gpus:
                raise Refusal("No MIG-enabled devices found.", NOT_FOUND)
        if (gi := named.get("-gi")) is not None:
            if not gi.isdigit():
                raise Refusal(WORDS[INVALID])
            self.gi = int(gi)
        act()
        return 0

    # What is listed

    def bus(self, gpu: int) -> str:
        return f"00000000:{self.driver.cards[gpu].bus:02X}:00.0"

    def shown(self) -> Iterator[tuple[int, Card]]:
        cards = self.driver.listed()
        return ((gpu, cards[gpu]) for gpu in self.gpus)

    def chosen(self, cards: Sequence[Card], *, whole: bool = False) -> list[tuple[int, Held]]:
        """The GPU instances that are meant, by profile and then by number."""
        found = []
        for gpu in self.gpus:
            order = [profile.name for profile in cards[gpu].model.profiles]
            held = (i for i in cards[gpu].instances if self.gi in (None, i.gi))
            found += [(gpu, i) for i in sorted(held, key=lambda i: (order.index(i.profile), i.gi))]
        if not found:
            raise Refusal("No GPU instances found: Not Found", NOT_FOUND)
        found = [(gpu, i) for gpu, i in found if not (whole and i.hollow)]
        if not found:
            raise Refusal("No compute instances found: Not Found", NOT_FOUND)
        return found

    def profile(self, gpu: int, held: Held) -> Profile:
        return self.driver.cards[gpu].model.by_name[held.profile]

    def list_all(self) -> None:
        for gpu, card in self.shown():
            self.say(f"GPU {gpu}: {card.model.product} (UUID: {card.uuid})")
            for number, held in enumerate(_devices(card)):
                self.say(f"  MIG {held.profile:<12}Device {number:>2}: (UUID: {held.uuid})")

    def log(self) -> None:
        """All of it in XML, as far as anybody reads it here."""
        cards = []
        for _, each in self.shown():
            sizes = dict(zip(each.model.by_name, each.model.sms, strict=True))
            devices = [(held.gi, sizes[held.profile]) for held in _devices(each)]
            told = each.uuid, each.mode, each.model.product
            cards.append(smi.card(*told, pending=each.pending, devices=devices))
        self.write(smi.log(*cards, driver="580.95.05"))

    def query_modes(self) -> None:
        for _, card in self.shown():
            self.say(card.mode)

    def list_gpu_instances(self) -> None:
        found = ((gpu, i, self.profile(gpu, i)) for gpu, i in self.chosen(self.driver.listed()))
        self.write(
            smi.lgi(*(f"{gpu} {i.profile} {i.gi} {i.start}:{p.size}" for gpu, i, p in found))
        )

    def list_compute_instances(self) -> None:
        frame = f"+{'-' * 68}+"
        self.say(
            frame,
            "| Compute instances:                                                 |",
            "| GPU     GPU       Name             Profile   Instance   Placement  |",
            "|       Instance                       ID        ID       Start:Size |",
            "|         ID                                                         |",
            f"|{'=' * 68}|",
        )
        for gpu, held in self.chosen(self.driver.listed(), whole=True):
            its = self.profile(gpu, held)
            row = f"{gpu:>4}{held.gi:>7}       {'MIG ' + held.profile:<18}{its.default_ci:>4}"
            self.say(f"|{f'{row}{0:>10}{0:>11}:{its.compute}':<68}|", frame)

    # What is done: what is printed of it nobody reads

    def act(self, what: str, gpu: int, act: Callable[[], T]) -> T:
        """Do one thing, or say that it cannot be done and end."""
        try:
            done = act()
        except DriverError as error:
            self.say(f"Unable to {what} on GPU {gpu:>2}: {error}")
            raise Refusal(f"Failed to {what}: {error}", error.code) from None
        self.say(f"Successful: {what} on GPU {gpu:>2}")
        return done

    def create_gpu_instances(self, names: str, *, whole: bool = False) -> None:
        for gpu in self.gpus:
            for word in map(str.strip, names.split(",")):
                create = partial(self._create, gpu, word)
                gi = self.act(f"create a GPU instance of {word}", gpu, create)
                if whole:
                    self._create_compute_instance(gpu, gi)

    def _create(self, gpu: int, word: str) -> int:
        """Create by a profile tuple, `9` or `3g.40gb:4`."""
        name, colon, start = word.partition(":")
        for profile in self.driver.cards[gpu].model.profiles:
            if name in (str(profile.number), profile.name) and bool(colon) == start.isdigit():
                at = int(start) if colon else None
                return self.driver.create_gpu_instance(gpu, profile, at)
        raise DriverError(INVALID)

    def _create_compute_instance(self, gpu: int, gi: int) -> None:
        create = partial(self.driver.create_compute_instance, gpu, gi)
        self.act("create a compute instance", gpu, create)

    def create_compute_instances(self) -> None:
        for gpu, held in self.chosen(self.driver.cards):
            self._create_compute_instance(gpu, held.gi)

    def destroy_compute_instances(self) -> None:
        for gpu, held in self.chosen(self.driver.cards, whole=True):
            destroy = partial(self.driver.destroy_compute_instance, gpu, held.gi)
            self.act("destroy a compute instance", gpu, destroy)

    def destroy_gpu_instances(self) -> None:
        for gpu, held in self.chosen(self.driver.cards):
            destroy = partial(self.driver.destroy_gpu_instance, gpu, held.gi)
            self.act("destroy a GPU instance", gpu, destroy)

    def set_mode(self, mode: str) -> None:
        for gpu in self.gpus:
            self.act(f"have MIG {mode}", gpu, partial(self.driver.set_mode, gpu, mode))

    def reset(self) -> None:
        for gpu in self.gpus:
            try:
                self.driver.reset(gpu)
            except DriverError as error:
                raise Refusal(f"GPU {self.bus(gpu)}: {error}. None is reset.", UNKNOWN) from None


def _devices(card: Card) -> list[Held]:
    """The MIG devices of a GPU, as listings number them."""
    return sorted((i for i in card.instances if not i.hollow), key=lambda held: held.gi)
