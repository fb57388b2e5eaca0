"""The actions of a transition one after the other, in the order of the file."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from .fleet import CLIENTS, Card, Instance, misplaced, work_fault
from .transition import Action, Transition
from .turns import prepared

#: What has its GPU for itself.
_DOES = {"repartition": "repartitions", "switch": "switches"}


class Placed(NamedTuple):
    """An instance that is there, and the action that added it (None: it was there)."""

    instance: Instance
    adder: int | None


@dataclass
class Use:
    """A GPU in use, in the order of the file: from the first addition until it is empty again."""

    from_start: bool
    actions: list[int] = field(default_factory=list)
    ends: bool = False


@dataclass
class Stretch:
    """What happens on a GPU from one repartition to the next: all on ``first``, in one mode."""

    mode: str
    first: list[Instance]
    actions: list[int] = field(default_factory=list)


class Replay:
    """The actions in the order of the file, which is one of those that are allowed.

    What is there after all of them, and which adder each removed instance had, is the same in every
    execution; what depends on the execution is judged later.
    """

    def __init__(self, transition: Transition) -> None:
        self.of = transition
        self.faults: list[str] = []
        cards = transition.start.cards
        #: With the driver that either side knows.
        self.cards = {
            name: card
            if card.driver is not None
            else card._replace(driver=transition.target.cards[name].driver)
            for name, card in cards.items()
        }
        self.held = {n: [Placed(e, None) for e in card.held] for n, card in cards.items()}
        self.stretches = {n: [Stretch(c.mode, list(c.held))] for n, c in cards.items()}
        self.on_card: dict[str, list[int]] = {name: [] for name in cards}
        self.uses = {name: [Use(True)] if card.held else [] for name, card in cards.items()}
        self.last_rewrite: dict[str, int] = {}
        #: The actions whose additions do not last, or that remove such.
        self.temporary: set[int] = set()
        #: Those that add or remove one of several equal ones, so that nobody can say.
        self.unsure: set[int] = set()
        #: By action, what it removes with its adder.
        self.removed: list[list[Placed]] = []
        for at, action in enumerate(transition.actions):
            self._run(at, action)

    def _run(self, at: int, action: Action) -> None:
        self._shape(at, action)
        card, held = self.cards[action.card], self.held[action.card]
        earlier, uses = self.on_card[action.card], self.uses[action.card]
        if action.adds and not held:
            uses.append(Use(False))
        taken = [self._take(at, each, held) for each in action.removes]
        gone = [found for found in taken if found is not None]
        self.removed.append(gone)
        for found in gone:
            if found.adder is not None:
                self.temporary |= {at, found.adder}
        if action.what in _DOES:
            does = _DOES[action.what]
            staying = [left.instance for left in held]
            for instance in staying if action.what == "repartition" else ():
                self._say(at, f"repartitions {card.name} over {instance}")
            for other in earlier:
                if not self.of.before[at] >> other & 1:
                    self._say(at, f"{does} {card.name} and does not wait for action {other}")
            mode = action.mode or self.stretches[action.card][-1].mode
            self.stretches[action.card].append(Stretch(mode, [*staying, *action.adds]))
            self.last_rewrite[action.card] = at
        else:
            repartition = self.last_rewrite.get(action.card)
            if repartition is not None and not self.of.before[at] >> repartition & 1:
                does = _DOES[self.of.actions[repartition].what]
                self._say(at, f"does not wait for action {repartition}, which {does} {card.name}")
            self.stretches[action.card][-1].actions.append(at)
        mode = self.stretches[action.card][-1].mode
        for each in action.adds:
            self._add(at, card, mode, each)
            held.append(Placed(each, at))
        earlier.append(at)
        if uses and not uses[-1].ends:
            uses[-1].actions.append(at)
            uses[-1].ends = not held

    def _say(self, at: int, words: str) -> None:
        self.faults.append(f"action {at} {words}")

    def _shape(self, at: int, action: Action) -> None:
        what, gone, come = action.what, action.removes, action.adds
        shape = {"create": (0, 1), "delete": (1, 0), "restart": (1, 1)}.get(what)
        if shape not in (None, (len(gone), len(come))):
            self._say(at, f"is a {what}, removes {len(gone)} instances and adds {len(come)}")
        elif what == "restart" and gone[0][:2] != come[0][:2]:
            self._say(at, f"restarts {gone[0]} in another place")
        turns = [each.profile.startswith("mps:") and each.start is not None for each in gone + come]
        if any(turns) if what != "switch" else not (turns and all(turns)):
            self._say(at, f"is a {what}; shares with starts are switched, and nothing else is")
        clients = len(self.held[action.card]) + prepared(gone, come, self.of.points)
        if what == "switch" and clients > CLIENTS:
            self._say(at, f"prepares beside what serves: {clients} clients of MPS, of {CLIENTS}")
        if action.mode == "fixed":
            self._say(at, "makes a GPU one that is fixed")
        if what != "repartition" and action.mode is not None:
            self._say(at, "changes the mode of a GPU and is no repartition")

    def _take(self, at: int, instance: Instance, held: list[Placed]) -> Placed | None:
        if instance.owner is not None:
            self._say(at, f"removes {instance}, which is another's")
        found = [each for each in held if each.instance == instance]
        if not found:
            self._say(at, f"removes {instance}, which is not there")
            return None
        if len(adders := {each.adder for each in found}) > 1:
            self.unsure |= {at, *(adder for adder in adders if adder is not None)}
        # of equal ones, those that had come on the way go first
        held.remove(found[-1])
        return found[-1]

    def _add(self, at: int, card: Card, mode: str, instance: Instance) -> None:
        if why := misplaced(card, mode, instance):
            self._say(at, f"adds what cannot be on {card.name}: {instance} {why}")
        if mode == "mig" and instance.start is None and self.of.actions[at].what != "restart":
            self._say(at, f"adds {instance} and does not say where")
        if instance.owner is not None:
            self._say(at, f"adds {instance}, which is another's")
        if instance.state != "running":
            self._say(at, f"adds {instance}, which is {instance.state}")
        if why := work_fault(card, instance, self.of.points):
            self._say(at, f"adds what cannot run: {why}")

    @property
    def kept(self) -> int:
        """How many of our instances with work are never removed; of equal ones, for certain."""
        kept = 0
        for name, card in self.of.start.cards.items():
            gone = Counter(e for at in self.on_card[name] for e in self.of.actions[at].removes)
            left = Counter(card.held) - gone
            kept += sum(n for e, n in left.items() if e.owner is None and e.point is not None)
        return kept
