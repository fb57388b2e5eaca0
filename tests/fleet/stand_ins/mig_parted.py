"""A stand-in for `nvidia-mig-parted`: whole GPUs, by counts, over the same driver.

What it does, in which order, and what it says follow the published behaviour of version 0.15:

- `apply` asserts the modes first. If one GPU of the configuration has the wrong one, *every* GPU
  named is cleared and set, and all GPUs of the node are reset if a change is pending.
- A GPU whose counts are as wanted is left alone; any other is cleared and built again, larger
  instances first, order by order until one works. It counts compute instances: a GPU instance
  without one is not seen, and in the way until a failure clears the GPU.
- `assert` fails unless every GPU of the node matches an entry; a count of zero never matches.
- Its file is read as strictly as by the tool.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from io import StringIO
from itertools import permutations
from typing import Any, NamedTuple

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from tests.fleet.stand_ins.driver import Driver, DriverError

_TEXTS = {"type": "array", "items": {"type": "string"}}
_NUMBERS = {"type": "array", "items": {"type": "integer"}}
_OFF = {"properties": {"mig-enabled": {"const": False}, "mig-devices": {"maxProperties": 0}}}
_ON = {"properties": {"mig-enabled": {"const": True}}, "required": ["mig-devices"]}
_COUNTS = {
    "type": "object",
    "propertyNames": {"pattern": r"^(\d+c\.)?\d+g\.\d+gb([+-]\w[\w.,]*)?$"},
    "additionalProperties": {"type": "integer", "minimum": 0},
    "anyOf": [{"maxProperties": 0}, {"not": {"additionalProperties": {"const": 0}}}],
}
_ENTRY = {
    "type": "object", "required": ["devices", "mig-enabled"], "additionalProperties": False,
    "properties": {
        "devices": {"anyOf": [{"const": "all"}, _NUMBERS]},
        "device-filter": {"anyOf": [{"type": "string"}, _TEXTS]},
        "mig-enabled": {"type": "boolean"},
        "mig-devices": _COUNTS,
    },
    "anyOf": [_ON, _OFF],
}  # fmt: skip
_ENTRIES = {"type": "array", "minItems": 1, "items": _ENTRY}
_FILE = Draft202012Validator({
    "type": "object", "required": ["version"], "additionalProperties": False,
    "properties": {
        "version": {"const": "v1"},
        "mig-configs": {"type": "object", "minProperties": 1, "additionalProperties": _ENTRIES},
    },
})  # fmt: skip


class Failure(Exception):
    """The tool's last message."""


class Entry(NamedTuple):
    """One entry of a configuration; `devices` are indices, or all."""

    devices: list[int] | str
    filters: list[str]
    enabled: bool
    wanted: dict[str, int]

    def matches(self, gpu: int, device_id: int) -> bool:
        # No board of ours has a subsystem id, so a filter with one matches none.
        ids = [int(each, 0) for each in self.filters if ":" not in each]
        is_meant = not self.filters or device_id << 16 | 0x10DE in ids
        return is_meant and (self.devices == "all" or gpu in self.devices)


def specification(text: str) -> dict[str, list[Entry]]:
    """The configurations of a file."""
    try:
        raw = YAML(typ="safe", pure=True).load(text)
    except YAMLError as error:
        raise Failure(f"unmarshal error: {' '.join(str(error).split())}") from None
    if (fault := best_match(_FILE.iter_errors(raw))) is not None:
        raise Failure(
            f"unmarshal error: {'.'.join(map(str, fault.absolute_path))}: {fault.message}"
        )
    return {
        str(label): [
            Entry(
                one["devices"],
                [given] if isinstance(given := one.get("device-filter", []), str) else given,
                one["mig-enabled"],
                one.get("mig-devices", {}),
            )
            for one in entries
        ]
        for label, entries in raw.get("mig-configs", {}).items()
    }


