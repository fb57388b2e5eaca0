"""A transition: whether every execution of its actions is safe, and ends where it says.

What an action removes supplies nothing from the action's beginning on, and has its place until the
end; what it adds has its place from the beginning on, and supplies from the end on. A restart keeps
its places throughout. A repartition has its GPU for itself: all other actions there have ended
before it begins, or begin after it has ended. So has a switch, of shares that services take turns
in: it prepares beside what serves, and at its end all changes at once, so that meanwhile a service
has what it had or what it will have; turns change in no other way. Actions run whenever those that
they wait for have ended, in any number at once, for any time. Of all moments of all executions it
is required that

1. every service has its floor (exact: ``waits.py``);
2. the rules of placement hold on every GPU, and nothing is removed that may not be there yet
   (exact, for each rule);
3. no more GPUs are in use than the larger of before and after, and the spare ones (by a bound, and
   moment by moment where that is too rough and there are few).

Beside that nothing foreign is touched, the end is the target, and what the file says of itself is
true: temporary actions, kept instances, borrowed GPUs, and that fewer spare GPUs would not do
(``necessity.py``) and no more could be kept (``staying.py``). Why the floors are what they are is
not in the file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction

from .deployment import fleet_faults, short, taken_words
from .executions import floor_faults, layout_faults, lowest_capacities, most_in_use, removal_faults
from .fleet import Instance, supplies
from .necessity import necessity_faults
from .reading import ZERO, sentences, show
from .sequence import Replay
from .staying import in_common, kept_faults
from .transition import Transition, read_transition


def _started(instance: Instance) -> Instance:
    """What starts runs in the end: time alone brings that about."""
    return instance._replace(state="running") if instance.state == "starting" else instance


def _end_faults(of: Transition, replay: Replay) -> list[str]:
    """Compare what is there after all actions with the target."""
    faults = []
    for name, card in of.target.cards.items():
        if card.held and (mode := replay.stretches[name][-1].mode) != card.mode:
            faults.append(f"in the end {name} is in mode {mode}, in the target {card.mode}")
        there = Counter(_started(each.instance) for each in replay.held[name])
        wanted = Counter(map(_started, card.held))
        faults += [f"in the end {name} has {each}, the target does not" for each in there - wanted]
        faults += [f"in the end {name} lacks {each} of the target" for each in wanted - there]
    return faults


def _fleet_differences(of: Transition) -> list[str]:
    """Both sides must be of the same GPUs."""
    start, target = of.start.cards, of.target.cards
    faults = [f"GPU {n} is on one side alone" for n in sorted(start.keys() ^ target.keys())]
    for name in sorted(start.keys() & target.keys()):
        old, new = start[name], target[name]
        known = {side.driver for side in (old, new)} - {None}
        if old.device.key != new.device.key or len(known) > 1:
            faults.append(f"GPU {name} is not the same on both sides")
        if None not in (old.uuid, new.uuid) and old.uuid != new.uuid:
            faults.append(f"GPU {name} has another uuid in the target")
    return faults


def _claim_faults(of: Transition, replay: Replay) -> list[str]:
    """Say what the file says of itself and is not so."""
    faults = [
        f"action {at} is {'' if says else 'not '}said to be temporary, and is{' not' * says}"
        for at, action in enumerate(of.actions)
        if (says := action.is_temporary) != (at in replay.temporary) and at not in replay.unsure
    ]
    kept, most = of.kept[:2]
    if kept != replay.kept:
        faults.append(f"{kept} instances are said to be kept, and {replay.kept} are")
    if kept > most:
        faults.append(f"{kept} instances are said to be kept, of at most {most}")
    faults += kept_faults(of)
    count, least, reason = of.spare
    ends = max(of.start.in_use, of.target.in_use)
    if least > count or len({bool(least), bool(reason), of.proof is not None}) > 1:
        faults.append(f"at least {least} spare GPUs are said to be needed, of {count}: no reason")
    elif of.proof is not None:
        why = necessity_faults(of, of.proof, ends + least - 1)
        faults += [
            f"that fewer than {least} spare GPUs will not do is not proved: {w}" for w in why
        ]
    used = most_in_use(of, replay)
    if used > ends + count:
        faults.append(f"{used} GPUs can be in use at once, {ends} and {count} spare ones may be")
    if used < ends + count:
        faults.append(f"{count} spare GPUs are said to be used, and {used - ends} are")
    lent = [
        name
        for name, card in of.start.cards.items()
        if not card.held and not of.target.cards[name].held and replay.uses[name]
    ]
    if sorted(of.borrowed) != sorted(lent):
        faults.append(f"the borrowed GPUs are {', '.join(sorted(lent)) or 'none'}")
    return faults


def _words(
    of: Transition, lowest: Mapping[str, tuple[Fraction, Sequence[int]]], taken: Mapping[str, int]
) -> list[str]:
    words = [
        f"{len(of.actions)} actions, in any order and at any pace that their waits allow, keep "
        f"every floor and every layout, touch nothing foreign and end at the target"
    ]
    shares = {}
    for name in of.start.services.keys() & of.target.services.keys():
        if rate := min(side.services[name].rate for side in (of.start, of.target)):
            shares[name] = of.floors.get(name, ZERO) / rate
    if shares:
        name = min(shares, key=lambda each: (shares[each], each))
        words.append(
            f"the lowest floor of a service that stays is {show(shares[name])} of the smaller "
            f"rate, of {name}"
        )
    if slack := [(low - of.floors[name], name) for name, (low, _) in lowest.items()]:
        words.append(
            f"the least above a floor is {show(min(slack)[0])} requests/s, of {min(slack)[1]}"
        )
    kept, most, proof = of.kept[:3]
    if of.kept.prices is None and most >= in_common(of, places=of.kept.of_target):
        words.append(f"{kept} instances are kept of {most}, and both sides have no more in common")
    else:
        word = {"solver": "rests on a solver's word", "none": "is not proved"}.get(
            proof, "is proved by prices"
        )
        words.append(f"{kept} instances are kept; that no more than {most} could be {word}")
    count, least, _ = of.spare
    words.append(f"{count} spare GPUs" + ("" if least == count else ", not proved the least"))
    if least:
        words.append(f"that fewer than {least} would not do is proved")
    return words + taken_words(taken)


def examine_transition(document: object) -> tuple[list[str], str]:
    """Say what is wrong with a transition, and what was found."""
    of, faults, taken = read_transition(document)
    faults += _fleet_differences(of)
    for name, side in (("start", of.start), ("target", of.target)):
        own = fleet_faults(side.cards.values(), of.points, side.services)
        faults += [f"in the {name}, {why}" for why in own]
    given = supplies((e for card in of.target.cards.values() for e in card.held), of.points)
    faults += [f"in the target, {why}" for why in short(of.target.services, given)]
    if faults:
        return faults, ""
    replay = Replay(of)
    if replay.faults:
        return replay.faults, ""
    lowest = lowest_capacities(of)
    faults = [
        *_end_faults(of, replay),
        *floor_faults(of, lowest),
        *removal_faults(of, replay),
        *layout_faults(of, replay),
        *_claim_faults(of, replay),
    ]
    return faults, "" if faults else "; ".join(_words(of, lowest, taken))


def check_transition(document: object) -> list[str]:
    """Say what is wrong with a transition, in sentences; nothing if all holds."""
    return sentences(lambda: examine_transition(document)[0])
