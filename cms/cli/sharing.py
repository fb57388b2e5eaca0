"""The options of ``cms plan`` about instances that services share in time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cms.values.names import nearest

from . import options

if TYPE_CHECKING:
    from cms.fleet.serving import TimeSharing


def _headrooms() -> Iterable[str]:
    from cms.fleet.serving.headroom import HEADROOMS

    return HEADROOMS


def _splits() -> Iterable[str]:
    from cms.fleet.serving.gpus_used import SPLITS

    return SPLITS


Kind = Annotated[
    str | None,
    typer.Option(
        "--sharing", metavar="time",
        help="time: an instance serves a batch of each of several services in turn; then --rule is "
        "round_robin (a frame and its own batch within the limit) or collect_then_run (two frames)."
        "  [default: an instance serves one service]",
        autocompletion=options.offering(lambda: ["time"]),
    ),
]  # fmt: skip
MaxServices = Annotated[
    int | None,
    typer.Option(
        "--max-services", metavar="N", min=1,
        help="With --sharing: at most N services in an instance.  [default: any number]",
    ),
]  # fmt: skip
Splits = Annotated[
    str | None,
    typer.Option(
        "--splits", metavar="pairs|any",
        help="With --sharing: MPS shares of a GPU in pairs of 100 % together, or any.  "
        "[default: pairs]",
        autocompletion=options.offering(_splits),
    ),
]  # fmt: skip
Headroom = Annotated[
    str | None,
    typer.Option(
        "--headroom", metavar="NAME",
        help="With --sharing: plan for more than is stated. gpulet: the 99 % quantile of Poisson "
        "arrivals in a second and 1 more, above 550/s 1.1 x, and batches that take 1.1 x as long.",
        autocompletion=options.offering(_headrooms),
    ),
]  # fmt: skip
Overheads = Annotated[
    Path | None,
    typer.Option(
        "--batching-overheads", metavar="O.csv",
        help="With --headroom: columns batch, overhead_ms: what making up a batch takes.",
    ),
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sharing:
    """What is said of sharing; what is not given is None."""

    kind: str | None
    max_services: int | None
    splits: str | None
    headroom: str | None
    overheads: Path | None

    def refuse_the_rest(self, load_curves: Path | None, near: Path | None) -> None:
        """Refuse options that do not go together.

        Raises
        ------
        UsageError
        """
        if self.kind not in (None, "time"):
            raise options.usage_error(f"{self.kind!r}: expected time", "--sharing")
        given = {
            "--max-services": self.max_services, "--splits": self.splits,
            "--headroom": self.headroom, "--batching-overheads": self.overheads,
        }  # fmt: skip
        for option, value in given.items():
            if value is not None and self.kind is None:
                raise options.usage_error("it goes with --sharing time", option)
        if self.overheads is not None and self.headroom is None:
            raise options.usage_error("it goes with --headroom", "--batching-overheads")
        _require_one_of(self.splits, _splits(), "--splits")
        _require_one_of(self.headroom, _headrooms(), "--headroom")
        for option, path in (("--load-curves", load_curves), ("--near", near)):
            if path is not None and self.kind is not None:
                raise options.usage_error(
                    "it is for instances that serve one service each; leave it or --sharing out",
                    option,
                )

    def terms(self, rule: str | None) -> TimeSharing | None:
        """Return the terms of sharing; None if nothing is shared.

        Raises
        ------
        CmsError
            If the rule is none of frames, or the table of overheads is wrong.
        """
        from cms.fleet.serving import Headroom, TimeSharing
        from cms.fleet.serving.headroom import read_overheads
        from cms.fleet.serving.time_sharing import DEFAULT_FRAME_RULE

        if self.kind is None:
            return None
        more = None
        if self.headroom is not None:
            table = None if self.overheads is None else read_overheads(self.overheads)
            more = Headroom(self.headroom, table)
        return TimeSharing(
            rule or DEFAULT_FRAME_RULE, self.max_services, self.splits or "pairs", more
        )


def _require_one_of(value: str | None, known: Iterable[str], option: str) -> None:
    names = list(known)
    if value is not None and value not in names:
        raise options.usage_error(
            f"{value!r}: expected {' or '.join(names)}{nearest(value, names)}", option
        )
