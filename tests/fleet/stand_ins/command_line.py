"""The command line of `nvidia-smi`: what it takes, and what it says to the rest.

What the real tool has and this one has not (`-lgip`, `-lgipp` and much more) it refuses.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# The short and the long name of each option of `nvidia-smi mig`, and whether it has an argument.
MIG_OPTIONS = {
    "-i": ("--id", True),
    "-gi": ("--gpu-instance-id", True),
    "-ci": ("--compute-instance-id", True),
    "-C": ("--default-compute-instance", False),
    "-lgi": ("--list-gpu-instances", False),
    "-lci": ("--list-compute-instances", False),
    "-cgi": ("--create-gpu-instance", True),
    "-cci": ("--create-compute-instance", None),
    "-dgi": ("--destroy-gpu-instance", False),
    "-dci": ("--destroy-compute-instance", False),
}
OPTIONS = {
    "-i": ("--id", True),
    "-L": ("--list-gpus", False),
    "-q": ("--query", False),
    "-x": ("--xml-format", False),
    "-r": ("--gpu-reset", False),
    "-mig": ("--multi-instance-gpu", True),
    "--query-gpu": ("--query-gpu", True),
    "--format": ("--format", True),
}
# What each action may be restricted by.
RESTRICTED = {
    "-lgi": "-i", "-cgi": "-i -C", "-dgi": "-i -gi", "-lci": "-i -gi", "-cci": "-i -gi",
    "-dci": "-i -gi -ci",
}  # fmt: skip


class Usage(Exception):
    """The command line is wrong."""


def parsed(
    arguments: Sequence[str], options: Mapping[str, tuple[str, bool | None]], tool: str
) -> dict[str, str]:
    """The options by their short names; None as need of an argument means that it is optional."""
    names = {name: short for short, (long, _) in options.items() for name in (short, long)}
    found: dict[str, str] = {}
    waiting = list(arguments)
    while waiting:
        word = waiting.pop(0)
        name, equals, value = word.partition("=")
        if name not in names:
            raise Usage(f"ERROR: Option {word} is not recognized. Please run '{tool} -h' for help.")
        short = names[name]
        needs = options[short][1]
        if not equals and needs is not False and waiting and not waiting[0].startswith("-"):
            value = waiting.pop(0)
        if (needs is True and not value) or (needs is False and equals) or short in found:
            raise Usage(f"Invalid combination of input arguments. Please run '{tool} -h' for help.")
        found[short] = value
    return found
