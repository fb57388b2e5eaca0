"""What rates are to be reckoned with: a named object that can be replaced, as a queueing rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from math import ceil, floor
from types import MappingProxyType
from typing import Any, ClassVar, Protocol, runtime_checkable

from ...errors import InvalidOption, InvalidProblem
from ...files.documents import number_to_json
from ...values.frozen import FrozenMap
from ...values.names import nearest
from ...values.numbers import exact, shown
from .rates import DAY_S, Rates


def numbers_to_json(told: Mapping[str, Any]) -> dict[str, Any]:
    """Write the fractions among some values exactly."""
    exact = ((key, isinstance(value, Fraction), value) for key, value in told.items())
    return {key: number_to_json(value) if is_number else value for key, is_number, value in exact}


@dataclass(frozen=True)
class RateForecast:
    """Rates at even steps; between two of them a rate goes straight from one to the other."""

    step_s: Fraction
    #: Items per second of each service now, a step from now, two steps from now, ...
    rates_rps: Mapping[str, tuple[Fraction, ...]]

    def __post_init__(self) -> None:
        if len({len(own) for own in self.rates_rps.values()}) != 1:
            raise InvalidProblem("rates are of one or more services and of one length")
        object.__setattr__(self, "rates_rps", FrozenMap(self.rates_rps))

    @property
    def steps(self) -> int:
        """How many steps they last."""
        return len(next(iter(self.rates_rps.values()))) - 1

    def at(self, service: str, step: Fraction) -> Fraction:
        """Return the rate a number of steps from now; beyond the last one, the last."""
        own = self.rates_rps[service]
        before = min(floor(step), self.steps)
        after = min(before + 1, self.steps)
        return own[before] + (step - before) * (own[after] - own[before])

    def highest(self, service: str, first: Fraction, last: Fraction) -> Fraction:
        """Return the highest rate from one step to another; beyond the end there is nothing."""
        first, last = (min(each, Fraction(self.steps)) for each in (first, last))
        inner = self.rates_rps[service][ceil(first) : floor(last) + 1]
        return max(self.at(service, first), self.at(service, last), *inner)


@runtime_checkable
class Forecast(Protocol):
    """What foresees rates. Implement it to bring another one.

    Examples
    --------
    >>> isinstance(FORECASTS["daily"], Forecast)
    True
    """

    @property
    def name(self) -> str:
        """What answers and messages call it."""
        ...

    def courses(self, history: Rates, steps: int) -> RateForecast:
        """Return rates from the last moment of the history on, for `steps` steps.

        The first is what was observed then. It may see fewer steps, but at least one.
        InvalidProblem if the history does not say enough; nothing is made up.
        """
        ...

    def to_json(self) -> dict[str, Any]:
        """The forecast as a JSON object with at least its ``name``."""
        ...


@dataclass(frozen=True)
class Daily:
    """The same time of earlier days, times how busy it has been lately.

    A service's rate at a time is foreseen as q(t) x level. q(t) is a quantile of its rates at this
    time of earlier days; the level is the sum of its rates over the recent time up to now, over the
    sum of q then. A day has 24 hours, also on the two days a year with another number.
    """

    name: ClassVar[str] = "daily"
    quantile: Fraction = Fraction(3, 4)  #: > 0 and <= 1
    #: Seconds up to now, this moment included, that the level is taken of.
    recent_s: Fraction = Fraction(10_800)

    def __post_init__(self) -> None:
        if not 0 < self.quantile <= 1:
            said = f"the quantile of the forecast is {shown(self.quantile)}"
            raise InvalidOption(f"{said}; expected a number > 0 and <= 1")

    def courses(self, history: Rates, steps: int) -> RateForecast:
        """See :class:`Forecast`; every moment foreseen must be known of at least one earlier day.

        Where earlier days had nothing at all lately and now there is something, there is no level:
        then no less than now is foreseen.
        """
        day = Fraction(DAY_S) / history.step_s
        if day.denominator != 1:
            raise InvalidProblem(
                f"a step of the rates is {shown(history.step_s)} s, which is no part of a day; "
                "expected one, so that earlier days have the same times"
            )
        foreseen = {}
        for name, now in _now(history).items():
            own, end = history.rates_rps[name], history.count
            usual: dict[int, Fraction | None] = {}
            for at in range(max(0, end - 1 - int(self.recent_s / history.step_s)), end + steps):
                known = sorted(q for q in own[at % int(day) : at : int(day)] if q is not None)
                usual[at] = known[ceil(self.quantile * len(known)) - 1] if known else None
            lately = [(own[at], q) for at, q in usual.items() if at < end and q is not None]
            before = sum(q for rate, q in lately if rate is not None)
            level = sum(rate for rate, _ in lately if rate is not None) / before if before else None
            rates = [now]
            for at in range(end, end + steps):
                if (q := usual[at]) is None:
                    raise InvalidProblem(
                        f"no earlier day says what {name} has at {history.said(at)}: rates are "
                        f"known from {history.said(0)} to {history.said(end - 1)}; give those of a "
                        "day more, or ask for the forecast 'latest', which foresees no change"
                    )
                rates.append(max(q, now) if level is None else q * level)
            foreseen[name] = tuple(rates)
        return RateForecast(history.step_s, foreseen)

    def to_json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        return {"name": self.name, **numbers_to_json(asdict(self))}

    def __str__(self) -> str:
        return (
            f"the {shown(self.quantile)} quantile of the same time of earlier days, times the "
            f"level of the last {shown(self.recent_s / 3600)} h"
        )


@dataclass(frozen=True)
class Latest:
    """Rates stay as they are: no change is foreseen, and none is kept room for but the margin."""

    name: ClassVar[str] = "latest"

    def courses(self, history: Rates, steps: int) -> RateForecast:
        """See :class:`Forecast`."""
        now = _now(history)
        return RateForecast(history.step_s, {name: (now[name],) * (steps + 1) for name in now})

    def to_json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        return {"name": self.name}

    def __str__(self) -> str:
        return "rates stay as they are"


@dataclass(frozen=True)
class Known(Latest):
    """Rates that are known beforehand, as on a trace: the forecast of the clairvoyant.

    The trace has no gaps from the moment on at which something is foreseen.
    """

    trace: Rates
    name: ClassVar[str] = "known"

    def courses(self, history: Rates, steps: int) -> RateForecast:
        """See :class:`Forecast`; the trace's end is the last that is seen."""
        first = int((history.end_s - self.trace.start_s) / self.trace.step_s)
        own = self.trace.of(history.services).between(first, first + steps)
        known = {
            name: tuple(rate for rate in rates if rate is not None)
            for name, rates in own.rates_rps.items()
        }
        return RateForecast(self.trace.step_s, known)

    def __str__(self) -> str:
        return "the rates that come"


