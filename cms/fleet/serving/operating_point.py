"""An operating point: what was measured for one way of running a model on one instance."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from ...errors import InvalidProblem
from ...values.frozen import FrozenMap
from ...values.numbers import Number, exact, shown
from .service import NO_EXTRA, require_name

MPS_PREFIX = "mps:"
#: The further column that says how many seconds its server takes to come up.
COLD_START = "cold_start_s"


@dataclass(frozen=True, slots=True, init=False)
class OperatingPoint:
    """A model on one instance, with its processes and batch: throughput and latency.

    InvalidProblem if a name is empty or a number is out of its range.

    Examples
    --------
    >>> print(OperatingPoint("bert", "a100-80gb", "1g.10gb", 2, 1, "104.84", 19))
    bert on 1g.10gb, 2 processes, batch 1: 104.84 requests/s at 19 ms
    """

    model: str
    device: str  #: the GPU it was measured on: a catalogue key (``a100-80gb``) or an alias of one
    profile: str  #: of MIG (``3g.40gb``), or ``mps:40`` for 40 % of a whole GPU under MPS
    #: Processes inside the instance, >= 1. Under MPS shares each process is a client with a share
    #: of its own, so there it is 1.
    processes: int
    batch: int  #: items a batch holds, >= 1
    throughput_rps: Fraction  #: items per second of the whole instance, all its processes, > 0
    latency_ms: Fraction  #: what one batch takes, > 0, without the wait before it
    extra: FrozenMap[str, str]  #: further columns of the user's table, kept as they were written
    #: Where it was read (``points.csv:14``), said in errors about it; equality ignores it.
    origin: str = field(compare=False, repr=False)

    def __init__(
        self,
        model: str,
        device: str,
        profile: str,
        processes: int,
        batch: int,
        throughput_rps: Number,
        latency_ms: Number,
        extra: Mapping[str, str] | None = None,
        origin: str = "",
    ) -> None:
        put = object.__setattr__
        put(self, "model", require_name(model, "model"))
        put(self, "device", require_name(device, "device"))
        put(self, "profile", require_name(profile, "profile"))
        for what, count in (("processes", processes), ("batch", batch)):
            put(self, what, count)
            if type(count) is not int or count < 1:
                raise InvalidProblem(
                    f"an operating point of {model!r} on {profile} has {what} = {count!r}; "
                    "expected an integer >= 1"
                )
        put(self, "throughput_rps", exact(throughput_rps, "the throughput of an operating point"))
        put(self, "latency_ms", exact(latency_ms, "the latency of an operating point"))
        if not (self.throughput_rps and self.latency_ms):
            raise InvalidProblem(
                f"{self} cannot be; leave points that did not run out of the table"
            )
        if mps_share(profile) is not None and processes != 1:
            raise InvalidProblem(
                f"an operating point of {model!r} on {profile} has processes = {processes}; each "
                "process under MPS is a client with a share of its own, so expected 1"
            )
        put(self, "extra", FrozenMap(extra) if extra else NO_EXTRA)
        put(self, "origin", origin)

    @property
    def batch_ms(self) -> Fraction:
        """How long a full batch takes: by the throughput, or a latency that is clearly longer."""
        return self.latency_ms if self.is_slow else self.computed_batch_ms

    @property
    def computed_batch_ms(self) -> Fraction:
        """How long a batch takes by the throughput."""
        return 1000 * self.processes * self.batch / self.throughput_rps

    @property
    def is_slow(self) -> bool:
        """Whether the latency is clearly longer than what the throughput says."""
        computed = self.computed_batch_ms
        return self.latency_ms > computed + 1 and self.latency_ms * 20 > computed * 21

    @property
    def setting(self) -> str:
        """How the instance is run, in words: ``2g.20gb, 3 processes, batch 8``."""
        processes = "1 process" if self.processes == 1 else f"{self.processes} processes"
        return f"{self.profile}, {processes}, batch {self.batch}"

    def fault(self, what: str) -> InvalidProblem:
        """Build an error about this point that says where it was read."""
        return InvalidProblem(f"{self.origin}: {what}" if self.origin else what)

    def __str__(self) -> str:
        throughput, latency = shown(self.throughput_rps), shown(self.latency_ms)
        return f"{self.model} on {self.setting}: {throughput} requests/s at {latency} ms"


def mps_share(profile: str) -> int | None:
    """Read the share out of ``mps:40``: 1 to 100 per cent of a GPU, or None for a MIG profile."""
    if not profile.startswith(MPS_PREFIX):
        return None
    written = profile.removeprefix(MPS_PREFIX)
    # "mps:040" and "mps:40" must not become two blocks
    if re.fullmatch("[1-9][0-9]?|100", written):
        return int(written)
    raise InvalidProblem(
        f"the profile {profile!r} is no share of a GPU; expected {MPS_PREFIX}1 to {MPS_PREFIX}100, "
        "in whole per cent"
    )
