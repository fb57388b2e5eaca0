"""What a transition says of its spare GPUs, with its proof, as a part of a JSON document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ....files.layout import number_to_json
from ....files.node import Node
from ....values.frozen import FrozenMap
from ..instance import Work
from .model import Exhausted, Fixed, Frozen, Spare

__all__ = ["spare_from_json", "spare_to_json"]


def spare_to_json(spare: Spare, names: Mapping[Work, str]) -> dict[str, Any]:
    """Write what is said of spare GPUs."""
    return {
        "count": spare.count,
        "least": spare.least,
        "reason": spare.reason,
        "borrowed": list(spare.borrowed),
        "proof": None if spare.proof is None else _proof_to_json(spare.proof, names),
    }


def _proof_to_json(proof: Frozen | Exhausted, names: Mapping[Work, str]) -> dict[str, Any]:
    of = "target" if proof.places else "counts"
    if isinstance(proof, Exhausted):
        return {"kind": "exhausted", "of": of, "states": list(proof.states)}
    end = None
    if proof.end is not None:
        end = [
            {"gpu": gpu, "profile": profile, "price": number_to_json(price)}
            for (gpu, profile), price in sorted(proof.end.items())
        ]
    stays = [{"point": names[each.work], "prices": _prices_to_json(each)} for each in proof.stays]
    never = [
        {
            "point": names[each.work],
            "prices": _prices_to_json(each),
            "room": number_to_json(each.room),
        }
        for each in proof.never
    ]
    return {"kind": "frozen", "of": of, "stays": stays, "never": never, "end": end}


def _prices_to_json(fixed: Fixed) -> dict[str, Any] | None:
    if fixed.prices is None:
        return None
    return {name: number_to_json(price) for name, price in sorted(fixed.prices.items())}


def spare_from_json(node: Node, works: Mapping[str, Work]) -> Spare:
    """Read what is said of spare GPUs.

    Raises
    ------
    FileError
        If a part is missing or wrong.
    """
    fields = node.object(("count", "least", "reason", "borrowed", "proof"))
    proof = fields["proof"]
    return Spare(
        fields["count"].integer(),
        fields["least"].integer(),
        fields["reason"].text(),
        tuple(entry.text() for entry in fields["borrowed"].array()),
        None if proof.value is None else _proof(proof, works),
    )


def _proof(node: Node, works: Mapping[str, Work]) -> Frozen | Exhausted:
    kind = node.at("kind").one_of(("frozen", "exhausted"))
    keys = ("states",) if kind == "exhausted" else ("stays", "never", "end")
    fields = node.object(("kind", "of", *keys))
    places = fields["of"].one_of(("counts", "target")) == "target"
    if kind == "exhausted":
        counts = tuple(entry.integer(minimum=1) for entry in fields["states"].array())
        return Exhausted(counts, places)
    end = None
    if fields["end"].value is not None:
        end = FrozenMap(dict(_end(fields["end"])))
    stays, never = (
        tuple(_fixed(entry, works, begins=key == "never") for entry in fields[key].array())
        for key in ("stays", "never")
    )
    return Frozen(stays, never, end, places)


def _end(node: Node) -> Iterator[tuple[tuple[str, str], Any]]:
    for entry in node.array():
        fields = entry.object(("gpu", "profile", "price"))
        yield (fields["gpu"].text(), fields["profile"].text()), fields["price"].number()


def _fixed(node: Node, works: Mapping[str, Work], *, begins: bool) -> Fixed:
    fields = node.object(("point", "prices", "room") if begins else ("point", "prices"))
    work, prices = works[fields["point"].one_of(works)], None
    if fields["prices"].value is not None:
        prices = FrozenMap({name: each.number() for name, each in fields["prices"].entries()})
    return Fixed(work, prices, fields["room"].number()) if begins else Fixed(work, prices)
