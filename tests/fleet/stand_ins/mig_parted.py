"""A stand-in for `nvidia-mig-parted`: whole GPUs, by counts, over the same driver.

What it does, in which order, and what it says follow the published behaviour of version 0.15:

- `apply` asserts the modes first. If one GPU of the configuration has the wrong one, *every* GPU
  named is cleared and set, and all GPUs of the node are reset if a change is pending.
- A GPU whose counts are as wanted is left alone; any other is cleared and built again, larger
  instances first, order by order until one works. It counts compute instances: a GPU instance
  without one is not seen, and in the way until a failure clears the GPU.
- `assert` fails unless every GPU of the node matches an entry; a count of zero never matches.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.fleet.stand_ins.driver import STATE, Driver, DriverError, Killed
from tests.fleet.stand_ins.mig_parted_file import NAME, Config, Entry, Failure, specification


def orders(names: list[str], at: int = 0) -> Iterator[list[str]]:
    """The orders of a list, as the tool tries them: it swaps each other name to the front."""
    if at == len(names):
        yield list(names)
    for index in range(at, len(names)):
        if names[index] not in names[at:index]:
            names[at], names[index] = names[index], names[at]
            yield from orders(names, at + 1)
            names[at], names[index] = names[index], names[at]


def size(name: str) -> tuple[int, str]:
    """What larger instances are sorted by: slices, attributes."""
    found = NAME.fullmatch(name)
    assert found is not None
    return int(found[2]), found[4] or ""


class Tool:
    """One run on a driver."""

    def __init__(self, driver: Driver, error: Callable[[str], object]) -> None:
        self.driver = driver
        self.error = error

    def walk(self, entries: list[Entry]) -> Iterator[tuple[Entry, int]]:
        for entry in entries:
            for gpu in range(len(self.driver.gpus)):
                if entry.matches(gpu, self.driver.model(gpu).device_id):
                    yield entry, gpu

    def enabled(self, gpu: int) -> bool:
        return bool(self.driver.gpus[gpu]["mode"] == "Enabled")

    def current(self, gpu: int) -> Config:
        """The compute instances of a GPU, counted."""
        counts: Config = {}
        for made in self.driver.gpus[gpu]["instances"]:
            name = self.driver.profile(gpu, made["profile"]).name
            if made["cis"]:
                counts[name] = counts.get(name, 0) + 1
        return counts

    # Assert

    def modes_match(self, entries: list[Entry]) -> bool:
        return all(self.enabled(gpu) == entry.enabled for entry, gpu in self.walk(entries))

    def is_applied(self, entries: list[Entry]) -> bool:
        """Whether every GPU of the node is as an entry says; the last one counts."""
        matched: dict[int, bool] = {}
        for entry, gpu in self.walk(entries):
            if self.enabled(gpu) != entry.enabled:
                return False
            matched[gpu] = not entry.enabled or self.current(gpu) == entry.wanted
        return sum(matched.values()) == len(self.driver.gpus)

    # Apply

    def apply_modes(self, entries: list[Entry]) -> None:
        pending = False
        for entry, gpu in self.walk(entries):
            if self.enabled(gpu):
                try:
                    self.clear(gpu)
                except DriverError as error:
                    raise Failure(f"error clearing existing MIG configurations: {error}") from None
            try:
                self.driver.set_mode(gpu, "Enabled" if entry.enabled else "Disabled")
            except DriverError as error:
                raise Failure(f"error setting MIG mode: error setting Mig mode: {error}") from None
            this = self.driver.gpus[gpu]
            pending = pending or this["mode"] != this["pending"]
        if pending:
            self.reset_all()

    def reset_all(self) -> None:
        every = range(len(self.driver.gpus))
        try:
            if any(self.driver.gpus[gpu]["clients"] for gpu in every):
                raise Failure("error resetting all GPUs: exit status 255")
            for gpu in every:
                self.driver.reset(gpu)
        except DriverError:
            raise Failure("error resetting all GPUs: exit status 255") from None

    def apply_devices(self, entries: list[Entry]) -> None:
        for entry, gpu in self.walk(entries):
            if entry.enabled and not self.enabled(gpu):
                raise Failure("unable to apply MIG config with MIG mode disabled")
            if not entry.enabled and self.enabled(gpu):
                raise Failure(
                    "MIG mode is currently enabled, but the configuration specifies it should be "
                    "disabled"
                )
            if entry.enabled and self.current(gpu) != entry.wanted:
                self.build(gpu, entry.wanted or {})

    def build(self, gpu: int, wanted: Config) -> None:
        """Make a GPU's instances anew: order by order until one works."""
        names = [name for name, count in wanted.items() for _ in range(count)]
        for order in orders(sorted(names, key=size, reverse=True)):
            try:
                if self.current(gpu):
                    self.clear(gpu)
                self.make(gpu, order)
            except (DriverError, Failure) as error:
                self.error(f'level=error msg="Error creating MIG devices: {error}"\n')
            else:
                return
        try:
            self.clear(gpu)
        except DriverError:
            self.error(
                f'level=error msg="Error clearing MIG config on GPU {gpu}, erroneous devices may '
                'persist"\n'
            )
        raise Failure(
            "error setting MIGConfig: error attempting multiple config orderings: "
            "all orderings failed"
        )

    def make(self, gpu: int, order: list[str]) -> None:
        known = self.driver.model(gpu).by_name
        for name in order:
            if name not in known:
                raise Failure(f'MIG profile "{name}" not found on this GPU')
            gi = self.driver.create_gpu_instance(gpu, known[name].number)
            self.driver.create_compute_instance(gpu, gi)

    def clear(self, gpu: int) -> None:
        for made in list(self.driver.gpus[gpu]["instances"]):
            if made["cis"]:
                self.driver.destroy_compute_instance(gpu, made["id"])
            self.driver.destroy_gpu_instance(gpu, made["id"])

    # Export

    def export(self) -> list[dict[str, Any]]:
        """One entry for all GPUs that are alike, in the order of their first."""
        entries: list[dict[str, Any]] = []
        kinds: dict[str, list[int]] = {}
        for gpu in range(len(self.driver.gpus)):
            kind = f"0x{self.driver.model(gpu).device_id:04X}10DE"
            kinds.setdefault(kind, []).append(gpu)
            on = self.enabled(gpu)
            counts = self.current(gpu) if on else {}
            for entry in entries:
                if (entry["mig-enabled"], entry["mig-devices"]) == (on, counts):
                    entry["devices"].append(gpu)
                    entry["device-filter"] = sorted({*entry["device-filter"], kind})
                    break
            else:
                entries.append({
                    "device-filter": [kind],
                    "devices": [gpu],
                    "mig-enabled": on,
                    "mig-devices": counts,
                })  # fmt: skip
        for entry in entries:
            filters = entry["device-filter"]
            every = sorted(gpu for kind in filters for gpu in kinds[kind])
            if len(kinds) == 1 or len(entries) == 1:
                del entry["device-filter"]
            elif len(filters) == 1:
                entry["device-filter"] = filters[0]
            if entry["devices"] == every:
                entry["devices"] = "all"
        return entries


