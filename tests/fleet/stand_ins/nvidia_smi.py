"""A stand-in for `nvidia-smi`: its command line and its texts over the driver's state file.

The texts are those of published driver output; where none was found (a refused compute instance,
an argument missing) they are made like those beside them. Everything goes to the standard output,
as from the real tool, and the exit status is the number of the driver's error.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence

from tests.fleet.stand_ins.driver import (
    INVALID,
    NOT_FOUND,
    STATE,
    UNKNOWN,
    WORDS,
    Driver,
    DriverError,
    Killed,
)
from tests.fleet.stand_ins.listings import Listings, Refusal
from tests.fleet.stand_ins.placement import Profile

WRONG = "Invalid combination of input arguments. Please run 'nvidia-smi -h' for help."
# The options of `nvidia-smi mig` and of `nvidia-smi`, and whether each has an argument.
MIG_OPTIONS = {
    "-i": True, "-gi": True, "-C": False, "-lgi": False, "-lci": False, "-cgi": True,
    "-cci": False, "-dgi": False, "-dci": False,
}  # fmt: skip
OPTIONS = {
    "-i": True, "-L": False, "-q": False, "-x": False, "--gpu-reset": False, "-mig": True,
    "--query-gpu": True, "--format": True,
}  # fmt: skip
# What each action may be restricted by.
RESTRICTED = {
    "-lgi": "-i", "-cgi": "-i -C", "-dgi": "-i -gi", "-lci": "-i -gi", "-cci": "-i -gi",
    "-dci": "-i -gi",
}  # fmt: skip


def parsed(arguments: Sequence[str], options: Mapping[str, bool], tool: str) -> dict[str, str]:
    found: dict[str, str] = {}
    waiting = list(arguments)
    while waiting:
        word = waiting.pop(0)
        name, equals, value = word.partition("=")
        if name not in options:
            text = f"ERROR: Option {word} is not recognized. Please run '{tool} -h' for help."
            raise Refusal(text, INVALID)
        if not equals and options[name] and waiting and not waiting[0].startswith("-"):
            value = waiting.pop(0)
        if options[name] is not bool(value) or name in found:
            raise Refusal(WRONG, INVALID)
        found[name] = value
    return found


class Tool(Listings):
    """One run of `nvidia-smi` on a driver."""

    def run(self, arguments: Sequence[str]) -> int:
        if arguments[:1] == ["mig"]:
            return self.mig(parsed(arguments[1:], MIG_OPTIONS, "nvidia-smi mig"))
        given = parsed(arguments, OPTIONS, "nvidia-smi")
        if given.keys() - {"-i"} == {"-q", "-x"}:
            return self.log(given)
        actions = given.keys() - {"-i", "--format"}
        if len(actions) != 1:
            raise Refusal(WRONG, INVALID)
        action = actions.pop()
        if action in ("-q", "-x"):  # known together alone
            raise Refusal(WRONG, INVALID)
        if action == "--query-gpu":
            return self.query(given)
        does = {"-L": self.list_all, "--gpu-reset": self.reset, "-mig": self.set_mode}
        return does[action](given)

    def reset(self, given: dict[str, str]) -> int:
        chosen = self.chosen(given)
        held = [gpu for gpu in chosen if self.driver.gpus[gpu]["clients"]]
        for gpu in [] if held else chosen:
            try:
                self.driver.reset(gpu)
            except DriverError:
                held.append(gpu)
            else:
                self.say(f"GPU {self.bus(gpu)} was successfully reset.")
        for gpu in held:
            self.say(f"  GPU {self.bus(gpu)}: In use by another client")
        self.say("The GPUs could not be reset." if held else "All done.")
        return UNKNOWN if held else 0

    def set_mode(self, given: dict[str, str]) -> int:
        wanted = {"1": "Enabled", "0": "Disabled"}
        if given["-mig"] not in wanted:
            raise Refusal(WRONG, INVALID)
        mode = wanted[given["-mig"]]
        verb = mode.lower()[:-1]
        for gpu in self.chosen(given):
            bus = self.bus(gpu)
            try:
                self.driver.set_mode(gpu, mode)
            except DriverError as error:
                self.say(
                    f"Unable to {verb} MIG Mode for GPU {bus}: {error}",
                    "Terminating early due to previous errors.",
                )
                return error.code
            this = self.driver.gpus[gpu]
            if this["mode"] == this["pending"]:
                self.say(f"{mode} MIG Mode for GPU {bus}")
            else:
                self.say(
                    f"Warning: MIG mode is in pending {verb} state for GPU {bus}:Not Supported",
                    "Reboot the system or try nvidia-smi --gpu-reset to make MIG mode effective "
                    f"on GPU {bus}",
                )
        self.say("All done.")
        return 0

    def mig(self, given: dict[str, str]) -> int:
        actions = given.keys() & RESTRICTED.keys()
        if len(actions) != 1 or given.keys() - actions - set(RESTRICTED[min(actions)].split()):
            raise Refusal(WRONG, INVALID)
        action = actions.pop()
        gpus = self.mig_chosen(given)
        if not given.get("-gi", "0").isdigit():
            raise Refusal(WORDS[INVALID], INVALID)
        does: dict[str, Callable[[list[int], dict[str, str]], int]] = {
            "-lgi": self.gpu_instances, "-lci": self.compute_instances,
            "-cgi": self.create_gpu_instances, "-cci": self.create_compute_instances,
            "-dgi": self.destroy_gpu_instances, "-dci": self.destroy_compute_instances,
        }  # fmt: skip
        return does[action](gpus, given)

    def create_gpu_instances(self, gpus: list[int], given: dict[str, str]) -> int:
        for gpu in gpus:
            for word in given["-cgi"].split(","):
                try:
                    profile, start = self.tuple_of(gpu, word.strip())
                    gi = self.driver.create_gpu_instance(gpu, profile.number, start)
                except DriverError as error:
                    self.say(
                        f"Unable to create a GPU instance on GPU {gpu:>2} using profile "
                        f"{word.strip()}: {error}"
                    )
                    raise Refusal(f"Failed to create GPU instances: {error}", error.code) from None
                self.say(
                    f"Successfully created GPU instance ID {gi:>2} on GPU {gpu:>2} using profile "
                    f"MIG {profile.name} (ID {profile.number:>2})"
                )
                if "-C" in given:
                    self.create_compute_instance(gpu, gi, profile)
        return 0

    def tuple_of(self, gpu: int, word: str) -> tuple[Profile, int | None]:
        """The profile and the start of a profile tuple, `9` or `3g.40gb:4`."""
        name, colon, start = word.partition(":")
        for profile in self.driver.model(gpu).profiles:
            if name in (str(profile.number), profile.name):
                if colon and not start.isdigit():
                    break
                return profile, int(start) if colon else None
        raise DriverError(INVALID)

    def create_compute_instances(self, gpus: list[int], given: dict[str, str]) -> int:
        for gpu, made in self.wanted(gpus, given, listing=False):
            profile = self.driver.profile(gpu, made["profile"])
            self.create_compute_instance(gpu, made["id"], profile)
        return 0

    def create_compute_instance(self, gpu: int, gi: int, profile: Profile) -> None:
        try:
            self.driver.create_compute_instance(gpu, gi)
        except DriverError as error:
            self.say(
                f"Unable to create a compute instance on GPU {gpu:>2} GPU instance ID {gi:>2} "
                f"using profile {profile.default_ci}: {error}"
            )
            raise Refusal(f"Failed to create compute instances: {error}", error.code) from None
        self.say(
            f"Successfully created compute instance ID  0 on GPU {gpu:>2} GPU instance "
            f"ID {gi:>2} using profile MIG {profile.name} (ID {profile.default_ci:>2})"
        )

    def destroy_compute_instances(self, gpus: list[int], given: dict[str, str]) -> int:
        found = [
            (gpu, made["id"])
            for gpu, made in self.wanted(gpus, given, listing=False)
            if made["cis"]
        ]
        if not found:
            raise Refusal("No compute instances found: Not Found", NOT_FOUND)
        for gpu, gi in found:
            where = f"compute instance ID  0 from GPU {gpu:>2} GPU instance ID {gi:>2}"
            try:
                self.driver.destroy_compute_instance(gpu, gi)
            except DriverError as error:
                self.say(f"Unable to destroy {where}: {error}")
                raise Refusal(f"Failed to destroy compute instances: {error}", error.code) from None
            self.say(f"Successfully destroyed {where}")
        return 0

    def destroy_gpu_instances(self, gpus: list[int], given: dict[str, str]) -> int:
        found = [(gpu, made["id"]) for gpu, made in self.wanted(gpus, given, listing=False)]
        for gpu, gi in found:
            where = f"GPU instance ID {gi:>2} from GPU {gpu:>2}"
            try:
                self.driver.destroy_gpu_instance(gpu, gi)
            except DriverError as error:
                self.say(f"Unable to destroy {where}: {error}")
                raise Refusal(f"Failed to destroy GPU instances: {error}", error.code) from None
            self.say(f"Successfully destroyed {where}")
        return 0


def main(
    arguments: Sequence[str],
    environment: Mapping[str, str] = os.environ,
    write: Callable[[str], object] = sys.stdout.write,
) -> int:
    """Run the tool and say its exit status."""
    with Driver(environment[STATE]) as driver:
        tool = Tool(driver, write)
        try:
            code = tool.run(list(arguments))
        except Refusal as error:
            tool.say(str(error))
            code = error.code
        except DriverError as error:
            # Only a listing lets an error of the driver through.
            tool.say(f"Failed to display GPU instances: {error}")
            code = error.code
        except Killed:
            code = 137
        driver.state["log"].append(
            {"tool": "nvidia-smi", "arguments": list(arguments), "code": code}
        )
    return code