#: The forecasts we know, by name.
FORECASTS: Mapping[str, Forecast] = MappingProxyType({"daily": Daily(), "latest": Latest()})


def forecast_of(text: str | Forecast) -> Forecast:
    """Find a forecast by its name, or refuse it; ``daily:0.9`` has another quantile."""
    if not isinstance(text, str):
        return text
    name, colon, quantile = text.partition(":")
    if name == "daily" and colon:
        return Daily(exact(quantile, "the quantile of the forecast", error=InvalidOption))
    if text in FORECASTS:
        return FORECASTS[text]
    raise InvalidOption(
        f"there is no forecast {text!r}; expected daily, daily:QUANTILE or latest"
        f"{nearest(text, FORECASTS)}"
    )


def _now(history: Rates) -> dict[str, Fraction]:
    """Return the rates at the last moment; refuse a service without one."""
    found, end = {}, history.count - 1
    for name, own in history.rates_rps.items():
        if (now := own[-1]) is None:
            last = max((at for at, rate in enumerate(own) if rate is not None), default=None)
            known = "never" if last is None else f"last at {history.said(last)}"
            raise InvalidProblem(
                f"the rate of {name} is not known at {history.said(end)} "
                f"({history.reason(name, end)}), {known}; expected one at the last moment, which "
                "is now"
            )
        found[name] = now
    return found
