"""What `nvidia-smi` lists, in the texts of published driver output, `new` ones and `old` ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tests.fleet.stand_ins.driver import INVALID, NOT_FOUND, Driver


class Refusal(Exception):
    """The last line of a run that failed, and its exit status."""

    def __init__(self, line: str, code: int) -> None:
        super().__init__(line)
        self.code = code


class Listings:
    """The listings of one run on a driver, and how they name things."""

    def __init__(self, driver: Driver, write: Callable[[str], object]) -> None:
        self.driver = driver
        self.write = write
        self.new = driver.state["texts"] == "new"

    def say(self, *lines: str) -> None:
        for line in lines:
            self.write(f"{line}\n")

    def bus(self, gpu: int) -> str:
        return f"00000000:{self.driver.gpus[gpu]['bus']:02X}:00.0"

    def chosen(self, given: dict[str, str]) -> list[int]:
        """The GPU named by its index; all of them where none is named."""
        every = [str(gpu) for gpu in range(len(self.driver.gpus))]
        if given.get("-i", "0") not in every:
            raise Refusal("No devices were found", NOT_FOUND)
        return [int(each) for each in every if each == given.get("-i", each)]

    def mig_chosen(self, given: dict[str, str]) -> list[int]:
        """Those of them whose MIG mode is on."""
        on = [gpu for gpu in self.chosen(given) if self.driver.gpus[gpu]["mode"] == "Enabled"]
        if not on:
            raise Refusal("No MIG-enabled devices found.", NOT_FOUND)
        return on

    def ordered(self, gpu: int, instances: list[Any]) -> list[Any]:
        """GPU instances as listings show them: by profile, then by id."""
        order = [profile.number for profile in self.driver.model(gpu).profiles]
        return sorted(instances, key=lambda made: (order.index(made["profile"]), made["id"]))

    def wanted(self, gpus: list[int], given: dict[str, str], listing: bool) -> list[Any]:
        """The GPU instances meant, each with its GPU."""
        shown = self.driver.listed() if listing else self.driver.gpus
        found = [
            (gpu, instance)
            for gpu in gpus
            for instance in self.ordered(gpu, shown[gpu]["instances"])
            if given.get("-gi", str(instance["id"])) == str(instance["id"])
        ]
        if not found:
            raise Refusal("No GPU instances found: Not Found", NOT_FOUND)
        return found

    def list_all(self, given: dict[str, str]) -> int:
        gpus = self.driver.listed()
        for gpu in self.chosen(given):
            this = gpus[gpu]
            self.say(f"GPU {gpu}: {this['name']} (UUID: {this['uuid']})")
            number = 0
            for instance in sorted(this["instances"], key=lambda made: made["id"]):
                profile = self.driver.profile(gpu, instance["profile"])
                for ci in instance["cis"]:
                    self.say(f"  MIG {profile.name:<12}Device {number:>2}: (UUID: {ci['uuid']})")
                    number += 1
        return 0

    def log(self, given: dict[str, str]) -> int:
        """All of it in XML, as far as anybody reads it here."""
        gpus = self.driver.listed()
        chosen = self.chosen(given)
        self.say(
            '<?xml version="1.0" ?>',
            '<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">',
            "<nvidia_smi_log>",
            "\t<driver_version>580.95.05</driver_version>",
            f"\t<attached_gpus>{len(chosen)}</attached_gpus>",
        )
        for gpu in chosen:
            this = gpus[gpu]
            self.say(
                f'\t<gpu id="{self.bus(gpu)}">',
                f"\t\t<product_name>{this['name']}</product_name>",
                f"\t\t<mig_mode><current_mig>{this['mode']}</current_mig>"
                f"<pending_mig>{this['pending']}</pending_mig></mig_mode>",
                "\t\t<mig_devices>",
            )
            made = [
                instance
                for instance in sorted(this["instances"], key=lambda made: made["id"])
                if instance["cis"]
            ]
            for number, instance in enumerate(made):
                size = self.driver.sms(gpu, instance["profile"])
                self.say(
                    f"\t\t\t<mig_device><index>{number}</index>",
                    f"\t\t\t<gpu_instance_id>{instance['id']}</gpu_instance_id>",
                    "\t\t\t<compute_instance_id>0</compute_instance_id>",
                    "\t\t\t<device_attributes><shared><multiprocessor_count>"
                    f"{size}</multiprocessor_count></shared></device_attributes>",
                    "\t\t\t</mig_device>",
                )
            if not made:
                self.say("\t\t\tNone")
            self.say("\t\t</mig_devices>", f"\t\t<uuid>{this['uuid']}</uuid>", "\t</gpu>")
        self.say("</nvidia_smi_log>")
        return 0

    def query(self, given: dict[str, str]) -> int:
        if given.get("--format") != "csv,noheader":
            raise Refusal('"--format=" switch is missing.', INVALID)
        gpus = self.driver.listed()
        for gpu in self.chosen(given):
            facts = {"uuid": gpus[gpu]["uuid"], "mig.mode.current": gpus[gpu]["mode"]}
            if given["--query-gpu"] not in facts:
                raise Refusal(f'Field "{given["--query-gpu"]}" is not a valid field.', INVALID)
            self.say(facts[given["--query-gpu"]])
        return 0

    def table(self, width: int, head: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
        """A framed table; every row may have several lines."""
        frame = f"+{'-' * width}+"
        self.say(frame, *(f"|{line:<{width}}|" for line in head), f"|{'=' * width}|")
        for row in rows:
            self.say(*(f"|{line:<{width}}|" for line in row), frame)
        return 0

    def gpu_instances(self, gpus: list[int], given: dict[str, str]) -> int:
        pad, wide = ("  ", 20) if self.new else ("", 18)
        rows = []
        for gpu, made in self.wanted(gpus, given, listing=True):
            profile = self.driver.profile(gpu, made["profile"])
            rows.append([
                f"{gpu:>4}  {'MIG ' + profile.name:<{wide}}{profile.number:>4}"
                f"{made['id']:>9}{made['start']:>11}:{profile.size}"
            ])  # fmt: skip
        head = (
            " GPU instances:",
            f" GPU   Name             {pad}Profile  Instance   Placement",
            f"                        {pad}  ID       ID       Start:Size",
        )
        return self.table(57 if self.new else 55, head, rows)

    def compute_instances(self, gpus: list[int], given: dict[str, str]) -> int:
        rows = []
        for gpu, made in self.wanted(gpus, given, listing=True):
            profile = self.driver.profile(gpu, made["profile"])
            if made["cis"]:
                place = f"{0:>11}:{profile.compute}" if self.new else ""
                rows.append([
                    f"{gpu:>4}{made['id']:>7}       "
                    f"{'MIG ' + profile.name:<18}{profile.default_ci:>4}{0:>10}{place}"
                ])  # fmt: skip
        if not rows:
            raise Refusal("No compute instances found: Not Found", NOT_FOUND)
        more = ("   Placement", "       Start:Size") if self.new else ("", "")
        head = (
            " Compute instances:",
            f" GPU     GPU       Name             Profile   Instance{more[0]}",
            f"       Instance                       ID        ID{more[1]}",
            "         ID",
        )
        return self.table(68 if self.new else 55, head, rows)