class MigParted:
    """One run on a driver."""

    def __init__(self, driver: Driver, error: Callable[[str], object]) -> None:
        self.driver, self.error = driver, error

    def run(self, arguments: Sequence[str], given: str) -> str:
        """`export`, or `apply` or `assert` of a label in a file, which is given."""
        match [*arguments]:
            case ["export"]:
                out = StringIO()
                YAML().dump({"version": "v1", "mig-configs": {"current": self.export()}}, out)
                return out.getvalue()
            case ["apply" | "assert" as command, "-f", "-", "-c", label]:
                configs = specification(given)
            case _:
                raise Failure(f"No help topic for '{' '.join(arguments)}'")
        if label not in configs:
            raise Failure(f"error selecting MIG config: selected mig-config not present: {label}")
        entries = configs[label]
        if command == "assert":
            if not self.is_applied(entries):
                raise Failure("assertion failure: selected configuration not currently applied")
            return "Selected MIG configuration currently applied\n"
        try:
            if any(self.enabled(gpu) != entry.enabled for entry, gpu in self.walk(entries)):
                self.apply_modes(entries)
            for entry, gpu in self.walk([] if self.is_applied(entries) else entries):
                if entry.enabled and self.current(gpu) != entry.wanted:
                    self.build(gpu, entry.wanted)
        except (Failure, DriverError) as error:
            raise Failure(f"error applying MIG configuration with hooks: {error}") from None
        return "MIG configuration applied successfully\n"

    def walk(self, entries: Sequence[Entry]) -> Iterator[tuple[Entry, int]]:
        for entry in entries:
            for gpu, card in enumerate(self.driver.cards):
                if entry.matches(gpu, card.model.device_id):
                    yield entry, gpu

    def enabled(self, gpu: int) -> bool:
        return self.driver.cards[gpu].mode == "Enabled"

    def current(self, gpu: int) -> dict[str, int]:
        """The compute instances of a GPU, counted."""
        return dict(Counter(i.profile for i in self.driver.cards[gpu].instances if not i.hollow))

    def is_applied(self, entries: Sequence[Entry]) -> bool:
        """Whether every GPU of the node is as an entry says; the last one counts."""
        matched: dict[int, bool] = {}
        for entry, gpu in self.walk(entries):
            if self.enabled(gpu) != entry.enabled:
                return False
            matched[gpu] = not entry.enabled or self.current(gpu) == entry.wanted
        return sum(matched.values()) == len(self.driver.cards)

    def apply_modes(self, entries: Sequence[Entry]) -> None:
        for entry, gpu in self.walk(entries):
            if self.enabled(gpu):
                self.clear(gpu)
            self.driver.set_mode(gpu, "Enabled" if entry.enabled else "Disabled")
        if any(card.mode != card.pending for card in self.driver.cards):
            if any(card.clients for card in self.driver.cards):
                raise Failure("error resetting all GPUs: exit status 255")
            for gpu in range(len(self.driver.cards)):
                self.driver.reset(gpu)

    def build(self, gpu: int, wanted: dict[str, int]) -> None:
        """Make a GPU's instances anew: order by order until one works."""
        known = self.driver.cards[gpu].model.by_name
        names = sorted((name for name, n in wanted.items() for _ in range(n)), reverse=True)
        for order in dict.fromkeys(permutations(names)):
            try:
                if self.current(gpu):
                    self.clear(gpu)
                for name in order:
                    if name not in known:
                        raise Failure(f'MIG profile "{name}" not found on this GPU')
                    gi = self.driver.create_gpu_instance(gpu, known[name])
                    self.driver.create_compute_instance(gpu, gi)
            except (DriverError, Failure) as error:
                self.error(f'level=error msg="Error creating MIG devices: {error}"\n')
            else:
                return
        try:
            self.clear(gpu)
        except DriverError:
            self.error(f'level=error msg="GPU {gpu}: erroneous devices may persist"\n')
        raise Failure(
            "error setting MIGConfig: error attempting multiple config orderings: "
            "all orderings failed"
        )

    def clear(self, gpu: int) -> None:
        for held in [*self.driver.cards[gpu].instances]:
            if not held.hollow:
                self.driver.destroy_compute_instance(gpu, held.gi)
            self.driver.destroy_gpu_instance(gpu, held.gi)

    def export(self) -> list[dict[str, Any]]:
        """One entry for all GPUs that are alike, in the order of their first."""
        alike: dict[str, dict[str, Any]] = {}
        kinds = [f"0x{card.model.device_id:04X}10DE" for card in self.driver.cards]
        for gpu, kind in enumerate(kinds):
            on = self.enabled(gpu)
            said = {"mig-enabled": on, "mig-devices": self.current(gpu) if on else {}}
            entry = alike.setdefault(json.dumps(said, sort_keys=True), {"devices": [], **said})
            entry["devices"].append(gpu)
            entry["device-filter"] = sorted({*entry.get("device-filter", ()), kind})
        for entry in alike.values():
            filters = entry["device-filter"]
            if len({*kinds}) == 1 or len(alike) == 1:
                del entry["device-filter"]
            elif len(filters) == 1:
                entry["device-filter"] = filters[0]
            if entry["devices"] == [gpu for gpu, kind in enumerate(kinds) if kind in filters]:
                entry["devices"] = "all"
        return [*alike.values()]
