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
    from cms.fleet.serving import Interference as Pairs
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
Interference = Annotated[
    Path | None,
    typer.Option(
        "--interference", metavar="PAIRS.csv",
        help="With --sharing: by which factor a batch takes longer beside another one on its GPU; "
        "columns model, device, profile, batch, beside_model, beside_batch, slowdown.",
    ),
]  # fmt: skip
Utilisations = Annotated[
    Path | None,
    typer.Option(
        "--utilisations", metavar="U.csv",
        help="With --interference: columns model, device, profile, batch, l2_util, dram_util; "
        "pairs that were not measured are predicted by gpulet's linear model, fitted on the rest.",
    ),
]  # fmt: skip
Classes = Annotated[
    int | None,
    typer.Option(
        "--classes", metavar="N", min=1,
        help="With --interference: batches are cut into N classes by how much they slow others; "
        "more of them bring plan and bound nearer to each other and take longer.  [default: 3]",
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
    interference: Path | None = None
    utilisations: Path | None = None
    classes: int | None = None

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
            "--interference": self.interference, "--utilisations": self.utilisations,
            "--classes": self.classes,
        }  # fmt: skip
        for option, value in given.items():
            if value is not None and self.kind is None:
                raise options.usage_error("it goes with --sharing time", option)
        if self.overheads is not None and self.headroom is None:
            raise options.usage_error("it goes with --headroom", "--batching-overheads")
        for option, more in (("--utilisations", self.utilisations), ("--classes", self.classes)):
            if more is not None and self.interference is None:
                raise options.usage_error("it goes with --interference", option)
        _require_one_of(self.splits, _splits(), "--splits")
        if self.interference is not None and self.splits == "any":
            raise options.usage_error(
                "'any': what slows a batch is measured beside one other share; leave it or "
                "--interference out",
                "--splits",
            )
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

    def slowdowns(self) -> tuple[Pairs | None, tuple[str, ...]]:
        """Return what batches take beside others, and what to say of it; None if nothing is said.

        Raises
        ------
        CmsError
            If a table is wrong, or pairs cannot be predicted from it.
        """
        from cms.fleet.serving import predicted, read_interference, read_utilisations

        if self.interference is None:
            return None, ()
        table = read_interference(self.interference)
        if self.utilisations is None:
            return table, ()
        return predicted(table, read_utilisations(self.utilisations))


def _require_one_of(value: str | None, known: Iterable[str], option: str) -> None:
    names = list(known)
    if value is not None and value not in names:
        raise options.usage_error(
            f"{value!r}: expected {' or '.join(names)}{nearest(value, names)}", option
        )
