"""The transition that ``cms apply`` is asked for: read, or found from what runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from cms.errors import FileError

from . import fleets, options
from .searching import heard
from .session import Session, open_document

if TYPE_CHECKING:
    from cms.fleet.deployment.transition import Impossible, Transition

METHODS = ("ours", "exchange_and_compact")
#: What is said of a transition by what proves that there is none.
_IMPOSSIBLE = {
    "checked": "there is no such transition, proof checked:",
    "solver": "there is no such transition, claimed by the solver:",
    "none": "no transition was found, and there may be one:",
}


class Way(NamedTuple):
    """A transition, the floor that was asked for in words, and further lines about it."""

    found: Transition
    floor: str
    notes: Iterable[str]


class Asked(NamedTuple):
    """What is asked of a transition on the command line."""

    current: Path | None
    target: Path
    tool: str
    floor: list[str] | None
    spare: str
    method: str
    max_age: str
    time_limit: str
    seed: int

    def find(self, session: Session, context: typer.Context) -> Way | int:
        """Return the transition, or the exit code if there is none."""
        with session.reading():
            kind, document = open_document(self.target)
            if kind == "cms-transition":
                from cms.fleet.deployment.transition import transition_from_json

                searched = {"current", "floor", "spare", "method", "time_limit"}
                heeded = " ".join(context.params.keys() - searched)
                options.refuse_others(context, heeded, "the transition says it; leave it out")
                given = transition_from_json(document)
                fleets.refuse_stale(session, given.start, self.max_age)
                return Way(given, "as listed", ())
        if self.current is None:
            raise options.usage_error(
                "give what runs: --current now.json, which 'cms observe SOURCE... -o now.json' "
                "writes"
            )
        share, shares = self._floors()
        how: dict[str, Any] = {"floor": share, "durations": session.fleet.transition.durations}
        if self.method not in METHODS:
            raise options.usage_error(
                f"{self.method!r}: expected {' or '.join(METHODS)}", "--method"
            )
        is_ours = self.method == "ours"
        if is_ours:
            how |= {
                "floors": shares, "spare": options.spare(self.spare, "--spare"),
                "seed": self.seed, "tool": self.tool,
                "time_limit": options.time_limit(self.time_limit),
                "cancel": session.interrupts.cancel,
            }  # fmt: skip
        elif self.tool != "nvidia-smi" or shares or self.spare != "auto":
            raise options.usage_error(
                "exchange_and_compact cuts each instance and takes one --floor for all; leave out "
                "--tool, --spare and floors of single services, of fleet.toml as well",
                "--method",
            )
        with session.reading():
            from cms.fleet.deployment import Deployment, DesiredState, desired_state, transition
            from cms.fleet.deployment.observation.devices import renumber_gpus
            from cms.fleet.serving.plan_document import plan_from_json
            from cms.values.numbers import shown

            start = fleets.read_fleet(self.current)
            to: Deployment | DesiredState
            if kind != "cms-plan":
                to = fleets.deployment_of(document)
                start, to = renumber_gpus(start, to), renumber_gpus(to, start)
                if not is_ours:
                    raise options.usage_error(
                        "it decides itself what lies where, and so does a deployment; give a plan",
                        "--method",
                    )
            else:
                plan = plan_from_json(document)
                if plan.solution.cost is None:
                    raise FileError(self.target, "the plan has no schedule: nothing leads to it")
                to = desired_state(plan)
                if is_ours:
                    how["as_grouped"] = session.fleet.placement.as_grouped
            if "floor" not in options.given_options(context):  # fleet.toml outlives services
                for name in shares.keys() - {s.name for s in (*start.services, *to.services)}:
                    session.warn(f"[transition] floors: no service {name!r} is there")
                    del shares[name]
            fleets.refuse_stale(session, start, self.max_age)
        find: Callable[..., Transition | Impossible] = (
            transition.transition if is_ours else transition.exchange_and_compact
        )
        found = heard(session, lambda: find(start, to, **how), doing="planning")
        if isinstance(found, transition.Impossible):
            return fleets.say_impossible(
                session, found, {"found": False}, _IMPOSSIBLE[found.proof.value]
            )
        own = (f"{name} {shown(each * 100)} %" for name, each in shares.items())
        words = ", ".join([f"{shown(share * 100)} %", *own])
        if self.tool == "nvidia-smi":
            return Way(found, words, ())
        from cms.fleet.report.transitions import whole_gpus_words

        return Way(found, words, whole_gpus_words(found, to, self.tool))

    def _floors(self) -> tuple[Fraction, dict[str, Fraction]]:
        """Return the share that all services keep, and those of single ones."""
        given = self.floor or ()
        alone = [text for text in given if "=" not in text]
        if len(alone) > 1:
            raise options.usage_error(f"{alone[1]!r} is a second one for all services", "--floor")
        share = options.share(alone[0], "--floor") if alone else Fraction(1)
        named = options.pairs([text for text in given if "=" in text], "--floor", "chat=50%")
        return share, {name: options.share(text, "--floor") for name, text in named.items()}


def read_known_rates(path: Path) -> dict[str, list[tuple[Fraction, Fraction]]]:
    """Read rates by service, each from a second on."""
    from cms.fleet.replanner import read_rates

    told = read_rates(path)
    return {
        service: [(at * told.step_s, rate) for at, rate in enumerate(every) if rate is not None]
        for service, every in told.rates_rps.items()
    }
