"""The command line of `nvidia-smi`: what the scripts use of it; all else is refused."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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


class Usage(Exception):
    """The command line is wrong."""


def parsed(arguments: Sequence[str], options: Mapping[str, bool], tool: str) -> dict[str, str]:
    """The options with their arguments."""
    found: dict[str, str] = {}
    waiting = list(arguments)
    while waiting:
        word = waiting.pop(0)
        name, equals, value = word.partition("=")
        if name not in options:
            raise Usage(f"ERROR: Option {word} is not recognized. Please run '{tool} -h' for help.")
        if not equals and options[name] and waiting and not waiting[0].startswith("-"):
            value = waiting.pop(0)
        if options[name] is not bool(value) or name in found:
            raise Usage(f"Invalid combination of input arguments. Please run '{tool} -h' for help.")
        found[name] = value
    return found
