"""What a transition says of kept instances and spare GPUs, with the proofs, in its document."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, TypeAlias

from ....files.documents import number_to_json
from ....files.node import Node
from ....solving.solution import Proof
from ....values.frozen import FrozenMap
from ..instance import Work
from .model import Exhausted, FirstCut, Fixed, Frozen, Kept, KeptPrices, Necessary, Spare

__all__ = ["kept_from_json", "kept_to_json", "spare_from_json", "spare_to_json"]

_Prices: TypeAlias = Mapping[tuple[str, str], Fraction]


def kept_to_json(kept: Kept, names: Mapping[Work, str]) -> dict[str, Any]:
    """Write what is said of instances kept."""
    own = kept.prices
    return {
        "count": kept.count,
        "most": kept.most,
        "proof": kept.proof.value,
        "of": "target" if kept.places else "counts",
        "prices": None
        if own is None
        else {
            "points": [
                {"point": names[work], "price": number_to_json(price)} for work, price in own.works
            ],
            "instances": _prices_to_json(own.blocks),
            "gpus": [
                {"gpu": gpu, "price": number_to_json(price)}
                for gpu, price in sorted(own.gpus.items())
            ],
        },
    }


def kept_from_json(node: Node, works: Mapping[str, Work]) -> Kept:
    """Read what is said of instances kept.

    Raises
    ------
    FileError
        If a part is missing or wrong.
    """
    fields = node.object(("count", "most", "proof", "of", "prices"))
    prices = None
    if fields["prices"].value is not None:
        own = fields["prices"].object(("points", "instances", "gpus"))
        points, cards = _priced(own["points"], "point"), _priced(own["gpus"], "gpu")
        prices = KeptPrices(
            tuple((works[e.one_of(works)], price) for e, price in points),
            _prices(own["instances"]) or FrozenMap({}),
            FrozenMap({e.text(): price for e, price in cards}),
        )
    return Kept(
        fields["count"].integer(),
        fields["most"].integer(),
        Proof(fields["proof"].one_of([each.value for each in Proof])),
        fields["of"].one_of(("counts", "target")) == "target",
        prices,
    )


def _priced(node: Node, what: str) -> list[tuple[Node, Fraction]]:
    """Read prices of things that have names, each once."""
    found = list[tuple[Node, Fraction]]()
    names = set[str]()
    for entry in node.array():
        fields = entry.object((what, "price"))
        named = fields[what]
        if (name := named.text()) in names:
            raise named.error(f"{named.label} is a second price of {name}", expected="one")
        names.add(name)
        found.append((named, fields["price"].number()))
    return found


def spare_to_json(spare: Spare, names: Mapping[Work, str]) -> dict[str, Any]:
    """Write what is said of spare GPUs."""
    return {
        "count": spare.count,
        "least": spare.least,
        "reason": spare.reason,
        "borrowed": list(spare.borrowed),
        "proof": None if spare.proof is None else _proof_to_json(spare.proof, names),
    }


def _proof_to_json(proof: Necessary, names: Mapping[Work, str]) -> dict[str, Any]:
    if isinstance(proof, FirstCut):
        prices = [
            {"service": name, "price": number_to_json(price)}
            for name, price in sorted(proof.prices.items())
        ]
        return {"kind": "first_cut", "by_node": proof.by_node, "prices": prices}
    of = "target" if proof.places else "counts"
    if isinstance(proof, Exhausted):
        return {"kind": "exhausted", "of": of, "states": list(proof.states)}
    stays, never = (
        [{"point": names[each.work], "prices": _prices_to_json(each.prices)} for each in part]
        for part in (proof.stays, proof.never)
    )
    end = _prices_to_json(proof.end)
    return {"kind": "frozen", "of": of, "stays": stays, "never": never, "end": end}


def _prices_to_json(prices: _Prices | None) -> list[dict[str, Any]] | None:
    if prices is None:
        return None
    return [
        {"gpu": gpu, "profile": profile, "price": number_to_json(price)}
        for (gpu, profile), price in sorted(prices.items())
    ]


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


def _proof(node: Node, works: Mapping[str, Work]) -> Necessary:
    kind = node.at("kind").one_of(("frozen", "exhausted", "first_cut"))
    if kind == "first_cut":
        fields = node.object(("kind", "by_node", "prices"))
        prices = _priced(fields["prices"], "service")
        by_node = fields["by_node"].boolean()
        return FirstCut(FrozenMap({e.text(): price for e, price in prices}), by_node)
    keys = ("states",) if kind == "exhausted" else ("stays", "never", "end")
    fields = node.object(("kind", "of", *keys))
    places = fields["of"].one_of(("counts", "target")) == "target"
    if kind == "exhausted":
        counts = tuple(entry.integer(minimum=1) for entry in fields["states"].array())
        return Exhausted(counts, places)
    stays, never = (
        tuple(_fixed(entry, works) for entry in fields[key].array()) for key in ("stays", "never")
    )
    return Frozen(stays, never, _prices(fields["end"]), places)


def _fixed(node: Node, works: Mapping[str, Work]) -> Fixed:
    fields = node.object(("point", "prices"))
    return Fixed(works[fields["point"].one_of(works)], _prices(fields["prices"]))


def _prices(node: Node) -> _Prices | None:
    if node.value is None:
        return None
    found: dict[tuple[str, str], Fraction] = {}
    for entry in node.array():
        fields = entry.object(("gpu", "profile", "price"))
        block = fields["gpu"].text(), fields["profile"].text()
        if block in found:
            raise entry.error(f"{entry.label} is a second price of {block[1]}", expected="one")
        found[block] = fields["price"].number()
    return FrozenMap(found)
