"""The configuration file of `nvidia-mig-parted`, version v1, read as strictly as the tool does."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

NAME = re.compile(r"(?:(\d+)c\.)?(\d+)g\.(\d+)gb(?:\+(\w[\w.,]*)|-(\w[\w.,]*))?")

Config = dict[str, int]


class Failure(Exception):
    """The tool's last message."""


def number(value: Any) -> bool:
    """Whether JSON has an integer here; True is none."""
    return isinstance(value, int) and not isinstance(value, bool)


def device_ids(value: str) -> list[int]:
    """`0x20B010DE` or `0x20B010DE:0x134F10DE` as numbers."""
    try:
        parts = [int(part, 0) for part in value.split(":")]
    except ValueError:
        return []
    return parts if len(parts) <= 2 else []


class Entry:
    """One entry of a configuration."""

    def __init__(self, raw: Any) -> None:
        if not isinstance(raw, dict):
            raise Failure("unmarshal error: an entry is no map")
        for field in ("devices", "mig-enabled"):
            if field not in raw:
                raise Failure(f"unmarshal error: missing required field: {field}")
        for field in raw:
            if field not in ("device-filter", "devices", "mig-enabled", "mig-devices"):
                raise Failure(f"unmarshal error: unexpected field: {field}")
        self.devices = raw["devices"]
        if self.devices != "all" and not (
            isinstance(self.devices, list) and all(map(number, self.devices))
        ):
            raise Failure(f"unmarshal error: invalid input for 'devices': {self.devices}")
        filters = raw.get("device-filter", [])
        self.filters = [filters] if isinstance(filters, str) else filters
        if not isinstance(self.filters, list) or not all(
            isinstance(one, str) for one in self.filters
        ):
            raise Failure(f"unmarshal error: invalid input for 'device-filter': {filters}")
        if not isinstance(raw["mig-enabled"], bool):
            raise Failure(f"unmarshal error: 'mig-enabled' is no bool: {raw['mig-enabled']}")
        self.enabled = raw["mig-enabled"]
        self.wanted = self._counts(raw.get("mig-devices"))
        if self.enabled and self.wanted is None:
            raise Failure(
                "unmarshal error: missing required field 'mig-devices' when 'mig-enabled' is true"
            )
        if not self.enabled and self.wanted:
            raise Failure("unmarshal error: MIG devices included when 'mig-enabled' is false")

    @staticmethod
    def _counts(raw: Any) -> Config | None:
        if raw is None:
            return None
        if not isinstance(raw, dict) or not all(map(number, raw.values())):
            raise Failure(f"unmarshal error: 'mig-devices' are no counts: {raw}")
        where = "unmarshal error: error validating values in 'mig-devices' field: "
        for name, count in raw.items():
            if not isinstance(name, str) or not NAME.fullmatch(name):
                raise Failure(f"{where}invalid format for '{name}'")
            if count < 0:
                raise Failure(f"{where}invalid count for '{count}'")
        if raw and not any(raw.values()):
            raise Failure(f"{where}all counts for all MigProfiles are 0")
        return dict(raw)

    def matches(self, gpu: int, device_id: int) -> bool:
        # No board of ours has a subsystem id, so a filter with one matches none.
        filtered = not self.filters or [device_id << 16 | 0x10DE] in map(device_ids, self.filters)
        return filtered and (self.devices == "all" or gpu in self.devices)


def entry_of(entries: Sequence[Entry], gpu: int, device_id: int) -> Entry | None:
    """The entry that counts for a GPU, the last one; None where none names it."""
    return next((each for each in reversed(entries) if each.matches(gpu, device_id)), None)


def specification(text: str) -> dict[str, list[Entry]]:
    """The configurations of a file."""
    try:
        raw = YAML(typ="safe", pure=True).load(text)
    except YAMLError as error:
        raise Failure(f"unmarshal error: {' '.join(str(error).split())}") from None
    if not isinstance(raw, dict) or "version" not in raw:
        raise Failure("unmarshal error: unable to parse with missing 'version' field")
    if raw["version"] != "v1":
        raise Failure(f"unmarshal error: unknown version: {raw['version']}")
    for field in raw:
        if field not in ("version", "mig-configs"):
            raise Failure(f"unmarshal error: unexpected field: {field}")
    configs = raw.get("mig-configs", {})
    if not isinstance(configs, dict) or ("mig-configs" in raw and not configs):
        raise Failure("unmarshal error: at least one entry in 'mig-configs' is required")
    read: dict[str, list[Entry]] = {}
    for label, entries in configs.items():
        if not isinstance(entries, list) or not entries:
            raise Failure(f"unmarshal error: at least one entry in '{label}' is required")
        read[str(label)] = [Entry(entry) for entry in entries]
    return read
