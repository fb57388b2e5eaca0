"""A service, and what a plan promises of its latencies and under which conditions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, TypeAlias, get_args

from ...errors import InvalidProblem
from ...files.numerals import is_whole
from ...problem.parts import MOST_REPLICAS
from ...values.frozen import FrozenMap
from ...values.names import checked_names
from ...values.numbers import Number, exact, shown

#: Where requests wait: in one queue of the instance, or in one of each of its processes.
Queue: TypeAlias = Literal["instance", "process"]
QUEUES = get_args(Queue)
_WAIT = {"instance": "each", "process": "a process"}
NO_EXTRA: FrozenMap[str, str] = FrozenMap()
#: Further columns that placing a plan heeds; planning heeds the first.
HEEDED = ("min_replicas", "spread", "anti_affinity")


@dataclass(frozen=True, slots=True, init=False)
class Service:
    """One model to serve; InvalidProblem if a name is empty or a number is out of its range.

    Examples
    --------
    >>> service = Service("chat", "bert", 19, "418.5", allowed_profiles=["3g.40gb"])
    >>> service.rate_rps, service.latency_limit_ms
    (Fraction(19, 1), Fraction(837, 2))
    """

    name: str  #: its own; several services may run the same model
    model: str  #: as the operating points call it
    rate_rps: Fraction  #: items per second that must be served, >= 0
    #: The latency an answer may take, > 0; the queueing rule decides how much of it one batch may
    #: use. None, if only the rate counts: then nothing is promised of latencies.
    latency_limit_ms: Fraction | None
    #: Profiles its instances may have (``3g.40gb``; ``mps:40`` for a share under MPS); None allows
    #: every one that has been measured.
    allowed_profiles: tuple[str, ...] | None
    extra: FrozenMap[str, str]  #: further columns of the user's table, kept as they were written
    #: How many of its requests may be later than the limit, without which it cannot be given: 0.01
    #: is "p99 within the limit". None leaves it to the rule.
    late_share: Fraction | None
    #: Whether requests wait in one queue of an ``instance`` or in one of each ``process``. None
    #: leaves it to the rule.
    queue: str | None
    #: Where it was read (``services.csv:3``), said in errors about it; equality ignores it.
    origin: str = field(compare=False, repr=False)

    def __init__(
        self,
        name: str,
        model: str,
        rate_rps: Number,
        latency_limit_ms: Number | None = None,
        allowed_profiles: Iterable[str] | None = None,
        extra: Mapping[str, str] | None = None,
        origin: str = "",
        late_share: Number | None = None,
        queue: str | None = None,
    ) -> None:
        put = object.__setattr__
        put(self, "name", require_name(name, "service"))
        put(self, "model", require_name(model, "model"))
        put(self, "rate_rps", exact(rate_rps, f"the rate of service {name!r}"))
        of, limit = f"service {name!r}", latency_limit_ms
        if limit is not None and not (limit := exact(limit, f"the latency limit of {of}")):
            raise InvalidProblem(f"the latency limit of {of} is 0 ms; expected a number > 0")
        if limit is None and late_share is not None:
            raise InvalidProblem(
                f"{of} has a late share and no latency limit that requests could miss; give both "
                "or neither"
            )
        put(self, "latency_limit_ms", limit)
        put(self, "allowed_profiles", _profiles(allowed_profiles, name))
        put(self, "extra", FrozenMap(extra) if extra else NO_EXTRA)
        put(self, "origin", origin)
        put(self, "late_share", None if late_share is None else require_late_share(late_share, of))
        if queue not in (None, *QUEUES):
            expected = f"expected {' or '.join(QUEUES)}: where requests wait"
            raise InvalidProblem(f"the queue of {of} is {queue!r}; {expected}")
        put(self, "queue", queue)

    @property
    def min_replicas(self) -> int:
        """Instances that its column of this name asks for; InvalidProblem if it is no number."""
        asked = self.extra.get("min_replicas", "").strip() or "0"
        if not is_whole(asked) or int(asked) > MOST_REPLICAS:
            expected = f"expected a whole number up to {MOST_REPLICAS}"
            raise self.fault(f"min_replicas of {self.name!r} is {asked!r}; {expected}")
        return int(asked)

    def fault(self, what: str) -> InvalidProblem:
        """Build an error about this service that says where it was read."""
        return InvalidProblem(f"{self.origin}: {what}" if self.origin else what)

    def __str__(self) -> str:
        limit = self.latency_limit_ms
        within = "without a latency limit" if limit is None else f"within {shown(limit)} ms"
        model = "" if self.model == self.name else f" ({self.model})"
        return f"{self.name}{model}: {shown(self.rate_rps)} requests/s {within}"


@dataclass(frozen=True, slots=True)
class Promise:
    """What a plan promises of every service.

    Examples
    --------
    >>> print(Promise(Fraction(1, 100), "instance", Fraction(1, 10)))
    99 % of the requests within their limit, at up to 10 % more than the rates given, if they
    arrive as a Poisson stream and instances get shares like their supplies and have one queue each
    """

    late_share: Fraction  #: of the requests that may miss the limit; a service's own goes before it
    queue: str  #: where requests wait, of :data:`QUEUES`; a service's own word goes before it
    rate_margin: Fraction = Fraction(0)  #: rates may be higher than the services' by this share
    arrivals: str = "poisson"  #: how requests arrive
    #: How they are spread over instances: ``weighted``, like their supplies, or ``equal``.
    routing: str = "weighted"
    latency_margin: Fraction = Fraction(0)  #: batches may be slower than measured by this share

    def __str__(self) -> str:
        most = f"{shown(100 * self.rate_margin)} % more than " if self.rate_margin else ""
        shares = "equal shares" if self.routing == "equal" else "shares like their supplies"
        slow = shown(100 * self.latency_margin)
        slow = f", with batches up to {slow} % slower than measured" if self.latency_margin else ""
        return (
            f"{shown(100 * (1 - self.late_share))} % of the requests within their limit, at up to "
            f"{most}the rates given{slow}, if they arrive as a Poisson stream and instances get "
            f"{shares} and have one queue {_WAIT[self.queue]}"
        )


def require_late_share(share: Number, of: str) -> Fraction:
    """Return a tolerated late share exactly; InvalidProblem if it does not lie between 0 and 1."""
    value = exact(share, f"the late share of {of}")
    if not 0 < value < 1:
        raise InvalidProblem(
            f"the late share of {of} is {shown(value)}; expected a number > 0 and < 1: 0.01 for "
            "99 % of the requests within the limit"
        )
    return value


def _profiles(profiles: Iterable[str] | None, service: str) -> tuple[str, ...] | None:
    if profiles is None:
        return None
    if isinstance(profiles, str):
        raise InvalidProblem(
            f"the allowed profiles of service {service!r} are the text {profiles!r}; expected a "
            f"list of names: [{profiles!r}]"
        )
    names = tuple(dict.fromkeys(require_name(p, "profile") for p in profiles))
    if not names:
        raise InvalidProblem(
            f"service {service!r} allows no profile at all; name one, or leave the list out to "
            "allow every measured one"
        )
    return names


def require_name(name: str, what: str) -> str:
    """Return a name that can stand in tables and documents, or refuse it."""
    # hundreds of points are read in a few milliseconds: the full check is for the odd ones
    if type(name) is str and name and name.isprintable():
        return name
    return checked_names([name], what)[0]


def combine_supplies(supplies: Collection[tuple[Fraction, int]], routing: str) -> Fraction:
    """Return what instances supply together; of ``equal`` routing each counts as the smallest.

    `supplies`: Each with how many instances supply so much alone.
    """
    if routing == "equal":
        smallest = min((each for each, _ in supplies), default=Fraction(0))
        supplies = [(smallest, n) for _, n in supplies]
    return sum((n * each for each, n in supplies), Fraction(0))
