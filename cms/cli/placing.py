"""What ``cms plan`` does with GPUs that are there: places a plan, or puts together what runs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import cms.fleet
from cms.errors import FileError, InvalidOption
from cms.values.frozen import FrozenMap
from cms.values.numbers import shown
from cms.values.words import count, money

from . import options
from .fleet_file import limit_groups
from .fleets import read_current
from .options import find_gpu
from .searching import Search, heard
from .session import Exit, Session

if TYPE_CHECKING:
    from cms.fleet.deployment import DesiredState, FleetGpu, FleetNode
    from cms.fleet.placement import Compacted, PlacementInfeasible, PlacementResult

FREED = ("gpus", "nodes")


def read_gpus_there(
    session: Session, nodes: Path | None, current: Path | None, gpu: list[str] | None, max_age: str
) -> cms.fleet.Deployment | None:
    """Read the GPUs that there are, with what is on them."""
    from cms.fleet.deployment.model import PRICE

    today = None if current is None else read_current(session, current, max_age)
    if nodes is None:
        return today
    devices = {each.key: each for each in (find_gpu(key, "--gpu") for key in gpu or ())}
    table = cms.fleet.read_nodes(nodes, devices)
    if today is None:
        return table
    own = {node.name: node for node in today.nodes}
    prices = {n.name: {PRICE: n.labels[PRICE]} for n in table.nodes if PRICE in n.labels}
    for node in table.nodes:
        if node.name in own and _types(node) != _types(own[node.name]):
            what = f"node {node.name!r} has other GPUs here than in {current}"
            raise FileError(nodes, what, expected="the same", fix="or leave it out here")
    more = tuple(node for node in table.nodes if node.name not in own)
    known = (
        replace(node, labels=FrozenMap({**node.labels, **prices.get(node.name, {})}))
        for node in today.nodes
    )
    return replace(today, nodes=(*known, *more))


def measured_gpus(
    there: cms.fleet.Deployment, points: Sequence[cms.fleet.OperatingPoint]
) -> list[cms.fleet.Gpu]:
    """Return the types of GPUs that are there and that something was measured on."""
    from cms.fleet.serving.measurements import is_measured_on

    known = {point.device: point for point in points}.values()
    gpus = there.devices.values()
    return [gpu for gpu in gpus if any(is_measured_on(each, gpu) for each in known)]


def _types(node: FleetNode) -> list[tuple[int, str]]:
    return [(each.index, each.gpu.key) for each in node.gpus]


N = TypeVar("N")


@dataclass(frozen=True, slots=True)
class Placer:
    """The GPUs that there are, how long placing may take, and the files to write."""

    session: Session
    there: cms.fleet.Deployment
    time_limit: float | None
    files: tuple[Path | None, Path | None]
    limits: dict[str, int]  # GPUs of a type at most
    costs: dict[str, Fraction]
    drop: list[str] | None  # services that are left out; None: whatever is not there

    def place(self, plan: cms.fleet.Plan, title: str) -> int:
        """Place a plan and keep most of what runs there."""
        from cms.fleet.placement import PlacementInfeasible

        session = self.session
        if plan.solution.cost is None:
            session.warn("the plan has no schedule, so nothing can be placed")
            return session.code_of(plan.solution)
        wanted = cms.fleet.desired_state(plan)
        gpus = [*wanted.devices.values()]
        costs, caps = self._of_plan(self.costs, gpus), self._of_plan(self.limits, gpus)
        prices = {key: costs.get(key, cost) for key, cost in wanted.prices.items()}
        there = plan.serving.available
        groups = (*wanted.group_limits, *limit_groups(session.fleet, gpus, prices, there))
        wanted = replace(
            wanted, max_gpus={**wanted.max_gpus, **caps}, prices=prices,
            group_limits=tuple(dict.fromkeys(groups)),
        )  # fmt: skip
        as_grouped = session.fleet.placement.as_grouped
        constraints = self._constraints(wanted.services)
        if as_grouped and constraints:
            what = "constraints decide which instances share a GPU, and as_grouped leaves that to"
            raise options.usage_error(f"{what} the plan; give one of them", "[placement]")

        place = partial(
            cms.fleet.place, wanted, constraints=constraints, as_grouped=as_grouped,
            time_limit=self.time_limit, cancel=session.interrupts.cancel,
        )  # fmt: skip
        found = heard(session, lambda: place(self.there), doing="placing")
        if not isinstance(found, PlacementInfeasible):
            return self._show(found.deployment, title, str(found), found)
        doing, more = "no place; looking for sufficient changes", ""
        is_capped = any(n > wanted.max_gpus.get(key, n) for key, n in wanted.gpus.items())
        if not (constraints or is_capped or wanted.group_limits) and len(wanted.gpus) == 1:
            more = heard(session, lambda: self._sufficient_gpus(wanted, place), doing=doing)
        return self._refuse(found, more)

    def _of_plan(self, named: Mapping[str, N], gpus: Sequence[cms.fleet.Gpu]) -> dict[str, N]:
        """Return what is given of GPUs by the keys of a plan's; those of no plan's do not count."""
        from cms.fleet.hardware.catalogue import is_called

        for name in named:
            if not any(is_called(gpu, name) for gpu in gpus):
                find_gpu(name)
        return {gpu.key: n for gpu in gpus for name, n in named.items() if is_called(gpu, name)}

    def place_plan(self, plan: cms.fleet.Plan, title: str, extra: Fraction, how: Search) -> int:
        """Find, of all plans at the least cost, the one that keeps most of what runs."""
        from cms.fleet.placement import PlacementInfeasible, place_plan

        session = self.session
        constraints = self._constraints(cms.fleet.desired_state(plan).services)
        call = partial(
            place_plan, plan, self.there, constraints=constraints, extra_cost=extra, seed=how.seed,
            time_limit=how.time_limit, cancel=session.interrupts.cancel,
        )  # fmt: skip
        found = heard(session, call, doing="placing")
        if isinstance(found, PlacementInfeasible):
            return self._refuse(found, "")
        code = self._show(found.deployment, title, str(found), found)
        return code or session.code_of(plan.solution)

    def compact(self, max_restarts: str | None, free: str, title: str) -> int:
        """Put what runs together on the fewest GPUs or nodes."""
        most, expected = list[int | None]([None]), "a whole number, or several: 0,2,5"
        if max_restarts is not None:
            parts = max_restarts.split(",")
            most = [options.whole(each.strip(), "--max-restarts", expected) for each in parts]
        options.require_known(free, FREED, "--free")

        def search() -> list[Compacted]:
            from cms.fleet.placement import compact

            how: dict[str, Any] = {
                "free": free, "constraints": self._constraints(self.there.services),
                "time_limit": self.time_limit, "cancel": self.session.interrupts.cancel,
            }  # fmt: skip
            return [compact(self.there, max_restarts=number, **how) for number in most]

        found = heard(self.session, search, doing="looking for what to move together")
        said = [f"at most {number}: " if len(most) > 1 else "" for number in most]
        words = (f"{head}{each}" for head, each in zip(said, found, strict=True))
        return self._show(found[-1].deployment, title, "; ".join(words))

    def _show(
        self, found: cms.fleet.Deployment, title: str, end: str,
        result: PlacementResult | None = None,
    ) -> int:  # fmt: skip
        from cms.fleet.deployment import deployment_to_json
        from cms.fleet.report.deployments import deployment_page

        end += f"\nplan: {self._tell_change(found)}"
        if result is not None and found.plan is not None:
            end += f"; {self._tell_cost(result, found.plan)}"
        document, view = partial(deployment_to_json, found), partial(deployment_page, found, title)
        self.session.show(document, lambda: view(end=end), *self.files)
        return self.session.code()

    def _tell_change(self, after: cms.fleet.Deployment) -> str:
        """Say how many instances are kept, created and so on, and which are too few."""
        from cms.fleet.deployment.verifying import settle_guesses

        before = settle_guesses(self.there, after)
        (running, placed, runs), (_, places, wanted) = map(_count_instances, (before, after))
        kept, stay = (running & places).total(), (placed & places).total()
        alike = (runs & wanted).total()
        created, deleted = wanted.total() - alike, runs.total() - alike
        if not runs:
            return f"{count(created, 'instance')} created"
        parts = [f"{count(kept, 'instance')} kept"]
        again = (stay - kept, "restarted"), (alike - stay, "moved")
        rest = (created, "created"), *again, (deleted, "deleted")
        parts += [f"{n} {what}" for n, what in rest if n]
        if after.routing == "weighted":
            floors = self.session.fleet.transition
            rates = {each.name: each.rate_rps for each in after.services}
            supply = defaultdict[str, Fraction](Fraction)
            for kind, n in after.kinds().items():
                supply[kind.work.service] += n * kind.work.supply_rps
            below = 0
            for each in before.services:
                share = options.share(floors.floors.get(each.name, floors.floor), "floor")
                least = min(each.rate_rps, rates.get(each.name, Fraction(0)))
                below += supply[each.name] < share * least
            whose = "its" if below == 1 else "their"
            parts.append(f"{count(below, 'service')} below {whose} floor")
        return ", ".join(parts)

    def _tell_cost(self, result: PlacementResult, plan: cms.fleet.Plan) -> str:
        """Say what GPUs cost, by how much that is less than now, and what is proved of it."""
        from cms.fleet.deployment.checking import has_our_work

        def find_price(node: FleetNode, card: FleetGpu) -> Fraction | None:
            own = result.wanted.prices.get(card.gpu.key) if node.price is None else node.price
            return Fraction(0) if card.foreign else own

        cost, currency = result.cost, plan.serving.currency
        before, after = (
            [find_price(n, card) for n in fleet.nodes for card in n.gpus if has_our_work(card)]
            for fleet in (self.there, result.deployment)
        )
        said = money(cost, currency) if currency else f"cost {shown(cost)}"
        if not currency and {*after} <= {1} and cost == len(after):
            said = count(len(after), "GPU")
        elif None not in before and any(before) and sum(filter(None, after)) == cost:
            now = sum(filter(None, before), Fraction(0))
            change = round(100 * (cost - now) / now)
            said += f" ({'+' if change > 0 else '−' * (change < 0)}{abs(change)} %)"
        proof = "checked" if cost == result.least_cost else result.cost_proof.value
        scope = "" if result.is_of_all_plans else " for the plan's instances"
        least = {"checked": f"proved least{scope}", "solver": f"least{scope} claimed by a solver"}
        return f"{said}, {least.get(proof, 'not proved least')}"

    def _constraints(self, services: Sequence[cms.fleet.Service]) -> cms.fleet.PlacementConstraints:
        """The columns of services, and the fleet's constraints, which go before them."""
        from cms.fleet.placement import placement_constraints

        given = self.session.fleet.placement
        try:
            own = cms.fleet.PlacementConstraints(**{k: v for k, v in given if k != "as_grouped"})
            columns, there = placement_constraints(services), {each.name for each in services}
            gone = [name for name in (columns | own).services if name not in there]
            left, fix = set(gone if self.drop is None else self.drop), ""
            if gone and self.drop is None:  # only the table tells left out services from misspelt
                read = partial(cms.fleet.read_services, called=self.session.columns)
                rows = self.session.read_beside(self.session.fleet.tables.services, read)
                left &= {one.name for one in rows or ()}
                fix = "; leave it out of [placement]"
                fix += ", or give the services' table in [tables]" * (rows is None)
            own = own.without_services(left)
            own.require(services)
        except InvalidOption as fault:
            raise options.usage_error(f"{fault}{fix}", "[placement]") from None
        if gone := [repr(name) for name in gone if name in left]:
            self.session.note(f"left out, with the constraints that name it: {', '.join(gone)}")
        return columns.without_services(left) | own

    def _sufficient_gpus(
        self,
        wanted: DesiredState,
        place: Callable[[cms.fleet.Deployment], PlacementResult | PlacementInfeasible],
    ) -> str:
        """Find how many more empty GPUs would do, of the one type that is wanted; empty if none."""
        from cms.fleet.deployment import FleetGpu, FleetNode
        from cms.fleet.placement import PlacementInfeasible

        nodes = self.there.nodes
        name = max((node.name for node in nodes), default="") + "+"  # sorts behind all others
        ((key, most),) = wanted.gpus.items()

        def suffice(more: int) -> bool:
            cards = tuple(FleetGpu(name, at, wanted.devices[key]) for at in range(more))
            found = place(replace(self.there, nodes=(*nodes, FleetNode(name, cards))))
            return not isinstance(found, PlacementInfeasible)

        low, high = 0, most  # numbers of further GPUs that do not, and that do, suffice
        if not suffice(high):
            return ""
        while high - low > 1 and not self.session.interrupts.pressed:
            middle = (low + high) // 2
            low, high = (low, middle) if suffice(middle) else (middle, high)
        return f"{high} more {key} would do: list {'it' if high == 1 else 'them'} in --nodes"

    def _refuse(self, found: PlacementInfeasible, more: str) -> int:
        """Say why nothing could be placed; no file is written, since there is no deployment."""
        from cms.fleet.report.proofs import refusal_page

        proof = "proof checked" if found.proof == "checked" else "claimed by the solver"
        document: dict[str, Any] = {
            "placed": False, "proof": found.proof.value, "reasons": list(found.reasons),
            "would_do": more or None,
        }  # fmt: skip
        reasons, head = [*found.reasons, *[more] * bool(more)], f"cannot be placed, {proof}:"
        self.session.show(lambda: document, lambda: refusal_page(head, reasons))
        return Exit.INFEASIBLE


def _count_instances(fleet: cms.fleet.Deployment) -> list[Counter[Hashable]]:
    """Count managed work: by place what can go on, by place all, and by what it is."""
    from cms.fleet.placement.gpu_group import kind_of

    running, placed, alike = (Counter[Hashable]() for _ in range(3))
    for card, each in fleet.instances():
        if each.is_managed and each.work is not None:
            does = each.profile, each.work.service, each.work.point
            running[card.name, each.place, does] += kind_of(card, each) is not None
            placed[card.name, each.place, does] += 1
            alike[card.gpu.key, does] += 1
    return [running, placed, alike]
