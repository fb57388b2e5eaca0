"""A stand-in for `nvidia-smi`: its command line and its texts over the driver's state file.

The texts are those of published driver output; where none was found (a refused compute instance,
an argument missing) they are made like those beside them. Everything goes to the standard output,
as from the real tool, and the exit status is the number of the driver's error.
"""

from __future__ import annotations

import os
import sys

from tests.fleet.stand_ins.command_line import MIG_OPTIONS, OPTIONS, RESTRICTED, Usage, parsed
from tests.fleet.stand_ins.driver import (
    INVALID,
    NOT_FOUND,
    STATE,
    UNKNOWN,
    WORDS,
    Driver,
    DriverError,
    Killed,
    dead,
)
from tests.fleet.stand_ins.listings import Listings, Refusal
from tests.fleet.stand_ins.placement import Profile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

WRONG = "Invalid combination of input arguments. Please run 'nvidia-smi -h' for help."


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
            raise Usage(WRONG)
        action = actions.pop()
        if action in ("-q", "-x"):  # known together alone
            raise Usage(WRONG)
        if action == "-L":
            return self.list_all(given)
        if action == "-r":
            return self.reset(given)
        if action == "-mig":
            return self.set_mode(given)
        return self.query(given, action)

    def reset(self, given: dict[str, str]) -> int:
        chosen = self.chosen(given)
        held = [gpu for gpu in chosen if self.driver.gpus[gpu]["clients"]]
        if not held:
            for gpu in chosen:
                try:
                    self.driver.reset(gpu)
                except DriverError:
                    held.append(gpu)
                else:
                    self.say(f"GPU {self.bus(gpu)} was successfully reset.")
        if held:
            self.say("", "The following GPUs could not be reset:")
            for gpu in held:
                self.say(f"  GPU {self.bus(gpu)}: In use by another client")
            devices, these = ("device is", "this device") if len(held) == 1 else (
                "devices are", "these devices"
            )  # fmt: skip
            self.say(
                "",
                f"{len(held)} {devices} currently being used by one or more other processes (e.g., "
                "Fabric Manager, CUDA application, graphics application such as an X server, or a "
                "monitoring application such as another instance of nvidia-smi). Please first kill "
                f"all processes using {these} and all compute applications running in the system.",
            )
            return UNKNOWN
        self.say("All done.")
        return 0

    def set_mode(self, given: dict[str, str]) -> int:
        wanted = {"1": "Enabled", "ENABLED": "Enabled", "0": "Disabled", "DISABLED": "Disabled"}
        if given["-mig"] not in wanted:
            raise Usage(WRONG)
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
            elif this["clients"]:
                self.say(
                    f"Warning: MIG mode is in pending {verb} state for GPU {bus}:In use by another "
                    "client",
                    f"{bus} is currently being used by one or more other processes (e.g. CUDA "
                    "application or a monitoring application such as another instance of "
                    "nvidia-smi). Please first kill all processes using the device and retry the "
                    "command or reboot the system to make MIG mode effective.",
                )
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
            raise Usage(WRONG.replace("smi", "smi mig"))
        action = actions.pop()
        gpus = self.mig_chosen(given)
        for option in ("-gi", "-ci"):
            if not all(word.strip().isdigit() for word in given.get(option, "0").split(",")):
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
                    self.create_compute_instance(gpu, gi, profile, "")
        return 0

    def tuple_of(self, gpu: int, word: str) -> tuple[Profile, int | None]:
        """The profile and the start of a profile tuple, `9`, `3g.40gb:4` or `MIG 3g.40gb`."""
        name, colon, start = word.removeprefix("MIG ").partition(":")
        for profile in self.driver.profiles(gpu):
            if name in (str(profile.number), profile.name):
                if colon and not start.isdigit():
                    break
                return profile, int(start) if colon else None
        raise DriverError(INVALID)

    def create_compute_instances(self, gpus: list[int], given: dict[str, str]) -> int:
        for gpu, made in self.wanted(gpus, given, listing=False):
            profile = self.driver.profile(gpu, made["profile"])
            for word in given["-cci"].split(","):
                self.create_compute_instance(gpu, made["id"], profile, word.strip())
        return 0

    def create_compute_instance(self, gpu: int, gi: int, profile: Profile, word: str) -> None:
        number = profile.default_ci
        try:
            slices = profile.compute
            if word:
                slices, number = self.ci_profile(profile, word)
            ci = self.driver.create_compute_instance(gpu, gi, slices, number)
        except DriverError as error:
            self.say(
                f"Unable to create a compute instance on GPU {gpu:>2} GPU instance ID {gi:>2} "
                f"using profile {word or number}: {error}"
            )
            raise Refusal(f"Failed to create compute instances: {error}", error.code) from None
        self.say(
            f"Successfully created compute instance ID {ci['id']:>2} on GPU {gpu:>2} GPU instance "
            f"ID {gi:>2} using profile MIG {self.ci_name(profile, ci)} (ID {number:>2})"
        )

    def ci_profile(self, profile: Profile, word: str) -> tuple[int, int]:
        """The slices and the number of a compute instance profile, by number or by name."""
        for number, slices in enumerate((1, 2, 3, 4, 7)):
            name = self.ci_name(profile, {"size": slices})
            if slices <= profile.compute and word.removeprefix("MIG ") in (str(number), name):
                return slices, number
        raise DriverError(INVALID)

    def destroy_compute_instances(self, gpus: list[int], given: dict[str, str]) -> int:
        ids = {int(word) for word in given["-ci"].split(",")} if "-ci" in given else None
        found = [
            (gpu, made["id"], ci["id"])
            for gpu, made in self.wanted(gpus, given, listing=False)
            for ci in made["cis"]
            if ids is None or ci["id"] in ids
        ]
        if not found:
            raise Refusal("No compute instances found: Not Found", NOT_FOUND)
        for gpu, gi, ci in found:
            where = f"compute instance ID {ci:>2} from GPU {gpu:>2} GPU instance ID {gi:>2}"
            try:
                self.driver.destroy_compute_instance(gpu, gi, ci)
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
    killed = None
    with Driver(environment[STATE]) as driver:
        tool = Tool(driver, write)
        try:
            code = tool.run(list(arguments))
        except Usage as error:
            tool.say(str(error))
            code = INVALID
        except Refusal as error:
            tool.say(str(error))
            code = error.code
        except DriverError as error:
            # Only a listing lets an error of the driver through.
            tool.say(f"Failed to display GPU instances: {error}")
            code = error.code
        except Killed as error:
            killed, code = error, 137
        driver.state["log"].append(
            {"tool": "nvidia-smi", "arguments": list(arguments), "code": code}
        )
    dead(killed, environment)
    return code