def as_yaml(entries: list[dict[str, Any]]) -> str:
    """What `export` writes: lists of devices and filters in one line, maps in block style."""
    lines = ["version: v1", "mig-configs:", "  current:"]
    for entry in entries:
        fields = []
        for field in ("device-filter", "devices"):
            if field in entry:
                value = entry[field]
                # As its library does: a text that reads as a number is quoted.
                flat = value if value == "all" else json.dumps(value)
                fields.append(f"{field}: {flat}")
        fields.append(f"mig-enabled: {str(entry['mig-enabled']).lower()}")
        counts = entry["mig-devices"]
        fields.append("mig-devices:" if counts else "mig-devices: {}")
        fields += [f"  {name}: {counts[name]}" for name in sorted(counts)]
        lines += [f"  {'-' if first == 0 else ' '} {line}" for first, line in enumerate(fields)]
    return "\n".join(lines) + "\n"


def run(
    tool: Tool, arguments: list[str], write: Callable[[str], object], read: Callable[[], str]
) -> None:
    """`export`, or `apply` or `assert` of a file (- is standard input) and the label in it."""
    match arguments:
        case ["export"]:
            write(as_yaml(tool.export()))
            return
        case ["apply" | "assert" as command, "-f", file, "-c", label]:
            configs = specification(read() if file == "-" else Path(file).read_text("utf-8"))
        case _:
            raise Failure(f"No help topic for '{' '.join(arguments)}'")
    if label not in configs:
        raise Failure(f"error selecting MIG config: selected mig-config not present: {label}")
    entries = configs[label]
    if command == "assert":
        if not tool.is_applied(entries):
            raise Failure("assertion failure: selected configuration not currently applied")
        write("Selected MIG configuration currently applied\n")
        return
    try:
        if not tool.modes_match(entries):
            tool.apply_modes(entries)
        if not tool.is_applied(entries):
            tool.apply_devices(entries)
    except Failure as error:
        raise Failure(f"error applying MIG configuration with hooks: {error}") from None
    write("MIG configuration applied successfully\n")


def main(
    arguments: Sequence[str],
    environment: Mapping[str, str] = os.environ,
    write: Callable[[str], object] = sys.stdout.write,
    error: Callable[[str], object] = sys.stderr.write,
    read: Callable[[], str] = sys.stdin.read,
) -> int:
    """Run the tool and say its exit status."""
    with Driver(environment[STATE]) as driver:
        code = 0
        try:
            run(Tool(driver, error), list(arguments), write, read)
        except Failure as failure:
            text = str(failure)
            error(f'level=fatal msg="{text[:1].upper()}{text[1:]}"\n')
            code = 1
        except Killed:
            code = 137
        driver.state["log"].append(
            {"tool": "nvidia-mig-parted", "arguments": list(arguments), "code": code}
        )
    return code
